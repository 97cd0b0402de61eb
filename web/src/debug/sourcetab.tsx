// The line of the user's program that made a node, the lines around it that made others, and what else this line made.
import { signal, useSignalEffect } from "@preact/signals";
import { count } from "../format/number";
import { t } from "../i18n";
import { ask } from "../net/api";
import { chooseNode, info, keyOf } from "../state/debug";
import { graph, rank, runName } from "../state/run";
import { guiltyNode } from "../state/verdict";
import type { SourceLine, SourceList } from "../types.gen";
import { Icon } from "../ui/icons";
import { copy } from "./nodemenu";

const lines = signal<{ key: string; list: SourceLine[] } | null>(null);

export function SourceTab() {
  useSignalEffect(() => {
    const key = `${runName.value}#${rank.value}#${graph.value?.count ?? 0}`;
    if (!runName.value || lines.peek()?.key === key) return;
    void ask<SourceList>(`runs/${encodeURIComponent(runName.value)}/sources`, { rank: rank.value, limit: 5000 }).then(
      (answer) => (lines.value = { key, list: answer.lines }),
      () => {},
    );
  });
  const source = info.value?.source;
  if (!info.value)
    return (
      <div class="empty">
        <p>{t("node.none")}</p>
      </div>
    );
  if (!source)
    return (
      <div class="empty">
        <h2>{t("source.none")}</h2>
        <p>{t("source.noneHelp")}</p>
      </div>
    );
  const near = (lines.value?.list ?? []).filter((one) => one.file === source.file).sort((a, b) => a.line - b.line);
  const all = near.some((one) => one.line === source.line)
    ? near
    : [...near, { ...source, nodes: [info.value.name], total: 1 }];
  return (
    <div class="column gap pad">
      <div class="row">
        <b class="mono cut tail" title={source.file}>
          <bdi>
            {source.file}:{source.line}
          </bdi>
        </b>
        <button class="plain" title={t("source.copy")} onClick={() => void copy(`${source.file}:${source.line}`)}>
          <Icon name="copy" />
          <span class="hidden-visually">{t("source.copy")}</span>
        </button>
      </div>
      <p class="dim">{t("source.explain")}</p>
      <div class="code" role="list">
        {all.map((one) => (
          <div
            key={one.line}
            role="listitem"
            class={`code-line${one.line === source.line ? " chosen" : ""}`}
            ref={one.line === source.line ? intoSight : undefined}
            data-test={one.line === source.line ? "source-line" : undefined}
          >
            <span class="number dim">{one.line}</span>
            <span class="code-mark">
              {one.nodes.includes(guiltyNode.value) && <Icon name="star" tone="warning" title={t("hits.origin")} />}
            </span>
            <code>{one.code || "…"}</code>
            <span class="row wrap nodes">
              {one.nodes.slice(0, 4).map((name) => (
                <button key={name} class="plain mono" onClick={() => jump(name)}>
                  {name}
                </button>
              ))}
              {one.total > 4 && <span class="dim">{t("more", { n: count(one.total - 4) })}</span>}
            </span>
          </div>
        ))}
      </div>
    </div>
  );
}

/** The chosen line is in the middle of the list, wherever it stands in the file. */
function intoSight(line: HTMLElement | null): void {
  if (line && line !== scrolled) line.scrollIntoView({ block: "center" });
  if (line) scrolled = line;
}
let scrolled: HTMLElement | null = null;

function jump(name: string): void {
  chooseNode(keyOf(name), { tab: "source" });
}
