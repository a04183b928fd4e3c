// The panes, one for each stage, side by side.

const NARROW = matchMedia("(max-width: 640px)"), COMFORTABLE = 330, LEAST = 140;
const COMPILED = ["owned", "c"];  // of Purple's own compiler, whose program is not the one that was measured

class Panes {
  constructor(root, chips, program, { onPoint, onLeave, onPin }) {
    this.root = root;
    this.chips = chips;
    this.program = program;
    this.panes = new Map();
    root.replaceChildren();
    chips.replaceChildren();
    for (const stage of program.stages) this.add(stage, onPoint, onLeave, onPin);
    this.choose();
  }

  add(stage, onPoint, onLeave, onPin) {
    const pane = document.createElement("article");
    pane.className = "pane";
    pane.dataset.stage = stage.key;
    const title = document.createElement("h2");
    const label = document.createElement("span");
    label.textContent = stage.title;
    const size = document.createElement("small");
    size.textContent = stage.absent ? "" : `${count(stage.lines.length)} line${stage.lines.length === 1 ? "" : "s"}`;
    const lit = document.createElement("button");
    lit.type = "button";
    lit.className = "lit-count";
    lit.hidden = true;
    lit.title = "Go to the next lit line";
    title.append(label, size, lit);
    pane.append(title);
    let list = null;
    if (stage.absent) {
      const why = document.createElement("p");
      why.className = "absent";
      why.textContent = stage.absent;
      pane.append(why);
    } else {
      list = new LineList({
        stage,
        onPoint: (line) => onPoint(stage.key, line),
        onLeave,
        onPin: (line) => onPin(stage.key, line),
      });
      lit.addEventListener("click", () => list.next(list.lit));
      pane.append(list.element);
    }
    const chip = document.createElement("button");
    chip.type = "button";
    chip.textContent = stage.title;
    chip.dataset.stage = stage.key;
    if (stage.absent) chip.title = stage.absent;
    chip.addEventListener("click", () => this.toggle(stage.key));
    this.chips.append(chip);
    const entry = { stage, pane, list, chip, lit, divider: this.divider() };
    this.root.append(entry.divider, pane);
    this.panes.set(stage.key, entry);
  }

  get narrow() {
    return NARROW.matches;
  }

  get shown() {
    return [...this.panes.values()].filter(({ pane }) => !pane.hidden);
  }

  // Stands before a pane: dragged, it moves the border between that pane and the one before.
  divider() {
    const made = document.createElement("div");
    made.className = "divider";
    made.title = "Drag to resize the panes, double-click to make them equal";
    let last = null;
    made.addEventListener("pointerdown", (event) => {
      made.setPointerCapture(event.pointerId);
      last = event.clientX;
    });
    made.addEventListener("pointermove", (event) => {
      if (last === null) return;
      const after = this.shown.findIndex(({ divider }) => divider === made);
      last += this.widen(this.shown[after - 1], event.clientX - last);
    });
    for (const end of ["pointerup", "pointercancel"]) made.addEventListener(end, () => { last = null; });
    made.addEventListener("dblclick", () => {
      for (const { pane } of this.panes.values()) pane.style.flexGrow = pane.style.minWidth = "";
    });
    return made;
  }

  // Give a pane some pixels of the next one, the last pane those of the one before; how many it was given.
  widen(entry, pixels) {
    const place = this.shown.indexOf(entry), other = this.shown[place + 1] ?? this.shown[place - 1];
    if (!other) return 0;
    const panes = [entry.pane, other.pane], [width, given] = panes.map((pane) => pane.offsetWidth);
    const step = Math.max(Math.min(0, LEAST - width), Math.min(pixels, Math.max(0, given - LEAST)));
    const grow = total(panes.map((pane) => Number(getComputedStyle(pane).flexGrow)));
    [width + step, given - step].forEach((wanted, i) => {
      Object.assign(panes[i].style, { minWidth: `${LEAST}px`, flexGrow: (grow * wanted) / (width + given) });
    });
    return step;
  }

  // As many panes as fit, in an order that a newcomer would read them in; on a phone, one at a time.
  choose() {
    const wanted = ["source", "owned", "c", "trace", "sharding", "flat", "hlo", "stablehlo", "torch"];
    const there = [...this.panes.values()].filter(({ stage }) => !stage.absent).map(({ stage }) => stage.key);
    const room = this.narrow ? 1 : Math.max(2, Math.floor((innerWidth - 32) / COMFORTABLE));
    const chosen = wanted.filter((key) => there.includes(key)).slice(0, room);
    for (const [key, { pane }] of this.panes) pane.hidden = !chosen.includes(key);
    this.mark();
  }

  toggle(key) {
    const { pane } = this.panes.get(key);
    if (this.narrow) for (const each of this.panes.values()) each.pane.hidden = each.pane !== pane;
    else pane.hidden = !pane.hidden;
    this.mark();
    this.panes.get(key).list?.revealLit();
  }

  reveal(key) {
    if (this.panes.get(key)?.pane.hidden) this.toggle(key);
  }

  mark() {
    const [first] = this.shown;
    for (const entry of this.panes.values()) {
      entry.chip.setAttribute("aria-pressed", !entry.pane.hidden);
      entry.divider.hidden = this.narrow || entry.pane.hidden || entry === first;
    }
  }

  // Light what was selected, everywhere but where the pointer is scroll to it if it is out of sight.
  light(selection, { pinned, scroll, from }) {
    this.root.classList.toggle("pinned", Boolean(pinned));
    for (const [key, { stage, list, lit }] of this.panes) {
      if (!list) continue;
      const lines = selection ? this.program.linesLit(stage, selection) : new Set();
      list.show({ lit: lines });
      lit.hidden = !lines.size;
      lit.textContent = lines.size ? `${count(lines.size)} lit` : "";
      if (scroll && key !== from) list.revealLit();
    }
  }

  bars(metric) {
    if (!this.program.ops.length) return;
    for (const { stage, list } of this.panes.values()) {
      if (!COMPILED.includes(stage.key)) list?.cost(this.program.costs(stage, metric), METRICS[metric].text);
    }
  }

  // Lines that hold a text, in every stage; how many there are.
  search(text) {
    let hits = 0;
    const wanted = text.toLowerCase();
    for (const { stage, list } of this.panes.values()) {
      if (!list) continue;
      const found = new Set();
      if (wanted) stage.lines.forEach((line, i) => { if (line.toLowerCase().includes(wanted)) found.add(i); });
      list.show({ found });
      hits += found.size;
    }
    return hits;
  }

  nextHit(forward) {
    for (const { pane, list } of this.panes.values()) {
      if (!pane.hidden && list?.found.size) list.next(list.found, forward);
    }
  }
}
