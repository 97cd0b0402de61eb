// A checkpoint weight by weight; with a second one beside it, what changed, what did not, and what only one has.
import { signal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import "../styles/held.css";
import { copy } from "../debug/nodemenu";
import { bytes, count, percent, shown } from "../format/number";
import { Worker } from "../held/job";
import { PairPane } from "../held/pair";
import { ThingSelect } from "../held/picker";
import { Progress } from "../held/progress";
import { short } from "../held/rows";
import { SeriesNote, stuckOver, useSeries } from "../held/series";
import { HeldTensor } from "../held/tensor";
import { fetchThings, sentence, things, thingsKnown } from "../held/things";
import { type Change, FILTERS, type Filter, fits, type Line, linesOf } from "../held/weightlines";
import { told, w } from "../held/words";
import { t } from "../i18n";
import { ask } from "../net/api";
import { change, currentLink, link, query } from "../state/route";
import type { CheckpointView, ComparisonTable, WeightView } from "../types.gen";
import { Icon, type IconName } from "../ui/icons";
import { Classes, Dtype } from "../ui/marks";
import { Splitter, size } from "../ui/splitter";

const below = size("ckpt.below", 330, 140, 800);
const views = signal<Map<string, CheckpointView>>(new Map());
const wrong = signal("");
const worker = new Worker<ComparisonTable>("comparisons");
let asked = "";

const CHANGES: Record<Exclude<Change, "">, [IconName, string]> = {
  same: ["check", "dim"],
  rounding: ["ring", "info"],
  changed: ["diamond", "info"],
  shape: ["diamond", "warning"],
  dtype: ["diamond", "warning"],
  onlyA: ["minus", "warning"],
  onlyB: ["plus", "warning"],
};
const STATES: Record<WeightView["state"], [IconName, string]> = {
  fine: ["check", "ok"],
  nan: ["target", "error"],
  inf: ["target", "error"],
  exploding: ["triangle", "warning"],
  "all zero": ["ring", "info"],
  constant: ["ring", "info"],
  unreadable: ["minus", "warning"],
};

function start(force = false): void {
  const { a, b } = query.peek();
  const question = JSON.stringify([a, b]);
  if (!a || !b) {
    asked = "";
    worker.reset();
  } else if (force || question !== asked) {
    asked = question;
    void worker.start({ a, b, map: "" });
  }
}

export function CheckpointPage() {
  useEffect(() => void fetchThings(), []);
  useSeries();
  useSignalEffect(() => {
    for (const name of [query.value.a, query.value.b]) {
      if (!name || views.peek().has(name)) continue;
      void ask<CheckpointView>("things/checkpoint", { of: name }).then(
        (view) => {
          views.value = new Map(views.peek()).set(name, view);
          wrong.value = "";
        },
        (error) => (wrong.value = sentence(error)),
      );
    }
    start();
  });
  const { a = "", b = "" } = query.value;
  const one = views.value.get(a);
  const other = b ? views.value.get(b) : undefined;
  const work = worker.work.value;
  const table = b && work.state === "ready" ? work.answer : null;
  const only = FILTERS.find((name) => name === query.value.only) ?? "all";
  const every = one ? linesOf(one, other, table) : [];
  const lines = every.filter(
    (line) => fits(line, only) && line.name.toLowerCase().includes((query.value.q ?? "").toLowerCase()),
  );
  const chosen = every.find((line) => line.name === query.value.weight) ?? null;
  const choose = (name: string): void => change({ a: name || null, weight: null, slice: null }, true);
  return (
    <div class="column grow held" data-test="checkpoint">
      <div class="tools row wrap">
        <span class="together picker">
          <b>A</b>
          <ThingSelect label="A" value={a} choose={choose} kinds={["checkpoint"]} />
        </span>
        <span class="together picker">
          <b>B</b>
          <ThingSelect
            label="B"
            value={b}
            choose={(name) => change({ b: name || null, weight: null, slice: null }, true)}
            kinds={["checkpoint"]}
            empty={w("ckpt.alone")}
          />
        </span>
        {one && (
          <label class="search held-search">
            <Icon name="search" />
            <input
              id="run-search"
              value={query.value.q ?? ""}
              placeholder={w("ckpt.search")}
              aria-label={w("ckpt.search")}
              onInput={(event) => change({ q: event.currentTarget.value })}
            />
          </label>
        )}
        <span class="grow" />
        {a && b && (
          <a class="button" href={link(["compare", "dumps"], { a, b, tab: "map" })}>
            {w("ckpt.map")}
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
      {b && <Progress worker={worker} again={() => start(true)} />}
      {!a && <Nothing />}
      {one && <Facts one={one} other={other} lines={every} only={only} two={Boolean(b)} />}
      {one && (
        <>
          <Weights lines={lines} two={Boolean(other && table)} table={table} chosen={chosen?.name ?? ""} />
          <Splitter of={below} way="h" grows={-1} label={t("split.below")} />
          <div class="column panel" style={{ height: `${below.value.value}px`, flex: "none" }}>
            {!chosen ? (
              <div class="empty">
                <p>{w("ckpt.choose")}</p>
              </div>
            ) : table && chosen.row >= 0 ? (
              <PairPane table={table} row={chosen.row} plain />
            ) : chosen.a ? (
              <HeldTensor of={a} address={chosen.a.address} />
            ) : chosen.b ? (
              <HeldTensor of={b} address={chosen.b.address} />
            ) : null}
          </div>
        </>
      )}
    </div>
  );
}

function Facts({
  one,
  other,
  lines,
  only,
  two,
}: {
  one: CheckpointView;
  other: CheckpointView | undefined;
  lines: Line[];
  only: Filter;
  two: boolean;
}) {
  const shownFilters = FILTERS.filter(
    (name) =>
      (two || !["changed", "same", "alone"].includes(name)) &&
      (name !== "stuck" || lines.some((line) => fits(line, "stuck"))),
  );
  const bad = lines.filter((line) => fits(line, "bad")).length;
  return (
    <div class="row wrap summary" data-test="ckpt-facts">
      <span class={`pill ${bad ? "tone-error" : "tone-ok"}`}>
        <Icon name={bad ? "target" : "check"} />
        <span>{bad ? w("ckpt.suspicious", { n: count(bad) }) : w("ckpt.finite")}</span>
      </span>
      <SeriesNote />
      {[one, ...(other ? [other] : [])].map((view, at) => (
        <span key={view.of} class="nowrap">
          <b>{two ? (at ? "B" : "A") : ""}</b> <span class="chip">{view.format}</span>{" "}
          {w("ckpt.parameters", { n: count(view.parameters), tensors: count(view.weights.length) })}
          {view.checksum === "right" ? ` · ${w("ckpt.checksum")}` : ""}
        </span>
      ))}
      {Object.entries(one.extras)
        .sort(([x], [y]) => x.length - y.length)
        .slice(0, 2)
        .map(([name, text]) => (
          <span key={name} class="chip dim cut extra" title={`${name} = ${text}`}>
            {name} = {text}
          </span>
        ))}
      <span class="grow" />
      <span class="segments" role="group" aria-label={w("compare.only")}>
        {shownFilters.map((name) => (
          <button
            key={name}
            aria-pressed={only === name}
            data-test={`only-${name}`}
            onClick={() => change({ only: name === "all" ? null : name })}
          >
            {told("ckptOnly", name)} <span class="dim">{count(lines.filter((line) => fits(line, name)).length)}</span>
          </button>
        ))}
      </span>
    </div>
  );
}

function StateOf({ weight }: { weight: WeightView | null }) {
  if (!weight) return <span class="dim">–</span>;
  const over = stuckOver(weight.address);
  if (over && weight.state === "fine")
    return (
      <span class="row nowrap tone-warning" style={{ gap: "4px" }}>
        <Icon name="ring" />
        {w("series.unchanged", { n: count(over) })}
      </span>
    );
  const [icon, tone] = STATES[weight.state];
  return (
    <span class={`row nowrap tone-${tone}`} style={{ gap: "4px" }}>
      <Icon name={icon} />
      {told("state", weight.state.replace(" ", ""))}
    </span>
  );
}

function Weights({
  lines,
  two,
  table,
  chosen,
}: {
  lines: Line[];
  two: boolean;
  table: ComparisonTable | null;
  chosen: string;
}) {
  const open = (name: string): void => change({ weight: name, slice: null });
  const key = (event: KeyboardEvent): void => {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const next = by
      ? lines[Math.min(lines.length - 1, Math.max(0, lines.findIndex((one) => one.name === chosen) + by))]
      : undefined;
    if (!next) return;
    event.preventDefault();
    open(next.name);
  };
  const list = useRef<HTMLDivElement>(null);
  const place = lines.findIndex((one) => one.name === chosen);
  useEffect(() => list.current?.querySelector(`[data-at="${place}"]`)?.scrollIntoView({ block: "nearest" }), [place]);
  return (
    <div
      class="scroll grow dump-list"
      ref={list}
      tabIndex={0}
      role="region"
      aria-label={w("ckpt.list")}
      onKeyDown={key}
    >
      <table>
        <thead>
          <tr>
            <th>{w("pick.name")}</th>
            <th>{w("ckpt.section")}</th>
            <th>{w("dump.shape")}</th>
            <th>{w("ckpt.trainable")}</th>
            {two ? (
              <>
                <th>{w("ckpt.change")}</th>
                <th class="number" title={w("rows.relative.help")}>
                  ‖Δ‖/‖A‖
                </th>
                <th class="number">{w("rows.maxAbs")}</th>
                <th class="number">{w("ckpt.elements")}</th>
                <th>A</th>
                <th>B</th>
              </>
            ) : (
              <>
                <th class="number">{w("dump.bytes")}</th>
                {["min", "max", "mean", "std"].map((one) => (
                  <th key={one} class="number">
                    {one}
                  </th>
                ))}
                <th>{w("dump.values")}</th>
                <th>{w("ckpt.state")}</th>
              </>
            )}
          </tr>
        </thead>
        <tbody>
          {lines.slice(0, 2000).map((line, at) => {
            const weight = (line.a ?? line.b) as WeightView;
            return (
              <tr
                key={line.name}
                data-at={at}
                data-change={line.change}
                class={`pick${line.name === chosen ? " chosen" : ""}`}
                aria-selected={line.name === chosen}
                onClick={() => open(line.name)}
                data-test="weight-row"
              >
                <td class="mono wide-name">
                  <button class="plain mono cut" title={line.name} onClick={() => open(line.name)}>
                    {line.name}
                  </button>
                </td>
                <td class="dim">{told("section", weight.section)}</td>
                <td>
                  <Dtype name={weight.dtype} dims={weight.shape} />
                  {line.a &&
                    line.b &&
                    (line.a.dtype !== line.b.dtype || line.a.shape.join() !== line.b.shape.join()) && (
                      <>
                        {" "}
                        → <Dtype name={line.b.dtype} dims={line.b.shape} />
                      </>
                    )}
                </td>
                <td>
                  {weight.trainable === null ? (
                    <span class="dim">–</span>
                  ) : weight.trainable ? (
                    w("ckpt.yes")
                  ) : (
                    w("ckpt.no")
                  )}
                </td>
                {two ? (
                  <Measures line={line} table={table as ComparisonTable} />
                ) : (
                  <>
                    <td class="number">{bytes(weight.bytes)}</td>
                    {[weight.stats.min, weight.stats.max, weight.stats.mean, weight.stats.std].map((n, index) => (
                      <td key={index} class="number">
                        {shown(n)}
                      </td>
                    ))}
                    <td class="nowrap">
                      <span class="row" style={{ gap: "4px" }}>
                        <Classes stats={weight.stats} />
                      </span>
                    </td>
                    <td>
                      <StateOf weight={weight} />
                    </td>
                  </>
                )}
              </tr>
            );
          })}
        </tbody>
      </table>
      {lines.length > 2000 && <p class="pad dim">{w("ckpt.more", { n: count(lines.length - 2000) })}</p>}
      {lines.length === 0 && <p class="pad dim">{w("dump.noMatch")}</p>}
    </div>
  );
}

function Measures({ line, table }: { line: Line; table: ComparisonTable }) {
  const { row } = line;
  const c = table.rows;
  const [icon, tone] = CHANGES[line.change as Exclude<Change, "">];
  const measured = row >= 0 && c.relative[row] !== null;
  return (
    <>
      <td>
        <span class={`row nowrap tone-${tone}`} style={{ gap: "4px" }}>
          <Icon name={icon} />
          {told("change", line.change)}
        </span>
      </td>
      <td class="number">{measured ? short(c.relative[row]) : "–"}</td>
      <td class="number">{measured ? short(c.max_abs[row]) : "–"}</td>
      <td class="number">{measured && c.count[row] ? percent(c.count[row] - c.equal[row], c.count[row]) : "–"}</td>
      <td>
        <StateOf weight={line.a} />
      </td>
      <td>
        <StateOf weight={line.b} />
      </td>
    </>
  );
}

function Nothing() {
  if (!thingsKnown.value)
    return (
      <div class="empty">
        <p>{t("loading")}</p>
      </div>
    );
  const files = things.value.filter((one) => one.kind === "checkpoint");
  return (
    <div class="empty" data-test="nothing">
      <h2>{w("ckpt.title")}</h2>
      <p>{files.length ? w("ckpt.pick") : w("ckpt.none")}</p>
      {files.slice(0, 20).map((one) => (
        <a key={one.name} class="mono" href={link(["ckpt"], { a: one.name })}>
          {one.name}
        </a>
      ))}
      <pre>misstep ui model.ckpt other.pth</pre>
    </div>
  );
}
