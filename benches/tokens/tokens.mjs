// Tokens and calls that an agent spends on some tasks, with kpty's term_* tools and with plain tmux in a shell, in one run.
//
// node tokens.mjs KPTY [TASK...]: the program, and words of the tasks to run. The request (tool and arguments) and the
// answer count, by the tokenizer of widely used models. Each task has to be done right, else the run fails.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { encode } from 'gpt-tokenizer';

import { tasks } from './tasks.mjs';

const GOALS = { mean: 0.5, sum: 0.6, calls: 0.8 };
const [kpty, ...wanted] = process.argv.slice(2);
const home = mkdtempSync(join(tmpdir(), 'kpty-tokens-'));
const environment = { PATH: process.env.PATH, HOME: home, LANG: 'C.UTF-8', SHELL: '/bin/bash' };

// What was asked and answered in one task.
class Bill {
  constructor(texts) {
    Object.assign(this, { calls: 0, tokens: 0, seen: '', texts });
  }
  add(request, answer) {
    this.calls += 1;
    this.tokens += encode(request).length + encode(answer).length;
    this.seen += `${answer}\n`;
    if (this.texts) console.log(`> ${request}\n${answer}\n`);
  }
}

async function serve() {
  const server = spawn(kpty, ['serve', '--port', '0', '--state-dir', join(home, 'state')], {
    env: environment, cwd: home, stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  for await (const piece of server.stderr) {
    said += piece;
    const address = /listening on (http:\S+),/.exec(said);
    if (address) return { server, url: `${address[1]}/mcp` };
  }
  throw new Error(`no server: ${said}`);
}

async function call(url, session, name, args) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Mcp-Session-Id': session },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }),
  });
  const { result } = await response.json();
  return result.content.at(-1).text;
}

async function withKpty(task, url, folder, bill) {
  const session = 'agent';
  // The agent's shell is there, as the shell of tmux is, and stands in the folder of the task.
  await call(url, session, 'term_sessions', { op: 'open', secrets: 'agent' });
  await call(url, session, 'term_run', { command: `cd ${folder}; PS1='$ '` });
  const opened = [];
  const open = async (label, command) => {
    opened.push(label);
    await call(url, 'somebody', 'term_sessions', { op: 'open', label, cwd: folder });
    await call(url, 'somebody', 'term_type', { session: label, line: command });
  };
  await task.before?.(folder, { open });
  await task.kpty(async (name, args) => {
    bill.add(JSON.stringify({ name: `term_${name}`, arguments: args }), await call(url, session, `term_${name}`, args));
  });
  for (const label of opened) await call(url, 'somebody', 'term_sessions', { op: 'close', session: label });
  await call(url, session, 'term_run', { command: 'exit' });
}

async function withTmux(task, folder, bill) {
  const socket = join(folder, 'tmux');
  const run = promisify(execFile);
  // The agent writes `tmux`; which server that is belongs to its surroundings.
  const env = { ...environment, TMUX_TMPDIR: folder };
  const shell = (command) => run('bash', ['-c', `tmux() { command tmux -S ${socket} -f /dev/null "$@"; }; ${command}`], { env, cwd: folder });
  await shell("tmux new-session -d -s w -x 120 -y 30 \"env PS1='$ ' bash --norc\"");
  const open = (label, command) =>
    shell(`tmux new-session -d -s ${label} -x 120 -y 30 "env PS1='$ ' bash --norc"; tmux send-keys -t ${label} ${JSON.stringify(command)} Enter`);
  try {
    await task.before?.(folder, { open });
    await task.tmux(async (command) => {
      const { stdout, stderr } = await shell(command).catch((error) => error);
      bill.add(JSON.stringify({ name: 'bash', arguments: { command } }), stdout + stderr);
      return stdout;
    });
  } finally {
    await shell('tmux kill-server');
  }
}

const { server, url } = await serve();
const rows = [];
try {
  for (const task of tasks.filter(({ name }) => wanted.every((word) => name.includes(word)))) {
    const bills = {};
    for (const side of ['kpty', 'tmux']) {
      const folder = join(home, side);
      mkdirSync(folder);
      task.prepare(folder);
      const bill = (bills[side] = new Bill(process.env.KPTY_BENCH_TEXTS));
      await (side === 'kpty' ? withKpty(task, url, folder, bill) : withTmux(task, folder, bill));
      if (!task.done(folder, bill.seen)) throw new Error(`${task.name}: not done with ${side}:\n${bill.seen}`);
      rmSync(folder, { recursive: true });
    }
    rows.push({ name: task.name, ...bills });
  }
} finally {
  server.kill();
  await once(server, 'exit');
  rmSync(home, { recursive: true, force: true });
}

const sum = (side, what) => rows.reduce((total, row) => total + row[side][what], 0);
const mean = Math.exp(rows.reduce((total, { kpty, tmux }) => total + Math.log(kpty.tokens / tmux.tokens), 0) / rows.length);
const column = (value) => String(value).padStart(8);
console.log(`${'tokens and calls'.padEnd(42)}${['kpty', 'tmux', 'ratio', 'calls', 'calls'].map(column).join('')}`);
for (const { name, kpty, tmux } of rows) {
  const ratio = (kpty.tokens / tmux.tokens).toFixed(2);
  console.log(name.padEnd(42) + [kpty.tokens, tmux.tokens, ratio, kpty.calls, tmux.calls].map(column).join(''));
}
const ratios = { mean, sum: sum('kpty', 'tokens') / sum('tmux', 'tokens'), calls: sum('kpty', 'calls') / sum('tmux', 'calls') };
for (const [what, ratio] of Object.entries(ratios)) {
  const verdict = ratio <= GOALS[what] ? 'ok' : 'MISSED';
  console.log(`${what}: ${ratio.toFixed(2)} of tmux (at most ${GOALS[what]}): ${verdict}`);
}
