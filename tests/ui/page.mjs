// The page for people in a real browser: the system's Chromium, driven by Playwright, against the built program.
// KPTY names the program, CHROMIUM the browser. Each claim is printed with how it went; any failure is the script's.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createServer } from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const { KPTY, CHROMIUM } = process.env;
const PATIENCE = 60_000;
const children = [];
const folder = mkdtempSync(join(tmpdir(), "kpty-ui-"));

/** A server of its own; its address and a link to it, which is printed for its own user alone. */
function serve(name, ...more) {
  const home = join(folder, name);
  const env = { ...process.env, HOME: folder, KURORYUU_PROJECT_ROOT: folder, KURORYUU_PTY_SHELL: "/bin/bash" };
  const child = spawn(KPTY, ["serve", "--port", "0", "--state-dir", home, ...more], { env, stdio: ["ignore", "ignore", "pipe"] });
  children.push(child);
  let said = "";
  return new Promise((done, failed) => {
    child.once("exit", (code) => failed(new Error(`the server ended with ${code}: ${said}`)));
    child.stderr.on("data", (data) => {
      said += data;
      const url = said.match(/listening on (http:\S+?),/)?.[1];
      if (!url) return;
      child.stderr.removeAllListeners("data").resume();
      const link = execFileSync(KPTY, ["open", "--print", "--url", url], { env, encoding: "utf8" }).trim();
      done({ link, url });
    });
  });
}

const { link, url } = await serve("state");

async function rpc(base, args) {
  const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "k_pty", arguments: args } };
  const answer = await fetch(`${base}/mcp`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(message) });
  return JSON.parse((await answer.json()).result.content.at(-1).text);
}

const call = (action, args = {}) => rpc(url, { action, ...args });

async function done(action, args) {
  const answer = await call(action, args);
  assert.equal(answer.ok, true, `${action}: ${JSON.stringify(answer)}`);
  return answer;
}

/** A plain shell whose prompt says nothing of this machine. */
async function session(label, more = {}) {
  const { session_id: id } = await done("create", { label, shell: "/bin/sh", env: { PS1: "$ " }, ...more });
  await done("wait", { session_id: id, text: "$", timeout_ms: PATIENCE });
  return id;
}

/** Types a line and waits for a text that comes of it. */
async function run(id, line, regex) {
  await done("send_keys", { session_id: id, text: line, keys: "Enter" });
  await done("wait", { session_id: id, regex, timeout_ms: PATIENCE });
}

async function viewport(id) {
  return (await done("term_read", { session_id: id, mode: "viewport", merge_wrapped: false, max_lines: 200 })).lines;
}

let failures = 0;

async function claim(name, check) {
  try {
    const said = await check();
    console.log(`ok      ${name}${said ? `: ${said}` : ""}`);
  } catch (error) {
    failures += 1;
    console.log(`FAILED  ${name}\n${String(error.stack ?? error).replace(/^/gm, "        ")}`);
    await page.screenshot({ path: join(tmpdir(), `kpty-ui-failed-${failures}.png`) }).catch(() => {});
  }
}

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
context.setDefaultTimeout(PATIENCE);
const page = await context.newPage();
const problems = [];
page.on("pageerror", (error) => problems.push(error.message));
page.on("console", (message) => message.type() === "error" && problems.push(message.text()));

/** The rows of the large screen, without blanks at their ends. */
const shownRows = () => page.$$eval("#screen .row", (rows) => rows.map((row) => row.textContent.trimEnd()));

async function open(id) {
  await page.goto(`${url}/ui#/session/${id}`);
  await page.waitForSelector("#screen .row");
}

/** Waits until the page shows what agents read. */
async function showsWhatAgentsRead(id) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const [shown, read] = [await shownRows(), (await viewport(id)).map((line) => line.trimEnd())];
    if (JSON.stringify(shown) === JSON.stringify(read)) return;
    if (Date.now() > end) assert.deepEqual(shown, read);
    await page.waitForTimeout(50);
  }
}

const shell = await session("shell");

await claim("a link lets one browser in, once", async () => {
  assert.equal((await page.goto(`${url}/ui`)).status(), 401);
  assert.equal((await page.goto(link)).status(), 200);
  assert.equal(page.url(), `${url}/ui`, "the code is not in the address any more");
  const other = await browser.newContext();
  const stranger = await other.newPage();
  assert.equal((await stranger.goto(link)).status(), 401);
  await other.close();
  problems.length = 0;
});

await claim("the grid shows every session with label, owner, state and program", async () => {
  await done("adopt", { session_id: shell, agent_id: "ada" });
  const tile = page.locator(".tile", { hasText: "shell" });
  await tile.waitFor();
  await tile.locator(".owner", { hasText: "ada" }).waitFor();
  await tile.locator(".program", { hasText: "sh" }).waitFor();
  await done("send_line", { session_id: shell, data: "sleep 1000" });
  await tile.locator(".program", { hasText: "sleep" }).waitFor();
  await done("send_keys", { session_id: shell, keys: "Ctrl-C" });
  // The small screen is drawn: not all of it is black.
  await page.waitForFunction(() => {
    const canvas = document.querySelector(".tile canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return data.some((value, index) => index % 4 < 3 && value > 100);
  });
});

await claim("the page shows the same text as term_read, also what is wide, combined or drawn", async () => {
  await run(shell, "clear; printf 'plain\\n  日本語 e\\314\\201 ┌──┐ 🎉 x\\n\\ttab\\n'; printf '%0100d%050d\\n' 1 2; echo end", "^end$");
  await open(shell);
  await showsWhatAgentsRead(shell);
});

await claim("colours are those of the cells", async () => {
  await run(shell, "clear; printf '\\033[31mred\\033[0m \\033[48;5;21mblue\\033[0m \\033[38;2;1;2;3mtrue\\033[0m \\033[1mbold\\033[0m \\033[7minverse\\033[0m \\033[4munder\\033[0m\\n'; echo done-$((1+1))", "^done-2$");
  await showsWhatAgentsRead(shell);
  const look = (text) =>
    page.locator("#screen .row span", { hasText: new RegExp(`^${text}$`) }).first().evaluate((cell) => {
      const { color, backgroundColor, fontWeight, textDecorationLine } = getComputedStyle(cell);
      return { color, backgroundColor, fontWeight, textDecorationLine };
    });
  assert.equal((await look("red")).color, "rgb(205, 0, 0)");
  assert.equal((await look("blue")).backgroundColor, "rgb(0, 0, 255)");
  assert.equal((await look("true")).color, "rgb(1, 2, 3)");
  assert.equal((await look("bold")).fontWeight, "700");
  const inverse = await look("inverse");
  assert.deepEqual([inverse.color, inverse.backgroundColor], ["rgb(0, 0, 0)", "rgb(229, 229, 229)"]);
  assert.equal((await look("under")).textDecorationLine, "underline");
});

await claim("cells stand in their columns, wide ones too, and so does the cursor", async () => {
  await run(shell, "clear; printf '日本X\\n1234X\\n┌──🎉X\\n'; echo y", "^y$");
  await showsWhatAgentsRead(shell);
  const lefts = await page.$$eval("#screen .row", (rows) =>
    rows.filter((row) => /X$/.test(row.textContent)).map((row) => {
      const range = document.createRange();
      const walker = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
      let last;
      for (let node = walker.nextNode(); node; node = walker.nextNode()) last = node;
      range.setStart(last, last.data.length - 1);
      range.setEnd(last, last.data.length);
      return [row.textContent, range.getBoundingClientRect().left];
    }),
  );
  assert.equal(lefts.length, 3);
  const at = Object.fromEntries(lefts);
  assert.ok(Math.abs(at["日本X"] - at["1234X"]) < 0.6, JSON.stringify(lefts));
  const { cursor } = await done("term_read", { session_id: shell, mode: "viewport" });
  const [shown, cell] = await page.evaluate(() => {
    const [cursor, screen] = ["cursor", "screen"].map((id) => document.getElementById(id).getBoundingClientRect());
    return [[cursor.left - screen.left, cursor.top - screen.top], [cursor.width, cursor.height]];
  });
  assert.deepEqual(shown.map((value, index) => Math.round(value / cell[index])), [cursor.col, cursor.row]);
});

await claim("typing is off at first, and nothing reaches the session then", async () => {
  await open(shell);
  assert.equal(await page.getAttribute("#typing", "aria-checked"), "false");
  const before = await viewport(shell);
  await page.focus("#term");
  await page.keyboard.type("echo no");
  await page.keyboard.press("Enter");
  await page.click("#term");
  await page.keyboard.type("echo no");
  // What would have been typed comes before this.
  await done("send_keys", { session_id: shell, text: "#" });
  await done("wait", { session_id: shell, text: "$ #", timeout_ms: PATIENCE });
  assert.deepEqual((await viewport(shell)).map((line) => line.replace("$ #", "$ ").trimEnd()), before.map((line) => line.trimEnd()));
  await done("send_keys", { session_id: shell, keys: "Backspace" });
});

await claim("keys and pastes reach the shell when typing is on", async () => {
  await open(shell);
  await page.click("#typing");
  assert.match(await page.textContent("#typing"), /You are typing/);
  await page.keyboard.type("echo $((6*7))");
  await page.keyboard.press("Enter");
  await done("wait", { session_id: shell, regex: "^42$", timeout_ms: PATIENCE });
  await page.keyboard.type("sleep 1000");
  await page.keyboard.press("Enter");
  await done("wait", { session_id: shell, text: "sleep 1000", timeout_ms: PATIENCE });
  await page.keyboard.press("Control+c");
  await page.keyboard.type("echo after-$?");
  await page.keyboard.press("Enter");
  await done("wait", { session_id: shell, regex: "^after-130$", timeout_ms: PATIENCE });
  await page.evaluate(() => {
    const data = new DataTransfer();
    data.setData("text/plain", "echo pasted-é");
    document.getElementById("keyboard").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  });
  await page.keyboard.press("Enter");
  await done("wait", { session_id: shell, regex: "^pasted-é$", timeout_ms: PATIENCE });
  await showsWhatAgentsRead(shell);
  await page.keyboard.press("Control+Alt+k");
  assert.equal(await page.getAttribute("#typing", "aria-checked"), "false");
});

await claim("scrollback has what left the screen, in its colours", async () => {
  await run(shell, "clear; i=0; while [ $i -lt 1500 ]; do i=$((i+1)); printf '\\033[32mline\\033[0m %d\\n' $i; done; echo end", "^end$");
  await open(shell);
  await showsWhatAgentsRead(shell);
  await page.waitForFunction(() => document.querySelector("#history .row"));
  await page.evaluate(() => (document.getElementById("term").scrollTop = 0));
  await page.waitForFunction(() => document.querySelectorAll("#history .row").length > 350);
  const rows = await page.$$eval("#history .row", (rows) => rows.map((row) => row.textContent.trimEnd()));
  const numbers = rows.filter((row) => row.startsWith("line ")).map((row) => Number(row.slice(5)));
  assert.deepEqual(numbers, Array.from({ length: numbers.length }, (_, index) => numbers[0] + index), "no line is missing or doubled");
  const colour = await page.$eval("#history .row span", (cell) => getComputedStyle(cell).color);
  assert.equal(colour, "rgb(0, 205, 0)");
  const last = numbers.at(-1);
  const first = Number((await shownRows())[0].slice(5));
  assert.equal(first, last + 1, "the screen goes on where the history ends");
  await page.click("#to-end");
  await page.waitForFunction(() => {
    const term = document.getElementById("term");
    return term.scrollTop + term.clientHeight >= term.scrollHeight - 4;
  });
});

await claim("search finds what is far above, and goes on", async () => {
  await page.fill("#needle", "line 77");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /^\d+ of \d+$/.test(document.getElementById("found").textContent));
  assert.equal(await page.textContent("#found"), "11 of 11");
  const isSeen = (text) =>
    page.waitForFunction((text) => {
      const hit = document.querySelector(".row.is-hit");
      if (hit?.textContent.trimEnd() !== text) return false;
      const [row, term] = [hit.getBoundingClientRect(), document.getElementById("term").getBoundingClientRect()];
      return row.top >= term.top && row.bottom <= term.bottom;
    }, text);
  await isSeen("line 779");
  for (let step = 0; step < 10; step++) await page.keyboard.press("Enter");
  await isSeen("line 77");
  await page.click("#to-end");
  await page.waitForFunction(() => document.getElementById("gap").hidden);
  await showsWhatAgentsRead(shell);
});

await claim("the traffic panel shows a blocked command, live and filtered, and who typed what", async () => {
  await page.goto(`${url}/ui#/traffic`);
  await page.waitForSelector("#traffic-view:not([hidden])");
  const refused = await call("send_line", { session_id: shell, data: "rm -rf /", as_agent: "eve" });
  assert.equal(refused.error_code, "DANGEROUS_COMMAND_BLOCKED");
  const blocked = page.locator("#events li.is-blocked", { hasText: "rm -rf /" });
  await blocked.first().waitFor();
  assert.match(await blocked.first().textContent(), /blocked/);
  await page.check("input[name=blocked_only]");
  await page.waitForFunction(() => [...document.querySelectorAll("#events li")].every((item) => item.classList.contains("is-blocked")));
  await blocked.first().waitFor();
  await page.uncheck("input[name=blocked_only]");
  await open(shell);
  await page.locator("#typed li", { hasText: "web" }).first().waitFor();
  await page.locator("#typed li.is-blocked", { hasText: "rm -rf /" }).first().waitFor();
});

await claim("secrets are masked on the page too", async () => {
  const token = ["gh", "p_", "a1B2".repeat(9)].join("");
  await run(shell, `clear; printf '%s%s\\n' ${token.slice(0, 6)} ${token.slice(6)}; echo over`, "^over$");
  await open(shell);
  await page.locator("#screen .row", { hasText: "[REDACTED" }).first().waitFor();
  assert.ok(!(await page.content()).includes(token));
});

await claim("everything is reached with the keyboard alone, and the focus is seen", async () => {
  // A new page: a browser goes on from where the focus was last.
  await page.goto("about:blank");
  await page.goto(`${url}/ui`);
  await page.locator(".tile").first().waitFor();
  const seen = [];
  for (let step = 0; step < 12 && !seen.includes("TILE"); step++) {
    await page.keyboard.press("Tab");
    const [name, outline] = await page.evaluate(() => {
      const active = document.activeElement;
      const name = active.closest(".tile") ? "TILE" : active.id || active.textContent.trim();
      return [name, getComputedStyle(active).outlineStyle];
    });
    assert.notEqual(outline, "none", `the focus on ${name} is not seen`);
    seen.push(name);
  }
  assert.deepEqual(seen, ["skip", "kpty", "Sessions", "Traffic", "filter", "new", "TILE"]);
  await page.keyboard.press("Enter");
  await page.waitForSelector("#large-view:not([hidden])");
  await page.waitForSelector("#screen .row");
  assert.equal(await page.evaluate(() => document.activeElement.id), "term");
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.id), "needle");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+Alt+k");
  assert.equal(await page.getAttribute("#typing", "aria-checked"), "true");
  await page.keyboard.type("echo by-hand");
  await page.keyboard.press("Enter");
  await done("wait", { session_id: shell, regex: "^by-hand$", timeout_ms: PATIENCE });
  await page.keyboard.press("Control+Alt+k");
  await page.keyboard.press("Escape");
  await page.waitForSelector("#grid-view:not([hidden])");
  assert.equal(await page.evaluate(() => document.activeElement.closest(".tile") !== null), true, "the focus is back on the tile");
});

await claim("every field and button has a name for those who do not see it", async () => {
  const nameless = await page.$$eval("button, input, select, textarea, a, [role]", (elements) =>
    elements.filter((element) => {
      const label = element.getAttribute("aria-label") || element.textContent.trim() || element.labels?.[0]?.textContent.trim();
      return !label && !["status", "alert"].includes(element.getAttribute("role"));
    }).map((element) => element.outerHTML),
  );
  assert.deepEqual(nameless, []);
});

await claim("light and dark are both there", async () => {
  const backs = [];
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    backs.push(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
  }
  assert.deepEqual(backs, ["rgb(246, 246, 244)", "rgb(19, 20, 22)"]);
});

await claim("nothing sticks out at phone width", async () => {
  await page.setViewportSize({ width: 360, height: 700 });
  for (const view of ["#/", `#/session/${shell}`, "#/traffic"]) {
    await page.goto(`${url}/ui${view}`);
    await page.waitForTimeout(200);
    const [wide, room] = await page.evaluate(() => [Math.max(document.documentElement.scrollWidth, document.getElementById("main").scrollWidth), innerWidth]);
    assert.ok(wide <= room, `${view}: ${wide} in ${room}`);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
});

await claim("pages of another origin get nothing, with the cookie or without", async () => {
  const other = createServer((_, answer) => answer.setHeader("content-type", "text/html").end("<!doctype html><title>other</title>"));
  await new Promise((ready) => other.listen(0, "127.0.0.1", ready));
  const foreign = await context.newPage();
  await foreign.goto(`http://127.0.0.1:${other.address().port}/`);
  const outcome = await foreign.evaluate(async (url) => {
    const socket = await new Promise((done) => {
      const socket = new WebSocket(`${url.replace("http", "ws")}/ws/live`);
      socket.onopen = () => done("open");
      socket.onerror = () => done("refused");
    });
    const fetched = await fetch(`${url}/ui`, { credentials: "include" }).then(() => "read", () => "refused");
    const posted = await fetch(`${url}/mcp`, { method: "POST", body: "{}", mode: "no-cors", credentials: "include" }).then((answer) => answer.type);
    return { socket, fetched, posted };
  }, url);
  assert.deepEqual(outcome, { socket: "refused", fetched: "refused", posted: "opaque" });
  await foreign.close();
  other.close();
});

await claim("the session of a desktop is shown with the others", async () => {
  const bridge = await serve("desktop", "--register-with", url);
  const made = await rpc(bridge.url, { action: "create", label: "afar", shell: "/bin/sh", env: { PS1: "$ " } });
  assert.equal(made.ok, true);
  await rpc(bridge.url, { action: "send_line", session_id: made.session_id, data: "echo from-afar" });
  await page.goto(`${url}/ui#/`);
  const tile = page.locator(".tile", { hasText: "afar" });
  await tile.locator(".state", { hasText: "desktop" }).waitFor();
  await tile.locator("a").click();
  await page.locator("#screen .row", { hasText: "from-afar" }).first().waitFor();
});

await claim("50 busy sessions stay smooth", async () => {
  const ids = [];
  for (let number = 0; number < 50; number++) {
    const made = await done("create", { label: `busy-${number}`, shell: "/bin/sh", env: { PS1: "$ " }, integration: "off" });
    ids.push(made.session_id);
    const busy = `exec perl -e '$|=1; while (1) { print ++$i, " of many lines that go by\\n"; select(undef, undef, undef, 0.05) }'`;
    await done("send_keys", { session_id: made.session_id, text: busy, keys: "Enter" });
  }
  const busy = await context.newPage();
  let messages = 0;
  let bytes = 0;
  busy.on("websocket", (socket) =>
    socket.on("framereceived", ({ payload }) => {
      bytes += payload.length;
      if (String(payload).startsWith('{"t":"frames"')) messages += 1;
    }),
  );
  await busy.setViewportSize({ width: 1600, height: 3000 });
  await busy.goto(`${url}/ui`);
  await busy.waitForFunction(() => document.querySelectorAll(".tile").length >= 50);
  const measure = () =>
    busy.evaluate(
      () =>
        new Promise((done) => {
          const gaps = [];
          let last = performance.now();
          const start = last;
          const step = (now) => {
            gaps.push(now - last);
            last = now;
            if (now - start < 5000) requestAnimationFrame(step);
            else done(gaps.sort((a, b) => a - b));
          };
          requestAnimationFrame(step);
        }),
    );
  messages = bytes = 0;
  const began = Date.now();
  const gaps = await measure();
  const seconds = (Date.now() - began) / 1000;
  const [middle, most] = [gaps[gaps.length >> 1], gaps[Math.floor(gaps.length * 0.95)]];
  const rate = messages / seconds;
  assert.ok(rate <= 30.5, `${rate} messages a second`);
  assert.ok(messages > 0, "no screens came");
  assert.ok(middle < 100, `the middle picture took ${middle} ms`);
  const asked = Date.now();
  await busy.fill("#filter", "busy-49");
  await busy.waitForFunction(() => document.querySelectorAll(".tile").length === 1);
  const answered = Date.now() - asked;
  assert.ok(answered < 5000, `the filter took ${answered} ms`);
  const talked = Date.now();
  await done("talk", { session_id: shell, command: "echo quick", timeout_ms: PATIENCE });
  const talk = Date.now() - talked;
  await busy.close();
  for (const id of ids) await done("kill", { session_id: id, force: true });
  return `${rate.toFixed(1)} messages/s, ${(bytes / seconds / 1000).toFixed(0)} kB/s, pictures every ${middle.toFixed(0)} ms (95%: ${most.toFixed(0)} ms), filter ${answered} ms, talk beside it ${talk} ms`;
});

await claim("the page had no errors", () => assert.deepEqual(problems, []));

await browser.close();
for (const child of children) {
  const ended = new Promise((done) => child.on("exit", done));
  child.kill();
  await ended;
}
rmSync(folder, { recursive: true, force: true });
process.exit(failures ? 1 : 0);
