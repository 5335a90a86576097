/** The store of a browser: the IndexedDB of an origin, which its tabs and workers share. */
import { UnsupportedError } from "./errors.js";
import type { Edited, Store } from "./store.js";

const ENTRIES = "uldp";

/** A store in IndexedDB. Each change is one transaction, so tabs can neither come between nor be waited for in vain. */
export class BrowserStore implements Store {
  /** `name` is that of the database; a second server, or a second user, needs another one. */
  constructor(private readonly name = "uldp") {}

  async change<T>(name: string, edit: (text: string | null) => Edited<T>): Promise<T> {
    const database = await opened(this.name);
    try {
      return await new Promise((resolve, reject) => {
        const transaction = database.transaction(ENTRIES, "readwrite", { durability: "strict" });
        const entries = transaction.objectStore(ENTRIES);
        const reading = entries.get(name);
        let edited: Edited<T>;
        let thrown: unknown;
        // The transaction ends once its requests have; so nothing here may wait for anything else.
        reading.onsuccess = () => {
          try {
            edited = edit((reading.result as string | undefined) ?? null);
            if (edited.text === null) entries.delete(name);
            else if (edited.text !== undefined) entries.put(edited.text, name);
          } catch (error) {
            thrown = error;
            transaction.abort();
          }
        };
        transaction.onabort = () => reject(thrown ?? transaction.error);
        transaction.oncomplete = () => resolve(edited.result);
      });
    } finally {
      database.close();
    }
  }
}

/** Opens a database, and creates it if need be; throws UnsupportedError if the browser does not let this page. */
export function opened(name: string): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const refuse = (why: unknown) =>
      reject(
        new UnsupportedError(
          `this page cannot open IndexedDB (${why}): a private window, a setting or a full disk may forbid it`,
        ),
      );
    try {
      if (typeof indexedDB !== "object" || indexedDB === null) return refuse("the browser has none");
      const opening = indexedDB.open(name, 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore(ENTRIES);
      opening.onerror = () => refuse(opening.error?.name);
      opening.onsuccess = () => resolve(opening.result);
    } catch (error) {
      refuse((error as Error).name); // as SecurityError, where cookies are blocked
    }
  });
}
