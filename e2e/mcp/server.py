"""A server of the official SDK for Python: `server.py stdio|http|sse [PORT]`."""

import asyncio
import sys

from mcp.server import MCPServer

server = MCPServer("python")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("as it should")


@server.tool()
async def sleep(seconds: float) -> str:
    """Sleeps."""
    await asyncio.sleep(seconds)
    return "awake"


if sys.argv[1] == "stdio":
    server.run("stdio")
elif sys.argv[1] == "http":
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
else:
    server.run("sse", host="127.0.0.1", port=int(sys.argv[2]))
