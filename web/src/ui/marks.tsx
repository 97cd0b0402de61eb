// Small signs used everywhere: a run's state and a hit's severity by shape, colour and word; dtypes; value chips.
import { count, dtype, dtypeColour, percent, shown, value } from "../format/number";
import { said, t } from "../i18n";
import type { HitView, RunBrief, State, StatsView } from "../types.gen";
import { Icon, type IconName } from "./icons";

type Tone = "error" | "warning" | "ok" | "info" | "accent" | "dim";

const PHASES: Record<State["phase"], [IconName, Tone]> = {
  running: ["play", "accent"],
  pausing: ["pause", "warning"],
  paused: ["pause", "warning"],
  stepping: ["step", "accent"],
  terminating: ["stop", "error"],
  detached: ["detach", "dim"],
  ended: ["stop", "dim"],
  lost: ["lost", "error"],
  offline: ["file", "dim"],
};
const STATES: Record<RunBrief["state"], [IconName, Tone]> = {
  starting: ["ring", "accent"],
  running: ["play", "accent"],
  paused: ["pause", "warning"],
  finished: ["check", "ok"],
  failed: ["cross", "error"],
  stopped: ["stop", "dim"],
  lost: ["lost", "error"],
};
const SEVERITIES: Record<HitView["severity"], [IconName, Tone]> = {
  error: ["target", "error"],
  warning: ["triangle", "warning"],
  info: ["diamond", "info"],
};

export function PhaseMark({ phase, text }: { phase: State["phase"]; text?: string }) {
  const [icon, tone] = PHASES[phase];
  return (
    <span class={`pill tone-${tone}`} title={text} data-test="phase">
      <Icon name={icon} />
      <span>{text ?? said("phase", phase)}</span>
    </span>
  );
}

/** How a run is or ended, and what went wrong in it: "finished · NaN at step 19", in the colour of NaN. */
export function StateMark({ brief, step, pill = false }: { brief: RunBrief; step?: number; pill?: boolean }) {
  const live = brief.live && brief.phase !== "offline";
  const [icon, tone] = live ? PHASES[brief.phase] : STATES[brief.state];
  const bad = brief.bad === "nan" ? "NaN" : brief.bad === "inf" ? "Inf" : "";
  const words = live ? said("phase", brief.phase) : said("runState", brief.state);
  const ill = bad && step !== undefined ? t("state.badAt", { kind: bad, step: count(step) }) : bad;
  return (
    <span
      class={`${pill ? "pill" : "row"} nowrap state-mark ${bad ? `tone-${brief.bad}` : `tone-${tone}`}`}
      data-test="state"
    >
      <Icon name={bad && !live ? "target" : icon} />
      <span>{ill ? `${words} · ${ill}` : words}</span>
    </span>
  );
}

export function SeverityMark({ hit }: { hit: HitView }) {
  const [icon, tone] = SEVERITIES[hit.severity];
  return <Icon name={icon} tone={tone} title={said("severity", hit.severity)} />;
}

/** A star only for the verdict: what was put there on purpose, or came later, has none. */
export function BirthMark({ guilty }: { guilty: boolean }) {
  return guilty ? <Icon name="star" tone="warning" title={t("hits.origin")} /> : null;
}

export function Dtype({ name, dims }: { name: string; dims?: readonly number[] }) {
  return (
    <span class="chip dtype" style={{ color: dtypeColour(name) }} title={name}>
      {dtype(name)}
      {dims ? `[${dims.join(",")}]` : ""}
    </span>
  );
}

/** NaN, Inf and zeros of a tensor: counts are exact and never rounded away. */
export function Classes({ stats }: { stats: Pick<StatsView, "nan" | "pos_inf" | "neg_inf" | "zeros" | "count"> }) {
  return (
    <>
      {stats.nan > 0 && <span class="chip nan">NaN ×{count(stats.nan)}</span>}
      {stats.pos_inf > 0 && <span class="chip inf">+Inf ×{count(stats.pos_inf)}</span>}
      {stats.neg_inf > 0 && <span class="chip inf">-Inf ×{count(stats.neg_inf)}</span>}
      {stats.zeros > 0 && (
        <span class="chip dim" title={`${count(stats.zeros)} / ${count(stats.count)}`}>
          0: {percent(stats.zeros, stats.count)}
        </span>
      )}
    </>
  );
}

export function Measure({ name, of }: { name: string; of: StatsView["min"] | number }) {
  return (
    <span class="nowrap">
      <span class="dim">{name}</span> <b class="mono">{typeof of === "number" ? value(of) : shown(of)}</b>
    </span>
  );
}
