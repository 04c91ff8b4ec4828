// The tasks: what is there before, how an agent does it with the term_* tools, how with plain tmux, and whether it was done.
//
// Both are scripted as an agent works that knows its tool: one call does as much as it can, and no call asks for what is
// known already. What tmux cannot tell is waited for by time, and looked at again. `seen` is all that the agent was shown.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const script = (folder, name, text) => writeFileSync(join(folder, name), text, { mode: 0o755 });
const read = (folder, name) => readFileSync(join(folder, name), 'utf8');

export const tasks = [
  {
    name: 'fix a failing test in 2,000 noisy lines',
    prepare(folder) {
      writeFileSync(join(folder, 'sum.sh'), 'sum() { echo $(($1 + $2 + 1)); }\n');
      script(folder, 'tests', `#!/bin/bash
. ./sum.sh
for i in $(seq 2000); do
  if [ $i = 1234 ] && [ "$(sum 1 2)" != 3 ]; then
    echo "FAILED test_sum: sum 1 2 gave $(sum 1 2), expected 3 (sum.sh:1)"; failed=1
  else echo "test case number $i of the suite passed in 0.00$((i % 10)) s"; fi
done
echo "\${failed:-0} failed, $((2000 - \${failed:-0})) passed"; exit \${failed:-0}
`);
    },
    async kpty(term) {
      await term('run', { command: './tests' });
      await term('run', { command: "sed -i 's/ + 1//' sum.sh && ./tests" });
    },
    async tmux(sh) {
      await sh('tmux send-keys -t w ./tests Enter; sleep 3; tmux capture-pane -p -t w');
      await sh("tmux send-keys -t w 'clear; ./tests | grep -i fail' Enter; sleep 3; tmux capture-pane -p -t w");
      await sh("tmux send-keys -t w \"clear; sed -i 's/ + 1//' sum.sh && ./tests\" Enter; sleep 3; tmux capture-pane -p -t w");
    },
    done: (folder, seen) => seen.includes('test_sum') && seen.includes('0 failed, 2000 passed'),
  },
  {
    name: 'a chain of prompts with a password',
    prepare(folder) {
      script(folder, 'setup', `#!/bin/bash
read -p 'Project name: ' name; read -p 'Port [8080]: ' port
read -s -p 'Password: ' password; echo; read -p 'Write configuration? [y/N] ' yes
[ "$yes" = y ] && echo "$name $port $password" > conf && echo 'Configuration written.'
`);
    },
    async kpty(term) {
      await term('run', { command: './setup' });
      await term('type', { line: 'demo' });
      await term('type', { line: '9000' });
      await term('type', { line: 'hunter-2' });
      await term('type', { line: 'y' });
    },
    async tmux(sh) {
      await sh("tmux send-keys -t w ./setup Enter; sleep 0.5; tmux capture-pane -p -t w");
      await sh("tmux send-keys -t w demo Enter; sleep 0.5; tmux capture-pane -p -t w");
      await sh("tmux send-keys -t w 9000 Enter; sleep 0.5; tmux capture-pane -p -t w");
      await sh("tmux send-keys -t w hunter-2 Enter; sleep 0.5; tmux capture-pane -p -t w");
      await sh("tmux send-keys -t w y Enter; sleep 0.5; tmux capture-pane -p -t w");
    },
    done: (folder, seen) => read(folder, 'conf') === 'demo 9000 hunter-2\n' && seen.includes('written'),
  },
  {
    name: 'choose from a menu',
    prepare(folder) {
      script(folder, 'menu', `#!/usr/bin/env python3
import os, sys, termios, tty
items = ['Install the base system', 'Install with development tools', 'Repair an installation', 'Show the licence', 'Quit']
old = termios.tcgetattr(0); tty.setcbreak(0); at = 0
sys.stdout.write('\\x1b[?1049h\\x1b[?25l')
while True:
    sys.stdout.write('\\x1b[H\\x1b[2JWhat would you like to do?\\r\\n\\r\\n')
    for i, item in enumerate(items):
        sys.stdout.write('  ' + ('\\x1b[7m' if i == at else '') + item + '\\x1b[0m\\r\\n')
    sys.stdout.flush(); key = os.read(0, 3)
    if key == b'\\x1b[B': at = min(at + 1, 4)
    elif key == b'\\x1b[A': at = max(at - 1, 0)
    elif key in (b'\\r', b'\\n'): break
sys.stdout.write('\\x1b[?25h\\x1b[?1049l'); termios.tcsetattr(0, 0, old)
print('chosen:', items[at])
`);
    },
    async kpty(term) {
      await term('run', { command: './menu' });
      await term('type', { keys: 'Down Down' });
      await term('type', { keys: 'Enter' });
    },
    async tmux(sh) {
      await sh('tmux send-keys -t w ./menu Enter; sleep 0.5; tmux capture-pane -p -t w');
      // Text does not show which entry is selected: colours do.
      await sh('tmux send-keys -t w Down Down; sleep 0.3; tmux capture-pane -e -p -t w');
      await sh('tmux send-keys -t w Enter; sleep 0.5; tmux capture-pane -p -t w');
    },
    done: (folder, seen) => seen.includes('chosen: Repair an installation'),
  },
  {
    name: 'a build with 2,000 redraws',
    prepare(folder) {
      script(folder, 'build', `#!/bin/bash
for i in $(seq 2000); do printf '\\r[%4d/2000] compiling module_%d.o' $i $i; sleep 0.002; done
printf '\\nwarning: unused variable in module_77.c\\nbuild finished: 2000 modules\\n'; exit 4
`);
    },
    async kpty(term) {
      await term('run', { command: './build' });
    },
    async tmux(sh) {
      let screen = await sh("tmux send-keys -t w './build; echo exit $?' Enter; sleep 3; tmux capture-pane -p -t w");
      while (!screen.includes('finished')) screen = await sh('sleep 3; tmux capture-pane -p -t w');
    },
    done: (folder, seen) => seen.includes('build finished') && seen.includes('exit 4'),
  },
  {
    name: 'one line in 50,000',
    prepare(folder) {
      script(folder, 'dump', "#!/bin/bash\nfor i in $(seq 50000); do echo \"record $i value $((i * 7919 % 10007))\"; done | sed '31337s/value.*/checksum mismatch: 0xbeef/'\n");
    },
    async kpty(term) {
      await term('run', { command: './dump' });
      // The history of a session has 10,000 lines, and the reply said how many are gone.
      await term('run', { command: './dump | grep -n mismatch' });
    },
    async tmux(sh) {
      await sh('tmux send-keys -t w ./dump Enter; sleep 5; tmux capture-pane -p -t w');
      // The history of tmux has 2,000 lines.
      await sh('tmux capture-pane -p -t w -S - | grep -n mismatch');
      await sh("tmux send-keys -t w 'clear; ./dump | grep -n mismatch' Enter; sleep 5; tmux capture-pane -p -t w");
    },
    done: (folder, seen) => seen.includes('0xbeef'),
  },
  {
    name: 'edit a file in vim',
    prepare(folder) {
      writeFileSync(join(folder, 'app.conf'), `# settings\n${Array.from({ length: 20 }, (_, i) => `option_${i} = ${i * 3}`).join('\n')}\n`);
    },
    async kpty(term) {
      await term('run', { command: 'vi -u NONE app.conf' });
      await term('type', { keys: "Escape '/option_7 ' Enter" });
      await term('type', { keys: "'ccoption_7 = 99' Escape ':wq' Enter" });
    },
    async tmux(sh) {
      await sh("tmux send-keys -t w 'vi -u NONE app.conf' Enter; sleep 0.7; tmux capture-pane -p -t w");
      await sh("tmux send-keys -t w Escape '/option_7 ' Enter; sleep 0.5; tmux capture-pane -p -t w");
      await sh("tmux send-keys -t w 'ccoption_7 = 99' Escape ':wq' Enter; sleep 0.5; tmux capture-pane -p -t w");
    },
    done: (folder) => read(folder, 'app.conf').includes('option_7 = 99\noption_8 = 24'),
  },
  {
    name: 'watch another session',
    prepare(folder) {
      script(folder, 'worker', `#!/bin/bash
for i in 1 2 3; do echo "step $i of 3"; sleep 1; done; echo 'worker: all steps done'; sleep 600
`);
    },
    async before(folder, { open }) {
      await open('worker', './worker');
    },
    async kpty(term) {
      await term('look', { session: 'worker' });
      await term('wait', { session: 'worker', until: 'done' });
    },
    async tmux(sh) {
      await sh('tmux capture-pane -p -t worker');
      let screen = '';
      while (!screen.includes('done')) screen = await sh('sleep 2; tmux capture-pane -p -t worker');
    },
    done: (folder, seen) => seen.includes('all steps done'),
  },
  {
    name: 'find a lost session',
    prepare() {},
    async before(folder, { open }) {
      await open('one', 'sleep 600');
      await open('two', `python3 -q -i -c 'answer = 6 * 7'`);
      await open('three', 'top -b -d 600');
    },
    async kpty(term) {
      await term('sessions', { op: 'list' });
      await term('type', { session: 'two', line: 'print("is", answer)' });
    },
    async tmux(sh) {
      await sh("tmux list-panes -a -F '#{session_name} #{pane_current_command} #{pane_current_path}'");
      await sh("tmux send-keys -t two 'print(\"is\", answer)' Enter; sleep 0.5; tmux capture-pane -p -t two");
    },
    done: (folder, seen) => /^is 42$/m.test(seen),
  },
];
