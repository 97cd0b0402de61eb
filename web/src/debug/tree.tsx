// The nodes as a tree: the accessible twin of the graph, with a gutter of dots that say what is watched and hit.
import { signal, useComputed, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { shortName } from "../format/address";
import { count } from "../format/number";
import type { Model } from "../graph/model";
import { t } from "../i18n";
import { ask, HubError } from "../net/api";
import { activeWatch, chooseNode, chosenItem, editing, editorStart, keyOf } from "../state/debug";
import { change, query } from "../state/route";
import { edit, graph, graphMissing, hits, noControl, rank, runName, shownStep, watchpoints } from "../state/run";
import { toast } from "../state/toasts";
import { guiltyNode, isMask, verdict } from "../state/verdict";
import type { SearchResult } from "../types.gen";
import { Skeleton } from "../ui/card";
import { Icon } from "../ui/icons";
import { Virtual } from "../ui/virtual";
import { rootName } from "./graph";
import { nodeMenu } from "./nodemenu";
import { hitSums, Members, treeRows } from "./treerows";

const ROW = 24;
const open = signal<ReadonlySet<number>>(new Set());
const found = signal<SearchResult | null>(null);
const searchProblem = signal("");
let opener: unknown = null;
let awaited: string | null = null;

/** Enter takes the first node of the search as it stands in the box, also when its answer is still on its way. */
function chooseAwaited(): void {
  if (awaited === null || found.peek()?.query !== awaited) return;
  awaited = null;
  const first = found.peek()?.nodes[0];
  if (first) chooseNode(keyOf(first.name));
}

export function TreePanel() {
  const holder = useRef<HTMLDivElement>(null);
  const asking = useRef<AbortController | null>(null);
  const q = query.value.q ?? "";

  useSignalEffect(() => {
    const model = graph.value;
    if (!model) return;
    if (opener !== model) {
      // A new graph: the first level is open, and what was open before by its name.
      opener = model;
      open.value = new Set(
        model.children[0].filter(
          (item) =>
            model.children[0].length < 12 && model.children[item].length < 60 && !model.key[item].startsWith("∇"),
        ),
      );
    }
    const way = model.path(chosenItem.value).slice(0, -1);
    if (way.some((item) => !open.peek().has(item))) open.value = new Set([...open.peek(), ...way]);
  });
  useSignalEffect(() => {
    const text = query.value.q ?? "";
    const [name, which] = [runName.value, rank.value];
    asking.current?.abort();
    searchProblem.value = "";
    if (!text.trim()) {
      found.value = null;
      return;
    }
    const mine = (asking.current = new AbortController());
    setTimeout(() => {
      if (mine.signal.aborted) return;
      ask<SearchResult>(
        `runs/${encodeURIComponent(name)}/search`,
        { q: text, rank: which, limit: 500 },
        mine.signal,
      ).then(
        (answer) => {
          found.value = answer;
          chooseAwaited();
        },
        (error) => {
          if (error instanceof HubError) searchProblem.value = error.message;
        },
      );
    }, 120);
  });

  return (
    <section class="panel tree-panel" aria-label={t("tree.title")}>
      <header>
        <label class="search grow">
          <Icon name="search" />
          <input
            id="node-search"
            class={searchProblem.value ? "wrong" : ""}
            value={q}
            placeholder={t("tree.search")}
            aria-label={t("tree.search")}
            title={t("tree.searchHelp")}
            onInput={(event) => change({ q: event.currentTarget.value })}
            onKeyDown={(event) => {
              if (event.key === "Escape") change({ q: null });
              if (event.key === "Enter" && !event.isComposing) {
                awaited = event.currentTarget.value;
                chooseAwaited();
              }
            }}
          />
        </label>
      </header>
      {searchProblem.value && (
        <p class="pad tone-error" role="alert">
          {searchProblem.value}
        </p>
      )}
      {q.trim() && found.value && !searchProblem.value ? <Found result={found.value} /> : <Tree holder={holder} />}
    </section>
  );
}

function Found({ result }: { result: SearchResult }) {
  return (
    <div class="column grow" role="list" aria-label={t("tree.found")}>
      <p class="dim found-count">{t("tree.foundCount", { n: count(result.total) })}</p>
      <Virtual
        class="scroll grow"
        role="presentation"
        total={result.nodes.length}
        rowHeight={ROW}
        keep={-1}
        row={(at) => {
          const node = result.nodes[at];
          const key = keyOf(node.name);
          return (
            <div role="listitem" key={node.index}>
              <button
                class={`tree-row${graph.value && key === graph.value.key[chosenItem.value] ? " chosen" : ""}`}
                onClick={() => chooseNode(key)}
                title={node.name}
              >
                <span class="gutter">
                  {node.hits > 0 ? (
                    <Icon name="target" tone="error" />
                  ) : node.watched ? (
                    <Icon name="circle" tone="accent" />
                  ) : null}
                </span>
                <span class="cut">{shortName(node.name, 34)}</span>
                <span class="dim cut type">{node.type}</span>
              </button>
            </div>
          );
        }}
      />
    </div>
  );
}

function Tree({ holder }: { holder: { current: HTMLDivElement | null } }) {
  const model = graph.value;
  const rows = useComputed(() => (graph.value ? treeRows(graph.value, open.value) : []));
  const sums = useComputed(() =>
    graph.value
      ? hitSums(
          graph.value,
          hits.value.filter((hit) => hit.step === shownStep.value && hit.rank === rank.value && !isMask(hit)),
          guiltyNode.value,
        )
      : null,
  );
  const members = useComputed(() => {
    const watch = watchpoints.value.find((one) => one.id === activeWatch.value);
    return graph.value && watch ? new Members(graph.value, watch) : null;
  });
  if (!model) return graphMissing.value ? <p class="pad dim">{t("tree.none")}</p> : <Skeleton rows={8} />;
  const at = rows.value.indexOf(chosenItem.value);
  const set = (item: number, on: boolean): void => {
    const next = new Set(open.peek());
    if (on) next.add(item);
    else next.delete(item);
    open.value = next;
  };
  const key = (event: KeyboardEvent): void => {
    const now = Math.max(0, at);
    const item = rows.value[now];
    const scope = model.isScope(item);
    const to = (index: number): void =>
      chooseNode(model.key[rows.value[Math.min(rows.value.length - 1, Math.max(0, index))]]);
    const acts: Record<string, () => void> = {
      ArrowDown: () => to(at < 0 ? 0 : now + 1),
      ArrowUp: () => to(now - 1),
      Home: () => to(0),
      End: () => to(rows.value.length - 1),
      PageDown: () => to(now + 20),
      PageUp: () => to(now - 20),
      ArrowRight: () => (scope && !open.peek().has(item) ? set(item, true) : scope && to(now + 1)),
      ArrowLeft: () =>
        scope && open.peek().has(item)
          ? set(item, false)
          : model.parent[item] > 0 && chooseNode(model.key[model.parent[item]]),
      Enter: () => scope && set(item, !open.peek().has(item)),
      " ": () => toggleWatch(item, false),
      ContextMenu: () => nodeMenu(model.key[item], 120, 200),
    };
    if (!acts[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    acts[event.key]();
  };
  return (
    <Virtual
      class="scroll grow tree"
      role="tree"
      tabIndex={0}
      id="tree"
      aria-label={t("tree.title")}
      holder={holder}
      aria-activedescendant={at >= 0 ? `item-${chosenItem.value}` : undefined}
      onKeyDown={key}
      total={rows.value.length}
      rowHeight={ROW}
      keep={at}
      row={(index) => {
        const item = rows.value[index];
        const scope = model.isScope(item);
        const isOpen = open.value.has(item);
        const hit = sums.value?.all.below(item) ?? 0;
        const guilty = sums.value?.guilty ?? 0;
        const origin = guilty > 0 && model.contains(item, guilty);
        return (
          <div
            key={item}
            id={`item-${item}`}
            role="treeitem"
            aria-level={model.depth[item]}
            aria-expanded={scope ? isOpen : undefined}
            aria-selected={item === chosenItem.value}
            class={`tree-row${item === chosenItem.value ? " chosen" : ""}`}
            style={{ paddingLeft: `${4 + (model.depth[item] - 1) * 14 + 20}px` }}
            onClick={() => {
              chooseNode(model.key[item]);
              holder.current?.focus();
            }}
            onDblClick={() => scope && set(item, !isOpen)}
            onContextMenu={(event) => {
              event.preventDefault();
              nodeMenu(model.key[item], event.clientX, event.clientY);
            }}
            title={`${model.name(item)}${model.type(item) ? `  ${model.type(item)}` : ""}`}
          >
            <Gutter
              item={item}
              label={rootName(model, item)}
              dot={members.value?.dot(item) ?? "none"}
              hits={hit}
              origin={origin}
            />
            {scope ? (
              <button
                class="twist"
                tabIndex={-1}
                aria-label={isOpen ? t("tree.close") : t("tree.open")}
                onClick={(event) => {
                  event.stopPropagation();
                  set(item, !isOpen);
                }}
              >
                <Icon name={isOpen ? "down" : "right"} />
              </button>
            ) : (
              <span class="twist" />
            )}
            <span class={`cut${model.isParameter(item) ? " dim" : ""}`}>{rootName(model, item)}</span>
            <Beside model={model} item={item} scope={scope} />
            {origin ? (
              <span class="badge tone-warning">
                ★ {item === guilty && verdict.value ? (verdict.value.kind === "nan" ? "NaN" : "Inf") : ""}
              </span>
            ) : (
              hit > 0 && <span class="badge tone-error">{count(hit)}</span>
            )}
          </div>
        );
      }}
    />
  );
}

/** The type, unless the name says it already; of a closed scope how many operators are in it. */
function Beside({ model, item, scope }: { model: Model; item: number; scope: boolean }) {
  const type = model.type(item).replace(/^aten\./, "");
  const label = model.label[item].replace(/_\d+$/, "");
  const said = type && type !== label ? type : "";
  return (
    <>
      {said && <span class="dim cut type">{said}</span>}
      {scope && <span class="dim number">{count(model.size[item])}</span>}
    </>
  );
}

function Gutter({
  item,
  label,
  dot,
  hits: hit,
  origin,
}: {
  item: number;
  label: string;
  dot: "all" | "some" | "none";
  hits: number;
  origin: boolean;
}) {
  const checked = dot === "all" ? "true" : dot === "some" ? "mixed" : "false";
  const icon = origin ? "star" : hit > 0 ? "target" : dot === "all" ? "circle" : dot === "some" ? "half" : "ring";
  const tone = origin ? "warning" : hit > 0 ? "error" : dot === "none" ? undefined : "accent";
  return (
    <span
      class={`gutter${hit === 0 && !origin && dot === "none" ? " faint" : ""}`}
      role="checkbox"
      aria-checked={checked}
      aria-label={t("tree.watchNode", { node: label })}
      tabIndex={-1}
      title={t("tree.gutter")}
      onClick={(event) => {
        event.stopPropagation();
        toggleWatch(item, event.altKey);
      }}
    >
      <Icon name={icon} tone={tone} />
    </span>
  );
}

/** Put everything below an item under the active watchpoint, or take it out; without one, start a new one here. */
export function toggleWatch(item: number, only: boolean): void {
  const model = graph.peek();
  if (!model) return;
  if (noControl.peek()) {
    toast("info", noControl.peek());
    return;
  }
  const name = model.name(item);
  const watch = watchpoints.peek().find((one) => one.id === activeWatch.peek());
  if (!watch) {
    editorStart.value = { on: model.isScope(item) ? `${name}*` : name };
    editing.value = "new";
    return;
  }
  const dot = new Members(model, watch).dot(item);
  if (only)
    void edit("update", {
      watchpoint: watch.id,
      spec: {
        condition: watch.condition,
        parameters: watch.parameters as Record<string, number | boolean>,
        on: [`${name}*`],
        then: watch.then,
        limit: watch.limit,
      },
    });
  else void edit(dot === "all" ? "unwatch_scope" : "watch_scope", { watchpoint: watch.id, scope: name });
}
