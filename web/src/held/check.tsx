// Watchpoints asked of a dump: a question in words, the hits in the order of time, each a way to its tensor.
import { signal, useSignalEffect } from "@preact/signals";
import { count } from "../format/number";
import { lang, said, t } from "../i18n";
import { change, query } from "../state/route";
import { isMask } from "../state/verdict";
import type { HitList, HitView } from "../types.gen";
import { Icon } from "../ui/icons";
import { BirthMark, Classes, SeverityMark } from "../ui/marks";
import { Worker } from "./job";
import { Progress } from "./progress";
import { w } from "./words";

const worker = new Worker<HitList>("checks");
const typed = signal("");
let asked = "";

export function CheckPanel({ of, step, choose }: { of: string; step: number | null; choose: (hit: HitView) => void }) {
  const start = (): void => {
    const lines = (query.peek().watch ?? "")
      .split(";")
      .map((one) => one.trim())
      .filter(Boolean);
    const here = query.peek().steps === "this" && step !== null;
    asked = JSON.stringify([of, query.peek().watch, query.peek().steps, here ? step : null]);
    void worker.start({
      of,
      watch: lines[0] === "recommended" ? [] : lines,
      first: here ? step : null,
      last: here ? step : null,
      rank: null,
    });
  };
  useSignalEffect(() => {
    const watch = query.value.watch ?? "";
    typed.value = watch === "recommended" ? "" : watch;
    const here = query.value.steps === "this" && step !== null;
    if (!watch) worker.reset();
    else if (JSON.stringify([of, watch, query.value.steps, here ? step : null]) !== asked) start();
  });
  const work = worker.work.value;
  const found = work.state === "ready" ? work.answer : null;
  return (
    <section class="panel grow" aria-label={w("check.title")}>
      <header>
        <h2>{w("check.title")}</h2>
        {found && (
          <span class={`chip ${found.total ? "tone-error" : "tone-ok"}`} data-test="check-count">
            {w("check.hits", { n: count(found.total) })}
          </span>
        )}
        {found && found.origins > 0 && (
          <span class="row tone-warning">
            <Icon name="star" />
            {t("hits.origins", { n: count(found.origins) })}
          </span>
        )}
      </header>
      <form
        class="row wrap check-form"
        onSubmit={(event) => {
          event.preventDefault();
          asked = "";
          change({ watch: typed.peek().trim() || "recommended" }, true);
          if (query.peek().watch === (typed.peek().trim() || "recommended")) start();
        }}
      >
        <input
          class="mono grow"
          list="check-words"
          value={typed.value}
          placeholder={w("check.placeholder")}
          aria-label={w("check.words")}
          data-test="check-words"
          onInput={(event) => (typed.value = event.currentTarget.value)}
        />
        <datalist id="check-words">
          <option value="overflow" />
          <option value="max > 6e4 on *:output" />
          <option value="all_zero" />
          <option value="gradient_vanishing on *:grad" />
        </datalist>
        <select
          aria-label={w("check.steps")}
          value={query.value.steps ?? "all"}
          onChange={(event) => change({ steps: event.currentTarget.value === "all" ? null : "this" })}
        >
          <option value="all">{w("check.allSteps")}</option>
          <option value="this">{w("check.thisStep")}</option>
        </select>
        <button type="submit" class="main" data-test="check-run">
          {w("check.run")}
        </button>
      </form>
      <Progress worker={worker} again={start} />
      <div class="scroll grow" data-test="check-hits" role="region" aria-label={t("hits.title")} tabIndex={0}>
        <div role="presentation">
          {found?.hits.map((hit) => (
            <button
              key={hit.id}
              class="hit-line check-hit"
              onClick={() => choose(hit)}
              title={(lang.value === "zh" && hit.reason_zh) || hit.reason}
            >
              <span class="mark">
                <SeverityMark hit={hit} />
              </span>
              <span class="mark">
                <BirthMark guilty={hit.birth === "origin" && !isMask(hit)} />
              </span>
              <span class="step">{hit.step}</span>
              <span class="mono cut grow tail">
                <bdi>{hit.address.replace(/@.*$/, "")}</bdi>
              </span>
              <span class="what cut">
                {hit.stats ? <Classes stats={{ ...hit.stats, zeros: 0 }} /> : null}
                <span class="dim"> {said("condition", hit.condition)}</span>
              </span>
            </button>
          ))}
        </div>
        {found && found.hits.length < found.total && (
          <p class="pad dim">{w("check.first", { n: count(found.hits.length) })}</p>
        )}
        {found && !found.total && <p class="pad dim">{w("check.none")}</p>}
        {work.state === "idle" && <p class="pad dim">{w("check.help")}</p>}
      </div>
    </section>
  );
}
