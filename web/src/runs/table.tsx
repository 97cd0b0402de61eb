// The table of runs: only the rows in sight exist, so that five thousand scroll like fifty.
import { useRef } from "preact/hooks";
import { count, num, shown, value } from "../format/number";
import { ago, moment } from "../format/time";
import { lang, said, t } from "../i18n";
import { runs, runsKnown } from "../state/live";
import { change, go, link, query } from "../state/route";
import type { RunBrief } from "../types.gen";
import { Skeleton } from "../ui/card";
import { Icon } from "../ui/icons";
import { StateMark } from "../ui/marks";
import { Spark } from "../ui/spark";
import { useInSight } from "../ui/virtual";
import { cellOf, isOwn, type Line } from "./query";
import { choose, chosen, columns, compare, fitting, label, prefetch, shownLines, shut, sort, toggle } from "./view";

const ROW = 36;
const HEAD = 34;
const WIDTHS: Record<string, number> = {
  state: 164,
  found: 236,
  step: 72,
  loss: 168,
  hits: 64,
  ranks: 60,
  tags: 116,
  note: 220,
  started: 92,
  host: 110,
  command: 320,
};
const NUMBERS = new Set(["step", "hits", "ranks", "loss"]);
const width = (column: string): number => WIDTHS[column] ?? 84;

export function RunTable() {
  const holder = useRef<HTMLDivElement>(null);
  const all = shownLines.value;
  const focus = query.value.focus ?? "";
  const at = all.findIndex((one) => "run" in one && one.run.run === focus);
  const [first, last] = useInSight(holder, all.length, ROW, at, HEAD);
  const names = fitting.value;
  const whole = names.length > 0 && chosen.value.length >= names.length;
  return (
    <div
      class="scroll grow runs-list"
      ref={holder}
      tabIndex={0}
      onKeyDown={(event) => keys(event, all, at)}
      aria-label={t("runs.title")}
      role="region"
      data-test="runs"
    >
      <table
        class="fixed"
        style={{ minWidth: `${176 + 64 + columns.value.reduce((sum, one) => sum + width(one), 0)}px` }}
        aria-rowcount={all.length + 1}
      >
        <colgroup>
          <col style={{ width: "36px" }} />
          <col style={{ width: "28px" }} />
          <col />
          {columns.value.map((one) => (
            <col key={one} style={{ width: `${width(one)}px` }} />
          ))}
        </colgroup>
        <thead>
          <tr style={{ height: `${HEAD}px` }}>
            <th>
              <input
                type="checkbox"
                checked={whole}
                aria-label={t("runs.selectAll")}
                onChange={() => choose(whole ? [] : names.map((one) => one.run))}
              />
            </th>
            <th>
              <span class="hidden-visually">{t("runs.pin")}</span>
            </th>
            <Head name="run" />
            {columns.value.map((one) => (
              <Head key={one} name={one} />
            ))}
          </tr>
        </thead>
        <tbody>
          {first > 0 && <tr aria-hidden="true" class="space" style={{ height: `${first * ROW}px` }} />}
          {all
            .slice(first, last)
            .map((one) =>
              "run" in one ? (
                <Row key={one.run.run} one={one.run} focused={one.run.run === focus} />
              ) : (
                <Group key={`group ${one.group}`} name={one.group} members={one.runs} />
              ),
            )}
          {last < all.length && (
            <tr aria-hidden="true" class="space" style={{ height: `${(all.length - last) * ROW}px` }} />
          )}
        </tbody>
      </table>
      {!runsKnown.value && !runs.value.size && <Skeleton rows={8} />}
      {!all.length && runsKnown.value && <p class="pad dim">{t("runs.noMatch")}</p>}
    </div>
  );
}

function keys(event: KeyboardEvent, all: Line[], at: number): void {
  const focus = at >= 0 && "run" in all[at] ? all[at].run.run : "";
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const way = event.key === "ArrowDown" ? 1 : -1;
    let next = at + way;
    while (next >= 0 && next < all.length && !("run" in all[next])) next += way;
    const line = all[next];
    if (line && "run" in line) change({ focus: line.run.run });
  } else if (event.key === "Enter" && focus && event.target === event.currentTarget) go(["runs", focus, "debug"]);
  else if (event.key === " " && focus && event.target === event.currentTarget) toggle(focus);
  else if (event.key.toLowerCase() === "c" && !event.ctrlKey && !event.metaKey && chosen.peek().length > 1)
    compare(chosen.peek());
  else return;
  event.preventDefault();
}

function Head({ name }: { name: string }) {
  const mine = sort.value.replace(/^-/, "") === name.replace(/^--/, "") || sort.value.replace(/^-(?!-)/, "") === name;
  const down = /^-(?!-)/.test(sort.value) || sort.value.startsWith("---");
  const key = name.replace(/^--/, "");
  return (
    <th
      class={NUMBERS.has(name) || isNumeric(name) ? "number" : ""}
      aria-sort={mine ? (down ? "descending" : "ascending") : undefined}
      title={name}
    >
      <button class={`cut${isOwn(name) || name === "run" ? "" : " mono"}`} onClick={() => order(key, mine && !down)}>
        {isOwn(name) ? said("column", name) : key}
        {mine ? (down ? " ▾" : " ▴") : ""}
      </button>
    </th>
  );
}

function order(key: string, down: boolean): void {
  change({ sort: down ? `-${key}` : key });
}

function isNumeric(column: string): boolean {
  const some = fitting.value.slice(0, 30).map((one) => cellOf(one, column));
  return !isOwn(column) && some.some((one) => typeof one === "number");
}

function Group({ name, members }: { name: string; members: RunBrief[] }) {
  const closed = shut.value.includes(name);
  const losses = members.map((one) => num(one.loss)).filter(Number.isFinite);
  const bad = members.filter((one) => one.bad).length;
  const flip = (): void =>
    change({ shut: (closed ? shut.value.filter((one) => one !== name) : [...shut.value, name]).join(",") });
  return (
    <tr class="group" style={{ height: `${ROW}px` }}>
      <td colSpan={columns.value.length + 3}>
        <button class="plain" aria-expanded={!closed} onClick={flip}>
          <Icon name={closed ? "right" : "down"} />
          <b>{name}</b>
          <span class="dim">{t("runs.count", { n: count(members.length) })}</span>
          {losses.length > 0 && <span class="dim">{t("runs.best", { loss: value(Math.min(...losses)) })}</span>}
          {bad > 0 && <span class="tone-nan">{t("runs.ill", { n: count(bad) })}</span>}
        </button>
      </td>
    </tr>
  );
}

function Row({ one, focused }: { one: RunBrief; focused: boolean }) {
  return (
    <tr
      class={`pick${focused ? " chosen" : ""}`}
      style={{ height: `${ROW}px` }}
      onClick={() => change({ focus: one.run })}
      onDblClick={() => go(["runs", one.run, "debug"])}
    >
      <td>
        <input
          type="checkbox"
          checked={chosen.value.includes(one.run)}
          aria-label={t("runs.selectOne", { run: one.run })}
          onClick={(event) => {
            event.stopPropagation();
            if (event.shiftKey) range(one.run);
          }}
          onChange={() => toggle(one.run)}
        />
      </td>
      <td class="pin-cell">
        <button
          class={`plain tiny${one.pinned ? " pinned" : ""}`}
          aria-pressed={one.pinned}
          title={one.pinned ? t("runs.unpin") : t("runs.pin")}
          onClick={(event) => {
            event.stopPropagation();
            void label({ runs: [one.run], pinned: !one.pinned });
          }}
        >
          <Icon name="pin" />
          <span class="hidden-visually">{t("runs.pin")}</span>
        </button>
      </td>
      <td class="cut">
        <a href={link(["runs", one.run, "debug"])} title={one.run} onPointerEnter={() => prefetch(one.run)}>
          <b>{one.run}</b>
        </a>
      </td>
      {columns.value.map((column) => (
        <ColumnCell key={column} column={column} one={one} />
      ))}
    </tr>
  );
}

/** From the last chosen run to this one, as everywhere with Shift. */
function range(to: string): void {
  const names = fitting.value.map((one) => one.run);
  const [a, b] = [names.indexOf(chosen.value.at(-1) ?? to), names.indexOf(to)].sort((x, y) => x - y);
  choose([...new Set([...chosen.value, ...names.slice(Math.max(0, a), b + 1)])].filter((name) => name !== to));
}

function ColumnCell({ column, one }: { column: string; one: RunBrief }) {
  switch (column) {
    case "state":
      return (
        <td class="cut">
          <StateMark brief={one} pill />
        </td>
      );
    case "loss":
      return (
        <td class="number">
          <span class="row" style={{ justifyContent: "flex-end" }}>
            <Spark points={one.spark} width={76} />
            <span class={`loss ${one.loss === "NaN" ? "tone-nan" : ""}`}>{shown(one.loss)}</span>
          </span>
        </td>
      );
    case "hits":
      return <td class={`number ${one.hits ? "" : "dim"}`}>{count(one.hits)}</td>;
    case "step":
      return <td class="number">{count(one.step)}</td>;
    case "started":
      return (
        <td class="cut" title={moment(one.started)}>
          {ago(one.started)}
        </td>
      );
    case "found": {
      const told = lang.value === "zh" ? one.found_zh : one.found;
      return (
        <td class="cut" title={told}>
          {told || <span class="dim">–</span>}
        </td>
      );
    }
    case "tags":
      return (
        <td class="cut" title={one.tags.join(", ")}>
          {one.tags.map((tag) => (
            <span key={tag} class="tag">
              {tag}
            </span>
          ))}
        </td>
      );
  }
  const told = cellOf(one, column);
  const plain = told === null || told === "" ? "–" : typeof told === "number" ? typed(told) : String(told);
  return (
    <td class={`cut ${typeof told === "number" ? "number" : isOwn(column) ? "" : "mono"}`} title={plain}>
      {typeof told === "boolean" ? t(told ? "yes" : "no") : plain}
    </td>
  );
}

/** A parameter as somebody would type it. */
function typed(number: number): string {
  const text = String(Number(number.toPrecision(6)));
  const short = number.toExponential().replace("e+", "e");
  return short.length < text.length ? short : text;
}
