// The ranks of a run side by side: where each stands, how it is, and whether their losses agree.
import { signal, useSignalEffect } from "@preact/signals";
import { Chart } from "../charts/chart";
import { curveCells } from "../format/csv";
import { bytes, count, num, shown } from "../format/number";
import { said, t } from "../i18n";
import { ask } from "../net/api";
import { runs } from "../state/live";
import { link } from "../state/route";
import { detail, hits, runName, state } from "../state/run";
import type { ScalarSeries, State } from "../types.gen";
import { Icon } from "../ui/icons";
import { PhaseMark } from "../ui/marks";
import { More } from "../ui/more";

/** A process that ended by itself is not lost. */
function isOver(phase: State["phase"]): boolean {
  return phase === "ended" || phase === "offline" || phase === "detached";
}

const losses = signal<{ run: string; all: ScalarSeries[] } | null>(null);

export function RanksPage() {
  const ranks = runs.value.get(runName.value)?.ranks ?? [];
  useSignalEffect(() => {
    const name = runName.value;
    const which = (runs.value.get(name)?.ranks ?? []).slice(0, 16);
    const step = Math.floor((state.value?.step ?? 0) / 20);
    void step;
    void Promise.all(
      which.map((rank) =>
        ask<ScalarSeries[]>(`runs/${encodeURIComponent(name)}/scalars`, { tag: "loss", rank, points: 2000 }).then(
          (answer) => answer[0],
          () => null,
        ),
      ),
    ).then((all) => {
      losses.value = { run: name, all: all.filter((one) => one !== null && one !== undefined) as ScalarSeries[] };
    });
  });
  const views = state.value?.ranks.length ? state.value.ranks : (detail.value?.ranks ?? []);
  const curves = losses.value?.run === runName.value ? losses.value.all : [];
  // Of a run that is over nobody tells where a rank stands, or what it holds in memory.
  const live = views.some((one) => one.place || one.host || one.memory_limit);
  const end = runs.value.get(runName.value)?.state;
  const records = detail.value?.records ?? [];
  return (
    <div class="scroll grow pad column gap">
      {records.length > 0 && (
        <p class="row">
          <Icon name="crash" tone="error" />
          {t("ranks.record")}
          <a
            class="button"
            href={link(["runs", runName.value, "crash", records[0]], { tab: ranks.length > 1 ? "ranks" : null })}
          >
            {t("banner.openRecord")}
          </a>
        </p>
      )}
      <table class="ranks-table">
        <thead>
          <tr>
            <th class="number">{t("rank")}</th>
            <th>{t("ranks.phase")}</th>
            <th class="number">{t("step")}</th>
            <th class="number">{t("tag.loss")}</th>
            {live && (
              <>
                <th>{t("ranks.place")}</th>
                <th>{t("ranks.host")}</th>
                <th class="number">{t("ranks.memory")}</th>
              </>
            )}
            <th class="number">{t("hits.title")}</th>
            <th />
          </tr>
        </thead>
        <tbody>
          {ranks.map((rank) => {
            const view = views.find((one) => one.rank === rank);
            const mine = hits.value.filter((hit) => hit.rank === rank);
            const curve = curves.find((one) => one.rank === rank);
            return (
              <tr key={rank}>
                <td class="number">{rank}</td>
                <td>
                  {view && !isOver(view.phase) ? (
                    <PhaseMark phase={view.alive ? view.phase : "lost"} />
                  ) : (
                    <PhaseMark phase={view?.phase ?? "offline"} text={end ? said("runState", end) : undefined} />
                  )}
                </td>
                <td class="number">{count(view?.step || curve?.x.at(-1) || 0)}</td>
                <td class="number">{shown(curve?.y.at(-1))}</td>
                {live && (
                  <>
                    <td class="mono">
                      {view?.place ? `${view.place.node} (${said("when", view.place.when)})` : "–"}
                      {view?.reason
                        ? ` · ${said("reason", view.reason.kind, { wp: view.reason.watchpoint ?? "", rank: view.reason.rank ?? "" })}`
                        : ""}
                    </td>
                    <td class="mono">{view?.host ? `${view.host}:${view.pid}` : "–"}</td>
                    <td class="number">
                      {view?.memory_limit ? `${bytes(view.memory_bytes)} / ${bytes(view.memory_limit)}` : "–"}
                    </td>
                  </>
                )}
                <td class="number">
                  <span class="row" style={{ justifyContent: "flex-end" }}>
                    {mine.some((hit) => hit.birth === "origin") && (
                      <Icon name="star" tone="warning" title={t("hits.origin")} />
                    )}
                    {count(mine.length)}
                  </span>
                </td>
                <td class="right">
                  <a class="button" href={link(["runs", runName.value, "debug"], { rank })}>
                    {t("ranks.open")}
                  </a>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {curves.length > 0 && (
        <figure class="card">
          <figcaption class="row">
            <h2>{t("ranks.loss")}</h2>
            <span class="grow" />
            <More
              name={`${runName.value}-ranks`}
              csv={() =>
                curveCells(
                  curves.map((one) => ({ label: `${t("rank")} ${one.rank}`, x: one.x, y: one.y.map((y) => num(y)) })),
                )
              }
            />
          </figcaption>
          <Chart
            height={260}
            series={curves.map((one, at) => ({
              label: `${t("rank")} ${one.rank}`,
              x: one.x,
              y: one.y.map((y) => num(y)),
              colour: at,
            }))}
          />
        </figure>
      )}
      {ranks.length < 2 && <p class="dim">{t("ranks.single")}</p>}
    </div>
  );
}
