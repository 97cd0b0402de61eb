// One scope's drawing: children in layers from top to bottom, few crossings, straight lines where they can be.
// Linear passes of a fixed number, the execution order as the tie-break: the same graph always looks the same.
//
//     rank (longest path) → dummies for long edges → order in the layer (barycentre) → x (least squares, no overlap) → y

export interface Piece {
  w: number;
  h: number;
  order: number;
  /** Parameters and inputs that many take: a strip above, without lines. */
  aside: boolean;
}

export interface Wire {
  from: number;
  to: number;
}

export interface Drawing {
  x: Float64Array;
  y: Float64Array;
  w: number;
  h: number;
  /** For each wire its points, x and y in turn, from the source's lower edge to the target's upper edge. */
  routes: number[][];
}

export const GAP_X = 18;
export const GAP_Y = 34;
const STRIP_GAP = 8;
const MOST_DUMMIES = 20_000;
const SWEEPS = 4;

export function layout(pieces: readonly Piece[], wires: readonly Wire[]): Drawing {
  const count = pieces.length;
  const x = new Float64Array(count);
  const y = new Float64Array(count);
  const wired = new Uint8Array(count);
  for (const wire of wires) wired[wire.from] = wired[wire.to] = 1;
  const strip: number[] = [];
  const loose: number[] = [];
  const linked: number[] = [];
  for (let at = 0; at < count; at += 1) (wired[at] ? linked : pieces[at].aside ? strip : loose).push(at);
  loose.sort((a, b) => pieces[a].order - pieces[b].order || a - b);
  const first = linked.reduce((least, at) => Math.min(least, pieces[at].order), Infinity);
  const early = linked.length ? loose.filter((at) => pieces[at].order < first) : [];
  const late = loose.filter((at) => !early.includes(at));
  const core = layered(pieces, wires, linked);
  const widest = Math.max(
    core.w,
    220,
    Math.sqrt(loose.reduce((sum, at) => sum + (pieces[at].w + GAP_X) * (pieces[at].h + GAP_X), 0)) * 1.4,
  );
  const top = rows(pieces, strip, widest, 0, STRIP_GAP, x, y);
  const stripEnd = top.h ? top.h + 20 : 0;
  const before = rows(pieces, early, widest, stripEnd, GAP_X, x, y);
  const coreTop = stripEnd + (before.h ? before.h + GAP_Y : 0);
  const bottom = rows(pieces, late, widest, coreTop + core.h + (core.h ? GAP_Y : 0), GAP_X, x, y);
  const w = Math.max(core.w, top.w, before.w, bottom.w);
  const centre = (part: { w: number }): number => (w - part.w) / 2;
  for (const at of strip) x[at] += centre(top);
  for (const at of early) x[at] += centre(before);
  for (const at of late) x[at] += centre(bottom);
  for (const at of linked) {
    x[at] = core.x[at] + centre(core);
    y[at] = core.y[at] + coreTop;
  }
  for (const route of core.routes) {
    for (let at = 0; at < route.length; at += 2) {
      route[at] += centre(core);
      route[at + 1] += coreTop;
    }
  }
  const h = late.length ? bottom.end : core.h ? coreTop + core.h : before.h ? before.end : top.h;
  return { x, y, w, h, routes: core.routes };
}

/** The same drawing with data flowing to the right: laid out on its side, and turned back. */
export function sideways(pieces: readonly Piece[], wires: readonly Wire[]): Drawing {
  const turned = layout(
    pieces.map((piece) => ({ ...piece, w: piece.h, h: piece.w })),
    wires,
  );
  const routes = turned.routes.map((route) => {
    const out: number[] = [];
    for (let at = 0; at < route.length; at += 2) out.push(route[at + 1], route[at]);
    return out;
  });
  return { x: turned.y, y: turned.x, w: turned.h, h: turned.w, routes };
}

/** Pieces that no line reaches, in rows. */
function rows(
  pieces: readonly Piece[],
  which: number[],
  widest: number,
  y0: number,
  gap: number,
  x: Float64Array,
  y: Float64Array,
) {
  let left = 0;
  let top = y0;
  let tall = 0;
  let w = 0;
  for (const at of which) {
    if (left > 0 && left + pieces[at].w > widest) {
      left = 0;
      top += tall + gap;
      tall = 0;
    }
    x[at] = left;
    y[at] = top;
    left += pieces[at].w + gap;
    w = Math.max(w, left - gap);
    tall = Math.max(tall, pieces[at].h);
  }
  return { w, h: which.length ? top + tall - y0 : 0, end: top + tall };
}

interface Layered {
  x: Float64Array;
  y: Float64Array;
  w: number;
  h: number;
  routes: number[][];
}

function layered(pieces: readonly Piece[], wires: readonly Wire[], linked: number[]): Layered {
  const count = pieces.length;
  const empty = { x: new Float64Array(count), y: new Float64Array(count), w: 0, h: 0, routes: wires.map(() => []) };
  if (!linked.length) return empty;
  // Time decides what is up: an edge against the order of execution is drawn upward and ranked the other way round.
  const up = wires.map((wire) => (pieces[wire.from].order - pieces[wire.to].order || wire.from - wire.to) > 0);
  const from = wires.map((wire, at) => (up[at] ? wire.to : wire.from));
  const to = wires.map((wire, at) => (up[at] ? wire.from : wire.to));
  const rank = ranks(pieces, linked, from, to);

  const layers: number[][] = [];
  const width: number[] = pieces.map((piece) => piece.w);
  const above: number[][] = pieces.map(() => []);
  const below: number[][] = pieces.map(() => []);
  const chains: number[][] = [];
  let dummies = 0;
  for (const at of linked) (layers[rank[at]] ??= []).push(at);
  for (let at = 0; at < wires.length; at += 1) {
    const chain = [from[at]];
    for (let layer = rank[from[at]] + 1; layer < rank[to[at]] && dummies < MOST_DUMMIES; layer += 1) {
      const dummy = width.length;
      width.push(6);
      above.push([]);
      below.push([]);
      layers[layer].push(dummy);
      chain.push(dummy);
      dummies += 1;
    }
    chain.push(to[at]);
    for (let link = 1; link < chain.length; link += 1) {
      below[chain[link - 1]].push(chain[link]);
      above[chain[link]].push(chain[link - 1]);
    }
    chains.push(chain);
  }
  sweep(layers, above, below, width.length);
  const centre = coordinates(layers, above, below, width, count);
  return placed(pieces, wires, up, layers, chains, centre, width, empty);
}

function ranks(pieces: readonly Piece[], linked: number[], from: number[], to: number[]): Int32Array {
  const outs: number[][] = pieces.map(() => []);
  const incoming = new Int32Array(pieces.length);
  from.forEach((a, at) => {
    outs[a].push(to[at]);
    incoming[to[at]] += 1;
  });
  const order = [...linked].sort((a, b) => pieces[a].order - pieces[b].order || a - b);
  const rank = new Int32Array(pieces.length);
  for (const at of order) for (const next of outs[at]) rank[next] = Math.max(rank[next], rank[at] + 1);
  // What nothing feeds comes down to just above its first consumer.
  for (const at of order)
    if (incoming[at] === 0 && outs[at].length) rank[at] = Math.min(...outs[at].map((next) => rank[next])) - 1;
  return rank;
}

function sweep(layers: number[][], above: number[][], below: number[][], total: number): void {
  const place = new Float64Array(total);
  const weigh =
    (side: number[][]) =>
    (at: number): number => {
      const list = side[at];
      if (!list.length) return place[at];
      let sum = 0;
      for (const one of list) sum += place[one];
      return sum / list.length;
    };
  const number = (layer: number[]): void => layer.forEach((at, position) => (place[at] = position - layer.length / 2));
  layers.forEach(number);
  for (let round = 0; round < SWEEPS; round += 1) {
    const down = round % 2 === 0;
    const weight = weigh(down ? above : below);
    for (let step = 1; step < layers.length; step += 1) {
      const layer = layers[down ? step : layers.length - 1 - step];
      const keyed = layer.map((at, position) => ({ at, position, key: weight(at) }));
      keyed.sort((a, b) => a.key - b.key || a.position - b.position);
      keyed.forEach((one, position) => (layer[position] = one.at));
      number(layer);
    }
  }
}

/** Centres: every layer near the mean of its neighbours, in order and without overlap. */
function coordinates(
  layers: number[][],
  above: number[][],
  below: number[][],
  width: number[],
  real: number,
): Float64Array {
  const x = new Float64Array(width.length);
  for (const layer of layers) {
    let left = 0;
    for (const at of layer) {
      x[at] = left + width[at] / 2;
      left += width[at] + GAP_X;
    }
    const shift = (left - GAP_X) / 2;
    for (const at of layer) x[at] -= shift;
  }
  for (let round = 0; round < 6; round += 1) {
    const down = round % 2 === 0;
    for (let step = 0; step < layers.length; step += 1) {
      const layer = layers[down ? step : layers.length - 1 - step];
      const wanted = layer.map((at) => {
        const side = down ? above[at] : below[at];
        const list = side.length ? side : down ? below[at] : above[at];
        return list.length ? list.reduce((sum, one) => sum + x[one], 0) / list.length : x[at];
      });
      settle(
        layer,
        wanted,
        layer.map((at) => (at >= real ? 3 : 1)),
        width,
        x,
      );
    }
  }
  return x;
}

/** Least squares under "in order, and this far apart": pool adjacent violators. */
function settle(layer: number[], wanted: number[], weight: number[], width: number[], x: Float64Array): void {
  const offset: number[] = [];
  let run = 0;
  layer.forEach((at, position) => {
    if (position) run += (width[layer[position - 1]] + width[at]) / 2 + GAP_X;
    offset.push(run);
  });
  const blocks: { sum: number; weight: number; count: number }[] = [];
  for (let at = 0; at < layer.length; at += 1) {
    blocks.push({ sum: (wanted[at] - offset[at]) * weight[at], weight: weight[at], count: 1 });
    while (blocks.length > 1) {
      const b = blocks[blocks.length - 1];
      const a = blocks[blocks.length - 2];
      if (a.sum / a.weight <= b.sum / b.weight) break;
      a.sum += b.sum;
      a.weight += b.weight;
      a.count += b.count;
      blocks.pop();
    }
  }
  let at = 0;
  for (const block of blocks) {
    for (let one = 0; one < block.count; one += 1, at += 1) x[layer[at]] = block.sum / block.weight + offset[at];
  }
}

function placed(
  pieces: readonly Piece[],
  wires: readonly Wire[],
  up: boolean[],
  layers: number[][],
  chains: number[][],
  centre: Float64Array,
  width: number[],
  out: Layered,
): Layered {
  let left = Infinity;
  let right = -Infinity;
  for (const layer of layers) {
    for (const at of layer) {
      left = Math.min(left, centre[at] - width[at] / 2);
      right = Math.max(right, centre[at] + width[at] / 2);
    }
  }
  const middle = new Float64Array(width.length);
  let y = 0;
  for (const layer of layers) {
    const tall = Math.max(10, ...layer.map((at) => (at < pieces.length ? pieces[at].h : 0)));
    for (const at of layer) {
      middle[at] = y + tall / 2;
      if (at < pieces.length) {
        out.x[at] = centre[at] - width[at] / 2 - left;
        out.y[at] = y + (tall - pieces[at].h) / 2;
      }
    }
    y += tall + GAP_Y;
  }
  out.w = right - left;
  out.h = y - GAP_Y;
  chains.forEach((chain, at) => {
    const points: number[] = [];
    chain.forEach((one, link) => {
      const px = centre[one] - left;
      if (link === 0) points.push(px, out.y[one] + pieces[one].h);
      else if (link === chain.length - 1) points.push(px, out.y[one]);
      else points.push(px, middle[one]);
    });
    out.routes[at] = up[at] ? reversed(points) : points;
  });
  void wires;
  return out;
}

function reversed(points: number[]): number[] {
  const out: number[] = [];
  for (let at = points.length - 2; at >= 0; at -= 2) out.push(points[at], points[at + 1]);
  return out;
}
