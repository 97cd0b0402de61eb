// Every layer at every step: a matrix of one statistic, from which a single tensor's history opens.
import { signal, useComputed, useSignalEffect } from "@preact/signals";
import { Chart } from "../charts/chart";
import { parseAddress, shortName } from "../format/address";
import { count, honest, value } from "../format/number";
import { said, t } from "../i18n";
import { ask } from "../net/api";
import { colour, look } from "../state/prefs";
import { change, link, query } from "../state/route";
import { detail, graph, rank, runName } from "../state/run";
import { Ridges } from "../tensor/ridges";
import { type Inks, ink, rgb, type Scale, scaleOf } from "../tensor/scale";
import type { StatsHistory, StepTable } from "../types.gen";
import { More } from "../ui/more";
import { Splitter, size } from "../ui/splitter";
import { Virtual } from "../ui/virtual";

const MOST_STEPS = 48;
const ROW = 18;
const STATISTICS = ["l2", "abs_mean", "max", "min", "mean", "std", "zeros", "nan", "pos_inf", "neg_inf"];
const ROLES = ["output", "grad", "param", "grad_output", "grad_input", "loss"];
const tables = signal<Map<number, StepTable>>(new Map());
const below = size("stats.below", 320, 140, 700);
let owner = "";

interface MatrixRow {
  tensor: number;
  address: string;
  cells: (number | undefined)[];
}

export function StatsPage() {
  useSteps();
  const steps = useComputed(() => chosenSteps());
  const statistic = query.value.stat ?? "l2";
  const there = useComputed(recorded);
  // Gradients tell most; a compiled network may have shown only its weights.
  const asked = useComputed(() => query.value.role ?? ["grad", ...ROLES].find((one) => there.value.has(one)) ?? "grad");
  const role = asked.value;
  const rows = useComputed(() => matrix(steps.value, query.value.stat ?? "l2", asked.value));
  const scale = useComputed<Scale>(() =>
    scaleOf(
      Float64Array.from(rows.value.flatMap((row) => row.cells.filter((one): one is number => one !== undefined))),
      !["mean", "min", "max"].includes(query.value.stat ?? "l2"),
    ),
  );
  void look.value;
  const inks: Inks = {
    neutral: rgb(colour("bg2")),
    cold: rgb(colour("cold")),
    hot: rgb(colour("hot")),
    nan: rgb("#d946ef"),
    inf: rgb("#facc15"),
  };
  const chosen = query.value.tensor ?? "";
  return (
    <div class="column grow">
      <div class="tools row wrap">
        <label class="field">
          {t("stats.statistic")}
          <select value={statistic} onChange={(event) => change({ stat: event.currentTarget.value })}>
            {STATISTICS.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <label class="field">
          {t("stats.role")}
          <select value={role} onChange={(event) => change({ role: event.currentTarget.value })}>
            {ROLES.map((one) => (
              <option key={one} value={one}>
                {said("role", one)}
              </option>
            ))}
          </select>
        </label>
        <span class="dim">
          {t("stats.size", {
            rows: count(rows.value.length),
            steps: count(steps.value.length),
            total: count(detail.value?.stats_steps.length ?? 0),
          })}
        </span>
        <span class="grow" />
        <span class="mono dim">{value(scale.value.signed ? -scale.value.clip : 0, 3)}</span>
        <span
          class="ramp"
          style={{
            background: scale.value.signed
              ? "linear-gradient(90deg, var(--cold), var(--bg2), var(--hot))"
              : "linear-gradient(90deg, var(--bg2), var(--cold))",
          }}
        />
        <span class="mono dim">{value(scale.value.clip, 3)}</span>
        <span class="chip nan">NaN</span>
        <span class="chip inf">Inf</span>
        <More
          name={`${runName.value}-${statistic}-${role}`}
          csv={() => [["tensor", ...steps.value], ...rows.value.map((row) => [row.address, ...row.cells])]}
        />
      </div>
      {rows.value.length ? (
        <div class="column grow matrix">
          <div class="matrix-head" aria-hidden="true">
            <span class="matrix-name" />
            {steps.value.map((step, at) => (
              <span key={step} class="mono">
                {at % Math.ceil(steps.value.length / 12) === 0 ? step : ""}
              </span>
            ))}
          </div>
          <Virtual
            class="scroll grow"
            role="grid"
            tabIndex={0}
            aria-label={t("stats.matrix", { statistic })}
            total={rows.value.length}
            rowHeight={ROW}
            keep={-1}
            row={(at) => {
              const row = rows.value[at];
              return (
                <div key={row.tensor} role="row" class={`matrix-row${row.address === chosen ? " chosen" : ""}`}>
                  <span role="rowheader" class="matrix-name">
                    <button class="plain mono cut" title={row.address} onClick={() => change({ tensor: row.address })}>
                      {shortName(row.address, 38)}
                    </button>
                  </span>
                  {row.cells.map((cell, index) => (
                    <span
                      key={index}
                      role="gridcell"
                      class="matrix-cell"
                      style={{
                        background:
                          cell === undefined
                            ? "transparent"
                            : `rgb(${ink(cell, scale.value, inks).map(Math.round).join(" ")})`,
                      }}
                      title={`${row.address} @${steps.value[index]}: ${cell === undefined ? "–" : value(cell)}`}
                      onClick={() => change({ tensor: row.address, step: steps.value[index] })}
                    />
                  ))}
                </div>
              );
            }}
          />
        </div>
      ) : (
        <div class="empty grow">
          <h2>{t("stats.none")}</h2>
          <p>{t("stats.noneHelp", { role: said("role", role) })}</p>
          <pre>misstep run --level op python train.py</pre>
        </div>
      )}
      {chosen && (
        <>
          <Splitter of={below} way="h" grows={-1} label={t("split.below")} />
          <div class="scroll" style={{ height: `${below.value.value}px`, flex: "none" }}>
            <OneTensor address={chosen} statistic={statistic} />
          </div>
        </>
      )}
    </div>
  );
}

function chosenSteps(): number[] {
  const all = detail.value?.stats_steps ?? [];
  if (all.length <= MOST_STEPS) return [...all];
  return Array.from({ length: MOST_STEPS }, (_, at) => all[Math.round((at * (all.length - 1)) / (MOST_STEPS - 1))]);
}

/** Fetch the steps' tables, four at a time; they never change, so the browser keeps them. */
function useSteps(): void {
  useSignalEffect(() => {
    const [name, which] = [runName.value, rank.value];
    const steps = chosenSteps();
    if (owner !== `${name}#${which}`) {
      owner = `${name}#${which}`;
      tables.value = new Map();
    }
    const end = new AbortController();
    const left = steps.filter((step) => !tables.peek().has(step));
    const one = async (): Promise<void> => {
      for (let step = left.pop(); step !== undefined && !end.signal.aborted; step = left.pop()) {
        try {
          const table = await ask<StepTable>(
            `runs/${encodeURIComponent(name)}/steps/${step}`,
            { rank: which },
            end.signal,
          );
          tables.value = new Map(tables.peek()).set(step, table);
        } catch {
          return;
        }
      }
    };
    for (let lane = 0; lane < 4; lane += 1) void one();
    return () => end.abort();
  });
}

/** The roles of which some step has statistics. */
function recorded(): Set<string> {
  const found = new Set<string>();
  const columns = graph.value?.columns;
  if (columns)
    for (const table of tables.value.values())
      for (const tensor of table.tensor) found.add(columns.roles[columns.tensors.role[tensor]]);
  return found;
}

function matrix(steps: number[], statistic: string, role: string): MatrixRow[] {
  const model = graph.value;
  if (!model) return [];
  const { tensors, roles, nodes } = model.columns;
  const rows = new Map<number, MatrixRow>();
  steps.forEach((step, column) => {
    const table = tables.value.get(step);
    const values = table ? honest(table.columns, statistic) : [];
    table?.tensor.forEach((tensor, at) => {
      if (roles[tensors.role[tensor]] !== role) return;
      let row = rows.get(tensor);
      if (!row) {
        const call = tensors.call[tensor] > 1 ? `~${tensors.call[tensor]}` : "";
        const slot = tensors.slot[tensor] ? `.${tensors.slot[tensor]}` : "";
        row = {
          tensor,
          address: `${nodes.name[tensors.node[tensor]]}${call}:${role}${slot}`,
          cells: Array<number | undefined>(steps.length).fill(undefined),
        };
        rows.set(tensor, row);
      }
      row.cells[column] = values[at];
    });
  });
  return [...rows.values()].sort(
    (a, b) => nodes.order[tensors.node[a.tensor]] - nodes.order[tensors.node[b.tensor]] || a.tensor - b.tensor,
  );
}

function OneTensor({ address, statistic }: { address: string; statistic: string }) {
  const history = useComputed(() => loadedHistory.value);
  useSignalEffect(() => {
    const wanted = query.value.tensor;
    if (!wanted) return;
    void ask<StatsHistory>(`runs/${encodeURIComponent(runName.value)}/stats`, {
      address: `${wanted}#${rank.value}`,
    }).then(
      (answer) => (loadedHistory.value = { wanted, answer }),
      () => (loadedHistory.value = null),
    );
  });
  const data = history.value?.wanted === address ? history.value.answer : null;
  const node = parseAddress(address);
  const names =
    STATISTICS.includes(statistic) && !["min", "max", "mean"].includes(statistic)
      ? [statistic]
      : ["max", "mean", "min"];
  return (
    <div class="column gap pad">
      <div class="row">
        <b class="mono cut">{address}</b>
        <span class="grow" />
        {node && (
          <a
            class="button"
            href={link(["runs", runName.value, "debug"], {
              node: node.node,
              slot: address.slice(address.indexOf(":") + 1),
              tab: "tensor",
              step: query.value.step,
              rank: rank.value || null,
            })}
          >
            {t("stats.open")}
          </a>
        )}
      </div>
      {data && data.step.length > 0 && (
        <Chart
          height={180}
          series={names.map((name, at) => ({ label: name, x: data.step, y: honest(data.columns, name), colour: at }))}
          pick={(step) => change({ step })}
        />
      )}
      <Ridges address={address} />
    </div>
  );
}

const loadedHistory = signal<{ wanted: string; answer: StatsHistory } | null>(null);
