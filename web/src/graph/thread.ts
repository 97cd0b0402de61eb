// The page's end of the layout thread: one graph, many wishes, and only the newest answer counts.
import type { Scene, Wish } from "./scene";
import type { FromWorker, ToWorker } from "./worker";

export class LayoutThread {
  private worker: Worker | null = null;
  private generation = 0;
  private text = "";
  private readonly answered: (scene: Scene, start: string[] | null) => void;

  constructor(answered: (scene: Scene, start: string[] | null) => void) {
    this.answered = answered;
    this.begin(); // its script is fetched while the graph is on its way
  }

  /** The graph as the hub sent it; the thread reads it itself. */
  graph(text: string): void {
    this.text = text;
    this.send({ t: "graph", text });
  }

  wish(wish: Wish): void {
    this.generation += 1;
    this.send({ t: "wish", generation: this.generation, wish });
  }

  /** Give up on a layout that takes too long: the thread is ended and a fresh one gets the graph again. */
  cancel(): void {
    this.close();
    if (this.text) this.graph(this.text);
  }

  close(): void {
    this.worker?.terminate();
    this.worker = null;
    this.generation += 1;
  }

  private send(message: ToWorker): void {
    this.begin().postMessage(message);
  }

  private begin(): Worker {
    if (this.worker) return this.worker;
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    worker.onmessage = (event: MessageEvent<FromWorker>) => {
      if (event.data.generation === this.generation) this.answered(event.data.scene, event.data.start);
    };
    this.worker = worker;
    return worker;
  }
}
