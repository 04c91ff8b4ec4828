// One session, large: its screen, the history above it, the search, and typing.
// History is loaded in pieces around what is looked at: below the loaded piece there may be a gap before the screen.

import { drawRow, monospace } from "/ui/draw.js";
import { Typist, isSwitch, keyName } from "/ui/keys.js";

const PIECE = 200;
const MOST_ROWS = 3000;
const SYNC_MS = 300;
const LARGEST_FONT = 15;
const SMALLEST_FONT = 9;

const $ = (id) => document.getElementById(id);

export class Large {
  constructor(app) {
    this.app = app;
    this.term = $("term");
    this.screen = $("screen");
    this.history = $("history");
    this.keyboard = $("keyboard");
    this.id = null;
    this.isTyping = false;
    this.typist = new Typist((keys) => this.type(keys));
    this.listen();
    new ResizeObserver(() => this.fit()).observe($("main"));
  }

  listen() {
    $("typing").addEventListener("click", () => this.setTyping(!this.isTyping));
    document.addEventListener("keydown", (event) => {
      if (!this.id) return;
      if (isSwitch(event)) {
        event.preventDefault();
        this.setTyping(!this.isTyping);
      }
    });
    this.keyboard.addEventListener("keydown", (event) => this.onKey(event));
    this.keyboard.addEventListener("input", () => {
      if (this.keyboard.value && !this.isComposing) this.typist.text(this.keyboard.value);
      if (!this.isComposing) this.keyboard.value = "";
    });
    this.keyboard.addEventListener("compositionstart", () => (this.isComposing = true));
    this.keyboard.addEventListener("compositionend", () => {
      this.isComposing = false;
      if (this.keyboard.value) this.typist.text(this.keyboard.value);
      this.keyboard.value = "";
    });
    this.keyboard.addEventListener("paste", (event) => {
      event.preventDefault();
      const text = event.clipboardData.getData("text/plain");
      if (text) this.typist.paste(text);
    });
    this.keyboard.addEventListener("focus", () => this.term.classList.add("is-typing"));
    this.keyboard.addEventListener("blur", () => this.term.classList.remove("is-typing"));
    this.term.addEventListener("mouseup", () => {
      if (this.isTyping && getSelection().isCollapsed) this.keyboard.focus({ preventScroll: true });
    });
    this.term.addEventListener("keydown", (event) => {
      if (event.target !== this.term) return;
      if (event.key === "Enter" && this.isTyping) this.keyboard.focus({ preventScroll: true });
    });
    this.term.addEventListener("scroll", () => this.onScroll(), { passive: true });
    $("paste").addEventListener("click", async () => {
      try {
        const text = await navigator.clipboard.readText();
        if (text) this.typist.paste(text);
      } catch {
        this.app.notice("The browser does not give the clipboard here: press Ctrl+Shift+V in the terminal.");
      }
      this.keyboard.focus({ preventScroll: true });
    });
    $("to-end").addEventListener("click", () => this.toEnd());
    $("search").addEventListener("submit", (event) => {
      event.preventDefault();
      this.search(-1);
    });
    $("needle").addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      this.search(event.shiftKey ? 1 : -1);
    });
    $("needle").addEventListener("input", () => !$("needle").value && this.clearSearch());
    $("previous").addEventListener("click", () => this.search(-1));
    $("next").addEventListener("click", () => this.search(1));
  }

  show(id) {
    if (this.id === id) return;
    this.id = id;
    this.setTyping(false);
    this.clearSearch();
    $("needle").value = "";
    this.frame = null;
    this.lines = [];
    this.isFollowing = true;
    this.screen.replaceChildren();
    this.resetHistory();
    $("cursor").hidden = true;
    $("banner").textContent = "";
  }

  hide() {
    this.setTyping(false);
    this.id = null;
  }

  // Screen

  take(frame) {
    if (frame.id !== this.id) return;
    const before = this.frame;
    this.frame = frame;
    if (frame.full) {
      this.screen.replaceChildren(...Array.from({ length: frame.rows }, () => newRow()));
      this.fit();
    }
    const isResized = before && before.cols !== frame.cols;
    for (const [index, runs] of frame.changed) drawRow(this.screen.children[index], runs, this.font);
    if (frame.lines?.length) {
      this.lines = frame.lines;
      frame.lines.forEach((line, index) => (this.screen.children[index].dataset.line = line));
    }
    this.drawCursor(frame.cursor);
    this.tell(frame);
    if (!before || isResized || before.alt !== frame.alt) this.loadEnd();
    else this.syncSoon();
    if (this.isFollowing) this.scrollToEnd();
  }

  drawCursor(cursor) {
    const element = $("cursor");
    element.hidden = !cursor.visible || Boolean(this.frame.exit);
    element.style.setProperty("--col", cursor.col);
    element.style.setProperty("--row", cursor.row);
    element.className = "cursor" + ["", " is-underline", " is-beam"][cursor.shape] + (cursor.blinking ? " is-blinking" : "");
  }

  tell(frame) {
    const size = `${frame.cols} × ${frame.rows}`;
    const title = frame.title ? ` · ${frame.title}` : "";
    $("banner").textContent = frame.problem ?? (frame.alt ? `${size} · full-screen program${title}` : size + title);
  }

  /** As large as fits, between what can be read and what is pleasant. */
  fit() {
    if (!this.frame || !this.term.clientWidth) return;
    const context = document.createElement("canvas").getContext("2d");
    context.font = `100px ${monospace()}`;
    const advance = context.measureText("0").width / 100;
    const room = this.term.parentElement.clientWidth - 26 - 12;
    const size = Math.floor((room / (this.frame.cols * advance)) * 4) / 4;
    const font = Math.min(Math.max(size, SMALLEST_FONT), LARGEST_FONT);
    this.term.style.fontSize = `${font}px`;
    this.term.style.setProperty("--line", `${Math.round(font * 1.22)}px`);
    this.font = `${font}px ${monospace()}`;
    if (this.isFollowing) this.scrollToEnd();
  }

  // History

  resetHistory() {
    this.history.replaceChildren();
    this.from = this.until = null;
    this.loading = false;
    this.showGap();
  }

  get top() {
    return this.lines[0] ?? 0;
  }

  hasHistory() {
    return this.frame && !this.frame.alt && this.lines.length > 0;
  }

  async ask(from, until) {
    const id = this.id;
    const answer = await this.app.ask({ t: "history", id, from: Math.max(0, from), until });
    return id === this.id && answer.ok ? answer : null;
  }

  /** The piece right above the screen. */
  async loadEnd() {
    this.resetHistory();
    if (!this.hasHistory()) return;
    const answer = await this.ask(this.top - PIECE, this.top + 1);
    if (!answer) return;
    this.history.replaceChildren(...answer.rows.map((row) => this.rowOf(row)));
    this.from = answer.from;
    this.until = answer.until;
    this.showGap();
    if (this.isFollowing) this.scrollToEnd();
  }

  rowOf([line, , runs]) {
    const row = newRow();
    row.dataset.line = line;
    drawRow(row, runs, this.font);
    return row;
  }

  syncSoon() {
    if (this.syncing) return;
    this.syncing = setTimeout(() => {
      this.syncing = null;
      this.sync();
    }, SYNC_MS);
  }

  /** Adds what left the screen. The last line may have been there in part only, so it is asked for again. */
  async sync() {
    if (!this.hasHistory() || this.until === null || this.loading) return;
    if (this.top + 1 < this.until || this.top - this.until > PIECE * 2) {
      if (this.isFollowing || this.top + 1 < this.until) return this.loadEnd();
      return this.showGap();
    }
    if (this.top < this.until - 1 || (this.top === this.until - 1 && this.history.childElementCount)) return;
    this.loading = true;
    const from = Math.max(this.until - 1, this.from);
    const answer = await this.ask(from, this.top + 1);
    this.loading = false;
    if (!answer) return;
    while (this.history.lastElementChild && Number(this.history.lastElementChild.dataset.line) >= answer.from) {
      this.history.lastElementChild.remove();
    }
    this.history.append(...answer.rows.map((row) => this.rowOf(row)));
    this.until = answer.until;
    if (this.isFollowing) {
      while (this.history.childElementCount > MOST_ROWS) this.history.firstElementChild.remove();
      this.from = Number(this.history.firstElementChild?.dataset.line ?? answer.from);
      this.scrollToEnd();
    }
    this.showGap();
  }

  async loadOlder() {
    if (this.loading || this.from === null || this.from <= (this.frame?.oldest ?? 0)) return;
    this.loading = true;
    const answer = await this.ask(this.from - PIECE, this.from);
    this.loading = false;
    if (!answer) return;
    const height = this.term.scrollHeight;
    this.history.prepend(...answer.rows.map((row) => this.rowOf(row)));
    this.from = answer.from;
    this.term.scrollTop += this.term.scrollHeight - height;
    while (this.history.childElementCount > MOST_ROWS) this.history.lastElementChild.remove();
    const last = this.history.lastElementChild;
    if (last) this.until = Math.min(this.until, Number(last.dataset.line) + 1);
    this.showGap();
  }

  async loadNewer() {
    if (this.loading || this.until === null || $("gap").hidden) return;
    this.loading = true;
    const answer = await this.ask(this.until, Math.min(this.until + PIECE, this.top + 1));
    this.loading = false;
    if (!answer) return;
    this.history.append(...answer.rows.map((row) => this.rowOf(row)));
    this.until = answer.until;
    this.showGap();
  }

  showGap() {
    const missing = this.until === null ? 0 : this.top - this.until;
    $("gap").hidden = !(missing > 0);
    $("gap").textContent = `${missing} more lines`;
    $("to-end").hidden = this.isFollowing;
  }

  onScroll() {
    const { scrollTop, clientHeight, scrollHeight } = this.term;
    this.isFollowing = scrollTop + clientHeight >= scrollHeight - 4 && $("gap").hidden;
    $("to-end").hidden = this.isFollowing;
    if (scrollTop < 300) this.loadOlder();
    const gap = $("gap");
    if (!gap.hidden && gap.offsetTop < scrollTop + clientHeight + 300) this.loadNewer();
  }

  scrollToEnd() {
    this.term.scrollTop = this.term.scrollHeight;
  }

  toEnd() {
    this.isFollowing = true;
    this.clearMarks();
    if ($("gap").hidden) this.scrollToEnd();
    else this.loadEnd();
    $("to-end").hidden = true;
    this.term.focus({ preventScroll: true });
  }

  // Search

  clearSearch() {
    this.matches = null;
    $("found").textContent = "";
    $("previous").disabled = $("next").disabled = true;
    this.clearMarks();
  }

  clearMarks() {
    for (const row of document.querySelectorAll(".row.is-hit")) row.classList.remove("is-hit");
    globalThis.CSS?.highlights?.delete("found");
  }

  async search(step) {
    const text = $("needle").value;
    if (!text) return this.clearSearch();
    if (this.matches?.text !== text) {
      const args = { action: "search", session_id: this.id, text, ignore_case: true, max_matches: 500, max_chars: 50000 };
      const answer = await this.app.call(args);
      if (!answer.ok) return this.app.notice(answer.message);
      const found = answer.matches.filter((match) => this.frame?.alt || match.buffer !== "alternate");
      this.matches = { text, found, total: answer.total, at: found.length };
      $("previous").disabled = $("next").disabled = found.length === 0;
    }
    const { found } = this.matches;
    if (!found.length) {
      $("found").textContent = "none";
      this.app.say(`Nothing found for ${text}`);
      return;
    }
    this.matches.at = (this.matches.at + step + found.length) % found.length;
    $("found").textContent = `${this.matches.at + 1} of ${found.length}`;
    const { line, text: shown } = found[this.matches.at];
    this.app.say(`Match ${this.matches.at + 1} of ${found.length}: ${shown}`);
    await this.reveal(line, text);
  }

  rowsOfLine(line) {
    return [...this.term.querySelectorAll(`.row[data-line="${line}"]`)];
  }

  async reveal(line, text) {
    this.isFollowing = false;
    let rows = this.rowsOfLine(line);
    if (!rows.length) {
      const answer = await this.ask(line - 60, Math.min(line + PIECE, this.top + 1));
      if (!answer) return;
      this.history.replaceChildren(...answer.rows.map((row) => this.rowOf(row)));
      [this.from, this.until] = [answer.from, answer.until];
      this.showGap();
      rows = this.rowsOfLine(line);
    }
    this.clearMarks();
    if (!rows.length) return;
    for (const row of rows) row.classList.add("is-hit");
    this.markText(rows, text);
    const middle = rows[0].offsetTop - this.term.clientHeight / 2;
    this.term.scrollTop = middle;
    this.onScroll();
  }

  markText(rows, text) {
    if (!globalThis.Highlight) return;
    const ranges = [];
    for (const row of rows) {
      const walker = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const hay = node.data.toLowerCase();
        for (let at = hay.indexOf(text.toLowerCase()); at >= 0; at = hay.indexOf(text.toLowerCase(), at + text.length)) {
          const range = new Range();
          range.setStart(node, at);
          range.setEnd(node, at + text.length);
          ranges.push(range);
        }
      }
    }
    CSS.highlights.set("found", new Highlight(...ranges));
  }

  // Typing

  setTyping(on) {
    this.isTyping = on;
    $("typing").setAttribute("aria-checked", String(on));
    $("typing-text").textContent = on ? "You are typing · Ctrl+Alt+K" : "Typing is off";
    $("paste").disabled = this.keyboard.disabled = !on;
    this.keyboard.tabIndex = on ? 0 : -1;
    if (on) {
      this.toEndIfNear();
      this.keyboard.focus({ preventScroll: true });
      this.app.say("You are typing. Control, Alt and K stops it.");
    } else {
      this.term.classList.remove("is-typing");
      if (document.activeElement === this.keyboard || document.activeElement === document.body) $("typing").focus();
    }
  }

  toEndIfNear() {
    if ($("gap").hidden) {
      this.isFollowing = true;
      this.scrollToEnd();
    }
  }

  onKey(event) {
    if (!this.isTyping || isSwitch(event)) return;
    const isCopy = event.ctrlKey && !event.altKey && event.key.toLowerCase() === "c" && !getSelection().isCollapsed;
    const isPaste = event.ctrlKey && event.shiftKey && event.key.toLowerCase() === "v";
    if (isCopy || isPaste) return;
    const name = keyName(event);
    if (!name) return;
    event.preventDefault();
    this.typist.key(name);
  }

  async type(keys) {
    if (!this.isTyping || !this.id) return;
    this.toEndIfNear();
    const isText = keys.length === 1 && keys[0].text !== undefined;
    const typed = isText ? { text: keys[0].text } : { keys };
    const answer = await this.app.call({ action: "send_keys", session_id: this.id, ...typed, enter_delay_ms: 0 });
    if (!answer.ok) this.app.notice(answer.message ?? "It was not typed.");
  }
}

function newRow() {
  const row = document.createElement("div");
  row.className = "row";
  return row;
}
