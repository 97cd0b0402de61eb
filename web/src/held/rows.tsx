// The pairs in execution order: only the rows in sight exist, the arrow keys walk, the chosen one is kept in sight.
import { num, value } from "../format/number";
import type { ComparisonTable } from "../types.gen";
import { Virtual } from "../ui/virtual";
import { Verdict } from "./verdict";
import { told, w } from "./words";

const ROW = 26;

export function short(of: number | string | null): string {
  if (of === null) return "–";
  const n = num(of as number);
  return n === 0 ? "0" : value(n, 3);
}

export function ulp(of: number | string | null): string {
  if (of === null) return "–";
  const n = num(of as number);
  return n > 2 ** 60 ? "NaN" : n < 1e6 ? String(n) : n.toExponential(1);
}

export function cosine(of: number | string | null): string {
  return of === null ? "–" : typeof of === "number" ? of.toFixed(6) : of;
}

export function share(of: number | string | null): string {
  if (of === null) return "–";
  const n = num(of as number);
  return n === 1 ? "100 %" : n > 0.999 ? ">99.9 %" : `${(100 * n).toFixed(1)} %`;
}

export function PairRows({
  table,
  rows,
  chosen,
  choose,
}: {
  table: ComparisonTable;
  rows: number[];
  chosen: number;
  choose: (row: number) => void;
}) {
  const c = table.rows;
  const at = rows.indexOf(chosen);
  const key = (event: KeyboardEvent): void => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key];
    const next =
      event.key === "Home"
        ? 0
        : event.key === "End"
          ? rows.length - 1
          : by === undefined
            ? -1
            : Math.min(rows.length - 1, Math.max(0, at + by));
    if (next < 0 || !rows.length) return;
    event.preventDefault();
    event.stopPropagation();
    choose(rows[next]);
  };
  const sameNames = c.left.every((name, row) => name === c.right[row] && (c.how[row] === "name" || !c.how[row]));
  return (
    <div
      class={`column grow pairs${sameNames ? " same-names" : ""}`}
      role="table"
      aria-label={w("rows.title")}
      aria-rowcount={rows.length}
    >
      <div class="pair-row pair-head" role="row">
        {["#", "A", "B"].map((one) => (
          <span key={one} role="columnheader" class={one === "#" ? "number" : ""}>
            {one}
          </span>
        ))}
        <span role="columnheader">{w("rows.verdict")}</span>
        {(["relative", "expected", "maxAbs", "maxRel", "cosine", "ulp", "within"] as const).map((one) => (
          <span key={one} role="columnheader" class="number" title={w(`rows.${one}.help`)}>
            {w(`rows.${one}`)}
          </span>
        ))}
      </div>
      <Virtual
        class="scroll grow pair-body"
        role="rowgroup"
        tabIndex={0}
        aria-label={w("rows.title")}
        onKeyDown={key}
        data-test="pairs"
        total={rows.length}
        rowHeight={ROW}
        keep={at}
        row={(index: number) => {
          const row = rows[index];
          return (
            <div
              key={row}
              role="row"
              aria-selected={row === chosen}
              aria-rowindex={index + 1}
              data-row={row}
              data-part={c.part[row]}
              data-verdict={c.verdict[row]}
              class={`pair-row${row === chosen ? " chosen" : ""}${c.part[row] === "cause" ? " cause" : ""}`}
              onClick={() => choose(row)}
            >
              <span role="cell" class="number dim">
                {row + 1}
              </span>
              <span role="cell" class="mono cut" title={`${c.left_address[row] || "–"}  ${c.type[row]}`}>
                {c.left[row] || "–"}
                {c.step[row] !== null && table.a.indexOf("@") < 0 ? <span class="dim">@{c.step[row]}</span> : null}
              </span>
              <span
                role="cell"
                class="cut"
                title={`${c.right_address[row] || "–"}  ${w("rows.how")}: ${told("how", c.how[row] || "none")}`}
              >
                {c.right[row] === c.left[row] ? (
                  <span class="dim">=</span>
                ) : (
                  <span class="mono">{c.right[row] || "–"}</span>
                )}
                {c.how[row] && c.how[row] !== "name" ? (
                  <span class="dim">
                    {" "}
                    · {told("how", c.how[row])}
                    {c.layout[row] ? ` · ${c.layout[row]}` : ""}
                  </span>
                ) : null}
              </span>
              <span role="cell">
                <Verdict verdict={c.verdict[row]} part={c.part[row]} />
              </span>
              <span role="cell" class="number">
                {short(c.relative[row])}
              </span>
              <span role="cell" class="number dim">
                {short(c.expected[row])}
              </span>
              <span role="cell" class="number">
                {short(c.max_abs[row])}
              </span>
              <span role="cell" class="number">
                {short(c.max_rel[row])}
              </span>
              <span role="cell" class="number">
                {cosine(c.cosine[row])}
              </span>
              <span role="cell" class="number">
                {ulp(c.max_ulp[row])}
              </span>
              <span role="cell" class="number">
                {share(c.share_within[row])}
              </span>
            </div>
          );
        }}
      />
    </div>
  );
}
