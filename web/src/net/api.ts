// Asking the hub over HTTP: JSON with errors that carry a code, and tensors as raw bytes behind a JSON header.
import { api, type QueryValue, ROOT } from "../base";
import type { Failure, Unavailable } from "../types.gen";

/** The hub refused, or could not be reached. */
export class HubError extends Error {
  readonly code: string;
  readonly status: number;
  readonly reason: string;

  constructor(status: number, code: string, text: string, reason = "") {
    super(text);
    this.status = status;
    this.code = code;
    this.reason = reason;
  }
}

/** The token comes in the URL's fragment, which browsers send to nobody; from here on it is a cookie. */
export async function enter(): Promise<void> {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  history.replaceState(history.state, "", location.pathname + location.search);
  await fetch(`${ROOT}api/v1/session`, { method: "POST", headers: { "x-misstep-token": token } });
}

export async function ask<T>(path: string, query: Record<string, QueryValue> = {}, signal?: AbortSignal): Promise<T> {
  const answer = await request(api(path, query), { signal });
  return (await answer.json()) as T;
}

/** The answer as text, for what is read somewhere else too. */
export async function askText(path: string, query: Record<string, QueryValue> = {}): Promise<string> {
  return (await request(api(path, query), {})).text();
}

export async function post<T>(path: string, body: unknown): Promise<T> {
  const answer = await request(api(path), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return (await answer.json()) as T;
}

export interface Binary<H> {
  header: H;
  data: ArrayBuffer;
}

/** A tile of a tensor or of a comparison. */
export async function askBinary<H>(
  path: string,
  query: Record<string, QueryValue>,
  signal?: AbortSignal,
): Promise<Binary<H>> {
  const answer = await request(api(path, query), { signal });
  return unframe<H>(await answer.arrayBuffer());
}

/** u32 header length, JSON header, raw bytes. */
export function unframe<H>(frame: ArrayBuffer): Binary<H> {
  const length = new DataView(frame).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(frame, 4, length))) as H;
  return { header, data: frame.slice(4 + length) };
}

async function request(url: string, init: RequestInit): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(url, init);
  } catch (error) {
    if ((error as Error).name === "AbortError") throw error;
    throw new HubError(0, "unreachable", String((error as Error).message));
  }
  if (answer.ok) return answer;
  let told: Partial<Failure & Unavailable> = {};
  try {
    told = (await answer.json()) as Partial<Failure & Unavailable>;
  } catch {
    // Not ours: a proxy's page. The status says enough.
  }
  throw new HubError(answer.status, told.code ?? "failed", told.text ?? answer.statusText, told.reason ?? "");
}
