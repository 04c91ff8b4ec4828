// One terminal of the test desktop: a headless xterm.js, with or without a program on a PTY, and how the real app's
// renderer reads it. The faults of those reads are wanted here: clients have to live with them.

import { randomUUID } from "node:crypto";

/** Characters of raw output that the daemon keeps for each terminal. */
const RING_CHARS = 102_400;
/** Markers above which the ones that are gone are forgotten. */
const MANY_MARKERS = 50;

/** Markers of all terminals, by number: they share one number space. */
const markers = new Map();

/** Leaders are compared like this, and sessions are named like this. */
export const normalised = (id) => id.replaceAll("-", "").slice(0, 16);

export class Terminal {
  /** `shell` null is a terminal without a program, to be fed. */
  constructor({ pty, Xterm, Unicode11Addon }, options) {
    const { shell = "/bin/bash", args = [], cwd = process.cwd(), cols = 120, rows = 30 } = options;
    const { env = {}, scrollback = 10_000, session_id } = options;
    this.internalId = randomUUID();
    this.id = session_id ?? normalised(this.internalId);
    this.cwd = cwd;
    this.ring = "";
    this.alive = true;
    this.listeners = new Set();
    this.waiting = [];
    this.xterm = new Xterm({ cols, rows, scrollback, allowProposedApi: true, logLevel: "off" });
    this.xterm.loadAddon(new Unicode11Addon());
    this.xterm.unicode.activeVersion = "11";
    this.exited = Promise.resolve();
    if (shell === null) return;
    const environment = { ...process.env, TERM: "xterm-256color", ...env };
    this.pty = pty.spawn(shell, args, { name: "xterm-256color", cols, rows, cwd, env: environment });
    this.pty.onData((data) => this.#take(data));
    this.xterm.onData((reply) => this.write(reply));
    this.exited = new Promise((resolve) => this.pty.onExit(resolve)).then(() => {
      this.alive = false;
    });
  }

  get pid() {
    return this.pty?.pid ?? 0;
  }

  #take(data) {
    this.ring = (this.ring + data).slice(-RING_CHARS);
    for (const listener of [...this.listeners]) listener(data);
    this.xterm.write(data);
  }

  write(data) {
    if (this.alive) this.pty?.write(data);
  }

  resize(cols, rows) {
    this.pty?.resize(cols, rows);
    this.xterm.resize(cols, rows);
  }

  /** Shows bytes as if a program had sent them, to the end. */
  feed(bytes) {
    return new Promise((resolve) => this.xterm.write(bytes, resolve));
  }

  kill() {
    if (this.alive) this.pty?.kill("SIGKILL");
  }

  /**
   * Collects what comes from now on, until `isEnough` says so or the time is up. The timer is the caller's measure: with
   * nothing to look for it is always waited for in full.
   */
  collect(milliseconds, isEnough = () => false) {
    return new Promise((resolve) => {
      let text = "";
      const finish = (found) => {
        clearTimeout(timer);
        this.listeners.delete(listen);
        resolve({ text, found });
      };
      const listen = (data) => {
        text += data;
        if (isEnough(text)) finish(true);
      };
      const timer = setTimeout(() => finish(false), milliseconds);
      this.listeners.add(listen);
    });
  }

  /**
   * What the renderer answers. Question and answer go through a queue and are matched by terminal alone, so of two
   * questions at the same moment both get the answer to the first.
   */
  snapshot(mode, options) {
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      setImmediate(() => {
        if (this.waiting.length === 0) return;
        const answer = this.#read(mode, options);
        for (const answered of this.waiting.splice(0)) answered(answer);
      });
    });
  }

  /**
   * All rows, for tests that compare them, and where the screen begins. A row that goes on in the next one has all its
   * cells, but for the one at the edge that a wide character did not fit into.
   */
  allRows() {
    const buffer = this.xterm.buffer.active;
    const rows = Array.from({ length: buffer.length }, (_, y) => {
      const [row, next] = [buffer.getLine(y), buffer.getLine(y + 1)];
      const goesOn = next?.isWrapped ?? false;
      const hasGap = goesOn && row.getCell(row.length - 1).getCode() === 0 && next.getCell(0).getWidth() === 2;
      const text = row.translateToString(!goesOn, 0, hasGap ? row.length - 1 : row.length);
      return { text, continues: row.isWrapped };
    });
    return { top: buffer.baseY, rows };
  }

  #read(mode, options) {
    const buffer = this.xterm.buffer.active;
    const isNormal = buffer.type === "normal";
    if (mode === "viewport") return this.#viewport(options);
    if (mode === "delta" && isNormal) {
      const marker = markers.get(options.markerId);
      if (options.markerId === undefined || options.markerId === null) return this.#newMarker();
      if (marker && marker.terminal === this && !marker.isDisposed && marker.line >= 0) {
        return this.#since(marker, options);
      }
    }
    return this.#tail(options);
  }

  #answer(lines, more) {
    const { rows, cols, buffer } = this.xterm;
    return { text: lines.join("\n"), lines, ...more, rows, cols, bufferType: buffer.active.type };
  }

  get #cursorLine() {
    const buffer = this.xterm.buffer.active;
    return buffer.baseY + buffer.cursorY;
  }

  /** One row more than asked for, and nothing below the cursor. */
  #tail({ maxLines, mergeWrapped }) {
    const cursorLine = this.#cursorLine;
    return this.#answer(this.#lines(cursorLine - maxLines, cursorLine, mergeWrapped), { cursorLine });
  }

  #viewport({ mergeWrapped }) {
    const { viewportY } = this.xterm.buffer.active;
    const lines = this.#lines(viewportY, viewportY + this.xterm.rows - 1, mergeWrapped);
    const first = this.xterm.buffer.active.getLine(viewportY);
    if (mergeWrapped && first?.isWrapped) lines[0] = `...${lines[0]}`;
    return this.#answer(lines, { viewportY });
  }

  #newMarker() {
    const marker = this.xterm.registerMarker(0);
    marker.terminal = this;
    if (markers.size > MANY_MARKERS) {
      for (const [id, old] of markers) if (old.isDisposed) markers.delete(id);
    }
    markers.set(marker.id, marker);
    return this.#answer([], { markerId: marker.id, markerLine: marker.line, markerDisposed: false });
  }

  /** The rows after the marker's own; the marker stays where it is. */
  #since(marker, { mergeWrapped }) {
    const buffer = this.xterm.buffer.active;
    let from = marker.line + 1;
    while (from > 0 && buffer.getLine(from)?.isWrapped) from -= 1;
    const lines = this.#lines(from, this.#cursorLine, mergeWrapped);
    return this.#answer(lines, { markerId: marker.id, markerLine: marker.line, markerDisposed: false });
  }

  /** Rows as lines. Wrapped rows are glued with their padding, which is cut off only at the end. */
  #lines(from, to, mergeWrapped) {
    const buffer = this.xterm.buffer.active;
    const lines = [];
    for (let y = Math.max(from, 0); y <= to; y += 1) {
      const row = buffer.getLine(y);
      if (row === undefined) break;
      if (mergeWrapped && row.isWrapped && lines.length > 0) {
        lines[lines.length - 1] += row.translateToString(false);
      } else {
        lines.push(row.translateToString(false));
      }
    }
    return lines.map((line) => line.trimEnd());
  }
}
