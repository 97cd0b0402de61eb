// The watchpoint editor, in place: what to ask, of which tensors, and what to do; with a dry run on what is there now.
import { signal, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { bytes, count, num, seconds } from "../format/number";
import { knows, lang, said, t } from "../i18n";
import { ask } from "../net/api";
import { chosenNode, editing, editorStart } from "../state/debug";
import { edit } from "../state/run";
import type { ConditionView, DryRun, WatchpointView, WatchSpec } from "../types.gen";
import { Icon } from "../ui/icons";

const conditions = signal<ConditionView[]>([]);
const EXPRESSION = "…";
const LARGE_BYTES = 1e9;

export function WatchEditor({ watch }: { watch: WatchpointView | null }) {
  const form = useRef<HTMLFormElement>(null);
  const condition = useSignal(watch?.condition ?? "tensor_overflow");
  const parameters = useSignal<Record<string, number | boolean>>(
    Object.fromEntries(
      Object.entries(watch?.parameters ?? {}).map(([name, value]) => [
        name,
        typeof value === "boolean" ? value : num(value),
      ]),
    ),
  );
  const on = useSignal(watch ? (watch.nodes.length ? watch.nodes : watch.on).join(" ") : (editorStart.value?.on ?? ""));
  const then = useSignal<NonNullable<WatchSpec["then"]>>(watch?.then ?? "pause");
  const limit = useSignal(watch?.limit === null || watch?.limit === undefined ? "" : String(watch.limit));
  const trial = useSignal<DryRun | null>(null);
  const busy = useSignal(false);
  const known = conditions.value.find((one) => one.name === condition.value);
  const isExpression = !known && conditions.value.length > 0;

  useSignalEffect(() => {
    void ask<ConditionView[]>("conditions", { lang: lang.value }).then(
      (answer) => (conditions.value = answer),
      () => {},
    );
  });
  useEffect(() => {
    form.current?.querySelector("select")?.focus();
  }, []);

  const spec = (): WatchSpec => {
    const words = on.value.split(/\s+/).filter(Boolean);
    const explicit = watch !== null && watch.nodes.length > 0 && words.every((word) => watch.nodes.includes(word));
    return {
      condition: condition.value,
      parameters: parameters.value,
      on: explicit ? [] : words,
      nodes: explicit ? words : [],
      then: then.value,
      limit: limit.value ? Number(limit.value) : null,
    };
  };
  const save = async (event: Event): Promise<void> => {
    event.preventDefault();
    busy.value = true;
    const made = await edit(watch ? "update" : "add", { watchpoint: watch?.id ?? null, spec: spec() });
    busy.value = false;
    if (made !== null) editing.value = null;
  };
  const dryRun = async (): Promise<void> => {
    busy.value = true;
    trial.value = (await edit("dry_run", { spec: spec() })) as DryRun | null;
    busy.value = false;
  };

  return (
    <form
      class="watch-editor"
      ref={form}
      onSubmit={(event) => void save(event)}
      onKeyDown={(event) => {
        if (event.key === "Escape") editing.value = null;
      }}
      aria-label={t("watch.editor")}
    >
      <label class="stacked">
        <span>{t("watch.condition")}</span>
        <select
          value={isExpression ? EXPRESSION : condition.value}
          onChange={(event) => {
            condition.value = event.currentTarget.value === EXPRESSION ? "nan > 0" : event.currentTarget.value;
            parameters.value = {};
            trial.value = null;
          }}
        >
          {conditions.value.map((one) => (
            <option key={one.name} value={one.name}>
              {knows("condition", one.name) ? said("condition", one.name) : one.title}
            </option>
          ))}
          <option value={EXPRESSION}>{t("watch.expression")}</option>
        </select>
      </label>
      {isExpression && (
        <input
          class="mono"
          value={condition.value}
          aria-label={t("watch.expression")}
          placeholder="abs_mean > 1e3 and nan == 0"
          onInput={(event) => (condition.value = event.currentTarget.value)}
        />
      )}
      {known && <p class="dim">{known.help}</p>}
      {known?.parameters.map((one) => (
        <label class="field spread" key={one.name}>
          <span class="mono">{one.name}</span>
          {one.type === "flag" ? (
            <input
              type="checkbox"
              checked={Boolean(parameters.value[one.name] ?? one.default)}
              onChange={(event) =>
                (parameters.value = { ...parameters.value, [one.name]: event.currentTarget.checked })
              }
            />
          ) : (
            <input
              class="mono"
              style={{ width: "96px" }}
              inputMode="decimal"
              value={String(parameters.value[one.name] ?? "")}
              placeholder={one.default === null ? t("watch.off") : String(one.default)}
              onInput={(event) => {
                const { [one.name]: _, ...rest } = parameters.value;
                const typed = event.currentTarget.value.trim();
                parameters.value =
                  typed === "" || Number.isNaN(Number(typed)) ? rest : { ...rest, [one.name]: Number(typed) };
              }}
            />
          )}
        </label>
      ))}
      <label class="stacked">
        <span>{t("watch.on")}</span>
        <input
          class="mono"
          value={on.value}
          placeholder={t("watch.onAll")}
          title={t("watch.onHelp")}
          onInput={(event) => (on.value = event.currentTarget.value)}
        />
      </label>
      {chosenNode.value && !on.value && (
        <button type="button" class="plain" onClick={() => (on.value = `${chosenNode.peek()}*`)}>
          <Icon name="target" />
          <span class="cut">{t("watch.onChosen", { node: chosenNode.value })}</span>
        </button>
      )}
      <div class="row wrap">
        <label class="field">
          {t("watch.then")}
          <select
            value={then.value}
            onChange={(event) => (then.value = event.currentTarget.value as typeof then.value)}
          >
            {(["pause", "note", "dump", "stop"] as const).map((one) => (
              <option key={one} value={one}>
                {said("action", one)}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          {t("watch.limit")}
          <input
            type="number"
            min="1"
            value={limit.value}
            placeholder="∞"
            onInput={(event) => (limit.value = event.currentTarget.value)}
          />
        </label>
      </div>
      {trial.value && <Trial trial={trial.value} />}
      <div class="row">
        <button type="submit" class="main" disabled={busy.value} data-test="watch-save">
          {watch ? t("watch.save") : t("watch.addThis")}
        </button>
        <button type="button" disabled={busy.value} onClick={() => void dryRun()} data-test="dry-run">
          {t("watch.dryRun")}
        </button>
        <button type="button" class="plain" onClick={() => (editing.value = null)}>
          {t("cancel")}
        </button>
      </div>
    </form>
  );
}

function Trial({ trial }: { trial: DryRun }) {
  const heavy = trial.bytes_per_step > LARGE_BYTES;
  return (
    <div class={`trial ${trial.hits ? "tone-warning" : "tone-ok"}`} role="status" data-test="trial">
      <b>{t("watch.wouldHit", { hits: count(trial.hits), tensors: count(trial.tensors) })}</b>
      <span class={heavy ? "tone-warning" : "dim"}>
        {t("watch.cost", {
          bytes: bytes(trial.bytes_per_step),
          time: seconds(trial.seconds_per_step),
          memory: bytes(trial.memory_bytes),
        })}
      </span>
      {trial.note && <span class="tone-warning">{trial.note}</span>}
      {trial.examples.slice(0, 3).map((hit) => (
        <span key={hit.address} class="mono cut dim">
          {hit.address} {hit.reason}
        </span>
      ))}
    </div>
  );
}
