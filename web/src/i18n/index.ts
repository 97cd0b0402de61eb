// The page's words: typed keys, so that a word missing in one language fails the build, switched without a reload.
import { effect, signal } from "@preact/signals";
import { remembered } from "../state/remembered";
import { en } from "./en.gen";
import { zh } from "./zh.gen";

export type Lang = "en" | "zh";
export type Key = keyof typeof en;

const WORDS: Record<Lang, Record<Key, string>> = { en, zh };

function preferred(): Lang {
  if (typeof location === "undefined") return "en";
  const asked = new URLSearchParams(location.search).get("lang");
  if (asked === "en" || asked === "zh") return asked;
  const kept = remembered<Lang | "">("lang", "");
  return kept || (navigator.language.startsWith("zh") ? "zh" : "en");
}

export const lang = signal<Lang>(preferred());

if (typeof document !== "undefined") {
  effect(() => {
    document.documentElement.lang = lang.value === "zh" ? "zh-CN" : "en";
  });
}

/** The words for a key in the language of the page; `{n}` is filled in. */
export function t(key: Key, filled: Record<string, string | number> = {}): string {
  return fill(WORDS[lang.value][key], filled);
}

export function fill(text: string, filled: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(filled[name] ?? whole));
}

/** The words for a key made from data (`phase.paused`); the last part itself when nobody translated it. */
export function said(prefix: string, name: string, filled: Record<string, string | number> = {}): string {
  const key = `${prefix}.${name}`;
  return key in en ? t(key as Key, filled) : name;
}

/** Whether there are words for this key made from data. */
export function knows(prefix: string, name: string): boolean {
  return `${prefix}.${name}` in en;
}

/** `KEY.one` for one of it, else the key itself; Chinese says both alike. */
export function plural(key: Key, n: number): Key {
  const one = `${key}.one`;
  return n === 1 && one in en ? (one as Key) : key;
}

/** A sentence the hub sent in both languages. */
export function toldOf(message: { text?: string; text_zh?: string }): string {
  return (lang.peek() === "zh" && message.text_zh) || (message.text ?? "");
}
