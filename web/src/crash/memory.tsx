// Memory over the last steps, who held it at the peak, what the network was called with, and the values that were kept.
import { Chart } from "../charts/chart";
import { parseAddress, slotKey } from "../format/address";
import { bytes, count, num } from "../format/number";
import { said, t } from "../i18n";
import { link } from "../state/route";
import { runName } from "../state/run";
import type { CrashReport } from "../types.gen";
import { Dtype } from "../ui/marks";

const MIB = 1 << 20;

export function Memory({ report }: { report: CrashReport }) {
  const steps = report.steps.filter((one) => one.memory.rss);
  const kinds = [...new Set(steps.flatMap((one) => Object.keys(one.memory)))];
  const losses = report.steps.filter((one) => one.loss !== null);
  const largest = Math.max(1, ...report.holders.map((one) => one.bytes));
  const limit = Math.min(...Object.values(report.limits));
  return (
    <div class="column gap">
      <div class="charts">
        <figure class="card">
          <figcaption class="row wrap">
            <h2>
              {t("crash.memoryCurve")} <span class="dim">MiB</span>
            </h2>
            <span class="grow" />
            {report.memory.peak > 0 && (
              <span class="nowrap">
                <span class="dim">{t("crash.peak")}</span> <b class="mono">{bytes(report.memory.peak)}</b>
              </span>
            )}
            {Number.isFinite(limit) && (
              <span class="nowrap">
                <span class="dim">{t("crash.limit")}</span> <b class="mono">{bytes(limit)}</b>
              </span>
            )}
          </figcaption>
          {steps.length > 1 ? (
            <Chart
              height={200}
              series={kinds.map((kind, colour) => ({
                label: kind,
                x: steps.map((one) => one.step),
                y: steps.map((one) => (one.memory[kind] ?? Number.NaN) / MIB),
                colour,
              }))}
            />
          ) : (
            <p class="dim">{t("crash.noCurve")}</p>
          )}
        </figure>
        <figure class="card">
          <figcaption class="row">
            <h2>{t("crash.loss")}</h2>
          </figcaption>
          {losses.length > 1 ? (
            <Chart
              height={200}
              series={[
                {
                  label: t("tag.loss"),
                  x: losses.map((one) => one.step),
                  y: losses.map((one) => num(one.loss)),
                  colour: 0,
                },
              ]}
            />
          ) : (
            <p class="dim">{t("crash.noCurve")}</p>
          )}
        </figure>
      </div>
      <section class="card">
        <h2>{t("crash.holders")}</h2>
        {report.holders.length ? (
          <table data-test="holders">
            <thead>
              <tr>
                <th class="number">{t("crash.size")}</th>
                <th style={{ width: "22%" }} />
                <th>{t("crash.holder")}</th>
                <th>{t("crash.kind")}</th>
                <th class="number">×</th>
                <th>{t("node.tensor")}</th>
              </tr>
            </thead>
            <tbody>
              {report.holders.map((one, at) => (
                <tr key={at}>
                  <td class="number">{bytes(one.bytes)}</td>
                  <td>
                    <div class="bar" style={{ width: `${Math.max(1, (100 * one.bytes) / largest)}%` }} />
                  </td>
                  <td class="mono wrap-anywhere">{one.name}</td>
                  <td class="nowrap">{said("crash.held", one.kind)}</td>
                  <td class="number">{count(one.count)}</td>
                  <td>{one.dtype && <Dtype name={one.dtype} dims={one.shape} />}</td>
                </tr>
              ))}
            </tbody>
          </table>
        ) : (
          <p class="dim">{t("crash.noHolders")}</p>
        )}
      </section>
      {report.batch.length > 0 && (
        <section class="card">
          <h2>{t("crash.calledWith")}</h2>
          <p class="column" style={{ gap: "4px" }}>
            {report.batch.map((one, at) => (
              <span key={at} class="row">
                <Dtype name={one.dtype} dims={one.shape} />
                <span class="dim mono">{one.digest}</span>
              </span>
            ))}
          </p>
        </section>
      )}
      {report.values.length > 0 && (
        <section class="card" data-test="values">
          <h2>{t("crash.values")}</h2>
          <p class="column" style={{ gap: "4px" }}>
            {report.values.map((one) => (
              <span key={one.address} class="row">
                <Dtype name={one.dtype} dims={one.shape} />
                <a class="mono wrap-anywhere" href={tensorLink(one.address)}>
                  {one.address}
                </a>
              </span>
            ))}
          </p>
          {report.left_out > 0 && <p class="dim">{t("crash.leftOut", { count: count(report.left_out) })}</p>}
        </section>
      )}
    </div>
  );
}

function tensorLink(text: string): string {
  const a = parseAddress(text);
  if (!a) return link(["runs", runName.value, "debug"]);
  return link(["runs", runName.value, "debug"], {
    node: a.node,
    slot: slotKey(a),
    tab: "tensor",
    step: a.step,
    rank: a.rank || null,
  });
}
