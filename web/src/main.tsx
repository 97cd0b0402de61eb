// The page begins: enter with the token, connect, follow the address.
import { render } from "preact";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/answer.css";
import "./styles/debug.css";
import "./styles/tensor.css";
import "./styles/pages.css";
import { App } from "./app";
import { enter } from "./net/api";
import { start } from "./state/live";
import { followHits, followRun } from "./state/run";
import { followVerdict } from "./state/verdict";
import { listenToKeys } from "./ui/keys";

async function begin(): Promise<void> {
  await enter();
  start();
  followRun();
  followHits();
  followVerdict();
  listenToKeys();
  render(<App />, document.getElementById("app") as HTMLElement);
}

void begin();
