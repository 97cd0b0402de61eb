// The watchpoints: what is asked of which tensors, switched on and off, counted; the editor opens in place.
import { count, shown } from "../format/number";
import { knows, said, t } from "../i18n";
import { activeWatch, editing, editorStart } from "../state/debug";
import { change } from "../state/route";
import { edit, noControl, watchpoints } from "../state/run";
import type { WatchpointView } from "../types.gen";
import { Icon } from "../ui/icons";
import { WatchEditor } from "./watcheditor";

export function WatchPanel() {
  const start = (): void => {
    editorStart.value = null;
    editing.value = "new";
  };
  return (
    <section class="panel watch-panel" aria-label={t("watch.title")}>
      <header>
        <h2>{t("watch.title")}</h2>
        <span class="grow" />
        <button
          class="plain"
          title={noControl.value || t("watch.recommend")}
          disabled={noControl.value !== ""}
          onClick={() => void edit("recommend")}
        >
          <Icon name="star" />
          <span class="hidden-visually">{t("watch.recommend")}</span>
        </button>
        <button
          class="plain"
          title={noControl.value || t("watch.add")}
          disabled={noControl.value !== ""}
          onClick={start}
          data-test="watch-add"
        >
          <Icon name="plus" />
          <span class="hidden-visually">{t("watch.add")}</span>
        </button>
      </header>
      <div class="scroll grow">
        {editing.value === "new" && <WatchEditor key="new" watch={null} />}
        {watchpoints.value.map((watch) =>
          editing.value === watch.id ? (
            <WatchEditor key={watch.id} watch={watch} />
          ) : (
            <WatchLine key={watch.id} watch={watch} />
          ),
        )}
        {!watchpoints.value.length && editing.value !== "new" && <p class="pad dim">{t("watch.none")}</p>}
      </div>
    </section>
  );
}

function WatchLine({ watch }: { watch: WatchpointView }) {
  const off = noControl.value !== "";
  const active = activeWatch.value === watch.id;
  const title = watchTitle(watch);
  const limits = Object.entries(watch.parameters)
    .map(([name, value]) => `${name} ${typeof value === "boolean" ? value : shown(value)}`)
    .join(", ");
  return (
    <div
      class={`watch-line${active ? " chosen" : ""}`}
      title={[watch.name, limits, watch.on.join(" "), watch.note].filter(Boolean).join("\n")}
    >
      <input
        type="checkbox"
        checked={watch.enabled}
        disabled={off}
        aria-label={t("watch.enable", { n: watch.id })}
        onChange={() => void edit(watch.enabled ? "disable" : "enable", { watchpoint: watch.id })}
      />
      <button
        class="plain name cut"
        aria-pressed={active}
        onClick={() => change({ wp: active ? null : watch.id })}
        title={t("watch.activate")}
      >
        <span class="dim mono">#{watch.id}</span> <span class="cut">{title}</span>
      </button>
      {watch.then !== "note" && <span class="chip">{said("action", watch.then)}</span>}
      <span class={`mono number ${watch.hits ? "tone-error" : "dim"}`} title={t("watch.hits")}>
        {count(watch.hits)}
      </span>
      <button class="plain" disabled={off} title={t("watch.edit")} onClick={() => (editing.value = watch.id)}>
        <Icon name="settings" />
        <span class="hidden-visually">{t("watch.edit")}</span>
      </button>
      <button
        class="plain"
        disabled={off}
        title={t("watch.remove")}
        onClick={() => void edit("remove", { watchpoint: watch.id })}
      >
        <Icon name="cross" />
        <span class="hidden-visually">{t("watch.remove")}</span>
      </button>
    </div>
  );
}

export function watchTitle(watch: { condition: string }): string {
  return knows("condition", watch.condition) ? said("condition", watch.condition) : watch.condition;
}
