// Work of the hub that takes long: asked for, followed until it ends, cancelled. One question at a time; a newer one
// makes the answer to an older worthless.
import { type Signal, signal } from "@preact/signals";
import { ask, HubError, post } from "../net/api";
import type { JobView } from "../types.gen";
import { sentence } from "./things";

export type Work<T> =
  | { state: "idle" }
  | { state: "working"; job: JobView | null }
  | { state: "cancelled" }
  | { state: "failed"; text: string }
  | { state: "ready"; answer: T };

const LOOK_SECONDS = 0.6;

export class Worker<T> {
  readonly work: Signal<Work<T>> = signal<Work<T>>({ state: "idle" });
  private generation = 0;
  private readonly path: string;

  /** `path`: where questions are posted, and answers fetched below it by number. */
  constructor(path: string) {
    this.path = path;
  }

  async start(question: unknown): Promise<void> {
    this.generation += 1;
    const mine = this.generation;
    const say = (work: Work<T>): void => {
      if (mine === this.generation) this.work.value = work;
    };
    say({ state: "working", job: null });
    try {
      let job = await post<JobView>(this.path, question);
      while (job.state === "waiting" || job.state === "running") {
        say({ state: "working", job });
        if (mine !== this.generation) return;
        job = await ask<JobView>(`jobs/${job.id}`, { wait: LOOK_SECONDS });
      }
      if (job.state === "cancelled") say({ state: "cancelled" });
      else if (job.state === "failed") say({ state: "failed", text: job.text });
      else say({ state: "ready", answer: await ask<T>(`${this.path}/${job.id}`) });
    } catch (error) {
      if (error instanceof HubError || error instanceof Error) say({ state: "failed", text: sentence(error) });
    }
  }

  async cancel(): Promise<void> {
    const now = this.work.peek();
    if (now.state === "working" && now.job) await post(`jobs/${now.job.id}/cancel`, {});
  }

  reset(): void {
    this.generation += 1;
    this.work.value = { state: "idle" };
  }
}
