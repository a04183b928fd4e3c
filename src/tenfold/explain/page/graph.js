// The Trace or FlatIR as a graph in layers: groups by module path open and close, the rest is drag and wheel.

const BOX = { height: 38, gapX: 18, gapY: 34 };
const BESIDE = 14, FAR = 900;  // how near an edge passes boxes, and how far out of its way it goes for them
const WIDEST = 14;  // boxes in a row
const SHOWN = 60;  // boxes that are drawn before groups start out closed

class GraphView {
  constructor(root, program, { onPoint, onLeave, onPin }) {
    Object.assign(this, { root, program, onPoint, onLeave, onPin });
    this.which = "trace";
    this.open = new Set();
    this.built = false;
  }

  // Drawn when it is first seen: laying out costs time.
  build() {
    if (this.built) return;
    this.built = true;
    const bar = document.createElement("div");
    bar.className = "bar";
    const choice = document.createElement("select");
    choice.id = "graph-stage";
    choice.setAttribute("aria-label", "Which graph");
    for (const [key, title] of [["trace", "Trace"], ["flat", "FlatIR"]]) choice.append(new Option(title, key));
    choice.addEventListener("change", () => { this.which = choice.value; this.start(); });
    const button = (text, title, action) => {
      const made = document.createElement("button");
      made.type = "button";
      made.textContent = text;
      made.title = title;
      made.addEventListener("click", action);
      return made;
    };
    this.words = document.createElement("span");
    bar.append(
      choice,
      button("Fit", "Show all of it", () => this.fit()),
      button("+", "Zoom in", () => this.zoom(1.25)),
      button("−", "Zoom out", () => this.zoom(0.8)),
      button("Open all", "Open every group", () => { this.groups.forEach((_, path) => this.open.add(path)); this.draw(); }),
      button("Close all", "Close every group", () => { this.open.clear(); this.draw(); }),
      this.words,
    );
    this.svg = svg("svg", { role: "group", "aria-label": "Graph of the program", tabindex: "0" });
    this.layer = svg("g");
    this.svg.append(this.layer);
    this.root.replaceChildren(bar, this.svg);
    this.listen();
    this.start();
  }

  listen() {
    let drag = null;
    this.svg.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, y: event.clientY, moved: false };
    });
    addEventListener("pointermove", (event) => {
      if (!drag) return;
      const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
      if (Math.abs(dx) + Math.abs(dy) > 3) this.dragged = true;
      this.view.x += dx;
      this.view.y += dy;
      Object.assign(drag, { x: event.clientX, y: event.clientY });
      this.place();
    });
    addEventListener("pointerup", () => { drag = null; setTimeout(() => { this.dragged = false; }); });
    this.svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = this.svg.getBoundingClientRect();
      this.zoom(Math.exp(-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top);
    }, { passive: false });
    this.svg.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
      if (move) { this.view.x += move[0]; this.view.y += move[1]; this.place(); event.preventDefault(); }
      if (event.key === "+" || event.key === "=") this.zoom(1.25);
      if (event.key === "-") this.zoom(0.8);
      if (event.key === "0") this.fit();
    });
  }

  start() {
    const flat = this.which === "flat";
    const parts = flat ? this.program.ops : this.program.traceNodes;
    // A FlatIR op lies in the group of its node, which lies in those of its module.
    this.items = parts.map((part, i) => {
      const node = flat ? this.program.nodes[part.nodes[part.nodes.length - 1]] : part;
      const path = node?.module ? node.module.split(".") : [];
      if (flat && node) path.push(`${node.name} ${node.op}`);
      return { id: i, label: part.op, sub: part.types[0] ?? "", inputs: part.inputs, path };
    });
    this.groups = new Map();
    for (const item of this.items) {
      for (let depth = 1; depth <= item.path.length; depth += 1) {
        const key = item.path.slice(0, depth).join(".");
        this.groups.set(key, (this.groups.get(key) ?? 0) + 1);
      }
    }
    this.open = new Set();
    if (this.items.length <= SHOWN) this.groups.forEach((_, path) => this.open.add(path));
    else this.openSome();
    this.draw();
    this.fit();
  }

  // Open groups from the outside in, a depth at a time, as long as the picture stays readable.
  openSome() {
    const deepest = Math.max(0, ...this.items.map((item) => item.path.length));
    for (let depth = 1; depth <= deepest; depth += 1) {
      const added = [...this.groups.keys()].filter((path) => path.split(".").length === depth);
      added.forEach((path) => this.open.add(path));
      if (new Set(this.items.map((item) => this.boxOf(item))).size <= SHOWN) continue;
      added.forEach((path) => this.open.delete(path));
      return;
    }
  }

  // The innermost open group that a box lies in.
  around(box) {
    const { path } = this.items[box.items[0]];
    const inside = box.group ? box.path.split(".").length - 1 : path.length;
    for (let depth = inside; depth > 0; depth -= 1) {
      const key = path.slice(0, depth).join(".");
      if (this.open.has(key) && this.groups.get(key) > 1) return key;
    }
    return "";
  }

  // The outermost closed group that an item lies in, or the item itself.
  boxOf(item) {
    for (let depth = 1; depth <= item.path.length; depth += 1) {
      const key = item.path.slice(0, depth).join(".");
      if (!this.open.has(key) && this.groups.get(key) > 1) return `g:${key}`;
    }
    return `i:${item.id}`;
  }

  visible() {
    const boxes = new Map(), edges = new Map();
    for (const item of this.items) {
      const key = this.boxOf(item);
      if (!boxes.has(key)) {
        const group = key.startsWith("g:");
        const path = key.slice(2);
        boxes.set(key, {
          key, group, path, items: [],
          label: group ? path.split(".").slice(-2).join(".") : item.label,
          sub: group ? "" : item.sub,
        });
      }
      boxes.get(key).items.push(item.id);
    }
    for (const box of boxes.values()) if (box.group) box.sub = `${count(box.items.length)} ${this.which === "flat" ? "ops" : "nodes"}`;
    for (const item of this.items) {
      const to = this.boxOf(item);
      for (const input of item.inputs) {
        const from = this.boxOf(this.items[input]);
        if (from !== to) edges.set(`${from}→${to}`, { from: boxes.get(from), to: boxes.get(to) });
      }
    }
    return { boxes: [...boxes.values()], edges: [...edges.values()] };
  }

  draw() {
    const { boxes, edges } = this.visible();
    const rows = layOut(boxes, edges);
    this.boxes = boxes;
    const paths = edges.map((edge) => {
      edge.path = svg("path", { d: curve(edge, rows) });
      return edge.path;
    });
    this.edges = edges;
    this.layer.replaceChildren(...paths, ...boxes.map((box) => this.box(box)));
    this.words.textContent = `${count(boxes.length)} boxes for ${count(this.items.length)} ${this.which === "flat" ? "ops" : "nodes"}`;
    this.view ??= { x: 0, y: 0, k: 1 };
    this.place();
    this.show(this.selection);
  }

  box(box) {
    const made = svg("g", { class: `node${box.group ? " group" : ""}`, transform: `translate(${box.x},${box.y})`, tabindex: "0", role: "button" });
    made.setAttribute("aria-label", `${box.label}, ${box.sub}${box.group ? ", closed group: Enter opens it" : ""}, Backspace closes the group around it`);
    made.append(svg("rect", { x: -box.width / 2, y: 0, width: box.width, height: BOX.height }));
    const label = svg("text", { y: 16 }), sub = svg("text", { y: 30, class: "sub" });
    label.textContent = box.group ? `▸ ${box.short}` : box.short;
    sub.textContent = box.sub.slice(0, 28);
    made.append(label, sub);
    const tip = svg("title"), around = this.around(box);
    tip.textContent = `${box.group ? box.path : box.label} ${box.sub}${around ? `\nin ${around}: double-click to close it` : ""}`;
    made.append(tip);
    const close = () => { if (around) { this.open.delete(around); this.draw(); } };
    made.addEventListener("dblclick", close);
    const selection = () => this.which === "flat" ? this.program.fromOps(box.items) : this.program.fromNodes(box.items);
    made.addEventListener("pointerenter", () => this.onPoint(selection()));
    made.addEventListener("pointerleave", () => this.onLeave());
    const act = () => {
      if (this.dragged) return;
      if (box.group) { this.open.add(box.path); this.draw(); } else this.onPin(selection());
    };
    made.addEventListener("click", act);
    made.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); event.stopPropagation(); act(); }
      if (event.key === "Backspace") { event.preventDefault(); close(); }
    });
    box.element = made;
    return made;
  }

  show(selection) {
    this.selection = selection;
    if (!this.built || !this.boxes) return;
    const chosen = selection ? (this.which === "flat" ? selection.ops : selection.nodes) : new Set();
    for (const box of this.boxes) box.lit = box.items.some((item) => chosen.has(item));
    for (const box of this.boxes) box.element.classList.toggle("lit", box.lit);
    for (const edge of this.edges) edge.path.classList.toggle("lit", edge.from.lit && edge.to.lit);
  }

  search(text) {
    if (!this.built) return;
    const wanted = text.toLowerCase();
    let first = null;
    for (const box of this.boxes) {
      const hit = Boolean(wanted) && box.items.some((item) => {
        const { label, sub, path } = this.items[item];
        return `${label} ${sub} ${path.join(".")}`.toLowerCase().includes(wanted);
      });
      box.element.classList.toggle("found", hit);
      if (hit) first ??= box;
    }
    if (first) this.centre(first);
  }

  centre(box) {
    const size = this.svg.getBoundingClientRect();
    this.view.x = size.width / 2 - box.x * this.view.k;
    this.view.y = size.height / 2 - box.y * this.view.k;
    this.place();
  }

  fit() {
    const size = this.svg.getBoundingClientRect();
    if (!this.boxes?.length || !size.width) return;
    const left = Math.min(...this.boxes.map((box) => box.x - box.width / 2));
    const right = Math.max(...this.boxes.map((box) => box.x + box.width / 2));
    const bottom = Math.max(...this.boxes.map((box) => box.y + BOX.height));
    const whole = Math.min(size.width / (right - left + 40), size.height / (bottom + 40));
    // Text that is too small to read is no use: a tall graph starts at its top.
    const k = Math.min(1.2, Math.max(whole, Math.min(0.9, size.width / (right - left + 40)) || 0.1));
    this.view = { k, x: size.width / 2 - ((left + right) / 2) * k, y: k > whole ? 16 : (size.height - bottom * k) / 2 };
    this.place();
  }

  zoom(by, x, y) {
    const size = this.svg.getBoundingClientRect();
    x ??= size.width / 2;
    y ??= size.height / 2;
    const k = Math.min(4, Math.max(0.03, this.view.k * by));
    const real = k / this.view.k;
    this.view = { k, x: x - (x - this.view.x) * real, y: y - (y - this.view.y) * real };
    this.place();
  }

  place() {
    this.layer.setAttribute("transform", `translate(${this.view.x},${this.view.y}) scale(${this.view.k})`);
  }
}

// An edge that passes rows of boxes runs beside them, on the side that is nearer; where they are too wide for
// that, behind them.
function curve({ from, to }, rows) {
  const y1 = from.y + BOX.height, y2 = to.y, bend = Math.max(14, Math.abs(y2 - y1) / 2.4);
  const between = rows.filter((row) => row.y >= y1 && row.y < y2);
  if (!between.length) return `M${from.x} ${y1}C${from.x} ${y1 + bend} ${to.x} ${y2 - bend} ${to.x} ${y2}`;
  const left = Math.min(from.x, to.x, ...between.map((row) => row.left)) - BESIDE;
  const right = Math.max(from.x, to.x, ...between.map((row) => row.right)) + BESIDE;
  const way = (side) => Math.abs(from.x - side) + Math.abs(to.x - side);
  const side = way(left) <= way(right) ? left : right;
  if (way(side) > FAR) return `M${from.x} ${y1}C${from.x} ${y1 + bend} ${to.x} ${y2 - bend} ${to.x} ${y2}`;
  const top = between[0].y, bottom = between.at(-1).y + BOX.height;
  return `M${from.x} ${y1}C${from.x} ${top - 8} ${side} ${y1 + 8} ${side} ${top}`
    + `V${bottom}C${side} ${y2 - 8} ${to.x} ${bottom + 8} ${to.x} ${y2}`;
}

// Layers by the longest way from an input, order within a layer by the neighbours' middle, then places. Returns
// how far each row reaches.
function layOut(boxes, edges) {
  for (const box of boxes) Object.assign(box, { layer: 0, into: [], out: [], waiting: 0 });
  for (const edge of edges) { edge.to.into.push(edge.from); edge.from.out.push(edge.to); edge.to.waiting += 1; }
  const ready = boxes.filter((box) => !box.waiting);
  let done = 0;
  const reached = new Set(ready);
  while (done < boxes.length) {
    // A closed group may both feed and read another: the cycle is cut where it was met first.
    if (ready.length <= done) {
      const stuck = boxes.find((box) => !reached.has(box));
      reached.add(stuck);
      ready.push(stuck);
    }
    const box = ready[done];
    done += 1;
    for (const next of box.out) {
      if (!reached.has(next)) next.layer = Math.max(next.layer, box.layer + 1);
      next.waiting -= 1;
      if (next.waiting <= 0 && !reached.has(next)) { reached.add(next); ready.push(next); }
    }
  }
  // What only feeds later layers moves down to where it is used.
  for (const box of [...ready].reverse()) {
    const nearest = Math.min(...box.out.map((next) => next.layer).filter((layer) => layer > box.layer), Infinity);
    if (!box.into.length && nearest !== Infinity) box.layer = nearest - 1;
  }
  const layers = [];
  for (const box of ready) (layers[box.layer] ??= []).push(box);
  for (const layer of layers) (layer ?? []).forEach((box, i) => { box.order = i; });
  for (let sweep = 0; sweep < 8; sweep += 1) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      if (!layer) continue;
      for (const box of layer) {
        const near = down ? box.into : box.out;
        box.middle = near.length ? total(near.map((each) => each.order)) / near.length : box.order;
      }
      layer.sort((a, b) => a.middle - b.middle).forEach((box, i) => { box.order = i; });
    }
  }
  let y = 0;
  const rows = layers.filter(Boolean).flatMap(broken);
  for (const layer of rows) {
    let x = 0;
    for (const box of layer) {
      box.short = box.label.length > 26 ? `${box.label.slice(0, 25)}…` : box.label;
      box.width = Math.max(76, 7.4 * Math.max(box.short.length + (box.group ? 2 : 0), Math.min(box.sub.length, 28) * 0.88) + 20);
      box.x = x + box.width / 2;
      x += box.width + BOX.gapX;
    }
    for (const box of layer) { box.x -= (x - BOX.gapX) / 2; box.y = y; }
    y += BOX.height + BOX.gapY;
  }
  straighten(rows);
  return rows.map((row) => ({
    y: row[0].y,
    left: Math.min(...row.map((box) => box.x - box.width / 2)),
    right: Math.max(...row.map((box) => box.x + box.width / 2)),
  }));
}

// A layer that is too wide to look at, in several rows.
function broken(layer) {
  const rows = Math.ceil(layer.length / WIDEST), size = Math.ceil(layer.length / rows);
  return Array.from({ length: rows }, (_, i) => layer.slice(i * size, (i + 1) * size));
}

// Pull boxes towards those that they read, as far as their neighbours in the layer allow.
function straighten(layers) {
  for (let sweep = 0; sweep < 4; sweep += 1) {
    for (const layer of layers) {
      const wanted = layer.map((box) => {
        const near = sweep % 2 ? box.out : box.into;
        return near.length ? total(near.map((each) => each.x)) / near.length : box.x;
      });
      layer.forEach((box, i) => { box.x = wanted[i]; });
      for (let i = 1; i < layer.length; i += 1) {
        const least = layer[i - 1].x + (layer[i - 1].width + layer[i].width) / 2 + BOX.gapX;
        if (layer[i].x < least) layer[i].x = least;
      }
      const drift = total(layer.map((box, i) => box.x - wanted[i])) / layer.length;
      for (const box of layer) box.x -= drift;
    }
  }
}
