// What it ran on: versions, device, git, seeds, settings, and the few variables of the environment that are told.
import { t } from "../i18n";
import type { CrashReport } from "../types.gen";

export function Facts({ report }: { report: CrashReport }) {
  const parts: [string, Record<string, unknown>][] = [
    [t("crash.versions"), report.versions],
    [t("crash.device"), { host: report.host, ...report.device }],
    [t("crash.git"), report.git],
    [t("crash.random"), report.random],
    [t("crash.environment"), report.environment],
    [t("crash.config"), report.settings],
  ];
  return (
    <div class="column gap">
      <section class="card">
        <h2>{t("crash.command")}</h2>
        <pre>{report.command.join(" ") || "–"}</pre>
      </section>
      <div class="facts">
        {parts
          .filter(([, all]) => Object.keys(all).length)
          .map(([title, all]) => (
            <section key={title} class="card">
              <h2>{title}</h2>
              <table>
                <tbody>
                  {Object.entries(all).map(([name, value]) => (
                    <tr key={name}>
                      <td class="dim nowrap">{name}</td>
                      <td class="mono wrap-anywhere">
                        {typeof value === "string" ? value || "–" : JSON.stringify(value)}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </section>
          ))}
      </div>
    </div>
  );
}
