/** The errors that an app can meet and tell apart. None has a value of the user in its message. */

/** This page or program lacks what a device needs; `supported()` asks for it first. */
export class UnsupportedError extends Error {
  override name = "UnsupportedError";
}

/** An entry of a store holds something else than what was written: a disk, a backup or another program has changed it. */
export class DamagedError extends Error {
  override name = "DamagedError";

  /** `keptAs` is the entry that holds what was found, if a new queue has begun; null of a ledger, which stays as it is. */
  constructor(
    readonly entry: string,
    readonly keptAs: string | null,
    remedy: string,
  ) {
    super(`the entry ${entry} of a store is damaged, or is another one; ${remedy}`);
  }
}

/** A later version of this client has written an entry of a store. */
export class LaterVersionError extends Error {
  override name = "LaterVersionError";

  constructor(readonly entry: string) {
    super(`a later version of this client has written the entry ${entry} of a store; use that version`);
  }
}

/** Another program holds the lock of a store for longer than any change takes. */
export class BusyError extends Error {
  override name = "BusyError";

  constructor(readonly lock: string) {
    super(`${lock} is locked by another program; if none uses this store, remove this file`);
  }
}

/** The queue of a sender is full; the message was not added. */
export class QueueFullError extends Error {
  override name = "QueueFullError";

  constructor(readonly mostWaiting: number) {
    super(`${mostWaiting} messages wait, which is the most that this queue takes; flush it, and try later`);
  }
}

/** A device does not believe the time of an observation, or the clock. */
export class ClockError extends Error {
  override name = "ClockError";
}

/** A report would exceed the budget of its spec; the device can report again at `until`. */
export class BudgetExceededError extends Error {
  override name = "BudgetExceededError";

  constructor(
    collection: string,
    /** In milliseconds since 1970. */
    readonly until: number,
  ) {
    super(`${collection}: this report would exceed the budget of the user; the device can report again from ${new Date(until).toISOString()} on`);
  }
}
