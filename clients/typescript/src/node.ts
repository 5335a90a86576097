/** Storage in a file, for Node. */
import { open, readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";
import type { Storage } from "./ledger.js";

/** A file that only its owner may read (mode 0600). One process uses it at a time. */
export class FileStorage implements Storage {
  constructor(private readonly path: string) {}

  async read(): Promise<string | null> {
    try {
      return await readFile(this.path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw error;
    }
  }

  /** Writes the file aside, synchronizes and renames it, so that a crash leaves it as before or after. */
  async write(text: string): Promise<void> {
    const aside = `${this.path}.new`;
    await synced(aside, "w", text);
    await rename(aside, this.path);
    await synced(dirname(this.path), "r");
  }
}

async function synced(path: string, flags: string, text?: string): Promise<void> {
  const file = await open(path, flags, 0o600);
  try {
    if (text !== undefined) await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}
