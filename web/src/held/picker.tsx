// Choosing a run, a dump or a checkpoint, and a step and a rank of it.
import { useSignal, useSignalEffect } from "@preact/signals";
import type { Moment, Thing } from "../types.gen";
import { momentsOf, momentText, parseMoment, things } from "./things";
import { told, w } from "./words";

const KINDS: Thing["kind"][] = ["run", "dump", "checkpoint"];

export function ThingSelect({
  label,
  value,
  choose,
  kinds = KINDS,
  empty,
}: {
  label: string;
  value: string;
  choose: (name: string) => void;
  kinds?: Thing["kind"][];
  empty?: string;
}) {
  const all = things.value.filter((one) => kinds.includes(one.kind));
  const known = all.some((one) => one.name === value);
  return (
    <select
      class="thing"
      aria-label={label}
      value={value}
      data-test={`pick-${label}`}
      onChange={(event) => choose(event.currentTarget.value)}
    >
      {(!value || empty !== undefined) && <option value="">{empty ?? w("pick.choose")}</option>}
      {value && !known && <option value={value}>{value}</option>}
      {kinds.map((kind) => {
        const group = all.filter((one) => one.kind === kind);
        return (
          group.length > 0 && (
            <optgroup key={kind} label={told("kind", kind)}>
              {group.map((one) => (
                <option key={one.name} value={one.name}>
                  {one.name}
                </option>
              ))}
            </optgroup>
          )
        );
      })}
    </select>
  );
}

/** A thing with its step and rank, as one text: `run@120#3`. */
export function MomentPicker({
  label,
  value,
  choose,
  kinds,
}: {
  label: string;
  value: string;
  choose: (text: string) => void;
  kinds?: Thing["kind"][];
}) {
  const names = new Set(things.value.map((one) => one.name));
  const { name, step, rank } = parseMoment(value, names);
  const moments = useSignal<{ of: string; all: Moment[] }>({ of: "", all: [] });
  const wanted = useSignal("");
  wanted.value = name;
  useSignalEffect(() => {
    const of = wanted.value;
    if (!of) return;
    momentsOf(of).then(
      (all) => {
        if (wanted.peek() === of) moments.value = { of, all };
      },
      () => {},
    );
  });
  const all = moments.value.of === name ? moments.value.all : [];
  const steps = [...new Set(all.map((one) => one.step))].filter((one): one is number => one !== null);
  const ranks = [...new Set(all.map((one) => one.rank))];
  const first = (next: string): void => {
    momentsOf(next).then(
      (found) => {
        // A step is judged by the weights it began with: the first training step, not the initial weights.
        const told = found.map((one) => one.step).filter((one): one is number => one !== null);
        choose(momentText(next, told.length > 1 ? (told.find((one) => one > 0) ?? told[0]) : null, null));
      },
      () => choose(next),
    );
  };
  return (
    <span class="together picker">
      <b>{label}</b>
      <ThingSelect label={label} value={name} choose={first} kinds={kinds} />
      {steps.length > 1 && (
        <select
          aria-label={`${label} ${w("pick.step")}`}
          value={step ?? ""}
          onChange={(event) =>
            choose(momentText(name, event.currentTarget.value === "" ? null : Number(event.currentTarget.value), rank))
          }
        >
          <option value="">{w("pick.allSteps")}</option>
          {steps.map((one) => (
            <option key={one} value={one}>
              @{one}
            </option>
          ))}
        </select>
      )}
      {ranks.length > 1 && (
        <select
          aria-label={`${label} ${w("pick.rank")}`}
          value={rank ?? ""}
          onChange={(event) =>
            choose(momentText(name, step, event.currentTarget.value === "" ? null : Number(event.currentTarget.value)))
          }
        >
          <option value="">{w("pick.allRanks")}</option>
          {ranks.map((one) => (
            <option key={one} value={one}>
              #{one}
            </option>
          ))}
        </select>
      )}
    </span>
  );
}
