// The live socket: says hello, resumes where it was cut off, and never loses an event that matters.
//
//     connecting ──welcome──► open ──cut──► waiting 0.5 … 8 s ──► connecting (resume: session, seq)
//
// The number to resume from counts only events that are never superseded: a late curve point with a high number must
// not make us skip a hit with a lower one.
import { batch } from "@preact/signals";
import type { ClientMessage, ServerMessage, Subscribe, Welcome } from "../types.gen";

export type Link = "connecting" | "open" | "waiting" | "refused";

export interface Wire {
  send(text: string): void;
  close(): void;
  onopen: (() => void) | null;
  onclose: ((event: { code: number; reason: string }) => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
}

export interface SocketOptions {
  open: () => Wire;
  hear: (message: ServerMessage) => void;
  link: (link: Link, why: string) => void;
  /** Everything known may be out of date: the hub is a new one or the gap is too old. */
  renew: (welcome: Welcome | null) => void;
  proto: number;
  lang?: () => string;
  later?: (act: () => void, ms: number) => unknown;
  random?: () => number;
}

const SUPERSEDED = new Set(["step", "scalars", "graph", "run"]);
const FIRST_WAIT = 500;
const LONGEST_WAIT = 8000;

export class LiveSocket {
  session = "";
  seq = 0;
  private wire: Wire | null = null;
  private tries = 0;
  private ended = false;
  private counter = 0;
  private readonly wanted = new Map<string, Subscribe>();
  private readonly waiting = new Map<string, { yes: (message: ServerMessage) => void; no: (error: Error) => void }>();
  private readonly o: SocketOptions;

  constructor(options: SocketOptions) {
    this.o = options;
  }

  connect(): void {
    if (this.ended) return;
    this.o.link("connecting", "");
    const wire = this.o.open();
    this.wire = wire;
    wire.onopen = () => {
      const resume = this.session ? { session: this.session, seq: this.seq } : null;
      this.write({ t: "hello", proto: this.o.proto, lang: this.o.lang?.() ?? "", resume });
    };
    wire.onmessage = (event) => {
      if (wire !== this.wire || typeof event.data !== "string") return;
      const said = JSON.parse(event.data) as ServerMessage | ServerMessage[]; // an array when many were waiting
      batch(() => {
        for (const message of Array.isArray(said) ? said : [said]) this.heard(message);
      });
    };
    wire.onclose = (event) => {
      if (wire === this.wire) this.cut(event.code, event.reason);
    };
  }

  /** Which events to send; asked again after every reconnection. */
  subscribe(id: string, ch: string[], run = "", maxHz = 4): void {
    const wish: Subscribe = { t: "sub", id, ch, run, max_hz: maxHz };
    this.wanted.set(id, wish);
    if (this.session && this.wire) this.write(wish);
  }

  unsubscribe(id: string): void {
    if (this.wanted.delete(id)) this.write({ t: "unsub", id });
  }

  /** A command or an edit; answered by Ack or Nack, refused when the socket is cut before. */
  request(make: (id: string) => ClientMessage): Promise<ServerMessage> {
    const id = `c${(this.counter += 1)}`;
    return new Promise((yes, no) => {
      if (!this.wire || !this.session) {
        no(new Error("not connected"));
        return;
      }
      this.waiting.set(id, { yes, no });
      this.write(make(id));
    });
  }

  /** Cut the connection as a bad network would; it comes back by itself. For tests and for `reconnect now`. */
  drop(): void {
    this.tries = 0;
    this.wire?.close();
  }

  close(): void {
    this.ended = true;
    this.wire?.close();
  }

  private write(message: ClientMessage): void {
    try {
      this.wire?.send(JSON.stringify(message));
    } catch {
      // Closing at this moment: onclose follows and everything wanted is asked again.
    }
  }

  private heard(message: ServerMessage): void {
    if (message.t === "welcome") {
      this.welcomed(message);
      return;
    }
    if (message.t === "nack" && message.id === "" && message.code === "unsupported") {
      this.ended = true;
      this.o.link("refused", message.text);
      return;
    }
    if (message.t === "ack" || message.t === "nack") {
      this.waiting.get(message.id)?.yes(message);
      this.waiting.delete(message.id);
      return;
    }
    if (message.t === "reset") {
      this.session = message.session || this.session;
      this.seq = message.seq;
      this.o.renew(null);
      return;
    }
    if ("seq" in message && !SUPERSEDED.has(message.t)) this.seq = Math.max(this.seq, message.seq);
    this.o.hear(message);
  }

  private welcomed(message: Welcome): void {
    this.tries = 0;
    if (message.proto !== this.o.proto) {
      this.ended = true;
      this.o.link("refused", `protocol ${message.proto}`);
      return;
    }
    this.session = message.session;
    if (!message.resumed) this.seq = message.seq;
    for (const wish of this.wanted.values()) this.write(wish);
    this.o.link("open", message.server);
    if (!message.resumed) this.o.renew(message);
    this.o.hear(message);
  }

  private cut(code: number, reason: string): void {
    this.wire = null;
    for (const one of this.waiting.values()) one.no(new Error("the connection was cut"));
    this.waiting.clear();
    if (this.ended) return;
    if (code === 4401 || code === 4403) {
      this.o.link("refused", reason);
      return;
    }
    const wait = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** this.tries) * (0.75 + 0.5 * (this.o.random ?? Math.random)());
    this.tries += 1;
    this.o.link("waiting", reason);
    (this.o.later ?? setTimeout)(() => this.connect(), wait);
  }
}
