// What this browser keeps for this person: sizes, theme, language. Never anything of a run.

const PREFIX = "misstep.";

export function remembered<T>(name: string, fallback: T): T {
  try {
    const text = localStorage.getItem(PREFIX + name);
    return text === null ? fallback : (JSON.parse(text) as T);
  } catch {
    return fallback; // storage switched off, or written by something else
  }
}

export function remember(name: string, value: unknown): void {
  try {
    localStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // A private window keeps nothing; the page works all the same.
  }
}
