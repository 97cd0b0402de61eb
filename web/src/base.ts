// Where the page lives: the server writes a <base>, so that everything works below any path prefix.

/** The path below which the page was served, ending in a slash. */
export const ROOT: string = typeof document === "undefined" ? "/" : new URL(".", document.baseURI).pathname;

/** An address of the hub's API. */
export function api(path: string, query: Record<string, QueryValue> = {}): string {
  const parts: string[] = [];
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null || value === "") continue;
    for (const one of Array.isArray(value) ? value : [value]) parts.push(`${name}=${encodeURIComponent(String(one))}`);
  }
  return `${ROOT}api/v1/${path}${parts.length ? `?${parts.join("&")}` : ""}`;
}

export type QueryValue = string | number | boolean | null | undefined | (string | number)[];

/** The address of the live socket. */
export function socketUrl(): string {
  return `${location.protocol === "https:" ? "wss:" : "ws:"}//${location.host}${ROOT}api/v1/live`;
}

/** `?test=1`: the page shows its insides to the browser tests. */
export const TESTING = typeof location !== "undefined" && new URLSearchParams(location.search).get("test") === "1";

/** What tests may look at; a no-op for everybody else. */
export function expose(name: string, value: unknown): void {
  if (!TESTING) return;
  const all = window as unknown as { __misstep?: Record<string, unknown> };
  (all.__misstep ??= {})[name] = value;
}
