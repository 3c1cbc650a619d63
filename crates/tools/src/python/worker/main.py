
# ---- Calls: threads, the loop for asynchronous functions, cancellation. ----

import collections  # noqa: E402
import time  # noqa: E402

DESCRIPTION_CHARS_MAX = 2000
real_sleep = time.sleep


class Cancelled(BaseException):
    """Raised inside a call that is to stop."""


class Call:
    def __init__(self, worker, request):
        self.worker = worker
        self.id = request["id"]
        self.request = request
        self.stdout = Captured(worker.output_max)
        self.stderr = Captured(worker.output_max)
        self.lock = threading.Lock()
        self.cancelled = threading.Event()
        self.thread = None
        self.task = None
        self.over = False

    def run(self):
        """In a thread of the pool."""
        CURRENT.set(self)
        try:
            with self.lock:
                self.thread = threading.get_ident()
            try:
                result = None if self.cancelled.is_set() else self.invoke()
            finally:
                self.leave_thread()
        except BaseException as error:
            self.fail(error)
            return
        if inspect.isawaitable(result):
            self.worker.on_loop(self, result)
        else:
            self.succeed(result)

    def invoke(self):
        function = self.worker.functions.get(self.request["tool"])
        if function is None:
            raise LookupError("its entrypoint has no function `%s` any more" % self.request["tool"])
        function = function.function
        args, kwargs = self.request["args"], self.request["kwargs"]
        if self.request["coerce"]:
            args, kwargs = coerced(function, args, kwargs)
        return function(*args, **kwargs)

    def leave_thread(self):
        """From here on nothing is raised into this thread from outside."""
        while True:
            try:
                with self.lock:
                    if self.thread is not None and self.cancelled.is_set():
                        raise_in(self.thread, None)
                    self.thread = None
                return
            except Cancelled:
                continue

    def cancel(self):
        self.cancelled.set()
        with self.lock:
            if self.thread is not None:
                raise_in(self.thread, Cancelled)
            if self.task is not None:
                self.task.get_loop().call_soon_threadsafe(self.task.cancel)

    def succeed(self, result):
        limit = self.worker.value_max
        try:
            text = json.dumps(result, ensure_ascii=False)
            try:
                size = len(text.encode("utf-8"))
            except UnicodeEncodeError:  # Half of a pair of surrogates, which UTF-8 cannot say.
                text = json.dumps(result)
                size = len(text)
        except BaseException as error:
            described = {
                "kind": type(result).__name__,
                "description": clean(representation(result)[:DESCRIPTION_CHARS_MAX]),
                "message": clean(text_of(error)),
            }
            self.end({"not_json": described})
            return
        if size > limit:
            self.end({"too_large": {"bytes": size}})
        else:
            self.end({"returned": {"json": text}})

    def fail(self, error):
        if self.cancelled.is_set():
            self.end("cancelled")
        elif isinstance(error, SystemExit):
            self.end({"exited": {"message": clean("exit code %s" % (error.code,))}})
        else:
            self.end({"raised": exception_of(error)})

    def end(self, outcome):
        with self.lock:
            if self.over:
                return
            self.over = True
        self.worker.forget(self)
        reply = {
            "id": self.id,
            "stdout": self.stdout.text(),
            "stderr": self.stderr.text(),
            "truncated": self.stdout.truncated or self.stderr.truncated,
            "outcome": outcome,
        }
        self.worker.reply({"done": reply})


class Worker:
    def __init__(self):
        self.functions = {}
        self.calls = {}
        self.queue = collections.deque()
        self.waiting = threading.Condition()
        self.writing = threading.Lock()
        self.threads = self.idle = 0
        self.loop = None

    def serve(self):
        for line in REQUESTS:
            ((kind, request),) = json.loads(line).items()
            getattr(self, "do_" + kind)(request)
        # Whoever started us is gone.
        os._exit(0)

    def do_load(self, request):
        self.threads_max = request["threads"]
        self.output_max = request["output_bytes_max"]
        self.value_max = request["value_bytes_max"]
        sys.path.append(os.getcwd())
        sys.argv = [""]
        self.functions, toolkits, failures = load(request["entrypoints"])
        ready = {
            "python": ".".join(map(str, sys.version_info[:3])),
            "toolkits": toolkits,
            "tools": [function.described() for function in self.functions.values()],
            "failures": failures,
        }
        self.reply({"ready": ready})

    def do_call(self, request):
        call = Call(self, request)
        self.calls[call.id] = call
        function = self.functions.get(request["tool"])
        if function is not None and inspect.iscoroutinefunction(function.function):
            self.on_loop(call, None)
            return
        with self.waiting:
            self.queue.append(call)
            # A thread that was told but has not woken up yet is still counted as idle.
            if self.idle >= len(self.queue):
                self.waiting.notify()
                return
            error = self.add_thread() if self.threads < self.threads_max else None
            if error is None or self.threads > 0:
                return
            self.queue.remove(call)
        call.fail(error)

    def add_thread(self):
        self.threads += 1
        try:
            threading.Thread(target=self.work, daemon=True).start()
        except RuntimeError as error:  # The sandbox has as many as it may have.
            self.threads -= 1
            return error

    def do_cancel(self, request):
        call = self.calls.get(request["id"])
        if call is None:
            self.reply({"done": {"id": request["id"], "outcome": "cancelled"}})
            return
        with self.waiting:
            is_queued = call in self.queue
            if is_queued:
                self.queue.remove(call)
        if is_queued:
            # It never began, and needs no thread to end.
            call.end("cancelled")
        else:
            call.cancel()

    def work(self):
        """One thread of the pool."""
        while True:
            try:
                with self.waiting:
                    self.idle += 1
                    try:
                        while not self.queue:
                            self.waiting.wait()
                    finally:
                        self.idle -= 1
                    call = self.queue.popleft()
                contextvars.Context().run(call.run)
            except Cancelled:  # It came late.
                pass

    def on_loop(self, call, awaitable):
        """Has the loop call a function that is asynchronous, or await what one has returned."""
        import asyncio

        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            threading.Thread(target=self.loop.run_forever, daemon=True).start()

        async def run():
            CURRENT.set(call)
            with call.lock:
                call.task = asyncio.current_task()
            try:
                if call.cancelled.is_set():
                    raise asyncio.CancelledError()
                result = await (call.invoke() if awaitable is None else awaitable)
            except BaseException as error:
                call.fail(error)
            else:
                call.succeed(result)
            finally:
                with call.lock:
                    call.task = None

        asyncio.run_coroutine_threadsafe(run(), self.loop)

    def forget(self, call):
        self.calls.pop(call.id, None)

    def reply(self, message):
        data = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        with self.writing:
            view = memoryview(data)
            while view:
                view = view[REPLIES.write(view) :]


def raise_in(thread, exception):
    import ctypes

    raised = None if exception is None else ctypes.py_object(exception)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)


def representation(thing):
    try:
        return repr(thing)
    except Exception:
        return "(it cannot be described)"


def coerced(function, args, kwargs):
    """Plain values made into what annotations ask for: models of pydantic and enumerations."""
    named, _, _ = signature_of(function)
    hints = annotations_of(function)
    kinds = [hints.get(parameter.name) for parameter in named]
    kinds += [None] * len(args)
    args = [made_into(kind, value) for kind, value in zip(kinds, args)]
    # Null is how a strict schema says that a parameter is left out, where null is no value of it.
    optional = {p.name for p in named if p.default is not p.empty and p.default is not None}
    left_out = {name for name in optional if not takes_none(hints.get(name))}
    kwargs = {
        name: made_into(hints.get(name), value)
        for name, value in kwargs.items()
        if value is not None or name not in left_out
    }
    return args, kwargs


def takes_none(kind):
    return kind in (typing.Any, type(None)) or type(None) in typing.get_args(kind)


def made_into(kind, value):
    import enum

    if typing.get_origin(kind) is typing.Union:
        kinds = [it for it in typing.get_args(kind) if it is not type(None)]
        kind = kinds[0] if len(kinds) == 1 else None
    if not isinstance(kind, type):
        return value
    if hasattr(kind, "model_validate") and isinstance(value, dict):
        return kind.model_validate(value)
    if issubclass(kind, enum.Enum) and not isinstance(value, kind):
        return kind(value)
    return value


def sleep(seconds):
    """As time.sleep, but a call that is cancelled wakes up."""
    call = CURRENT.get()
    if call is None or not seconds > 0:
        return real_sleep(seconds)
    if call.cancelled.wait(seconds):
        raise Cancelled()


time.sleep = sleep
Worker().serve()
