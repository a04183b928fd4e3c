// Memory over the program: what is alive while each instruction runs.

const SVG = "http://www.w3.org/2000/svg";

function svg(name, attributes = {}) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

class MemoryPlot {
  constructor(root, program, { onPoint, onLeave, onPin }) {
    this.root = root;
    this.program = program;
    root.replaceChildren();
    const memory = program.memory;
    if (!memory || memory.live.length < 2) return;
    this.most = Math.max(...memory.live, 1);
    const head = document.createElement("header");
    const title = document.createElement("h2");
    title.textContent = "Memory";
    this.words = document.createElement("p");
    head.append(title, this.words);
    this.count = memory.live.length;
    this.svg = svg("svg", { viewBox: `0 0 ${this.count} 100`, preserveAspectRatio: "none", role: "img" });
    this.svg.setAttribute("aria-label", this.summary());
    this.on = svg("g");
    this.cursor = svg("line", { class: "cursor", y1: 0, y2: 100, x1: -1, x2: -1 });
    const floor = 100 - (100 * memory.arguments) / this.most;
    this.svg.append(
      this.on,
      svg("rect", { class: "base", x: 0, y: floor, width: this.count, height: 100 - floor }),
      svg("path", { class: "area", d: this.path() }),
      this.cursor,
    );
    root.append(head, this.svg);
    this.words.textContent = this.summary();
    const lineAt = (event) => {
      const box = this.svg.getBoundingClientRect();
      const place = Math.floor(((event.clientX - box.left) / box.width) * this.count);
      return memory.lines[Math.min(this.count - 1, Math.max(0, place))];
    };
    this.svg.addEventListener("pointermove", (event) => onPoint("hlo", lineAt(event)));
    this.svg.addEventListener("pointerleave", onLeave);
    this.svg.addEventListener("click", (event) => onPin("hlo", lineAt(event)));
  }

  path() {
    const steps = this.program.memory.live.map((bytes, i) => {
      const y = (100 - (100 * bytes) / this.most).toFixed(2);
      return `L${i} ${y}L${i + 1} ${y}`;
    });
    return `M0 100${steps.join("")}L${this.count} 100Z`;
  }

  summary() {
    const { live, holders, arguments: given } = this.program.memory;
    const top = holders.slice(0, 3).map(([line, bytes]) => {
      const text = this.program.stage("hlo").lines[line].trim().replace(/^ROOT /, "");
      return `${text.split(" = ")[0]} (${bytesText(bytes)})`;
    });
    const most = `At most ${bytesText(this.most)} alive, at instruction ${live.indexOf(this.most) + 1} of ${live.length}`;
    return `${most}; ${bytesText(given)} of it arguments${top.length ? `; largest: ${top.join(", ")}` : ""}.`;
  }

  show(selection, line) {
    if (!this.svg) return;
    const lines = selection ? this.program.linesLit(this.program.stage("hlo"), selection) : new Set();
    const marks = [];
    for (const each of lines) {
      const place = this.program.placeOf.get(each);
      if (place !== undefined) marks.push(svg("rect", { class: "on", x: place, y: 0, width: 1, height: 100 }));
    }
    this.on.replaceChildren(...marks);
    const place = line === undefined ? undefined : this.program.placeOf.get(line);
    const at = place === undefined ? -1 : place + 0.5;
    this.cursor.setAttribute("x1", at);
    this.cursor.setAttribute("x2", at);
    this.words.textContent = place === undefined
      ? this.summary()
      : `${bytesText(this.program.memory.live[place])} alive while instruction ${place + 1} of ${this.count} runs.`;
  }
}
