// One row of a comparison: A, B and how they differ, element by element, through the window of the debugger.
import { useSignal, useSignalEffect } from "@preact/signals";
import { Both, MODES } from "../debug/comparetab";
import { type Loaded, lookAtBoth } from "../debug/window";
import { said, t } from "../i18n";
import { change, query } from "../state/route";
import { defaultSlice } from "../tensor/slice";
import type { ComparisonHeader, ComparisonTable } from "../types.gen";
import { noteText } from "./notes";
import { HeldTensor } from "./tensor";
import { parseMoment, things } from "./things";
import { Verdict } from "./verdict";
import { told, w } from "./words";

/** `plain`: nobody asked for a cause, as between two checkpoints. */
export function PairPane({ table, row, plain = false }: { table: ComparisonTable; row: number; plain?: boolean }) {
  const loaded = useSignal<Loaded<ComparisonHeader>>({ state: "idle" });
  const wanted = useSignal({ id: table.id, row, shape: table.rows.shape[row] });
  if (wanted.peek().id !== table.id || wanted.peek().row !== row)
    wanted.value = { id: table.id, row, shape: table.rows.shape[row] };
  useSignalEffect(() => {
    const { id, row: at, shape } = wanted.value;
    const q = query.value;
    if (!comparable(table, at)) return;
    const end = new AbortController();
    if (loaded.peek().state !== "ready") loaded.value = { state: "loading" };
    void lookAtBoth(
      { path: `comparisons/${id}/pair`, query: { row: at } },
      {
        mode: (q.mode as ComparisonHeader["mode"]) ?? "difference",
        atol: Number(q.atol ?? 1e-8),
        rtol: Number(q.rtol ?? 1e-5),
        slice: q.slice || defaultSlice(shape),
      },
      end.signal,
    ).then((answer) => {
      if (!end.signal.aborted) loaded.value = answer;
    });
    return () => end.abort();
  });
  const now = loaded.value;
  const { rows } = table;
  return (
    <div class="column grow tensor-pane" data-test="pair">
      <div class="row wrap tensor-tools">
        <b class="mono cut pair-name" title={rows.left[row] || rows.right[row]}>
          {rows.left[row] || rows.right[row]}
        </b>
        <Verdict verdict={rows.verdict[row]} part={plain ? "" : rows.part[row]} />
        <span class="segments" role="group" aria-label={t("compare.mode")}>
          {MODES.map((one) => (
            <button
              key={one}
              aria-pressed={(query.value.mode ?? "difference") === one}
              onClick={() => change({ mode: one === "difference" ? null : one })}
            >
              {said("mode", one)}
            </button>
          ))}
        </span>
        <label class="field">
          {t("tensor.slice")}
          <input
            class="mono"
            style={{ width: "110px" }}
            value={query.value.slice ?? defaultSlice(rows.shape[row])}
            placeholder=":,:"
            title={t("tensor.sliceHelp")}
            onChange={(event) => change({ slice: event.currentTarget.value.replace(/[[\] ]/g, "") })}
          />
        </label>
        <label class="field">
          rtol
          <input
            class="mono"
            style={{ width: "64px" }}
            value={query.value.rtol ?? "1e-5"}
            onChange={(event) => change({ rtol: event.currentTarget.value })}
          />
        </label>
        <label class="field">
          atol
          <input
            class="mono"
            style={{ width: "64px" }}
            value={query.value.atol ?? "1e-8"}
            onChange={(event) => change({ atol: event.currentTarget.value })}
          />
        </label>
      </div>
      {rows.verdict[row] !== "missing" && (rows.note[row] || rows.source[row]) && (
        <p class="sides">
          {noteText(rows.note[row])}
          {rows.note[row] && rows.source[row] ? " · " : ""}
          <span class="mono">{rows.source[row]}</span>
        </p>
      )}
      {comparable(table, row) ? (
        now.state === "ready" ? (
          <Both pane={now.pane} />
        ) : now.state === "missing" || now.state === "wrong" ? (
          <p class="pad tone-error" role="alert">
            {now.text}
          </p>
        ) : (
          <p class="pad dim">{t("loading")}</p>
        )
      ) : (
        <Alone table={table} row={row} />
      )}
    </div>
  );
}

/** What cannot be laid side by side is shown by itself: the side that has it, or with another shape the one asked for. */
function Alone({ table, row }: { table: ComparisonTable; row: number }) {
  const { rows } = table;
  const names = new Set(things.value.map((one) => one.name));
  const right = !rows.left[row] || (rows.right[row] !== "" && query.value.mode === "b");
  const address = right ? rows.right_address[row] : rows.left_address[row];
  return (
    <>
      <p class="sides">
        {rows.left[row] && rows.right[row]
          ? w("pair.shape")
          : w("pair.alone", { side: told("side", right ? "b" : "a") })}
      </p>
      <HeldTensor of={parseMoment(right ? table.b : table.a, names).name} address={address} />
    </>
  );
}

function comparable(table: ComparisonTable, row: number): boolean {
  const { left, right, verdict } = table.rows;
  return Boolean(left[row] && right[row]) && verdict[row] !== "shape";
}
