// Every run of the folder as a place to work in: found by words and by parameters, in any order and grouping, tagged,
// compared, deleted. The address is the view.
import { signal, useSignal } from "@preact/signals";
import type { Cells } from "../format/csv";
import { count, num } from "../format/number";
import { moment } from "../format/time";
import { said, t } from "../i18n";
import { asking, RunDialogs } from "../runs/labels";
import { cellOf, isOwn } from "../runs/query";
import { RunTable } from "../runs/table";
import {
  chosen,
  columns,
  compare,
  dropView,
  fitting,
  group,
  known,
  label,
  OWN_COLUMNS,
  openView,
  saveView,
  setColumns,
  views,
} from "../runs/view";
import { connection, directory, runs, runsKnown, runsTotal } from "../state/live";
import { change, query } from "../state/route";
import { Command } from "../ui/card";
import { Icon } from "../ui/icons";
import { lazy } from "../ui/lazy";
import { More } from "../ui/more";
import { RunDetails } from "./rundetails";

const RunAxes = lazy(() => import("../runs/axes").then((one) => one.RunAxes));

export function RunsPage() {
  const focus = query.value.focus ?? "";
  if (runsKnown.value && runs.value.size === 0) return <Nothing />;
  const names = chosen.value;
  return (
    <div class="column grow">
      <Tools />
      <div class="row grow panes">
        <div class="column grow">
          <RunTable />
          {query.value.par === "1" && <RunAxes />}
        </div>
        {focus && runs.value.has(focus) && <RunDetails run={focus} other={names.find((one) => one !== focus) ?? ""} />}
      </div>
      <RunDialogs names={names} />
    </div>
  );
}

function Tools() {
  const names = chosen.value;
  const many = names.length;
  const all = names.map((name) => runs.value.get(name));
  return (
    <div class="tools row wrap">
      <label class="search" style={{ flex: "1 1 260px", maxWidth: "460px" }}>
        <Icon name="search" />
        <input
          id="run-search"
          value={query.value.q ?? ""}
          placeholder={t("runs.search")}
          aria-label={t("runs.search")}
          title={t("runs.searchHelp")}
          onInput={(event) => change({ q: event.currentTarget.value })}
        />
      </label>
      <span class="dim nowrap" data-test="run-count">
        {fitting.value.length === runs.value.size && runsTotal.value > runs.value.size
          ? t("runs.loading", { n: count(runs.value.size), total: count(runsTotal.value) })
          : t("runs.count", { n: count(fitting.value.length) })}
      </span>
      <ColumnPicker />
      <GroupPicker />
      <button
        aria-pressed={query.value.par === "1"}
        title={t("runs.parallel")}
        onClick={() => change({ par: query.value.par === "1" ? null : "1" })}
      >
        <Icon name="parallel" />
        <span class="wide-only">{t("runs.parallel")}</span>
      </button>
      <Views />
      <span class="grow" />
      {many > 0 && (
        <>
          <button onClick={() => (asking.value = "tags")}>{t("runs.tag")}</button>
          <button
            onClick={() => void label({ runs: names, pinned: !all.every((one) => one?.pinned) })}
            aria-label={t("runs.pinMany")}
            title={t("runs.pinMany")}
          >
            <Icon name="pin" />
          </button>
          <button class="danger" onClick={() => (asking.value = "delete")}>
            {t("runs.delete")}
          </button>
        </>
      )}
      <button
        class={many > 1 ? "main" : ""}
        disabled={many < 2}
        title={t("runs.compareHelp")}
        onClick={() => compare(names)}
      >
        {t("runs.compare", { n: many })}
      </button>
      <More name="runs" csv={runCells} />
    </div>
  );
}

const choosing = signal(false);

function ColumnPicker() {
  const flip = (one: string): void =>
    setColumns(columns.value.includes(one) ? columns.value.filter((other) => other !== one) : placed(one));
  const offered = [...OWN_COLUMNS, ...known.value.map((one) => `--${one.name}`)];
  return (
    <span class="columns-picker">
      <button aria-expanded={choosing.value} onClick={() => (choosing.value = !choosing.value)}>
        {t("runs.columns")}
        <Icon name="down" />
      </button>
      {choosing.value && (
        <div class="menu scroll pickable" style={{ position: "absolute", left: "0px", top: "32px" }}>
          {offered.map((one) => (
            <label key={one} class="field">
              <input type="checkbox" checked={columns.value.includes(one)} onChange={() => flip(one)} />
              {isOwn(one) ? said("column", one) : <code>{one.slice(2)}</code>}
            </label>
          ))}
          <button class="plain" onClick={() => setColumns(null)}>
            {t("runs.columnsAgain")}
          </button>
        </div>
      )}
    </span>
  );
}

/** A new column stands where its like stand: parameters before tags and times. */
function placed(one: string): string[] {
  const now = columns.value;
  const at = now.findIndex((other) => ["tags", "note", "started", "host", "command"].includes(other));
  return one.startsWith("--") && at >= 0 ? [...now.slice(0, at), one, ...now.slice(at)] : [...now, one];
}

function GroupPicker() {
  const offered = ["state", "host", ...known.value.filter((one) => one.varies).map((one) => one.name), "tags"];
  return (
    <select
      aria-label={t("runs.group")}
      value={group.value}
      onChange={(event) => change({ group: event.currentTarget.value, shut: null })}
    >
      <option value="">{t("runs.noGroup")}</option>
      {[...new Set([...offered, group.value].filter(Boolean))].map((one) => (
        <option key={one} value={one}>
          {t("runs.groupBy", { column: isOwn(one) ? said("column", one) : one })}
        </option>
      ))}
    </select>
  );
}

function Views() {
  const naming = useSignal<string | null>(null);
  return (
    <span class="row wrap" data-test="views">
      {views.value.map((one) => (
        <span key={one.name} class="tag view">
          <button class="plain tiny" onClick={() => openView(one)}>
            {one.name}
          </button>
          <button
            class="plain tiny"
            aria-label={t("runs.dropView", { name: one.name })}
            onClick={() => dropView(one.name)}
          >
            <Icon name="cross" />
          </button>
        </span>
      ))}
      {naming.value === null ? (
        <button class="plain" title={t("runs.saveViewHelp")} onClick={() => (naming.value = "")}>
          <Icon name="star" />
          <span class="wide-only">{t("runs.saveView")}</span>
          <span class="hidden-visually">{t("runs.saveViewHelp")}</span>
        </button>
      ) : (
        <input
          class="naming"
          ref={(element) => element?.focus()}
          placeholder={t("runs.viewName")}
          aria-label={t("runs.viewName")}
          value={naming.value}
          onInput={(event) => (naming.value = event.currentTarget.value)}
          onBlur={() => (naming.value = null)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.isComposing && naming.value?.trim()) saveView(naming.value.trim());
            if (event.key === "Enter" || event.key === "Escape") naming.value = null;
          }}
        />
      )}
    </span>
  );
}

function runCells(): Cells {
  const names = ["run", ...columns.value];
  return [
    names.map((one) => one.replace(/^--/, "")),
    ...fitting.value.map((one) =>
      names.map((name) => {
        if (name === "started") return moment(one.started);
        if (name === "loss") return one.loss === null ? null : num(one.loss);
        const told = cellOf(one, name);
        return typeof told === "boolean" ? String(told) : told;
      }),
    ),
  ];
}

/** Nothing here yet: how a run is made, and one to look at meanwhile. */
function Nothing() {
  const open = connection.value.link === "open";
  return (
    <div class="empty" style={{ margin: "24px auto" }}>
      <h2>{t("empty.title")}</h2>
      <p>{t("empty.text", { folder: directory.value })}</p>
      <Command text="misstep run python train.py" />
      <p>{t("empty.demo")}</p>
      <Command text="misstep ui --demo" />
      <p class="row">
        <Icon name={open ? "check" : "lost"} tone={open ? "ok" : "error"} />
        {open ? t("empty.listening", { host: location.host }) : t("empty.notListening")}
      </p>
    </div>
  );
}
