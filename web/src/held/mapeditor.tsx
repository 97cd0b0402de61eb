// The map file, edited in place: pairs by hand, layouts, what to leave out; the text is what `misstep diff --map` reads.
import { signal, useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { api } from "../base";
import { ask, askText, post } from "../net/api";
import { change, query } from "../state/route";
import type { ComparisonTable, MapText } from "../types.gen";
import { Icon } from "../ui/icons";
import { withIgnored, withLayout, withPair } from "./maptext";
import { sentence } from "./things";
import { w } from "./words";

const text = signal("");
const wrong = signal("");
let of = "";

/** Put a pairing into the form, from a row of the table. */
export const editing = signal<{ left: string; right: string }>({ left: "", right: "" });

/** Keep the map; a new link, and with it a new comparison. */
async function keep(): Promise<void> {
  try {
    wrong.value = "";
    const made = text.peek().trim() ? await post<MapText>("maps", { text: text.peek() }) : null;
    of = made?.id ?? "";
    change({ map: made?.id ?? null, row: null }, true);
  } catch (error) {
    wrong.value = sentence(error);
  }
}

export function MapEditor({ table }: { table: ComparisonTable | null }) {
  const file = useRef<HTMLInputElement>(null);
  const layout = useSignal("");
  useSignalEffect(() => {
    const id = query.value.map ?? "";
    if (id === of) return;
    of = id;
    wrong.value = "";
    if (!id) text.value = "";
    else
      void ask<MapText>(`maps/${id}`).then(
        (answer) => (text.value = answer.text),
        (error) => (wrong.value = sentence(error)),
      );
  });
  const upload = async (): Promise<void> => {
    const chosen = file.current?.files?.[0];
    if (chosen) text.value = await chosen.text();
    if (file.current) file.current.value = "";
  };
  const found = async (): Promise<void> => {
    if (table) text.value = await askText(`comparisons/${table.id}/map`);
  };
  const { left, right } = editing.value;
  const lefts = [
    ...new Set([...(table?.only_left.map((one) => one.node) ?? []), ...(table?.rows.left_node ?? [])]),
  ].filter(Boolean);
  const rights = [
    ...new Set([...(table?.only_right.map((one) => one.node) ?? []), ...(table?.rows.right_node ?? [])]),
  ].filter(Boolean);
  return (
    <section class="panel grow map-editor" aria-label={w("map.title")}>
      <div class="column gap pad grow scroll">
        <p class="dim">{w("map.help")}</p>
        <form
          class="map-form"
          onSubmit={(event) => {
            event.preventDefault();
            if (left && right) {
              text.value = withPair(text.value, left, right);
              if (layout.value) text.value = withLayout(text.value, left, layout.value);
            }
          }}
        >
          <label class="field">
            A
            <input
              class="mono"
              list="map-left"
              value={left}
              aria-label={w("map.left")}
              data-test="map-left"
              onInput={(event) => (editing.value = { ...editing.peek(), left: event.currentTarget.value })}
            />
          </label>
          <label class="field">
            B
            <input
              class="mono"
              list="map-right"
              value={right}
              aria-label={w("map.right")}
              data-test="map-right"
              onInput={(event) => (editing.value = { ...editing.peek(), right: event.currentTarget.value })}
            />
          </label>
          <label class="field">
            {w("map.layout")}
            <select value={layout.value} onChange={(event) => (layout.value = event.currentTarget.value)}>
              <option value="">{w("map.asIs")}</option>
              <option value="transpose">transpose</option>
              <option value="reshape">reshape</option>
            </select>
          </label>
          <span class="row wrap">
            <button type="submit" disabled={!left || !right} data-test="map-pair">
              {w("map.pair")}
            </button>
            <button type="button" disabled={!left} onClick={() => (text.value = withIgnored(text.value, "left", left))}>
              {w("map.ignoreA")}
            </button>
            <button
              type="button"
              disabled={!right}
              onClick={() => (text.value = withIgnored(text.value, "right", right))}
            >
              {w("map.ignoreB")}
            </button>
          </span>
          <datalist id="map-left">
            {lefts.slice(0, 2000).map((one) => (
              <option key={one} value={one} />
            ))}
          </datalist>
          <datalist id="map-right">
            {rights.slice(0, 2000).map((one) => (
              <option key={one} value={one} />
            ))}
          </datalist>
        </form>
        <textarea
          class="mono grow"
          spellcheck={false}
          value={text.value}
          aria-label={w("map.text")}
          aria-invalid={wrong.value !== ""}
          placeholder={'[names]\n"layer1.0.bn1" = "stage1.block0.norm"'}
          data-test="map-text"
          onInput={(event) => (text.value = event.currentTarget.value)}
        />
        {wrong.value && (
          <p class="tone-error" role="alert" data-test="map-wrong">
            {wrong.value}
          </p>
        )}
        <div class="row wrap">
          <button class="main" onClick={() => void keep()} data-test="map-apply">
            <Icon name="refresh" />
            {w("map.apply")}
          </button>
          <button onClick={() => void found()} disabled={!table}>
            {w("map.fromPairs")}
          </button>
          <button onClick={() => file.current?.click()}>{w("map.upload")}</button>
          <input
            ref={file}
            type="file"
            accept=".toml,.json,.txt"
            class="hidden-visually"
            tabIndex={-1}
            aria-label={w("map.upload")}
            data-test="map-file"
            onChange={() => void upload()}
          />
          <a
            class={`button${table ? "" : " off"}`}
            download="map.toml"
            href={table ? api(`comparisons/${table.id}/map`) : undefined}
            data-test="map-download"
          >
            <Icon name="download" />
            {w("map.download")}
          </a>
          {query.value.map && (
            <button
              onClick={() => {
                text.value = "";
                void keep();
              }}
            >
              {w("map.none")}
            </button>
          )}
        </div>
        <p class="dim">
          <code>
            misstep diff {query.value.a ?? "A"} {query.value.b ?? "B"} --map map.toml
          </code>
        </p>
      </div>
    </section>
  );
}
