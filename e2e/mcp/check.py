"""Clients of the official SDK for Python against `zareba mcp`, and servers of both SDKs behind it."""

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
from mcp import ClientSession, MCPError, StdioServerParameters, stdio_client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

BINARY = os.environ["ZAREBA_BIN"]
PLACE = Path(os.environ["PLACE"])
SANDBOX = ["--runtime", "cli", "--workspace", str(PLACE / "work")]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@asynccontextmanager
async def process(*words, **options):
    """A process that ends with the block."""
    started = await asyncio.create_subprocess_exec(*words, **options)
    try:
        yield started
    finally:
        if started.returncode is None:
            started.send_signal(signal.SIGTERM)
        await asyncio.wait_for(started.wait(), 30)


@asynccontextmanager
async def by_streams(*arguments):
    parameters = StdioServerParameters(
        command=BINARY, args=["mcp", *arguments, *SANDBOX], env=dict(os.environ)
    )
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield session


@asynccontextmanager
async def by_http(url, token):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        async with streamable_http_client(url, http_client=http) as streams:
            async with ClientSession(streams[0], streams[1]) as session:
                await session.initialize()
                yield session


def text(result):
    return result.content[0].text


async def drive(session):
    """What any client does with our server."""
    tools = {tool.name for tool in (await session.list_tools()).tools}
    assert {"run_command", "read_file", "edit_file", "search_files"} <= tools, tools
    answer = text(await session.call_tool("run_command", {"command": "echo $((6 * 7))"}))
    assert answer.startswith("42\n[exit code 0]"), answer
    path = str(PLACE / "work" / "note.txt")
    await session.call_tool("write_file", {"path": path, "content": "one\n"})
    assert text(await session.call_tool("read_file", {"path": path})) == "one\n"
    edited = {"command": "str_replace", "path": "note.txt", "old_str": "one", "new_str": "two"}
    assert not (await session.call_tool("edit_file", edited)).is_error
    assert text(await session.call_tool("read_file", {"path": "note.txt"})) == "two\n"
    (PLACE / "work" / "dot.png").write_bytes(b"\x89PNG")
    picture = (await session.call_tool("read_file", {"path": "dot.png"})).content[0]
    assert (picture.type, picture.mime_type, picture.data) == ("image", "image/png", "iVBORw=="), picture
    wrong = await session.call_tool("read_file", {"path": "/no/such/file"})
    assert wrong.is_error, wrong
    try:
        await session.call_tool("no_such_tool", {})
        raise AssertionError("a tool that is not there was called")
    except MCPError as error:
        assert "no tool `no_such_tool`" in str(error), error

    told = []

    async def progress(done, total, message):
        told.append(message)

    await session.call_tool("run_command", {"command": "sleep 2.5"}, progress_callback=progress)
    assert len(told) >= 2, told

    endless = session.call_tool("run_command", {"command": "sleep 1000"})
    called = asyncio.create_task(endless)
    await asyncio.sleep(0.5)
    called.cancel()
    await asyncio.gather(called, return_exceptions=True)
    free = await asyncio.wait_for(session.call_tool("run_command", {"command": "echo free"}), 30)
    assert "free" in text(free), free


class Complaints(logging.Handler):
    """What the SDK has to say of our server."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.told = []

    def emit(self, record):
        self.told.append(record.getMessage())


async def our_server():
    async with by_streams() as session:
        await drive(session)
    # One that leaves during a call is told nothing more, which it could not hear.
    async with by_streams() as session:
        begun = PLACE / "work" / "begun"
        asked = {"command": f"touch {begun}; sleep 1"}
        called = asyncio.create_task(session.call_tool("run_command", asked))
        while not begun.exists():
            await asyncio.sleep(0.05)
    await asyncio.gather(called, return_exceptions=True)
    print("ok: client of the SDK for Python, standard streams", flush=True)
    words = [BINARY, "-o", "json", "mcp", "--http", "127.0.0.1:0", *SANDBOX]
    async with process(*words, stdout=subprocess.PIPE) as server:
        said = json.loads(await asyncio.wait_for(server.stdout.readline(), 30))
        token = Path(said["token_file"]).read_text().strip()
        complaints = Complaints()
        logging.getLogger("mcp").addHandler(complaints)
        async with by_http(said["url"], token) as session:
            await drive(session)
        assert not [each for each in complaints.told if "terminat" in each], complaints.told
        try:
            async with by_http(said["url"], None):
                raise AssertionError("somebody without the token came in")
        except BaseException as error:
            assert "came in" not in repr(error), error
    print("ok: client of the SDK for Python, streamable HTTP", flush=True)


async def until_listening(port):
    for _ in range(300):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        except OSError:
            await asyncio.sleep(0.1)
    raise AssertionError(f"nobody listens on port {port}")


async def their_servers():
    python, server_py = os.environ["PYTHON"], str(PLACE / "server.py")
    node, server_mjs = os.environ["NODE"], str(PLACE / "server.mjs")
    ports = [free_port() for _ in range(3)]
    configuration = PLACE / "zareba.toml"
    configuration.write_text(
        f"""
[mcp]
shttp_servers = ["http://127.0.0.1:{ports[0]}/mcp", "http://localhost:{ports[1]}/mcp"]
sse_servers = ["http://127.0.0.1:{ports[2]}/sse"]

[[mcp.stdio_servers]]
name = "py"
command = "{python}"
args = ["{server_py}", "stdio"]

[[mcp.stdio_servers]]
name = "js"
command = "{node}"
args = ["{server_mjs}", "stdio"]
"""
    )
    async with (
        process(python, server_py, "http", str(ports[0]), stderr=subprocess.DEVNULL),
        process(node, server_mjs, "http", str(ports[1])),
        process(python, server_py, "sse", str(ports[2]), stderr=subprocess.DEVNULL),
    ):
        for port in ports:
            await until_listening(port)
        async with by_streams("--config", str(configuration)) as session:
            tools = {tool.name for tool in (await session.list_tools()).tools}
            # The second server of the same host has a number.
            servers = ["py", "js", "127_0_0_1", "localhost", "127_0_0_1_2"]
            for server in servers:
                assert f"{server}_add" in tools, (server, tools)
                sum_ = await session.call_tool(f"{server}_add", {"a": 40, "b": 2})
                assert text(sum_) == "42" and not sum_.is_error, (server, sum_)
                failed = await session.call_tool(f"{server}_fail", {})
                assert failed.is_error, (server, failed)
            refused = await session.call_tool("py_add", {"a": "x", "b": 2})
            assert refused.is_error, refused
    print("ok: servers of the SDKs for Python and TypeScript behind our client", flush=True)


async def openhands():
    """Their client pushes programs to the executor and reaches them at `/mcp/sse`."""
    key, port = "0123456789abcdef", free_port()
    environment = dict(os.environ, SESSION_API_KEY=key)
    words = [BINARY, "executor", str(port), "--working-dir", str(PLACE / "work"), "--username", "root"]
    async with process(*words, env=environment, stderr=subprocess.DEVNULL):
        await until_listening(port)
        base = f"http://127.0.0.1:{port}"
        server = {
            "name": "py",
            "command": os.environ["PYTHON"],
            "args": [str(PLACE / "server.py"), "stdio"],
            "env": {},
        }

        def push(servers):
            request = urllib.request.Request(
                f"{base}/update_mcp_server",
                data=json.dumps(servers).encode(),
                headers={"Content-Type": "application/json", "X-Session-API-Key": key},
            )
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)

        pushed = await asyncio.to_thread(push, [server])
        expected = {"detail": "MCP server updated successfully", "router_error_log": ""}
        assert pushed == expected, pushed
        headers = {"Authorization": f"Bearer {key}", "X-Session-API-Key": key}

        async def names():
            async with sse_client(f"{base}/mcp/sse", headers=headers) as (read, write):
                async with ClientSession(read, write) as session:
                    await session.initialize()
                    tools = {tool.name for tool in (await session.list_tools()).tools}
                    add = next(name for name in sorted(tools) if name.endswith("add"))
                    assert text(await session.call_tool(add, {"a": 1, "b": 2})) == "3"
                    return tools

        assert "add" in await names()
        pushed = await asyncio.to_thread(push, [server, dict(server, name="two")])
        assert pushed == expected, pushed
        assert {"py_add", "two_add"} <= await names()
    print("ok: OpenHands' way to servers in the sandbox", flush=True)


async def main():
    await our_server()
    await their_servers()
    await openhands()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
