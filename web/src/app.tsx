// The shell: rail, top bar, banners, the page the address names, and what floats above it.
import { signal, useSignalEffect } from "@preact/signals";
import { lang, said, t } from "./i18n";
import { seconds, shown } from "./format/number";
import { clock } from "./format/time";
import { DebugPage } from "./pages/debug";
import { RunsPage } from "./pages/runs";
import { alerts, connection, runs, runsKnown, socket } from "./state/live";
import { nextTheme, otherLang, theme } from "./state/prefs";
import { go, link, place } from "./state/route";
import { detail, isLive, lastStep, problem, rank, runName, state } from "./state/run";
import { dismiss, toast, toasts } from "./state/toasts";
import { Dialogs, dialog } from "./ui/dialogs";
import { Icon, type IconName } from "./ui/icons";
import { lazy } from "./ui/lazy";
import { Menu } from "./ui/menu";
import { Palette, paletteOpen } from "./ui/palette";
import { StateMark } from "./ui/marks";

const SUB: [string, IconName][] = [["debug", "debug"], ["scalars", "scalars"], ["hist", "stats"], ["ranks", "ranks"], ["crash", "crash"]];

// The debugger and the list of runs come with the first load; every other page when somebody goes there.
const CheckpointPage = lazy(() => import("./pages/checkpoint").then((one) => one.CheckpointPage));
const ComparisonPage = lazy(() => import("./pages/comparison").then((one) => one.ComparisonPage));
const DumpsPage = lazy(() => import("./pages/dumps").then((one) => one.DumpsPage));
const CrashPage = lazy(() => import("./pages/crash").then((one) => one.CrashPage));
const RanksPage = lazy(() => import("./pages/ranks").then((one) => one.RanksPage));
const ScalarsPage = lazy(() => import("./pages/scalars").then((one) => one.ScalarsPage));
const SettingsPage = lazy(() => import("./pages/settings").then((one) => one.SettingsPage));
const StatsPage = lazy(() => import("./pages/stats").then((one) => one.StatsPage));

export function App() {
  const { path } = place.value;
  const sub = path[0] === "runs" && path[1] ? (path[2] ?? "debug") : "";
  return (
    <div class="shell">
      <Rail sub={sub} />
      <Top sub={sub} />
      <main class="page">
        <Banners />
        <Page sub={sub} />
      </main>
      <Toasts />
      <Menu />
      <Dialogs />
      <Palette />
    </div>
  );
}

function Page({ sub }: { sub: string }) {
  const first = place.value.path[0];
  if (problem.value) return <Missing />;
  if (first === "compare") return place.value.path[1] === "dumps" ? <ComparisonPage /> : <ScalarsPage />;
  if (first === "ckpt") return <CheckpointPage />;
  if (first === "dumps" || sub === "dumps") return <DumpsPage />;
  if (first === "settings") return <SettingsPage />;
  if (!sub) return <RunsPage />;
  if (sub === "scalars") return <ScalarsPage />;
  if (sub === "hist") return <StatsPage />;
  if (sub === "crash") return <CrashPage />;
  return sub === "ranks" ? <RanksPage /> : <DebugPage />;
}

function Missing() {
  return <div class="empty"><h2>{t("missing.title", { run: runName.value })}</h2><p>{problem.value?.message}</p><a class="button" href={link(["runs"])}>{t("page.runs")}</a></div>;
}

/** Pages about things that lie still; they need no run. */
const HELD: [string, string[], IconName][] = [["dumps", ["dumps"], "dumps"], ["comparison", ["compare", "dumps"], "comparison"], ["ckpt", ["ckpt"], "ckpt"]];

function held(first: string | undefined, sub: string): string {
  if (first === "compare") return place.value.path[1] === "dumps" ? "comparison" : "";
  return sub === "dumps" || first === "dumps" ? "dumps" : first === "ckpt" ? "ckpt" : "";
}

function Rail({ sub }: { sub: string }) {
  const run = runName.value;
  const first = place.value.path[0] ?? "runs";
  return (
    <nav class="rail" aria-label={t("rail")}>
      <a class="mark" href={link(["runs"])} title="misstep" aria-label="misstep"><Icon name="mark" /></a>
      <a href={link(["runs"])} aria-current={first === "runs" && !sub ? "page" : undefined} title={t("page.runs")} aria-label={t("page.runs")}><Icon name="runs" /></a>
      {SUB.map(([name, icon]) => {
        const title = said("page", name === "hist" ? "stats" : name);
        return run ? <a key={name} href={link(["runs", run, name], { rank: rank.value || null })} aria-current={sub === name ? "page" : undefined} title={title} aria-label={title}><Icon name={icon} /></a>
          : <a key={name} class="off" aria-disabled="true" role="link" title={title} aria-label={title}><Icon name={icon} /></a>;
      })}
      {HELD.map(([name, path, icon]) => <a key={name} href={link(name === "dumps" && run ? ["runs", run, "dumps"] : path)} aria-current={held(first, sub) === name ? "page" : undefined} title={said("page", name)} aria-label={said("page", name)}><Icon name={icon} /></a>)}
      <a class="bottom" href={link(["settings"])} aria-current={first === "settings" ? "page" : undefined} title={t("page.settings")} aria-label={t("page.settings")}><Icon name="settings" /></a>
    </nav>
  );
}

function Top({ sub }: { sub: string }) {
  const first = place.value.path[0];
  const run = runName.value;
  const still = held(first, sub);
  const title = still ? said("page", still) : first === "compare" ? t("page.compare") : first === "settings" ? t("page.settings") : sub ? said("page", sub === "hist" ? "stats" : sub) : t("page.runs");
  const brief = runs.value.get(run);
  useSignalEffect(() => {
    document.title = `${runName.value ? `${runName.value} · ` : ""}misstep`;
  });
  return (
    <header class="top">
      <h1>{title}</h1>
      {run && (
        <label class="field"><span class="hidden-visually">{t("top.run")}</span>
          <select aria-label={t("top.run")} value={run} onChange={(event) => go(["runs", event.currentTarget.value, sub])}>
            {!brief && <option>{run}</option>}
            {[...runs.value.values()].sort((a, b) => b.started - a.started).slice(0, 200).map((one) => <option key={one.run} value={one.run}>{one.run}</option>)}
          </select>
        </label>
      )}
      {brief && <StateMark brief={{ ...brief, phase: state.value?.phase ?? brief.phase }} />}
      {run && isLive.value && lastStep.value && <span class="dim mono nowrap">{t("control.loss")} {shown(lastStep.value.loss)} · {seconds(lastStep.value.seconds)}</span>}
      <div class="right-side">
        <button onClick={() => (paletteOpen.value = true)} title={`${t("palette.title")} (Ctrl+K)`}><Icon name="search" /><span class="dim">{t("palette.short")}</span> <kbd>Ctrl+K</kbd></button>
        <LinkMark />
        <button onClick={otherLang} title={t("keys.lang")} lang={lang.value === "en" ? "zh" : "en"}>{lang.value === "en" ? "中文" : "EN"}</button>
        <button onClick={nextTheme} title={`${t("keys.theme")}: ${said("theme", theme.value)}`} aria-label={t("keys.theme")}><Icon name="sun" /></button>
        <button onClick={() => (dialog.value = "help")} title={`${t("help.title")} (?)`} aria-label={t("help.title")}><Icon name="help" /></button>
      </div>
    </header>
  );
}

function LinkMark() {
  const open = connection.value.link === "open";
  return <span class={`row nowrap ${open ? "tone-ok" : "tone-warning"}`} style={{ gap: "4px" }} data-test="link" data-link={connection.value.link}><Icon name={open ? "circle" : "lost"} /><span>{said("link", connection.value.link)}</span></span>;
}

const now = signal(Date.now());
setInterval(() => (now.value = Date.now()), 1000);
const QUIET_MS = 2000;

function Banners() {
  const { link: how, since, why, lastNews } = connection.value;
  useAlerts();
  const phase = state.value?.phase;
  if (how === "refused") return <div class="banner error" role="alert" data-test="banner"><Icon name="lost" />{/token|site|name/.test(why) ? t("banner.denied") : t("banner.version", { why })}</div>;
  if (since && now.value - since > QUIET_MS) {
    return (
      <div class="banner" role="status" data-test="banner"><Icon name="lost" />{t("banner.lost", { time: lastNews ? clock(new Date(lastNews)) : "–" })}
        <button onClick={() => socket.connect()}>{t("banner.retry")}</button></div>
    );
  }
  if (runName.value && phase === "lost" && place.value.path[2] !== "crash") return <div class="banner error" role="status" data-test="banner"><Icon name="lost" />{t("banner.process")}<RecordLink always /></div>;
  const code = detail.value?.exit_code;
  if (runName.value && runsKnown.value && runs.value.get(runName.value)?.state === "failed" && (place.value.path[2] ?? "debug") === "debug") {
    return <div class="banner info" role="status" data-test="banner"><Icon name="cross" />{t("banner.failed", { code: code ?? "–" })}<RecordLink /></div>;
  }
  return null;
}

/** To the flight record; `always` when it may still be on its way, or can be made there. */
function RecordLink({ always = false }: { always?: boolean }) {
  const records = detail.value?.records ?? [];
  if (!records.length && !always) return null;
  return <a class="button" data-test="to-record" href={link(["runs", runName.value, "crash"])}><Icon name="crash" />{t("banner.openRecord")}</a>;
}

let told = 0;

function useAlerts(): void {
  useSignalEffect(() => {
    for (const alert of alerts.value) {
      if (alert.at <= told) continue;
      told = alert.at;
      toast(alert.severity, alert.text, alert.run);
    }
  });
}

function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((one) => (
        <div key={one.id} class={`toast ${one.tone}`} data-test="toast"><div class="grow"><div>{one.text}</div>{one.details && <div class="dim mono wrap-anywhere">{one.details}</div>}</div>
          <button class="plain" aria-label={t("close")} onClick={() => dismiss(one.id)}><Icon name="cross" /></button></div>
      ))}
    </div>
  );
}
