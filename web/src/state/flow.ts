// Where the scrubber stands in the step: the graph lights up to here.
import { signal } from "@preact/signals";

export interface Flow {
  /** Position in the step's line of time. */
  at: number;
  /** By item: when it was made, and when it was bad. */
  made: Float64Array;
  bad: Float64Array;
  item: number;
}

/** Null while the graph shows the step as a whole. */
export const flow = signal<Flow | null>(null);
