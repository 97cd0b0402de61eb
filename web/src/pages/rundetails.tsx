// What a run was: command, versions, settings; with a second run only what differs.
import { signal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { api } from "../base";
import { count, seconds } from "../format/number";
import { moment } from "../format/time";
import { lang, t } from "../i18n";
import { ask } from "../net/api";
import { Note, Tags } from "../runs/labels";
import { runs } from "../state/live";
import { link, query } from "../state/route";
import type { RunDetail } from "../types.gen";
import { Icon } from "../ui/icons";
import { StateMark } from "../ui/marks";
import { Splitter, size } from "../ui/splitter";

const details = signal<Map<string, RunDetail>>(new Map());
const wide = size("runs.details", 380, 260, 720);

function facts(detail: RunDetail): Record<string, string> {
  const plain = (prefix: string, all: Record<string, unknown>): [string, string][] =>
    Object.entries(all).map(([name, value]) => [
      `${prefix}${name}`,
      typeof value === "string" ? value : JSON.stringify(value),
    ]);
  return Object.fromEntries([
    ...plain("", detail.brief.params),
    ...plain("", detail.versions),
    ...plain("git ", detail.git),
    ...plain("", detail.settings),
  ]);
}

export function RunDetails({ run, other }: { run: string; other: string }) {
  const asked = useRef(new Set<string>());
  useSignalEffect(() => {
    for (const name of [query.value.focus, ...(query.value.sel ?? "").split(",")]) {
      if (!name || asked.current.has(name)) continue;
      asked.current.add(name);
      void ask<RunDetail>(`runs/${encodeURIComponent(name)}`).then(
        (answer) => (details.value = new Map(details.peek()).set(name, answer)),
        () => {},
      );
    }
  });
  const one = details.value.get(run);
  const brief = runs.value.get(run);
  const two = other ? details.value.get(other) : undefined;
  const left = one ? facts(one) : {};
  const right = two ? facts(two) : null;
  const names = [...new Set([...Object.keys(left), ...Object.keys(right ?? {})])].filter(
    (name) => !right || left[name] !== right[name],
  );
  return (
    <>
      <Splitter of={wide} way="v" grows={-1} label={t("split.details")} />
      <aside class="panel" style={{ width: `${wide.value.value}px`, flex: "none" }} aria-label={t("runs.details")}>
        <header>
          <h2 class="cut">{run}</h2>
          <span class="grow" />
          <a class="button" href={link(["runs", run, "debug"])}>
            <Icon name="debug" />
            {t("runs.open")}
          </a>
          <a class="button" href={link(["runs", run, "scalars"])}>
            <Icon name="scalars" />
            {t("page.scalars")}
          </a>
          <a
            class="button"
            download
            title={t("verdict.saveHelp")}
            href={api(`runs/${encodeURIComponent(run)}/report`, { lang: lang.value })}
          >
            <Icon name="download" />
            <span class="hidden-visually">{t("verdict.saveHelp")}</span>
          </a>
        </header>
        <div class="scroll grow pad column gap" tabIndex={0}>
          {one && (
            <p class="dim">
              {moment(one.brief.started)} · {t("runs.steps", { n: count(one.last_step) })} · {seconds(one.seconds)}
              {one.exit_code !== null ? ` · ${t("runs.exit", { n: one.exit_code })}` : ""}
            </p>
          )}
          {brief && (
            <>
              <div class="row wrap">
                <StateMark brief={brief} pill />
                <span>{lang.value === "zh" ? brief.found_zh : brief.found}</span>
              </div>
              <Tags of={[brief]} />
              <Note of={brief} />
            </>
          )}
          {one && one.brief.command.length > 0 && <pre>{one.brief.command.join(" ")}</pre>}
          {right && <p class="dim">{t("runs.diff", { other })}</p>}
          <table>
            <tbody>
              {names.map((name) => (
                <tr key={name}>
                  <td class="dim nowrap">{name}</td>
                  <td class="mono wrap-anywhere">{left[name] ?? "–"}</td>
                  {right && <td class="mono wrap-anywhere">{right[name] ?? "–"}</td>}
                </tr>
              ))}
            </tbody>
          </table>
          {right && !names.length && <p>{t("runs.noDiff")}</p>}
        </div>
      </aside>
    </>
  );
}
