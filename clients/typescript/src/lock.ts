/** A lock between the processes of a machine, by a file that only one of them can create; for Node. */
import { randomBytes } from "node:crypto";
import { link, readdir, readFile, readlink, unlink, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { basename, dirname, join } from "node:path";
import { BusyError } from "./errors.js";

/** No wait is longer; a change takes milliseconds. */
const LONGEST_WAIT_MS = 20_000;
/** Whoever has held a lock for longer makes no change any more, */
const LONGEST_HELD_MS = 10_000;
/** and others may take it, even if they cannot see whether its owner lives: it may be in another container. */
const ABANDONED_MS = 60_000;
const WAIT_MS = 5;

/** Who holds a lock: a process, where its number means it, when it began, since when it has the lock, and a random part. */
interface Owner {
  pid: number;
  where: string;
  began: string;
  stamp: number;
  token: string;
}

export interface Lock {
  /** Throws BusyError if the lock has been held for too long, or was taken away. */
  check(): Promise<void>;
  release(): Promise<void>;
}

/** Waits for a lock, a file at a path. The lock of a dead process is broken. */
export async function locked(path: string): Promise<Lock> {
  const { pid } = process;
  const owner: Owner = { pid, where: await here, began: await began(pid), stamp: Date.now(), token: randomBytes(8).toString("hex") };
  const until = performance.now() + LONGEST_WAIT_MS;
  // Written aside and linked, so that no lock is ever without its owner.
  const aside = `${path}.${owner.token}`;
  await writeFile(aside, JSON.stringify(owner), { mode: 0o600 });
  try {
    for (;;) {
      const held = performance.now();
      if (await link(aside, path).then(() => true, unless("EEXIST", false))) return lockOf(path, owner, held);
      const other = await ownerOf(path);
      if (other !== null && (await isDead(other))) await broken(path, other);
      else if (performance.now() > until) throw new BusyError(path);
      else await new Promise((done) => setTimeout(done, WAIT_MS * (0.5 + Math.random())));
    }
  } finally {
    await unlink(aside);
  }
}

function lockOf(path: string, owner: Owner, held: number): Lock {
  return {
    check: async () => {
      if (performance.now() - held > LONGEST_HELD_MS || (await ownerOf(path))?.token !== owner.token) throw new BusyError(path);
    },
    release: async () => {
      if ((await ownerOf(path))?.token === owner.token) await unlink(path);
    },
  };
}

/**
 * Removes the lock of a dead owner. Two processes that find it at once must not, one behind the other, remove first this
 * lock and then the next one. So there is a lock of the right to remove it, named by its random part; whoever holds that
 * looks again, and then nobody else removes it, for its owner cannot.
 */
async function broken(path: string, dead: Owner): Promise<void> {
  const right = await locked(`${path}.${dead.token}.dead`);
  try {
    if ((await ownerOf(path))?.token === dead.token) await unlink(path);
    await sweep(path);
  } finally {
    await right.release();
  }
}

/** Removes what processes that were killed while they waited for a lock have written aside. */
async function sweep(path: string): Promise<void> {
  for (const name of await readdir(dirname(path))) {
    const aside = join(dirname(path), name);
    if (!name.startsWith(`${basename(path)}.`) || !/\.[0-9a-f]{16}$/.test(name)) continue;
    const owner = await ownerOf(aside).catch(() => null);
    if (owner !== null && (await isDead(owner))) await unlink(aside).catch(unless("ENOENT", undefined));
  }
}

async function ownerOf(path: string): Promise<Owner | null> {
  const text = await readFile(path, "utf8").catch(unless("ENOENT", null));
  if (text === null) return null;
  try {
    return JSON.parse(text) as Owner;
  } catch {
    throw new BusyError(path); // another program has made this file
  }
}

async function isDead({ pid, where: there, began: then, stamp }: Owner): Promise<boolean> {
  if (Math.abs(Date.now() - stamp) > ABANDONED_MS) return true;
  if (there !== (await here)) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
  return then !== (await began(pid)); // another process has got its number since
}

/** Names the machine since its start, and its numbers of processes, of which each container has its own; Linux alone can. */
const here = Promise.all([
  readFile("/proc/sys/kernel/random/boot_id", "ascii").catch(() => ""),
  readlink("/proc/self/ns/pid").catch(() => ""),
]).then((names) => [hostname(), ...names].join(" "));

/** When a process began, in clock ticks since the machine was started: its 22nd field, the 20th behind its name. */
async function began(pid: number): Promise<string> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
}

/** Returns a value in place of an error with a code. */
export const unless =
  <T>(code: string, value: T) =>
  (error: NodeJS.ErrnoException): T => {
    if (error.code === code) return value;
    throw error;
  };
