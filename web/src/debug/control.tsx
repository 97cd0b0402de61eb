// The control bar: where training stands and why, and everything that moves it. Continue and Pause share one place.
import { useSignal } from "@preact/signals";
import { count } from "../format/number";
import { said, t } from "../i18n";
import { chosenItem, chosenNode } from "../state/debug";
import { runs } from "../state/live";
import { change, query } from "../state/route";
import { command, detail, graph, isLive, noControl, rank, runName, shownStep, standing, state } from "../state/run";
import type { State } from "../types.gen";
import { confirmTerminate } from "../ui/dialogs";
import { Icon } from "../ui/icons";
import { runTo } from "./nodemenu";

export function ControlBar() {
  const now = state.value;
  const phase = now?.phase ?? "offline";
  if (!isLive.value) return null;
  return (
    <div class="control" role="toolbar" aria-label={t("control.title")}>
      <span class="hidden-visually" role="status" aria-live="polite">
        {now ? sentence(now) : ""}
      </span>
      <Moves phase={phase} />
      <span class="grow" />
      <Ends />
    </div>
  );
}

/** "Paused at step 24 · watchpoint 2 hit": where and why, in one line. */
export function sentence(now: State): string {
  const where = now.place ? `${now.place.node} (${said("when", now.place.when)})` : "";
  const why = now.reason
    ? said("reason", now.reason.kind, { wp: now.reason.watchpoint ?? "", rank: now.reason.rank ?? "" })
    : "";
  const parts = [
    t("control.at", { phase: said("phase", now.phase), step: standing(now) }),
    where,
    now.phase === "paused" || now.phase === "ended" ? why : "",
  ];
  if (now.goal && now.phase !== "paused") parts.push(t("control.goal", { goal: now.goal }));
  return parts.filter(Boolean).join(" · ");
}

function Moves({ phase }: { phase: State["phase"] }) {
  const steps = useSignal(1);
  const until = useSignal(false);
  const condition = useSignal("loss > 10");
  const off = noControl.value;
  const paused = phase === "paused";
  const chosen = chosenItem.value > 0 && graph.value !== null && graph.value.node[chosenItem.value] >= 0;
  return (
    <>
      {paused || phase === "pausing" ? (
        <button
          class="main"
          disabled={off !== "" || !paused}
          title={off}
          onClick={() => void command("continue")}
          data-test="continue"
        >
          <Icon name="play" />
          <span class="label">{t("control.continue")}</span> <kbd>F8</kbd>
        </button>
      ) : (
        <button disabled={off !== ""} title={off} onClick={() => void command("pause")} data-test="pause">
          <Icon name="pause" />
          <span class="label">{t("control.pause")}</span> <kbd>F8</kbd>
        </button>
      )}
      <button disabled={off !== "" || !paused} title={off} onClick={() => void command("next")} data-test="next">
        <Icon name="next" />
        <span class="label">{t("control.next")}</span> <kbd>F10</kbd>
      </button>
      {state.value?.compiled && (
        <button
          disabled={off !== "" || !paused}
          title={off || t("control.pynativeHelp")}
          onClick={() => void command("pynative")}
          data-test="pynative"
        >
          <Icon name="pynative" />
          <span class="label">{t("control.pynative")}</span>
        </button>
      )}
      <button
        disabled={off !== "" || !chosen}
        title={chosen ? t("control.runToHelp", { node: chosenNode.value }) : t("control.runToNone")}
        onClick={() => graph.value && void runTo(graph.value.key[chosenItem.value])}
        data-test="run-to"
      >
        <Icon name="runTo" />
        <span class="label">{t("control.runTo")}</span>
      </button>
      <span class="together">
        <button
          disabled={off !== "" || !paused}
          title={`${off} F6`}
          onClick={() => void command("step", { count: steps.value })}
          data-test="step"
        >
          <Icon name="step" />
          <span class="label">{t("control.step")}</span>
        </button>
        <input
          type="number"
          id="step-count"
          min="1"
          value={steps.value}
          aria-label={t("control.stepCount")}
          onInput={(event) => (steps.value = Math.max(1, Number(event.currentTarget.value) || 1))}
        />
      </span>
      <span class="together">
        <button disabled={off !== ""} aria-expanded={until.value} onClick={() => (until.value = !until.value)}>
          <Icon name="until" />
          <span class="label">{t("control.until")}</span>
        </button>
        {until.value && (
          <form
            class="row until-form"
            onSubmit={(event) => {
              event.preventDefault();
              until.value = false;
              void command("until", { condition: condition.value });
            }}
          >
            <input
              class="mono"
              style={{ width: "140px" }}
              value={condition.value}
              aria-label={t("control.untilLabel")}
              title={t("control.untilHelp")}
              onInput={(event) => (condition.value = event.currentTarget.value)}
            />
            <button type="submit" aria-label={t("control.untilGo")}>
              <Icon name="play" />
            </button>
          </form>
        )}
      </span>
    </>
  );
}

function Ends() {
  const off = noControl.value;
  return (
    <>
      <button disabled={off !== ""} title={t("control.detachHelp")} onClick={() => void command("detach")}>
        <Icon name="detach" />
        <span class="hidden-visually">{t("control.detach")}</span>
      </button>
      <button class="danger" disabled={off !== ""} onClick={() => confirmTerminate()} data-test="terminate">
        <Icon name="stop" />
        <span class="label">{t("control.terminate")}</span>
      </button>
    </>
  );
}

/** The steps that have statistics, one at a time. */
export function walkSteps(by: 1 | -1): void {
  const now = shownStep.peek();
  const known = detail.peek()?.stats_steps ?? [];
  const at = state.peek();
  const all = [...new Set([...known, at ? standing(at) : now])].sort((a, b) => a - b);
  const next = by > 0 ? all.find((step) => step > now) : all.filter((step) => step < now).pop();
  if (next !== undefined) change({ step: next });
}

/** The step on show, and its neighbours. */
export function StepWalker() {
  const current = state.value ? standing(state.value) : (detail.value?.last_step ?? 0);
  const away = query.value.step !== undefined && Number(query.value.step) !== current;
  return (
    <span class="together" role="group" aria-label={t("control.shownStep")}>
      <button class="plain" title={`${t("control.previousStep")} [`} onClick={() => walkSteps(-1)}>
        <Icon name="left" />
        <span class="hidden-visually">{t("control.previousStep")}</span>
      </button>
      <label class="field">
        {t("step")}
        <input
          type="number"
          min="0"
          value={shownStep.value}
          onChange={(event) => change({ step: event.currentTarget.value })}
        />
      </label>
      <span class="dim mono nowrap">/ {count(Math.max(current, detail.value?.last_step ?? 0, shownStep.value))}</span>
      <button class="plain" title={`${t("control.nextStep")} ]`} onClick={() => walkSteps(1)}>
        <Icon name="right" />
        <span class="hidden-visually">{t("control.nextStep")}</span>
      </button>
      {away && isLive.value && <button onClick={() => change({ step: null })}>{t("control.toNow")}</button>}
    </span>
  );
}

export function RankPicker() {
  const ranks = runs.value.get(runName.value)?.ranks ?? [];
  if (ranks.length < 2) return null;
  return (
    <label class="field">
      {t("rank")}
      <select value={rank.value} onChange={(event) => change({ rank: event.currentTarget.value }, true)}>
        {ranks.map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </select>
    </label>
  );
}
