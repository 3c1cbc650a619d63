
# ---- Entrypoints: modules are imported, toolkits made, functions found. ----

import importlib  # noqa: E402

MESSAGE_CHARS_MAX = 20000


class Function:
    """One function that can be called, and what is said of it."""

    def __init__(self, thing, entrypoint):
        self.entrypoint = entrypoint
        # A tool of CAMEL wraps its function; calls go to the function, as CAMEL's own server does.
        self.function = getattr(thing, "func", thing)
        if not callable(self.function):
            raise TypeError("%r is neither a function nor a tool" % (thing,))
        if hasattr(thing, "get_function_name"):
            self.of_camel(thing)
        else:
            self.name = getattr(thing, "__name__", type(thing).__name__)
            self.description = description_of(inspect.getdoc(thing) or "")
            self.parameters, self.accepts = schemas_of_function(self.function)

    def of_camel(self, tool):
        self.name = tool.get_function_name()
        schema = tool.get_openai_tool_schema()["function"]
        self.description = schema.get("description") or ""
        self.parameters = schema.get("parameters") or {"type": "object", "properties": {}}
        named, variadic, open_ended = signature_of(self.function)
        defaults = {p.name for p in named if p.default is not p.empty}
        required = [n for n in self.parameters.get("required", []) if n not in defaults]
        self.accepts = dict(self.parameters, required=required)
        if open_ended:
            self.accepts["additionalProperties"] = True
        if variadic:
            self.accepts["x-variadic"] = True

    def described(self):
        return {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
            "accepts": self.accepts,
            "entrypoint": self.entrypoint,
        }


def things_of(entrypoint, toolkits):
    """What an entrypoint stands for: a list of functions and tools."""
    module = importlib.import_module(entrypoint["module"])
    thing = getattr(module, entrypoint["attribute"])
    arguments = entrypoint["arguments"]
    if isinstance(thing, type) and hasattr(thing, "get_tools"):
        toolkit = thing(**(arguments or {}))
        toolkits.append(entrypoint["text"])
        return list(toolkit.get_tools())
    if arguments is not None:
        raise TypeError("`%s` is no toolkit, so that it takes no arguments" % entrypoint["attribute"])
    if isinstance(thing, type):
        raise TypeError("the class `%s` is no toolkit: it has no `get_tools`" % thing.__name__)
    if hasattr(thing, "get_tools"):
        toolkits.append(entrypoint["text"])
        return list(thing.get_tools())
    return list(thing) if isinstance(thing, (list, tuple)) else [thing]


def load(entrypoints):
    """Loads what it can: functions by name, toolkits, and why the rest cannot be loaded."""
    functions, toolkits, failures = {}, [], []
    for entrypoint in entrypoints:
        try:
            for thing in things_of(entrypoint, toolkits):
                function = Function(thing, entrypoint["text"])
                json.dumps(function.described())
                if function.name in functions:
                    other = functions[function.name].entrypoint
                    raise ValueError("`%s` has a function `%s` already" % (other, function.name))
                functions[function.name] = function
        except BaseException as error:  # Also one that exits: the others are to be loaded.
            failures.append(dict(exception_of(error), entrypoint=entrypoint["text"]))
    return functions, toolkits, failures


def exception_of(error):
    import traceback

    lines = traceback.format_exception(type(error), error, outer_frames_removed(error))
    kind = type(error)
    module = "" if kind.__module__ in ("builtins", "__main__") else kind.__module__ + "."
    return {
        "kind": clean(module + kind.__qualname__),
        "message": clean(text_of(error)),
        "traceback": clean("".join(lines)),
    }


def text_of(error):
    try:
        return str(error)
    except Exception:
        return "(its text cannot be had)"


def outer_frames_removed(error):
    """The traceback without the frames of this worker, which say nothing to a caller."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == "<string>":
        frames = frames.tb_next
    return frames


def clean(text):
    """What can be written as UTF-8, of a length that can be shown."""
    if len(text) > MESSAGE_CHARS_MAX:
        half = MESSAGE_CHARS_MAX // 2
        text = text[:half] + "\n[...]\n" + text[-half:]
    return text.encode("utf-8", "replace").decode("utf-8")

