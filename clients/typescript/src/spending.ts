/** What a user has spent over time, and when a budget admits the next report. */
import type { Spends } from "./table.js";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/**
 * What some reports have spent together at the time of the last. `seen` is when the clock was found to be before that
 * time by more than the skew, so that one of the two clocks was wrong; null if it is not before it now.
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

/**
 * Notes which spendings are ahead of the clock, and since when. That time moves with a jump of the clock, so that only
 * time that has passed counts; and none is later than now.
 */
export function noticed(spent: readonly Spending[], now: number, jump: number, skewMs: number): Spending[] {
  return spent.map((each) => ({ ...each, seen: each.time - now > skewMs ? Math.min((each.seen ?? now) + jump, now) : null }));
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
  for (let first = time; ; ) {
    const later = admittedAsCounted(spent, epsilon, first, budget);
    if (later === first) return first;
    first = later; // until then, more may have come to count by its own time
  }
}

/** The same, if everything counted from the same time as it does at `time`. */
function admittedAsCounted(
  spent: readonly Spending[],
  epsilon: number,
  time: number,
  budget: { epsilon: number; every_ms: number },
): number {
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
  const newest = all.reduce((last, each) => (each.seen === null ? Math.max(last, each.time) : last), 0);
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
