// The words of the pages about dumps, comparisons and checkpoints: a dictionary of their own, fetched with them.
import { fill, lang } from "../i18n";
import { en } from "./words.en.gen";
import { zh } from "./words.zh.gen";

export type Word = keyof typeof en;
const WORDS: Record<"en" | "zh", Record<Word, string>> = { en, zh };

export function w(key: Word, filled: Record<string, string | number> = {}): string {
  return fill(WORDS[lang.value][key], filled);
}

/** The words for a key made from data (`verdict.noise`); the last part itself when nobody translated it. */
export function told(prefix: string, name: string): string {
  const key = `${prefix}.${name}`;
  return key in en ? w(key as Word) : name;
}
