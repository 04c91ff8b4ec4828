// A desktop app's terminal bridge for the tests of kpty: real programs on real PTYs, shown by a real xterm.js, behind
// the HTTP service that the app has. It answers as the app does, in either of its modes, with the app's faults.
//
//     node desktop.mjs --modules DIR --mode embedded|daemon [--port 0]
//
// DIR has the node_modules of package.json. One line of JSON on standard output tells the port. It ends, and its
// programs with it, when standard input does. Routes below /test/ are no part of the app: they make and feed terminals.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { Terminal, normalised } from "./terminal.mjs";

const { values: given } = parseArgs({
  options: {
    modules: { type: "string" },
    mode: { type: "string", default: "embedded" },
    port: { type: "string", default: "0" },
  },
});
if (!["embedded", "daemon"].includes(given.mode)) throw new Error(`no such mode: ${given.mode}`);
if (!given.modules) throw new Error("--modules DIR is missing");
const isDaemon = given.mode === "daemon";
const require = createRequire(join(resolve(given.modules), "package.json"));
const libraries = {
  pty: require("@lydell/node-pty"),
  Xterm: require("@xterm/headless").Terminal,
  Unicode11Addon: require("@xterm/addon-unicode11").Unicode11Addon,
};

/** The longest that `read`, and `talk` of the daemon, collect. */
const LONGEST_COLLECTION_MS = 5_000;
const CORS = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Allow-Methods": "GET, POST, OPTIONS",
  "Access-Control-Allow-Headers": "Content-Type",
};

const terminals = new Map();
let leader = null;

/** An answer that is not 200. */
class Refusal extends Error {
  constructor(status, body) {
    super(body.error);
    Object.assign(this, { status, body: { ok: false, ...body } });
  }
}
const refuse = (status, error) => {
  throw new Refusal(status, { error });
};
const sign = (body) => (isDaemon ? { ...body, mode: "daemon" } : body);

function required(body, name) {
  if (!body[name]) refuse(400, `${name} is required`);
  return body[name];
}

function terminalOf(body) {
  const id = required(body, "session_id");
  return terminals.get(id) ?? refuse(404, `Session not found: ${id}`);
}

/** The app looks for its sentinel in the stream, where the echo of the typed line has it too. */
async function talk(body) {
  const id = required(body, "session_id");
  const command = required(body, "command");
  const timeout = body.timeout_ms || 30_000;
  const terminal = terminals.get(id) ?? refuse(404, `Session not found: ${id}`);
  if (isDaemon) {
    terminal.write(`${command}\r`);
    await terminal.collect(Math.min(timeout, LONGEST_COLLECTION_MS));
    return sign({ ok: true, output: terminal.ring, sentinel_found: false });
  }
  const sentinel = body.sentinel || `__KR_DONE_${Math.random().toString(36).slice(2, 10)}__`;
  const collected = terminal.collect(timeout, (text) => text.includes(sentinel));
  terminal.write(`${command}; echo ${sentinel}\r`);
  const { text, found } = await collected;
  if (!found) return { ok: false, output: text, error: `Timeout after ${timeout}ms`, sentinel, raw_output: text };
  const lines = text.slice(0, text.indexOf(sentinel)).trim().split(/\r?\n/);
  const output = (lines[0].includes(command) ? lines.slice(1) : lines).join("\n").trim();
  return { ok: true, output, sentinel, raw_output: text };
}

function write(body) {
  const id = required(body, "session_id");
  const data = required(body, "data");
  const terminal = terminals.get(id);
  // The daemon is told and not asked.
  if (!terminal && !isDaemon) refuse(404, `Session not found: ${id}`);
  terminal?.write(data);
  return sign({ ok: true, bytes_written: data.length });
}

async function read(body) {
  if (isDaemon) {
    const output = terminals.get(required(body, "session_id"))?.ring ?? "";
    return sign({ ok: true, output, bytes_read: output.length });
  }
  const terminal = terminalOf(body);
  const { text } = await terminal.collect(Math.min(body.timeout_ms || 5_000, LONGEST_COLLECTION_MS));
  return { ok: true, output: text, bytes_read: text.length };
}

async function buffer(body) {
  const access = process.env.KURORYUU_TERM_BUFFER_ACCESS?.toLowerCase() === "off" ? "off" : "on";
  if (access === "off") {
    const error = "Terminal buffer access is disabled";
    throw new Refusal(403, { error, error_code: "TERM_READ_DISABLED", access_mode: access });
  }
  const terminal = terminalOf(body);
  const mode = body.mode || "tail";
  if (!["tail", "viewport", "delta"].includes(mode)) refuse(400, `Invalid mode: ${mode}`);
  const options = {
    maxLines: body.max_lines ?? 40,
    mergeWrapped: body.merge_wrapped ?? true,
    markerId: body.marker_id,
  };
  return { ok: true, ...(await terminal.snapshot(mode, options)), access_mode: access };
}

function list() {
  const sessions = [...terminals.values()].map((terminal) => {
    const { cols, rows } = terminal.xterm;
    const { id: session_id, internalId: internal_id, pid, cwd } = terminal;
    const shown = { session_id, internal_id, pid, cols, rows, cwd };
    return isDaemon ? { ...shown, alive: terminal.alive } : shown;
  });
  return sign({ ok: true, sessions, count: sessions.length });
}

function isLeader(url) {
  const session_id = url.searchParams.get("session_id");
  if (!session_id) refuse(400, "session_id query param required");
  const is_leader = leader && normalised(session_id) === normalised(leader);
  return { ok: true, session_id, is_leader, leader_terminal_id: leader };
}

function health() {
  const { port } = server.address();
  const mode = given.mode;
  return { ok: true, service: "pty-bridge", port, sessions: terminals.size, mode, daemonConnected: isDaemon };
}

/** Makes a terminal: `session_id`, `shell` (null: none), `args`, `cwd`, `cols`, `rows`, `env`, `scrollback`. */
function create(body) {
  const terminal = new Terminal(libraries, body);
  terminals.set(terminal.id, terminal);
  // The app forgets a terminal whose program has ended; the daemon goes on listing it.
  if (terminal.pty && !isDaemon) terminal.exited.then(() => terminals.delete(terminal.id));
  return { ok: true, session_id: terminal.id, pid: terminal.pid };
}

async function feed(body) {
  await terminalOf(body).feed(Buffer.from(body.base64, "base64"));
  return { ok: true };
}

function resize(body) {
  terminalOf(body).resize(body.cols, body.rows);
  return { ok: true };
}

/** Ends a terminal's program and forgets the terminal. */
async function remove(body) {
  const terminal = terminalOf(body);
  terminal.kill();
  await terminal.exited;
  terminals.delete(terminal.id);
  return { ok: true };
}

function lead(body) {
  leader = body.session_id ?? null;
  return { ok: true };
}

const routes = {
  "GET /": health,
  "GET /health": health,
  "GET /pty/list": list,
  "POST /pty/talk": talk,
  "POST /pty/write": write,
  "POST /pty/read": read,
  "POST /pty/buffer": buffer,
  "POST /test/create": create,
  "POST /test/feed": feed,
  "POST /test/resize": resize,
  "POST /test/remove": remove,
  "POST /test/leader": lead,
  "POST /test/rows": (body) => ({ ok: true, ...terminalOf(body).allRows() }),
};

async function answer(request) {
  if (request.method === "OPTIONS") return [204, null];
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const url = new URL(request.url, "http://127.0.0.1");
  if (request.method === "GET" && url.pathname === "/pty/is-leader") return [200, isLeader(url)];
  const route = routes[`${request.method} ${request.url}`];
  if (!route) return [404, { ok: false, error: "Not found" }];
  if (request.method === "GET") return [200, await route()];
  let body;
  try {
    body = JSON.parse(Buffer.concat(chunks).toString() || "{}");
  } catch {
    throw new Error("Invalid JSON body");
  }
  return [200, await route(body)];
}

const server = createServer(async (request, response) => {
  const [status, body] = await answer(request).catch((error) =>
    error instanceof Refusal ? [error.status, error.body] : [500, { ok: false, error: String(error) }],
  );
  const text = body === null ? "" : JSON.stringify(body);
  const content = { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) };
  response.writeHead(status, body === null ? CORS : { ...CORS, ...content });
  response.end(text);
});

server.listen(Number(given.port), "127.0.0.1", () => {
  process.stdout.write(`${JSON.stringify({ port: server.address().port })}\n`);
});

process.stdin.resume();
process.stdin.on("close", () => {
  for (const terminal of terminals.values()) terminal.kill();
  process.exit(0);
});
