// Where the boxes of a graph lie, in layers, and which way its edges take around them.

const BOX = { height: 38, gapX: 18, gapY: 34 };
const BESIDE = 14, FAR = 900;  // how near an edge passes boxes, and how far out of its way it goes for them
const WIDEST = 14;  // boxes in a row

function reach(box) {
  return { left: box.x - box.width / 2, right: box.x + box.width / 2, top: box.y, bottom: box.y + BOX.height };
}

function overlap(a, b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
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
  for (const box of boxes) Object.assign(box, { layer: 0, into: [], out: [], waiting: 0, loose: false });
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
  // What only feeds later layers moves down to where it is used, along with all that was computed for it alone.
  for (const box of ready) box.loose = box.into.every((from) => from.loose && from.out.length === 1);
  for (const box of [...ready].reverse()) {
    const nearest = Math.min(...box.out.map((next) => next.layer).filter((layer) => layer > box.layer), Infinity);
    if (box.loose && nearest !== Infinity) box.layer = nearest - 1;
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
