// One tensor over the steps: any statistic as a curve, and the last values in a table.
import { useSignal, useSignalEffect } from "@preact/signals";
import { Chart } from "../charts/chart";
import { honest, shown } from "../format/number";
import { t } from "../i18n";
import { ask, HubError } from "../net/api";
import { tensorAddress } from "../state/debug";
import { change, query } from "../state/route";
import { lastStep, runName } from "../state/run";
import type { StatsHistory } from "../types.gen";

export const STATISTICS = [
  "abs_mean",
  "l2",
  "max",
  "min",
  "mean",
  "std",
  "nan",
  "pos_inf",
  "neg_inf",
  "zeros",
] as const;

export function HistoryTab() {
  const history = useSignal<StatsHistory | null>(null);
  const problem = useSignal("");
  useSignalEffect(() => {
    const address = tensorAddress.value;
    const beat = Math.floor((lastStep.value?.step ?? 0) / 10);
    if (!address) return;
    const end = new AbortController();
    void beat;
    ask<StatsHistory>(`runs/${encodeURIComponent(runName.peek())}/stats`, { address }, end.signal).then(
      (answer) => {
        history.value = answer;
        problem.value = "";
      },
      (error) => {
        if (error instanceof HubError) problem.value = error.message;
      },
    );
    return () => end.abort();
  });
  if (!tensorAddress.value)
    return (
      <div class="empty">
        <p>{t("tensor.none")}</p>
      </div>
    );
  if (problem.value)
    return (
      <div class="empty">
        <p>{problem.value}</p>
      </div>
    );
  const data = history.value;
  if (!data)
    return (
      <div class="empty">
        <p>{t("loading")}</p>
      </div>
    );
  if (!data.step.length)
    return (
      <div class="empty">
        <h2>{t("history.none")}</h2>
        <p>{t("history.noneHelp")}</p>
      </div>
    );
  const statistic = query.value.stat ?? "abs_mean";
  const column = honest(data.columns, statistic);
  return (
    <div class="column gap pad grow">
      <div class="row wrap">
        <b class="mono cut tail">{data.address}</b>
        <label class="field">
          {t("history.statistic")}
          <select value={statistic} onChange={(event) => change({ stat: event.currentTarget.value })}>
            {STATISTICS.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <label class="field">
          <input
            type="checkbox"
            checked={query.value.y === "symlog"}
            onChange={() => change({ y: query.value.y === "symlog" ? null : "symlog" })}
          />
          symlog
        </label>
        <span class="dim">{t("history.steps", { n: data.total })}</span>
      </div>
      <Chart
        height={190}
        scale={query.value.y === "symlog" ? "symlog" : "linear"}
        series={[{ label: statistic, x: data.step, y: column, colour: 0 }]}
        pick={(step) => change({ step })}
      />
      <table>
        <thead>
          <tr>
            <th class="number">{t("step")}</th>
            {STATISTICS.map((one) => (
              <th key={one} class="number">
                {one}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {data.step.slice(-12).map((step, at) => {
            const index = Math.max(0, data.step.length - 12) + at;
            return (
              <tr key={step} class="pick" onClick={() => change({ step })}>
                <td class="number">{step}</td>
                {STATISTICS.map((one) => (
                  <td key={one} class="number">
                    {shown(data.columns[one]?.[index])}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
