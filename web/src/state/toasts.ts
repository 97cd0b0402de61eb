// Short notes in the corner: what was refused, what another tab did.
import { signal } from "@preact/signals";

export interface Toast {
  id: number;
  tone: "info" | "warning" | "error";
  text: string;
  details: string;
}

export const toasts = signal<Toast[]>([]);
let counter = 0;
const SHOWN_MS = 8000;

export function toast(tone: Toast["tone"], text: string, details = ""): void {
  const id = (counter += 1);
  toasts.value = [...toasts.peek().slice(-3), { id, tone, text, details }];
  setTimeout(() => dismiss(id), SHOWN_MS);
}

export function dismiss(id: number): void {
  toasts.value = toasts.peek().filter((one) => one.id !== id);
}
