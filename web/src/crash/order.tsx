// How far the step had come: the phases as a track with the stretch marked, and the nodes around it.
import { count } from "../format/number";
import { said, t } from "../i18n";
import { link } from "../state/route";
import type { CrashReport, PassedNode, ReachedView } from "../types.gen";
import { Icon } from "../ui/icons";
import { culprit } from "./sentences";

export function Order({ report }: { report: CrashReport }) {
  const { reached } = report;
  const { rank } = culprit(report);
  const step = culprit(report).last_step || null;
  return (
    <div class="column gap">
      {reached ? (
        <section class="card">
          <h2>
            {t("crash.order", { first: count(reached.first), last: count(reached.last), total: count(reached.total) })}
          </h2>
          <Track reached={reached} />
          <p class="dim">{t("crash.orderHelp")}</p>
          <table data-test="order">
            <thead>
              <tr>
                <th class="number">#</th>
                <th />
                <th>{t("tab.node")}</th>
                <th>{t("node.type")}</th>
                <th>{t("crash.phaseTitle")}</th>
                <th>{t("tab.source")}</th>
              </tr>
            </thead>
            <tbody>
              {reached.nodes.map((one) => (
                <tr key={one.order} class={one.here ? "chosen" : ""}>
                  <td class="number">{count(one.order)}</td>
                  <td class="nowrap">
                    <Passed one={one} />
                  </td>
                  <td class="mono wrap-anywhere">
                    <a href={link(["runs", report.run, "debug"], { node: one.node, rank: rank || null, step })}>
                      {one.node}
                    </a>
                  </td>
                  <td class="mono nowrap">{one.type}</td>
                  <td class="nowrap">{said("crash.phase", one.phase)}</td>
                  <td class="mono wrap-anywhere" title={one.code}>
                    {one.source ? `${one.source.split("/").at(-1)}  ` : "–"}
                    <span class="dim">{one.code}</span>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      ) : (
        <p class="dim">{t("crash.noOrder")}</p>
      )}
      {report.trail.length > 0 && (
        <section class="card">
          <h2>{t("crash.trail")}</h2>
          <p class="row wrap trail">
            {report.trail.slice(0, 40).map((name, at) => (
              <span key={at} class="row nowrap">
                {at > 0 && (
                  <span class="dim" aria-hidden="true">
                    ←
                  </span>
                )}
                <span class="chip">{name}</span>
              </span>
            ))}
          </p>
        </section>
      )}
    </div>
  );
}

function Passed({ one }: { one: PassedNode }) {
  if (one.here)
    return (
      <span class="row tone-error">
        <Icon name="play" />
        {t("crash.here")}
      </span>
    );
  return one.done ? (
    <span class="row tone-ok">
      <Icon name="check" />
      {t("crash.done")}
    </span>
  ) : (
    <span class="row dim">
      <Icon name="ring" />
      {t("crash.never")}
    </span>
  );
}

/** The whole step from left to right; the stretch is never thinner than can be seen. */
function Track({ reached }: { reached: ReachedView }) {
  const share = (at: number): number => (100 * at) / reached.total;
  let from = 0;
  const left = share(reached.first - 1);
  const wide = Math.max(0.8, share(reached.last - reached.first + 1));
  return (
    <div
      class="track"
      role="img"
      aria-label={t("crash.order", { first: reached.first, last: reached.last, total: reached.total })}
    >
      {Object.entries(reached.phases).map(([phase, end]) => {
        const width = share(end) - share(from);
        from = end;
        return (
          <span
            key={phase}
            class={`track-phase of-${phase}`}
            style={{ width: `${width}%` }}
            title={said("crash.phase", phase)}
          >
            {width > 6 ? said("crash.phase", phase) : ""}
          </span>
        );
      })}
      <span class="track-here" style={{ left: `${Math.min(left, 99.2)}%`, width: `${Math.min(wide, 100 - left)}%` }} />
    </div>
  );
}
