// How runs of text become pixels: as elements for the large screen, on a canvas for the small ones.
// A run is [text, colour, background, attributes]; colours are palette numbers, -1 for the terminal's own, or 2^24 + RGB.

export const WIDE = 1 << 15;
const BOLD = 1, DIM = 2, ITALIC = 4, INVERSE = 8, HIDDEN = 16, STRIKE = 32;
const UNDERLINES = [[1 << 6, "u1"], [1 << 7, "u2"], [1 << 8, "u3"], [1 << 9, "u4"], [1 << 10, "u5"]];
const RGB = 1 << 24;

let palette = [];
let foreground = "#e5e5e5";
let background = "#000000";

const hex = (number) => "#" + number.toString(16).padStart(6, "0");

export function setPalette(hello) {
  palette = hello.palette.map(hex);
  foreground = hex(hello.foreground);
  background = hex(hello.background);
}

function colour(code, own) {
  if (code < 0) return own;
  return code >= RGB ? hex(code - RGB) : palette[code];
}

/** Text colour and background as they are seen; null where the terminal's own background shows. */
export function colours([, fg, bg, bits]) {
  let front = colour(fg, foreground);
  let back = bg < 0 ? null : colour(bg, background);
  if (bits & INVERSE) [front, back] = [back ?? background, front];
  if (bits & HIDDEN) front = back ?? background;
  return [front, back];
}

// Characters that the font draws as wide as a cell need no box of their own.
const fits = new Map();
let measured = null;
let fontOf = "";

function useFont(font) {
  if (font === fontOf) return;
  fontOf = font;
  fits.clear();
  measured ??= document.createElement("canvas").getContext("2d");
  measured.font = font;
}

function fitsCell(c) {
  if (c < "\u007f") return true;
  let is = fits.get(c);
  if (is === undefined) {
    is = Math.abs(measured.measureText(c).width - measured.measureText("0").width) < 0.02;
    if (fits.size > 4000) fits.clear();
    fits.set(c, is);
  }
  return is;
}

const graphemes = new Intl.Segmenter();
const PLAIN = /^[\x20-\x7e]*$/;

function fill(element, text) {
  if (PLAIN.test(text)) {
    element.textContent = text;
    return;
  }
  let plain = "";
  for (const { segment } of graphemes.segment(text)) {
    if (segment.length === 1 && fitsCell(segment)) {
      plain += segment;
      continue;
    }
    if (plain) element.append(plain);
    plain = "";
    const box = document.createElement("i");
    box.className = "w1";
    box.textContent = segment;
    element.append(box);
  }
  if (plain) element.append(plain);
}

/** Shows the runs in a row element. */
export function drawRow(row, runs, font) {
  useFont(font);
  const spans = runs.map((run) => {
    const span = document.createElement("span");
    const bits = run[3];
    const names = [];
    if (bits & BOLD) names.push("b");
    if (bits & ITALIC) names.push("i");
    if (bits & STRIKE) names.push("s");
    if (bits & DIM) names.push("d");
    for (const [bit, name] of UNDERLINES) if (bits & bit) names.push(name);
    if (bits & WIDE) {
      names.push("w2");
      span.textContent = run[0];
    } else {
      fill(span, run[0]);
    }
    if (names.length) span.className = names.join(" ");
    const [front, back] = colours(run);
    if (front !== foreground) span.style.color = front;
    if (back) span.style.backgroundColor = back;
    return span;
  });
  row.replaceChildren(...spans);
}

/** A small screen on a canvas. Keeps the rows, draws those that changed. */
export class Small {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.rows = [];
    this.problem = null;
  }

  take(frame) {
    if (frame.full) this.rows = Array.from({ length: frame.rows }, () => []);
    [this.cols, this.height, this.problem, this.cursor] = [frame.cols, frame.rows, frame.problem ?? null, frame.cursor];
    for (const [index, runs] of frame.changed) this.rows[index] = runs;
    const dirty = frame.changed.map(([index]) => index);
    // Sizes are looked at only when they may have changed: asking makes the browser lay out the page.
    if (frame.full) this.fit();
    if (frame.full || this.problem) this.drawAll();
    else for (const index of dirty) this.draw(index);
  }

  /** Makes the canvas as sharp as the screen is; true when that changed it. */
  fit() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const width = Math.max(Math.round(this.canvas.clientWidth * ratio), 200);
    const cell = width / Math.max(this.cols, 1);
    const line = cell * 2;
    const height = Math.round(line * this.height);
    if (this.canvas.width === width && this.canvas.height === height) return false;
    [this.canvas.width, this.canvas.height, this.cell, this.line] = [width, height, cell, line];
    const size = 100;
    this.context.font = `${size}px ${monospace()}`;
    const advance = this.context.measureText("0").width / size;
    this.font = `${(cell / advance).toFixed(2)}px ${monospace()}`;
    return true;
  }

  drawAll() {
    this.context.fillStyle = background;
    this.context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    if (this.problem) {
      this.context.fillStyle = "#9aa0a6";
      this.context.font = `${Math.round(this.canvas.width / 24)}px system-ui, sans-serif`;
      this.context.textBaseline = "middle";
      this.context.fillText(this.problem.slice(0, 60), this.canvas.width / 24, this.canvas.height / 2);
      return;
    }
    for (let index = 0; index < this.rows.length; index++) this.draw(index);
  }

  draw(index) {
    const { context, cell, line } = this;
    const top = index * line;
    context.fillStyle = background;
    context.fillRect(0, Math.floor(top), this.canvas.width, Math.ceil(line));
    context.textBaseline = "middle";
    let col = 0;
    for (const run of this.rows[index] ?? []) {
      const [text, , , bits] = run;
      const [front, back] = colours(run);
      const width = bits & WIDE ? 2 : PLAIN.test(text) ? text.length : [...graphemes.segment(text)].length;
      if (back) {
        context.fillStyle = back;
        context.fillRect(col * cell, top, width * cell, line);
      }
      if (text.trim()) {
        context.fillStyle = front;
        context.globalAlpha = bits & DIM ? 0.62 : 1;
        context.font = (bits & BOLD ? "bold " : "") + this.font;
        context.fillText(text, col * cell, top + line / 2, width * cell);
        context.globalAlpha = 1;
      }
      col += width;
    }
  }
}

let family = null;

/** The fonts of the page's screens. */
export function monospace() {
  family ??= getComputedStyle(document.documentElement).getPropertyValue("--mono").trim();
  return family;
}
