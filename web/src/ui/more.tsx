// The menu of a panel: a link to this view, and what it shows as a file. A picture is what is on the canvas, a table is
// what is in the table, unless the panel knows better.
import { copy } from "../debug/nodemenu";
import { type Cells, csvText } from "../format/csv";
import { t } from "../i18n";
import { colour } from "../state/prefs";
import { currentLink } from "../state/route";
import { Icon } from "./icons";
import { type MenuItem, openMenu } from "./menu";

interface Props {
  /** Of the file, without its ending. */
  name: string;
  csv?: () => Cells;
  json?: () => unknown;
  svg?: () => Promise<string>;
}

export function More({ name, csv, json, svg }: Props) {
  const open = (event: MouseEvent): void => {
    const button = event.currentTarget as HTMLElement;
    const panel = button.closest(".card, .panel, .exported") ?? document.body;
    const box = button.getBoundingClientRect();
    const canvas = largest(panel);
    const table = panel.querySelector("table");
    const rows = csv ?? (table ? () => cellsOf(table) : undefined);
    const file = name.replace(/[^\w.-]+/g, "_");
    const items: (MenuItem | null)[] = [{ icon: "link", text: t("copyLink"), act: () => void copy(currentLink()) }];
    if (canvas || rows || json || svg) items.push(null);
    if (canvas) items.push({ icon: "download", text: t("export.png"), act: () => void png(canvas, `${file}.png`) });
    if (svg)
      items.push({
        icon: "download",
        text: t("export.svg"),
        act: () => void svg().then((text) => save(text, "image/svg+xml", `${file}.svg`)),
      });
    if (rows)
      items.push({
        icon: "download",
        text: t("export.csv"),
        act: () => save(csvText(rows()), "text/csv", `${file}.csv`),
      });
    if (json)
      items.push({
        icon: "download",
        text: t("export.json"),
        act: () => save(JSON.stringify(json(), null, 1), "application/json", `${file}.json`),
      });
    openMenu(box.right - 210, box.bottom + 4, items);
  };
  return (
    <button class="plain" title={t("export.title")} aria-haspopup="menu" data-test="more" onClick={open}>
      <Icon name="more" />
      <span class="hidden-visually">
        {t("export.title")}: {name}
      </span>
    </button>
  );
}

function largest(panel: Element): HTMLCanvasElement | null {
  const all = [...panel.querySelectorAll<HTMLCanvasElement>("canvas:not(.minimap)")].filter(
    (one) => one.width > 1 && one.height > 1,
  );
  return all.sort((a, b) => b.width * b.height - a.width * a.height)[0] ?? null;
}

function cellsOf(table: HTMLTableElement): Cells {
  return [...table.rows].map((row) => [...row.cells].map((cell) => (cell.textContent ?? "").trim()));
}

function save(content: BlobPart, type: string, file: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  link.download = file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** On the page's own ground: a canvas may be transparent. */
async function png(canvas: HTMLCanvasElement, file: string): Promise<void> {
  const whole = new OffscreenCanvas(canvas.width, canvas.height);
  const ctx = whole.getContext("2d");
  if (!ctx) return;
  ctx.fillStyle = colour("bg1");
  ctx.fillRect(0, 0, whole.width, whole.height);
  ctx.drawImage(canvas, 0, 0);
  save(await whole.convertToBlob({ type: "image/png" }), "image/png", file);
}
