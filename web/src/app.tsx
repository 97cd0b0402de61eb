// The shell: rail, top bar, banners, the page the address names, and what floats above it.
import { signal, useSignalEffect } from "@preact/signals";
import { RankPicker, sentence } from "./debug/control";
import { count, seconds, shown } from "./format/number";
import { clock } from "./format/time";
import { knows, lang, said, t } from "./i18n";
import { PAGES, type PageEntry, pageAt } from "./pages/registry";
import { RunsPage } from "./pages/runs";
import { alerts, connection, denied, newest, runs, runsKnown, socket } from "./state/live";
import { nextTheme, otherLang, theme } from "./state/prefs";
import { go, link, place } from "./state/route";
import { detail, isLive, lastStep, problem, rank, runName, state } from "./state/run";
import { dismiss, toast, toasts } from "./state/toasts";
import { verdict, verdictKnown } from "./state/verdict";
import type { RunBrief } from "./types.gen";
import { Command } from "./ui/card";
import { Dialogs, dialog } from "./ui/dialogs";
import { Icon, type IconName } from "./ui/icons";
import { PhaseMark, StateMark } from "./ui/marks";
import { Menu } from "./ui/menu";
import { Palette, paletteOpen } from "./ui/palette";

export function App() {
  const entry = pageAt(place.value.path);
  return (
    <div class="shell">
      <Rail entry={entry} />
      <Top entry={entry} />
      <main class="page">
        <Banners />
        <Shown entry={entry} />
      </main>
      <Toasts />
      <Menu />
      <Dialogs />
      <Palette />
    </div>
  );
}

function Shown({ entry }: { entry: PageEntry | undefined }) {
  if (denied.value) return <Denied />;
  if (problem.value) return <Missing />;
  const Page = entry?.Page ?? RunsPage;
  return <Page />;
}

/** No cookie, or one of another hub: how to get a link that opens. */
function Denied() {
  return (
    <div class="empty" data-test="denied">
      <h2>{t("denied.title")}</h2>
      <p>{t("denied.text")}</p>
      <Command text="misstep ui --open" />
      <p>{t("denied.again")}</p>
    </div>
  );
}

function Missing() {
  return (
    <div class="empty">
      <h2>{t("missing.title", { run: runName.value })}</h2>
      <p>{problem.value?.message}</p>
      <a class="button" href={link(["runs"])}>
        {t("page.runs")}
      </a>
    </div>
  );
}

function Rail({ entry }: { entry: PageEntry | undefined }) {
  const run = runName.value;
  return (
    <nav class="rail" aria-label={t("rail")}>
      <a class="mark" href={link(["runs"])} title="misstep" aria-label="misstep">
        <Icon name="mark" />
      </a>
      <RailLink name="runs" icon="runs" href={link(["runs"])} here={!entry} />
      {PAGES.map((one) => (
        <RailLink
          key={one.name}
          name={one.name}
          icon={one.icon}
          href={railTo(one, run)}
          here={entry?.name === one.name}
        />
      ))}
      <RailLink
        name="settings"
        icon="settings"
        href={link(["settings"])}
        here={entry?.name === "settings"}
        class="bottom"
      />
    </nav>
  );
}

function railTo(one: PageEntry, run: string): string | undefined {
  if (one.of === "run") return run ? link(["runs", run, one.name], { rank: rank.value || null }) : undefined;
  return link(one.name === "dumps" && run ? ["runs", run, "dumps"] : (one.path ?? [one.name]));
}

function RailLink(props: { name: string; icon: IconName; href: string | undefined; here: boolean; class?: string }) {
  const { name, icon, href, here } = props;
  const title = said("page", name === "hist" ? "stats" : name);
  const inner = (
    <>
      <Icon name={icon} />
      <span>{knows("rail", name) ? said("rail", name) : title}</span>
    </>
  );
  return href ? (
    <a
      href={href}
      class={props.class}
      aria-current={here ? "page" : undefined}
      title={title}
      onPointerEnter={() => prefetch(name)}
    >
      {inner}
    </a>
  ) : (
    <a class="off" aria-disabled="true" role="link" title={t("rail.needsRun", { page: title })}>
      {inner}
    </a>
  );
}

/** The script of a page is fetched when the pointer comes near it. */
function prefetch(name: string): void {
  const page = PAGES.find((one) => one.name === name)?.Page as { load?: () => void } | undefined;
  page?.load?.();
}

function Top({ entry }: { entry: PageEntry | undefined }) {
  const run = runName.value;
  const title = entry ? said("page", entry.name === "hist" ? "stats" : entry.name) : t("page.runs");
  const brief = runs.value.get(run);
  useSignalEffect(() => {
    document.title = `${runName.value ? `${runName.value} · ` : ""}misstep`;
  });
  return (
    <header class="top">
      <h1>{title}</h1>
      {run && <RunPicker run={run} page={entry?.name ?? "debug"} known={brief !== undefined} />}
      {entry?.name === "debug" && <RankPicker />}
      <Standing brief={brief} debugging={entry?.name === "debug"} />
      {run && isLive.value && lastStep.value && (
        <span class="dim mono nowrap live-step" data-test="live-step">
          {t("step")} {count(lastStep.value.step)} · {t("control.loss")} {shown(lastStep.value.loss)} ·{" "}
          {seconds(lastStep.value.seconds)}
        </span>
      )}
      <div class="right-side">
        <button onClick={() => (paletteOpen.value = true)} title={`${t("palette.title")} (Ctrl+K)`}>
          <Icon name="search" />
          <span class="dim wide-only">{t("palette.short")}</span> <kbd class="wide-only">Ctrl+K</kbd>
        </button>
        <LinkMark />
        <button onClick={otherLang} title={t("keys.lang")} lang={lang.value === "en" ? "zh" : "en"}>
          {lang.value === "en" ? "中文" : "EN"}
        </button>
        <button
          onClick={nextTheme}
          title={`${t("keys.theme")}: ${said("theme", theme.value)}`}
          aria-label={t("keys.theme")}
        >
          <Icon name="sun" />
        </button>
        <button onClick={() => (dialog.value = "help")} title={`${t("help.title")} (?)`} aria-label={t("help.title")}>
          <Icon name="help" />
        </button>
      </div>
    </header>
  );
}

/** How the run is, said once: where a live one stands and why, how a finished one ended. */
function Standing({ brief, debugging }: { brief: RunBrief | undefined; debugging: boolean }) {
  const now = state.value;
  if (now && debugging && isLive.value) return <PhaseMark phase={now.phase} text={sentence(now)} />;
  if (!brief) return null;
  return <StateMark brief={{ ...brief, phase: now?.phase ?? brief.phase }} step={verdict.value?.step} pill />;
}

function RunPicker({ run, page, known }: { run: string; page: string; known: boolean }) {
  return (
    <label class="field run-picker">
      <span class="hidden-visually">{t("top.run")}</span>
      <select aria-label={t("top.run")} value={run} onChange={(event) => go(["runs", event.currentTarget.value, page])}>
        {!known && <option>{run}</option>}
        {newest.value.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

function LinkMark() {
  const open = connection.value.link === "open";
  return (
    <span
      class={`row nowrap ${open ? "tone-ok" : "tone-warning"}`}
      style={{ gap: "4px" }}
      data-test="link"
      data-link={connection.value.link}
    >
      <Icon name={open ? "circle" : "lost"} />
      <span>{said("link", connection.value.link)}</span>
    </span>
  );
}

const now = signal(Date.now());
setInterval(() => (now.value = Date.now()), 1000);
const QUIET_MS = 2000;

function Banners() {
  const { link: how, since, why, lastNews } = connection.value;
  useAlerts();
  const phase = state.value?.phase;
  if (how === "refused")
    return (
      <div class="banner error" role="alert" data-test="banner">
        <Icon name="lost" />
        {/token|site|name/.test(why) ? t("banner.denied") : t("banner.version", { why })}
      </div>
    );
  if (since && now.value - since > QUIET_MS) {
    return (
      <div class="banner" role="status" data-test="banner">
        <Icon name="lost" />
        {t("banner.lost", { time: lastNews ? clock(new Date(lastNews)) : "–" })}
        <button onClick={() => socket.connect()}>{t("banner.retry")}</button>
      </div>
    );
  }
  if (runName.value && phase === "lost" && place.value.path[2] !== "crash")
    return (
      <div class="banner error" role="status" data-test="banner">
        <Icon name="lost" />
        {t("banner.process")}
        <RecordLink always />
      </div>
    );
  const code = detail.value?.exit_code;
  if (
    runName.value &&
    runsKnown.value &&
    runs.value.get(runName.value)?.state === "failed" &&
    (place.value.path[2] ?? "debug") === "debug" &&
    verdictKnown.value &&
    !verdict.value
  ) {
    return (
      <div class="banner info" role="status" data-test="banner">
        <Icon name="cross" />
        {t("banner.failed", { code: code ?? "–" })}
        <RecordLink />
      </div>
    );
  }
  return null;
}

/** To the flight record; `always` when it may still be on its way, or can be made there. */
function RecordLink({ always = false }: { always?: boolean }) {
  const records = detail.value?.records ?? [];
  if (!records.length && !always) return null;
  return (
    <a class="button" data-test="to-record" href={link(["runs", runName.value, "crash"])}>
      <Icon name="crash" />
      {t("banner.openRecord")}
    </a>
  );
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
        <div key={one.id} class={`toast ${one.tone}`} data-test="toast">
          <div class="grow">
            <div>{one.text}</div>
            {one.details && <div class="dim mono wrap-anywhere">{one.details}</div>}
          </div>
          <button class="plain" aria-label={t("close")} onClick={() => dismiss(one.id)}>
            <Icon name="cross" />
          </button>
        </div>
      ))}
    </div>
  );
}
