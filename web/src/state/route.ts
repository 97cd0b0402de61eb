// The address bar is the state: every page, node, slice and camera is in it, so that a link opens exactly this view.
// A new page, node or hit is a step back in the browser's history; a slice or a camera replaces the last one.
import { computed, signal } from "@preact/signals";
import { ROOT } from "../base";

export type Query = Record<string, string>;
export interface Place {
  path: string[];
  query: Query;
}

const STICKY = ["test"]; // survives navigation, so that a test keeps its eyes
const REPLACE_MS = 300;

export const place = signal<Place>(read());
export const page = computed(() => place.value.path[0] ?? "runs");
export const query = computed(() => place.value.query);

let replacing: ReturnType<typeof setTimeout> | undefined;

function read(): Place {
  if (typeof location === "undefined") return { path: [], query: {} };
  const inside = location.pathname.startsWith(ROOT) ? location.pathname.slice(ROOT.length) : "";
  return {
    path: inside.split("/").filter(Boolean).map(decodeURIComponent),
    query: Object.fromEntries(new URLSearchParams(location.search)),
  };
}

export function link(path: string[], asked: Record<string, string | number | null | undefined> = {}): string {
  const query: Query = {};
  for (const name of STICKY) if (place.peek().query[name]) query[name] = place.peek().query[name];
  for (const [name, value] of Object.entries(asked)) {
    if (value !== undefined && value !== null && value !== "") query[name] = String(value);
  }
  const text = queryText(query);
  return ROOT + path.map(encodeURIComponent).join("/") + (text ? `?${text}` : "");
}

/** Readable in the address bar: only what must be escaped is. */
export function queryText(query: Query): string {
  const plain = (text: string): string =>
    encodeURIComponent(text)
      .replace(/%(2F|3A|2C|40|3B|5B|5D|24)/gi, (mark) => decodeURIComponent(mark))
      .replace(/%20/g, "+");
  return Object.entries(query)
    .map(([name, value]) => `${encodeURIComponent(name)}=${plain(value)}`)
    .join("&");
}

/** Go to another page. */
export function go(path: string[], asked: Record<string, string | number | null | undefined> = {}): void {
  flush();
  history.pushState(null, "", link(path, asked));
  place.value = read();
}

/** Change a part of this view; null or empty takes it away. `push`: worth a step in the history. */
export function change(patch: Record<string, string | number | null | undefined>, push = false): void {
  const query = { ...place.peek().query };
  for (const [name, value] of Object.entries(patch)) {
    if (value === undefined || value === null || value === "") delete query[name];
    else query[name] = String(value);
  }
  if (queryText(query) === queryText(place.peek().query)) return;
  if (push) flush();
  place.value = { path: place.peek().path, query };
  if (push) history.pushState(null, "", here());
  else {
    clearTimeout(replacing);
    replacing = setTimeout(flush, REPLACE_MS);
  }
}

function here(): string {
  const { path, query } = place.peek();
  const text = queryText(query);
  return ROOT + path.map(encodeURIComponent).join("/") + (text ? `?${text}` : "");
}

function flush(): void {
  if (replacing === undefined) return;
  clearTimeout(replacing);
  replacing = undefined;
  history.replaceState(null, "", here());
}

/** The address of this view as it is now, for "copy link". */
export function currentLink(): string {
  return new URL(here(), location.href).href;
}

if (typeof window !== "undefined") {
  addEventListener("popstate", () => {
    clearTimeout(replacing);
    replacing = undefined;
    place.value = read();
  });
  addEventListener("pagehide", flush);
  // Plain clicks on our own links stay in the page; everything else is the browser's.
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    const anchor = (event.target as Element | null)?.closest?.("a[href]") as HTMLAnchorElement | null;
    if (!anchor || anchor.target || anchor.hasAttribute("download") || anchor.origin !== location.origin) return;
    if (!anchor.pathname.startsWith(ROOT) || anchor.pathname.startsWith(`${ROOT}api/`)) return;
    event.preventDefault();
    flush();
    history.pushState(null, "", anchor.href);
    place.value = read();
  });
}
