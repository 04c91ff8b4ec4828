// From what a keyboard does in a browser to what the action `send_keys` takes.

const NAMES = {
  Enter: "Enter", Tab: "Tab", Backspace: "Backspace", Escape: "Esc", Delete: "Delete", Insert: "Insert", Home: "Home",
  End: "End", PageUp: "PageUp", PageDown: "PageDown", ArrowUp: "Up", ArrowDown: "Down", ArrowLeft: "Left", ArrowRight: "Right",
};

/** The name of a key as `send_keys` knows it; null for text and for keys that belong to the browser. */
export function keyName(event) {
  if (event.isComposing || event.metaKey || event.getModifierState("AltGraph")) return null;
  const named = NAMES[event.key] ?? (/^F([1-9]|1[0-2])$/.test(event.key) ? event.key : null);
  const held = (event.ctrlKey ? "Ctrl-" : "") + (event.altKey ? "Alt-" : "");
  if (named) return held + (event.shiftKey ? "Shift-" : "") + named;
  if (!held || [...event.key].length !== 1) return null;
  return held + (event.key === " " ? "Space" : event.ctrlKey ? event.key.toLowerCase() : event.key);
}

/** Control, Alt and K: typing on and off. */
export function isSwitch(event) {
  return event.ctrlKey && event.altKey && !event.shiftKey && event.code === "KeyK";
}

/** Collects what is typed at once and sends it in order, text in one piece. */
export class Typist {
  constructor(send) {
    this.send = send;
    this.items = [];
    this.isWaiting = false;
  }

  key(name) {
    this.push(name);
  }

  text(text) {
    const last = this.items.at(-1);
    if (last?.text !== undefined) last.text += text;
    else this.push({ text });
  }

  paste(text) {
    this.push({ paste: text });
  }

  push(item) {
    this.items.push(item);
    if (this.isWaiting) return;
    this.isWaiting = true;
    queueMicrotask(() => {
      this.isWaiting = false;
      this.send(this.items.splice(0));
    });
  }
}
