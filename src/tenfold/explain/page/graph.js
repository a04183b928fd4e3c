// The Trace or FlatIR as a graph in layers: groups by module path open and close, the rest is drag and wheel.

const SHOWN = 60;  // boxes that are drawn at first; one group may add a third of them
const FRAME = { side: 22, top: 18, bottom: 7 };  // around an open group; edges that pass its boxes run inside

class GraphView {
  constructor(root, program, { onPoint, onLeave, onPin }) {
    Object.assign(this, { root, program, onPoint, onLeave, onPin });
    this.which = "trace";
    this.open = new Set();
    this.built = false;
    this.metric = program.metrics[0];
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
      button("Fit", "Show all of it", () => this.fit(true)),
      button("+", "Zoom in", () => this.zoom(1.25)),
      button("−", "Zoom out", () => this.zoom(0.8)),
      button("Open all", "Open every group", () => this.openOnly(this.groups.keys())),
      button("Close all", "Close every group", () => this.openOnly([])),
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
    const down = new Map();  // where each finger, or the mouse, is
    const inside = ({ clientX, clientY }) => {
      const box = this.svg.getBoundingClientRect();
      return { x: clientX - box.left, y: clientY - box.top };
    };
    const middle = () => {
      const all = [...down.values()], mean = (values) => total(values) / values.length;
      const x = mean(all.map((each) => each.x)), y = mean(all.map((each) => each.y));
      return { x, y, spread: mean(all.map((each) => Math.hypot(each.x - x, each.y - y))) };
    };
    this.svg.addEventListener("pointerdown", (event) => { down.set(event.pointerId, inside(event)); });
    addEventListener("pointermove", (event) => {
      if (!down.has(event.pointerId)) return;
      const before = middle();
      down.set(event.pointerId, inside(event));
      const now = middle();
      if (Math.abs(now.x - before.x) + Math.abs(now.y - before.y) > 3) this.dragged = true;
      this.view.x += now.x - before.x;
      this.view.y += now.y - before.y;
      if (before.spread && now.spread) { this.dragged = true; this.zoom(now.spread / before.spread, now.x, now.y); }
      this.place();
    });
    for (const end of ["pointerup", "pointercancel"]) {
      addEventListener(end, (event) => { down.delete(event.pointerId); setTimeout(() => { this.dragged = false; }); });
    }
    new ResizeObserver(() => {  // keep what is in the middle there
      const { width } = this.svg.getBoundingClientRect();
      if (!width || !this.view) return;
      if (this.width) { this.view.x += (width - this.width) / 2; this.place(); }
      this.width = width;
    }).observe(this.svg);
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
      if (event.key === "0") this.fit(true);
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
      const ops = flat ? [i] : this.program.opsOf[i];
      return { id: i, label: part.op, sub: part.types[0] ?? "", inputs: part.inputs, path, ops };
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

  openOnly(paths) {
    this.open = new Set(paths);
    this.draw();
    this.fit();
  }

  // Open groups from the outside in, as long as the picture stays readable. Numbered neighbours, such as the
  // blocks h.0, h.1, …, are alike: they open together or not at all.
  openSome() {
    const alike = new Map();
    for (const [path, size] of this.groups) {
      const parts = path.split("."), last = parts.pop(), outer = parts.join(".");
      const key = /^\d+$/.test(last) ? `${outer}.#` : path;
      if (!alike.has(key)) alike.set(key, { outer, depth: parts.length, paths: [] });
      if (size > 1) alike.get(key).paths.push(path);
    }
    const boxes = () => new Set(this.items.map((item) => this.boxOf(item))).size;
    let shown = boxes();
    for (const { outer, paths } of [...alike.values()].sort((a, b) => a.depth - b.depth)) {
      if (!paths.length || (outer && !this.open.has(outer))) continue;
      paths.forEach((path) => this.open.add(path));
      const now = boxes();
      if (now <= SHOWN && now - shown <= SHOWN / 3) shown = now;
      else paths.forEach((path) => this.open.delete(path));
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
    this.framed = this.frames();
    const frames = this.framed.map(({ path, left, right, top, bottom }) =>
      svg("rect", { class: "frame", x: left, y: top, width: right - left, height: bottom - top, "data-path": path }));
    const titles = this.framed.map((frame) => this.frameTitle(frame));  // over the edges
    this.layer.replaceChildren(...frames, ...paths, ...titles, ...boxes.map((box) => this.box(box)));
    this.words.textContent = `${count(boxes.length)} box${boxes.length === 1 ? "" : "es"} for ${count(this.items.length)} ${this.which === "flat" ? "ops" : "nodes"}`;
    this.found = [];
    this.view ??= { x: 0, y: 0, k: 1 };
    this.place();
    this.show(this.selection);
    this.bars(this.metric);
  }

  // Open groups whose boxes lie apart from all others, the outer ones first.
  frames() {
    const inside = (path, box) => `${this.items[box.items[0]].path.join(".")}.`.startsWith(`${path}.`);
    const made = [];
    const deepestFirst = [...this.open].sort((a, b) => b.split(".").length - a.split(".").length);
    for (const path of deepestFirst) {
      const own = this.boxes.filter((box) => (box.group ? box.path !== path : true) && inside(path, box));
      if (own.length < 2 || own.length === this.boxes.length) continue;
      const parts = [...own.map(reach), ...made.filter((frame) => frame.path.startsWith(`${path}.`))];
      const frame = {
        path,
        left: Math.min(...parts.map((part) => part.left)) - FRAME.side,
        right: Math.max(...parts.map((part) => part.right)) + FRAME.side,
        top: Math.min(...parts.map((part) => part.top)) - FRAME.top,
        bottom: Math.max(...parts.map((part) => part.bottom)) + FRAME.bottom,
      };
      const others = this.boxes.filter((box) => !own.includes(box)).map(reach);
      others.push(...made.filter((each) => !each.path.startsWith(`${path}.`)));
      if (!others.some((other) => overlap(frame, other))) made.push(frame);
    }
    return made.reverse();
  }

  frameTitle({ path, left, top }) {
    const label = svg("text", {
      class: "frame-title", x: left + 8, y: top + 13, tabindex: "0", role: "button", "aria-label": `Close the group ${path}`,
    });
    label.textContent = `▾ ${path.split(".").slice(-2).join(".")}`;
    const close = () => { if (!this.dragged) { this.open.delete(path); this.draw(); } };
    label.addEventListener("click", close);
    label.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); event.stopPropagation(); close(); }
    });
    return label;
  }

  // What each box costs, as a share of the dearest.
  bars(metric) {
    this.metric = metric;
    if (!this.built || !this.boxes || !metric) return;
    const { of, text, title } = METRICS[metric];
    const costs = this.boxes.map((box) =>
      total(box.items.flatMap((item) => this.items[item].ops.map((op) => of(this.program.ops[op])))));
    const most = costs.reduce((a, b) => Math.max(a, b), 0);
    this.boxes.forEach((box, i) => {
      const share = most ? costs[i] / most : 0;
      box.bar.setAttribute("width", share > 10 * NEGLIGIBLE ? Math.max(2, share * (box.width - 12)) : 0);
      box.tip.textContent = box.about + (costs[i] ? `\n${title}: ${text(costs[i])}` : "");
    });
  }

  box(box) {
    const made = svg("g", { class: `node${box.group ? " group" : ""}`, transform: `translate(${box.x},${box.y})`, tabindex: "0", role: "button" });
    const around = this.around(box);
    made.setAttribute("aria-label", `${box.label}, ${box.sub}${box.group ? ", closed group: Enter opens it" : ""}${around ? ", Backspace closes the group around it" : ""}`);
    made.append(svg("rect", { x: -box.width / 2, y: 0, width: box.width, height: BOX.height }));
    const label = svg("text", { y: 16 }), sub = svg("text", { y: 30, class: "sub" });
    label.textContent = box.group ? `▸ ${box.short}` : box.short;
    sub.textContent = box.sub.slice(0, 28);
    box.bar = svg("rect", { class: "cost", x: 6 - box.width / 2, y: BOX.height - 5, width: 0, height: 3 });
    box.tip = svg("title");
    box.about = `${box.group ? box.path : box.label} ${box.sub}${around ? `\nin ${around}: double-click to close it` : ""}`;
    made.append(label, sub, box.bar, box.tip);
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
    this.found = [];
    for (const box of this.boxes) {
      const hit = Boolean(wanted) && box.items.some((item) => {
        const { label, sub, path } = this.items[item];
        return `${label} ${sub} ${path.join(".")}`.toLowerCase().includes(wanted);
      });
      box.element.classList.toggle("found", hit);
      if (hit) this.found.push(box);
    }
    this.found.sort((a, b) => a.y - b.y || a.x - b.x);
    if (this.found.length) this.centre(this.found[0]);
  }

  // The next box that was found, beginning again after the last.
  nextHit(forward) {
    if (!this.found?.length) return;
    const here = this.found.indexOf(this.centred), { length } = this.found;
    this.centre(this.found[(here + (forward ? 1 : -1) + length) % length]);
  }

  centre(box) {
    this.centred = box;
    const size = this.svg.getBoundingClientRect();
    this.view.x = size.width / 2 - box.x * this.view.k;
    this.view.y = size.height / 2 - box.y * this.view.k;
    this.place();
  }

  // All of it, or at first as much as can be read.
  fit(all = false) {
    const size = this.svg.getBoundingClientRect();
    if (!this.boxes?.length || !size.width) return;
    const parts = [...this.boxes.map(reach), ...this.framed];
    const left = Math.min(...parts.map((part) => part.left)), right = Math.max(...parts.map((part) => part.right));
    const top = Math.min(...parts.map((part) => part.top)), bottom = Math.max(...parts.map((part) => part.bottom));
    const whole = Math.min(size.width / (right - left + 40), size.height / (bottom - top + 40));
    // Text that is too small to read is no use: a tall graph starts at its top.
    const readable = Math.min(0.9, size.width / (right - left + 40)) || 0.1;
    const k = Math.min(1.2, all ? whole : Math.max(whole, readable));
    this.view = { k, x: size.width / 2 - ((left + right) / 2) * k };
    this.view.y = k > whole ? 16 - top * k : (size.height - (top + bottom) * k) / 2;
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
