// The answer at the top of the debugger: what went wrong, what speaks for it, the line of code, and what to do next.
import { signal } from "@preact/signals";
import { api } from "../base";
import { count } from "../format/number";
import { lang, said, t } from "../i18n";
import { keyOf } from "../state/debug";
import { remember, remembered } from "../state/remembered";
import { change, currentLink, link } from "../state/route";
import { detail, rank, runName, shownStep, state } from "../state/run";
import { verdict, verdictKnown } from "../state/verdict";
import type { VerdictView } from "../types.gen";
import { Card, Skeleton } from "../ui/card";
import { Icon } from "../ui/icons";
import { toldOf } from "./found";
import { copy } from "./nodemenu";

const small = signal<boolean>(remembered("card.small", false));

/** "NaN born in blocks.3/log": the words, with the place set apart. */
export function headline(of: VerdictView): { before: string; place: string; after: string } {
  const ranks = detail.value?.brief.world_size ?? 1;
  const where = [
    t("verdict.step", { step: count(of.step) }),
    of.phase ? said("crash.phase", of.phase) : "",
    ranks > 1 ? t("verdict.rank", { rank: of.rank }) : "",
  ].filter(Boolean);
  const tail = where.join(t("verdict.comma"));
  if (of.kind === "exception") return { before: of.title, place: of.node, after: tail };
  const kind = of.kind === "nan" ? "NaN" : "Inf";
  const words = t(of.phase === "input" ? "verdict.given" : "verdict.born", { kind, place: "\u0000" }).split("\u0000");
  return { before: words[0], place: of.node, after: `${words[1] ?? ""}${t("verdict.dash")}${tail}` };
}

export function VerdictCard() {
  const of = verdict.value;
  if (!verdictKnown.value)
    return state.value && state.value.phase !== "offline" && state.value.step === 0 ? null : (
      <div class="answer answer-dim waiting" data-test="verdict-waits">
        <Skeleton rows={2} />
      </div>
    );
  if (!of) return <Healthy />;
  const { before, place, after } = headline(of);
  const folded = small.value;
  const title = (
    <>
      {before}
      {of.kind === "exception" && place ? " · " : ""}
      {place && <code>{place}</code>}
      {of.kind === "exception" ? ` · ${after}` : after}
    </>
  );
  return (
    <Card tone={of.kind === "exception" ? "error" : of.kind} title={title} actions={<Actions of={of} />} test="verdict">
      {!folded && of.evidence.length > 0 && <p class="answer-evidence">{of.evidence.join(" · ")}</p>}
      {!folded && (of.source || of.samples.length > 0) && (
        <div class="row wrap">
          {of.source && <CodeLine of={of} />}
          {of.samples.length > 0 && (
            <span class="chip" data-test="samples">
              {t("verdict.samples", { list: of.samples.slice(0, 8).join(", ") })}
            </span>
          )}
        </div>
      )}
    </Card>
  );
}

/** The line that did it, its operator set apart. */
function CodeLine({ of }: { of: VerdictView }) {
  const { source } = of;
  if (!source) return null;
  const name = (of.op || of.node).split(/[./]/).pop()?.replace(/_\d+$/, "") ?? "";
  const at = name.length > 1 ? source.code.search(new RegExp(`\\b${name.replace(/\W/g, "")}\\b`)) : -1;
  return (
    <button class="code-line-button" title={`${source.file}:${source.line}`} onClick={() => goTo(of, "source")}>
      <span class="dim">
        {source.file.split("/").pop()}:{source.line}
      </span>
      <code>
        {at < 0 ? (
          source.code
        ) : (
          <>
            {source.code.slice(0, at)}
            <b>{source.code.slice(at, at + name.length)}</b>
            {source.code.slice(at + name.length)}
          </>
        )}
      </code>
    </button>
  );
}

/** To the place of the verdict, whatever was looked at before. */
export function goTo(of: VerdictView, tab: string | null = "tensor", push = true): void {
  const to = { step: of.step, rank: of.rank === rank.peek() && !of.rank ? null : of.rank, tab };
  if (of.node) change({ node: keyOf(of.node), slot: of.slot || null, slice: null, hit: null, ...to }, push);
  else change({ step: of.step }, push);
}

function Actions({ of }: { of: VerdictView }) {
  const away = shownStep.value !== of.step || rank.value !== of.rank;
  return (
    <>
      {of.node && (
        <button class={away ? "main" : ""} onClick={() => goTo(of)} data-test="go-to-node">
          <Icon name="star" />
          {t("verdict.go")}
        </button>
      )}
      {of.kind === "exception" ? (
        <a class="button" href={link(["runs", runName.value, "crash"])} data-test="to-record">
          <Icon name="crash" />
          {t("banner.openRecord")}
        </a>
      ) : (
        <button onClick={() => goTo(of, "source")} data-test="to-source">
          <Icon name="file" />
          {t("verdict.source")}
        </button>
      )}
      {of.command && (
        <button title={of.command} onClick={() => void copy(of.command)} data-test="replay">
          <Icon name="refresh" />
          {t("verdict.replay")}
        </button>
      )}
      <button onClick={() => void copy(report(of))} data-test="copy-report">
        <Icon name="copy" />
        {t("verdict.report")}
      </button>
      <a
        class="button"
        download
        title={t("verdict.saveHelp")}
        href={api(`runs/${encodeURIComponent(runName.value)}/report`, { lang: lang.value })}
        data-test="save-report"
      >
        <Icon name="download" />
        <span class="hidden-visually">{t("verdict.saveHelp")}</span>
      </a>
      <button
        class="plain"
        aria-expanded={!small.value}
        title={t(small.value ? "verdict.more" : "verdict.less")}
        onClick={() => {
          small.value = !small.peek();
          remember("card.small", small.peek());
        }}
      >
        <Icon name={small.value ? "down" : "up"} />
        <span class="hidden-visually">{t(small.value ? "verdict.more" : "verdict.less")}</span>
      </button>
    </>
  );
}

/** What is pasted into a chat or an issue: everything on the card, and the link. */
export function report(of: VerdictView): string {
  const { before, place, after } = headline(of);
  const lines = [
    `${runName.peek()}: ${before}${place}${of.kind === "exception" ? " " : ""}${after}`,
    ...of.evidence.map((text) => `  ${text}`),
    of.source ? `  ${of.source.file}:${of.source.line}  ${of.source.code}` : "",
    of.samples.length ? `  ${t("verdict.samples", { list: of.samples.join(", ") })}` : "",
    of.command ? `  $ ${of.command}` : "",
    currentLink(),
  ];
  return lines.filter(Boolean).join("\n");
}

/** A run that is over and of which nothing bad can be told. */
function Healthy() {
  const story = toldOf(runName.value);
  if (!story?.clean || story.findings.length || detail.value?.brief.state !== "finished") return null;
  return <Card tone="ok" title={t("verdict.healthy", { n: count(detail.value.last_step) })} test="healthy" />;
}
