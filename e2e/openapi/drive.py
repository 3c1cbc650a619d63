"""Makes what the requests need, lets schemathesis ask, and ends what was made."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import requests

HERE = Path(__file__).resolve().parent
DOCUMENT = HERE.parent.parent / "openapi" / "zareba.json"
SESSIONS = ["fixture", "doomed"]
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

    def furnish(self):
        """Makes all that the requests need, and tells the names that were not chosen here."""
        for session in SESSIONS:
            wanted = {"id": session, "timeout": 2, "no_change_timeout": 1}
            self.ask("POST", "/v1/sessions", json=wanted)
        for name in ("fixture", "doomed"):
            self.ask("POST", "/v1/sessions/fixture/terminals", json={"name": name})
        for name in ("a", "b"):
            self.ask(
                "PUT",
                "/v1/sessions/fixture/files/content",
                params={"path": f"notes/{name}.txt", "parents": "true"},
                headers={"Content-Type": "application/octet-stream"},
                data=b"a note\n",
            )
        key = self.ask("POST", "/v1/keys", json={"owner": "doomed", "scope": "read"}).json()
        event, digest = self.large_event()
        return {
            "OPENAPI_DOOMED_KEY": key["key"]["id"],
            "OPENAPI_EVENT": str(event),
            "OPENAPI_DIGEST": digest,
        }

    def large_event(self):
        """Makes an event whose content is kept apart, and tells its number and the digest."""
        write = {"action": "write", "args": {"path": "notes/c.txt", "content": "x" * LARGE}}
        self.ask("POST", "/v1/sessions/fixture/actions", json=write)
        for event in self.ask("GET", "/v1/sessions/fixture/events").json()["events"]:
            content = event["payload"].get("args", {}).get("content", "")
            if "$blob" in content:
                return event["sequence"], content["$blob"]
        raise RuntimeError("no event keeps its content apart")

    def end_sessions(self):
        page = self.ask("GET", "/v1/sessions").json()
        for session in page["sessions"]:
            self.ask("DELETE", f"/v1/sessions/{session['id']}")


def run(schemathesis, server, key, arguments):
    environment = os.environ | server.furnish()
    environment |= {
        "OPENAPI_URL": server.url,
        "OPENAPI_KEY": key,
        "OPENAPI_HOOKS": str(HERE / "hooks.py"),
    }
    command = [schemathesis, "--config-file", HERE / "schemathesis.toml", "run", DOCUMENT]
    command += ["--url", server.url, *arguments]
    return subprocess.run(command, env=environment, timeout=RUN_LIMIT).returncode


def main():
    schemathesis, url, key_file, *arguments = sys.argv[1:]
    key = Path(key_file).read_text().strip()
    server = Server(url, key)
    # So that what was made is ended, too, when we are.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return run(schemathesis, server, key, arguments)
    finally:
        server.end_sessions()


if __name__ == "__main__":
    sys.exit(main())
