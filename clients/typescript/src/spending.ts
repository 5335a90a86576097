/** What a user has spent over time, and when a budget admits the next report. */
import type { Spends } from "./table.js";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/**
 * What some reports have spent together at the time of the last. `seen` is when the clock first showed an earlier time
 * than that, by more than the skew: then one of the two clocks was wrong.
 */
export interface Spending {
  time: number;
  epsilon: number;
  seen: number | null;
}

/** What a report spends after so many others of the same permanent response; infinite without privacy. */
export function spentBy({ epsilon, lasting }: Spends, before: number): number {
  if (epsilon === null) return Number.POSITIVE_INFINITY;
  if (!before || lasting === null) return epsilon;
  return before === 1 ? lasting - epsilon : 0;
}

/** Notes which spendings are ahead of the clock, and since when. */
export function noticed(spent: readonly Spending[], now: number, skewMs: number): Spending[] {
  return spent.map((each) => ({ ...each, seen: each.time - now > skewMs ? (each.seen ?? now) : null }));
}

/**
 * The first time, from `time` on, at which a report that spends `epsilon` keeps a budget.
 *
 * What is ahead of the clock counts for a period from when that was seen, so that a clock that was years ahead does not
 * silence a device for years; and once more when its own time has come, so that a clock that is set back frees nothing.
 */
export function admittedAt(
  spent: readonly Spending[],
  epsilon: number,
  time: number,
  budget: { epsilon: number; every_ms: number },
): number {
  if (!epsilon) return time;
  let left = budget.epsilon * (1 + 1e-9) - epsilon; // sums of floats may be off by that part
  const counted = spent.map((each) => ({ ...each, time: each.seen !== null && each.time > time ? each.seen : each.time }));
  for (const earlier of counted.sort((a, b) => b.time - a.time)) {
    left -= earlier.epsilon;
    if (!(left >= 0)) return Math.max(time, earlier.time + budget.every_ms);
  }
  return left >= 0 ? time : 8.64e15; // the last time there is
}

/** Enters a spending. Those of an hour become one at the last of them; those older than a year, one for each day. */
export function record(spent: readonly Spending[], epsilon: number, time: number): Spending[] {
  const all = epsilon ? [...spent, { time, epsilon, seen: null }] : spent;
  const newest = Math.max(...all.map((each) => each.time));
  const merged = new Map<string, Spending>();
  for (const each of all) {
    const span = newest - each.time < 365 * DAY ? HOUR : DAY;
    const slot = `${span} ${Math.floor(each.time / span)}`;
    const before = merged.get(slot) ?? { ...each, epsilon: 0 };
    const seen = each.seen === null || before.seen === null ? null : Math.max(before.seen, each.seen);
    merged.set(slot, { time: Math.max(before.time, each.time), epsilon: before.epsilon + each.epsilon, seen });
  }
  return [...merged.values()].sort((a, b) => a.time - b.time);
}
