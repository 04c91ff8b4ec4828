// The page: one socket, the grid of all sessions, and the way between the views. The address has the view behind `#`.

import { Small, setPalette } from "/ui/draw.js";
import { Large } from "/ui/large.js";
import { Traffic } from "/ui/traffic.js";

const $ = (id) => document.getElementById(id);
const LONGEST_PAUSE_MS = 5000;

class App {
  constructor() {
    this.sessions = [];
    this.tiles = new Map();
    this.visible = new Set();
    this.waiting = new Map();
    this.number = 0;
    this.pause = 250;
    this.view = "grid";
    this.watched = "";
    this.observer = new IntersectionObserver((entries) => this.onVisible(entries), { rootMargin: "120px" });
    this.large = new Large(this);
    this.traffic = new Traffic(this);
    window.addEventListener("hashchange", () => this.route());
    window.addEventListener("resize", () => this.tiles.forEach((tile) => tile.small.rows.length && tile.small.fit() && tile.small.drawAll()));
    $("filter").addEventListener("input", () => this.showList());
    $("new").addEventListener("click", () => this.create());
    $("skip").addEventListener("click", (event) => {
      event.preventDefault();
      $("main").focus();
    });
    document.addEventListener("keydown", (event) => this.onKey(event));
    this.connect();
    this.route();
  }

  // Socket

  connect() {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    this.socket = new WebSocket(`${scheme}//${location.host}/ws/live`);
    this.socket.onopen = () => {
      this.pause = 250;
      this.setConnection("is-on", "connected");
      this.watched = "";
      this.watch();
      this.send({ t: "traffic" });
    };
    this.socket.onmessage = ({ data }) => this.hear(JSON.parse(data));
    this.socket.onclose = () => {
      const advice = this.pause > 1000 ? "not connected: if the server runs, kpty open makes a new link" : "not connected";
      this.setConnection("is-off", advice);
      for (const done of this.waiting.values()) done({ ok: false, message: "The server went away." });
      this.waiting.clear();
      setTimeout(() => this.connect(), this.pause);
      this.pause = Math.min(this.pause * 2, LONGEST_PAUSE_MS);
    };
  }

  setConnection(name, text) {
    $("connection").className = `connection ${name}`;
    $("connection").textContent = text;
  }

  send(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  /** A message that gets an answer. */
  ask(message) {
    if (this.socket.readyState !== WebSocket.OPEN) return Promise.resolve({ ok: false, message: "Not connected." });
    const n = ++this.number;
    return new Promise((done) => {
      this.waiting.set(n, done);
      this.send({ ...message, n });
    });
  }

  /** An action, as agents have it. */
  call(args) {
    return this.ask({ t: "call", args });
  }

  hear(message) {
    switch (message.t) {
      case "hello":
        setPalette(message);
        this.traffic.typing = new Set(message.typing);
        if (!message.screens) this.notice("Reading screens is switched off on this server.");
        break;
      case "frames":
        // Drawn with the next picture of the browser, and only then asked for more.
        requestAnimationFrame(() => this.draw(message));
        break;
      case "list":
        this.sessions = message.sessions;
        this.isListed = true;
        this.showList();
        this.traffic.sessions(this.sessions);
        this.showFacts();
        break;
      case "traffic":
        for (const event of message.events) this.traffic.take(event);
        break;
      case "reply":
        this.waiting.get(message.n)?.(message.body);
        this.waiting.delete(message.n);
        break;
    }
  }

  draw({ s, frames }) {
    for (const frame of frames) {
      if (frame.id === this.large.id) this.large.take(frame);
      else this.tiles.get(frame.id)?.small.take(frame);
    }
    this.send({ t: "ack", s });
  }

  watch() {
    const large = this.view === "large" ? this.large.id : null;
    const small = this.view === "grid" ? [...this.visible] : [];
    const wanted = JSON.stringify({ t: "watch", small, large });
    if (wanted === this.watched) return;
    this.watched = wanted;
    this.send({ t: "watch", small, large });
  }

  onVisible(entries) {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) this.visible.add(target.dataset.id);
      else this.visible.delete(target.dataset.id);
    }
    this.watch();
  }

  // Grid

  nameOf(session) {
    return session.label || session.session_id;
  }

  stateOf(session) {
    if (session.is_alive === false) {
      const how = session.signal != null ? `signal ${session.signal}` : session.exit_code != null ? `exit ${session.exit_code}` : "ended";
      return ["is-ended", how];
    }
    if (session.stale) return ["is-stale", "silent"];
    const asked = { input_line: "asks", input_secret: "asks for a secret", pager: "pager", stopped: "stopped" }[session.attention?.state];
    if (asked) return ["is-asking", asked];
    const shell = (session.shell ?? "").split("/").pop();
    const isOther = session.foreground && shell && session.foreground !== shell;
    return session.running_command || isOther ? ["is-running", "running"] : ["", "idle"];
  }

  ownerOf(session) {
    const role = session.owner_role ? ` (${session.owner_role})` : "";
    return session.owner_agent_id ? session.owner_agent_id + role : "no owner";
  }

  programOf(session) {
    return session.foreground || (session.shell ?? "").split("/").pop() || session.cli_type || "";
  }

  showList() {
    const words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = this.sessions.filter((session) => {
      const text = [this.nameOf(session), session.session_id, this.ownerOf(session), this.programOf(session), session.source, session.running_command].join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const ids = new Set(shown.map((session) => session.session_id));
    for (const [id, tile] of this.tiles) {
      if (ids.has(id)) continue;
      this.observer.unobserve(tile.item);
      this.visible.delete(id);
      tile.item.remove();
      this.tiles.delete(id);
    }
    shown.forEach((session, index) => {
      let tile = this.tiles.get(session.session_id);
      if (!tile) tile = this.newTile(session.session_id);
      this.fillTile(tile, session);
      if ($("grid").children[index] !== tile.item) $("grid").insertBefore(tile.item, $("grid").children[index] ?? null);
    });
    const alive = this.sessions.filter((session) => session.is_alive !== false).length;
    const count = words.length ? `${shown.length} of ${this.sessions.length}` : `${alive} live, ${this.sessions.length} in all`;
    if ($("count").textContent !== count) $("count").textContent = count;
    $("empty").hidden = this.sessions.length > 0;
    this.watch();
  }

  newTile(id) {
    const item = document.createElement("li");
    item.className = "tile";
    item.dataset.id = id;
    item.innerHTML =
      '<a><div class="tile-head"><span class="dot"></span><strong></strong><span class="program"></span></div>' +
      '<canvas aria-hidden="true"></canvas><div class="tile-foot"><span class="owner"></span><span class="state"></span></div></a>';
    item.firstElementChild.href = `#/session/${encodeURIComponent(id)}`;
    const tile = { item, small: new Small(item.querySelector("canvas")) };
    this.tiles.set(id, tile);
    this.observer.observe(item);
    return tile;
  }

  fillTile({ item }, session) {
    const [name, text] = this.stateOf(session);
    const owner = this.ownerOf(session);
    const program = this.programOf(session);
    set(item.querySelector("strong"), this.nameOf(session));
    set(item.querySelector(".program"), program);
    set(item.querySelector(".owner"), owner);
    set(item.querySelector(".state"), session.source === "desktop" ? `desktop · ${text}` : text);
    item.querySelector(".dot").className = `dot ${name}`;
    const label = `${this.nameOf(session)}, ${program}, ${owner}, ${text}`;
    if (item.firstElementChild.getAttribute("aria-label") !== label) item.firstElementChild.setAttribute("aria-label", label);
  }

  async create() {
    const answer = await this.call({ action: "create" });
    if (answer.ok) location.hash = `#/session/${encodeURIComponent(answer.session_id)}`;
    else this.notice(answer.message);
  }

  // Views

  route() {
    const [, view, id] = location.hash.match(/^#\/(session|traffic)?(?:\/(.+))?$/) ?? [];
    const before = this.view;
    this.view = view === "session" && id ? "large" : view === "traffic" ? "traffic" : "grid";
    for (const name of ["grid", "large", "traffic"]) $(`${name}-view`).hidden = name !== this.view;
    for (const link of document.querySelectorAll("nav a")) {
      if (link.dataset.view === this.view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    const last = this.large.id;
    if (this.view === "large") {
      this.large.show(decodeURIComponent(id));
      this.traffic.showTyped(this.large.id);
      this.showFacts();
      $("main").scrollTop = 0;
      $("term").focus({ preventScroll: true });
    } else {
      this.large.hide();
      this.traffic.showTyped(null);
    }
    this.traffic.show(this.view === "traffic");
    this.watch();
    if (before === "large" && this.view === "grid") this.tiles.get(last)?.item.firstElementChild.focus();
    document.title = this.view === "large" ? `${$("name").textContent} · kpty` : "kpty";
  }

  showFacts() {
    if (this.view !== "large") return;
    const session = this.sessions.find((one) => one.session_id === this.large.id);
    if (!session) {
      set($("name"), this.large.id);
      for (const id of ["state", "facts"]) set($(id), "");
      if (this.isListed) $("banner").textContent = "There is no such session, or not any more.";
      return;
    }
    const [name, text] = this.stateOf(session);
    set($("name"), this.nameOf(session));
    set($("state"), text);
    $("state").className = `badge ${name}`;
    const running = session.running_command ? ` · ${session.running_command}` : "";
    set($("facts"), `${this.ownerOf(session)} · ${session.source} · ${this.programOf(session)}${running}`);
    document.title = `${this.nameOf(session)} · kpty`;
  }

  onKey(event) {
    const inField = event.target.matches?.("input, select, textarea");
    if (event.key === "/" && !inField && !event.ctrlKey && !event.altKey) {
      const field = { grid: $("filter"), large: $("needle"), traffic: $("traffic-filter").elements.search }[this.view];
      event.preventDefault();
      field.focus();
    } else if (event.key === "Escape" && this.view === "large" && event.target !== $("keyboard")) {
      if (event.target === $("needle")) $("term").focus({ preventScroll: true });
      else location.hash = "#/";
    } else if (this.view === "grid" && event.target.closest?.(".tile") && event.key.startsWith("Arrow")) {
      this.moveFocus(event);
    }
  }

  moveFocus(event) {
    const items = [...$("grid").children];
    const at = items.indexOf(event.target.closest(".tile"));
    const columns = items.filter((item) => item.offsetTop === items[0].offsetTop).length;
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    const next = items[at + step];
    if (!next) return;
    event.preventDefault();
    next.firstElementChild.focus();
  }

  // Words

  /** Tells what went wrong, for a while. */
  notice(text) {
    const notice = $("notice");
    notice.textContent = text ?? "That did not work.";
    notice.hidden = false;
    clearTimeout(this.noticeEnd);
    this.noticeEnd = setTimeout(() => (notice.hidden = true), 6000);
  }

  /** Tells those who listen instead of looking. */
  say(text) {
    $("spoken").textContent = text;
  }
}

function set(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

new App();
