// A long list of lines of which only those in sight are drawn, with a ruler that shows where the lit ones are.

const ROW = 20, SPARE = 12;
const NEGLIGIBLE = 0.0004;  // a share of the dearest line's cost

const TOKENS = /(#.*|\/\/.*|(?<=^|\s);.*|\/\*.*?\*\/)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(%[\w.$-]+|@\w+)|(^(?:inputs|outputs)(?=:$)|(?<![\w-])(?:def|return|import|from|for|in|if|else|elif|while|with|as|class|lambda|not|and|or|is|None|True|False|module|func\.func|ROOT|ENTRY|static|const|void|int|define|let|set!|loop)(?![\w-]))|(\b(?:tensor<[^>]*>|vtensor<[^>]*>|[fsuc]\d+\[[^\]]*\](?:\{[^}]*\})?|bf16\[[^\]]*\](?:\{[^}]*\})?|pred\[[^\]]*\])|!torch\.\w+(?:<[^>]*>)?|\[shape=\([^)]*\), dtype=\([^)]*\), loc=\([^)]*\)\])|(\b\d[\w.]*)/g;
const KINDS = ["c", "s", "v", "k", "t", "d"];

// What would turn the text after it around is written out, so that a line reads as it is compiled.
const TURNING = /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const writtenOut = (letter) => `\\u${letter.charCodeAt(0).toString(16)}`;

// A line in colours: each piece goes in as text, so nothing in it can be markup.
function coloured(line, into) {
  const text = line.replace(TURNING, writtenOut);
  const limit = 240;  // what is further to the right is rarely looked at
  let last = 0;
  const head = text.length > limit ? text.slice(0, limit) : text;
  for (const match of head.matchAll(TOKENS)) {
    if (match.index > last) into.append(head.slice(last, match.index));
    const piece = document.createElement("span");
    piece.className = KINDS[match.slice(1).findIndex((group) => group !== undefined)];
    piece.textContent = match[0];
    into.append(piece);
    last = match.index + match[0].length;
  }
  into.append(text.slice(last));
}

class LineList {
  constructor({ stage, onPoint, onLeave, onPin }) {
    this.stage = stage;
    this.lines = stage.lines;
    this.lit = new Set();
    this.found = new Set();
    this.costs = [];
    this.most = 0;
    this.current = -1;
    this.pool = new Map();
    this.heads = new Set(stage.key === "source" ? stage.blocks.map(([line]) => line) : []);
    this.element = document.createElement("div");
    this.element.className = "body";
    this.scroller = document.createElement("div");
    this.numbered = Boolean(stage.numbers?.length) || COMPILED.includes(stage.key);
    this.scroller.className = `list${this.numbered ? " numbered" : ""}`;
    this.scroller.tabIndex = 0;
    this.scroller.setAttribute("role", "listbox");
    this.scroller.setAttribute("aria-label", `${stage.title}, ${stage.lines.length} lines`);
    this.inner = document.createElement("div");
    this.inner.style.height = `${this.lines.length * ROW + 8}px`;
    const widest = this.lines.reduce((most, line) => Math.max(most, line.length), 0);
    this.inner.style.width = `calc(${Math.min(widest, 2100)}ch + 130px)`;
    this.scroller.append(this.inner);
    this.ruler = document.createElement("canvas");
    this.ruler.className = "ruler";
    this.ruler.setAttribute("aria-hidden", "true");
    this.element.append(this.scroller, this.ruler);
    this.onPoint = onPoint;
    this.listen(onPoint, onLeave, onPin);
  }

  listen(onPoint, onLeave, onPin) {
    this.scroller.addEventListener("scroll", () => this.schedule(), { passive: true });
    const lineAt = (event) => {
      const row = event.target.closest?.(".row");
      return row ? Number(row.dataset.line) : -1;
    };
    this.scroller.addEventListener("pointermove", (event) => {
      const line = lineAt(event);
      if (event.pointerType !== "touch" && line !== this.hovered) { this.hovered = line; onPoint(line); }
    });
    this.scroller.addEventListener("pointerleave", () => { this.hovered = undefined; onLeave(); });
    this.scroller.addEventListener("click", (event) => {
      const line = lineAt(event);
      if (line >= 0) { this.move(line); onPin(line); }
    });
    this.scroller.addEventListener("keydown", (event) => this.key(event, onPoint, onPin));
    this.ruler.addEventListener("click", (event) => {
      const share = event.offsetY / this.ruler.clientHeight;
      this.scroller.scrollTop = share * this.lines.length * ROW - this.scroller.clientHeight / 2;
    });
    new ResizeObserver(() => {
      if (this.beginning && this.scroller.clientHeight) { this.scroller.scrollTop = this.beginning; this.beginning = 0; }
      this.schedule();
      this.drawRuler();
    }).observe(this.scroller);
  }

  key(event, onPoint, onPin) {
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in steps && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      this.move(Math.min(this.lines.length - 1, Math.max(0, this.current + steps[event.key])));
      onPoint(this.current);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (this.current >= 0) onPin(this.current);
    }
  }

  move(line) {
    const before = this.pool.get(this.current);
    this.current = line;
    for (const row of [before, this.pool.get(line)]) if (row) this.paint(row);
    this.reveal(line, false);
    this.schedule();
  }

  reveal(line, centred = true) {
    const top = line * ROW, { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop || top + ROW > scrollTop + clientHeight) {
      this.scroller.scrollTop = centred ? top - clientHeight / 3 : top < scrollTop ? top : top + ROW - clientHeight;
    }
  }

  // Begin with a line at the top, as soon as there is a size to scroll in.
  start(line) {
    this.beginning = line * ROW;
  }

  // Scroll to the first lit line, unless one is in sight.
  revealLit() {
    if (!this.lit.size) return;
    const { scrollTop, clientHeight } = this.scroller;
    const lines = [...this.lit].sort((a, b) => a - b);
    const seen = lines.some((line) => line * ROW >= scrollTop && (line + 1) * ROW <= scrollTop + clientHeight);
    if (!seen) this.reveal(lines[0]);
  }

  next(lines, forward = true) {
    const sorted = [...lines].sort((a, b) => a - b);
    if (!sorted.length) return;
    const here = this.current >= 0 ? this.current : Math.floor(this.scroller.scrollTop / ROW) - 1;
    const after = forward ? sorted.find((line) => line > here) : sorted.findLast((line) => line < here);
    this.move(after ?? (forward ? sorted[0] : sorted.at(-1)));
  }

  // What each line costs, and how that is written.
  cost(costs, write) {
    Object.assign(this, { costs, write, most: costs.reduce((a, b) => Math.max(a, b), 0) });
    this.scroller.classList.toggle("costed", this.most > 0);
    this.show({});
  }

  show({ lit = this.lit, found = this.found }) {
    Object.assign(this, { lit, found });
    for (const row of this.pool.values()) this.paint(row);
    this.schedule();
    this.ruled ??= requestAnimationFrame(() => { this.ruled = undefined; this.drawRuler(); });
  }

  schedule() {
    this.frame ??= requestAnimationFrame(() => { this.frame = undefined; this.draw(); });
  }

  draw() {
    const { scrollTop, clientHeight } = this.scroller;
    const first = Math.max(0, Math.floor(scrollTop / ROW) - SPARE);
    const last = Math.min(this.lines.length, Math.ceil((scrollTop + clientHeight) / ROW) + SPARE);
    for (const [line, row] of this.pool) {
      if (line < first || line >= last) { row.remove(); this.pool.delete(line); }
    }
    const fresh = document.createDocumentFragment();
    for (let line = first; line < last; line += 1) {
      if (!this.pool.has(line)) fresh.append(this.row(line));
    }
    this.inner.append(fresh);
    this.scroller.setAttribute("aria-activedescendant", this.pool.has(this.current) ? this.pool.get(this.current).id : "");
  }

  row(line) {
    const row = document.createElement("div");
    row.id = `${this.stage.key}-${line}`;
    row.dataset.line = line;
    row.style.top = `${line * ROW}px`;
    row.setAttribute("role", "option");
    row.setAttribute("aria-posinset", line + 1);
    row.setAttribute("aria-setsize", this.lines.length);
    const number = document.createElement("span"), figure = document.createElement("span");
    number.className = "n";
    number.setAttribute("aria-hidden", "true");
    if (this.numbered) number.textContent = this.stage.numbers?.length ? this.stage.numbers[line] || "" : line + 1;
    figure.className = "f";
    row.append(number, figure);
    coloured(this.lines[line], row);
    row.title = this.lines[line].length > 60 ? this.lines[line].trim().slice(0, 1000) : "";
    this.pool.set(line, row);
    this.paint(row);
    return row;
  }

  paint(row) {
    const line = Number(row.dataset.line), share = this.most ? (this.costs[line] ?? 0) / this.most : 0;
    const lit = this.lit.has(line), here = line === this.current;
    const linked = this.stage.links[line]?.length > 0 || this.stage.readers?.get(line)?.length > 0;
    const look = `row${this.looks?.[line] ?? ""}${this.heads.has(line) ? " block" : ""}${linked ? " linked" : ""}${this.found.has(line) ? " found" : ""}${lit ? " lit" : ""}${here ? " here" : ""}`;
    if (row.className !== look) row.className = look;
    row.setAttribute("aria-selected", lit);
    const figure = share > NEGLIGIBLE ? this.write(this.costs[line]) : "";
    if (row.children[1].textContent !== figure) row.children[1].textContent = figure;
    let bar = row.querySelector(".b");
    if (share > 10 * NEGLIGIBLE) {
      if (!bar) {
        bar = document.createElement("i");
        bar.className = "b";
        row.append(bar);
      }
      bar.style.setProperty("--share", `${Math.max(6, share * 100)}%`);
    } else bar?.remove();
  }

  drawRuler() {
    const canvas = this.ruler, height = canvas.clientHeight, ratio = devicePixelRatio || 1;
    if (!height) return;
    canvas.width = 11 * ratio;
    canvas.height = height * ratio;
    const pen = canvas.getContext("2d"), style = getComputedStyle(canvas);
    pen.scale(ratio, ratio);
    const step = Math.min(ROW, height / Math.max(this.lines.length, 1));  // a short list has its marks beside its lines
    const marks = (lines, colour) => {
      pen.fillStyle = style.getPropertyValue(colour);
      const drawn = new Set();  // a mark for each pixel, however many lines it stands for
      for (const line of lines) {
        const top = step < 1 ? Math.floor(line * step) : line * step;
        if (!drawn.has(top)) { drawn.add(top); pen.fillRect(2, top, 7, Math.max(2, step)); }
      }
    };
    marks(this.found, "--string");
    marks(this.lit, "--lit-edge");
  }
}
