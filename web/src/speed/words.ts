// The words of the speed page: a dictionary of its own, fetched with it.
import { fill, lang } from "../i18n";
import { en } from "./words.en.gen";
import { zh } from "./words.zh.gen";

export type Word = keyof typeof en;
const WORDS: Record<"en" | "zh", Record<Word, string>> = { en, zh };

export function w(key: Word, filled: Record<string, string | number> = {}): string {
  return fill(WORDS[lang.value][key], filled);
}
