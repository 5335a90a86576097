/** What a user has spent over time, and when a budget admits the next report. */
import type { Spends } from "./table.js";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** A report would exceed the budget of its spec; the device can report again at `until`. */
export class BudgetExceededError extends Error {
  override name = "BudgetExceededError";

  constructor(
    collection: string,
    readonly until: number,
  ) {
    super(`${collection}: this report would exceed the budget of the user; the device can report again from ${new Date(until).toISOString()} on`);
  }
}

/** What a report spends after so many others of the same permanent response; infinite without privacy. */
export function spentBy({ epsilon, lasting }: Spends, before: number): number {
  if (epsilon === null) return Number.POSITIVE_INFINITY;
  if (!before || lasting === null) return epsilon;
  return before === 1 ? lasting - epsilon : 0;
}

/** The first time, from `time` on, at which a report that spends `epsilon` keeps a budget. */
export function admittedAt(
  spent: readonly [number, number][],
  epsilon: number,
  time: number,
  budget: { epsilon: number; every_ms: number },
): number {
  if (!epsilon) return time;
  let left = budget.epsilon * (1 + 1e-9) - epsilon; // sums of floats may be off by that part
  for (const [earlier, amount] of [...spent].sort((a, b) => b[0] - a[0])) {
    left -= amount;
    if (!(left >= 0)) return Math.max(time, earlier + budget.every_ms);
  }
  return left >= 0 ? time : 8.64e15; // the last time there is
}

/** Enters a spending. Those of an hour become one at the last of them; those older than a year, one for each day. */
export function record(spent: readonly [number, number][], epsilon: number, time: number): [number, number][] {
  const all: [number, number][] = epsilon ? [...spent, [time, epsilon]] : [...spent];
  const newest = Math.max(...all.map(([each]) => each));
  const merged = new Map<string, [number, number]>();
  for (const [each, amount] of all) {
    const span = newest - each < 365 * DAY ? HOUR : DAY;
    const slot = `${span} ${Math.floor(each / span)}`;
    const [last, sum] = merged.get(slot) ?? [each, 0];
    merged.set(slot, [Math.max(last, each), sum + amount]);
  }
  return [...merged.values()].sort((a, b) => a[0] - b[0]);
}
