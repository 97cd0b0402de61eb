// What was dumped: every whole tensor that was kept, by step and rank, found by the search language, and looked into.
import { signal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import "../styles/held.css";
import { api } from "../base";
import { copy } from "../debug/nodemenu";
import { bytes, count, shown } from "../format/number";
import { CheckPanel } from "../held/check";
import { ThingSelect } from "../held/picker";
import { HeldTensor } from "../held/tensor";
import { fetchThings, sentence, things } from "../held/things";
import { told, w } from "../held/words";
import { t } from "../i18n";
import { ask } from "../net/api";
import { runs } from "../state/live";
import { change, currentLink, go, link, query } from "../state/route";
import { isLive, runName, state } from "../state/run";
import type { DumpRow, DumpTable, HitView } from "../types.gen";
import { Icon } from "../ui/icons";
import { Classes, Dtype } from "../ui/marks";
import { Splitter, size } from "../ui/splitter";

const below = size("dumps.below", 360, 160, 800);
const checks = size("dumps.checks", 470, 260, 900);
const table = signal<DumpTable | null>(null);
const rows = signal<DumpRow[]>([]);
const wrong = signal("");
const busy = signal(false);

/** The run of the page, or the thing the address names. */
function thingOf(): string {
  return runName.value || (query.value.of ?? "");
}

/** The step of the address; a link that names only a tensor means the tensor's own. */
function stepOf(): string {
  return query.value.step ?? /@(\d+)/.exec(query.value.tensor ?? "")?.[1] ?? "";
}

async function load(
  of: string,
  step: string,
  rank: string,
  words: string,
  offset: number,
  end: AbortSignal,
): Promise<void> {
  busy.value = true;
  try {
    const answer = await ask<DumpTable>("things/dump", { of, step, rank, q: words, offset }, end);
    table.value = answer;
    rows.value = offset ? [...rows.peek(), ...answer.rows] : answer.rows;
    wrong.value = "";
  } catch (error) {
    if ((error as Error).name === "AbortError") return;
    wrong.value = sentence(error);
  }
  busy.value = false;
}

export function DumpsPage() {
  useEffect(() => void fetchThings(), []);
  useSignalEffect(() => {
    const of = thingOf();
    const { rank = "", q = "" } = query.value;
    const step = stepOf();
    const rev = isLive.value ? state.value?.rev : 0; // a live run may have kept more since it last moved
    const key = JSON.stringify([of, step, rank, q, rev]);
    if (key === before) return;
    before = key;
    asking?.abort();
    const mine = (asking = new AbortController());
    if (table.peek()?.of !== of) table.value = null;
    if (of) void load(of, step, rank, q, 0, mine.signal);
  });
  const of = thingOf();
  const now = table.value;
  if (!of) return <Choose />;
  if (!now)
    return (
      <div class="empty" data-test="dumps">
        {wrong.value ? <p role="alert">{wrong.value}</p> : <p>{t("loading")}</p>}
      </div>
    );
  const chosen = query.value.tensor ?? "";
  const open = (row: { address: string }): void => change({ tensor: row.address, slice: null });
  const toHit = (hit: HitView): void =>
    change({ step: hit.step, rank: hit.rank || null, tensor: hit.address, slice: null }, true);
  return (
    <div class="column grow held" data-test="dumps">
      <div class="tools row wrap">
        {!runName.value && (
          <ThingSelect label={w("pick.thing")} value={of} choose={(name) => go(["dumps"], { of: name })} />
        )}
        <Moments table={now} />
        <label class="search held-search">
          <Icon name="search" />
          <input
            id="run-search"
            value={query.value.q ?? ""}
            placeholder={w("dump.search")}
            aria-label={w("dump.search")}
            class={wrong.value ? "wrong" : ""}
            onInput={(event) => change({ q: event.currentTarget.value })}
          />
        </label>
        <span class="dim nowrap" data-test="dump-total">
          {w("dump.total", { n: count(now.total) })}
        </span>
        {now.format && now.kind !== "run" && <span class="chip">{now.format}</span>}
        <span class="grow" />
        {now.kind === "run" && (
          <a class="button" href={link(["compare", "dumps"], { a: now.step === null ? of : `${of}@${now.step}` })}>
            {w("dump.compare")}
          </a>
        )}
        <button class="plain" title={t("copyLink")} onClick={() => void copy(currentLink())}>
          <Icon name="link" />
          <span class="hidden-visually">{t("copyLink")}</span>
        </button>
      </div>
      {wrong.value && (
        <div class="banner error" role="alert">
          {wrong.value}
        </div>
      )}
      {now.dropped > 0 && (
        <details class="banner dropped" data-test="dropped">
          <summary>{w("dump.dropped", { n: count(now.dropped) })}</summary>
          <ul class="mono">
            {now.dropped_names.map((one) => (
              <li key={one}>{one}</li>
            ))}
          </ul>
        </details>
      )}
      {now.moments.length === 0 ? (
        <Empty />
      ) : (
        <>
          <Rows all={rows.value} chosen={chosen} open={open} of={of} more={now.total - rows.value.length} />
          <Splitter of={below} way="h" grows={-1} label={t("split.below")} />
          <div class="row panes" style={{ height: `${below.value.value}px`, flex: "none" }}>
            <div class="column" style={{ width: `${checks.value.value}px`, flex: "none" }}>
              <CheckPanel of={of} step={now.step} choose={toHit} />
            </div>
            <Splitter of={checks} way="v" label={w("check.width")} />
            <section class="panel grow" aria-label={w("dump.tensor")}>
              {chosen ? (
                <HeldTensor of={of} address={chosen} />
              ) : (
                <div class="empty">
                  <p>{w("dump.choose")}</p>
                </div>
              )}
            </section>
          </div>
        </>
      )}
    </div>
  );
}

let before = "";
let asking: AbortController | null = null;

function Moments({ table: now }: { table: DumpTable }) {
  const ranks = [...new Set(now.moments.map((one) => one.rank))];
  const steps = now.moments.filter((one) => one.rank === now.rank);
  const at = steps.findIndex((one) => one.step === now.step);
  const move = (by: number): void => {
    const next = steps[at + by];
    if (next) change({ step: next.step, tensor: kept(next.step) });
  };
  /** The same tensor at another step, so that walking through steps keeps looking at it. */
  const kept = (step: number | null): string | null =>
    query.peek().tensor && step !== null ? query.peek().tensor.replace(/@\d+/, `@${step}`) : null;
  const facts = steps[at];
  return (
    <>
      {ranks.length > 1 && (
        <label class="field">
          {t("rank")}
          <select value={now.rank} onChange={(event) => change({ rank: event.currentTarget.value, tensor: null })}>
            {ranks.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
      )}
      {now.step !== null && (
        <span class="together">
          <button class="plain" aria-label={t("control.previousStep")} disabled={at <= 0} onClick={() => move(-1)}>
            <Icon name="left" />
          </button>
          <label class="field">
            {t("step")}
            <select
              value={now.step}
              aria-label={t("step")}
              data-test="dump-step"
              onChange={(event) =>
                change({ step: event.currentTarget.value, tensor: kept(Number(event.currentTarget.value)) })
              }
            >
              {steps.map((one) => (
                <option key={one.step} value={one.step ?? ""}>
                  {one.step}
                </option>
              ))}
            </select>
          </label>
          <button
            class="plain"
            aria-label={t("control.nextStep")}
            disabled={at >= steps.length - 1}
            onClick={() => move(1)}
          >
            <Icon name="right" />
          </button>
        </span>
      )}
      {facts && (
        <span class="dim nowrap">{w("dump.moment", { n: count(facts.tensors), bytes: bytes(facts.bytes) })}</span>
      )}
      {now.asked.length > 0 && (
        <span class="dim cut asked" title={now.asked.join("\n")}>
          <span class="mono">--dump {now.asked.join("  ")}</span>
        </span>
      )}
    </>
  );
}

function Rows({
  all,
  chosen,
  open,
  of,
  more,
}: {
  all: DumpRow[];
  chosen: string;
  open: (row: DumpRow) => void;
  of: string;
  more: number;
}) {
  const key = (event: KeyboardEvent): void => {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const at = all.findIndex((one) => one.address === chosen);
    const next = by ? all[Math.min(all.length - 1, Math.max(0, at + by))] : undefined;
    if (!next) return;
    event.preventDefault();
    open(next);
  };
  const list = useRef<HTMLDivElement>(null);
  const place = all.findIndex((one) => one.address === chosen);
  useEffect(() => list.current?.querySelector(`[data-at="${place}"]`)?.scrollIntoView({ block: "nearest" }), [place]);
  return (
    <div
      class="scroll grow dump-list"
      ref={list}
      tabIndex={0}
      role="region"
      aria-label={w("dump.list")}
      onKeyDown={key}
    >
      <table>
        <thead>
          <tr>
            <th>{t("node.tensor")}</th>
            <th>{t("node.type")}</th>
            <th>{w("dump.shape")}</th>
            <th class="number">{w("dump.bytes")}</th>
            {["min", "max", "mean", "std"].map((one) => (
              <th key={one} class="number">
                {one}
              </th>
            ))}
            <th>{w("dump.values")}</th>
            <th>{w("dump.line")}</th>
            <th>
              <span class="hidden-visually">{t("tensor.download")}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {all.map((one, at) => (
            <tr
              key={one.address}
              data-at={at}
              class={`pick${one.address === chosen ? " chosen" : ""}`}
              aria-selected={one.address === chosen}
              onClick={() => open(one)}
              data-test="dump-row"
            >
              <td class="mono wide-name">
                <button class="plain mono cut" title={one.address} onClick={() => open(one)}>
                  {one.address.replace(/[@#].*$/, "")}
                </button>
              </td>
              <td class="dim cut type-cell" title={one.type}>
                {one.type}
              </td>
              <td>
                <Dtype name={one.dtype} dims={one.shape} />
              </td>
              <td class="number">{bytes(one.bytes)}</td>
              {one.stats ? (
                [one.stats.min, one.stats.max, one.stats.mean, one.stats.std].map((n, index) => (
                  <td key={index} class="number">
                    {shown(n)}
                  </td>
                ))
              ) : (
                <td colSpan={4} class="dim">
                  {w("dump.noValues")}
                </td>
              )}
              <td class="nowrap">
                {one.stats && (
                  <span class="row" style={{ gap: "4px" }}>
                    <Classes stats={one.stats} />
                  </span>
                )}
              </td>
              <td class="mono dim cut line-cell" title={one.source}>
                {one.source.replace(/ `.*$/, "").replace(/^.*\//, "")}
              </td>
              <td class="right">
                <a
                  class="button plain"
                  download
                  title={t("tensor.download")}
                  href={api("things/npy", { of, address: one.address })}
                  onClick={(event) => event.stopPropagation()}
                >
                  <Icon name="download" />
                  <span class="hidden-visually">{t("tensor.download")}</span>
                </a>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {more > 0 && (
        <p class="pad">
          <button
            disabled={busy.value}
            onClick={() => {
              const q = query.peek();
              void load(of, stepOf(), q.rank ?? "", q.q ?? "", all.length, new AbortController().signal);
            }}
          >
            {w("dump.more", { n: count(Math.min(500, more)), total: count(more) })}
          </button>
        </p>
      )}
      {all.length === 0 && !busy.value && <p class="pad dim">{w("dump.noMatch")}</p>}
    </div>
  );
}

function Empty() {
  return (
    <div class="empty">
      <h2>{w("dump.empty")}</h2>
      <p>{w("dump.emptyHelp")}</p>
      <pre>{"misstep run --dump '*@0:3' python train.py\nmisstep dump last 'encoder.*' --steps 100:110"}</pre>
    </div>
  );
}

function Choose() {
  return (
    <div class="scroll grow pad column gap held" data-test="things">
      <h2>{w("dump.things")}</h2>
      <table>
        <thead>
          <tr>
            <th>{w("pick.name")}</th>
            <th>{w("pick.kind")}</th>
            <th class="number">{w("dump.bytes")}</th>
          </tr>
        </thead>
        <tbody>
          {things.value.map((one) => (
            <tr key={one.name}>
              <td>
                <a
                  class="mono"
                  href={
                    one.kind === "run" && runs.value.has(one.name)
                      ? link(["runs", one.name, "dumps"])
                      : one.kind === "checkpoint"
                        ? link(["ckpt"], { a: one.name })
                        : link(["dumps"], { of: one.name })
                  }
                >
                  {one.name}
                </a>
              </td>
              <td>
                {told("kind", one.kind)} <span class="dim">{one.format}</span>
              </td>
              <td class="number">{one.bytes ? bytes(one.bytes) : "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="dim">
        {w("compare.elsewhere")} <code>misstep ui model.ckpt dumps/rank_0</code>
      </p>
    </div>
  );
}
