"""Connections that break: nothing runs twice, nothing is missed."""

from __future__ import annotations

import threading
from functools import partial
from typing import List
from urllib.parse import urlsplit

import pytest

from conftest import Server
from proxy import Cut, Proxy
from zareba import Client, DisconnectedError, Sandbox


def proxy(server: Server, cut: Cut, answered: bool = True) -> Proxy:
    parts = urlsplit(server.url)
    assert parts.hostname and parts.port
    return Proxy((parts.hostname, parts.port), cut, answered)


def test_an_action_whose_answer_is_lost_runs_once(server: Server, sandbox: Sandbox) -> None:
    with proxy(server, lambda head, number: b"/actions" in head and number <= 3) as broken:
        with Client(broken.url, server.key) as client:
            same = Sandbox(client, sandbox.info())
            result = same.run("echo line >> counted; cat counted")
    assert result.output == "line"
    assert len(broken.requests) == 4
    assert sandbox.run("cat counted").output == "line"


@pytest.mark.parametrize("answered", [True, False], ids=["ready", "starting"])
def test_a_sandbox_whose_answer_is_lost_is_made_once(
    server: Server, client: Client, answered: bool
) -> None:
    before = {each.id for each in Sandbox.list(client=client)}
    with proxy(server, lambda head, number: number == 1, answered) as broken:
        with Client(broken.url, server.key) as cut_off:
            with Sandbox.create(client=cut_off) as sandbox:
                assert sandbox.run("echo alive").output == "alive"
                made = {each.id for each in Sandbox.list(client=client)} - before
                assert made == {sandbox.id}
    assert len(broken.requests) > 1


def test_a_name_that_others_may_choose_too_is_not_asked_for_twice(
    server: Server, client: Client
) -> None:
    with proxy(server, lambda head, number: number == 1) as broken:
        with Client(broken.url, server.key) as cut_off, pytest.raises(DisconnectedError):
            Sandbox.create(id="named-by-us", client=cut_off)
    Sandbox.connect("named-by-us", client=client).close()


def test_what_would_happen_twice_is_not_repeated(server: Server, sandbox: Sandbox) -> None:
    sandbox.files.write("from", "x")
    with proxy(server, lambda head, number: b"/rename" in head) as broken:
        with Client(broken.url, server.key) as client, pytest.raises(DisconnectedError) as caught:
            Sandbox(client, sandbox.info()).files.rename("from", "to")
    assert caught.value.may_have_happened and len(broken.requests) == 1
    assert sandbox.files.exists("to")


def test_a_removal_whose_answer_is_lost_is_no_error(server: Server, sandbox: Sandbox) -> None:
    sandbox.files.write("f", "x")
    with proxy(server, lambda head, number: head.startswith(b"DELETE") and number == 1) as broken:
        with Client(broken.url, server.key) as client:
            Sandbox(client, sandbox.info()).files.remove("f")
    assert not sandbox.files.exists("f")


def test_events_go_on_where_they_broke_off(server: Server, sandbox: Sandbox) -> None:
    seen: List[int] = []
    arrived = threading.Condition()

    with proxy(server, lambda head, number: False) as broken:
        client = Client(broken.url, server.key)
        same = Sandbox(client, sandbox.info())

        def follow() -> None:
            for event in same.events():
                with arrived:
                    seen.append(event.sequence)
                    arrived.notify_all()

        follower = threading.Thread(target=follow)
        follower.start()
        for count in range(4):
            number = sandbox.run(f"echo {count}").event_id
            with arrived:
                assert arrived.wait_for(partial(_has, seen, number), 30), (number, seen)
            broken.break_all()
        sandbox.close()
        follower.join(30)
        assert not follower.is_alive()
        client.close()
    assert seen == list(range(len(seen)))


def _has(seen: List[int], number: int) -> bool:
    return number in seen
