// The menu of a right click: opened at a point, walked with the arrow keys, closed by Escape or a click elsewhere.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Icon, type IconName } from "./icons";

export interface MenuItem {
  icon: IconName;
  text: string;
  key?: string;
  off?: boolean;
  act: () => void;
}

export const menu = signal<{ x: number; y: number; items: (MenuItem | null)[] } | null>(null);

export function openMenu(x: number, y: number, items: (MenuItem | null)[]): void {
  menu.value = { x, y, items };
}

export function Menu() {
  const own = useRef<HTMLDivElement>(null);
  const shown = menu.value;
  useEffect(() => {
    if (!shown || !own.current) return;
    const box = own.current.getBoundingClientRect();
    own.current.style.left = `${Math.max(4, Math.min(shown.x, innerWidth - box.width - 8))}px`;
    own.current.style.top = `${Math.max(4, Math.min(shown.y, innerHeight - box.height - 8))}px`;
    own.current.querySelector<HTMLButtonElement>("button:not(:disabled)")?.focus();
    const away = (event: Event): void => {
      if (!own.current?.contains(event.target as Node)) menu.value = null;
    };
    addEventListener("pointerdown", away, true);
    return () => removeEventListener("pointerdown", away, true);
  }, [shown]);
  if (!shown) return null;
  const walk = (event: KeyboardEvent): void => {
    event.stopPropagation();
    if (event.key === "Escape") menu.value = null;
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    const all = [...(own.current?.querySelectorAll<HTMLButtonElement>("button:not(:disabled)") ?? [])];
    const at = all.indexOf(document.activeElement as HTMLButtonElement);
    all[(at + (event.key === "ArrowDown" ? 1 : all.length - 1)) % all.length]?.focus();
  };
  return (
    <div class="menu" role="menu" ref={own} onKeyDown={walk} style={{ left: `${shown.x}px`, top: `${shown.y}px` }}>
      {shown.items.map((item, at) =>
        item === null ? (
          <hr key={at} />
        ) : (
          <button
            key={at}
            role="menuitem"
            disabled={item.off}
            onClick={() => {
              menu.value = null;
              item.act();
            }}
          >
            <Icon name={item.icon} />
            {item.text}
            {item.key && <kbd>{item.key}</kbd>}
          </button>
        ),
      )}
    </div>
  );
}
