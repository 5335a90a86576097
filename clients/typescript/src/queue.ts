/** The messages that wait, as rows with ids: several tabs or processes take them from one store, one attempt at a time. */
import { DamagedError } from "./errors.js";
import { checksum, sealed, type Store, unsealed } from "./store.js";

const ENTRY = "queue";
/** No wait is longer: a row that is further ahead was written by a clock that was wrong, and is due. */
export const LONGEST_WAIT_MS = 86_400_000;

export interface Row {
  /** 16 random bytes in hexadecimal digits. */
  id: string;
  /** In hexadecimal digits. */
  message: string;
  attempts: number;
  /** The time of its next attempt, in milliseconds since 1970; while it is sent, when its sender must have ended. */
  next: number;
}

export class Queue {
  constructor(
    private readonly store: Store,
    private readonly onDamage: ((error: DamagedError) => void) | undefined,
  ) {}

  /** Changes the rows; an edit must be pure, but for the rows that it gets. A damaged queue is set aside first. */
  async change<T>(edit: (rows: Row[]) => T): Promise<T> {
    for (;;) {
      const found = await this.store.change(ENTRY, (text) => edited(text, edit));
      if (!("damaged" in found)) return found.result;
      await this.setAside(found.damaged);
    }
  }

  private async setAside(damaged: string): Promise<void> {
    const keptAs = `${ENTRY}-damaged-${checksum(damaged)}`;
    // The copy comes first, so that a crash between the two loses nothing.
    await this.store.change(keptAs, () => ({ text: damaged, result: null }));
    await this.store.change(ENTRY, (text) => (text === damaged ? { text: null, result: null } : { result: null }));
    const error = new DamagedError(ENTRY, keptAs, `it is kept as ${keptAs}, and a new queue has begun`);
    queueMicrotask(() => this.onDamage?.(error));
  }
}

function edited<T>(text: string | null, edit: (rows: Row[]) => T): { text?: string; result: { result: T } | { damaged: string } } {
  let rows: Row[];
  try {
    rows = text === null ? [] : (unsealed(ENTRY, text, "set it aside") as Row[]);
  } catch (error) {
    if (error instanceof DamagedError) return { result: { damaged: text! } };
    throw error;
  }
  const result = { result: edit(rows) };
  const written = sealed(ENTRY, rows);
  return written === text || (text === null && !rows.length) ? { result } : { text: written, result };
}

export const isDue = (row: Row, now: number): boolean => row.next <= now || row.next > now + LONGEST_WAIT_MS;

/** Leases a row for an attempt, unless it is gone or another sender has it. */
export function lease(rows: readonly Row[], id: string, now: number, until: number): Row | null {
  const row = rows.find((each) => each.id === id);
  if (row === undefined || !isDue(row, now)) return null;
  row.attempts++;
  row.next = until;
  return { ...row };
}

/** Removes a leased row; false if another sender has, after the lease had run out. */
export function remove(rows: Row[], { id }: Row): boolean {
  const at = rows.findIndex((row) => row.id === id);
  if (at >= 0) rows.splice(at, 1);
  return at >= 0;
}

/** Ends the lease of a row that stays, unless another sender has it by now; `others` is when the others may come. */
export function reschedule(rows: readonly Row[], leased: Row, next: number, others: number): void {
  for (const row of rows) {
    if (row.id !== leased.id) row.next = Math.max(row.next, others);
    else if (row.attempts === leased.attempts) row.next = next;
  }
}
