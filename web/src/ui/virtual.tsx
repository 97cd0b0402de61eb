// A list of any length in which only the rows in sight exist. Rows have one height, so that ten lines are enough.
import { useSignal } from "@preact/signals";
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

export interface VirtualProps {
  total: number;
  rowHeight: number;
  /** Scrolled into sight when it changes; -1 for none. */
  keep: number;
  row: (index: number) => ComponentChildren;
  /** Told when the end comes into sight. */
  ended?: () => void;
  holder?: RefObject<HTMLDivElement | null>;
  [attribute: string]: unknown;
}

/** Which rows of one height are in sight, with a few more on either side: [first, behind the last]. `keep` is scrolled
 * into sight when it changes; `head` pixels at the top are covered by a header that stays. */
export function useInSight(
  element: RefObject<HTMLElement | null>,
  total: number,
  rowHeight: number,
  keep = -1,
  head = 0,
): [number, number] {
  const at = useSignal({ top: 0, height: 600 });
  useEffect(() => {
    const one = element.current;
    if (!one) return;
    const read = (): void => {
      at.value = { top: one.scrollTop, height: one.clientHeight };
    };
    read();
    one.addEventListener("scroll", read, { passive: true });
    const sized = new ResizeObserver(read);
    sized.observe(one);
    return () => {
      one.removeEventListener("scroll", read);
      sized.disconnect();
    };
  }, []);
  useEffect(() => {
    const one = element.current;
    if (!one || keep < 0) return;
    const top = keep * rowHeight;
    const inside = one.clientHeight - head;
    if (top < one.scrollTop) one.scrollTop = Math.max(0, top - rowHeight);
    else if (top + rowHeight > one.scrollTop + inside) one.scrollTop = top - inside + 3 * rowHeight;
  }, [keep, total]);
  const first = Math.max(0, Math.floor(at.value.top / rowHeight) - 6);
  return [Math.min(first, total), Math.min(total, Math.ceil((at.value.top + at.value.height) / rowHeight) + 6)];
}

export function Virtual({ total, rowHeight, keep, row, ended, holder, ...rest }: VirtualProps) {
  const own = useRef<HTMLDivElement>(null);
  const element = holder ?? own;
  const [first, last] = useInSight(element, total, rowHeight, keep);
  useEffect(() => {
    if (last >= total) ended?.();
  }, [last >= total, total]);
  const rows: ComponentChildren[] = [];
  for (let index = first; index < last; index += 1) rows.push(row(index));
  return (
    <div {...rest} ref={element}>
      <div role="presentation" style={{ height: `${total * rowHeight}px`, position: "relative" }}>
        <div
          role="presentation"
          style={{ position: "absolute", top: `${first * rowHeight}px`, left: "0px", right: "0px" }}
        >
          {rows}
        </div>
      </div>
    </div>
  );
}
