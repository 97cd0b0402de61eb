// How this person likes the page: theme, language, digits, keys.
import { computed, effect, signal } from "@preact/signals";
import { type Lang, lang } from "../i18n";
import { remember, remembered } from "./remembered";

export type Theme = "auto" | "dark" | "light" | "contrast";
export const THEMES: readonly Theme[] = ["auto", "dark", "light", "contrast"];

const asked = new URLSearchParams(location.search).get("theme") as Theme | null;
export const theme = signal<Theme>(asked && THEMES.includes(asked) ? asked : remembered<Theme>("theme", "auto"));

const dark = matchMedia("(prefers-color-scheme: dark)");
const contrast = matchMedia("(prefers-contrast: more)");
const systemDark = signal(dark.matches);
const systemContrast = signal(contrast.matches);
dark.addEventListener("change", () => (systemDark.value = dark.matches));
contrast.addEventListener("change", () => (systemContrast.value = contrast.matches));

/** The theme that is drawn. */
export const look = computed<"dark" | "light" | "contrast">(() => {
  if (theme.value !== "auto") return theme.value;
  if (systemContrast.value) return "contrast";
  return systemDark.value ? "dark" : "light";
});

export const digits = signal<number>(remembered("digits", 4));
/** F5 continues and Shift+F5 ends training, as in an editor; off because Shift+F5 reloads pages. */
export const editorKeys = signal<boolean>(remembered("editorKeys", false));

effect(() => {
  document.documentElement.dataset.theme = look.value;
});

export function chooseTheme(next: Theme): void {
  theme.value = next;
  remember("theme", next);
}

export function nextTheme(): void {
  chooseTheme(THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]);
}

export function chooseLang(next: Lang): void {
  lang.value = next;
  remember("lang", next);
}

export function otherLang(): void {
  chooseLang(lang.value === "en" ? "zh" : "en");
}

export function chooseDigits(next: number): void {
  digits.value = next;
  remember("digits", next);
}

export function chooseEditorKeys(next: boolean): void {
  editorKeys.value = next;
  remember("editorKeys", next);
}

/** A colour of the theme as the canvas needs it; reads `look`, so that whoever draws with it draws again. */
export function colour(token: string): string {
  void look.value;
  return getComputedStyle(document.documentElement).getPropertyValue(`--${token}`).trim();
}
