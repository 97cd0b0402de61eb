// A page that is fetched when somebody goes there, so that the first load stays small.
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { t } from "../i18n";
import { Skeleton } from "./card";

export function lazy(load: () => Promise<ComponentType>): ComponentType {
  const loaded = signal<{ page: ComponentType } | null>(null);
  const failed = signal(false);
  let asked = false;
  const fetch = (): void => {
    asked = true;
    failed.value = false;
    load().then(
      (page) => (loaded.value = { page }),
      () => (failed.value = true),
    );
  };
  function Lazy() {
    if (!asked) fetch();
    if (failed.value)
      return (
        <div class="empty">
          <h2>{t("unavailable.unreachable")}</h2>
          <button onClick={fetch}>{t("banner.retry")}</button>
        </div>
      );
    const Page = loaded.value?.page;
    return Page ? (
      <Page />
    ) : (
      <div class="empty" data-test="loading">
        <Skeleton rows={6} />
        <span class="hidden-visually">{t("loading")}</span>
      </div>
    );
  }
  /** Fetch its script now: somebody is about to go there. */
  Lazy.load = (): void => {
    if (!asked) fetch();
  };
  return Lazy;
}
