// A verdict by shape, colour and word; a cause is starred.

import type { ComparisonColumns } from "../types.gen";
import { Icon, type IconName } from "../ui/icons";
import { told, w } from "./words";

type One = ComparisonColumns["verdict"][number];

const MARKS: Record<One, [IconName, string]> = {
  identical: ["check", "dim"],
  noise: ["ring", "info"],
  different: ["cross", "error"],
  shape: ["diamond", "warning"],
  dtype: ["diamond", "warning"],
  missing: ["minus", "warning"],
};

export function Verdict({ verdict, part }: { verdict: One; part: ComparisonColumns["part"][number] }) {
  const [icon, tone] = MARKS[verdict];
  return (
    <span class="row nowrap verdict">
      <span class={`row nowrap tone-${tone}`} style={{ gap: "4px" }}>
        <Icon name={icon} />
        {told("verdict", verdict)}
      </span>
      {part === "cause" && (
        <span class="row nowrap tone-warning" style={{ gap: "4px" }}>
          <Icon name="star" />
          <b>{w("part.cause")}</b>
        </span>
      )}
      {part === "consequence" && <span class="dim">{w("part.consequence")}</span>}
    </span>
  );
}
