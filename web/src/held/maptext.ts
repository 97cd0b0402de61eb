// A map file as text: a pair added or taken away without touching what else somebody wrote into it.

const SECTION = /^\s*\[(\w+)\]\s*(#.*)?$/;
/** `"left" = …`, in any of TOML's quotes. */
const LINE = /^\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([\w-]+))\s*=/;

function quoted(text: string): string {
  return JSON.stringify(text);
}

function keyOf(line: string): string | null {
  const found = LINE.exec(line);
  if (!found) return null;
  if (found[1] !== undefined) {
    try {
      return JSON.parse(`"${found[1]}"`) as string;
    } catch {
      return found[1];
    }
  }
  return found[2] ?? found[3];
}

/** Where a section's lines begin and end; null when it is not there. */
function section(lines: string[], name: string): [number, number] | null {
  const head = lines.findIndex((line) => SECTION.exec(line)?.[1] === name);
  if (head < 0) return null;
  const next = lines.findIndex((line, at) => at > head && SECTION.test(line));
  return [head + 1, next < 0 ? lines.length : next];
}

function withLine(text: string, name: string, key: string, line: string): string {
  const lines = text.replace(/\s+$/, "").split("\n");
  if (lines.length === 1 && !lines[0]) lines.pop();
  const place = section(lines, name);
  if (!place) return [...lines, ...(lines.length ? [""] : []), `[${name}]`, line, ""].join("\n");
  const [from, to] = place;
  const old = lines.findIndex((one, at) => at >= from && at < to && keyOf(one) === key);
  if (old >= 0) lines[old] = line;
  else {
    let end = to;
    while (end > from && !lines[end - 1].trim()) end -= 1;
    lines.splice(end, 0, line);
  }
  return `${lines.join("\n")}\n`;
}

/** The same map in which `left` is `right`. */
export function withPair(text: string, left: string, right: string): string {
  return withLine(text, "names", left, `${quoted(left)} = ${quoted(right)}`);
}

/** The same map in which the right array is turned before it is compared. */
export function withLayout(text: string, left: string, layout: string): string {
  return withLine(text, "layouts", left, `${quoted(left)} = ${quoted(layout)}`);
}

/** The same map that leaves a name of one side out. */
export function withIgnored(text: string, side: "left" | "right", name: string): string {
  const lines = text.split("\n");
  const place = section(lines, "ignore");
  const at = place
    ? lines.findIndex((line, index) => index >= place[0] && index < place[1] && keyOf(line) === side)
    : -1;
  if (at >= 0 && !lines[at].includes("]")) return text; // a list over several lines is for hands
  const held =
    at >= 0
      ? [...lines[at].slice(lines[at].indexOf("[")).matchAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'/g)].map(
          (found) => found[1] ?? found[2],
        )
      : [];
  if (held.includes(name)) return text;
  return withLine(text, "ignore", side, `${side} = [${[...held, name].map(quoted).join(", ")}]`);
}
