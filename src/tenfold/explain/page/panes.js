// The panes, one for each stage, side by side.

const NARROW = 760, COMFORTABLE = 330;
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
    this.root.append(pane);
    this.panes.set(stage.key, { stage, pane, list, chip, lit });
  }

  get narrow() {
    return innerWidth <= NARROW;
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
    for (const { pane, chip } of this.panes.values()) chip.setAttribute("aria-pressed", !pane.hidden);
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
