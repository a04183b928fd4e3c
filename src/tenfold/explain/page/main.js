// What holds the page together: what is pointed at, what is pinned, the tools at the top, the keys.

const at = (id) => document.getElementById(id);
const VIEWS = ["stages", "graph", "diff"];
const KEYS = [
  ["↑ ↓", "move in a pane; what belongs to the line lights up"],
  ["Enter", "pin the line; Enter or Esc unpins it"],
  ["Tab", "next pane"],
  ["n  N", "next or previous line that is lit"],
  ["/", "search; Enter for the next hit"],
  ["s  g  c", "stages, graph, compare"],
  ["d", "light or dark"],
  ["← → + −", "in the graph: move, zoom; Enter opens a group, Backspace closes it"],
  ["1 … 8", "show or hide a pane"],
  ["<  >", "make the pane narrower or wider"],
];

class Page {
  constructor(data) {
    this.data = data;
    this.programs = data.programs.map((raw) => new Program(raw));
    this.pinned = null;
    at("title").textContent = data.title;
    const chooser = at("program");
    this.programs.forEach((program, i) => chooser.append(new Option(program.title, i)));
    chooser.hidden = this.programs.length < 2;
    chooser.addEventListener("change", () => this.choose(Number(chooser.value)));
    at("metric").addEventListener("change", () => {
      this.panes.bars(at("metric").value);
      this.graph.bars(at("metric").value);
    });
    this.before = (data.before ?? []).map((raw) => new Program(raw));
    this.diff = new DiffView(at("diff"), this.programs, this.before);
    this.theme();
    this.tabs();
    this.searching();
    this.keys();
    NARROW.addEventListener("change", () => this.panes.choose());
    this.choose(0);
    if (this.before.length) this.show("diff");
  }

  choose(index) {
    this.program = this.programs[index];
    this.pinned = null;
    const reactions = {
      onPoint: (key, line) => this.point(key, line),
      onLeave: () => this.leave(),
      onPin: (key, line) => this.pin(key, line),
    };
    at("metric").replaceChildren(...this.program.metrics.map((key) => new Option(METRICS[key].title, key)));
    this.panes = new Panes(at("panes"), at("chips"), this.program, reactions);
    this.plot = new MemoryPlot(at("memory"), this.program, reactions);
    this.graph = new GraphView(at("graph"), this.program, {
      onPoint: (selection) => { if (!this.pinned) this.light(selection); },
      onLeave: () => this.leave(),
      onPin: (selection) => { this.pinned = { selection }; this.light(selection, { pinned: true, scroll: true }); },
    });
    this.panes.bars(at("metric").value);
    at("tab-graph").hidden = !this.program.ops.length;
    at("metric").closest("label").hidden = !this.program.ops.length || !at("diff").hidden;
    this.facts();
    this.light(null);
    // Begin where the program does: past the arguments, in the computation that runs first.
    for (const { stage, list } of this.panes.panes.values()) {
      const begin = stage.key === "hlo" ? stage.blocks.at(-1)?.[0] ?? 0 : 0;
      const first = stage.links.findIndex((linked, line) => line > begin && linked.length);
      if (first > 8) list?.start(first - 2);
    }
    if (!at("graph").hidden) this.graph.build();
  }

  facts() {
    const { ops, traceNodes, memory, device, times } = this.program;
    const facts = [
      ["Trace nodes", count(traceNodes.length)],
      ["FlatIR ops", count(ops.length)],
      ["arithmetic", flopsText(total(ops.map((op) => op.flops))), "Floating-point operations of one run"],
      ["one run", times ? timeText(times.run) : "", "Measured on inputs of zeros"],
      ["outside ops", times ? timeText(Math.max(0, times.run - total(times.ops))) : "",
        "The part of the run that belongs to no op: starting the program, and copies of XLA's own"],
      ["peak memory", memory ? bytesText(Math.max(...memory.live)) : "–", "The most that is alive at a time, arguments included"],
      ["device", device],
      ...this.program.facts,
    ].filter(([, value]) => value);
    if (!ops.length) facts.splice(0, facts.length - this.program.facts.length);
    this.factsOf(facts);
  }

  factsOf(facts) {
    at("facts").replaceChildren(...facts.map(([name, value, meaning]) => {
      const pair = document.createElement("div");
      if (meaning) pair.title = meaning;
      const dt = document.createElement("dt"), dd = document.createElement("dd");
      dt.textContent = name;
      dd.textContent = value;
      pair.append(dt, dd);
      return pair;
    }));
  }

  // What is pointed at by the next frame: a pointer passes many lines on its way.
  point(key, line) {
    this.aim = { key, line };
    this.aiming ??= requestAnimationFrame(() => {
      this.aiming = undefined;
      if (this.pinned || !this.aim) return;
      const selection = this.aim.line >= 0 ? this.program.behind(this.aim.key, this.aim.line) : null;
      this.light(selection, { from: this.aim.key, line: this.aim.line });
    });
  }

  leave() {
    this.aim = null;
    if (this.pinned) this.light(this.pinned.selection, { pinned: true, ...this.pinned });
    else this.light(null);
  }

  pin(key, line) {
    if (this.pinned && this.pinned.from === key && this.pinned.line === line) { this.unpin(); return; }
    const selection = this.program.behind(key, line);
    if (!selection.nodes.size && !selection.ops.size) { this.unpin(); return; }
    this.pinned = { selection, from: key, line };
    this.light(selection, { from: key, line, pinned: true, scroll: true });
  }

  unpin() {
    this.pinned = null;
    this.light(null);
  }

  light(selection, { from, line, pinned = false, scroll = false } = {}) {
    const any = selection && (selection.nodes.size || selection.ops.size) ? selection : null;
    this.panes.light(any, { from, pinned, scroll });
    this.plot.show(any, from === "hlo" ? line : undefined);
    this.graph.show(any);
    this.detail(any, from, line, pinned);
  }

  detail(selection, from, line, pinned) {
    const foot = at("detail");
    if (!selection) {
      const note = from !== undefined ? this.program.stage(from).extra?.[line] : "";
      foot.textContent = note || (matchMedia("(pointer: coarse)").matches
        ? "Tap a line, then choose another pane to see what came from it there."
        : "Point at a line to see what came from it in every pane; click to pin it. Press ? for the keys.");
      return;
    }
    const { nodes, ops } = this.program;
    const pieces = [];
    const add = (text, tag = "span", look = "") => {
      if (!text) return;
      const made = document.createElement(tag);
      made.textContent = text;
      made.className = look;
      pieces.push(made);
    };
    const { traceNodes } = this.program;
    const chosen = [...selection.nodes].filter((i) => nodes[i]), parts = [...selection.ops].map((i) => ops[i]).filter(Boolean);
    const own = chosen.filter((i) => i < traceNodes.length).map((i) => nodes[i]);
    const lines = chosen.filter((i) => i >= traceNodes.length).map((i) => nodes[i]);
    if (pinned) add("pinned");
    if (lines.length) add(lines.length > 3 ? `${count(lines.length)} lines` : lines.map((line) => line.name).join(", "), "b");
    lines.filter((line) => line.op).slice(0, 3).forEach((line) => add(`counted: ${line.op}`));
    if (own.length) add(own.length > 3 ? `${count(own.length)} nodes` : own.map((node) => `${node.name} = ${node.op}`).join(", "), "b");
    if (own.length === 1) add(own[0].types.slice(0, 3).join(", ") + (own[0].types.length > 3 ? ", …" : ""), "span", "types");
    else if (parts.length === 1) add(parts[0].types.join(", "), "span", "types");
    if (own.length === 1) add(this.program.sharding(chosen[0]), "span", "types");
    const modules = [...new Set(own.map((node) => node.module).filter(Boolean))];
    if (modules.length) add(`in ${modules.slice(0, 2).join(", ")}${modules.length > 2 ? ", …" : ""}`);
    if (parts.length) {
      add(`${count(parts.length)} FlatIR op${parts.length > 1 ? "s" : ""}`);
      add(flopsText(total(parts.map((op) => op.flops))));
      add(`${bytesText(total(parts.map((op) => op.bytes)))} moved`);
      const took = (op) => (this.program.times ? op.time : op.seconds);
      const all = total(ops.map(took)) || 1, some = total(parts.map(took));
      const share = `${(100 * some / all).toPrecision(some / all >= 0.1 ? 3 : 2)} % of the time`;
      add(this.program.times ? `${timeText(some)}, ${share}` : `about ${share}`);
    }
    const note = from !== undefined ? this.program.stage(from).extra?.[line] : "";
    if (note) add(note);
    foot.replaceChildren(...pieces);
  }

  theme() {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    let chosen = null;
    try { chosen = localStorage.getItem("tenfold-theme"); } catch { /* a notebook's frame has none */ }
    const apply = () => {
      document.documentElement.dataset.theme = chosen ?? (dark.matches ? "dark" : "light");
      this.panes?.light(this.pinned?.selection ?? null, { pinned: this.pinned });
    };
    dark.addEventListener("change", apply);
    at("theme").addEventListener("click", () => {
      chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
      try { localStorage.setItem("tenfold-theme", chosen); } catch { /* as above */ }
      apply();
    });
    apply();
  }

  tabs() {
    this.show = (view) => {
      for (const each of VIEWS) {
        const shown = each === view;
        at(each).hidden = !shown;
        at(`tab-${each}`).setAttribute("aria-selected", shown);
        at(`tab-${each}`).tabIndex = shown ? 0 : -1;
      }
      at("chips").hidden = view !== "stages";
      at("metric").closest("label").hidden = view === "diff" || !this.program.ops.length;
      if (view === "diff") this.diff.build();
      if (view === "graph") { this.graph.build(); this.graph.show(this.pinned?.selection ?? null); }
    };
    for (const each of VIEWS) {
      at(`tab-${each}`).addEventListener("click", () => this.show(each));
      at(`tab-${each}`).addEventListener("keydown", (event) => {
        if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
        const step = event.key === "ArrowRight" ? 1 : VIEWS.length - 1;
        const other = VIEWS[(VIEWS.indexOf(each) + step) % VIEWS.length];
        this.show(other);
        at(`tab-${other}`).focus();
      });
    }
  }

  searching() {
    const box = at("search");
    const run = () => {
      const hits = this.panes.search(box.value);
      this.graph.search(box.value);
      at("hits").textContent = box.value ? `${count(hits)} hit${hits === 1 ? "" : "s"}` : "";
      if (hits) this.panes.nextHit(true);
    };
    box.addEventListener("input", () => { clearTimeout(this.soon); this.soon = setTimeout(run, 60); });
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        (at("graph").hidden ? this.panes : this.graph).nextHit(!event.shiftKey);
      }
      if (event.key === "Escape") { box.value = ""; run(); box.blur(); event.stopPropagation(); }
    });
  }

  keys() {
    const dialog = at("keys");
    const title = document.createElement("h2");
    title.id = "keys-title";
    title.textContent = "Keys";
    const table = document.createElement("table");
    for (const [key, meaning] of KEYS) {
      const row = table.insertRow(), cell = row.insertCell();
      const press = document.createElement("kbd");
      press.textContent = key;
      cell.append(press);
      row.insertCell().textContent = meaning;
    }
    const close = document.createElement("button");
    close.textContent = "Close";
    close.addEventListener("click", () => dialog.close());
    dialog.append(title, table, close);
    at("help").addEventListener("click", () => dialog.showModal());
    addEventListener("keydown", (event) => {
      if (event.target.matches?.("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
      const actions = {
        "?": () => dialog.showModal(),
        "/": () => { event.preventDefault(); at("search").focus(); },
        Escape: () => this.unpin(),
        g: () => this.show("graph"),
        s: () => this.show("stages"),
        c: () => this.show("diff"),
        d: () => at("theme").click(),
        n: () => this.step(true),
        N: () => this.step(false),
        "<": () => this.widen(-40),
        ">": () => this.widen(40),
      };
      if (actions[event.key]) actions[event.key]();
      else if (/^[1-8]$/.test(event.key)) at("chips").children[Number(event.key) - 1]?.click();
    });
  }

  // The pane that has the keys.
  get active() {
    return this.panes.shown.find(({ pane }) => pane.contains(document.activeElement));
  }

  // Its next lit line.
  step(forward) {
    const list = this.active?.list;
    list?.next(list.lit, forward);
  }

  widen(pixels) {
    if (this.active) this.panes.widen(this.active, pixels);
  }
}

// A page that `tenfold explain --serve` gives looks for the next one.
if (location.protocol === "http:") {
  let version = null;
  const look = async () => {
    const answer = await fetch("version").catch(() => null);
    if (!answer?.ok) return;
    const now = await answer.text();
    version ??= now;
    if (now !== version) location.reload();
  };
  look();
  setInterval(look, 500);
}

unpack(at("data").textContent).then((data) => {
  globalThis.page = data.runs ? new RunsPage(data) : new Page(data);
  document.documentElement.dataset.ready = "yes";
});
