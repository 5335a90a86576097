/** What a device remembers: its permanent responses, its windows, and what its user has spent. As secret as the values. */
import type { Start } from "./clock.js";
import { hex } from "./numbers.js";
import type { Spending } from "./spending.js";
import { sealed, type Store, unsealed } from "./store.js";

const ENTRY = "ledger";
const REMEDY =
  'restore it, or remove it and spend all budgets once more: store.change("ledger", () => ({ text: null, result: null }))';

export interface LedgerContent {
  /** Random bytes in each key, so that nobody who reads keys alone can find values by hashing all of a domain. */
  salt: string;
  /** Entries by key. */
  kept: Record<string, string>;
  /** What the user has spent over all collections. */
  spent: readonly Spending[];
  starts: readonly Start[];
  /** When the runs began by the clock that they last looked at while spendings were ahead of it. */
  looks: readonly Start[];
}

/**
 * Changes the ledger of a store, which all collections of a user share. A device that loses it spends all budgets again.
 *
 * @throws DamagedError if the entry is no ledger: it stays as it is, for a new one would spend again.
 */
export function changeLedger<T>(store: Store, edit: (content: LedgerContent) => T): Promise<T> {
  const salt = hex(crypto.getRandomValues(new Uint8Array(16)));
  return store.change(ENTRY, (text) => {
    const content = text === null ? { salt, kept: {}, spent: [], starts: [], looks: [] } : parsed(text);
    const result = edit(content);
    const written = sealed(ENTRY, content);
    return written === text ? { result } : { text: written, result };
  });
}

function parsed(text: string): LedgerContent {
  const content = unsealed(ENTRY, text, REMEDY) as LedgerContent;
  // JSON has no infinity, which a report without privacy spends.
  return { ...content, spent: content.spent.map((each) => ({ ...each, epsilon: each.epsilon ?? Number.POSITIVE_INFINITY })) };
}

/** The key of an entry. */
export async function keyOf(salt: string, name: string): Promise<string> {
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(salt + name))));
}
