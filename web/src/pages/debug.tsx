// The debugger: the answer on top, nodes and what happened at the left, the graph, what is looked at, and time below.
import { signal, useSignalEffect } from "@preact/signals";
import type { ComponentType } from "preact";
import { CompareTab } from "../debug/comparetab";
import { ControlBar } from "../debug/control";
import { Found, useStory } from "../debug/found";
import { GraphPanel } from "../debug/graph";
import { HitsPanel } from "../debug/hits";
import { useLanding } from "../debug/landing";
import { copy } from "../debug/nodemenu";
import { NodeTab } from "../debug/nodetab";
import { Scrubber } from "../debug/scrubber";
import { SourceTab } from "../debug/sourcetab";
import { TensorTab } from "../debug/tensortab";
import { TreePanel } from "../debug/tree";
import { VerdictCard } from "../debug/verdictcard";
import { WatchPanel } from "../debug/watch";
import { count } from "../format/number";
import { said, t } from "../i18n";
import { ask, HubError } from "../net/api";
import {
  chosenItem,
  chosenNode,
  editing,
  info,
  infoProblem,
  nodeKnown,
  nodeName,
  TABS,
  type Tab,
  tab,
} from "../state/debug";
import { change, currentLink, query } from "../state/route";
import { graph, hitTotal, isLive, rank, runName, shownStep, state, watchpoints } from "../state/run";
import { verdict } from "../state/verdict";
import type { NodeInfo } from "../types.gen";
import { Icon } from "../ui/icons";
import { lazy } from "../ui/lazy";
import { More } from "../ui/more";
import { Splitter, size } from "../ui/splitter";

const left = size("debug.left2", 270, 180, 640);
const lower = size("debug.lower", 230, 90, 600);
const right = size("debug.right", 460, 260, 1100);
/** The tensor over everything, until it is made small again. */
const large = signal(false);

// The only tab with a chart: what draws it is a quarter of everything.
const HistoryTab = lazy(() => import("../debug/historytab").then((one) => one.HistoryTab));

const SHOWN: Record<Tab, ComponentType> = {
  node: NodeTab,
  tensor: TensorTab,
  compare: CompareTab,
  source: SourceTab,
  history: HistoryTab,
};

export function DebugPage() {
  useNodeInfo();
  useLanding();
  useStory();
  const lost = nodeName.value && graph.value && !nodeKnown.value && verdict.value?.kind !== "exception";
  return (
    <div class="debug column grow">
      <ControlBar />
      <VerdictCard />
      {lost && (
        <div class="banner info" role="status">
          {t("debug.noNode", { node: nodeName.value, near: graph.value?.key[chosenItem.value] || "–" })}
        </div>
      )}
      <Found />
      <div class="row grow panes debug-panes">
        <div class="column debug-left" style={{ width: `${left.value.value}px` }}>
          <TreePanel />
          <Splitter of={lower} way="h" grows={-1} label={t("split.watch")} />
          <Lower />
        </div>
        <Splitter of={left} way="v" label={t("split.left")} />
        <GraphPanel />
        <Splitter of={right} way="v" grows={-1} label={t("split.right")} />
        <Details />
      </div>
      <Scrubber />
    </div>
  );
}

/** What happened, or what is watched for. */
function Lower() {
  const shown = editing.value !== null ? "watch" : (query.value.list ?? "hits");
  const height = editing.value === null ? lower.value.value : Math.max(lower.value.value, 400);
  return (
    <div class="column debug-lower" style={{ height: `${height}px` }}>
      <div class="tabs lower-tabs row" role="tablist" aria-label={t("debug.lower")}>
        {(["hits", "watch"] as const).map((one) => (
          <button
            key={one}
            role="tab"
            class="plain"
            id={`lower-${one}`}
            aria-selected={shown === one}
            aria-controls="lower-panel"
            data-test={`lower-${one}`}
            onClick={() => {
              editing.value = null;
              change({ list: one === "hits" ? null : one });
            }}
          >
            {said("debug.lower", one)}{" "}
            <span class="dim">{one === "hits" ? count(hitTotal.value) : count(watchpoints.value.length)}</span>
          </button>
        ))}
      </div>
      <div id="lower-panel" role="tabpanel" class="column grow" aria-labelledby={`lower-${shown}`}>
        {shown === "watch" ? <WatchPanel /> : <HitsPanel />}
      </div>
    </div>
  );
}

function Details() {
  const Inner = SHOWN[tab.value];
  return (
    <section
      class={`panel debug-details${large.value ? " large" : ""}`}
      style={{ width: `${right.value.value}px` }}
      aria-label={t("debug.details")}
    >
      <header class="tabs">
        <div role="tablist" class="row tight" aria-label={t("debug.details")}>
          {TABS.map((one) => (
            <button
              key={one}
              role="tab"
              id={`tab-${one}`}
              aria-selected={tab.value === one}
              aria-controls="tab-panel"
              class="plain"
              onClick={() => change({ tab: one === "node" ? null : one }, true)}
            >
              {said("tab", one)}
            </button>
          ))}
        </div>
        <span class="grow" />
        {isLive.value && state.value?.phase !== "paused" && (
          <span class="chip" title={t("debug.staleHelp")}>
            {t("debug.stale")}
          </span>
        )}
        <button
          class="plain"
          aria-pressed={large.value}
          title={t("debug.large")}
          onClick={() => (large.value = !large.peek())}
          data-test="large"
        >
          <Icon name="fit" />
          <span class="hidden-visually">{t("debug.large")}</span>
        </button>
        <button class="plain" title={t("copyLink")} onClick={() => void copy(currentLink())}>
          <Icon name="link" />
          <span class="hidden-visually">{t("copyLink")}</span>
        </button>
        <More name={`${runName.value}-${chosenNode.value}-${tab.value}`} />
      </header>
      <div
        id="tab-panel"
        role="tabpanel"
        aria-labelledby={`tab-${tab.value}`}
        class="scroll grow column"
        tabIndex={0}
        onDblClick={(event) => {
          if ((event.target as HTMLElement).closest(".heat, .numbers, .histogram")) large.value = !large.peek();
        }}
      >
        <Inner />
      </div>
    </section>
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
    ask<NodeInfo>(
      `runs/${encodeURIComponent(runName.peek())}/node`,
      { name, step: shownStep.value, rank: rank.value },
      end.signal,
    ).then(
      (answer) => {
        info.value = answer;
        infoProblem.value = "";
      },
      (error) => {
        if (error instanceof HubError) infoProblem.value = error.message;
      },
    );
    return () => end.abort();
  });
}
