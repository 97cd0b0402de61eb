// Every trial of a study: filtered, sorted, chosen; only the rows in sight exist.
import { count, shown } from "../format/number";
import { change, link, query } from "../state/route";
import type { StudyColumns } from "../types.gen";
import { Icon } from "../ui/icons";
import { Virtual } from "../ui/virtual";
import { matching, ordered, type Row, stateOf, value } from "./data";
import { told, w } from "./words";

const ROW = 28;

export function Trials({ study, chosen }: { study: StudyColumns; chosen: number[] }) {
  const sort = query.value.sort ?? "-trial";
  const rows = ordered(study, matching(study, query.value.q ?? ""), sort);
  const best = new Set(study.best);
  const toggle = (number: number): void =>
    change({ sel: (chosen.includes(number) ? chosen.filter((one) => one !== number) : [...chosen, number]).join(",") });
  const widths = `28px 64px 96px ${study.targets.map(() => "minmax(84px, 1fr)").join(" ")} ${study.parameters.map(() => "minmax(72px, 1fr)").join(" ")} 64px 72px minmax(110px, 1fr) minmax(120px, 3fr)`;
  return (
    <section class="card column trials" data-test="trials">
      <div class="row wrap">
        <h2>{w("table")}</h2>
        <label class="search" style={{ flex: "1 1 260px", maxWidth: "420px" }}>
          <Icon name="search" />
          <input
            value={query.value.q ?? ""}
            placeholder={w("filter")}
            aria-label={w("filter")}
            onInput={(event) => change({ q: event.currentTarget.value })}
          />
        </label>
        <span class="dim">{w("count", { n: count(rows.length), all: count(study.number.length) })}</span>
      </div>
      <div class="trials-head" style={{ gridTemplateColumns: widths }}>
        <span />
        <Head name="trial" text={w("column.trial")} sort={sort} />
        <Head name="state" text={w("column.state")} sort={sort} />
        {[...study.targets, ...study.parameters].map((name) => (
          <Head key={name} name={name} text={name} sort={sort} right />
        ))}
        <Head name="steps" text={w("column.steps")} sort={sort} right />
        <Head name="seconds" text={w("column.seconds")} sort={sort} right />
        <Head name="run" text={w("column.run")} sort={sort} />
        <span>{w("column.why")}</span>
      </div>
      <Virtual
        class="trials-rows scroll"
        total={rows.length}
        rowHeight={ROW}
        keep={-1}
        tabIndex={0}
        role="region"
        aria-label={w("table")}
        row={(at) => (
          <TrialRow
            key={study.number[rows[at]]}
            study={study}
            row={rows[at]}
            widths={widths}
            best={best.has(study.number[rows[at]])}
            chosen={chosen.includes(study.number[rows[at]])}
            toggle={toggle}
          />
        )}
      />
    </section>
  );
}

function Head({ name, text, sort, right }: { name: string; text: string; sort: string; right?: boolean }) {
  const mine = sort.replace(/^-/, "") === name;
  return (
    <button
      class={`plain ${right ? "right" : ""}`}
      onClick={() => change({ sort: mine && !sort.startsWith("-") ? `-${name}` : name })}
    >
      {text}
      {mine ? (sort.startsWith("-") ? " ▾" : " ▴") : ""}
    </button>
  );
}

interface RowProps {
  study: StudyColumns;
  row: Row;
  widths: string;
  best: boolean;
  chosen: boolean;
  toggle: (number: number) => void;
}

function TrialRow({ study, row, widths, best, chosen, toggle }: RowProps) {
  const number = study.number[row];
  const state = stateOf(study, row);
  const why = study.why[row] || (study.ended[row] !== state ? told("ended", study.ended[row]) : "");
  return (
    <div class={`trials-row${best ? " best" : ""}${chosen ? " chosen" : ""}`} style={{ gridTemplateColumns: widths }}>
      <input type="checkbox" checked={chosen} aria-label={w("trial", { n: number })} onChange={() => toggle(number)} />
      <span class="row" style={{ gap: "2px" }}>
        {number}
        {best && <Icon name="star" tone="ok" title={w("best")} />}
      </span>
      <span class={`trial-state is-${state}`}>{told("state", state)}</span>
      {study.targets.map((name, target) => (
        <span key={name} class="number">
          {Number.isNaN(value(study, row, target)) ? "–" : shown(study.values[target][row])}
        </span>
      ))}
      {study.params.map((column, at) => (
        <span key={study.parameters[at]} class="number cut" title={String(column[row] ?? "")}>
          {typeof column[row] === "number"
            ? Number((column[row] as number).toPrecision(4))
            : String(column[row] ?? "–")}
        </span>
      ))}
      <span class="number">{count(study.steps[row])}</span>
      <span class="number">{study.seconds[row] ? study.seconds[row].toFixed(1) : "–"}</span>
      <span class="cut">
        {study.run[row] ? (
          <a href={link(["runs", study.run[row], "debug"])} title={w("open", { run: study.run[row] })}>
            {study.run[row]}
          </a>
        ) : (
          "–"
        )}
      </span>
      <span class="cut dim" title={why}>
        {why}
      </span>
    </div>
  );
}
