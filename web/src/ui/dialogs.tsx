// The two questions that stop a person: end training, and what are the keys. Focus starts on the harmless button.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { t } from "../i18n";
import { command, runName } from "../state/run";
import { KEYS } from "./keylist";

export const dialog = signal<"terminate" | "help" | null>(null);

export function confirmTerminate(): void {
  dialog.value = "terminate";
}

export function Veil({
  close,
  label,
  children,
  wide,
}: {
  close: () => void;
  label: string;
  children: ComponentChildren;
  wide?: boolean;
}) {
  const own = useRef<HTMLDivElement>(null);
  // Before the frame is painted: a key pressed in between would still go to the button that opened the question.
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    (own.current?.querySelector<HTMLElement>("[data-focus]") ?? own.current)?.focus();
    return () => before?.focus?.();
  }, []);
  const key = (event: KeyboardEvent): void => {
    if (event.key === "Escape") close();
    if (event.key === "Tab") trap(event, own.current);
    event.stopPropagation();
  };
  return (
    <div
      class="veil"
      onPointerDown={(event) => {
        if (event.target === event.currentTarget) close();
      }}
    >
      <div
        class={`dialog${wide ? " palette" : ""}`}
        role="dialog"
        aria-modal="true"
        aria-label={label}
        ref={own}
        tabIndex={-1}
        onKeyDown={key}
      >
        {children}
      </div>
    </div>
  );
}

function trap(event: KeyboardEvent, within: HTMLElement | null): void {
  const all = [...(within?.querySelectorAll<HTMLElement>("button, input, select, a[href]") ?? [])];
  const at = all.indexOf(document.activeElement as HTMLElement);
  const next = event.shiftKey ? at - 1 : at + 1;
  if (next >= 0 && next < all.length) return;
  event.preventDefault();
  all[event.shiftKey ? all.length - 1 : 0]?.focus();
}

export function Dialogs() {
  if (dialog.value === "terminate") return <Terminate />;
  return dialog.value === "help" ? <Help /> : null;
}

function Terminate() {
  const close = (): void => void (dialog.value = null);
  return (
    <Veil close={close} label={t("terminate.title")}>
      <header>
        <h2>{t("terminate.title")}</h2>
      </header>
      <div class="body">
        <p>{t("terminate.text", { run: runName.value })}</p>
      </div>
      <footer>
        <button data-focus onClick={close}>
          {t("cancel")}
        </button>
        <button
          class="danger"
          onClick={() => {
            close();
            void command("terminate");
          }}
          data-test="terminate-yes"
        >
          {t("terminate.yes")}
        </button>
      </footer>
    </Veil>
  );
}

function Help() {
  const close = (): void => void (dialog.value = null);
  return (
    <Veil close={close} label={t("help.title")}>
      <header>
        <h2>{t("help.title")}</h2>
      </header>
      <div class="body">
        <dl class="key-table">
          {KEYS.map(([keys, words]) => [
            <dt key={keys}>
              {keys.split(" ").map((one) => (
                <kbd key={one}>{one}</kbd>
              ))}
            </dt>,
            <dd key={words}>{t(words)}</dd>,
          ])}
        </dl>
      </div>
      <footer>
        <button data-focus onClick={close}>
          {t("close")}
        </button>
      </footer>
    </Veil>
  );
}
