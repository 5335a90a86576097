/**
 * Whether a device believes a time: an observation against the clock, and the clock against a time that nobody sets.
 *
 * A budget of a period is spent again when the period is over. So a clock that jumps ahead would give further budgets.
 */
import { ClockError } from "./errors.js";

/** How far observations, and jumps of the clock, may be off. */
export const SKEW_MS = 3_600_000;
/** The earliest time in milliseconds that is believed, in 1973: smaller numbers are seconds, or a clock that nobody set. */
const EARLIEST = 1e11;
const LATEST = 8.64e15; // of Date
/** Tabs are runs of their own, so a ledger remembers as many. */
const MOST_RUNS = 8;

/** How long a run has lasted: a name of this run alone, and milliseconds that no setting of a clock changes. */
export interface Uptime {
  run: string;
  elapsed: number;
}

export interface Clock {
  /** The time in milliseconds since 1970. */
  now(): number;
  /** Null if nothing but the clock counts the time. */
  uptime(): Uptime | null;
}

/** When a run began, by the earliest time that the clock has ever given for that. */
export type Start = readonly [run: string, time: number];

const run = Math.random().toString(36).slice(2); // names a run, and protects nothing

/** The clock of a page or a program; its run is the time since the page was loaded, or the program started. */
export class SystemClock implements Clock {
  now(): number {
    return Date.now();
  }

  uptime(): Uptime {
    return { run, elapsed: Math.floor(performance.now()) };
  }
}

/** Refuses what cannot be a time in milliseconds, as one in seconds. */
export function checkMilliseconds(time: number): void {
  if (!Number.isInteger(time) || time < EARLIEST || time > LATEST)
    throw new RangeError(
      `the time of an observation is ${String(time).slice(0, 40)}, not an integer of milliseconds since 1970 UTC: write Date.now(), or date.getTime()`,
    );
}

/**
 * Checks the time of an observation, and returns when the runs began, to be kept for the next check.
 *
 * Within one run, the clock must not come more than the skew further than the time that has elapsed since any earlier
 * check. A clock that is set back passes, because that frees no budget. This is the rule of the ledger in Python.
 */
export function checkedStarts(known: readonly Start[], now: number, uptime: Uptime | null, time: number, skewMs: number): readonly Start[] {
  const off = time - now;
  if (Math.abs(off) > skewMs)
    throw new ClockError(
      `the time of the observation is ${seconds(off)} ${off > 0 ? "ahead of" : "behind"} the clock, ${iso(now)}, and not within ${seconds(skewMs)}; report when you observe, or say how far times may be off: skewMs, or null for any`,
    );
  if (uptime === null) return known;
  const start = now - uptime.elapsed;
  const before = known.find(([run]) => run === uptime.run)?.[1] ?? start;
  if (start - before > skewMs)
    throw new ClockError(
      `the clock, ${iso(now)}, has come ${seconds(start - before)} further than the time since an earlier report; set it right, or if it is right now, or the machine has slept, load the page anew or start the program anew`,
    );
  const others = known.filter(([run]) => run !== uptime.run);
  return [...others, [uptime.run, Math.min(before, start)] as const].slice(-MOST_RUNS);
}

/**
 * How far the clock has jumped since a run last looked at it, and the looks to be kept. A run that has not looked yet
 * believes the clock, as all do without runs. A jump within the skew is kept until such jumps add up.
 */
export function jumped(looks: readonly Start[], now: number, uptime: Uptime | null, skewMs: number): [jump: number, looks: readonly Start[]] {
  if (uptime === null) return [0, []];
  const start = now - uptime.elapsed;
  const last = looks.find(([run]) => run === uptime.run)?.[1];
  if (last === undefined) return [0, [...looks, [uptime.run, start] as const].slice(-MOST_RUNS)];
  const jump = start - last;
  // All runs are by one clock, so those of other tabs have seen it jump, too.
  return Math.abs(jump) > skewMs ? [jump, looks.map(([run, time]) => [run, time + jump] as const)] : [0, looks];
}

const seconds = (duration: number): string => `${Math.floor(Math.abs(duration) / 1000).toLocaleString("en")} s`;
const iso = (time: number): string => (Math.abs(time) <= LATEST ? new Date(time).toISOString() : String(time));
