// What a run has to tell besides its verdict: silent faults and notes, folded below the card. The sentences
// are those of `misstep show`; a fault without a single hit (weights that never move) would not be seen otherwise.
import { signal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { lang, t } from "../i18n";
import { ask } from "../net/api";
import { detail, graph, hitTotal, runName, state } from "../state/run";
import type { FindingView, RunStory } from "../types.gen";
import { Command } from "../ui/card";
import { Icon, type IconName } from "../ui/icons";

/** The story on the page; null until it came, so that nobody says “nothing was found” too early. */
export const story = signal<{ run: string; told: RunStory } | null>(null);
const ICONS: Record<FindingView["severity"], IconName> = { error: "target", warning: "triangle", info: "diamond" };

export function useStory(): void {
  useSignalEffect(() => {
    const run = runName.value;
    // While training runs nothing is asked: the story is told when it stands still.
    const phase = state.value?.phase;
    if (!run || phase === undefined || phase === "running" || phase === "stepping" || phase === "pausing") return;
    // The graph first: of a large one the hub is busy for seconds, and the story reads the run once more.
    if (!graph.value && detail.value?.graph_rev !== 0) return;
    void state.value?.rev;
    ask<RunStory>(`runs/${encodeURIComponent(run)}/story`, { lang: lang.value }).then(
      (told) => {
        if (runName.peek() === run) story.value = { run, told };
      },
      () => {},
    );
  });
}

export function toldOf(run: string): RunStory | null {
  return story.value?.run === run ? story.value.told : null;
}

export function Found() {
  const told = toldOf(runName.value);
  if (!told || (!told.findings.length && !told.notes.length)) return null;
  const alone = hitTotal.value === 0;
  return (
    <div class="found scroll" role="region" aria-label={t("found.title")} tabIndex={0} data-test="found">
      {told.findings.map((one, at) => (
        <Line
          key={one.rule + at}
          icon={ICONS[one.severity]}
          tone={one.severity}
          title={one.title}
          open={alone && at === 0}
        >
          {one.evidence.map((text) => (
            <p key={text}>{text}</p>
          ))}
          {one.advice && (
            <p>
              <b>{one.advice}</b>
            </p>
          )}
          {one.command && <Command text={one.command} />}
        </Line>
      ))}
      {told.notes.length > 0 && (
        <Line icon="diamond" tone="info" title={told.notes[0]}>
          {told.notes.slice(1).map((text) => (
            <p key={text}>{text}</p>
          ))}
        </Line>
      )}
    </div>
  );
}

function Line({
  icon,
  tone,
  title,
  open = false,
  children,
}: {
  icon: IconName;
  tone: string;
  title: string;
  open?: boolean;
  children?: ComponentChildren;
}) {
  return (
    <details open={open}>
      <summary title={title}>
        <Icon name={icon} tone={tone} />
        <span class="cut">{title}</span>
      </summary>
      <div class="found-more">{children}</div>
    </details>
  );
}
