// Ctrl+K: go anywhere and do anything by typing a few letters of it; also finds nodes of the run on the page.
import { signal, useComputed, useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { copy } from "../debug/nodemenu";
import { t } from "../i18n";
import { chooseNode, walkHits } from "../state/debug";
import { runs } from "../state/live";
import { nextTheme, otherLang } from "../state/prefs";
import { currentLink, go } from "../state/route";
import { command, graph, isLive, noControl, runName, state } from "../state/run";
import { confirmTerminate, dialog, Veil } from "./dialogs";
import { Icon, type IconName } from "./icons";

export const paletteOpen = signal(false);

interface Action {
  icon: IconName;
  text: string;
  key?: string;
  act: () => void;
}

function actions(): Action[] {
  const list: Action[] = [{ icon: "runs", text: t("page.runs"), key: "G R", act: () => go(["runs"]) }];
  const name = runName.value;
  if (name) {
    list.push(
      { icon: "debug", text: t("page.debug"), key: "G D", act: () => go(["runs", name, "debug"]) },
      { icon: "scalars", text: t("page.scalars"), key: "G S", act: () => go(["runs", name, "scalars"]) },
      { icon: "stats", text: t("page.stats"), key: "G H", act: () => go(["runs", name, "hist"]) },
      { icon: "ranks", text: t("page.ranks"), key: "G K", act: () => go(["runs", name, "ranks"]) },
      { icon: "crash", text: t("page.crash"), key: "G C", act: () => go(["runs", name, "crash"]) },
      { icon: "star", text: t("keys.hits"), key: "J", act: () => walkHits(1) },
      { icon: "link", text: t("copyLink"), act: () => void copy(currentLink()) },
    );
  }
  list.push(
    { icon: "dumps", text: t("page.dumps"), key: "G U", act: () => go(name ? ["runs", name, "dumps"] : ["dumps"]) },
    { icon: "comparison", text: t("page.comparison"), key: "G X", act: () => go(["compare", "dumps"]) },
    { icon: "ckpt", text: t("page.ckpt"), key: "G W", act: () => go(["ckpt"]) },
  );
  if (isLive.value && !noControl.value) {
    const paused = state.value?.phase === "paused";
    list.push(
      paused
        ? { icon: "play", text: t("control.continue"), key: "F8", act: () => void command("continue") }
        : { icon: "pause", text: t("control.pause"), key: "F8", act: () => void command("pause") },
      { icon: "next", text: t("control.next"), key: "F10", act: () => void command("next") },
      { icon: "step", text: t("control.step"), key: "F6", act: () => void command("step", { count: 1 }) },
      { icon: "detach", text: t("control.detach"), act: () => void command("detach") },
      { icon: "stop", text: t("control.terminate"), act: confirmTerminate },
    );
  }
  list.push(
    { icon: "sun", text: t("keys.theme"), key: "T", act: nextTheme },
    { icon: "settings", text: t("keys.lang"), key: "L", act: otherLang },
    { icon: "settings", text: t("page.settings"), act: () => go(["settings"]) },
    { icon: "help", text: t("help.title"), key: "?", act: () => (dialog.value = "help") },
  );
  return list;
}

export function Palette() {
  const typed = useSignal("");
  const at = useSignal(0);
  const list = useRef<HTMLUListElement>(null);
  const found = useComputed<Action[]>(() => {
    const words = typed.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (text: string): boolean => words.every((word) => text.toLowerCase().includes(word));
    const out = actions().filter((one) => fits(one.text));
    if (words.length) {
      for (const name of runs.value.keys())
        if (fits(name) && out.length < 30)
          out.push({ icon: "runs", text: name, act: () => go(["runs", name, "debug"]) });
      const model = graph.value;
      if (model)
        for (let item = 1; item < model.count && out.length < 40; item += 1) {
          if (fits(model.key[item]))
            out.push({
              icon: "debug",
              text: model.key[item],
              act: () =>
                runName.peek() && location.pathname.endsWith("/debug")
                  ? chooseNode(model.key[item])
                  : go(["runs", runName.peek(), "debug"], { node: model.key[item] }),
            });
        }
    }
    return out;
  });
  if (!paletteOpen.value) return null;
  const close = (): void => {
    paletteOpen.value = false;
    typed.value = "";
    at.value = 0;
  };
  const run = (one: Action | undefined): void => {
    close();
    one?.act();
  };
  const key = (event: KeyboardEvent): void => {
    if (event.isComposing) return;
    if (event.key === "Enter") run(found.value[at.value]);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      at.value = Math.min(found.value.length - 1, Math.max(0, at.value + (event.key === "ArrowDown" ? 1 : -1)));
      list.current?.children[at.value]?.scrollIntoView({ block: "nearest" });
    }
  };
  return (
    <Veil close={close} label={t("palette.title")} wide>
      <input
        data-focus
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={`palette-${at.value}`}
        placeholder={t("palette.hint")}
        aria-label={t("palette.title")}
        value={typed.value}
        onInput={(event) => {
          typed.value = event.currentTarget.value;
          at.value = 0;
        }}
        onKeyDown={key}
      />
      <ul id="palette-list" role="listbox" aria-label={t("palette.title")} ref={list}>
        {found.value.map((one, index) => (
          <li
            key={`${one.icon}${one.text}`}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === at.value}
            onClick={() => run(one)}
            onPointerMove={() => (at.value = index)}
          >
            <Icon name={one.icon} />
            <span class="cut">{one.text}</span>
            {one.key && (
              <span class="key">
                <kbd>{one.key}</kbd>
              </span>
            )}
          </li>
        ))}
      </ul>
    </Veil>
  );
}
