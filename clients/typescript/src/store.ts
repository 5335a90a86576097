/** Where a device keeps its ledger and its queue: named entries of text, each changed as a whole or not at all. */
import type { Clock } from "./clock.js";
import { DamagedError, LaterVersionError } from "./errors.js";

/** What an edit makes of an entry: its new text, null to remove it, or nothing to leave it; and what `change` returns. */
export interface Edited<T> {
  text?: string | null;
  result: T;
}

/**
 * One operation, which no other tab, process or thread can come between. `edit` gets the text of an entry, or null if
 * there is none. It must be pure and synchronous, for a store may call it again. The change is durable when the promise
 * is fulfilled; if the edit throws, nothing has changed.
 */
export interface Store {
  /** A clock that counts the time through restarts, if there is one where this store is. */
  readonly clock?: Clock;
  change<T>(name: string, edit: (text: string | null) => Edited<T>): Promise<T>;
}

/** A store that a restart forgets, for tests. */
export class MemoryStore implements Store {
  private readonly entries = new Map<string, string>();

  async change<T>(name: string, edit: (text: string | null) => Edited<T>): Promise<T> {
    const { text, result } = edit(this.entries.get(name) ?? null);
    if (text === null) this.entries.delete(name);
    else if (text !== undefined) this.entries.set(name, text);
    return result;
  }
}

const VERSION = 1;

/** The text of an entry: a line with the version, the name of the entry and a checksum of all else, and the content. */
export function sealed(name: string, content: unknown): string {
  const body = `uldp ${VERSION} ${name}\n${JSON.stringify(content)}`;
  return body.replace("\n", ` ${checksum(body)}\n`);
}

/**
 * The content of an entry that `sealed` has made under the same name.
 *
 * @throws DamagedError if it is another text, with a remedy in its message.
 * @throws LaterVersionError if a later version of this client wrote it.
 */
export function unsealed(name: string, text: string, remedy: string): unknown {
  const [, version, named, sum, json] = /^uldp (\d{1,9}) ([^ \n]+) ([0-9a-f]{8})\n(.*)$/s.exec(text) ?? [];
  if (json === undefined || checksum(`uldp ${version} ${named}\n${json}`) !== sum || named !== name)
    throw new DamagedError(name, null, remedy);
  if (Number(version) !== VERSION) throw new LaterVersionError(name);
  return JSON.parse(json);
}

/** CRC-32 of a text in UTF-8: an edit must be synchronous, and the hashes of `crypto.subtle` are not. */
export function checksum(text: string): string {
  let crc = ~0;
  for (const byte of new TextEncoder().encode(text)) crc = (crc >>> 8) ^ TABLE[(crc ^ byte) & 255]!;
  return (~crc >>> 0).toString(16).padStart(8, "0");
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? (byte >>> 1) ^ 0xedb88320 : byte >>> 1;
  return byte;
});
