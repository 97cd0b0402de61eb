// The line between two panels: dragged, moved with the arrow keys, and remembered by this browser.
import { type Signal, signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { remember, remembered } from "../state/remembered";

export interface Size {
  name: string;
  value: Signal<number>;
  least: number;
  most: number;
}

const SIZES = new Map<string, Size>();

export function size(name: string, start: number, least: number, most: number): Size {
  const known = SIZES.get(name);
  if (known) return known;
  const made = { name, value: signal(clamp(remembered(`size.${name}`, start), least, most)), least, most };
  SIZES.set(name, made);
  return made;
}

function clamp(n: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, n));
}

/** `grows`: which way the pointer moves when the measured panel becomes larger. */
export function Splitter({ of, way, grows = 1, label }: { of: Size; way: "v" | "h"; grows?: 1 | -1; label: string }) {
  const bar = useRef<HTMLDivElement>(null);
  const set = (next: number): void => {
    of.value.value = clamp(next, of.least, of.most);
    remember(`size.${of.name}`, of.value.peek());
  };
  const down = (event: PointerEvent): void => {
    const from = way === "v" ? event.clientX : event.clientY;
    const before = of.value.peek();
    const element = bar.current;
    if (!element) return;
    element.setPointerCapture(event.pointerId);
    element.classList.add("moving");
    const move = (now: PointerEvent): void => set(before + grows * ((way === "v" ? now.clientX : now.clientY) - from));
    const up = (): void => {
      element.classList.remove("moving");
      element.removeEventListener("pointermove", move);
    };
    element.addEventListener("pointermove", move);
    element.addEventListener("pointerup", up, { once: true });
    event.preventDefault();
  };
  const key = (event: KeyboardEvent): void => {
    const steps: Record<string, number> =
      way === "v" ? { ArrowLeft: -16, ArrowRight: 16 } : { ArrowUp: -16, ArrowDown: 16 };
    if (!(event.key in steps)) return;
    event.preventDefault();
    event.stopPropagation();
    set(of.value.peek() + grows * steps[event.key]);
  };
  return (
    <div
      ref={bar}
      class={`split ${way}`}
      role="separator"
      tabIndex={0}
      aria-label={label}
      aria-orientation={way === "v" ? "vertical" : "horizontal"}
      aria-valuenow={Math.round(of.value.value)}
      aria-valuemin={of.least}
      aria-valuemax={of.most}
      onPointerDown={down}
      onKeyDown={key}
    />
  );
}
