// Two tensors: this one against the step before, another step, another rank or another run. How far apart, and where.
import { useSignal, useSignalEffect } from "@preact/signals";
import { addressText, parseAddress } from "../format/address";
import { count, percent, shown, value } from "../format/number";
import { said, t } from "../i18n";
import { slice, tensorAddress } from "../state/debug";
import { runs } from "../state/live";
import { change, query } from "../state/route";
import { command, edit, isLive, noControl, rank, runName, shownStep, state } from "../state/run";
import { Grid } from "../tensor/grid";
import { Heat } from "../tensor/heat";
import { Legend } from "../tensor/legend";
import type { Scale } from "../tensor/scale";
import { defaultSlice } from "../tensor/slice";
import type { ComparisonHeader } from "../types.gen";
import { Icon } from "../ui/icons";
import { NotHere } from "./tensortab";
import { type Loaded, lookAtBoth, ofRun, type Pane } from "./window";

export const MODES: ComparisonHeader["mode"][] = ["difference", "relative", "ulp", "a", "b"];

/** What `vs=` means: `prev`, `step:24`, `rank:1`, `run:NAME`, `run:NAME:24`. */
export function other(address: string, vs: string): string {
  const here = parseAddress(address);
  if (!here || vs === "prev") return "prev";
  const [kind, first, second] = vs.split(":");
  if (kind === "step") return addressText({ ...here, step: Number(first) });
  if (kind === "rank") return addressText({ ...here, rank: Number(first) });
  return kind === "run" ? `${first}!${addressText({ ...here, step: second ? Number(second) : here.step })}` : "prev";
}

export function CompareTab() {
  const loaded = useSignal<Loaded<ComparisonHeader>>({ state: "idle" });
  useSignalEffect(() => {
    const address = tensorAddress.value;
    const q = query.value;
    void state.value?.rev;
    if (!address) return;
    const end = new AbortController();
    const known = loaded.peek();
    if (known.state !== "ready") loaded.value = { state: "loading" };
    const asked = slice.value;
    void lookAtBoth(
      ofRun(runName.peek(), "compare", { a: address, b: other(address, q.vs ?? "prev") }),
      {
        mode: (q.mode as ComparisonHeader["mode"]) ?? "difference",
        atol: Number(q.atol ?? 1e-8),
        rtol: Number(q.rtol ?? 1e-5),
        slice: asked || (known.state === "ready" ? defaultSlice(known.pane.shape) : ""),
      },
      end.signal,
    ).then((answer) => {
      if (!end.signal.aborted) loaded.value = answer;
    });
    return () => end.abort();
  });
  if (!tensorAddress.value)
    return (
      <div class="empty">
        <p>{t("tensor.none")}</p>
      </div>
    );
  const now = loaded.value;
  return (
    <div class="column grow tensor-pane">
      <Choices />
      {now.state === "missing" && isLive.value && noControl.value === "" && (query.value.vs ?? "prev") === "prev" && (
        <p class="pad">
          <button class="main" data-test="keep-and-step" onClick={() => void keepAndStep(tensorAddress.value)}>
            <Icon name="step" />
            {t("compare.keep")}
          </button>
        </p>
      )}
      {now.state === "ready" ? (
        <Both pane={now.pane} />
      ) : now.state === "missing" ? (
        <NotHere
          address={`${tensorAddress.value} ↔ ${other(tensorAddress.value, query.value.vs ?? "prev")}`}
          reason={now.reason}
          text={now.text}
        />
      ) : now.state === "wrong" ? (
        <p class="pad tone-error">{now.text}</p>
      ) : (
        <div class="empty">
          <p>{t("loading")}</p>
        </div>
      )}
    </div>
  );
}

/** Nothing to compare with yet: this tensor is kept in the next two steps, which are run; the second has a previous one. */
async function keepAndStep(address: string): Promise<void> {
  const here = parseAddress(address);
  const at = state.peek();
  if (!here || !at) return;
  const on = addressText({ ...here, step: null, rank: null });
  const next = at.step + 1;
  if ((await edit("dump", { spec: { on: [on] }, scope: `${next}:${next + 2}` })) === null) return;
  change({ step: null, vs: null });
  await command("step", { count: 2 });
}

function Choices() {
  const vs = query.value.vs ?? "prev";
  const [kind] = vs.split(":");
  const ranks = runs.value.get(runName.value)?.ranks ?? [];
  const others = [...runs.value.keys()].filter((name) => name !== runName.value);
  const first: Record<string, string> = {
    prev: "prev",
    step: `step:${Math.max(0, shownStep.value - 1)}`,
    rank: `rank:${ranks.find((one) => one !== rank.value) ?? 0}`,
    run: `run:${others[0] ?? ""}`,
  };
  return (
    <div class="row wrap tensor-tools">
      <label class="field">
        A
        <b class="mono cut" style={{ maxWidth: "220px" }} title={tensorAddress.value}>
          {tensorAddress.value}
        </b>
      </label>
      <label class="field">
        B
        <select value={kind} onChange={(event) => change({ vs: first[event.currentTarget.value] })}>
          <option value="prev">{t("compare.previous")}</option>
          <option value="step">{t("compare.step")}</option>
          {ranks.length > 1 && <option value="rank">{t("compare.rank")}</option>}
          {others.length > 0 && <option value="run">{t("compare.run")}</option>}
        </select>
      </label>
      {kind === "step" && (
        <input
          type="number"
          min="0"
          aria-label={t("compare.step")}
          value={vs.split(":")[1]}
          onChange={(event) => change({ vs: `step:${event.currentTarget.value}` })}
        />
      )}
      {kind === "rank" && (
        <select
          aria-label={t("compare.rank")}
          value={vs.split(":")[1]}
          onChange={(event) => change({ vs: `rank:${event.currentTarget.value}` })}
        >
          {ranks.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      )}
      {kind === "run" && (
        <select
          aria-label={t("compare.run")}
          value={vs.split(":")[1]}
          onChange={(event) => change({ vs: `run:${event.currentTarget.value}` })}
        >
          {others.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      )}
      <span class="segments" role="group" aria-label={t("compare.mode")}>
        {MODES.map((one) => (
          <button
            key={one}
            aria-pressed={(query.value.mode ?? "difference") === one}
            onClick={() => change({ mode: one })}
          >
            {said("mode", one)}
          </button>
        ))}
      </span>
      <label class="field">
        atol
        <input
          class="mono"
          style={{ width: "72px" }}
          value={query.value.atol ?? "1e-8"}
          onChange={(event) => change({ atol: event.currentTarget.value })}
        />
      </label>
      <label class="field">
        rtol
        <input
          class="mono"
          style={{ width: "72px" }}
          value={query.value.rtol ?? "1e-5"}
          onChange={(event) => change({ rtol: event.currentTarget.value })}
        />
      </label>
    </div>
  );
}

export function Both({ pane }: { pane: Pane<ComparisonHeader> }) {
  const { header, source } = pane;
  const d = header.differences;
  const chosen = useSignal<[number, number] | null>(null);
  const scale = useSignal<Scale | null>(null);
  const unsigned = header.mode === "relative" || header.mode === "ulp" || header.mode === "absolute";
  const small = source.rows * source.columns <= 64;
  return (
    <>
      <div class="row wrap tensor-facts" data-test="differences">
        <span class={`pill ${d.out_of_tolerance ? "tone-error" : "tone-ok"}`}>
          {t("compare.out", { share: percent(d.out_of_tolerance, d.count), n: count(d.out_of_tolerance) })}
        </span>
        <Fact name={t("compare.maxAbs")} text={shown(d.max_absolute)} />
        <Fact name={t("compare.meanAbs")} text={shown(d.mean_absolute)} />
        <Fact name={t("compare.maxRel")} text={shown(d.max_relative)} />
        <Fact name="ULP" text={d.max_ulp > 2 ** 60 ? "NaN" : count(d.max_ulp)} />
        <Fact name={t("compare.cosine")} text={typeof d.cosine === "number" ? d.cosine.toFixed(6) : d.cosine} />
        <Fact name="L2" text={shown(d.l2)} />
        {!d.same_nonfinite && <span class="chip nan">{t("compare.nonfinite")}</span>}
        {d.worst.length > 0 && <Fact name={t("compare.worst")} text={`[${d.worst.join(", ")}]`} />}
      </div>
      <p class="dim mono sides">
        A {header.a} · B {header.b}
      </p>
      {small ? (
        <Grid source={source} chosen={chosen.value} choose={(row, column) => (chosen.value = [row, column])} />
      ) : (
        <>
          <Heat
            source={source}
            unsigned={unsigned}
            chosen={chosen.value}
            choose={(row, column) => (chosen.value = [row, column])}
            scaled={(made) => (scale.value = made)}
          />
          <Legend scale={scale.value} stats={header.mode === "b" ? header.b_stats : header.a_stats} />
        </>
      )}
      <p class="cell-line mono">
        {chosen.value
          ? `[${chosen.value.join(", ")}] = ${value(Number(source.value(chosen.value[0], chosen.value[1]) ?? Number.NaN), 17)}`
          : ""}
      </p>
    </>
  );
}

function Fact({ name, text }: { name: string; text: string }) {
  return (
    <span class="nowrap">
      <span class="dim">{name}</span> <b class="mono">{text}</b>
    </span>
  );
}
