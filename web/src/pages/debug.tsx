// The debugger: nodes and watchpoints at the left, the graph, and below it the hits beside what is looked at.
import { useSignalEffect } from "@preact/signals";
import type { ComponentType } from "preact";
import { CompareTab } from "../debug/comparetab";
import { ControlBar } from "../debug/control";
import { Found, useStory } from "../debug/found";
import { GraphPanel } from "../debug/graph";
import { HitsPanel } from "../debug/hits";
import { NodeTab } from "../debug/nodetab";
import { SourceTab } from "../debug/sourcetab";
import { TensorTab } from "../debug/tensortab";
import { TreePanel } from "../debug/tree";
import { WatchPanel } from "../debug/watch";
import { said, t } from "../i18n";
import { ask, HubError } from "../net/api";
import { chooseHit, chosenItem, chosenNode, editing, info, infoProblem, nodeKnown, nodeName, TABS, tab, type Tab } from "../state/debug";
import { change, currentLink, query } from "../state/route";
import { graph, hits, hitsKnown, isLive, rank, runName, shownStep, standing, state } from "../state/run";
import type { NodeInfo } from "../types.gen";
import { copy } from "../debug/nodemenu";
import { Icon } from "../ui/icons";
import { lazy } from "../ui/lazy";
import { More } from "../ui/more";
import { size, Splitter } from "../ui/splitter";

const left = size("debug.left", 290, 180, 640);
const watch = size("debug.watch", 210, 90, 600);
const below = size("debug.below", 400, 140, 800);
const hitsWide = size("debug.hits", 420, 240, 1000);

// The only tab with a chart: what draws it is a quarter of everything.
const HistoryTab = lazy(() => import("../debug/historytab").then((one) => one.HistoryTab));

const SHOWN: Record<Tab, ComponentType> = { node: NodeTab, tensor: TensorTab, compare: CompareTab, source: SourceTab, history: HistoryTab };

export function DebugPage() {
  useNodeInfo();
  useFirstHit();
  useStory();
  const Inner = SHOWN[tab.value];
  const lost = nodeName.value && graph.value && !nodeKnown.value;
  return (
    <div class="debug column grow">
      <ControlBar />
      {lost && <div class="banner info" role="status">{t("debug.noNode", { node: nodeName.value, near: graph.value?.key[chosenItem.value] || "–" })}</div>}
      <Found />
      <div class="row grow panes">
        <div class="column debug-left" style={{ width: `${left.value.value}px` }}>
          <TreePanel />
          <Splitter of={watch} way="h" grows={-1} label={t("split.watch")} />
          <div class="column" style={{ height: `${editing.value === null ? watch.value.value : Math.max(watch.value.value, 400)}px`, flex: "none" }}><WatchPanel /></div>
        </div>
        <Splitter of={left} way="v" label={t("split.left")} />
        <div class="column grow">
          <GraphPanel />
          <Splitter of={below} way="h" grows={-1} label={t("split.below")} />
          <div class="row panes debug-below" style={{ height: `${below.value.value}px` }}>
            <div class="column debug-hits" style={{ width: `${hitsWide.value.value}px` }}><HitsPanel /></div>
            <Splitter of={hitsWide} way="v" label={t("split.hits")} />
            <section class="panel grow" aria-label={t("debug.details")}>
              <header class="tabs">
                <div role="tablist" class="row" aria-label={t("debug.details")}>
                  {TABS.map((one) => <button key={one} role="tab" id={`tab-${one}`} aria-selected={tab.value === one} aria-controls="tab-panel" class="plain" onClick={() => change({ tab: one === "node" ? null : one }, true)}>{said("tab", one)}</button>)}
                </div>
                <span class="grow" />
                {isLive.value && state.value?.phase !== "paused" && <span class="chip" title={t("debug.staleHelp")}>{t("debug.stale")}</span>}
                <button class="plain" title={t("copyLink")} onClick={() => void copy(currentLink())}><Icon name="link" /><span class="hidden-visually">{t("copyLink")}</span></button>
                <More name={`${runName.value}-${chosenNode.value}-${tab.value}`} />
              </header>
              <div id="tab-panel" role="tabpanel" aria-labelledby={`tab-${tab.value}`} class="scroll grow column" tabIndex={0}><Inner /></div>
            </section>
          </div>
        </div>
      </div>
    </div>
  );
}

/** The chosen node's tensors, asked again when the step or the standing of training changes. */
function useNodeInfo(): void {
  useSignalEffect(() => {
    const name = chosenNode.value;
    const model = graph.value;
    const item = chosenItem.value;
    void state.value?.rev;
    if (!name || !model || !nodeKnown.value || model.node[item] < 0) {
      info.value = null;
      infoProblem.value = "";
      return;
    }
    const end = new AbortController();
    if (info.peek()?.name !== name) info.value = null;
    ask<NodeInfo>(`runs/${encodeURIComponent(runName.peek())}/node`, { name, step: shownStep.value, rank: rank.value }, end.signal).then(
      (answer) => { info.value = answer; infoProblem.value = ""; },
      (error) => { if (error instanceof HubError) infoProblem.value = error.message; },
    );
    return () => end.abort();
  });
}

let shown = "";

/** Opened without a place to look at, the page goes to the first origin; and when a hit stops training, there. */
function useFirstHit(): void {
  useSignalEffect(() => {
    if (!graph.value || !hitsKnown.value) return;
    const paused = state.value?.phase === "paused" && state.value.reason?.kind === "watchpoint";
    const moment = `${runName.value}/${paused ? state.value?.rev : ""}`;
    if (shown === moment) return;
    const first = shown.split("/")[0] !== runName.value;
    if (first && (query.peek().node || query.peek().hit)) {
      shown = moment;
      return;
    }
    const step = state.value ? standing(state.value) : undefined;
    const origin = hits.value.find((hit) => hit.birth === "origin" && (!paused || hit.step === step)) ?? (paused ? hits.value.find((hit) => hit.step === step) : undefined);
    if (!origin || (!first && !paused)) {
      if (!paused) shown = moment;
      return;
    }
    shown = moment;
    chooseHit(origin);
  });
}
