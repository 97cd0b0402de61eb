// Every run of the folder: found by words, sorted by any column, two or more compared.
import { signal, useComputed } from "@preact/signals";
import type { Cells } from "../format/csv";
import { count, num, shown } from "../format/number";
import { ago, moment } from "../format/time";
import { lang, said, t } from "../i18n";
import { connection, directory, runs, runsKnown } from "../state/live";
import { remember, remembered } from "../state/remembered";
import { change, go, link, query } from "../state/route";
import type { RunBrief } from "../types.gen";
import { Icon } from "../ui/icons";
import { StateMark } from "../ui/marks";
import { More } from "../ui/more";
import { Spark } from "../ui/spark";
import { RunDetails } from "./rundetails";

export const COLUMNS = ["state", "step", "loss", "hits", "ranks", "host", "started", "found", "command"] as const;
type Column = (typeof COLUMNS)[number];
const NUMBERS: Column[] = ["step", "loss", "hits", "ranks"];
const kept = signal<Column[]>(
  remembered("columns", ["state", "step", "loss", "hits", "ranks", "started", "found", "command"]),
);
const choosing = signal(false);

export function RunsPage() {
  const rows = useComputed(() =>
    sorted(matching([...runs.value.values()], query.value.q ?? ""), query.value.sort ?? "-started"),
  );
  const columns = query.value.cols ? COLUMNS.filter((one) => query.value.cols.split(",").includes(one)) : kept.value;
  const selected = (query.value.sel ?? "").split(",").filter((name) => runs.value.has(name));
  const focus = query.value.focus ?? "";
  if (runsKnown.value && runs.value.size === 0) return <Nothing />;
  const toggle = (name: string): void =>
    change({ sel: (selected.includes(name) ? selected.filter((one) => one !== name) : [...selected, name]).join(",") });
  const key = (event: KeyboardEvent): void => {
    const at = rows.value.findIndex((one) => one.run === focus);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const next = rows.value[Math.min(rows.value.length - 1, Math.max(0, at + (event.key === "ArrowDown" ? 1 : -1)))];
      if (next) change({ focus: next.run });
    } else if (event.key === "Enter" && focus) go(["runs", focus, "debug"]);
    else if (event.key === " " && focus) toggle(focus);
    else if (event.key.toLowerCase() === "c" && selected.length > 1) compare(selected);
    else return;
    event.preventDefault();
  };
  return (
    <div class="column grow">
      <div class="tools row wrap">
        <label class="search" style={{ flex: "1 1 260px", maxWidth: "480px" }}>
          <Icon name="search" />
          <input
            id="run-search"
            value={query.value.q ?? ""}
            placeholder={t("runs.search")}
            aria-label={t("runs.search")}
            onInput={(event) => change({ q: event.currentTarget.value })}
          />
        </label>
        <span class="dim">{t("runs.count", { n: count(rows.value.length) })}</span>
        <span class="grow" />
        <span class="columns-picker">
          <button aria-expanded={choosing.value} onClick={() => (choosing.value = !choosing.value)}>
            {t("runs.columns")}
            <Icon name="down" />
          </button>
          {choosing.value && (
            <div class="menu" style={{ position: "absolute", right: "0px", top: "32px" }}>
              {COLUMNS.map((one) => (
                <label key={one} class="field" style={{ display: "flex", padding: "4px 8px" }}>
                  <input
                    type="checkbox"
                    checked={columns.includes(one)}
                    onChange={() => {
                      kept.value = COLUMNS.filter((other) =>
                        other === one ? !columns.includes(one) : columns.includes(other),
                      );
                      remember("columns", kept.peek());
                      change({ cols: null });
                    }}
                  />
                  {said("column", one)}
                </label>
              ))}
            </div>
          )}
        </span>
        <button
          class={selected.length > 1 ? "main" : ""}
          disabled={selected.length < 2}
          title={t("runs.compareHelp")}
          onClick={() => compare(selected)}
        >
          {t("runs.compare", { n: selected.length })}
        </button>
        <More name="runs" csv={() => runCells(rows.value)} />
      </div>
      <div class="row grow panes">
        <div class="scroll grow runs-list" tabIndex={0} onKeyDown={key} aria-label={t("runs.title")} role="region">
          <table>
            <thead>
              <tr>
                <th style={{ width: "28px" }}>
                  <span class="hidden-visually">{t("runs.select")}</span>
                </th>
                <Head name="run" />
                {columns.map((one) => (
                  <Head key={one} name={one} />
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.value.slice(0, 500).map((one) => (
                <tr
                  key={one.run}
                  class={`pick${one.run === focus ? " chosen" : ""}`}
                  onClick={() => change({ focus: one.run })}
                  onDblClick={() => go(["runs", one.run, "debug"])}
                >
                  <td>
                    <input
                      type="checkbox"
                      checked={selected.includes(one.run)}
                      aria-label={t("runs.selectOne", { run: one.run })}
                      onClick={(event) => event.stopPropagation()}
                      onChange={() => toggle(one.run)}
                    />
                  </td>
                  <td class="nowrap">
                    <a href={link(["runs", one.run, "debug"])}>
                      <b>{one.run}</b>
                    </a>
                  </td>
                  {columns.map((column) => (
                    <Cell key={column} column={column} one={one} />
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
          {rows.value.length > 500 && <p class="pad dim">{t("runs.more", { n: count(rows.value.length - 500) })}</p>}
          {!rows.value.length && runsKnown.value && <p class="pad dim">{t("runs.noMatch")}</p>}
        </div>
        {focus && runs.value.has(focus) && (
          <RunDetails run={focus} other={selected.find((one) => one !== focus) ?? ""} />
        )}
      </div>
    </div>
  );
}

function runCells(all: RunBrief[]): Cells {
  return [
    ["run", ...COLUMNS],
    ...all.map((one) => [
      one.run,
      one.live ? one.phase : one.state,
      one.step,
      one.loss === null ? null : num(one.loss),
      one.hits,
      one.world_size,
      one.host,
      moment(one.started),
      one.found,
      one.command.join(" "),
    ]),
  ];
}

function compare(names: string[]): void {
  go(["compare", "scalars"], { runs: names.join(","), base: names[0] });
}

function Head({ name }: { name: Column | "run" }) {
  const sort = query.value.sort ?? "-started";
  const mine = sort.replace("-", "") === name;
  const number = (NUMBERS as string[]).includes(name);
  return (
    <th
      class={number ? "number" : ""}
      aria-sort={mine ? (sort.startsWith("-") ? "descending" : "ascending") : undefined}
    >
      <button onClick={() => change({ sort: mine && !sort.startsWith("-") ? `-${name}` : name })}>
        {said("column", name)}
        {mine ? (sort.startsWith("-") ? " ▾" : " ▴") : ""}
      </button>
    </th>
  );
}

function Cell({ column, one }: { column: Column; one: RunBrief }) {
  if (column === "state")
    return (
      <td>
        <StateMark brief={one} />
      </td>
    );
  if (column === "step") return <td class="number">{count(one.step)}</td>;
  if (column === "loss")
    return (
      <td class="number">
        <span class="row" style={{ justifyContent: "flex-end" }}>
          <Spark points={one.spark} width={56} />
          {one.loss === "NaN" ? <span class="chip nan">NaN</span> : shown(one.loss)}
        </span>
      </td>
    );
  if (column === "hits") return <td class={`number ${one.hits ? "tone-error" : "dim"}`}>{count(one.hits)}</td>;
  if (column === "ranks") return <td class="number">{one.world_size}</td>;
  if (column === "host") return <td class="mono">{one.host || "–"}</td>;
  if (column === "started")
    return (
      <td class="nowrap" title={moment(one.started)}>
        {ago(one.started)}
      </td>
    );
  if (column === "found")
    return (
      <td class="cut found-cell" title={foundIn(one)}>
        {foundIn(one) || <span class="dim">–</span>}
      </td>
    );
  return (
    <td class="mono cut" style={{ maxWidth: "360px" }} title={one.command.join(" ")}>
      {one.command.join(" ") || "–"}
    </td>
  );
}

function foundIn(one: RunBrief): string {
  return lang.value === "zh" ? one.found_zh : one.found;
}

/** Words must all occur; `status:paused`, `hits>0`, `loss<2`, `step>100` narrow by value. */
export function matching(all: RunBrief[], text: string): RunBrief[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return all.filter((one) =>
    words.every((word) => {
      const state = /^(?:status|state):(.+)$/.exec(word);
      if (state) return one.state.startsWith(state[1]) || (one.live && one.phase.startsWith(state[1]));
      const bound = /^(loss|step|hits|ranks)([<>]=?)(.+)$/.exec(word);
      if (bound) {
        const have =
          bound[1] === "loss"
            ? num(one.loss)
            : bound[1] === "ranks"
              ? one.world_size
              : Number(one[bound[1] as "step" | "hits"]);
        const want = Number(bound[3]);
        return bound[2].startsWith("<")
          ? have < want || (bound[2] === "<=" && have === want)
          : have > want || (bound[2] === ">=" && have === want);
      }
      return `${one.run} ${one.command.join(" ")} ${one.host} ${one.found}`.toLowerCase().includes(word);
    }),
  );
}

export function sorted(all: RunBrief[], sort: string): RunBrief[] {
  const down = sort.startsWith("-") ? -1 : 1;
  const name = sort.replace("-", "");
  const of = (one: RunBrief): number | string =>
    name === "started"
      ? one.started
      : name === "step"
        ? one.step
        : name === "hits"
          ? one.hits
          : name === "ranks"
            ? one.world_size
            : name === "loss"
              ? Number.isFinite(num(one.loss))
                ? num(one.loss)
                : Infinity
              : name === "state"
                ? one.live
                  ? one.phase
                  : one.state
                : name === "host"
                  ? one.host
                  : name === "found"
                    ? one.found
                    : name === "command"
                      ? one.command.join(" ")
                      : one.run;
  return [...all].sort((a, b) => {
    const [x, y] = [of(a), of(b)];
    return (
      down * (typeof x === "number" && typeof y === "number" ? x - y || 0 : String(x).localeCompare(String(y))) ||
      b.started - a.started
    );
  });
}

function Nothing() {
  return (
    <div class="empty" style={{ margin: "24px auto" }}>
      <h2>{t("empty.title")}</h2>
      <p>{t("empty.text", { folder: directory.value })}</p>
      <b>PyTorch</b>
      <pre>misstep run python train.py</pre>
      <b>MindSpore</b>
      <pre>misstep run --level op python train.py</pre>
      <p class="row">
        <Icon
          name={connection.value.link === "open" ? "check" : "lost"}
          tone={connection.value.link === "open" ? "ok" : "error"}
        />
        {connection.value.link === "open" ? t("empty.listening", { host: location.host }) : t("empty.notListening")}
      </p>
    </div>
  );
}
