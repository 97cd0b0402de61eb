// The runs in sight as parallel coordinates: parameters from the left, the loss at the right. What is dragged over an
// axis becomes part of the search, so that the table follows and the link says it.
import { useComputed } from "@preact/signals";
import { type Axis, axisOf, spread } from "../charts/axis";
import { ParallelLines } from "../charts/parallel";
import { count } from "../format/number";
import { said, t } from "../i18n";
import { change, query } from "../state/route";
import { bounded, type Cell, cellOf, isOwn } from "./query";
import { columns, fitting } from "./view";

const MOST_AXES = 8;

/** An axis on which every line meets in one point says nothing. */
function differs(name: string): boolean {
  const given = fitting.value.map((one) => cellOf(one, name)).filter((one) => one !== null);
  return given.some((one) => one !== given[0]);
}

export function RunAxes() {
  const names = useComputed(() => {
    const own = columns.value.filter((one) => one.startsWith("--") && differs(one)).slice(0, MOST_AXES);
    return [...own, "step", "loss"];
  });
  const axes = useComputed<Axis[]>(() =>
    names.value.map((name) => {
      const column = fitting.value.map((one): Cell => {
        const told = cellOf(one, name);
        return typeof told === "number" && !Number.isFinite(told) ? null : told;
      });
      const numbers = column.filter((one): one is number => typeof one === "number");
      const axis = axisOf(name.replace(/^--/, ""), column, numbers.length > 1 && spread(numbers));
      return isOwn(name) ? { ...axis, name: said("column", name) } : axis;
    }),
  );
  const rows = useComputed(() => fitting.value.map((_, at) => at));
  const narrow = (axis: Axis, low: number | null, high: number | null): void => {
    const name = names.value[axes.value.indexOf(axis)]?.replace(/^--/, "");
    if (name) change({ q: bounded(query.peek().q ?? "", name, low, high) }, true);
  };
  return (
    <section class="card run-axes" data-test="axes">
      <div class="row">
        <h2>{t("runs.parallel")}</h2>
        <span class="dim">{t("runs.parallelHelp", { n: count(Math.min(1000, rows.value.length)) })}</span>
      </div>
      <ParallelLines
        axes={axes.value}
        rows={rows.value}
        label={t("runs.parallel")}
        height={240}
        bad={(row) => Boolean(fitting.value[row]?.bad)}
        narrow={narrow}
      />
    </section>
  );
}
