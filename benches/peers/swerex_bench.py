"""Measures SWE-ReX over its own HTTP server, as a peer in our benchmark.

Run with the interpreter of the environment that `e2e/foreign/setup-swerex` makes. Starts
`python -m swerex` on a free loopback port, opens one bash session, runs `true` and `echo hi` a
hundred times each on one kept connection and prints one line of JSON. The requests are made with
the standard library, so the client adds as little as ours does. Everything has a deadline; the
whole run is cut off after two minutes.
"""

import http.client
import importlib.metadata
import json
import os
import secrets
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 100
WARM_UP = 3
START_LIMIT = 60
WHOLE_LIMIT = 120


class Peer:
    """A running SWE-ReX server and one connection to it."""

    def __init__(self, directory: str):
        self.port = free_port()
        self.token = secrets.token_hex(16)
        started = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, '-m', 'swerex', '--host', '127.0.0.1', '--port', str(self.port), '--auth-token', self.token],
            cwd=directory,
            # Its shells keep a history in the home directory, which must not be the developer's.
            env=os.environ | {'HOME': directory},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=30)
        try:
            self._wait_until_alive()
        except BaseException:
            self.close()
            raise
        self.start_ms = 1000 * (time.perf_counter() - started)

    def _wait_until_alive(self) -> None:
        deadline = time.monotonic() + START_LIMIT
        while True:
            try:
                if self.request('GET', '/is_alive')['is_alive']:
                    return
            except OSError:
                self.connection.close()
            if self.process.poll() is not None:
                raise SystemExit(f'the SWE-ReX server ended with {self.process.returncode}')
            if time.monotonic() > deadline:
                raise SystemExit(f'the SWE-ReX server did not answer within {START_LIMIT} s')
            time.sleep(0.005)

    def request(self, method: str, path: str, body: dict | None = None) -> dict:
        self.connection.request(
            method,
            path,
            body=json.dumps(body) if body is not None else None,
            headers={'X-API-Key': self.token, 'Content-Type': 'application/json'},
        )
        response = self.connection.getresponse()
        content = response.read()
        if response.status != 200:
            raise SystemExit(f'SWE-ReX answered {path} with {response.status}: {content[:300]!r}')
        return json.loads(content)

    def open_session(self) -> None:
        self.request('POST', '/create_session', {'session': 'default', 'session_type': 'bash', 'startup_timeout': 5.0})

    def run(self, command: str, output: str) -> float:
        """Runs a command in the session, checks its output, and returns the milliseconds it took."""
        body = {'command': command, 'session': 'default', 'action_type': 'bash', 'timeout': 10.0, 'check': 'raise'}
        started = time.perf_counter()
        answer = self.request('POST', '/run_in_session', body)
        elapsed = 1000 * (time.perf_counter() - started)
        if (answer['output'].strip(), answer['exit_code']) != (output, 0):
            raise SystemExit(f'SWE-ReX answered `{command}` with {answer}')
        return elapsed

    def resident_mib(self) -> float:
        status = Path(f'/proc/{self.process.pid}/status').read_text()
        line = next(line for line in status.splitlines() if line.startswith('VmRSS:'))
        return int(line.split()[1]) / 1024

    def close(self) -> None:
        """Ends the server; its shells go with it, because they lose their terminal."""
        self.connection.close()
        self.process.terminate()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def percentiles(samples: list[float]) -> tuple[float, float]:
    cuts = statistics.quantiles(samples, n=100, method='inclusive')
    return round(cuts[49], 3), round(cuts[98], 3)


def measure(peer: Peer) -> dict[str, object]:
    peer.open_session()
    result: dict[str, object] = {'peer': 'swe-rex', 'version': importlib.metadata.version('swe-rex')}
    for name, command, output in (('true', 'true', ''), ('echo', 'echo hi', 'hi')):
        for _ in range(WARM_UP):
            peer.run(command, output)
        p50, p99 = percentiles([peer.run(command, output) for _ in range(RUNS)])
        result[f'{name}_ms_p50'] = p50
        result[f'{name}_ms_p99'] = p99
    result['runs'] = RUNS
    result['start_ms'] = round(peer.start_ms, 1)
    result['rss_mib'] = round(peer.resident_mib(), 1)
    return result


def main() -> None:
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(f'SWE-ReX took longer than {WHOLE_LIMIT} s'))
    signal.alarm(WHOLE_LIMIT)
    with tempfile.TemporaryDirectory(prefix='zareba-peer-') as directory:
        peer = Peer(directory)
        try:
            result = measure(peer)
        finally:
            peer.close()
    print(json.dumps(result))


if __name__ == '__main__':
    main()
