// The crash page: what happened in three lines, why that usually happens, and under it everything the recorder kept.
// It needs no live process: a bundle opened on another machine is served by the same hub.
import { signal, useSignalEffect } from "@preact/signals";
import type { VNode } from "preact";
import { api } from "../base";
import { Facts } from "../crash/facts";
import { Memory } from "../crash/memory";
import { Order } from "../crash/order";
import { Ranks } from "../crash/ranks";
import { before, culprit, happened, isBad, plainReport, what, where } from "../crash/sentences";
import { Stacks } from "../crash/stacks";
import { copy } from "../debug/nodemenu";
import { bytes } from "../format/number";
import { clock, moment } from "../format/time";
import { lang, said, t } from "../i18n";
import { ask, type HubError, post } from "../net/api";
import { change, go, link, place, query } from "../state/route";
import { runName } from "../state/run";
import { toast } from "../state/toasts";
import "../styles/crash.css";
import type { CrashReport, RecordList } from "../types.gen";
import { Icon } from "../ui/icons";

const TABS = ["stack", "order", "memory", "ranks", "log", "env"] as const;
type Tab = (typeof TABS)[number];

const list = signal<{ run: string; known: RecordList } | null>(null);
const report = signal<{ run: string; told: CrashReport } | null>(null);
const problem = signal("");

async function fetchList(run: string): Promise<void> {
  try {
    const known = await ask<RecordList>(`runs/${encodeURIComponent(run)}/records`);
    if (runName.peek() === run) list.value = { run, known };
  } catch (error) {
    problem.value = (error as HubError).message;
  }
}

async function makeOne(): Promise<void> {
  const run = runName.peek();
  try {
    list.value = { run, known: await post<RecordList>(`runs/${encodeURIComponent(run)}/records`, {}) };
  } catch (error) {
    toast("error", t("nack.other"), (error as HubError).message);
  }
}

export function CrashPage() {
  useSignalEffect(() => {
    problem.value = "";
    if (runName.value) void fetchList(runName.value);
  });
  useSignalEffect(() => {
    const run = runName.value;
    const known = list.value?.run === run ? list.value.known : null;
    const id = place.value.path[3] ?? known?.records[0]?.id;
    if (!run || !id) return;
    ask<CrashReport>(`runs/${encodeURIComponent(run)}/records/${encodeURIComponent(id)}`, { lang: lang.value }).then(
      (answer) => {
        if (runName.peek() === run) report.value = { run, told: answer };
      },
      (error: HubError) => (problem.value = error.message),
    );
  });
  const known = list.value?.run === runName.value ? list.value.known : null;
  const told = report.value?.run === runName.value ? report.value.told : null;
  if (problem.value)
    return (
      <div class="empty">
        <h2>{t("crash.none", { run: runName.value })}</h2>
        <p>{problem.value}</p>
      </div>
    );
  if (known && !known.records.length) return <None canMake={known.can_make} />;
  return told ? <Told told={told} known={known} /> : <div class="empty">{t("loading")}</div>;
}

function None({ canMake }: { canMake: boolean }) {
  return (
    <div class="empty">
      <h2>{t("crash.none", { run: runName.value })}</h2>
      <p>{canMake ? t("crash.noneHelp") : t("crash.noneLive")}</p>
      {canMake ? (
        <button class="main" data-test="make-record" onClick={() => void makeOne()}>
          {t("crash.add")}
        </button>
      ) : (
        <pre>misstep record {runName.value}</pre>
      )}
    </div>
  );
}

function Told({ told, known }: { told: CrashReport; known: RecordList | null }) {
  const one = culprit(told);
  const many = told.endings.length > 1;
  const bad = isBad(one.event);
  const usual: Tab =
    told.kind === "hang" && many ? "ranks" : told.threads.length || Object.keys(told.stacks).length ? "stack" : "order";
  const tabs = TABS.filter((tab) => tab !== "ranks" || many);
  const tab = tabs.includes(query.value.tab as Tab) ? (query.value.tab as Tab) : usual;
  const panels: Record<Tab, () => VNode> = {
    stack: () => <Stacks report={told} />,
    order: () => <Order report={told} />,
    memory: () => <Memory report={told} />,
    ranks: () => <Ranks report={told} />,
    log: () => (
      <section class="card">
        {told.log.length ? <pre tabIndex={0}>{told.log.join("\n")}</pre> : <p class="dim">{t("crash.noLog")}</p>}
      </section>
    ),
    env: () => <Facts report={told} />,
  };
  const walk = (event: KeyboardEvent): void => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!by) return;
    event.preventDefault();
    const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length];
    change({ tab: next });
    document.getElementById(`crash-${next}`)?.focus();
  };
  return (
    <div class="scroll grow pad column gap crash" tabIndex={0} data-test="crash">
      <div class="row wrap">
        <span class="dim nowrap">
          {moment(told.time)} · {told.host}
        </span>
        {known && known.records.length > 1 && (
          <label class="field">
            {t("crash.record")}
            <select
              value={told.record}
              onChange={(event) =>
                go(["runs", runName.value, "crash", event.currentTarget.value], { tab: query.value.tab })
              }
            >
              {known.records.map((each) => (
                <option key={each.id} value={each.id}>
                  {said("crash.record", each.id)} · {clock(new Date(each.time * 1000))}
                </option>
              ))}
            </select>
          </label>
        )}
        <span class="grow" />
        <a
          class="button"
          href={link(["runs", runName.value, "debug"], { node: one.spot.node || null, rank: one.rank || null })}
        >
          <Icon name="debug" />
          {t("stats.open")}
        </a>
        <button onClick={() => void copy(plainReport(told))}>
          <Icon name="copy" />
          {t("crash.copied")}
        </button>
        <a
          class="button"
          download
          href={api(`runs/${encodeURIComponent(runName.value)}/records/${encodeURIComponent(told.record)}/zip`)}
        >
          <Icon name="download" />
          {t("crash.download", { size: bytes(told.bytes) })}
        </a>
      </div>
      <dl class={`crash-head${bad ? "" : " fine"}`} data-test="summary">
        <dt>{t("crash.what")}</dt>
        <dd class="what">{what(one.event)}</dd>
        <dt>{t("crash.where")}</dt>
        <dd>
          {where(one.spot, many ? one.rank : null).join(" · ")}
          {one.spot.source && (
            <span class="mono wrap-anywhere">
              {" "}
              · {one.spot.source} <b>{one.spot.code}</b>
            </span>
          )}
        </dd>
        <dt>{t("crash.before")}</dt>
        <dd>{before(told).join(" · ")}</dd>
      </dl>
      <div class="crash-two">
        <section class="card" data-test="causes">
          <h2>{t("crash.causes")}</h2>
          {told.causes.length ? (
            <ol class="causes">
              {told.causes.map((cause) => (
                <li key={cause.id}>
                  <h3>{cause.title}</h3>
                  <p>{cause.why}</p>
                  {cause.advice && (
                    <p>
                      <b>{t("crash.try")}:</b> {cause.advice}
                    </p>
                  )}
                </li>
              ))}
            </ol>
          ) : (
            bad && <p class="dim">{t("crash.noCause")}</p>
          )}
        </section>
        <section class="card">
          <h2>{t("crash.events")}</h2>
          <div class="scroll events" tabIndex={0}>
            <table>
              <tbody>
                {happened(told).map((event, at) => (
                  <tr key={at} class={event.kind === "step" ? "dim" : ""}>
                    <td class="mono dim">{clock(new Date(event.time * 1000))}</td>
                    {many && <td class="number">{event.rank}</td>}
                    <td>{said("crash.event", event.kind)}</td>
                    <td>{event.text}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      </div>
      {told.problems.length > 0 && (
        <section class="card tone-warning">
          <h2>{t("crash.problems")}</h2>
          {told.problems.map((text) => (
            <p key={text}>{text}</p>
          ))}
        </section>
      )}
      <div class="tabs" role="tablist" aria-label={t("page.crash")} onKeyDown={walk}>
        {tabs.map((name) => (
          <button
            key={name}
            id={`crash-${name}`}
            role="tab"
            aria-selected={tab === name}
            aria-controls="crash-panel"
            tabIndex={tab === name ? 0 : -1}
            onClick={() => change({ tab: name })}
          >
            {said("crash.tab", name)}
          </button>
        ))}
      </div>
      <div id="crash-panel" role="tabpanel" aria-labelledby={`crash-${tab}`}>
        {panels[tab]()}
      </div>
    </div>
  );
}
