// A server of the official SDK for TypeScript: `server.mjs stdio`, or `server.mjs http PORT`.
import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

function make() {
  const server = new McpServer({ name: "typescript", version: "1" });
  const numbers = { a: z.number(), b: z.number() };
  server.registerTool("add", { description: "Adds two numbers.", inputSchema: numbers }, ({ a, b }) => ({
    content: [{ type: "text", text: String(a + b) }],
  }));
  server.registerTool("fail", { description: "Fails." }, () => {
    throw new Error("as it should");
  });
  return server;
}

if (process.argv[2] === "stdio") {
  await make().connect(new StdioServerTransport());
} else {
  // Without sessions: each request has a server of its own.
  createServer(async (request, response) => {
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    response.on("close", () => transport.close());
    await make().connect(transport);
    await transport.handleRequest(request, response);
  }).listen(Number(process.argv[3]), "127.0.0.1");
}
