// Two dumps, runs, ranks or checkpoints side by side: opened at the cause, every pair in execution order, the map, the
// graph coloured by error, and the chosen pair element by element.
import { useComputed, useSignalEffect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import "../styles/held.css";
import { copy } from "../debug/nodemenu";
import { count, seconds } from "../format/number";
import { ErrorGraph } from "../held/errorgraph";
import { Worker } from "../held/job";
import { editing, MapEditor } from "../held/mapeditor";
import { PairPane } from "../held/pair";
import { MomentPicker } from "../held/picker";
import { Progress } from "../held/progress";
import { PairRows, short } from "../held/rows";
import { fetchThings, things, thingsKnown } from "../held/things";
import { told, w } from "../held/words";
import { t } from "../i18n";
import { change, currentLink, query } from "../state/route";
import type { ComparisonTable, Unmatched } from "../types.gen";
import { Icon } from "../ui/icons";
import { Splitter, size } from "../ui/splitter";

const worker = new Worker<ComparisonTable>("comparisons");
const below = size("held.below", 320, 140, 800);
const side = size("held.side", 400, 260, 900);
const FILTERS = ["all", "differs", "causes"] as const;
const TABS = ["graph", "map", "unmatched"] as const;
let asked = "";

function start(force = false): void {
  const { a, b, map } = query.peek();
  const question = JSON.stringify([a, b, map]);
  if (!a || !b) {
    asked = "";
    worker.reset();
  } else if (force || question !== asked) {
    asked = question;
    void worker.start({ a, b, map: map ?? "" });
  }
}

/** The name of a row in a link: the tensor's own address on the left, else on the right. */
export function rowName(table: ComparisonTable, row: number): string {
  return table.rows.left_address[row] || table.rows.right_address[row];
}

/** The row a link names; without one the cause, else the first difference. */
export function rowOf(table: ComparisonTable, name: string): number {
  const at = name ? table.rows.left_address.indexOf(name) : -1;
  if (at >= 0) return at;
  const right = name ? table.rows.right_address.indexOf(name) : -1;
  return right >= 0 ? right : table.cause >= 0 ? table.cause : table.first;
}

export function ComparisonPage() {
  useEffect(() => void fetchThings(), []);
  useSignalEffect(() => {
    void [query.value.a, query.value.b, query.value.map];
    start();
  });
  const { a = "", b = "", only = "all" } = query.value;
  const work = worker.work.value;
  const table = work.state === "ready" ? work.answer : null;
  const chosen = table ? rowOf(table, query.value.row ?? "") : -1;
  const rows = useComputed(() =>
    worker.work.value.state === "ready"
      ? shownRows(
          (worker.work.value as { answer: ComparisonTable }).answer,
          query.value.only ?? "all",
          query.value.q ?? "",
        )
      : [],
  );
  const choose = (row: number): void => {
    if (table) change({ row: rowName(table, row), slice: null });
  };
  const tab = TABS.find((one) => one === query.value.tab) ?? "graph";
  return (
    <div class="column grow held" data-test="comparison">
      <div class="tools row wrap">
        <MomentPicker
          label="A"
          value={a}
          choose={(text) => change({ a: text, row: null, slice: null, open: null, cam: null }, true)}
        />
        <button
          class="plain"
          title={w("compare.swap")}
          onClick={() => change({ a: b, b: a, row: null, map: null, open: null, cam: null }, true)}
        >
          ⇄<span class="hidden-visually">{w("compare.swap")}</span>
        </button>
        <MomentPicker
          label="B"
          value={b}
          choose={(text) => change({ b: text, row: null, slice: null, open: null, cam: null }, true)}
        />
        {table && (
          <label class="search held-search">
            <Icon name="search" />
            <input
              id="run-search"
              value={query.value.q ?? ""}
              placeholder={w("compare.search")}
              aria-label={w("compare.search")}
              onInput={(event) => change({ q: event.currentTarget.value })}
            />
          </label>
        )}
        {table && (
          <span class="segments" role="group" aria-label={w("compare.only")}>
            {FILTERS.map((one) => (
              <button
                key={one}
                aria-pressed={only === one}
                onClick={() => change({ only: one === "all" ? null : one })}
              >
                {told("only", one)} <span class="dim">{count(shownRows(table, one, "").length)}</span>
              </button>
            ))}
          </span>
        )}
        <span class="grow" />
        <button class="plain" title={t("copyLink")} onClick={() => void copy(currentLink())}>
          <Icon name="link" />
          <span class="hidden-visually">{t("copyLink")}</span>
        </button>
      </div>
      {a && b && <Progress worker={worker} again={() => start(true)} />}
      {(!a || !b) && <Nothing />}
      {table && <Summary table={table} choose={choose} />}
      {table && (
        <div class="row grow panes">
          <div class="column grow">
            <PairRows table={table} rows={rows.value} chosen={chosen} choose={choose} />
            <Splitter of={below} way="h" grows={-1} label={t("split.below")} />
            <div class="column panel" style={{ height: `${below.value.value}px`, flex: "none" }}>
              {chosen >= 0 ? (
                <PairPane table={table} row={chosen} />
              ) : (
                <div class="empty">
                  <p>{w("compare.chooseRow")}</p>
                </div>
              )}
            </div>
          </div>
          <Splitter of={side} way="v" grows={-1} label={w("compare.sideWidth")} />
          <div class="column compare-side" style={{ width: `${side.value.value}px`, flex: "none" }}>
            <div class="tabs side-tabs">
              <div role="tablist" class="row" aria-label={w("compare.side")}>
                {TABS.map((one) => (
                  <button
                    key={one}
                    role="tab"
                    id={`side-${one}`}
                    aria-selected={tab === one}
                    aria-controls="side-panel"
                    class="plain"
                    onClick={() => change({ tab: one === "graph" ? null : one })}
                  >
                    {told("sideTab", one)}
                    {one === "unmatched" ? ` ${count(table.only_left.length + table.only_right.length)}` : ""}
                  </button>
                ))}
              </div>
              <span class="grow" />
              {chosen >= 0 && (
                <button
                  class="plain"
                  data-test="edit-pair"
                  title={w("map.editHelp")}
                  onClick={() => {
                    editing.value = { left: table.rows.left_node[chosen], right: table.rows.right_node[chosen] };
                    change({ tab: "map" });
                  }}
                >
                  {w("map.edit")}
                </button>
              )}
            </div>
            <div id="side-panel" role="tabpanel" aria-labelledby={`side-${tab}`} class="column grow">
              {tab === "graph" ? (
                <ErrorGraph table={table} row={chosen} choose={choose} />
              ) : tab === "map" ? (
                <MapEditor table={table} />
              ) : (
                <LeftOver table={table} />
              )}
            </div>
          </div>
        </div>
      )}
      {!table && tab === "map" && a && b && <MapEditor table={null} />}
    </div>
  );
}

function shownRows(table: ComparisonTable, only: string, words: string): number[] {
  const all = table.rows.verdict.map((_, row) => row);
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const { verdict, part, left, right, type } = table.rows;
  return all.filter(
    (row) =>
      (only === "causes"
        ? part[row] === "cause"
        : only === "differs"
          ? verdict[row] !== "identical" && verdict[row] !== "noise"
          : true) &&
      wanted.every((word) => `${left[row]} ${right[row]} ${type[row]} ${verdict[row]}`.toLowerCase().includes(word)),
  );
}

function Summary({ table, choose }: { table: ComparisonTable; choose: (row: number) => void }) {
  const { counts, rows } = table;
  const paired = rows.verdict.filter((one) => one !== "missing").length;
  const same = (counts.identical ?? 0) + (counts.noise ?? 0);
  const at = table.cause >= 0 ? table.cause : table.first;
  const after = rows.part.filter((one) => one === "consequence").length;
  return (
    <div class="row wrap summary" data-test="summary">
      <span class={`pill ${table.close ? "tone-ok" : "tone-error"}`}>
        <Icon name={table.close ? "check" : "cross"} />
        <span>{w("summary.match", { close: count(same), total: count(paired) })}</span>
      </span>
      <span class="dim">
        {w("summary.how", { identical: count(counts.identical ?? 0), noise: count(counts.noise ?? 0) })}
      </span>
      {at >= 0 && (
        <button class="plain cause-link" onClick={() => choose(at)} data-test="to-cause">
          <Icon name="star" tone="warning" />
          <span>
            {w(table.cause >= 0 ? "summary.cause" : "summary.first")}{" "}
            <b class="mono">{rows.left[at] || rows.right[at]}</b>
            {rows.relative[at] !== null && (
              <> {w("summary.far", { relative: short(rows.relative[at]), expected: short(rows.expected[at]) })}</>
            )}
          </span>
        </button>
      )}
      {(counts.missing ?? 0) > 0 && (
        <span class="tone-warning">{w("summary.missing", { n: count(counts.missing) })}</span>
      )}
      {after > 0 && <span class="dim">{w("summary.consequences", { n: count(after) })}</span>}
      {table.dtypes.length === 2 && (
        <span class="chip">{w("summary.dtypes", { a: table.dtypes[0], b: table.dtypes[1] })}</span>
      )}
      {table.notes.length > 0 && (
        <span class="chip tone-warning" title={table.notes.slice(0, 5).join("\n")}>
          {w("summary.unreadable", { n: count(table.notes.length) })}
        </span>
      )}
      <span class="grow" />
      <span class="dim mono">{seconds(table.seconds)}</span>
      <button class="plain" title={table.summary} onClick={() => void copy(table.summary)}>
        <Icon name="copy" />
        <span class="hidden-visually">{w("summary.copy")}</span>
      </button>
    </div>
  );
}

function LeftOver({ table }: { table: ComparisonTable }) {
  const list = (which: "a" | "b", all: Unmatched[]) => (
    <section class="column gap" style={{ flex: "none" }}>
      <h2>
        {w("unmatched.only", { side: told("side", which) })} <span class="dim">{count(all.length)}</span>
      </h2>
      {all.length === 0 ? (
        <p class="dim">{w("unmatched.none")}</p>
      ) : (
        <table data-test={`only-${which}`}>
          <tbody>
            {all.slice(0, 500).map((one) => (
              <tr key={one.address}>
                <td class="mono wrap-anywhere" title={one.type}>
                  {one.name}
                </td>
                <td class="mono dim">[{one.shape.join(",")}]</td>
                <td class="right">
                  <button
                    class="plain"
                    onClick={() => {
                      editing.value = which === "a" ? { left: one.node, right: "" } : { left: "", right: one.node };
                      change({ tab: "map" });
                    }}
                  >
                    {w("map.edit")}
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
  return (
    <div class="scroll grow pad column gap panel">
      {list("a", table.only_left)}
      {list("b", table.only_right)}
    </div>
  );
}

function Nothing() {
  if (!thingsKnown.value)
    return (
      <div class="empty">
        <p>{t("loading")}</p>
      </div>
    );
  const kept = things.value.length;
  return (
    <div class="empty" data-test="nothing">
      <h2>{w("compare.title")}</h2>
      <p>{kept > 1 ? w("compare.choose") : w("compare.none")}</p>
      <pre>
        {
          "misstep run --name torch --dump '*@0:1' python train_torch.py\nmisstep run --name other --dump '*@0:1' python train_other.py"
        }
      </pre>
      <p>{w("compare.elsewhere")}</p>
      <pre>misstep ui model.ckpt dumps/rank_0</pre>
    </div>
  );
}
