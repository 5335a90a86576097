/** What a device remembers: its permanent responses, its windows, and what its user has spent. As secret as the values. */

export interface LedgerContent {
  /** Random bytes in each key, so that nobody who reads keys alone can find values by hashing all of a domain. */
  salt: string;
  /** Entries by key. */
  kept: Record<string, string>;
  /** What the user has spent over all collections: times in milliseconds since 1970, and sums of epsilon. */
  spent: [number, number][];
}

/** All collections of a user share one ledger. A device that loses it spends all budgets once more. */
export interface Ledger {
  /** Gives the content to one device at a time. The change is durable when the promise is fulfilled, or is not made. */
  change<T>(edit: (content: LedgerContent) => Promise<T>): Promise<T>;
}

/** Where a ledger keeps its text. */
export interface Storage {
  read(): Promise<string | null>;
  write(text: string): Promise<void>;
}

/** A ledger in a storage. Its changes wait for each other within this object: use one object for a storage. */
export class StoredLedger implements Ledger {
  private last: Promise<unknown> = Promise.resolve();

  constructor(private readonly storage: Storage) {}

  change<T>(edit: (content: LedgerContent) => Promise<T>): Promise<T> {
    const changed = this.last.then(async () => {
      const text = await this.storage.read();
      const content: LedgerContent = text === null ? empty() : JSON.parse(text);
      const result = await edit(content);
      await this.storage.write(JSON.stringify(content));
      return result;
    });
    this.last = changed.catch(() => undefined);
    return changed;
  }
}

/** A storage that a restart forgets, for tests. */
export class MemoryStorage implements Storage {
  private text: string | null = null;

  async read(): Promise<string | null> {
    return this.text;
  }

  async write(text: string): Promise<void> {
    this.text = text;
  }
}

/** A storage in the IndexedDB of a browser, which an origin shares; tabs wait for each other by `locked`. */
export class BrowserStorage implements Storage {
  constructor(private readonly name = "uldp") {}

  read(): Promise<string | null> {
    return this.request("readonly", (store) => store.get("ledger")).then((text) => (text as string) ?? null);
  }

  async write(text: string): Promise<void> {
    await this.request("readwrite", (store) => store.put(text, "ledger"));
  }

  private request(mode: IDBTransactionMode, make: (store: IDBObjectStore) => IDBRequest): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const opening = indexedDB.open(this.name, 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore("uldp");
      opening.onerror = () => reject(opening.error);
      opening.onsuccess = () => {
        const transaction = opening.result.transaction("uldp", mode, { durability: "strict" });
        const request = make(transaction.objectStore("uldp"));
        transaction.onerror = transaction.onabort = () => reject(transaction.error);
        transaction.oncomplete = () => (opening.result.close(), resolve(request.result));
      };
    });
  }
}

/** The ledger of a browser: the tabs of an origin share it. */
export class BrowserLedger extends StoredLedger {
  constructor(private readonly name = "uldp") {
    super(new BrowserStorage(name));
  }

  override change<T>(edit: (content: LedgerContent) => Promise<T>): Promise<T> {
    return navigator.locks.request(`${this.name} ledger`, () => super.change(edit)) as Promise<T>;
  }
}

export const hex = (bytes: Uint8Array): string => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");

export const bytesOf = (text: string): Uint8Array =>
  Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));

function empty(): LedgerContent {
  return { salt: hex(crypto.getRandomValues(new Uint8Array(16))), kept: {}, spent: [] };
}

/** The key of an entry. */
export async function keyOf(content: LedgerContent, name: string): Promise<string> {
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(content.salt + name))));
}
