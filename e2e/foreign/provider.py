"""Our server as the provider of their `RemoteRuntime`: started, asked for runtimes, ended."""

import asyncio
import json
import os
import subprocess
import time
from pathlib import Path

import httpx
from openhands.core.config import OpenHandsConfig
from openhands.llm.llm_registry import LLMRegistry
from openhands.runtime.impl.remote.remote_runtime import RemoteRuntime

# Longer than a server takes to start or to end on a busy machine.
PATIENCE = 30


class Provider:
    """A server that hands out runtimes, and the key to it."""

    def __init__(self, scratch: Path, url: str, key: str):
        self.scratch = scratch
        self.url = url
        self.key = key

    def runtime(self, sid: str, *, attach: bool = False, key: str | None = None, **sandbox) -> RemoteRuntime:
        """Their client, not yet connected; further words are settings of its `[sandbox]`."""
        config = OpenHandsConfig()
        config.enable_browser = False
        config.sandbox.remote_runtime_api_url = self.url
        config.sandbox.api_key = key or self.key
        config.sandbox.runtime_container_image = 'ghcr.io/all-hands-ai/runtime:oh_v0.62.0'
        config.sandbox.keep_runtime_alive = False
        for name, value in sandbox.items():
            setattr(config.sandbox, name, value)
        return RemoteRuntime(config, None, LLMRegistry(config), sid=sid, attach_to_existing=attach)

    def connected(self, sid: str, **options) -> RemoteRuntime:
        runtime = self.runtime(sid, **options)
        asyncio.run(runtime.connect())
        return runtime

    def call(self, method: str, path: str, *, key: str | None = None, **options) -> httpx.Response:
        """A request of the remote runtime API, as their client would send it."""
        headers = {'X-API-Key': key or self.key}
        return httpx.request(method, f'{self.url}{path}', headers=headers, timeout=PATIENCE, **options)

    def close(self) -> None:
        """Leaves a server alone that somebody else has started."""


class Started(Provider):
    """One `zareba serve` with a state directory and a home of its own."""

    def __init__(self, scratch: Path, binary: Path, runtime: str | None):
        self.state = scratch / 'state'
        self.state.mkdir(mode=0o700)
        self.home = scratch / 'server-home'
        self.home.mkdir()
        self.words = scratch / 'server.log'
        published = self.state / 'server.json'
        command = [str(binary), 'serve', '--listen', '127.0.0.1:0']
        environment = os.environ | {'HOME': str(self.home), 'ZAREBA_STATE_DIRECTORY': str(self.state)}
        if runtime:
            environment['ZAREBA_RUNTIME_KIND'] = runtime
        # Their client names an image in every request, and the cases need the tools of this machine.
        environment['ZAREBA_SERVER_OPENHANDS_UNKNOWN_IMAGE'] = 'this-machine'
        with self.words.open('wb') as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            # Written whole, once the server answers.
            self._wait_until(published.exists, 'it did not become ready')
            url = json.loads(published.read_text())['url'].rstrip('/')
            super().__init__(scratch, url, (self.state / 'admin.key').read_text().strip())
        except BaseException:
            self.close()
            raise

    def _wait_until(self, holds, otherwise: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            said = self.words.read_text(errors='replace')[-2000:]
            assert self.process.poll() is None, f'the server ended at once: {said}'
            assert time.monotonic() < deadline, f'{otherwise}: {said}'
            time.sleep(0.02)

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
