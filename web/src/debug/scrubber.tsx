// Time below the graph: the operators of a step in the order they ran, or a statistic over the steps. Dragged or played,
// the graph lights up as values flow, and a NaN is seen being born and spreading.
import { signal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { expose } from "../base";
import { middle } from "../format/address";
import { count, num } from "../format/number";
import { said, t } from "../i18n";
import { ask } from "../net/api";
import { chooseNode, chosenItem, tensor } from "../state/debug";
import { flow } from "../state/flow";
import { colour, look } from "../state/prefs";
import { remember, remembered } from "../state/remembered";
import { change, query } from "../state/route";
import { detail, graph, isLive, rank, runName, shownStep, standing, state } from "../state/run";
import { verdict } from "../state/verdict";
import type { ScalarSeries, StatsHistory, StepTable } from "../types.gen";
import { Icon } from "../ui/icons";
import { StepWalker } from "./control";
import { bins, PHASES, type Timeline, timeline, times } from "./timeline";

const COLUMNS = "nan,pos_inf,neg_inf,abs_mean";
const STATS = ["abs_mean", "max", "min", "std", "l2", "nan"] as const;
const FOLLOW_MS = 350;
const LAST_SECONDS = 7;
const HEIGHT = 58;
const TRACK = 8;

const line = signal<Timeline | null>(null);
const series = signal<{ steps: number[]; values: number[]; name: string } | null>(null);
const playing = signal(false);
const hidden = signal<boolean>(remembered("scrubber.hidden", false));
let known: { made: Float64Array; bad: Float64Array } | null = null;
let followed = 0;

export function Scrubber() {
  const bySteps = query.value.time === "steps";
  useTable();
  useSeries();
  usePlaying();
  return (
    <section class={`scrubber${hidden.value ? " folded" : ""}`} aria-label={t("time.title")} data-test="scrubber">
      <header class="row">
        <button
          class="main"
          disabled={bySteps || !line.value?.moments.length}
          aria-label={t(playing.value ? "time.pause" : "time.play")}
          title={`${t(playing.value ? "time.pause" : "time.play")} (Space)`}
          onClick={toggle}
          data-test="time-play"
        >
          <Icon name={playing.value ? "pause" : "play"} />
        </button>
        <button aria-label={t("time.back")} title={t("time.back")} onClick={() => move(-1)}>
          <Icon name="left" />
        </button>
        <button aria-label={t("time.forward")} title={t("time.forward")} onClick={() => move(1)}>
          <Icon name="right" />
        </button>
        <StepWalker />
        <span class="segments" role="group" aria-label={t("time.title")}>
          <button aria-pressed={!bySteps} onClick={() => change({ time: null })}>
            {t("time.operators")}
          </button>
          <button aria-pressed={bySteps} onClick={() => change({ time: "steps" })} data-test="time-steps">
            {t("time.steps")}
          </button>
        </span>
        {bySteps ? <StatPicker /> : <Counts />}
        <span class="grow" />
        {flow.value && !bySteps && (
          <button onClick={stop} data-test="time-stop">
            {t("time.whole")}
          </button>
        )}
        <span class="dim wide-only">{t(bySteps ? "time.hintSteps" : "time.hint")}</span>
        <button
          class="plain"
          aria-expanded={!hidden.value}
          aria-label={t(hidden.value ? "verdict.more" : "verdict.less")}
          onClick={() => {
            hidden.value = !hidden.peek();
            remember("scrubber.hidden", hidden.peek());
          }}
        >
          <Icon name={hidden.value ? "up" : "down"} />
        </button>
      </header>
      {!hidden.value && (bySteps ? <Steps /> : <Operators />)}
    </section>
  );
}

function Counts() {
  const now = line.value;
  if (!now) return null;
  return (
    <span class="row time-legend">
      {PHASES.filter((one) => now.counts[one]).map((one) => (
        <span key={one} class="row nowrap" style={{ gap: "4px" }}>
          <i class={`time-swatch ${one}`} />
          {said("crash.phase", one)} {count(now.counts[one])}
        </span>
      ))}
      {now.bad > 0 && (
        <span class="row nowrap" style={{ gap: "4px" }}>
          <i class="time-swatch nan" />
          NaN/Inf {count(now.bad)}
        </span>
      )}
    </span>
  );
}

function StatPicker() {
  return (
    <label class="field">
      <span class="mono cut" style={{ maxWidth: "260px" }}>
        {series.value?.name ?? ""}
      </span>
      <select
        aria-label={t("time.statistic")}
        value={query.value.stat ?? "abs_mean"}
        onChange={(event) => change({ stat: event.currentTarget.value })}
      >
        {STATS.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    </label>
  );
}

/** The rows of the step on show, asked again when it changes. */
function useTable(): void {
  useSignalEffect(() => {
    const model = graph.value;
    const [run, step, which] = [runName.value, shownStep.value, rank.value];
    void state.value?.rev;
    if (!model || !run || query.value.time === "steps") return;
    const end = new AbortController();
    let later: ReturnType<typeof setTimeout> | undefined;
    const fetch = (again: number): void => {
      ask<StepTable>(
        `runs/${encodeURIComponent(run)}/steps/${step}`,
        { rank: which, columns: COLUMNS, of: detail.peek()?.brief.started.toFixed(0) },
        end.signal,
      ).then(
        (table) => {
          const made = timeline(model, table);
          if (line.peek()?.step !== step) stop();
          known = times(model, made);
          line.value = made;
          // A step that has just ended may not be on disk yet.
          const ended = isLive.peek() && (state.peek()?.step ?? 0) >= step;
          if (!made.moments.length && ended && again > 0) later = setTimeout(() => fetch(again - 1), 300);
        },
        () => {},
      );
    };
    fetch(8);
    return () => {
      clearTimeout(later);
      end.abort();
    };
  });
}

/** A statistic of the chosen tensor over the steps; of none, the loss. */
function useSeries(): void {
  useSignalEffect(() => {
    if (query.value.time !== "steps") return;
    const [run, which] = [runName.value, rank.value];
    const address = tensor.value?.address.replace(/@\d+/, "") ?? "";
    const stat = query.value.stat ?? "abs_mean";
    const path = `runs/${encodeURIComponent(run)}`;
    const end = new AbortController();
    const asked = address
      ? ask<StatsHistory>(`${path}/stats`, { address, points: 2000 }, end.signal).then((found) => ({
          steps: [...found.step],
          values: (found.columns[stat] ?? []).map(num),
          name: address,
        }))
      : ask<ScalarSeries[]>(`${path}/scalars`, { tag: "loss", rank: which }, end.signal).then(([loss]) => ({
          steps: [...loss.x],
          values: loss.y.map(num),
          name: t("control.loss"),
        }));
    asked.then(
      (found) => (series.value = found),
      () => {},
    );
    return () => end.abort();
  });
}

function usePlaying(): void {
  useEffect(() => {
    const space = (event: KeyboardEvent): void => {
      const at = event.target as HTMLElement;
      if (event.key !== " " || event.isComposing || at.closest("input, textarea, select, button, a, [role=tree]"))
        return;
      event.preventDefault();
      toggle();
    };
    document.addEventListener("keydown", space);
    expose("scrub", { to, play, stop, line, flow });
    return () => {
      document.removeEventListener("keydown", space);
      stop();
    };
  }, []);
}

function toggle(): void {
  if (playing.peek()) playing.value = false;
  else play();
}

function play(): void {
  const now = line.peek();
  if (!now?.moments.length) return;
  const total = now.moments.length;
  let at = flow.peek()?.at ?? -1;
  if (at >= total - 1) at = -1;
  playing.value = true;
  let before = performance.now();
  const frame = (time: number): void => {
    if (!playing.peek() || line.peek() !== now) return;
    at += ((time - before) / 1000) * Math.max(8, total / LAST_SECONDS);
    before = time;
    to(Math.min(total - 1, at));
    if (at >= total - 1) playing.value = false;
    else requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

/** Light up everything that was made up to here. */
function to(at: number, choose = false): void {
  const now = line.peek();
  if (!now?.moments.length || !known) return;
  const place = Math.max(0, Math.min(now.moments.length - 1, Math.floor(at)));
  const { item } = now.moments[place];
  flow.value = { at: place, ...known, item };
  // The tabs beside follow, but not every frame: each place asks the hub.
  if (choose || performance.now() - followed > FOLLOW_MS) {
    followed = performance.now();
    const model = graph.peek();
    if (model && item !== chosenItem.peek()) chooseNode(model.key[item], { tab: query.peek().tab ?? null }, false);
  }
}

function stop(): void {
  playing.value = false;
  if (flow.peek()) flow.value = null;
}

function move(by: 1 | -1): void {
  if (query.peek().time === "steps") {
    const steps = series.peek()?.steps ?? [];
    const next =
      by > 0 ? steps.find((one) => one > shownStep.peek()) : steps.filter((one) => one < shownStep.peek()).pop();
    if (next !== undefined) change({ step: next });
    return;
  }
  playing.value = false;
  to((flow.peek()?.at ?? guiltyAt()) + by, true);
}

/** Where the verdict is on the line; the beginning when it is elsewhere. */
function guiltyAt(): number {
  const model = graph.peek();
  const item = verdict.peek() && model ? (model.exact(verdict.peek()?.node ?? "") ?? 0) : 0;
  return Math.max(0, line.peek()?.moments.findIndex((one) => one.item === item) ?? 0);
}

function Operators() {
  const canvas = useRef<HTMLCanvasElement>(null);
  const still = useRef<{ of: Timeline | null; w: number; look: string; picture: HTMLCanvasElement | null }>({
    of: null,
    w: 0,
    look: "",
    picture: null,
  });
  const draw = (): void => {
    const at = canvas.current;
    const now = line.peek();
    if (!at || !now) return;
    const w = at.clientWidth;
    if (!w) return;
    const kept = still.current;
    if (kept.of !== now || kept.w !== w || kept.look !== look.peek()) {
      kept.picture = bars(now, w);
      Object.assign(kept, { of: now, w, look: look.peek() });
    }
    overlay(at, kept.picture, now, w);
  };
  useSignalEffect(() => {
    void [line.value, flow.value, look.value, chosenItem.value];
    draw();
  });
  useEffect(() => {
    const sized = new ResizeObserver(draw);
    if (canvas.current) sized.observe(canvas.current);
    return () => sized.disconnect();
  }, []);
  const total = line.value?.moments.length ?? 0;
  if (line.value && !total) {
    const at = state.value;
    const underWay = isLive.value && at?.place && shownStep.value === standing(at);
    return <p class="pad dim">{underWay ? t("time.underWay", { step: shownStep.value }) : t("time.none")}</p>;
  }
  return (
    <canvas
      ref={canvas}
      class="time-canvas"
      style={{ height: `${HEIGHT + TRACK + 20}px` }}
      role="slider"
      tabIndex={0}
      aria-label={t("time.slider")}
      aria-valuemin={1}
      aria-valuemax={Math.max(1, total)}
      aria-valuenow={(flow.value?.at ?? 0) + 1}
      aria-valuetext={flow.value && graph.value ? graph.value.name(flow.value.item) : t("time.wholeStep")}
      data-test="time-line"
      onPointerDown={(event) => drag(event, canvas.current, (share) => to(share * total, true))}
      onKeyDown={(event) => {
        const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -25, PageDown: 25 };
        if (event.key in steps) to((flow.peek()?.at ?? guiltyAt()) + steps[event.key], true);
        else if (event.key === "Home") to(0, true);
        else if (event.key === "End") to(total - 1, true);
        else if (event.key === "Escape") stop();
        else return;
        event.preventDefault();
        event.stopPropagation();
      }}
    />
  );
}

function drag(event: PointerEvent, canvas: HTMLCanvasElement | null, moved: (share: number) => void): void {
  if (!canvas) return;
  playing.value = false;
  canvas.setPointerCapture(event.pointerId);
  const box = canvas.getBoundingClientRect();
  const share = (one: PointerEvent): number => Math.min(1, Math.max(0, (one.clientX - box.left) / box.width));
  moved(share(event));
  const move = (one: PointerEvent): void => moved(share(one));
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", () => canvas.removeEventListener("pointermove", move), { once: true });
}

function tones(): Record<string, string> {
  return {
    forward: colour("s0"),
    loss: colour("s4"),
    backward: colour("s6"),
    optimizer: colour("s2"),
    nan: colour("nan"),
    inf: colour("inf"),
    fg: colour("fg1"),
    bg: colour("bg0"),
    soft: colour("soft"),
  };
}

function bars(now: Timeline, w: number): HTMLCanvasElement {
  const ratio = devicePixelRatio || 1;
  const picture = document.createElement("canvas");
  picture.width = Math.round(w * ratio);
  picture.height = Math.round((HEIGHT + TRACK) * ratio);
  const ctx = picture.getContext("2d");
  if (!ctx) return picture;
  const c = tones();
  ctx.scale(ratio, ratio);
  const shown = bins(now.moments, Math.floor(w / 2));
  const wide = w / shown.length;
  shown.forEach((one, at) => {
    const tall = one.size * (HEIGHT - 6) + 4;
    ctx.fillStyle = one.bad ? c[one.bad] : c[one.phase];
    ctx.fillRect(at * wide, HEIGHT - tall, Math.max(1, wide - (wide > 3 ? 1 : 0.4)), tall);
  });
  // One band a phase: a step that goes forward twice has its bands in turn.
  shown.forEach((one, at) => {
    ctx.fillStyle = c[one.phase];
    ctx.fillRect(at * wide, HEIGHT + 4, wide + 0.5, 3);
  });
  return picture;
}

function overlay(canvas: HTMLCanvasElement, picture: HTMLCanvasElement | null, now: Timeline, w: number): void {
  const ratio = devicePixelRatio || 1;
  const tall = HEIGHT + TRACK + 20;
  if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(tall * ratio)) {
    canvas.width = Math.round(w * ratio);
    canvas.height = Math.round(tall * ratio);
  }
  const ctx = canvas.getContext("2d");
  if (!ctx) return;
  const c = tones();
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.clearRect(0, 0, w, tall);
  if (picture) ctx.drawImage(picture, 0, 0, w, HEIGHT + TRACK);
  const of = flow.peek();
  const total = now.moments.length;
  if (of) {
    ctx.globalAlpha = 0.72;
    ctx.fillStyle = c.bg;
    const x = ((of.at + 1) / total) * w;
    ctx.fillRect(x, 0, w - x, HEIGHT);
    ctx.globalAlpha = 1;
  }
  const chosen = of ? of.at : now.moments.findIndex((one) => one.item === chosenItem.peek());
  const model = graph.peek();
  if (chosen < 0 || !model) return;
  const x = ((chosen + 0.5) / total) * w;
  ctx.fillStyle = c.fg;
  ctx.fillRect(x - 1, 0, 2, HEIGHT + TRACK);
  const text = `${middle(model.name(now.moments[chosen].item), 40)} · ${chosen + 1}`;
  ctx.font = '600 11px ui-monospace, "DejaVu Sans Mono", monospace';
  const wide = ctx.measureText(text).width + 12;
  const left = Math.min(w - wide, Math.max(0, x - wide / 2));
  ctx.beginPath();
  ctx.roundRect(left, HEIGHT + TRACK + 1, wide, 17, 4);
  ctx.fill();
  ctx.fillStyle = c.bg;
  ctx.textBaseline = "middle";
  ctx.fillText(text, left + 6, HEIGHT + TRACK + 10);
}

/** A statistic over the steps; a click or a drag shows that step. */
function Steps() {
  const canvas = useRef<HTMLCanvasElement>(null);
  const draw = (): void => {
    const at = canvas.current;
    if (at && series.peek()) curve(at, series.peek() as NonNullable<typeof series.value>, shownStep.peek());
  };
  useSignalEffect(() => {
    void [series.value, shownStep.value, look.value];
    draw();
  });
  useEffect(() => {
    const sized = new ResizeObserver(draw);
    if (canvas.current) sized.observe(canvas.current);
    return () => sized.disconnect();
  }, []);
  const steps = series.value?.steps ?? [];
  return (
    <canvas
      ref={canvas}
      class="time-canvas"
      style={{ height: `${HEIGHT + TRACK + 20}px` }}
      role="slider"
      tabIndex={0}
      aria-label={t("time.sliderSteps")}
      aria-valuemin={steps[0] ?? 0}
      aria-valuemax={steps[steps.length - 1] ?? 0}
      aria-valuenow={shownStep.value}
      data-test="time-curve"
      onPointerDown={(event) =>
        drag(event, canvas.current, (share) => {
          const step = steps[Math.min(steps.length - 1, Math.floor(share * steps.length))];
          if (step !== undefined && step !== shownStep.peek()) change({ step });
        })
      }
      onKeyDown={(event) => {
        if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
        move(event.key === "ArrowLeft" ? -1 : 1);
        event.preventDefault();
        event.stopPropagation();
      }}
    />
  );
}

function curve(canvas: HTMLCanvasElement, of: { steps: number[]; values: number[] }, step: number): void {
  const ratio = devicePixelRatio || 1;
  const w = canvas.clientWidth;
  const tall = HEIGHT + TRACK + 20;
  canvas.width = Math.round(w * ratio);
  canvas.height = Math.round(tall * ratio);
  const ctx = canvas.getContext("2d");
  if (!ctx || !of.steps.length) return;
  const c = tones();
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  const finite = of.values.filter(Number.isFinite);
  const low = Math.min(...finite);
  const high = Math.max(...finite);
  const wide = w / of.steps.length;
  of.values.forEach((value, at) => {
    const bad = !Number.isFinite(value);
    const share = bad ? 1 : (value - low) / Math.max(high - low, 1e-12);
    const bar = 4 + share * (HEIGHT - 8);
    ctx.fillStyle = bad ? c.nan : c.forward;
    ctx.fillRect(at * wide, HEIGHT - bar, Math.max(1, wide - (wide > 3 ? 1 : 0)), bar);
  });
  const place = of.steps.indexOf(step);
  if (place < 0) return;
  const x = (place + 0.5) * wide;
  ctx.fillStyle = c.fg;
  ctx.fillRect(x - 1, 0, 2, HEIGHT + TRACK);
  const text = `${t("step")} ${count(step)}`;
  ctx.font = '600 11px ui-monospace, "DejaVu Sans Mono", monospace';
  const label = ctx.measureText(text).width;
  ctx.fillText(text, Math.min(w - label, Math.max(0, x - label / 2)), HEIGHT + TRACK + 12);
}
