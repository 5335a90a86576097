/** The store of Node: a folder with a file for each entry. */
import { readFileSync, readlinkSync } from "node:fs";
import { mkdir, open, readFile, rename, unlink } from "node:fs/promises";
import { uptime } from "node:os";
import { join } from "node:path";
import { type Clock, SystemClock, type Uptime } from "./clock.js";
import { locked, unless } from "./lock.js";
import type { Edited, Store } from "./store.js";

/**
 * A folder that only its owner may enter (mode 0700), made by the first change. Processes and threads of one machine may
 * share it, so it must not be on a network drive that several machines use.
 */
export class FileStore implements Store {
  readonly clock: Clock = new MachineClock();
  private last: Promise<unknown> = Promise.resolve();

  constructor(private readonly folder: string) {}

  change<T>(name: string, edit: (text: string | null) => Edited<T>): Promise<T> {
    const changed = this.last.then(() => this.changeNow(name, edit));
    this.last = changed.catch(() => undefined);
    return changed;
  }

  private async changeNow<T>(name: string, edit: (text: string | null) => Edited<T>): Promise<T> {
    if (!/^[a-z0-9-]+$/.test(name)) throw new RangeError(`an entry is named ${JSON.stringify(name)}; use a to z, 0 to 9 and -`);
    const path = join(this.folder, name);
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const lock = await locked(`${path}.lock`);
    try {
      const { text, result } = edit(await readFile(path, "utf8").catch(unless("ENOENT", null)));
      if (text === undefined) return result;
      // Written aside, synchronized and renamed, so that a crash leaves it as before or after.
      if (text !== null) await synced(`${path}.new`, "w", text);
      await lock.check();
      if (text !== null) await rename(`${path}.new`, path);
      else await unlink(path).catch(unless("ENOENT", undefined));
      await synced(this.folder, "r");
      return result;
    } finally {
      await lock.release();
    }
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

/**
 * The clock of a machine. On Linux its run is the time since the machine was started, also that of sleep, and also for
 * the programs that come after this one in its container; elsewhere, the time since the program was started.
 */
class MachineClock extends SystemClock {
  override uptime(): Uptime {
    try {
      const boot = readFileSync("/proc/sys/kernel/random/boot_id", "ascii").trim();
      // Some containers have an uptime of their own, so each is a run of its own.
      const run = `${boot} ${readlinkSync("/proc/self/ns/pid")}`;
      return { run, elapsed: Math.floor(1000 * uptime()) };
    } catch {
      return super.uptime();
    }
  }
}
