// What people say of runs: tags, a note, a pin. Written into the run directories, so that a copied run takes them along.
import { signal, useSignal } from "@preact/signals";
import { t } from "../i18n";
import { runs } from "../state/live";
import type { RunBrief } from "../types.gen";
import { Veil } from "../ui/dialogs";
import { Icon } from "../ui/icons";
import { label, remove } from "./view";

const split = (text: string): string[] =>
  text
    .split(",")
    .map((one) => one.trim())
    .filter(Boolean);

/** Tags with a cross each, and a field for more. */
export function Tags({ of }: { of: RunBrief[] }) {
  const typed = useSignal("");
  const names = of.map((one) => one.run);
  const all = [...new Set(of.flatMap((one) => one.tags))];
  const known = [...new Set([...runs.value.values()].flatMap((one) => one.tags))].sort();
  const add = (): void => {
    if (split(typed.value).length) void label({ runs: names, add: split(typed.value) });
    typed.value = "";
  };
  return (
    <div class="row wrap tags" data-test="tags">
      {all.map((tag) => (
        <span key={tag} class="tag">
          {tag}
          <button
            class="plain tiny"
            aria-label={t("runs.untag", { tag })}
            onClick={() => void label({ runs: names, remove: [tag] })}
          >
            <Icon name="cross" />
          </button>
        </span>
      ))}
      <input
        value={typed.value}
        list="known-tags"
        placeholder={t("runs.addTag")}
        aria-label={t("runs.addTag")}
        onInput={(event) => (typed.value = event.currentTarget.value)}
        onChange={add}
        onKeyDown={(event) => event.key === "Enter" && !event.isComposing && add()}
      />
      <datalist id="known-tags">
        {known.map((tag) => (
          <option key={tag} value={tag} />
        ))}
      </datalist>
    </div>
  );
}

export function Note({ of }: { of: RunBrief }) {
  return (
    <textarea
      key={of.run}
      rows={2}
      defaultValue={of.note}
      placeholder={t("runs.addNote")}
      aria-label={t("runs.addNote")}
      onChange={(event) => void label({ runs: [of.run], note: event.currentTarget.value })}
    />
  );
}

export const asking = signal<"tags" | "delete" | null>(null);

export function RunDialogs({ names }: { names: string[] }) {
  const close = (): void => void (asking.value = null);
  if (asking.value === "tags")
    return (
      <Veil close={close} label={t("runs.tag")}>
        <header>
          <h2>{t("runs.tagMany", { n: names.length })}</h2>
        </header>
        <div class="body">
          <Tags of={names.map((name) => runs.value.get(name)).filter((one): one is RunBrief => one !== undefined)} />
        </div>
        <footer>
          <button data-focus onClick={close}>
            {t("close")}
          </button>
        </footer>
      </Veil>
    );
  if (asking.value !== "delete") return null;
  return (
    <Veil close={close} label={t("runs.delete")}>
      <header>
        <h2>{t("runs.deleteMany", { n: names.length })}</h2>
      </header>
      <div class="body">
        <p>{t("runs.deleteText")}</p>
        <p class="mono wrap-anywhere scroll" style={{ maxHeight: "160px" }}>
          {names.slice(0, 60).join("  ")}
          {names.length > 60 ? " …" : ""}
        </p>
      </div>
      <footer>
        <button data-focus onClick={close}>
          {t("cancel")}
        </button>
        <button
          class="danger"
          data-test="delete-yes"
          onClick={() => {
            close();
            void remove(names);
          }}
        >
          {t("runs.deleteYes")}
        </button>
      </footer>
    </Veil>
  );
}
