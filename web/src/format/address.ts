// The one name of every tensor, as Python writes it: `encoder.0~2:output.1@120#3`.

export interface Address {
  node: string;
  role: string;
  slot: number;
  call: number;
  step: number | null;
  rank: number | null;
}

const PARTS = /^([^:@#~]*)(?:~(\d+))?(?::([a-z_]+)(?:\.(\d+))?)?(?:@(\d+))?(?:#(\d+))?$/;

/** Null for text that is no address. */
export function parseAddress(text: string): Address | null {
  const found = PARTS.exec(text);
  if (!found?.[1]) return null;
  const whole = (part: string | undefined): number | null => (part === undefined ? null : Number(part));
  return {
    node: found[1],
    role: found[3] ?? "output",
    slot: whole(found[4]) ?? 0,
    call: whole(found[2]) ?? 1,
    step: whole(found[5]),
    rank: whole(found[6]),
  };
}

export function addressText(a: Address): string {
  const call = a.call > 1 ? `~${a.call}` : "";
  return `${a.node}${call}:${slotText(a)}${a.step === null ? "" : `@${a.step}`}${a.rank === null ? "" : `#${a.rank}`}`;
}

export function slotText(a: { role: string; slot: number }): string {
  return `${a.role}${a.slot ? `.${a.slot}` : ""}`;
}

/** The part behind the node that a link carries: `output.1`, `~2:grad`. */
export function slotKey(a: { role: string; slot: number; call: number }): string {
  return `${a.call > 1 ? `~${a.call}:` : ""}${slotText(a)}`;
}

/** The enclosing scope's name: `encoder.0/log` → `encoder.0`. */
export function scopeOf(name: string): string {
  const cut = Math.max(name.lastIndexOf("/"), name.lastIndexOf("."));
  return cut > 0 ? name.slice(0, cut) : "";
}

/** A name cut in the middle, keeping its end, which tells more. */
export function shortName(name: string, most = 44): string {
  if (name.length <= most) return name;
  return `…${name.slice(name.length - most + 1)}`;
}

/** A name cut in its middle: where it is (the block's number) and what it is (the operator) both stay. */
export function middle(name: string, most = 36): string {
  if (name.length <= most) return name;
  const cut = Math.max(name.lastIndexOf("/"), name.lastIndexOf("."));
  const end = name.slice(cut > 0 ? cut : Math.ceil(name.length / 2));
  const tail = end.length > most - 5 ? end.slice(end.length - (most - 5)) : end;
  const kept = Math.max(4, most - 1 - tail.length);
  const block = [...name.slice(0, cut > 0 ? cut : 0).matchAll(/\.\d+(?=\.|$)/g)].pop();
  if (block?.index === undefined || block.index + block[0].length <= kept) return `${name.slice(0, kept)}…${tail}`;
  return `${name.slice(0, Math.max(2, kept - block[0].length - 1))}…${block[0]}…${tail}`;
}
