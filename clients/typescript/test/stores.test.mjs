// Stores: what a restart finds, what damage leaves, and what a page must have.
import "fake-indexeddb/auto";
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { BrowserStore, BusyError, DamagedError, Device, LaterVersionError, MemoryStore, Sender, supported, UnsupportedError } from "../dist/index.js";
import { FileStore } from "../dist/node.js";
import { checksum, sealed } from "../dist/store.js";
import { NOW, survey } from "./tables.mjs";

const folder = () => mkdtempSync(join(tmpdir(), "uldp-"));
const shared = folder();
/** What opens each store anew, as a restart does. */
const STORES = { files: () => new FileStore(join(shared, "store")), browser: () => new BrowserStore("store") };
const read = (store, name) => store.change(name, (text) => ({ result: text }));
const write = (store, name, text) => store.change(name, () => ({ text, result: undefined }));
const reporting = (ledger) => new Device(survey, { ledger, skewMs: null });

for (const [kind, opened] of Object.entries(STORES)) {
  test(`${kind}: an entry is there after a restart, until it is removed`, async () => {
    assert.equal(await read(opened(), "ledger"), null);
    for (const text of ["{}", '{"é": "\'"}']) {
      await write(opened(), "ledger", text);
      assert.equal(await read(opened(), "ledger"), text);
      assert.equal(await read(opened(), "queue"), null);
    }
    await write(opened(), "ledger", null);
    assert.equal(await read(opened(), "ledger"), null);
  });

  test(`${kind}: an edit that throws changes nothing`, async () => {
    await write(opened(), "queue", "before");
    const failing = opened().change("queue", () => {
      throw new RangeError("no");
    });
    await assert.rejects(failing, { name: "RangeError", message: "no" });
    assert.equal(await read(opened(), "queue"), "before");
    await write(opened(), "queue", null);
  });

  test(`${kind}: changes at once come one behind the other`, async () => {
    const stores = [opened(), opened()];
    const add = (_, at) => stores[at % 2].change("count", (text) => ({ text: String(Number(text) + 1), result: text }));
    assert.equal(new Set(await Promise.all(Array.from({ length: 40 }, add))).size, 40);
    assert.equal(await read(opened(), "count"), "40");
  });

  test(`${kind}: a ledger and a queue share a store`, async () => {
    const store = opened();
    const sender = new Sender("http://127.0.0.1:9", store);
    await sender.add(await reporting(store).report("once", NOW));
    await assert.rejects(reporting(opened()).report("once", NOW), { name: "BudgetExceededError" });
    await assert.rejects(new Sender("http://127.0.0.1:9", opened(), { mostWaiting: 1 }).add(Uint8Array.of(1)), /1 messages wait/);
  });
}

const DAMAGE = {
  "a changed byte": (text) => text.replace("spent", "spenu"),
  "a cut end": (text) => text.slice(0, -1),
  nothing: () => "",
  "JSON of another program": () => "[]",
  "an entry of another name": (text) => text.replace("ledger", "queue"),
  "a queue": () => sealed("queue", []),
  "a changed version": (text) => text.replace("uldp 1", "uldp 2"),
};
for (const [what, damage] of Object.entries(DAMAGE))
  test(`a ledger refuses to report with ${what}, and stays as it is`, async () => {
    const store = new MemoryStore();
    await reporting(store).payload("once", NOW);
    const damaged = damage(await read(store, "ledger"));
    await write(store, "ledger", damaged);
    const error = await reporting(store).payload("once", NOW).catch((thrown) => thrown);
    assert.ok(error instanceof DamagedError);
    assert.deepEqual([error.entry, error.keptAs], ["ledger", null]);
    assert.match(error.message, /restore it, or remove it and spend all budgets once more: store.change\("ledger", /);
    assert.equal(await read(store, "ledger"), damaged);
    await store.change("ledger", () => ({ text: null, result: null })); // the remedy of the message
    await reporting(store).payload("once", NOW);
  });

test("a damaged queue is set aside, and a new one begins", async () => {
  const store = new MemoryStore();
  const heard = [];
  const sender = new Sender("http://127.0.0.1:9", store, { onDamage: (error) => heard.push(error) });
  await sender.add(Uint8Array.of(1));
  const damaged = (await read(store, "queue")).replace('"01"', '"02"');
  await write(store, "queue", damaged);
  await sender.add(Uint8Array.of(3));
  assert.equal(heard.length, 1);
  assert.ok(heard[0] instanceof DamagedError);
  assert.equal(heard[0].keptAs, `queue-damaged-${checksum(damaged)}`);
  assert.equal(await read(store, heard[0].keptAs), damaged);
  assert.match(await read(store, "queue"), /"message":"03"/);
  assert.doesNotMatch(await read(store, "queue"), /"message":"0[12]"/);
});

test("what a later version has written stays", async () => {
  const later = (name) => {
    const body = `uldp 2 ${name}\n{}`;
    return body.replace("\n", ` ${checksum(body)}\n`);
  };
  const store = new MemoryStore();
  await write(store, "ledger", later("ledger"));
  await write(store, "queue", later("queue"));
  await assert.rejects(reporting(store).payload("once", NOW), LaterVersionError);
  await assert.rejects(new Sender("http://127.0.0.1:9", store).add(Uint8Array.of(1)), LaterVersionError);
  assert.equal(await read(store, "queue"), later("queue"));
});

test("a checksum is CRC-32 of UTF-8", () => {
  assert.equal(checksum("123456789"), "cbf43926");
  assert.equal(checksum("é"), checksum(new TextDecoder().decode(Uint8Array.of(0xc3, 0xa9))));
});

test("only its owner reads a store of files, and names of entries stay in it", async () => {
  const path = join(folder(), "a", "b");
  await write(new FileStore(path), "ledger", "{}");
  assert.equal(statSync(path).mode & 0o777, 0o700);
  assert.equal(statSync(join(path, "ledger")).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(path), ["ledger"]);
  for (const name of ["../x", "", "a/b", "A"]) await assert.rejects(write(new FileStore(path), name, ""), /an entry is named/);
});

/** The lock of an owner that differs from this process in some keys. */
async function lockedBy(path, keys) {
  let lock;
  const store = new FileStore(path);
  await store.change("ledger", () => {
    lock = JSON.parse(readFileSync(join(path, "ledger.lock"), "utf8"));
    return { text: "before", result: null };
  });
  writeFileSync(join(path, "ledger.lock"), JSON.stringify({ ...lock, token: "ab".repeat(8), ...keys }));
  writeFileSync(join(path, `ledger.lock.${"cd".repeat(8)}`), JSON.stringify({ ...lock, ...keys })); // one who was killed while it waited
  return store;
}
const DEAD = {
  "a dead process": { pid: 2 ** 22 + 1 },
  "a process whose number another has by now": { pid: process.pid, began: "1" },
  "a process that nobody here sees, long ago": { pid: 1, where: "another container", stamp: NOW },
};
for (const [what, keys] of Object.entries(DEAD))
  test(`the lock of ${what} is broken by one of many`, async () => {
    const path = join(folder(), "store");
    const store = await lockedBy(path, keys);
    const add = () => new FileStore(path).change("ledger", (text) => ({ text: `${text} 1`, result: null }));
    await Promise.all([store.change("ledger", (text) => ({ text: `${text} 1`, result: null })), add(), add(), add()]);
    assert.equal(await read(store, "ledger"), "before 1 1 1 1");
    assert.deepEqual(readdirSync(path), ["ledger"]);
  });

test("the lock of a process that lives holds, and no wait is without an end", async (t) => {
  const path = join(folder(), "store");
  const store = await lockedBy(path, { pid: process.ppid, where: "another container" });
  let passed = 0;
  t.mock.method(performance, "now", () => (passed += 1000)); // each look at the clock is a second later
  const error = await write(store, "ledger", "after").catch((thrown) => thrown);
  assert.ok(error instanceof BusyError);
  assert.match(error.message, /ledger\.lock is locked by another program; if none uses this store, remove this file/);
  assert.equal(readFileSync(join(path, "ledger"), "utf8"), "before");
});

test("who has held a lock for too long changes nothing", async (t) => {
  const path = join(folder(), "store");
  await write(new FileStore(path), "ledger", "before");
  let passed = 0;
  const late = new FileStore(path).change("ledger", () => {
    t.mock.method(performance, "now", () => (passed = 1e9));
    return { text: "after", result: null };
  });
  await assert.rejects(late, BusyError);
  assert.equal(passed, 1e9);
  assert.equal(readFileSync(join(path, "ledger"), "utf8"), "before");
});

/** Runs with another value of a global. */
async function without(name, value, run) {
  const before = Object.getOwnPropertyDescriptor(globalThis, name);
  Object.defineProperty(globalThis, name, { value, configurable: true });
  try {
    await run();
  } finally {
    Object.defineProperty(globalThis, name, before);
  }
}
const refusing = (name) => ({
  open: () => {
    const opening = { error: { name } };
    queueMicrotask(() => opening.onerror());
    return opening;
  },
});
const forbidding = {
  open: () => {
    throw new DOMException("denied", "SecurityError");
  },
};
const LACKS = [
  ["indexedDB", undefined, /cannot open IndexedDB \(the browser has none\)/],
  ["indexedDB", null, /cannot open IndexedDB \(the browser has none\)/],
  ["indexedDB", refusing("InvalidStateError"), /cannot open IndexedDB \(InvalidStateError\): a private window/],
  ["indexedDB", forbidding, /cannot open IndexedDB \(SecurityError\)/],
];
for (const [name, value, said] of LACKS)
  test(`a page is told that it cannot open ${name}: ${said.source}`, () =>
    without(name, value, async () => {
      assert.match(await supported(), said);
      await assert.rejects(write(new BrowserStore(), "queue", ""), UnsupportedError);
    }));

const randomOnly = { getRandomValues: (bytes) => bytes };
for (const value of [undefined, randomOnly, { subtle: {} }])
  test(`a page is told that it has not all of crypto: ${Object.keys(value ?? {})}`, () =>
    without("crypto", value, async () => {
      assert.match(await supported(), /serve it by HTTPS or from localhost/);
      assert.throws(() => reporting(new MemoryStore()), UnsupportedError);
      assert.throws(() => new Sender("http://127.0.0.1:9", new MemoryStore()), UnsupportedError);
    }));

test("a page that has all is told nothing", async () => assert.equal(await supported(), null));
