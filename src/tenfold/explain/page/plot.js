// Memory over the program: what is alive while each instruction runs.

const SVG = "http://www.w3.org/2000/svg";

function svg(name, attributes = {}) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const BAND = 26;  // of a hundred, for arguments that would take up more than half of the plot
const NAMED = 4;  // of the ops whose results make the peak
const SLIGHT = 0.01;  // of the peak, which is not worth a name

class MemoryPlot {
  constructor(root, program, reactions) {
    this.root = root;
    this.program = program;
    root.replaceChildren();
    const memory = program.memory;
    if (!memory || memory.live.length < 2) return;
    this.most = Math.max(...memory.live, 1);
    this.count = memory.live.length;
    this.svg = svg("svg", { viewBox: `0 0 ${this.count} 100`, preserveAspectRatio: "none", role: "img" });
    this.svg.setAttribute("aria-label", `${this.facts()}.`);
    this.on = svg("g");
    this.cursor = svg("line", { class: "cursor", y1: 0, y2: 100, x1: -1, x2: -1 });
    const floor = this.height(memory.arguments);
    this.svg.append(
      this.on,
      svg("rect", { class: "base", x: 0, y: floor, width: this.count, height: 100 - floor }),
      svg("path", { class: "area", d: this.path() }),
      this.cursor,
    );
    const plot = document.createElement("div");
    plot.className = "plot";
    plot.append(this.svg, label(bytesText(this.most), "top: 2px"));
    if (100 - floor >= BAND * 0.75) plot.append(label(`arguments ${bytesText(memory.arguments)}`, "bottom: 3px"));
    root.append(this.head(reactions), plot);
    this.listen(reactions);
  }

  head(reactions) {
    const head = document.createElement("header"), title = document.createElement("h2");
    title.textContent = "Memory";
    this.words = document.createElement("p");
    this.words.textContent = this.summary();
    this.named = document.createElement("span");
    this.named.className = "holders";
    for (const holder of this.holders()) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = `${this.name(holder)} ${bytesText(holder.bytes)}`;
      button.title = `${count(holder.buffers)} buffer${holder.buffers === 1 ? "" : "s"}, the largest: `
        + this.program.stage("hlo").lines[holder.line].trim().slice(0, 200);
      const [key, line] = holder.node < 0
        ? ["hlo", holder.line]
        : ["trace", this.program.stage("trace").of.get(holder.node)[0]];
      button.addEventListener("pointerenter", () => reactions.onPoint(key, line));
      button.addEventListener("pointerleave", reactions.onLeave);
      button.addEventListener("click", () => reactions.onPin(key, line));
      this.named.append(button);
    }
    head.append(title, this.words, this.named);
    return head;
  }

  listen({ onPoint, onLeave, onPin }) {
    const { lines } = this.program.memory;
    const lineAt = (event) => {
      const box = this.svg.getBoundingClientRect();
      const place = Math.floor(((event.clientX - box.left) / box.width) * this.count);
      return lines[Math.min(this.count - 1, Math.max(0, place))];
    };
    this.svg.addEventListener("pointermove", (event) => onPoint("hlo", lineAt(event)));
    this.svg.addEventListener("pointerleave", onLeave);
    this.svg.addEventListener("click", (event) => onPin("hlo", lineAt(event)));
  }

  // What makes most of the peak.
  holders() {
    return this.program.holders.filter(({ bytes }) => bytes >= SLIGHT * this.most).slice(0, NAMED);
  }

  // The Trace node whose results are held, or the instructions that came from none.
  name({ node, line, buffers }) {
    if (node >= 0) return `${this.program.nodes[node].name} ${this.program.nodes[node].op}`;
    if (buffers > 1) return `${count(buffers)} copies of XLA's own`;
    return this.program.stage("hlo").lines[line].trim().replace(/^ROOT /, "").split(" = ")[0];
  }

  // Where a number of bytes lies, from the top. Arguments, which never change, do not squeeze the rest.
  height(bytes) {
    const given = this.program.memory.arguments;
    if (given <= this.most / 2) return 100 - (100 * bytes) / this.most;
    if (bytes <= given) return 100 - (BAND * bytes) / given;
    return (100 - BAND) * (1 - (bytes - given) / (this.most - given));
  }

  path() {
    const steps = this.program.memory.live.map((bytes, i) => {
      const y = this.height(bytes).toFixed(2);
      return `L${i} ${y}L${i + 1} ${y}`;
    });
    return `M0 100${steps.join("")}L${this.count} 100Z`;
  }

  summary() {
    return this.holders().length ? `${this.facts()}. Most is held for:` : `${this.facts()}.`;
  }

  facts() {
    const { live, arguments: given } = this.program.memory, { held } = this.program;
    const most = `At most ${bytesText(this.most)} alive, at instruction ${count(live.indexOf(this.most) + 1)} of ${count(live.length)}`;
    // XLA places results over what they were computed from, and rounds buffers up.
    const allocated = held && bytesText(held) !== bytesText(this.most) ? `; XLA allocates ${bytesText(held)}` : "";
    return `${most}; ${bytesText(given)} of it arguments${allocated}`;
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
      : `${bytesText(this.program.memory.live[place])} alive while instruction ${count(place + 1)} of ${count(this.count)} runs. At the peak, most is held for:`;
  }
}

function label(text, place) {
  const made = document.createElement("span");
  made.textContent = text;
  made.style.cssText = place;
  return made;
}
