// The layout's thread: takes the graph once, then wishes; a newer wish makes an older answer worthless.
import type { GraphColumns } from "../types.gen";
import { Model } from "./model";
import { type Scene, SceneMaker, type Wish } from "./scene";

export type ToWorker = { t: "graph"; text: string } | { t: "wish"; generation: number; wish: Wish };
export interface FromWorker {
  generation: number;
  scene: Scene;
  /** What to open at first; only with the first scene of a graph. */
  start: string[] | null;
}

let maker: SceneMaker | null = null;
let start: string[] | null = null;

self.onmessage = (event: MessageEvent<ToWorker>) => {
  const message = event.data;
  if (message.t === "graph") {
    maker = new SceneMaker(new Model(JSON.parse(message.text) as GraphColumns));
    start = maker.start();
    return;
  }
  if (!maker) return;
  // A star stands for what is open at first.
  const wish = { ...message.wish, open: message.wish.open.flatMap((key) => (key === "*" ? (start ?? []) : [key])) };
  const answer: FromWorker = { generation: message.generation, scene: maker.make(wish), start };
  self.postMessage(answer);
};
