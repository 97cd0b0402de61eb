import { expect, test } from "vitest";
import { type Link, LiveSocket, type Wire } from "../src/net/socket";
import type { ClientMessage, HitNews, ServerMessage, Welcome } from "../src/types.gen";

class FakeWire implements Wire {
  sent: ClientMessage[] = [];
  onopen: Wire["onopen"] = null;
  onclose: Wire["onclose"] = null;
  onmessage: Wire["onmessage"] = null;
  send(text: string): void {
    this.sent.push(JSON.parse(text) as ClientMessage);
  }
  close(): void {
    this.onclose?.({ code: 1006, reason: "" });
  }
  say(message: Partial<ServerMessage> | Partial<ServerMessage>[]): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }
}

const welcome = (more: Partial<Welcome> = {}): Welcome => ({
  t: "welcome",
  session: "s",
  seq: 7,
  server: "0",
  proto: 1,
  caps: [],
  resumed: false,
  runs: [],
  ...more,
});
const hit = (seq: number): Partial<HitNews> => ({ t: "hit", run: "r", seq });

function made() {
  const wires: FakeWire[] = [];
  const heard: ServerMessage[] = [];
  const links: Link[] = [];
  const waits: number[] = [];
  let renewals = 0;
  const later: (() => void)[] = [];
  const socket = new LiveSocket({
    proto: 1,
    open: () => {
      const wire = new FakeWire();
      wires.push(wire);
      return wire;
    },
    hear: (message) => heard.push(message),
    link: (link) => links.push(link),
    renew: () => (renewals += 1),
    later: (act, ms) => {
      later.push(act);
      waits.push(ms);
    },
    random: () => 0.5,
  });
  const connect = (): FakeWire => {
    socket.connect();
    wires[wires.length - 1].onopen?.();
    return wires[wires.length - 1];
  };
  return { socket, wires, heard, links, waits, later, connect, renewals: () => renewals };
}

test("after a cut it resumes from the last event that matters, and asks for its channels again", () => {
  const it = made();
  const first = it.connect();
  it.socket.subscribe("run", ["hits"], "r");
  first.say(welcome());
  first.say(hit(9));
  first.say({ t: "step", run: "r", rank: 0, step: 3, seq: 12 });
  first.close();
  it.later[0]();
  const second = it.wires[1];
  second.onopen?.();
  expect(second.sent[0]).toEqual({ t: "hello", proto: 1, lang: "", resume: { session: "s", seq: 9 } });
  second.say(welcome({ seq: 30, resumed: true }));
  expect(second.sent[1]).toMatchObject({ t: "sub", id: "run", run: "r" });
  second.say(hit(10));
  expect(it.heard.filter((one) => one.t === "hit").map((one) => (one as HitNews).seq)).toEqual([9, 10]);
  expect(it.renewals()).toBe(1);
});

test("a hub that does not know us makes everything be fetched again", () => {
  const it = made();
  it.connect().say(welcome());
  it.wires[0].close();
  it.later[0]();
  it.wires[1].onopen?.();
  it.wires[1].say(welcome({ session: "other", seq: 2 }));
  expect([it.renewals(), it.socket.session, it.socket.seq]).toEqual([2, "other", 2]);
});

test("it waits longer each time, and at most eight seconds", () => {
  const it = made();
  it.connect().say(welcome());
  for (let round = 0; round < 7; round += 1) {
    it.wires[it.wires.length - 1].onclose?.({ code: 1006, reason: "" });
    it.later[round]();
  }
  expect(it.waits).toEqual([500, 1000, 2000, 4000, 8000, 8000, 8000]);
});

test("a command whose answer was cut off is refused, not forgotten", async () => {
  const it = made();
  it.connect().say(welcome());
  const answer = it.socket.request((id) => ({ t: "cmd", id, op: "continue", run: "r" }));
  it.wires[0].close();
  await expect(answer).rejects.toThrow("cut");
});

test("another protocol ends the connection with its reason", () => {
  const it = made();
  it.connect().say(welcome({ proto: 2 }));
  expect(it.links[it.links.length - 1]).toBe("refused");
});

test("a frame may carry many messages", () => {
  const it = made();
  const wire = it.connect();
  wire.say(welcome());
  wire.say([hit(8), hit(9), hit(10)]);
  expect(it.heard.filter((one) => one.t === "hit").map((one) => (one as HitNews).seq)).toEqual([8, 9, 10]);
});
