// The series a checkpoint belongs to: files that differ only in their numbers, and the weights that never moved over them.
import { signal, useSignalEffect } from "@preact/signals";
import { bytes, count } from "../format/number";
import { ask } from "../net/api";
import { query } from "../state/route";
import type { CheckpointSeries } from "../types.gen";
import { Icon } from "../ui/icons";
import { w } from "./words";

const series = signal<CheckpointSeries | null>(null);

export function useSeries(): void {
  useSignalEffect(() => {
    const name = query.value.a;
    if (name && series.peek()?.of !== name) void fetchSeries(name);
  });
}

async function fetchSeries(name: string, insist = false): Promise<void> {
  try {
    const told = await ask<CheckpointSeries>("things/series", { of: name, read: insist ? 1 : 0 });
    if (query.peek().a === name) series.value = told;
  } catch {
    // The page itself says why the checkpoint cannot be opened.
  }
}

/** Over how many checkpoints this weight never moved; 0 when it did, or nobody looked. */
export function stuckOver(address: string): number {
  const told = series.value?.of === query.value.a ? series.value : null;
  return told?.unchanged.includes(address) ? told.names.length : 0;
}

export function SeriesNote() {
  const told = series.value?.of === query.value.a ? series.value : null;
  if (!told || told.names.length < 2) return null;
  const title = told.names.join("\n");
  if (!told.read)
    return (
      <button title={title} onClick={() => void fetchSeries(told.of, true)}>
        {w("series.read", { n: count(told.names.length), size: bytes(told.bytes) })}
      </button>
    );
  const stuck = told.unchanged.length;
  return (
    <span class={`pill ${stuck ? "tone-warning" : "tone-ok"}`} title={title} data-test="series">
      <Icon name={stuck ? "ring" : "check"} />
      <span>
        {stuck
          ? w("series.stuck", { n: count(stuck), of: count(told.names.length) })
          : w("series.moved", { of: count(told.names.length) })}
      </span>
    </span>
  );
}
