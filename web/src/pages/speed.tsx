// Where the time of a step goes, what to change, and what was measured: `misstep advise` as a page.
import { signal, useSignalEffect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import "../styles/speed.css";
import { bytes } from "../format/number";
import { lang, t } from "../i18n";
import { ask } from "../net/api";
import { Bars, Legend, ms } from "../speed/bars";
import { Treemap } from "../speed/treemap";
import { w } from "../speed/words";
import { runs } from "../state/live";
import { change, query } from "../state/route";
import { runName, state } from "../state/run";
import type { SpeedAdvice, SpeedTrial, SpeedView } from "../types.gen";

const AGAIN_MS = 4000;
const view = signal<{ run: string; told: SpeedView | null } | null>(null);

export function SpeedPage() {
  useEffect(() => {
    const timer = setInterval(() => {
      if (state.value?.phase === "running") void look();
    }, AGAIN_MS);
    return () => clearInterval(timer);
  }, []);
  useSignalEffect(() => {
    void lang.value;
    void runName.value;
    void query.value.rank;
    void query.value.last;
    void look();
  });
  if (view.value?.run !== runName.value) return null;
  const told = view.value.told;
  if (!told)
    return (
      <div class="empty">
        <p>{w("none")}</p>
      </div>
    );
  return (
    <div class="scroll grow pad column gap speed">
      <Figures told={told} />
      <section class="card speed-card">
        <header class="row">
          <h2>{w("title")}</h2>
          <Legend view={told} />
          <span class="grow" />
          <Chooser told={told} />
        </header>
        <Bars view={told} />
        <p class="dim">
          {w("median", { ms: ms(told.p50) })} ·{" "}
          {told.compile
            ? w("first", { ms: ms(told.first), compile: ms(told.compile) })
            : w("firstOnly", { ms: ms(told.first) })}
        </p>
      </section>
      <div class="speed-pair">
        <Changes told={told} />
        <section class="card speed-card">
          <h2>{w("operators")}</h2>
          {told.operators.length ? (
            <>
              <p class="dim">{w("operators.how", { n: told.profiled })}</p>
              <Treemap operators={told.operators} />
            </>
          ) : (
            <p class="dim">
              {w("operators.none")} <code>misstep profile …</code>
            </p>
          )}
        </section>
      </div>
      {told.stages.length > 0 && <Pipeline told={told} />}
      {told.unknown.length > 0 && (
        <section class="card speed-card">
          <h2>{w("notMeasured")}</h2>
          <ul>
            {told.unknown.map((one) => (
              <li key={one}>{one}</li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

async function look(): Promise<void> {
  const run = runName.value;
  const asked = { lang: lang.value, rank: query.value.rank ?? 0, last: query.value.last ?? 0 };
  try {
    const told = await ask<SpeedView>(`runs/${encodeURIComponent(run)}/speed`, asked);
    view.value = { run, told };
  } catch {
    view.value = { run, told: null };
  }
}

function Figures({ told }: { told: SpeedView }) {
  const best = reachable(told);
  const percent = (share: number) => `${(share * 100).toFixed(0)} %`;
  return (
    <div class="speed-figures">
      <Figure name={w("step")} value={ms(told.step)}>
        {w("spread", { p50: ms(told.p50), p99: ms(told.p99) })}
        {told.period ? ` · ${w("every", { n: told.period })}` : ""}
      </Figure>
      <Figure name={w("data")} value={percent(told.data_share)} tone={told.bound === "fine" ? "" : "warning"}>
        {told.verdict} · {queueOf(told, percent)}
      </Figure>
      <Figure name={w("memory")} value={told.memory_most ? bytes(told.memory_most) : "–"}>
        {told.memory_most ? w("memoryHow") : w("memoryNone")}
      </Figure>
      <Figure name={w("reachable")} value={best ? `${best.ratio.toFixed(2)}×` : "1×"} tone={best ? "ok" : ""}>
        {best ? w(best.measured ? "reachable.measured" : "reachable.predicted") : w("nothing")}
      </Figure>
    </div>
  );
}

function queueOf(told: SpeedView, percent: (share: number) => string): string {
  if (told.empty !== null) return w("empty", { share: percent(told.empty) });
  return told.workers === 0 ? w("here") : w("emptyUnknown");
}

function Figure(given: { name: string; value: string; tone?: string; children: preact.ComponentChildren }) {
  return (
    <section class="card speed-figure">
      <span class="dim">{given.name}</span>
      <b class={given.tone ? `tone-${given.tone}` : ""}>{given.value}</b>
      <span class="dim">{given.children}</span>
    </section>
  );
}

/** The most that one change gains: as measured where something was, else as predicted of what can be tried. */
function reachable(told: SpeedView): { ratio: number; measured: boolean } | null {
  const kept = told.trials.filter((one) => one.kept && one.before && one.after);
  const measured = Math.max(0, ...kept.map((one) => (one.before ?? 0) / (one.after ?? 1)));
  if (measured > 1) return { ratio: measured, measured: true };
  const promised = told.advice.filter((one) => one.tried && one.predicted);
  const predicted = Math.max(0, ...promised.map((one) => told.step / (one.predicted ?? told.step)));
  return predicted > 1.01 && !told.trials.length ? { ratio: predicted, measured: false } : null;
}

function Chooser({ told }: { told: SpeedView }) {
  const ranks = runs.value.get(runName.value)?.ranks ?? [];
  return (
    <>
      {ranks.length > 1 && (
        <select
          aria-label={t("rank")}
          value={String(told.rank)}
          onChange={(event) => change({ rank: event.currentTarget.value })}
        >
          {ranks.map((rank) => (
            <option key={rank} value={String(rank)}>
              {t("rank")} {rank}
            </option>
          ))}
        </select>
      )}
      <select
        aria-label={t("step")}
        value={query.value.last ?? "0"}
        onChange={(event) => change({ last: event.currentTarget.value })}
      >
        <option value="0">{w("lastAll")}</option>
        {[100, 500, 2000].map((n) => (
          <option key={n} value={String(n)}>
            {w("last", { n })}
          </option>
        ))}
      </select>
    </>
  );
}

function Changes({ told }: { told: SpeedView }) {
  const tried = new Map(told.trials.map((one) => [one.name, one]));
  const advised = new Set(told.advice.map((one) => one.what));
  const others = told.trials.filter((one) => !advised.has(one.name));
  return (
    <section class="card speed-card">
      <h2>{w("what")}</h2>
      <p>
        <b>{told.verdict}</b>: {told.why}
      </p>
      {told.nothing && <p>{told.nothing}</p>}
      {(told.advice.length > 0 || others.length > 0) && (
        <table class="speed-changes">
          <thead>
            <tr>
              <th>{w("change")}</th>
              <th class="number">{w("predicted")}</th>
              <th class="number">{w("measured")}</th>
              <th />
            </tr>
          </thead>
          <tbody>
            {told.advice.map((one) => (
              <Change key={one.rule + one.what} advice={one} trial={tried.get(one.what)} step={told.step} />
            ))}
            {others.map((one) => (
              <Change key={one.name} trial={one} step={told.step} />
            ))}
          </tbody>
        </table>
      )}
      {told.advice.some((one) => one.tried) && !told.trials.length && (
        <p class="dim">
          {w("try")} <code>misstep advise {runName.value} --apply</code>
        </p>
      )}
    </section>
  );
}

function Change({ advice, trial, step }: { advice?: SpeedAdvice; trial?: SpeedTrial; step: number }) {
  const predicted = advice?.predicted ?? trial?.predicted ?? null;
  const around = interval(advice);
  const after = trial?.after ?? null;
  return (
    <tr>
      <td>
        <b>{advice?.what ?? trial?.name}</b>
        <div class="dim" title={advice?.threshold}>
          {advice?.why ?? trial?.outcome} {advice?.where && <span class="mono">{advice.where}</span>}
        </div>
        <Meter value={predicted} of={trial?.before ?? step} kind="predicted" />
        <Meter value={after} of={trial?.before ?? step} kind="measured" worse={!trial?.kept} />
      </td>
      <td class="number">
        {predicted === null ? "–" : ms(predicted)}
        {around && <div class="dim">{around}</div>}
      </td>
      <td class={`number${trial?.kept ? " tone-ok" : ""}`} title={trial?.outcome}>
        {after === null ? "–" : ms(after)}
      </td>
      <td class="right">
        {trial && <span class={`speed-mark ${trial.kept ? "is-kept" : ""}`}>{w(trial.kept ? "kept" : "dont")}</span>}
      </td>
    </tr>
  );
}

/** ±0.7 ms where the interval lies evenly around what is predicted, else its two ends. */
function interval(advice?: SpeedAdvice): string {
  const { predicted, low, high } = advice ?? {};
  if (predicted == null || low == null || high == null || high <= low) return "";
  const [below, above] = [predicted - low, high - predicted];
  return Math.abs(above - below) < 0.3 * (above + below) ? `±${ms((above + below) / 2)}` : `${ms(low)} – ${ms(high)}`;
}

function Meter(given: { value: number | null; of: number; kind: "predicted" | "measured"; worse?: boolean }) {
  const { value, of, kind, worse } = given;
  if (value === null || of <= 0) return null;
  return (
    <div class={`speed-meter is-${kind}${worse ? " is-worse" : ""}`} title={w(kind)}>
      <i style={{ width: `${Math.min(100, (value / of) * 100)}%` }} />
    </div>
  );
}

function Pipeline({ told }: { told: SpeedView }) {
  return (
    <section class="card speed-card">
      <header class="row">
        <h2>{w("pipeline")}</h2>
        <span class="mono dim">{told.loader}</span>
      </header>
      {told.make !== null && <p class="dim">{w("making", { ms: ms(told.make), n: told.workers ?? 0 })}</p>}
      {told.stages.slice(0, 12).map((one, at) => (
        <div class="speed-stage" key={`${at} ${one.name}`}>
          <span class="mono" style={{ paddingLeft: `${one.depth * 14}px` }} title={one.where}>
            {one.name}
          </span>
          <div class="speed-meter is-predicted">
            <i style={{ width: `${one.share * 100}%` }} />
          </div>
          <span class="number">{(one.share * 100).toFixed(0)} %</span>
          <span class="number">{ms(one.ms)}</span>
        </div>
      ))}
    </section>
  );
}
