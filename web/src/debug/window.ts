// One tensor, or two side by side, through a window: what the heat map, the grid and the numbers above them are fed with.
import { type Signal, signal } from "@preact/signals";
import type { QueryValue } from "../base";
import { askBinary, type Binary, HubError } from "../net/api";
import { valuesOf } from "../net/values";
import { defaultSlice, parseSlice, type Sliced, SliceError } from "../tensor/slice";
import { TileSource } from "../tensor/tiles";
import type { ComparisonHeader, TensorHeader } from "../types.gen";

export interface Pane<H> {
  header: H;
  source: TileSource;
  sliced: Sliced;
  shape: number[];
}

export type Loaded<H> =
  | { state: "idle" | "loading" }
  | { state: "ready"; pane: Pane<H>; address: string }
  | { state: "missing"; reason: string; text: string }
  | { state: "wrong"; text: string; example: string };

/** Where tensors are asked for: an address of the hub, and what belongs to every question there. */
export interface Desk {
  path: string;
  query: Record<string, QueryValue>;
}

export function ofRun(run: string, what: "tensor" | "compare", query: Record<string, QueryValue> = {}): Desk {
  return { path: `runs/${encodeURIComponent(run)}/${what}`, query };
}

/** Rows and columns of a slice, as the hub folds it. */
export function planeOf(shape: readonly number[]): [number, number] {
  if (shape.length === 0) return [1, 1];
  if (shape.length === 1) return [1, shape[0]];
  return [shape.slice(0, -1).reduce((a, b) => a * b, 1), shape[shape.length - 1]];
}

export class TensorWindow {
  readonly loaded: Signal<Loaded<TensorHeader>> = signal({ state: "idle" });
  private asking: AbortController | null = null;
  private shapes = new Map<string, number[]>();

  /** Look at a tensor; `slice` empty for the first two-dimensional part. */
  async look(desk: Desk, address: string, slice: string): Promise<void> {
    this.asking?.abort();
    const mine = (this.asking = new AbortController());
    const { path } = desk;
    const before = this.loaded.peek();
    if (before.state !== "ready" || before.address !== address) this.loaded.value = { state: "loading" };
    try {
      let text = slice;
      const known = this.shapes.get(address);
      if (!text && known) text = defaultSlice(known);
      if (text && known) parseSlice(text, known);
      const header = (part: string, want: string): Promise<Binary<TensorHeader>> =>
        askBinary<TensorHeader>(path, { ...desk.query, address, slice: part, want: [want] }, mine.signal);
      let answer = await header(text, "stats");
      const shape = answer.header.shape;
      this.shapes.set(address, shape);
      if (!slice && !text && shape.length > 2) {
        text = defaultSlice(shape);
        answer = await header(text, "stats");
      }
      const sliced = parseSlice(text, shape);
      const [rows, columns] = planeOf(answer.header.sliced_shape);
      const source = new TileSource(rows, columns, answer.header.dtype, async (pool, row, column, tall, wide, end) => {
        const want = [`tile:${row},${column},${tall},${wide}`, ...(pool > 1 ? [`pool:${pool}`] : [])];
        const tile = await askBinary<TensorHeader>(path, { ...desk.query, address, slice: text, want }, end);
        const [r, c] = planeOf(tile.header.data_shape);
        return { values: valuesOf(tile.data, tile.header.data_dtype), rows: r, columns: c };
      });
      if (mine.signal.aborted) return;
      const pane = { header: answer.header, source, sliced, shape };
      this.loaded.value = { state: "ready", pane, address };
      // Counting a hundred million values takes a second or two: the picture does not wait for it.
      const { histogram } = (await header(text, "hist:64")).header;
      if (mine.signal.aborted) return;
      this.loaded.value = { state: "ready", pane: { ...pane, header: { ...answer.header, histogram } }, address };
    } catch (error) {
      if (mine.signal.aborted) return;
      this.loaded.value = failure(error);
    }
  }

  /** The next element that is not finite, as row and column of the plane; null when there is none. */
  async findBad(
    desk: Desk,
    address: string,
    slice: string,
    after: number,
    way: "next" | "previous",
  ): Promise<number[] | null> {
    const answer = await askBinary<TensorHeader>(desk.path, {
      ...desk.query,
      address,
      slice,
      want: [`find:${way}:${after}`],
    });
    return answer.header.found?.index ?? null;
  }
}

export interface Side {
  mode: ComparisonHeader["mode"];
  atol: number;
  rtol: number;
  slice: string;
}

/** Two tensors: the differences, and tiles of the chosen view of them. */
export async function lookAtBoth(desk: Desk, side: Side, end: AbortSignal): Promise<Loaded<ComparisonHeader>> {
  const { path } = desk;
  const query = { ...desk.query, mode: side.mode, atol: side.atol, rtol: side.rtol, slice: side.slice };
  try {
    const answer = await askBinary<ComparisonHeader>(path, { ...query, want: ["stats"] }, end);
    const { header } = answer;
    const [rows, columns] = planeOf(header.sliced_shape);
    const source = new TileSource(
      rows,
      columns,
      side.mode === "a" || side.mode === "b" ? (header.a_stats?.dtype ?? "float32") : "float64",
      async (pool, row, column, tall, wide, stop) => {
        const want = [`tile:${row},${column},${tall},${wide}`, ...(pool > 1 ? [`pool:${pool}`] : [])];
        const tile = await askBinary<ComparisonHeader>(path, { ...query, want }, stop);
        const [r, c] = planeOf(tile.header.data_shape);
        return { values: valuesOf(tile.data, tile.header.data_dtype), rows: r, columns: c };
      },
    );
    return {
      state: "ready",
      pane: { header, source, sliced: parseSlice("", header.sliced_shape), shape: header.sliced_shape },
      address: header.a,
    };
  } catch (error) {
    return failure(error);
  }
}

function failure(
  error: unknown,
): { state: "missing"; reason: string; text: string } | { state: "wrong"; text: string; example: string } {
  if (error instanceof SliceError) return { state: "wrong", text: error.message, example: error.example };
  if (error instanceof HubError) {
    if (error.code === "AddressError" && /slice|axis|indices/.test(error.message))
      return { state: "wrong", text: error.message, example: "" };
    return { state: "missing", reason: error.reason || error.code, text: error.message };
  }
  return { state: "missing", reason: "unknown", text: String((error as Error).message) };
}
