// The curves of a run, or of several laid over each other, and how far each is from the first in per mille.
import { signal, useComputed, useSignalEffect } from "@preact/signals";
import { Chart, type ScaleKind } from "../charts/chart";
import { divergence, PER_MILLE, type Series, smooth, withoutOutliers } from "../charts/data";
import { sampleOf } from "../charts/strokes";
import { curveCells } from "../format/csv";
import { count, num, perMille, seconds } from "../format/number";
import { knows, said, t } from "../i18n";
import { ask } from "../net/api";
import { newest, runs } from "../state/live";
import { change, link, place, query } from "../state/route";
import { fresh, rank, runName } from "../state/run";
import type { RunDetail, ScalarSeries } from "../types.gen";
import { Icon } from "../ui/icons";
import { More } from "../ui/more";

const TAGS = ["loss", "learning_rate", "gradient_norm", "loss_scale", "seconds", "overhead"];
/** Not of the training but of us: shown to whoever asks. */
const ASIDE = ["overhead"];
const POINTS = 4000;

interface Curve {
  run: string;
  series: ScalarSeries;
}

const curves = signal<Curve[]>([]);
const loading = signal(false);

export function ScalarsPage() {
  const names = useComputed(() =>
    place.value.path[0] === "compare"
      ? (query.value.runs ?? "").split(",").filter(Boolean)
      : [runName.value, ...(query.value.with ?? "").split(",").filter(Boolean)],
  );
  useSignalEffect(() => {
    const wanted = names.value;
    const which = query.value.rank;
    const timed = query.value.x === "time";
    loading.value = true;
    let alive = true;
    void Promise.all(wanted.map((run) => fetchCurves(run, which, timed))).then((all) => {
      if (!alive) return;
      curves.value = all.flat();
      loading.value = false;
    });
    return () => {
      alive = false;
    };
  });
  useSignalEffect(() => {
    const news = fresh.value;
    if (news)
      curves.value = curves
        .peek()
        .map((one) =>
          one.run === news.run && one.series.tag === news.tag && one.series.rank === news.rank
            ? { ...one, series: longer(one.series, news.x, news.y) }
            : one,
        );
  });
  const tags = TAGS.filter((tag) => curves.value.some((one) => one.series.tag === tag && one.series.x.length));
  const chosen = query.value.tags ? query.value.tags.split(",") : tags.filter((tag) => !ASIDE.includes(tag));
  const base = query.value.base ?? names.value[0];
  return (
    <div class="column grow">
      <Tools tags={tags} chosen={chosen} names={names.value} />
      <div class="scroll grow pad">
        {!tags.length && !loading.value && (
          <div class="empty">
            <h2>{t("scalars.none")}</h2>
            <p>{names.value.length ? t("scalars.noneHelp") : t("scalars.choose")}</p>
          </div>
        )}
        <div class="charts">
          {chosen
            .filter((tag) => tags.includes(tag))
            .map((tag) => (
              <Curves key={tag} tag={tag} names={names.value} />
            ))}
          {names.value.length > 1 && tags.includes("loss") && <Apart names={names.value} base={base} />}
        </div>
      </div>
    </div>
  );
}

async function fetchCurves(run: string, which: string | undefined, timed: boolean): Promise<Curve[]> {
  if (!run) return [];
  try {
    const path = `runs/${encodeURIComponent(run)}`;
    const detail = await ask<RunDetail>(path);
    const tags = detail.tags.length ? detail.tags : ["loss"];
    const all = await ask<ScalarSeries[]>(`${path}/scalars`, {
      tag: tags,
      points: POINTS,
      rank: which,
      time: timed ? 1 : undefined,
    });
    return all.map((series) => ({ run, series }));
  } catch {
    return []; // a run that is gone leaves its line out; the picker still names it
  }
}

function longer(series: ScalarSeries, x: readonly number[], y: ScalarSeries["y"]): ScalarSeries {
  const last = series.x[series.x.length - 1] ?? -1;
  const from = x.findIndex((one) => one > last);
  if (from < 0) return series;
  return {
    ...series,
    x: [...series.x, ...x.slice(from)],
    time: series.time.length ? [...series.time, ...x.slice(from).map(() => since(series))] : series.time,
    y: [...series.y, ...y.slice(from)],
    total: series.total + x.length - from,
  };
}

/** A step that has just been told ended now. */
function since(series: ScalarSeries): number {
  const brief = runs.peek().get(curves.peek().find((one) => one.series === series)?.run ?? "");
  return Math.max(series.time[series.time.length - 1] ?? 0, brief ? Date.now() / 1000 - brief.started : 0);
}

function seriesOf(tag: string, names: string[], weight: number): Series[] {
  return names.flatMap((run, colour) => {
    const found = curves.value.find((one) => one.run === run && one.series.tag === tag);
    if (!found) return [];
    const y = found.series.y.map((one) => num(one));
    const plain: Series = { label: names.length > 1 ? run : said("tag", tag), x: along(found.series), y, colour };
    return weight > 0
      ? [
          { ...plain, label: `${plain.label} ${t("scalars.raw")}`, faint: true },
          { ...plain, y: smooth(y, weight) },
        ]
      : [plain];
  });
}

function along(series: ScalarSeries): readonly number[] {
  return query.value.x === "time" && series.time.length ? series.time : series.x;
}

/** `win=100-500`: the part of the x axis in sight, the same for every chart of the page. */
function inSight(): [number, number] | null {
  const found = /^(-?[\d.e+]+)-([\d.e+]+)$/.exec(query.value.win ?? "");
  return found && Number(found[1]) < Number(found[2]) ? [Number(found[1]), Number(found[2])] : null;
}

function zoom(window: [number, number] | null): void {
  const tidy = (x: number): string => String(Number(x.toPrecision(6)));
  change({ win: window && `${tidy(Math.max(0, window[0]))}-${tidy(window[1])}` }, true);
}

function Curves({ tag, names }: { tag: string; names: string[] }) {
  const weight = Number(query.value.smooth ?? 0);
  const series = useComputed(() => seriesOf(tag, names, Number(query.value.smooth ?? 0)));
  void weight;
  const far = withoutOutliers(series.value);
  const whole = query.value.clip === "0";
  const thinned = curves.value.filter((one) => one.series.tag === tag && one.series.method === "min-max");
  const bad = curves.value
    .filter((one) => one.series.tag === tag)
    .reduce((sum, one) => sum + one.series.y.filter((y) => typeof y === "string").length, 0);
  return (
    <figure class="card" data-test={`curve-${tag}`}>
      <figcaption class="row">
        <h2>{knows("tag", tag) ? said("tag", tag) : tag}</h2>
        {bad > 0 && <span class="chip nan">{t("scalars.bad", { n: count(bad) })}</span>}
        {far && (query.value.y ?? "linear") === "linear" && (
          <button
            class="chip"
            aria-pressed={!whole}
            title={whole ? t("scalars.unclipped") : t("scalars.clippedHelp")}
            data-test="clipped"
            onClick={() => change({ clip: whole ? null : "0" })}
          >
            {whole ? t("scalars.unclipped") : t("scalars.clipped", { n: count(far.beyond) })}
          </button>
        )}
        <span class="grow" />
        {thinned.map((one) => (
          <span key={one.run} class="dim">
            {t("scalars.thinned", { total: count(one.series.total), shown: count(one.series.x.length) })}
          </span>
        ))}
        <More name={`${names.join("-")}-${tag}`} csv={() => curveCells(series.value)} />
      </figcaption>
      <Chart
        series={series.value}
        height={230}
        scale={(query.value.y as ScaleKind) ?? "linear"}
        pick={query.value.x === "time" ? undefined : (step) => change({ step })}
        window={inSight()}
        zoom={zoom}
        within={whole ? null : far}
        said={query.value.x === "time" ? seconds : undefined}
      />
    </figure>
  );
}

/** How far each run's loss is from the base, and the first step that is more than 1 ‰ away. */
function Apart({ names, base }: { names: string[]; base: string }) {
  const all = seriesOf("loss", names, 0);
  const reference = all[names.indexOf(base)];
  if (!reference) return null;
  const others = all.filter((one) => one !== reference).map((one) => ({ one, gap: divergence(reference, one) }));
  return (
    <figure class="card" data-test="divergence">
      <figcaption class="row">
        <h2>{t("scalars.apart", { base })}</h2>
        <span class="grow" />
        <More
          name={`${base}-deviation`}
          csv={() => curveCells(others.map(({ one, gap }) => ({ label: one.label, x: gap.x, y: gap.y })))}
        />
      </figcaption>
      <Chart
        height={230}
        scale="symlog"
        rules={[
          { y: PER_MILLE, label: "±1 ‰" },
          { y: -PER_MILLE, label: "" },
        ]}
        series={others.map(({ one, gap }) => ({ label: one.label, x: gap.x, y: gap.y, colour: one.colour }))}
      />
      {others.map(({ one, gap }) => {
        const at = gap.x.indexOf(gap.first ?? -1);
        const early = gap.first !== null && gap.x.indexOf(gap.first) === 0;
        return (
          <p key={one.label} class={gap.first === null ? "tone-ok" : "tone-warning"}>
            <b class="mono">{one.label}</b>{" "}
            {gap.first === null
              ? t("scalars.within")
              : `${t("scalars.first", { step: gap.first, gap: perMille(gap.y[at]) })} ${early ? t("scalars.forward") : t("scalars.backward")} `}
            {gap.first !== null && (
              <a class="button" href={link(["compare", "dumps"], { a: base, b: one.label })}>
                {t("page.comparison")}
              </a>
            )}
          </p>
        );
      })}
    </figure>
  );
}

function Tools({ tags, chosen, names }: { tags: string[]; chosen: string[]; names: string[] }) {
  const weight = Number(query.value.smooth ?? 0);
  const comparing = place.value.path[0] === "compare";
  const rest = newest.value.filter((name) => !names.includes(name));
  const set = (next: string[]): void =>
    change(comparing ? { runs: next.join(",") } : { with: next.slice(1).join(",") }, true);
  return (
    <div class="tools row wrap">
      <span class="row wrap">
        {names.map((name, at) => (
          <span class="chip" key={name}>
            <span class="line-sample" style={sampleOf(at)} />
            {name}
            {names.length > 1 && (at > 0 || comparing) && (
              <button
                class="plain tiny"
                aria-label={t("scalars.remove", { run: name })}
                onClick={() => set(names.filter((one) => one !== name))}
              >
                <Icon name="cross" />
              </button>
            )}
          </span>
        ))}
        {rest.length > 0 && (
          <select
            aria-label={t("scalars.add")}
            value=""
            onChange={(event) => event.currentTarget.value && set([...names, event.currentTarget.value])}
          >
            <option value="">{t("scalars.add")}</option>
            {rest.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        )}
      </span>
      <span class="row wrap">
        {tags.map((tag) => (
          <label class="field" key={tag}>
            <input
              type="checkbox"
              checked={chosen.includes(tag)}
              onChange={() =>
                change({
                  tags: (chosen.includes(tag) ? chosen.filter((one) => one !== tag) : [...chosen, tag]).join(","),
                })
              }
            />
            {said("tag", tag)}
          </label>
        ))}
      </span>
      <label class="field">
        {t("scalars.smooth")}
        <input
          type="range"
          min="0"
          max="0.99"
          step="0.01"
          value={weight}
          onInput={(event) => change({ smooth: Number(event.currentTarget.value) || null })}
        />
        <span class="mono">{weight.toFixed(2)}</span>
      </label>
      <span class="segments" role="group" aria-label={t("scalars.scale")}>
        {(["linear", "log", "symlog"] as ScaleKind[]).map((one) => (
          <button
            key={one}
            aria-pressed={(query.value.y ?? "linear") === one}
            onClick={() => change({ y: one === "linear" ? null : one })}
          >
            {said("scale", one)}
          </button>
        ))}
      </span>
      <span class="segments" role="group" aria-label={t("scalars.across")}>
        {(["step", "time"] as const).map((one) => (
          <button
            key={one}
            aria-pressed={(query.value.x ?? "step") === one}
            onClick={() => change({ x: one === "step" ? null : one, win: null })}
          >
            {t(one === "step" ? "scalars.acrossStep" : "scalars.acrossTime")}
          </button>
        ))}
      </span>
      {inSight() && (
        <button data-test="unzoom" onClick={() => zoom(null)}>
          {t("scalars.unzoom")}
        </button>
      )}
      {!comparing && names.length > 1 && (
        <a
          class="button"
          href={link(["compare", "scalars"], { runs: names.join(","), base: names[0], rank: rank.value || null })}
        >
          {t("scalars.comparePage")}
        </a>
      )}
    </div>
  );
}
