"""Makes what the requests need, lets schemathesis ask, and ends what was made."""

import os
import subprocess
import sys
from pathlib import Path

import requests

HERE = Path(__file__).resolve().parent
DOCUMENT = HERE.parent.parent / "openapi" / "zareba.json"
SESSIONS = ["fixture", "doomed-1", "doomed-2", "doomed-3"]
# A longer text is not kept in its event.
LARGE = 2 * 1024 * 1024
# Whatever takes longer hangs.
REQUEST_LIMIT = 30
RUN_LIMIT = 600


class Server:
    """The server under test, asked as its administrator."""

    def __init__(self, url, key):
        self.url = url
        self.http = requests.Session()
        self.http.headers["Authorization"] = f"Bearer {key}"

    def ask(self, method, path, **arguments):
        answer = self.http.request(method, self.url + path, timeout=REQUEST_LIMIT, **arguments)
        answer.raise_for_status()
        return answer

    def make_sessions(self):
        for session in SESSIONS:
            wanted = {"id": session, "timeout": 2, "no_change_timeout": 1}
            self.ask("POST", "/v1/sessions", json=wanted)

    def end_sessions(self):
        for session in SESSIONS:
            self.http.delete(f"{self.url}/v1/sessions/{session}", timeout=REQUEST_LIMIT)

    def furnish(self):
        """Files, a terminal and a large event; returns the latter's number and digest."""
        files = "/v1/sessions/fixture/files/content"
        binary = {"Content-Type": "application/octet-stream"}
        for name in ("a", "b"):
            wanted = {"path": f"notes/{name}.txt", "parents": "true"}
            self.ask("PUT", files, params=wanted, headers=binary, data=b"a note\n")
        self.ask("POST", "/v1/sessions/fixture/terminals", json={"name": "fixture"})
        write = {"action": "write", "args": {"path": "notes/c.txt", "content": "x" * LARGE}}
        self.ask("POST", "/v1/sessions/fixture/actions", json=write)
        for event in self.ask("GET", "/v1/sessions/fixture/events").json()["events"]:
            content = event["payload"].get("args", {}).get("content", "")
            if "$blob" in content:
                return event["sequence"], content["$blob"]
        raise RuntimeError("no event keeps its content apart")


def run(schemathesis, server, key, arguments):
    server.make_sessions()
    sequence, digest = server.furnish()
    environment = os.environ | {
        "OPENAPI_URL": server.url,
        "OPENAPI_KEY": key,
        "OPENAPI_HOOKS": str(HERE / "hooks.py"),
        "OPENAPI_EVENT": str(sequence),
        "OPENAPI_DIGEST": digest,
    }
    command = [schemathesis, "--config-file", HERE / "schemathesis.toml", "run", DOCUMENT]
    command += ["--url", server.url, *arguments]
    return subprocess.run(command, env=environment, timeout=RUN_LIMIT).returncode


def main():
    schemathesis, url, key_file, *arguments = sys.argv[1:]
    key = Path(key_file).read_text().strip()
    server = Server(url, key)
    try:
        return run(schemathesis, server, key, arguments)
    finally:
        server.end_sessions()


if __name__ == "__main__":
    sys.exit(main())
