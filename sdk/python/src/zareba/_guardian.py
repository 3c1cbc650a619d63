"""A small process that owns a private server, and outlives nobody.

It is started as a program of its own, with the standard library only. Its parent holds the other
end of a pipe; when that end closes, however the parent has ended, the guardian closes every
sandbox, ends the server and removes the server's directory.

Arguments: the program, the directory, and the descriptors of the pipe and of the ready signal.
"""

import http.client
import json
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, List, Optional, Tuple

REQUEST_TIMEOUT = 60.0
END_TIMEOUT = 30.0
CLOSERS_MAX = 8
PRIVATE_SETTINGS = {
    # Whoever may use this server is its owner, who may go anywhere and do without walls.
    "ZAREBA_SESSIONS_WORKSPACES": '["/"]',
    "ZAREBA_SESSIONS_RUNTIMES": '["native", "local"]',
    "ZAREBA_SESSIONS_NETWORKS": '["none", "filtered", "host"]',
    "ZAREBA_SESSIONS_NETWORK_RULES": "any",
    "ZAREBA_SESSIONS_MEMORY_MAX": "1024T",
    "ZAREBA_SESSIONS_CPUS_MAX": "1024",
    "ZAREBA_SESSIONS_PIDS_MAX": "4194304",
    "ZAREBA_SESSIONS_DISK_MAX": "1024T",
}


def main(program: str, directory: str, lifeline: int, ready: int) -> int:
    """Starts the server, waits until nobody wants it or it is gone, and cleans up."""
    # The parent decides when it is over, and not a key pressed at its terminal. Handlers, unlike
    # ignored signals, are not inherited by the server.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    try:
        server = Server(program, directory, ready)
        os.close(ready)
        server.watch(lifeline)
        if server.is_gone() and not server.was_ready():
            # It did not start, and the parent reads in the directory why not, until it lets go.
            while os.read(lifeline, 1):
                pass
        elif server.is_gone():
            # It was killed, and its sandboxes live on: another one finds them again, at an
            # address that the parent does not know, so that nothing new begins there.
            os.unlink(server.socket)
            server = Server(program, directory, None)
        close_sandboxes(server.socket, directory)
        server.end()
    finally:
        remove(directory)
    return 0


class Server:
    """The server, which ends when its lifeline does."""

    def __init__(self, program: str, directory: str, ready: Optional[int]) -> None:
        self.directory = directory
        self.socket = os.path.join(directory, "last" if ready is None else "socket")
        held, self.lifeline = os.pipe()
        answers, told = os.pipe()
        command = [program, "serve", "--listen", f"unix:{self.socket}"]
        command += ["--ready-fd", str(told if ready is None else ready)]
        command += ["--lifeline-fd", str(held)]
        with open(os.path.join(directory, "server.log"), "ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env={**PRIVATE_SETTINGS, **os.environ, "ZAREBA_STATE_DIRECTORY": directory},
                pass_fds=(held, told if ready is None else ready),
            )
        os.close(held)
        os.close(told)
        if ready is None:
            os.read(answers, 1)
        os.close(answers)

    def watch(self, lifeline: int) -> None:
        """Returns when the lifeline or the server has ended."""
        noticed, notice = os.pipe()

        def wait() -> None:
            self.process.wait()
            os.close(notice)

        threading.Thread(target=wait, daemon=True).start()
        while True:
            readable, _, _ = select.select([lifeline, noticed], [], [])
            if noticed in readable or not os.read(lifeline, 1):
                return

    def is_gone(self) -> bool:
        """Whether it has ended without being asked to."""
        return self.process.poll() is not None

    def was_ready(self) -> bool:
        """Whether it ever could have had a sandbox: it makes its key first."""
        return os.path.exists(os.path.join(self.directory, "admin.key"))

    def end(self) -> None:
        """Lets go of it, waits for its end, and insists when that does not come."""
        os.close(self.lifeline)
        try:
            self.process.wait(END_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def close_sandboxes(place: str, directory: str) -> None:
    """Ends everything that runs in the server's sandboxes."""
    try:
        with open(os.path.join(directory, "admin.key")) as file:
            key = file.read().strip()
        names = open_sandboxes(place, key)
        with ThreadPoolExecutor(CLOSERS_MAX) as closers:
            list(closers.map(lambda name: close(place, key, name), names))
    except (OSError, ValueError, http.client.HTTPException):
        # It has ended under our hands; there is nobody left to tell.
        return


def open_sandboxes(place: str, key: str) -> List[str]:
    """The names of all that are not closed."""
    names: List[str] = []
    after = ""
    while True:
        _, page = ask(place, key, "GET", f"/v1/sessions{after}")
        names += [each["id"] for each in page["sessions"] if each["state"] != "closed"]
        if not page.get("next"):
            return names
        after = f"?after={page['next']}"


def close(place: str, key: str, name: str) -> None:
    """Ends one sandbox; the others shall end even if this one does not."""
    try:
        ask(place, key, "DELETE", f"/v1/sessions/{name}")
    except (OSError, ValueError, http.client.HTTPException):
        return


def ask(place: str, key: str, method: str, path: str) -> Tuple[int, Any]:
    """One request to the server."""
    connection = http.client.HTTPConnection("localhost", timeout=REQUEST_TIMEOUT)
    connection.sock = socket.socket(socket.AF_UNIX)
    try:
        connection.sock.settimeout(REQUEST_TIMEOUT)
        connection.sock.connect(place)
        connection.request(method, path, headers={"authorization": f"Bearer {key}"})
        answer = connection.getresponse()
        content = answer.read()
        return answer.status, json.loads(content) if content else None
    finally:
        connection.close()


def remove(directory: str) -> None:
    """Removes the server's directory, with what overlays have left without permissions."""

    def open_up(function: Any, path: str, _: Any) -> None:
        parent: Optional[str] = os.path.dirname(path)
        for each in (parent, path):
            if each and os.path.isdir(each) and not os.path.islink(each):
                os.chmod(each, stat.S_IRWXU)
        function(path)

    try:
        shutil.rmtree(directory, onerror=open_up)
    except OSError:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    _, PROGRAM, DIRECTORY, LIFELINE, READY = sys.argv
    sys.exit(main(PROGRAM, DIRECTORY, int(LIFELINE), int(READY)))
