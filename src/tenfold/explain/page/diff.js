// Two listings beside each other: two versions of a program, compared line by line, or two stages of one, each
// line beside what came from it.

const FEW = 4000;  // differences that are looked for one by one

class DiffView {
  constructor(root, programs, before) {
    Object.assign(this, { root, programs, before, built: false });
  }

  build() {
    if (this.built) return;
    this.built = true;
    this.choices = [
      ...this.before.map((program) => ({ program, version: "before: " })),
      ...this.programs.map((program) => ({ program, version: this.before.length ? "now: " : "" })),
    ].flatMap(({ program, version }) => program.stages
      .filter((stage) => !stage.absent)
      .map((stage) => ({ program, stage, title: `${version}${stage.title} · ${program.title}` })));
    const bar = document.createElement("div");
    bar.className = "bar";
    this.pick = ["Left", "Right"].map((side) => {
      const select = document.createElement("select");
      select.id = `diff-${side.toLowerCase()}`;
      select.setAttribute("aria-label", `${side} side`);
      this.choices.forEach((choice, i) => select.append(new Option(choice.title, i)));
      select.addEventListener("change", () => this.draw());
      return select;
    });
    const [left, right] = this.first();
    this.pick[0].value = left;
    this.pick[1].value = right;
    this.words = document.createElement("span");
    this.words.id = "diff-words";
    bar.append(this.pick[0], this.pick[1], this.words);
    this.sides = document.createElement("div");
    this.sides.className = "sides";
    this.root.replaceChildren(bar, this.sides);
    this.draw();
  }

  // Of two versions their Traces, of one program its Trace and FlatIR.
  first() {
    const find = (program, key) => this.choices.findIndex((each) => each.program === program && each.stage.key === key);
    const now = this.programs[0];
    return this.before.length
      ? [find(this.before[0], "trace"), find(now, "trace")]
      : [Math.max(0, find(now, "trace")), Math.max(0, find(now, "flat"))];
  }

  draw() {
    const [left, right] = this.pick.map((select) => this.choices[Number(select.value)]);
    const rows = left.program === right.program ? aligned(left.program, left.stage, right.stage) : compared(left.stage, right.stage);
    const changed = rows.filter(({ look }) => look === "changed").length;
    this.words.textContent = left.program === right.program
      ? "each line beside what came from it"
      : changed ? `${count(changed)} of ${count(rows.length)} lines differ` : "no difference but in names of values";
    const lists = ["left", "right"].map((side) => this.list(side, rows, side === "left" ? left.stage : right.stage));
    this.sides.replaceChildren(...lists.map((list) => list.element));
    lists.forEach((list, i) => list.scroller.addEventListener("scroll", () => {
      lists[1 - i].scroller.scrollTop = list.scroller.scrollTop;
    }, { passive: true }));
    // Begin with the first difference, or past the arguments, which nothing came from.
    const first = left.program === right.program
      ? rows.findIndex((row) => row.right >= 0 && left.stage.links[row.left]?.length)
      : rows.findIndex(({ look }) => look === "changed");
    if (first > 10) lists.forEach((list) => list.start(first - 4));
  }

  list(side, rows, stage) {
    const lines = rows.map((row) => (row[side] < 0 ? "" : stage.lines[row[side]]));
    const made = new LineList({
      stage: {
        key: `diff-${side}`, title: stage.title, lines, links: rows.map(() => []), blocks: [],
        numbers: rows.map((row) => (row[side] < 0 ? 0 : stage.numbers?.[row[side]] || row[side] + 1)),
      },
      onPoint: () => {}, onLeave: () => {}, onPin: () => {},
    });
    const looks = { left: "removed", right: "added" };
    made.looks = rows.map((row) => (row.look !== "changed" ? "" : row[side] < 0 ? " gap" : ` ${looks[side]}`));
    return made;
  }
}

// Lines of one stage, each beside those of another that came from it.
function aligned(program, left, right) {
  const rows = [], taken = new Set();
  left.lines.forEach((_, line) => {
    const linked = left.links[line];  // of an input nothing came, though it lights what reads it
    const selection = left.level === "node" ? program.fromNodes(linked) : program.fromOps(linked);
    const lit = [...program.linesLit(right, selection)].filter((each) => !taken.has(each)).sort((a, b) => a - b);
    lit.forEach((each) => taken.add(each));
    rows.push({ left: line, right: lit[0] ?? -1, look: "" });
    lit.slice(1).forEach((each) => rows.push({ left: -1, right: each, look: "" }));
  });
  return withOthers(rows, left, right, taken);
}

// Lines on the right that came from none on the left, after the line before them: beside one of the same kind.
function withOthers(rows, left, right, taken) {
  const after = new Map();  // rows to come after a line of the right side
  const others = right.lines.map((_, line) => line).filter((line) => !taken.has(line));
  for (const line of others) {
    const first = taken.has(line - 1) || !line ? line - 1 : null;
    if (first !== null) after.set(first, []);
    [...after.values()].at(-1).push(line);
  }
  const done = [];
  let waiting = [...(after.get(-1) ?? [])];
  for (const row of rows) {
    if (row.right < 0 && row.left >= 0 && !left.links[row.left].length && waiting.length) {
      done.push({ ...row, right: waiting.shift() });
      continue;
    }
    if (row.right >= 0 || left.links[row.left]?.length) flush();
    done.push(row);
    if (row.right >= 0) waiting.push(...(after.get(row.right) ?? []));
  }
  flush();
  return done;

  function flush() {
    for (const line of waiting.splice(0)) done.push({ left: -1, right: line, look: "" });
  }
}

// What a line says, whatever its values are called and wherever it was written.
function essence(line) {
  return line.trim().replace(/\s*#\s\S+:\d+$/, "").replace(/%[\w.$-]+|\bt_inter\d+|\b[tp]\d+(_\d+)?\b/g, "·");
}

// Two listings as one: Myers' algorithm on their lines.
function compared(left, right) {
  const a = left.lines.map(essence), b = right.lines.map(essence);
  const rows = [];
  let x = 0, y = 0;
  for (const [i, j] of matches(a, b)) {
    while (x < i || y < j) rows.push({ left: x < i ? x++ : -1, right: y < j ? y++ : -1, look: "changed" });
    rows.push({ left: x++, right: y++, look: "" });
  }
  while (x < a.length || y < b.length) {
    rows.push({ left: x < a.length ? x++ : -1, right: y < b.length ? y++ : -1, look: "changed" });
  }
  return rows;
}

function matches(a, b) {
  const history = [], furthest = new Map([[1, 0]]);
  for (let d = 0; d <= Math.min(a.length + b.length, FEW); d += 1) {
    history.push(new Map(furthest));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1));
      let x = down ? furthest.get(k + 1) : furthest.get(k - 1) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      furthest.set(k, x);
      if (x >= a.length && x - k >= b.length) return wayBack(history, a, b);
    }
  }
  return [];  // nothing alike
}

function wayBack(history, a, b) {
  const found = [];
  let x = a.length, y = b.length;
  for (let d = history.length - 1; d >= 0; d -= 1) {
    const furthest = history[d], k = x - y;
    const down = k === -d || (k !== d && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1));
    const before = down ? k + 1 : k - 1, fromX = d ? furthest.get(before) : 0, fromY = fromX - (d ? before : 0);
    while (x > Math.max(fromX, 0) && y > Math.max(fromY, 0) && a[x - 1] === b[y - 1]) { x -= 1; y -= 1; found.push([x, y]); }
    if (!d) break;
    x = fromX;
    y = fromY;
  }
  return found.reverse();
}
