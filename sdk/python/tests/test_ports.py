"""Ports of a sandbox, reached from outside."""

from __future__ import annotations

import httpx
import pytest

from conftest import Server
from zareba import NotFoundError, Sandbox


def test_a_port_is_shared_and_taken_back(server: Server, sandbox: Sandbox) -> None:
    sandbox.files.write("index.html", "from inside")
    sandbox.start("exec python3 -m http.server 8000")
    url = sandbox.port(8000)
    assert sandbox.port(8000) == url
    shared = [each.share for each in sandbox.ports() if each.port == 8000]
    assert shared[0] is not None and url == server.url + shared[0].path
    answer = None
    assert url.startswith(server.url) and ".localhost" in sandbox.port_for_browsers(8000)
    transport = httpx.HTTPTransport(retries=3)
    with httpx.Client(transport=transport, trust_env=False) as browser:
        for _ in range(100):
            # The program inside tells nobody when it listens, except by listening.
            if any(each.listening for each in sandbox.ports() if each.port == 8000):
                break
            sandbox.run("sleep 0.1")
        answer = browser.get(url)
        assert answer.text == "from inside"
        sandbox.unshare_port(8000)
        assert browser.get(url).status_code == 404
    with pytest.raises(NotFoundError):
        sandbox.unshare_port(8000)
