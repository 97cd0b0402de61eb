// What happened: the verdict's tensor starred, what follows from it folded, and below the chosen one what it may mean.
import { signal, useComputed } from "@preact/signals";
import { middle, slotText } from "../format/address";
import type { Cells } from "../format/csv";
import { count, shown } from "../format/number";
import { knows, lang, plural, said, t } from "../i18n";
import { chooseHit, chosenHit, chosenNode, hitKey } from "../state/debug";
import { change, query } from "../state/route";
import {
  command,
  detail,
  hits,
  hitsKnown,
  hitsLeft,
  hitTotal,
  moreHits,
  noControl,
  runName,
  shownStep,
  watchpoints,
} from "../state/run";
import { isGuilty, isMask, verdict } from "../state/verdict";
import type { HitView } from "../types.gen";
import { Skeleton } from "../ui/card";
import { Icon } from "../ui/icons";
import { BirthMark } from "../ui/marks";
import { More } from "../ui/more";
import { Virtual } from "../ui/virtual";
import { type Filter, type FoldRow, type HitRow, hitRows, type Row } from "./hitrows";

const ROW = 40;
const open = signal<ReadonlySet<string>>(new Set());

export function HitsPanel() {
  const filter = (query.value.hits as Filter) ?? "all";
  const rows = useComputed(() =>
    hitRows(hits.value, (query.value.hits as Filter) ?? "all", shownStep.value, open.value, verdict.value),
  );
  const at = rows.value.findIndex(
    (row) => row.kind === "hit" && chosenHit.value !== null && row.hit.address === chosenHit.value.address,
  );
  return (
    <section class="panel hits-panel" aria-label={t("hits.title")}>
      <header>
        <span class="segments" role="group" aria-label={t("hits.filter")}>
          {(["all", "step"] as Filter[]).map((one) => (
            <button
              key={one}
              aria-pressed={filter === one}
              onClick={() => change({ hits: one === "all" ? null : one })}
            >
              {said("hits.filter", one)}
            </button>
          ))}
        </span>
        <span class="grow" />
        <button
          class="plain"
          title={t("hits.recheck")}
          disabled={noControl.value !== ""}
          onClick={() => void command("recheck")}
        >
          <Icon name="refresh" />
          <span class="hidden-visually">{t("hits.recheck")}</span>
        </button>
        <More name={`${runName.value}-hits`} csv={hitCells} json={() => hits.value} />
      </header>
      {!hitsKnown.value ? (
        <Skeleton rows={3} />
      ) : rows.value.length ? (
        <Virtual
          class="scroll grow hit-list"
          role="listbox"
          aria-label={t("hits.title")}
          tabIndex={0}
          total={rows.value.length}
          rowHeight={ROW}
          keep={at}
          ended={() => void moreHits()}
          row={(index) => <HitLine key={index} row={rows.value[index]} />}
        />
      ) : (
        <div class="empty">
          <p>
            {hits.value.length
              ? t("hits.noneHere")
              : runName.value
                ? t("hits.none", { n: watchpoints.value.filter((one) => one.enabled).length })
                : ""}
          </p>
        </div>
      )}
      {hits.value.length > 0 && hitsLeft.value > 0 && (
        <p class="dim found-count" data-test="more-hits">
          {t("hits.first", { n: count(hits.value.length), total: count(hitTotal.value) })}{" "}
          <button class="plain" onClick={() => void moreHits()}>
            {t("hits.more")}
          </button>
        </p>
      )}
      {chosenHit.value && <Advice hit={chosenHit.value} />}
    </section>
  );
}

function hitCells(): Cells {
  const rows = hits.value.map((hit) => [
    hit.step,
    hit.rank,
    hit.order,
    hit.address,
    hit.birth,
    hit.severity,
    hit.condition,
    hit.watchpoint,
    hit.stats?.nan,
    hit.stats?.pos_inf,
    hit.stats?.neg_inf,
    hit.reason,
  ]);
  return [
    [
      "step",
      "rank",
      "order",
      "address",
      "birth",
      "severity",
      "condition",
      "watchpoint",
      "nan",
      "pos_inf",
      "neg_inf",
      "reason",
    ],
    ...rows,
  ];
}

function HitLine({ row }: { row: Row }) {
  return row.kind === "hit" ? <OneHit row={row} /> : <FoldLine row={row} />;
}

/** What follows from the verdict, or masks: one line, opened by a click. */
function FoldLine({ row }: { row: FoldRow }) {
  const toggle = (): void => {
    const next = new Set(open.peek());
    if (!next.delete(row.kind)) next.add(row.kind);
    open.value = next;
  };
  const [from, to] = row.steps;
  const steps = from === to ? t("hits.atStep", { step: from }) : t("hits.steps", { from, to });
  return (
    <div role="option" aria-selected="false" class={`hit-line fold ${row.kind}`} data-test={row.kind} onClick={toggle}>
      <span class="bar" />
      <span class="two">
        <span class="cut">
          {t(row.kind === "masks" ? plural("hits.masks", row.count) : plural("hits.follow", row.count), {
            n: count(row.count),
          })}
        </span>
        <span class="dim cut small">
          {row.kind === "masks" ? t("hits.expected") : `${middle(row.first, 20)} … ${middle(row.last, 20)}, ${steps}`}
        </span>
      </span>
      <Icon name={row.open ? "down" : "right"} />
    </div>
  );
}

function OneHit({ row }: { row: HitRow }) {
  const { hit, guilty } = row;
  const chosen = chosenHit.value ? chosenHit.value.address === hit.address : guilty && chosenNode.value === hit.node;
  const state = `${chosen ? " chosen" : ""}${hit.outdated ? " outdated" : ""}${row.inner ? " inner" : ""}${row.mask ? " mask" : ""}`;
  return (
    <div
      role="option"
      aria-selected={chosen}
      class={`hit-line${state}`}
      data-test={guilty ? "origin" : "hit"}
      onClick={() => chooseHit(hit)}
      title={`${hit.address}\n${reason(hit)}`}
    >
      <span class={`bar ${guilty ? "guilty" : hit.severity}`} />
      <span class="two">
        <span class="row" style={{ gap: "4px" }}>
          <BirthMark guilty={guilty} />
          <span class="mono cut">{middle(`${hit.node}:${slotText(hit)}`, 34)}</span>
        </span>
        <span class="dim cut small">
          {guilty ? `${t("hits.origin")} · ` : ""}
          {t("hits.atStep", { step: hit.step })}
          {row.times > 1 ? ` ×${count(row.times)}` : ""}
          {(detail.value?.brief.world_size ?? 1) > 1 ? ` · ${t("verdict.rank", { rank: hit.rank })}` : ""}
          {row.mask ? ` · ${t("hits.mask")}` : ` · ${said("condition", hit.condition)}`}
        </span>
      </span>
      <span class="what mono cut">
        <What hit={hit} />
      </span>
    </div>
  );
}

function What({ hit }: { hit: HitView }) {
  const { stats } = hit;
  if (stats && stats.nan + stats.pos_inf + stats.neg_inf > 0) {
    return (
      <>
        {stats.nan > 0 && <span class="chip nan">NaN ×{count(stats.nan)}</span>}
        {stats.pos_inf > 0 && <span class="chip inf">+Inf ×{count(stats.pos_inf)}</span>}
        {stats.neg_inf > 0 && <span class="chip inf">-Inf ×{count(stats.neg_inf)}</span>}
      </>
    );
  }
  const tripped = hit.readings.find((one) => one.hit);
  if (!tripped) return <>{reason(hit)}</>;
  return (
    <>
      {tripped.parameter.replace(/_(gt|lt|ge)$/, "")}{" "}
      {typeof tripped.actual === "boolean" ? String(tripped.actual) : shown(tripped.actual)}
    </>
  );
}

function reason(hit: HitView): string {
  return (lang.value === "zh" && hit.reason_zh) || hit.reason;
}

/** What usually causes this, and what to look at next. */
function Advice({ hit }: { hit: HitView }) {
  const topic = isMask(hit) ? "mask" : knows("advice", hit.condition) ? hit.condition : "other";
  const guilty = isGuilty(hit);
  return (
    <aside class="advice" aria-label={t("advice.title")}>
      <div class="row">
        <Icon name={guilty ? "star" : "target"} tone={guilty ? "warning" : isMask(hit) ? undefined : "error"} />
        <b>{knows("condition", hit.condition) ? said("condition", hit.condition) : hit.condition}</b>
        <span class="dim">{reason(hit)}</span>
        <span class="grow" />
        <button class="plain" onClick={() => change({ hit: null })} aria-label={t("close")}>
          <Icon name="cross" />
        </button>
      </div>
      <p>
        {isMask(hit) ? "" : `${said("birth", hit.birth)} `}
        {said("advice", topic)}
      </p>
      <div class="row wrap">
        <button onClick={() => change({ tab: "source" }, true)}>
          <Icon name="file" />
          {t("advice.source")}
        </button>
        <button onClick={() => change({ tab: "node" }, true)}>
          <Icon name="debug" />
          {t("advice.inputs")}
        </button>
        <button onClick={() => change({ tab: "history" }, true)}>
          <Icon name="scalars" />
          {t("advice.history")}
        </button>
        {hit.outdated && <span class="chip">{t("hits.outdated")}</span>}
        <span class="dim mono hidden-visually">{hitKey(hit)}</span>
      </div>
    </aside>
  );
}
