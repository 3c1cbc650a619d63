// Clients of the official SDK for TypeScript against `zareba mcp`.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const binary = process.env.ZAREBA_BIN;
const sandbox = ["--runtime", "cli", "--workspace", `${process.env.PLACE}/work`];

const text = (result) => result.content[0].text;
const run = (client, command) => client.callTool({ name: "run_command", arguments: { command } });

async function drive(client) {
  const { tools } = await client.listTools();
  assert(tools.some((tool) => tool.name === "edit_file"));
  assert.match(text(await run(client, "echo $((6 * 7))")), /^42\n\[exit code 0\]/);
  const wrong = await client.callTool({ name: "read_file", arguments: { path: "/no/such/file" } });
  assert.equal(wrong.isError, true);
  await assert.rejects(client.callTool({ name: "no_such_tool", arguments: {} }), /no tool `no_such_tool`/);

  let told = 0;
  const slow = { name: "run_command", arguments: { command: "sleep 2.5" } };
  await client.callTool(slow, undefined, { onprogress: () => (told += 1) });
  assert(told >= 2, `progress was told ${told} times`);

  const controller = new AbortController();
  const endless = { name: "run_command", arguments: { command: "sleep 1000" } };
  const called = client.callTool(endless, undefined, { signal: controller.signal });
  setTimeout(() => controller.abort("enough"), 500);
  await assert.rejects(called);
  // The shell is free again, because the command was interrupted.
  assert.match(text(await run(client, "echo free")), /free\n/);
}

{
  const client = new Client({ name: "check", version: "1" });
  const command = { command: binary, args: ["mcp", ...sandbox], env: { ...process.env } };
  await client.connect(new StdioClientTransport(command));
  await drive(client);
  await client.close();
  console.log("ok: client of the SDK for TypeScript, standard streams");
}

{
  const server = spawn(binary, ["-o", "json", "mcp", "--http", "127.0.0.1:0", ...sandbox]);
  const [line] = await once(createInterface(server.stdout), "line");
  const { url, token_file: file } = JSON.parse(line);
  const token = (await readFile(file, "utf8")).trim();
  const headers = { Authorization: `Bearer ${token}` };
  const client = new Client({ name: "check", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  await drive(client);
  await client.close();
  const stranger = new Client({ name: "stranger", version: "1" });
  await assert.rejects(stranger.connect(new StreamableHTTPClientTransport(new URL(url))), /401|token/i);
  server.kill();
  await once(server, "exit");
  console.log("ok: client of the SDK for TypeScript, streamable HTTP");
}
