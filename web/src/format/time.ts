// Moments as people say them: "3 min ago", with the exact time for the tooltip.
import { lang } from "../i18n";

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];

export function ago(unixSeconds: number, now: number = Date.now() / 1000): string {
  const words = new Intl.RelativeTimeFormat(lang.value, { numeric: "auto", style: "short" });
  const gap = unixSeconds - now;
  for (const [unit, size] of UNITS) {
    if (Math.abs(gap) >= size || unit === "second") return words.format(Math.round(gap / size), unit);
  }
  return "";
}

export function moment(unixSeconds: number): string {
  const date = new Date(unixSeconds * 1000);
  const two = (n: number): string => String(n).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export function clock(date: Date): string {
  return date.toTimeString().slice(0, 8);
}
