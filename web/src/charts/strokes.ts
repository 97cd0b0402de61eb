// How a curve is told from the others: eight colours, each whole and in three ways broken. The same number is the same
// line on every chart and in the legend.
import { colour } from "../state/prefs";

const BROKEN: (number[] | undefined)[] = [undefined, [6, 4], [2, 3], [10, 3, 2, 3]];
const COLOURS = 8;

export function strokeOf(number: number): { colour: string; dash: number[] | undefined } {
  return { colour: colour(`s${number % COLOURS}`), dash: BROKEN[Math.floor(number / COLOURS) % BROKEN.length] };
}

/** The line of a legend, as CSS. */
export function sampleOf(number: number): Record<string, string> {
  const ink = `var(--s${number % COLOURS})`;
  const dash = BROKEN[Math.floor(number / COLOURS) % BROKEN.length];
  if (!dash) return { background: ink };
  const [on, off] = dash;
  return { background: `repeating-linear-gradient(90deg, ${ink} 0 ${on}px, transparent ${on}px ${on + off}px)` };
}
