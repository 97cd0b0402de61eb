// A crash in words: what happened, where, how things stood before; and all of it as plain text for a mail or an issue.
import { bytes, seconds, shown } from "../format/number";
import { moment } from "../format/time";
import { knows, said, t } from "../i18n";
import type { CrashEvent, CrashReport, CrashSpot, JournalLine, RankEnding } from "../types.gen";

export function culprit(report: CrashReport): RankEnding {
  return report.endings.find((one) => one.culprit) ?? report.endings[0];
}

export function isBad(event: CrashEvent): boolean {
  return event.kind !== "end" && event.kind !== "asked";
}

/** “RuntimeError: mat1 and mat2 …”, “the process was ended by SIGKILL (…)”. */
export function what(event: CrashEvent): string {
  if (event.kind === "exception")
    return t("crash.what.exception", { name: event.name, text: event.text.split("\n")[0] });
  if (event.kind === "exit")
    return t("crash.what.exit", { code: event.code ?? "–" }) + (event.text ? `: ${event.text}` : "");
  if (event.kind === "signal") {
    const word = event.memory_killer ? "memory" : knows("crash.signal", event.name) ? event.name : "other";
    return t("crash.what.signal", { name: event.name, meaning: said("crash.signal", word) });
  }
  return said("crash.what", event.kind, { seconds: seconds(event.seconds) });
}

export function where(spot: CrashSpot, rank: number | null): string[] {
  const parts = [`${t("step")} ${spot.step}`];
  if (rank !== null) parts.push(`${t("rank")} ${rank}`);
  if (spot.phase) parts.push(said("crash.phase", spot.phase));
  if (spot.node) parts.push(spot.type ? `${spot.node} (${spot.type})` : spot.node);
  return parts;
}

export function before(report: CrashReport): string[] {
  const last = culprit(report).last_step;
  const parts = [last ? t("crash.beforeStep", { step: last }) : t("crash.beforeNone")];
  const loss = report.steps.filter((one) => one.loss !== null).at(-1)?.loss;
  if (loss !== undefined) parts.push(t("crash.beforeLoss", { loss: shown(loss) }));
  const limit = Math.min(...Object.values(report.limits));
  if (report.memory.rss)
    parts.push(
      t("crash.beforeMemory", {
        memory: bytes(report.memory.rss) + (Number.isFinite(limit) ? ` / ${bytes(limit)}` : ""),
      }),
    );
  return parts;
}

const STEPS = 12;

/** The last lines of the journal with the culprit's last steps between them, the latest first. */
export function happened(report: CrashReport): JournalLine[] {
  const { rank } = culprit(report);
  const steps = report.steps.slice(-STEPS).map(
    (one): JournalLine => ({
      kind: "step",
      rank,
      time: one.time,
      text: [
        `${one.step}`,
        one.loss === null ? "" : t("crash.beforeLoss", { loss: shown(one.loss) }),
        seconds(one.seconds),
      ]
        .filter(Boolean)
        .join(" · "),
    }),
  );
  return [...report.events, ...steps].sort((a, b) => b.time - a.time);
}

/** Everything a colleague needs, as Markdown. */
export function plainReport(report: CrashReport): string {
  const one = culprit(report);
  const rank = report.endings.length > 1 ? one.rank : null;
  const lines = [
    `**${what(one.event)}**`,
    `${where(one.spot, rank).join(" · ")}${one.spot.source ? ` · ${one.spot.source} \`${one.spot.code}\`` : ""}`,
    before(report).join(" · "),
    `${report.run} · ${moment(report.time)} · ${Object.entries(report.versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(" · ")}`,
    "",
  ];
  for (const cause of report.causes) lines.push(`- ${cause.title}. ${cause.why} ${cause.advice}`);
  for (const thread of report.threads.slice(0, 1)) {
    lines.push(
      "",
      "```",
      ...thread.frames
        .filter((frame) => !frame.library)
        .flatMap((frame) => [
          `${frame.file}:${frame.line} ${frame.function}`,
          `    ${frame.code}`,
          ...Object.entries(frame.locals).map(([name, value]) => `      ${name} = ${value}`),
        ]),
      "```",
    );
  }
  if (report.endings.length > 1)
    lines.push(
      "",
      ...report.endings.map(
        (end) =>
          `- ${t("rank")} ${end.rank}: ${what(end.event)}${end.collective ? ` · ${t("crash.waitsIn")} ${end.collective} (${seconds(end.waiting_seconds)})` : ""}${end.culprit ? ` · ${t("crash.first")}` : ""}`,
      ),
    );
  return lines.join("\n");
}
