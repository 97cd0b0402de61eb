// What can be opened: the hub's list of runs, dumps and checkpoints, and the steps and ranks of each.
import { signal } from "@preact/signals";
import { ask, HubError } from "../net/api";
import type { DumpTable, Moment, Thing, ThingList } from "../types.gen";

export const things = signal<Thing[]>([]);
export const thingsKnown = signal(false);

export async function fetchThings(): Promise<void> {
  try {
    things.value = (await ask<ThingList>("things")).things;
    known.clear();
    thingsKnown.value = true;
  } catch {
    // The banner tells that the hub is away.
  }
}

/** `name@120#3` taken apart; a name may hold both marks itself when it is one of the hub's. */
export function parseMoment(
  text: string,
  names: ReadonlySet<string>,
): { name: string; step: number | null; rank: number | null } {
  const found = names.has(text) ? null : /^(.+?)(?:@(\d+))?(?:#(\d+))?$/.exec(text);
  return {
    name: found?.[1] ?? text,
    step: found?.[2] === undefined ? null : Number(found[2]),
    rank: found?.[3] === undefined ? null : Number(found[3]),
  };
}

export function momentText(name: string, step: number | null, rank: number | null): string {
  return `${name}${step === null ? "" : `@${step}`}${rank === null ? "" : `#${rank}`}`;
}

const known = new Map<string, Promise<Moment[]>>();

/** The steps and ranks a thing has kept something of. */
export function momentsOf(name: string): Promise<Moment[]> {
  let asked = known.get(name);
  if (!asked) {
    asked = ask<DumpTable>("things/dump", { of: name, limit: 1 }).then((answer) => answer.moments);
    known.set(name, asked);
    asked.catch(() => known.delete(name));
  }
  return asked;
}

export function sentence(error: unknown): string {
  return error instanceof HubError ? error.message : String((error as Error).message);
}
