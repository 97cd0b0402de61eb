// A plane of numbers of any size, fetched in tiles of 256 × 256 as they come into sight, at the coarseness asked for.
// A coarse tile's element stands for pool × pool: the hub keeps NaN before Inf before the greatest magnitude.
import { signal } from "@preact/signals";
import type { Values } from "../net/values";

export const TILE = 256;
const MOST_TILES = 160;

export interface Tile {
  values: Values;
  rows: number;
  columns: number;
}

export type Fetch = (
  pool: number,
  row: number,
  column: number,
  rows: number,
  columns: number,
  signal: AbortSignal,
) => Promise<Tile>;

export class TileSource {
  readonly rows: number;
  readonly columns: number;
  readonly dtype: string;
  /** Grows with every tile that arrived: whoever draws reads it. */
  readonly version = signal(0);
  readonly failed = signal("");
  private readonly tiles = new Map<string, Tile | null>();
  private readonly end = new AbortController();
  private readonly fetch: Fetch;

  constructor(rows: number, columns: number, dtype: string, fetch: Fetch) {
    this.rows = rows;
    this.columns = columns;
    this.dtype = dtype;
    this.fetch = fetch;
  }

  /** The tile at this place of the coarse grid; asked for when it is not here yet. */
  tile(pool: number, row: number, column: number): Tile | null {
    const key = `${pool}/${row}/${column}`;
    const known = this.tiles.get(key);
    if (known !== undefined) return known;
    this.tiles.set(key, null);
    this.fetch(pool, row * TILE, column * TILE, TILE, TILE, this.end.signal).then(
      (tile) => {
        if (this.tiles.size > MOST_TILES) this.tiles.delete(this.tiles.keys().next().value as string);
        this.tiles.set(key, tile);
        this.version.value += 1;
      },
      (error: Error) => {
        this.tiles.delete(key);
        if (error.name !== "AbortError") this.failed.value = error.message;
      },
    );
    return null;
  }

  /** One element; undefined while it is on its way. */
  value(row: number, column: number, pool = 1): number | bigint | undefined {
    const tile = this.tile(pool, Math.floor(row / TILE), Math.floor(column / TILE));
    return tile?.values[(row % TILE) * tile.columns + (column % TILE)];
  }

  close(): void {
    this.end.abort();
  }
}
