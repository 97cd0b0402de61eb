// The hit list: always in sight, in execution order, origins starred, and beside the chosen one what it may mean.
import { signal, useComputed } from "@preact/signals";
import { type Cells } from "../format/csv";
import { count, shown } from "../format/number";
import { slotText } from "../format/address";
import { knows, lang, said, t } from "../i18n";
import { chooseHit, chosenHit, hitKey } from "../state/debug";
import { change, query } from "../state/route";
import { command, detail, hits, hitsLeft, hitTotal, moreHits, noControl, runName, shownStep, watchpoints } from "../state/run";
import type { HitView } from "../types.gen";
import { Icon } from "../ui/icons";
import { BirthMark, SeverityMark } from "../ui/marks";
import { More } from "../ui/more";
import { Virtual } from "../ui/virtual";
import { toldOf } from "./found";
import { type Filter, foldKey, hitRows, type Row } from "./hitrows";

const ROW = 26;
const open = signal<ReadonlySet<string>>(new Set());

export function HitsPanel() {
  const filter = (query.value.hits as Filter) ?? "all";
  const rows = useComputed(() => hitRows(hits.value, (query.value.hits as Filter) ?? "all", shownStep.value, open.value));
  const origins = useComputed(() => new Set(hits.value.filter((hit) => hit.birth === "origin").map((hit) => hit.address)).size);
  const at = rows.value.findIndex((row) => row.kind === "hit" && chosenHit.value !== null && row.hit.address === chosenHit.value.address);
  return (
    <section class="panel hits-panel" aria-label={t("hits.title")}>
      <header>
        <h2>{t("hits.title")} <span class="dim">{count(hitTotal.value)}</span></h2>
        {origins.value > 0 && <span class="row tone-warning nowrap" style={{ gap: "4px" }}><Icon name="star" />{t("hits.origins", { n: count(origins.value) })}</span>}
        <span class="grow" />
        <span class="segments" role="group" aria-label={t("hits.filter")}>
          {(["all", "origins", "step"] as Filter[]).map((one) => (
            <button key={one} aria-pressed={filter === one} onClick={() => change({ hits: one === "all" ? null : one })}>{said("hits.filter", one)}</button>
          ))}
        </span>
        <button class="plain" title={t("hits.recheck")} disabled={noControl.value !== ""} onClick={() => void command("recheck")}><Icon name="refresh" /><span class="hidden-visually">{t("hits.recheck")}</span></button>
        <More name={`${runName.value}-hits`} csv={hitCells} json={() => hits.value} />
      </header>
      {rows.value.length ? (
        <Virtual class="scroll grow hit-list" role="listbox" aria-label={t("hits.title")} tabIndex={0} total={rows.value.length} rowHeight={ROW} keep={at} ended={() => void moreHits()} row={(index) => <HitLine key={index} row={rows.value[index]} />} />
      ) : (
        <div class="empty"><p>{hits.value.length ? t("hits.noneHere") : runName.value ? t("hits.none", { n: watchpoints.value.filter((one) => one.enabled).length }) : ""}</p>{healthy() && <p data-test="healthy">{t("found.nothing")}</p>}</div>
      )}
      {hits.value.length > 0 && hitsLeft.value > 0 && <p class="dim found-count" data-test="more-hits">{t("hits.first", { n: count(hits.value.length), total: count(hitTotal.value) })} <button class="plain" onClick={() => void moreHits()}>{t("hits.more")}</button></p>}
      {chosenHit.value && <Advice hit={chosenHit.value} />}
    </section>
  );
}

/** A run that is over and of which nothing bad can be told. */
function healthy(): boolean {
  const told = toldOf(runName.value);
  return told !== null && !told.birth && !told.findings.length && hitTotal.value === 0 && detail.value?.brief.state === "finished" && shownStep.value > 1;
}

function hitCells(): Cells {
  const rows = hits.value.map((hit) => [hit.step, hit.rank, hit.order, hit.address, hit.birth, hit.severity, hit.condition, hit.watchpoint, hit.stats?.nan, hit.stats?.pos_inf, hit.stats?.neg_inf, hit.reason]);
  return [["step", "rank", "order", "address", "birth", "severity", "condition", "watchpoint", "nan", "pos_inf", "neg_inf", "reason"], ...rows];
}

function HitLine({ row }: { row: Row }) {
  if (row.kind === "propagated") {
    const toggle = (): void => {
      const key = foldKey(row);
      const next = new Set(open.peek());
      if (!next.delete(key)) next.add(key);
      open.value = next;
    };
    return (
      <div role="option" aria-selected="false" class="hit-line dim" onClick={toggle}>
        <span class="number step">{row.step}</span><span class="mark" /><Icon name={row.open ? "down" : "right"} />
        <span class="cut">{t("hits.propagated", { n: count(row.count) })}</span>
      </div>
    );
  }
  const { hit } = row;
  const chosen = chosenHit.value !== null && chosenHit.value.address === hit.address;
  return (
    <div role="option" aria-selected={chosen} class={`hit-line${chosen ? " chosen" : ""}${hit.outdated ? " outdated" : ""}${hit.birth === "propagated" ? " inner" : ""}`} data-test={hit.birth === "origin" ? "origin" : "hit"} onClick={() => chooseHit(hit)} title={`${hit.address}\n${reason(hit)}`}>
      <span class="number step">{hit.step}</span>
      <span class="mark"><BirthMark hit={hit} /></span>
      <SeverityMark hit={hit} />
      <span class="mono cut grow tail"><bdi>{hit.node}<span class="dim">:{slotText(hit)}</span></bdi></span>
      <span class="what mono cut"><What hit={hit} /></span>
      <span class="dim mono nowrap wps">{row.watchpoints.slice(0, 2).map((id) => `#${id}`).join(" ")}{row.watchpoints.length > 2 ? "…" : ""}</span>
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
  return <>{tripped.parameter.replace(/_(gt|lt|ge)$/, "")} {typeof tripped.actual === "boolean" ? String(tripped.actual) : shown(tripped.actual)}</>;
}

function reason(hit: HitView): string {
  return (lang.value === "zh" && hit.reason_zh) || hit.reason;
}

/** What usually causes this, and what to look at next. */
function Advice({ hit }: { hit: HitView }) {
  const topic = knows("advice", hit.condition) ? hit.condition : "other";
  return (
    <aside class="advice" aria-label={t("advice.title")}>
      <div class="row"><Icon name={hit.birth === "origin" ? "star" : "target"} tone={hit.birth === "origin" ? "warning" : "error"} /><b>{knows("condition", hit.condition) ? said("condition", hit.condition) : hit.condition}</b><span class="dim">{reason(hit)}</span>
        <span class="grow" /><button class="plain" onClick={() => change({ hit: null })} aria-label={t("close")}><Icon name="cross" /></button></div>
      <p>{said("birth", hit.birth)} {said("advice", topic)}</p>
      <div class="row wrap">
        <button onClick={() => change({ tab: "source" }, true)}><Icon name="file" />{t("advice.source")}</button>
        <button onClick={() => change({ tab: "node" }, true)}><Icon name="debug" />{t("advice.inputs")}</button>
        <button onClick={() => change({ tab: "history" }, true)}><Icon name="scalars" />{t("advice.history")}</button>
        {hit.outdated && <span class="chip">{t("hits.outdated")}</span>}
        <span class="dim mono hidden-visually">{hitKey(hit)}</span>
      </div>
    </aside>
  );
}
