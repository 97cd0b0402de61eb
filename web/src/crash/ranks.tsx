// Who stopped first, and who waits for whom: one line a rank.
import { count, seconds } from "../format/number";
import { moment } from "../format/time";
import { said, t } from "../i18n";
import type { CrashReport, RankEnding } from "../types.gen";
import { Icon } from "../ui/icons";
import { what } from "./sentences";

export function Ranks({ report }: { report: CrashReport }) {
  const earliest = Math.min(...report.endings.map((one) => one.last_time));
  return (
    <section class="card">
      <table data-test="ranks">
        <thead>
          <tr>
            <th class="number">{t("rank")}</th>
            <th />
            <th class="number">{t("step")}</th>
            <th class="number">{t("crash.lastSign")}</th>
            <th>{t("crash.waitsIn")}</th>
            <th class="number">{t("crash.collectives")}</th>
            <th>{t("crash.where")}</th>
            <th>{t("crash.what")}</th>
          </tr>
        </thead>
        <tbody>
          {report.endings.map((one) => (
            <tr key={one.rank} class={one.culprit ? "chosen" : ""}>
              <td class="number">{one.rank}</td>
              <td class="nowrap">
                {one.culprit && (
                  <span class="row tone-error">
                    <Icon name="star" />
                    {awaited(report, one) ? t("crash.didNotCome") : t("crash.first")}
                  </span>
                )}
              </td>
              <td class="number">{count(one.last_step)}</td>
              <td class="number" title={moment(one.last_time)}>
                +{(one.last_time - earliest).toFixed(2)} s
              </td>
              <td class="nowrap">
                {one.collective ? (
                  <span class="row tone-warning">
                    <Icon name="until" />
                    <span class="mono">{one.collective}</span> {seconds(one.waiting_seconds)}
                  </span>
                ) : (
                  "–"
                )}
              </td>
              <td class="number">{count(one.collectives)}</td>
              <td class="mono wrap-anywhere">
                {one.spot.source
                  ? `${one.spot.source} ${one.spot.code}`
                  : one.spot.node || said("crash.phase", one.spot.phase) || "–"}
              </td>
              <td class="wrap-anywhere">{what(one.event)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** In a hang, the one that is in no collective while others are. */
function awaited(report: CrashReport, one: RankEnding): boolean {
  return report.kind === "hang" && !one.collective && report.endings.some((other) => other.collective !== "");
}
