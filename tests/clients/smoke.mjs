// What both TypeScript clients do with a connected client of theirs.
import assert from 'node:assert/strict';

const answer = (result) => JSON.parse(result.content.at(-1).text);

export async function smoke(client, call) {
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name), ['term_run', 'term_type', 'term_look', 'term_wait', 'term_sessions']);
  assert.equal(tools[2].annotations.readOnlyHint, true);
  const ran = await call('term_run', { command: 'echo $((6 * 7)); false' });
  assert.match(ran.content.at(-1).text, /^exit 1 · cmd_\d+\n42(\n|$)/);
  const created = answer(await call('k_pty', { action: 'create', shell: '/bin/bash' }));
  const session_id = created.session_id;
  const told = [];
  const talk = { action: 'talk', session_id, command: 'sleep 6; echo hi' };
  const talked = await call('k_pty', talk, ({ progress }) => told.push(progress));
  assert.ok(!talked.isError && talked.structuredContent === undefined);
  assert.equal(answer(talked).output, 'hi');
  assert.ok(told.length > 0, 'no progress');
  const refused = await call('k_pty_view', { action: 'kill', session_id });
  assert.ok(refused.isError && answer(refused).message.includes('only looks'));
  assert.ok(answer(await call('k_pty_view', { action: 'list' })).ok);
  assert.ok(answer(await call('k_pty', { action: 'kill', session_id })).ok);
}
