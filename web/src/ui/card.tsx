// Parts every page is made of: a card with a headline and its evidence, a figure, a command to copy, and what is shown
// while something is on its way.
import type { ComponentChildren } from "preact";
import { copy } from "../debug/nodemenu";
import { t } from "../i18n";
import { Icon } from "./icons";

export type CardTone = "nan" | "inf" | "error" | "warning" | "ok" | "info" | "dim";

/** The answer first: a headline, what speaks for it, and what can be done, at the right. */
export function Card({
  tone,
  title,
  children,
  actions,
  test,
}: {
  tone: CardTone;
  title: ComponentChildren;
  children?: ComponentChildren;
  actions?: ComponentChildren;
  test?: string;
}) {
  return (
    <section class={`answer answer-${tone}`} data-test={test}>
      <div class="answer-body">
        <h2 class="answer-title">{title}</h2>
        {children}
      </div>
      {actions && <div class="answer-actions">{actions}</div>}
    </section>
  );
}

/** A number that matters, with its name below it. */
export function Figure({ name, value, note }: { name: string; value: ComponentChildren; note?: ComponentChildren }) {
  return (
    <div class="figure">
      <div class="figure-value mono">{value}</div>
      <div class="figure-name">{name}</div>
      {note && <div class="dim">{note}</div>}
    </div>
  );
}

/** A command line with its button to copy it. */
export function Command({ text }: { text: string }) {
  return (
    <div class="command row">
      <code class="grow">$ {text}</code>
      <button class="plain" title={t("found.copy")} onClick={() => void copy(text)}>
        <Icon name="copy" />
        <span class="hidden-visually">{t("found.copy")}</span>
      </button>
    </div>
  );
}

/** Grey bars where rows will be: something is on its way, and nothing is said yet. */
export function Skeleton({ rows = 4 }: { rows?: number }) {
  return (
    <div class="skeleton" aria-hidden="true" data-test="skeleton">
      {Array.from({ length: rows }, (_, at) => (
        <span key={at} style={{ width: `${92 - ((at * 29) % 46)}%` }} />
      ))}
    </div>
  );
}

/** Nothing to show, and the command that would make something. */
export function Empty({ title, children, command }: { title: string; children?: ComponentChildren; command?: string }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
      {command && <Command text={command} />}
    </div>
  );
}
