// Every key and what it does, for the help and the palette.
import type { Key } from "../i18n";

export const KEYS: [string, Key][] = [
  ["F8", "keys.continue"],
  ["F10", "keys.next"],
  ["F6", "keys.step"],
  ["Ctrl+F10", "keys.runTo"],
  ["F9", "keys.watch"],
  ["Shift+F9", "keys.condition"],
  ["J K", "keys.hits"],
  ["N Shift+N", "keys.nan"],
  ["[ ]", "keys.steps"],
  ["P", "keys.previous"],
  ["/", "keys.search"],
  ["Ctrl+K", "keys.palette"],
  ["G", "keys.go"],
  ["↑ ↓ ← →", "keys.graph"],
  ["Enter Backspace", "keys.open"],
  ["Shift+drag", "keys.select"],
  ["0 + -", "keys.zoom"],
  [".", "keys.current"],
  ["T", "keys.theme"],
  ["L", "keys.lang"],
  ["?", "keys.help"],
  ["Esc", "keys.close"],
];
