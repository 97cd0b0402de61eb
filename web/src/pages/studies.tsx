// Studies: the list, and one of them with its history, importances, parallel coordinates, slices, contour and trials.
import { signal, useSignalEffect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import "../styles/studies.css";
import { Chart } from "../charts/chart";
import { count, num, shown } from "../format/number";
import { ago } from "../format/time";
import { lang, t } from "../i18n";
import { ask } from "../net/api";
import { change, go, link, place, query } from "../state/route";
import { Contour, History, Importance, Parallel, Slice } from "../study/charts";
import { stateOf } from "../study/data";
import { Trials } from "../study/table";
import { told, w } from "../study/words";
import type { StudyColumns, StudyCurves, StudyImportance, StudyList } from "../types.gen";

const AGAIN_MS = 2000;
const MOST_SLICES = 12;
const list = signal<StudyList | null>(null);
const study = signal<StudyColumns | null>(null);
const importance = signal<{ of: string; told: StudyImportance } | null>(null);
const curves = signal<StudyCurves | null>(null);
const problem = signal("");

export function StudiesPage() {
  const name = place.value.path[1] ?? "";
  useEffect(() => {
    // Asked again and again: a study is written by other processes, often on other machines. The answer is a 304 while
    // nothing has changed.
    const timer = setInterval(() => void look(name), AGAIN_MS);
    return () => clearInterval(timer);
  }, [name]);
  useSignalEffect(() => {
    void lang.value;
    void look(place.value.path[1] ?? "");
  });
  if (!name) return <List />;
  if (problem.value)
    return (
      <div class="empty">
        <h2>{name}</h2>
        <p>{problem.value}</p>
      </div>
    );
  return study.value?.study === name ? <One study={study.value} /> : null;
}

async function look(name: string): Promise<void> {
  try {
    if (!name) {
      list.value = await ask<StudyList>("studies", { lang: lang.value });
      return;
    }
    const path = `studies/${encodeURIComponent(name)}`;
    const told = await ask<StudyColumns>(path, { lang: lang.value });
    const of = `${lang.value} ${name} ${told.state.filter((one) => told.words[one] === "complete").length} ${target()}`;
    study.value = told;
    problem.value = "";
    if (importance.value?.of !== of)
      importance.value = {
        of,
        told: await ask<StudyImportance>(`${path}/importance`, { target: target(), lang: lang.value }),
      };
    const wanted = curvesOf(told);
    curves.value = wanted.length ? await ask<StudyCurves>(`${path}/curves`, { trials: wanted.join(",") }) : null;
  } catch (error) {
    problem.value = String((error as Error).message);
  }
}

function target(): number {
  return Number(query.value.target ?? 0);
}

function chosenIn(): number[] {
  return (query.value.sel ?? "").split(",").filter(Boolean).map(Number);
}

/** The chosen trials; else the best and the last ones. */
function curvesOf(study: StudyColumns): number[] {
  const chosen = chosenIn();
  if (chosen.length) return chosen;
  return [...new Set([...study.best.slice(0, 1), ...study.number.slice(-12)])];
}

function List() {
  const all = list.value?.studies;
  if (all && !all.length)
    return (
      <div class="empty" style={{ margin: "24px auto" }}>
        <h2>{w("nothing")}</h2>
        <p>{w("nothing.how")}</p>
        <pre>{"misstep tune --like 'python train.py' study.yaml\nmisstep tune study.yaml"}</pre>
      </div>
    );
  return (
    <div class="scroll grow pad">
      <table>
        <thead>
          <tr>
            <th>{w("studies")}</th>
            <th class="number">{w("table")}</th>
            <th>{w("target")}</th>
            <th class="number">{w("best")}</th>
            <th>{w("column.state")}</th>
            <th>{t("column.started")}</th>
          </tr>
        </thead>
        <tbody>
          {(all ?? []).map((one) => (
            <tr key={one.study} class="pick" onClick={() => go(["studies", one.study])}>
              <td>
                <a href={link(["studies", one.study])}>
                  <b>{one.study}</b>
                </a>
              </td>
              <td class="number">{one.wanted ? `${count(one.trials)} / ${count(one.wanted)}` : count(one.trials)}</td>
              <td>{one.target}</td>
              <td class="number">{one.best === null ? "–" : shown(one.best)}</td>
              <td>{one.problem || counted(one.states)}</td>
              <td class="nowrap">{one.changed ? ago(one.changed) : "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function counted(states: Record<string, number>): string {
  return Object.entries(states)
    .map(([state, n]) => `${told("state", state)} ${count(n)}`)
    .join(" · ");
}

function One({ study }: { study: StudyColumns }) {
  const states: Record<string, number> = {};
  study.state.forEach((_, row) => {
    const state = stateOf(study, row);
    states[state] = (states[state] ?? 0) + 1;
  });
  const chosen = chosenIn();
  const best = study.best[0];
  const bestRow = study.number.indexOf(best);
  return (
    <div class="scroll grow pad column gap study" data-test="study" data-trials={study.number.length}>
      <div class="row wrap">
        <h2>{study.study}</h2>
        <span class="dim">{counted(states)}</span>
        {study.targets.length > 1 && (
          <select
            aria-label={w("target")}
            value={target()}
            onChange={(event) => change({ target: event.currentTarget.value })}
          >
            {study.targets.map((name, at) => (
              <option key={name} value={at}>
                {name}
              </option>
            ))}
          </select>
        )}
        <span class="dim">
          {study.targets[target()]}: {told("goal", study.goals[target()])}
        </span>
        <span class="grow" />
        {bestRow >= 0 && study.run[bestRow] && (
          <a class="button main" href={link(["runs", study.run[bestRow], "debug"])}>
            {w("open", { run: study.run[bestRow] })}
          </a>
        )}
      </div>
      <div class="study-pair">
        <figure class="card">
          <figcaption>
            <h2>{w("history")}</h2>
          </figcaption>
          <History
            study={study}
            target={target()}
            pick={(row) => study.number[row] !== undefined && change({ sel: String(study.number[row]) })}
          />
        </figure>
        <figure class="card">
          <figcaption>
            <h2>{w("importance")}</h2>
          </figcaption>
          <Importance told={importance.value?.told ?? null} />
        </figure>
      </div>
      <figure class="card">
        <figcaption class="row">
          <h2>{w("parallel")}</h2>
          <span class="dim">{w("parallel.help")}</span>
        </figcaption>
        <Parallel study={study} target={target()} />
      </figure>
      <div class="study-slices">
        {study.parameters.slice(0, MOST_SLICES).map((name) => (
          <figure key={name} class="card">
            <figcaption>
              <h2>
                {w("slice")}: <span class="mono">{name}</span>
              </h2>
            </figcaption>
            <Slice study={study} name={name} target={target()} />
          </figure>
        ))}
      </div>
      <div class="study-pair">
        <ContourCard study={study} />
        <CurvesCard study={study} />
      </div>
      <Differs study={study} chosen={chosen} />
      <Trials study={study} chosen={chosen} />
    </div>
  );
}

function ContourCard({ study }: { study: StudyColumns }) {
  if (study.parameters.length < 2) return null;
  const order = importance.value?.told.names.filter((name) => study.parameters.includes(name)) ?? [];
  const names = [...new Set([...order, ...study.parameters])];
  const [x, y] = [query.value.x ?? names[0], query.value.y ?? names[1]];
  const choose = (label: string, value: string, key: string) => (
    <select aria-label={label} value={value} onChange={(event) => change({ [key]: event.currentTarget.value })}>
      {study.parameters.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
  return (
    <figure class="card">
      <figcaption class="row">
        <h2>{w("contour")}</h2>
        {choose(w("x"), x, "x")}
        {choose(w("y"), y, "y")}
      </figcaption>
      <Contour study={study} x={x} y={y} target={target()} />
      <p class="dim">{w("contour.help")}</p>
    </figure>
  );
}

function CurvesCard({ study }: { study: StudyColumns }) {
  const all = (curves.value?.curves ?? []).filter((one) => one.x.length > 0);
  return (
    <figure class="card">
      <figcaption>
        <h2>{w("curves")}</h2>
      </figcaption>
      {all.length ? (
        <Chart
          height={340}
          series={all.map((one, at) => ({
            label: w("trial", { n: one.number }),
            x: one.x,
            y: one.y.map((value) => (value === null ? NaN : num(value))),
            colour: at,
            faint: !chosenIn().length && !study.best.includes(one.number),
          }))}
        />
      ) : (
        <p class="dim">{w("curves.none")}</p>
      )}
    </figure>
  );
}

function Differs({ study, chosen }: { study: StudyColumns; chosen: number[] }) {
  const rows = chosen.map((number) => study.number.indexOf(number)).filter((row) => row >= 0);
  if (rows.length < 2) return <p class="dim">{w("choose")}</p>;
  const differing = study.parameters
    .map((name, at) => ({ name, values: rows.map((row) => study.params[at][row]) }))
    .filter((one) => one.values.some((value) => value !== one.values[0]));
  return (
    <section class="card" data-test="differs">
      <h2>{w("differs")}</h2>
      {differing.length ? (
        <table>
          <thead>
            <tr>
              <th />
              {rows.map((row) => (
                <th key={row} class="number">
                  {w("trial", { n: study.number[row] })}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {study.targets.map((name, at) => (
              <tr key={name}>
                <td>{name}</td>
                {rows.map((row) => (
                  <td key={row} class="number">
                    {study.values[at][row] === null ? "–" : shown(study.values[at][row])}
                  </td>
                ))}
              </tr>
            ))}
            {differing.map((one) => (
              <tr key={one.name}>
                <td class="mono">{one.name}</td>
                {one.values.map((value, at) => (
                  <td key={rows[at]} class="number">
                    {String(value ?? "–")}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <p class="dim">{w("differs.none")}</p>
      )}
    </section>
  );
}
