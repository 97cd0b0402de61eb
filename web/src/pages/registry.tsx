// Every page with its place in the rail. A new page is one line here: its name is its address, `page.NAME` its title,
// `rail.NAME` its short label. All but the list and the debugger are fetched when somebody goes there.
import type { ComponentType } from "preact";
import type { IconName } from "../ui/icons";
import { lazy } from "../ui/lazy";
import { DebugPage } from "./debug";

export interface PageEntry {
  name: string;
  icon: IconName;
  /** `run`: below /runs/NAME/; `folder`: of the folder as a whole, at `path`. */
  of: "run" | "folder";
  path?: string[];
  /** After G. */
  key?: string;
  Page: ComponentType;
}

const DumpsPage = lazy(() => import("./dumps").then((one) => one.DumpsPage));

export const PAGES: readonly PageEntry[] = [
  { name: "debug", icon: "debug", of: "run", key: "d", Page: DebugPage },
  {
    name: "scalars",
    icon: "scalars",
    of: "run",
    key: "s",
    Page: lazy(() => import("./scalars").then((one) => one.ScalarsPage)),
  },
  {
    name: "hist",
    icon: "stats",
    of: "run",
    key: "h",
    Page: lazy(() => import("./stats").then((one) => one.StatsPage)),
  },
  {
    name: "ranks",
    icon: "ranks",
    of: "run",
    key: "k",
    Page: lazy(() => import("./ranks").then((one) => one.RanksPage)),
  },
  {
    name: "speed",
    icon: "speed",
    of: "run",
    key: "v",
    Page: lazy(() => import("./speed").then((one) => one.SpeedPage)),
  },
  {
    name: "diagnose",
    icon: "diagnose",
    of: "run",
    key: "n",
    Page: lazy(() => import("./diagnose").then((one) => one.DiagnosePage)),
  },
  {
    name: "crash",
    icon: "crash",
    of: "run",
    key: "c",
    Page: lazy(() => import("./crash").then((one) => one.CrashPage)),
  },
  { name: "dumps", icon: "dumps", of: "folder", path: ["dumps"], key: "u", Page: DumpsPage },
  {
    name: "comparison",
    icon: "comparison",
    of: "folder",
    path: ["compare", "dumps"],
    key: "x",
    Page: lazy(() => import("./comparison").then((one) => one.ComparisonPage)),
  },
  {
    name: "ckpt",
    icon: "ckpt",
    of: "folder",
    path: ["ckpt"],
    key: "w",
    Page: lazy(() => import("./checkpoint").then((one) => one.CheckpointPage)),
  },
  {
    name: "studies",
    icon: "studies",
    of: "folder",
    path: ["studies"],
    Page: lazy(() => import("./studies").then((one) => one.StudiesPage)),
  },
];

const SettingsPage = lazy(() => import("./settings").then((one) => one.SettingsPage));

/** The page an address names; undefined for the list of runs. */
export function pageAt(path: readonly string[]): PageEntry | undefined {
  if (path[0] === "runs") return path[1] ? (of(path[2] ?? "debug") ?? PAGES[0]) : undefined;
  if (path[0] === "compare" && path[1] !== "dumps") return { ...(of("scalars") as PageEntry), name: "compare" };
  if (path[0] === "settings")
    return { name: "settings", icon: "settings", of: "folder", path: ["settings"], Page: SettingsPage };
  return PAGES.find((one) => one.path?.[0] === path[0]);
}

function of(name: string): PageEntry | undefined {
  return PAGES.find((one) => one.name === name);
}
