// The numbers beside an axis.
import { value } from "../format/number";

/** Ticks alike: as many decimals as it takes to tell them apart, the same for all, and powers of ten for the far ends. */
export function tidyTicks(ticks: readonly (number | null)[]): string[] {
  const told = ticks.filter((tick): tick is number => tick !== null);
  const greatest = Math.max(...told.map(Math.abs), 0);
  if (told.length < 2 || greatest >= 1e6 || (greatest < 1e-3 && greatest > 0))
    return ticks.map((tick) => (tick === null ? "" : tick === 0 ? "0" : value(tick, 3)));
  const gap = Math.min(...told.slice(1).map((tick, at) => Math.abs(tick - told[at])));
  const decimals = Math.min(8, Math.max(0, Math.ceil(-Math.log10(gap) - 1e-9)));
  const alike = told.every((tick) => Math.abs(Number(tick.toFixed(decimals)) - tick) < gap / 100);
  return ticks.map((tick) => (tick === null ? "" : tick === 0 ? "0" : tick.toFixed(alike ? decimals : decimals + 1)));
}
