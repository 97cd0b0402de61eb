// A canvas that is drawn again when its data, its size, the theme or the language changes.
import { useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { lang } from "../i18n";
import { look } from "../state/prefs";

export interface Paper {
  context: CanvasRenderingContext2D;
  width: number;
  height: number;
  /** A colour of the theme: ink("fg2"). */
  ink: (name: string) => string;
}

export interface CanvasProps {
  height: number;
  label: string;
  draw: (paper: Paper) => void;
  /** A click at these pixels. */
  pick?: (x: number, y: number, width: number) => void;
  /** A button held down over it, from where to where. */
  drag?: (how: "down" | "move" | "up", x: number, y: number, width: number) => void;
}

export function Canvas({ height, label, draw, pick, drag }: CanvasProps) {
  const element = useRef<HTMLCanvasElement>(null);
  const paint = (): void => {
    const canvas = element.current;
    const context = canvas?.getContext("2d");
    if (!canvas?.clientWidth || !context) return;
    const dense = window.devicePixelRatio || 1;
    const width = canvas.clientWidth;
    canvas.width = width * dense;
    canvas.height = height * dense;
    context.setTransform(dense, 0, 0, dense, 0, 0);
    context.clearRect(0, 0, width, height);
    const style = getComputedStyle(document.documentElement);
    context.font = "11px system-ui, 'Noto Sans CJK SC', sans-serif";
    draw({ context, width, height, ink: (name) => style.getPropertyValue(`--${name}`).trim() });
  };
  useEffect(paint);
  useSignalEffect(() => {
    void look.value;
    void lang.value;
    requestAnimationFrame(paint);
  });
  useEffect(() => {
    const sized = new ResizeObserver(paint);
    if (element.current) sized.observe(element.current);
    return () => sized.disconnect();
  }, [draw]);
  return (
    <canvas
      ref={element}
      role="img"
      aria-label={label}
      style={{ width: "100%", height: `${height}px`, display: "block", cursor: pick ? "pointer" : undefined }}
      {...(drag ? held(drag) : {})}
      onClick={(event) => {
        const box = event.currentTarget.getBoundingClientRect();
        pick?.(event.clientX - box.left, event.clientY - box.top, box.width);
      }}
    />
  );
}

function held(drag: NonNullable<CanvasProps["drag"]>) {
  const tell = (how: "down" | "move" | "up") => (event: PointerEvent) => {
    const canvas = event.currentTarget as HTMLCanvasElement;
    const box = canvas.getBoundingClientRect();
    if (how === "down") canvas.setPointerCapture(event.pointerId);
    drag(how, event.clientX - box.left, event.clientY - box.top, box.width);
  };
  return { onPointerDown: tell("down"), onPointerMove: tell("move"), onPointerUp: tell("up") };
}

export const MARGIN = { left: 58, right: 14, top: 10, bottom: 28 };

/** The frame of a chart with ticks; gives back where 0 to 1 lies. */
export function frame(
  paper: Paper,
  x: { at: number; label: string }[],
  y: { at: number; label: string }[],
): { x: (at: number) => number; y: (at: number) => number } {
  const { context, width, height, ink } = paper;
  const across = (at: number): number => MARGIN.left + at * (width - MARGIN.left - MARGIN.right);
  const up = (at: number): number => height - MARGIN.bottom - at * (height - MARGIN.top - MARGIN.bottom);
  context.strokeStyle = ink("soft");
  context.fillStyle = ink("fg2");
  context.lineWidth = 1;
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const tick of y) {
    context.beginPath();
    context.moveTo(across(0), Math.round(up(tick.at)) + 0.5);
    context.lineTo(across(1), Math.round(up(tick.at)) + 0.5);
    context.stroke();
    context.fillText(tick.label.slice(0, 9), across(0) - 6, up(tick.at));
  }
  context.textAlign = "center";
  context.textBaseline = "top";
  for (const tick of x) context.fillText(tick.label.slice(0, 12), across(tick.at), up(0) + 8);
  return { x: across, y: up };
}
