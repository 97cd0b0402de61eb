// A tensor: statistics, the slice, and its values as a heat map, as numbers, as a histogram or as a line.
import { computed, useSignal, useSignalEffect } from "@preact/signals";
import { api } from "../base";
import { bytes, count, value } from "../format/number";
import { said, t } from "../i18n";
import { info, infoProblem, slice, tensor, tensorAddress, VIEWS, type View, view } from "../state/debug";
import { runs } from "../state/live";
import { chooseDigits, digits } from "../state/prefs";
import { change } from "../state/route";
import { command, isLive, runName, state } from "../state/run";
import { Grid } from "../tensor/grid";
import { Heat } from "../tensor/heat";
import { Histogram } from "../tensor/histogram";
import { Legend } from "../tensor/legend";
import { Line } from "../tensor/line";
import type { Scale } from "../tensor/scale";
import { moved } from "../tensor/slice";
import type { StatsView, TensorBrief, TensorHeader } from "../types.gen";
import { Icon } from "../ui/icons";
import { Classes, Dtype, Measure } from "../ui/marks";
import { copy } from "./nodemenu";
import { type Desk, ofRun, type Pane, TensorWindow } from "./window";

const tensorWindow = new TensorWindow();
/** Go to the next or previous NaN or Inf; set while a tensor is on show. */
export const walkBad: { act: ((way: "next" | "previous") => void) | null } = { act: null };

export function TensorTab() {
  useSignalEffect(() => {
    const address = tensorAddress.value;
    void state.value?.rev; // a live tensor changes when training moved
    // What was kept of a finished run is known with its node: asking before would only fail.
    if (!isLive.value && (state.value === null || (info.value === null && !infoProblem.value))) return;
    if (address && !knownMissing.value) void tensorWindow.look(ofRun(runName.peek(), "tensor"), address, slice.value);
  });
  if (!tensorAddress.value)
    return (
      <div class="empty">
        <p>{t("tensor.none")}</p>
      </div>
    );
  if (knownMissing.value)
    return (
      <NotHere
        address={tensorAddress.value}
        reason={knownMissing.value.reason}
        text=""
        stats={knownMissing.value.stats}
      />
    );
  const loaded = tensorWindow.loaded.value;
  if (loaded.state === "ready") return <OfRun pane={loaded.pane} />;
  if (loaded.state === "wrong") return <WrongSlice text={loaded.text} example={loaded.example} />;
  if (loaded.state === "missing")
    return <NotHere address={tensorAddress.value} reason={loaded.reason} text={loaded.text} />;
  return (
    <div class="empty">
      <p>{t("loading")}</p>
    </div>
  );
}

/** What a finished run says of itself was not kept: asking again would not bring it back. */
const knownMissing = computed<TensorBrief | null>(() => {
  const one = tensor.value;
  return one && !isLive.value && state.value !== null && !one.available && one.address === tensorAddress.value
    ? one
    : null;
});

/** The values are not here: why, what is known all the same, and how to get them. */
export function NotHere({
  address,
  reason,
  text,
  stats,
}: {
  address: string;
  reason: string;
  text: string;
  stats?: StatsView | null;
}) {
  const watch = (): void => change({ step: null }, true);
  return (
    <div class="pad">
      <div class="hatch empty" data-test="not-here">
        <h2>{said("unavailable", reason)}</h2>
        <p class="mono">{address}</p>
        {stats && (
          <p class="row wrap">
            <Dtype name={stats.dtype} dims={stats.shape} />
            <Measure name="min" of={stats.min} />
            <Measure name="max" of={stats.max} />
            <Measure name="mean" of={stats.mean} />
            <Classes stats={stats} />
          </p>
        )}
        {text && <p>{text}</p>}
        {isLive.value && reason === "running" && (
          <button class="main" onClick={() => void command("pause")}>
            <Icon name="pause" />
            {t("tensor.pauseToSee")}
          </button>
        )}
        {isLive.value && reason !== "running" && <button onClick={watch}>{t("tensor.showNow")}</button>}
        {!isLive.value && (
          <>
            <p>{t("tensor.captureNext")}</p>
            <pre>{`misstep run --watch overflow --then dump ${runs.value.get(runName.value)?.command.join(" ") || "python train.py"}`}</pre>
          </>
        )}
      </div>
    </div>
  );
}

export function WrongSlice({ text, example }: { text: string; example: string }) {
  return (
    <div class="column gap pad">
      <SliceBox shape={null} wrong={text} example={example} />
    </div>
  );
}

function OfRun({ pane }: { pane: Pane<TensorHeader> }) {
  const download = api(`runs/${encodeURIComponent(runName.value)}/npy`, { address: pane.header.address });
  return <TensorPane pane={pane} desk={ofRun(runName.value, "tensor")} window={tensorWindow} download={download} />;
}

/** The tensor of a window, wherever it comes from. */
export function TensorPane({
  pane,
  desk,
  window,
  download,
}: {
  pane: Pane<TensorHeader>;
  desk: Desk;
  window: TensorWindow;
  download: string;
}) {
  const { header, source, sliced, shape } = pane;
  const chosen = useSignal<[number, number] | null>(null);
  const scale = useSignal<Scale | null>(null);
  const free = sliced.free.length;
  const shown: View = view.value || (free <= 1 && source.rows === 1 ? "line" : "heat");
  const stats = header.stats;
  walkBad.act = (way) => {
    const after = chosen.peek()
      ? (chosen.peek() as [number, number])[0] * source.columns + (chosen.peek() as [number, number])[1]
      : -1;
    void window.findBad(desk, header.address, slice.peek() || header.slice, after, way).then((index) => {
      if (!index) return;
      const flat = index.reduce((sum, at, axis) => sum * header.sliced_shape[axis] + at, 0);
      chosen.value = [Math.floor(flat / source.columns), flat % source.columns];
    });
  };
  const bad = stats ? stats.nan + stats.pos_inf + stats.neg_inf : 0;
  const numpy = `np.load("${header.address.replace(/[^\w.-]/g, "_")}.npy")${header.slice === "[]" ? "" : header.slice}`;
  return (
    <div class="column grow tensor-pane">
      <div class="row wrap tensor-facts">
        <b class="mono tail cut" title={header.address}>
          {header.address}
        </b>
        <Dtype name={header.dtype} dims={shape} />
        <span class="chip dim">{bytes(shape.reduce((a, b) => a * b, 1) * itemSize(header.dtype))}</span>
        <span class={`chip ${header.origin === "live" ? "tone-accent" : "dim"}`}>{said("tensor", header.origin)}</span>
        {stats && (
          <>
            <Measure name="min" of={stats.min} />
            <Measure name="max" of={stats.max} />
            <Measure name="mean" of={stats.mean} />
            <Measure name="std" of={stats.std} />
            <Classes stats={stats} />
          </>
        )}
      </div>
      <div class="row wrap tensor-tools">
        <SliceBox shape={shape} wrong="" example="" pane={pane} />
        <span class="segments" role="group" aria-label={t("tensor.as")}>
          {VIEWS.map((one) => (
            <button key={one} aria-pressed={shown === one} onClick={() => change({ as: one })}>
              {said("view", one)}
            </button>
          ))}
        </span>
        <button disabled={!bad} title={t("tensor.nextBad")} onClick={() => walkBad.act?.("next")} data-test="next-bad">
          {t("tensor.nextBadShort")} <kbd>N</kbd>
        </button>
        <span class="grow" />
        {shown === "grid" && (
          <label class="field">
            {t("tensor.digits")}
            <input
              type="number"
              min="2"
              max="17"
              style={{ width: "52px" }}
              value={digits.value}
              onInput={(event) => chooseDigits(Math.min(17, Math.max(2, Number(event.currentTarget.value) || 4)))}
            />
          </label>
        )}
        <button class="plain" title={t("tensor.copyNumpy")} onClick={() => void copy(numpy)}>
          <Icon name="copy" />
          <span class="hidden-visually">{t("tensor.copyNumpy")}</span>
        </button>
        <a class="button plain" download title={t("tensor.download")} href={download} data-test="npy">
          <Icon name="download" />
          <span class="hidden-visually">{t("tensor.download")}</span>
        </a>
      </div>
      {source.failed.value && (
        <p class="tone-error pad" role="alert">
          {source.failed.value}
        </p>
      )}
      {free === 0 ? (
        <p class="scalar mono">{value(Number(source.value(0, 0) ?? Number.NaN), 17)}</p>
      ) : shown === "heat" ? (
        <>
          <Heat
            source={source}
            chosen={chosen.value}
            choose={(row, column) => (chosen.value = [row, column])}
            scaled={(made) => (scale.value = made)}
          />
          <Legend scale={scale.value} stats={stats} />
        </>
      ) : shown === "grid" ? (
        <Grid source={source} chosen={chosen.value} choose={(row, column) => (chosen.value = [row, column])} />
      ) : shown === "hist" ? (
        header.histogram ? (
          <div class="pad drawing">
            <Histogram data={header.histogram} />
          </div>
        ) : null
      ) : (
        <div class="pad drawing">
          <Line source={source} row={chosen.value?.[0] ?? 0} />
        </div>
      )}
      <p class="cell-line mono">
        {chosen.value ? (
          <>
            {`[${chosen.value.join(", ")}] = `}
            <b>{value(Number(source.value(chosen.value[0], chosen.value[1]) ?? Number.NaN), 17)}</b>
          </>
        ) : (
          <span class="dim">{t("tensor.cellHint", { n: count(source.rows * source.columns) })}</span>
        )}
      </p>
    </div>
  );
}

function SliceBox({
  shape,
  wrong,
  example,
  pane,
}: {
  shape: number[] | null;
  wrong: string;
  example: string;
  pane?: Pane<TensorHeader>;
}) {
  const fixed =
    pane?.sliced.parts.flatMap((part, axis) => (typeof part === "number" ? [{ axis, at: part }] : [])) ?? [];
  return (
    <span class="row wrap">
      <label class="field">
        {t("tensor.slice")}
        <input
          class={`mono${wrong ? " wrong" : ""}`}
          style={{ width: "116px" }}
          value={slice.value || pane?.header.slice || ""}
          aria-invalid={wrong !== ""}
          title={t("tensor.sliceHelp")}
          data-test="slice"
          onChange={(event) => change({ slice: event.currentTarget.value.replace(/[[\] ]/g, "") })}
        />
      </label>
      {shape &&
        pane &&
        fixed.map(({ axis, at }) => (
          <span
            class="together"
            key={axis}
            onWheel={(event) => {
              event.preventDefault();
              change({ slice: moved(pane.sliced, shape, axis, event.deltaY > 0 ? 1 : -1) });
            }}
          >
            <button
              class="plain"
              aria-label={t("tensor.axisDown", { axis })}
              onClick={() => change({ slice: moved(pane.sliced, shape, axis, -1) })}
            >
              <Icon name="left" />
            </button>
            <span class="mono">{at}</span>
            <button
              class="plain"
              aria-label={t("tensor.axisUp", { axis })}
              onClick={() => change({ slice: moved(pane.sliced, shape, axis, 1) })}
            >
              <Icon name="right" />
            </button>
          </span>
        ))}
      {wrong && (
        <span class="tone-error" role="alert">
          {wrong}
          {example && (
            <>
              {" "}
              {t("tensor.try")}{" "}
              <button class="plain mono" onClick={() => change({ slice: example.replace(/[[\] ]/g, "") })}>
                {example}
              </button>
            </>
          )}
        </span>
      )}
    </span>
  );
}

function itemSize(dtype: string): number {
  const bits = /(\d+)/.exec(dtype)?.[1];
  if (dtype === "bool") return 1;
  if (dtype.startsWith("float8")) return 1;
  return bits ? Number(bits) / 8 : 4;
}
