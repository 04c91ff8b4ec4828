// The record of actions: the panel with all of it, live and filtered, and who typed what in one session.

const $ = (id) => document.getElementById(id);
const MOST = 300;
export class Traffic {
  constructor(app) {
    this.app = app;
    this.form = $("traffic-filter");
    this.isLive = true;
    this.isShown = false;
    this.actions = new Set();
    /** Names of the actions that type something, from the server's greeting. */
    this.typing = new Set();
    this.form.addEventListener("input", () => this.loadSoon());
    this.form.addEventListener("submit", (event) => event.preventDefault());
    $("live").addEventListener("click", () => {
      this.isLive = !this.isLive;
      $("live").setAttribute("aria-checked", String(this.isLive));
      if (this.isLive) this.load();
    });
  }

  show(is) {
    this.isShown = is;
    if (is) this.load();
  }

  loadSoon() {
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.load(), 150);
  }

  filters() {
    const data = new FormData(this.form);
    const filters = {};
    for (const name of ["search", "agent_id", "session_id", "action"]) if (data.get(name)) filters[name] = data.get(name);
    for (const name of ["blocked_only", "errors_only"]) if (data.get(name)) filters[name] = "true";
    return filters;
  }

  async load() {
    this.loadNumber = (this.loadNumber ?? 0) + 1;
    const number = this.loadNumber;
    const events = await fetchEvents({ ...this.filters(), limit: 200 });
    if (number !== this.loadNumber) return;
    this.learn(events ?? []);
    $("events").replaceChildren(...(events ?? []).map((event) => this.item(event, true)));
    this.showEmpty(events === null);
  }

  showEmpty(isMissing) {
    $("no-events").hidden = $("events").childElementCount > 0;
    $("no-events").textContent = isMissing ? "This server keeps no record of actions." : "Nothing here yet.";
  }

  /** The choices of the filters come from what there is. */
  learn(events) {
    for (const { action } of events) {
      if (!action || this.actions.has(action)) continue;
      this.actions.add(action);
      this.form.elements.action.append(new Option(action, action));
    }
  }

  sessions(list) {
    const select = this.form.elements.session_id;
    const chosen = select.value;
    select.replaceChildren(new Option("all", ""), ...list.map((session) => new Option(this.app.nameOf(session), session.session_id)));
    select.value = list.some((session) => session.session_id === chosen) ? chosen : "";
  }

  /** Something happened just now. */
  take(event) {
    this.learn([event]);
    if (this.isShown && this.isLive && this.matches(event)) {
      $("events").prepend(this.item(event, true));
      while ($("events").childElementCount > MOST) $("events").lastElementChild.remove();
      this.showEmpty(false);
      if (event.blocked) this.app.say(`Blocked: ${event.command_preview ?? event.command ?? event.action}`);
    }
    if (event.session_id === this.session && this.typing.has(event.action)) {
      $("typed").querySelector(".nothing")?.remove();
      this.addTyped(event);
      while ($("typed").childElementCount > 100) $("typed").lastElementChild.remove();
    }
  }

  matches(event) {
    const filters = this.filters();
    const has = (text) => (text ?? "").toLowerCase().includes((filters.search ?? "").toLowerCase());
    return (
      (!filters.session_id || event.session_id === filters.session_id) &&
      (!filters.agent_id || event.agent_id === filters.agent_id) &&
      (!filters.action || event.action === filters.action) &&
      (!filters.blocked_only || event.blocked) &&
      (!filters.errors_only || event.success === false) &&
      (!filters.search || has(event.command) || has(event.response) || has(event.label))
    );
  }

  /** Who typed what in a session. */
  async showTyped(id) {
    this.session = id;
    $("typed").replaceChildren();
    if (!id) return;
    const events = await fetchEvents({ session_id: id, limit: 200 });
    if (this.session !== id) return;
    const typed = (events ?? []).filter((event) => this.typing.has(event.action)).slice(0, 100);
    for (const event of typed.reverse()) this.addTyped(event);
    if (!typed.length) {
      const nothing = document.createElement("li");
      nothing.className = "nothing quiet";
      nothing.textContent = "Nobody has typed here yet.";
      $("typed").append(nothing);
    }
  }

  /** Keys that one hand typed one after the other are one entry. */
  addTyped(event) {
    const last = $("typed").firstElementChild;
    const time = Date.parse(event.timestamp);
    const is = `${event.agent_id} ${event.action} ${event.blocked || event.success === false}`;
    const isSame = event.action === "send_keys" && last?.dataset.is === is && time - Number(last.dataset.time) < 4000;
    if (isSame && last.querySelector(".what")) {
      const what = last.querySelector(".what");
      what.textContent = (what.textContent + readable(event)).slice(-2000);
    } else {
      $("typed").prepend(this.item(event, false));
    }
    const first = $("typed").firstElementChild;
    [first.dataset.is, first.dataset.time] = [is, time];
  }

  item(event, withSession) {
    const item = document.createElement("li");
    const line = element("div", "line");
    line.append(element("span", "who", event.agent_id || event.caller || "somebody"));
    line.append(element("span", "quiet", event.action + (withSession ? ` · ${event.label || event.session_id || ""}` : "")));
    if (event.blocked) line.append(element("span", "badge is-blocked", "blocked"));
    else if (event.success === false || event.success === 0) line.append(element("span", "badge is-failed", event.error_code || "failed"));
    const time = element("time", "", clock(event.timestamp));
    time.dateTime = event.timestamp ?? "";
    line.append(time);
    item.append(line);
    const command = readable(event);
    if (command) item.append(element("div", "what", command));
    if (event.blocked) {
      item.classList.add("is-blocked");
      const why = event.error_message || (event.blocked_pattern ? `pattern ${event.blocked_pattern}` : "");
      if (why) item.append(element("div", "quiet", why));
    }
    return item;
  }
}

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

/** What was typed, as a person reads it: keys by their names, text as it is. */
function readable(event) {
  const command = event.command_preview ?? event.command ?? "";
  if (event.action !== "send_keys") return command;
  try {
    const keys = JSON.parse(command);
    if (Array.isArray(keys)) return keys.map((key) => key.text ?? key.paste ?? ` ⟨${typeof key === "string" ? key : "mouse"}⟩ `).join("");
  } catch {
    // Text that was typed, or a preview that was cut.
  }
  return command;
}

function clock(text) {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? "" : time.toLocaleTimeString([], { hour12: false });
}

/** Newest first; null where the server has no such record. */
async function fetchEvents(filters) {
  try {
    const answer = await fetch(`/v1/pty-traffic/events?${new URLSearchParams(filters)}`);
    return answer.ok ? (await answer.json()).events ?? [] : null;
  } catch {
    return null;
  }
}
