// The data of the page, and the one question it answers: what has a line to do with?

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

function listOf(link) {
  return typeof link === "number" ? (link < 0 ? [] : [link]) : link;
}

class Program {
  constructor(raw) {
    Object.assign(this, raw);
    this.nodes = raw.nodes.map(([name, op, types, inputs, module]) => ({ name, op, types, inputs, module }));
    this.ops = raw.ops.map(([name, op, types, inputs, nodes, flops, bytes, seconds]) =>
      ({ name, op, types, inputs, nodes, flops, bytes, seconds }));
    raw.times?.ops.forEach((seconds, i) => { this.ops[i].time = seconds; });
    this.traceNodes = this.nodes.slice(0, this.nodes.length - raw.source_lines);
    this.opsOf = this.nodes.map(() => []);
    this.ops.forEach((op, i) => op.nodes.forEach((node) => this.opsOf[node].push(i)));
    for (const stage of this.stages) {
      stage.lines = stage.absent ? [] : stage.lines.split("\n");
      stage.links = stage.links.map(listOf);
      stage.of = new Map();  // lines, by what they came from
      stage.links.forEach((linked, line) => linked.forEach((each) => {
        if (!stage.of.has(each)) stage.of.set(each, []);
        stage.of.get(each).push(line);
      }));
      stage.readers = new Map(stage.inputs);  // what reads the input of a line
      stage.extra ??= [];
    }
    if (this.memory) this.placeOf = new Map(this.memory.lines.map((line, place) => [line, place]));
    // A buffer belongs to the op that computes it, the last that its instruction came from.
    const holders = new Map();
    for (const [line, bytes] of this.memory?.holders ?? []) {
      const op = this.ops[Math.max(...this.stage("hlo").links[line], -1)];
      if (op) op.peak = (op.peak ?? 0) + bytes;
      const node = Math.max(...op?.nodes ?? [], -1);  // -1 for XLA's own copies
      if (!holders.has(node)) holders.set(node, { node, line, bytes: 0, buffers: 0 });
      const holder = holders.get(node);
      holder.bytes += bytes;
      holder.buffers += 1;
    }
    this.holders = [...holders.values()].sort((a, b) => b.bytes - a.bytes);  // of the peak, by Trace node
  }

  stage(key) {
    return this.stages.find((each) => each.key === key);
  }

  // What a line came from, and what came from that: nodes of the Trace and ops of FlatIR. Of an input, what
  // reads it.
  behind(key, line) {
    const stage = this.stage(key), readers = stage.readers.get(line);
    const start = readers ?? stage.links[line] ?? [];
    const selection = stage.level === "node" ? this.fromNodes(start) : this.fromOps(start);
    return readers?.length ? { ...selection, input: { stage, line } } : selection;
  }

  // How a Trace node's result is placed on the mesh, if there is one: [{dim0}, {}].
  sharding(node) {
    const stage = this.stage("sharding"), line = stage?.of.get(node)?.[0];
    return line === undefined ? "" : /\s(\[.*?\])\s\s/.exec(stage.lines[line])?.[1] ?? "";
  }

  fromNodes(nodes) {
    return { nodes: new Set(nodes), ops: new Set(nodes.flatMap((node) => this.opsOf[node] ?? [])) };
  }

  fromOps(ops) {
    return { nodes: new Set(ops.flatMap((op) => this.ops[op]?.nodes ?? [])), ops: new Set(ops) };
  }

  linesLit(stage, { nodes, ops, input }) {
    const lines = new Set(input?.stage === stage ? [input.line] : []);
    for (const each of stage.level === "node" ? nodes : ops) {
      for (const line of stage.of.get(each) ?? []) lines.add(line);
    }
    return lines;
  }

  // The metrics that this program has figures for.
  get metrics() {
    return Object.keys(METRICS).filter((key) => (key !== "time" || this.times) && (key !== "peak" || this.memory));
  }

  // What each line of a stage costs. Of an instruction, its own time and memory: its ops may be in others too.
  costs(stage, metric) {
    const own = stage.key === "hlo" ? { time: this.times?.lines, peak: this.memory?.holders }[metric] : undefined;
    if (own) {
      const perLine = new Map(own);
      return stage.lines.map((_, line) => perLine.get(line) ?? 0);
    }
    const cost = METRICS[metric].of;
    const perNode = stage.level === "node" ? this.opsOf.map((ops) => total(ops.map((op) => cost(this.ops[op])))) : null;
    return stage.links.map((linked) =>
      total(linked.map((each) => perNode ? perNode[each] ?? 0 : this.ops[each] ? cost(this.ops[each]) : 0)));
  }
}

const METRICS = {
  time: { title: "measured time", of: (op) => op.time ?? 0, text: (cost) => timeText(cost) },
  seconds: { title: "estimated time", of: (op) => op.seconds, text: (cost) => timeText(cost) },
  flops: { title: "FLOPs", of: (op) => op.flops, text: (cost) => scale(cost, "") },
  bytes: { title: "bytes moved", of: (op) => op.bytes, text: (cost) => bytesText(cost) },
  peak: { title: "memory at the peak", of: (op) => op.peak ?? 0, text: (cost) => bytesText(cost) },
};

function total(numbers) {
  return numbers.reduce((sum, each) => sum + each, 0);
}

function count(number) {
  return Math.round(number).toLocaleString("en");
}

function scale(number, unit, names = ["", "k", "M", "G", "T", "P"], base = 1000) {
  let step = 0;
  while (number >= base && step < names.length - 1) { number /= base; step += 1; }
  return `${number >= 100 || step === 0 ? Math.round(number) : number.toPrecision(3)} ${names[step]}${unit}`;
}

const bytesText = (number) => scale(number, "B");
const flopsText = (number) => scale(number, "FLOP");

function timeText(seconds) {
  if (seconds >= 1) return `${seconds.toPrecision(3)} s`;
  if (seconds >= 1e-3) return `${(seconds * 1e3).toPrecision(3)} ms`;
  if (seconds >= 1e-6) return `${(seconds * 1e6).toPrecision(3)} µs`;
  return `${Math.round(seconds * 1e9)} ns`;
}
