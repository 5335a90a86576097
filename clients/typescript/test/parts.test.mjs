// What the conformance vectors do not reach: values as programs give them, kept responses, batches, and both builds.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { batch, Device, MemoryStore } from "../dist/index.js";
import { changed, HOUR, kept, NOW, survey } from "./tables.mjs";

/** Draws one number, or the largest one below a smaller limit. */
const always = (number) => ({ below: (limit) => Math.min(number, limit - 1), wide: () => 0n });
const reporting = (table, ledger, draws) => new Device(table, { ledger, skewMs: null, ...(draws && { draws }) });

test("a response is kept over restarts, and sent once in a window", async () => {
  const store = new MemoryStore();
  // These draws make the first response noise, and let no later report replace it.
  assert.equal(await reporting(kept, store, always(0)).payload("once", NOW), 0);
  assert.equal(await reporting(kept, store, always(2 ** 53 - 1)).payload("once", NOW + HOUR), 0);
  await assert.rejects(reporting(kept, store).payload("once", NOW + HOUR + 1), /in this window/);
});

test("tabs that ask for a response at once get one, in one window", async () => {
  const store = new MemoryStore();
  const asked = await Promise.allSettled(Array.from({ length: 8 }, () => reporting(kept, store).payload("once", NOW)));
  assert.equal(asked.filter(({ status }) => status === "fulfilled").length, 1);
  const { spent } = await store.change("ledger", (text) => ({ result: JSON.parse(text.split("\n")[1]) }));
  assert.deepEqual(spent.map(({ epsilon }) => epsilon), [kept.spends.epsilon]);
});

test("a device needs a ledger for a budget", () => {
  assert.throws(() => new Device(survey), /needs a ledger/);
});

test("a budget says when the device can report again", async () => {
  const store = new MemoryStore();
  await reporting(survey, store).payload("once", NOW);
  const refused = await reporting(survey, store).payload("once", NOW + HOUR).catch((error) => error);
  assert.deepEqual([refused.name, refused.until], ["BudgetExceededError", NOW + 30 * 24 * HOUR]);
  await reporting(survey, store).payload("once", refused.until);
});

test("errors name no value", async () => {
  const device = reporting(survey, new MemoryStore());
  await assert.rejects(device.report("secret"), { message: "a value is no label of the domain" });
});

/** What is reported of a value if no noise is drawn. */
async function truth(keys, value, hidden) {
  const table = await changed(survey, { budget: null, ...keys });
  return new Device(table, { hidden, draws: always(2 ** 53 - 1) }).payload(value, NOW);
}
const identity = { encoding: { form: "value", size: 3, tags: 1 }, mechanism: { form: "identity" } };
const listed = { name: "", kind: "values", domain: { labels: ["never", "1", "always"] }, tags: ["home"] };

test("a value is a label or an index, and so is what is hidden", async () => {
  const keys = { ...identity, columns: [listed] };
  assert.deepEqual(await Promise.all(["always", 2, "1", 1, 0].map((value) => truth(keys, value))), [2, 2, 1, 1, 0]);
  for (const hidden of [{ always: "home" }, { 2: "home" }]) assert.equal(await truth(keys, "always", hidden), 3);
  assert.equal(await truth(keys, 1, { 1: "home" }), 3); // a label comes before an index
  for (const value of ["2", 3, -1, 0.5, null, {}]) await assert.rejects(truth(keys, value), RangeError);
  for (const hidden of [{ 3: "home" }, { other: "home" }, { 2: "work" }]) await assert.rejects(truth(keys, 0, hidden), /hidden has/);
});

test("names of every object are names of collections, attributes and levels as others", async () => {
  const columns = ["constructor", "class"].map((name) => ({ ...listed, name }));
  const encoding = { form: "view", encodings: [identity.encoding, identity.encoding], sizes: [4, 4] };
  const keys = { ...identity, collection: "int", columns, encoding };
  assert.equal(await truth(keys, { constructor: 1, class: "never" }, { constructor: { 2: "home" } }), 4);
  assert.equal(await truth(keys, { constructor: 1, class: "never" }), 4);
  await assert.rejects(truth(keys, { class: 1 }), /a record needs a value for constructor/);
});

test("a set has each item once", async () => {
  const set = { encoding: { form: "set", size: 3, held: 2 }, mechanism: { form: "hits", buckets: 8, held: 2, hit: 2 ** 52 } };
  const keys = { ...set, columns: [{ name: "", kind: "set", domain: { "set.of.labels": ["a", "b", "c"] }, tags: [] }] };
  await truth(keys, ["a", 1]);
  await assert.rejects(truth(keys, ["a", 0]), { message: "the value has an item twice" });
});

test("a batch has the columns of its reports", () => {
  const bytes = (hex) => [...Buffer.from(hex, "hex")];
  const reports = [
    { id: new Uint8Array(16).fill(1), time: NOW, payload: 2 },
    { id: new Uint8Array(16).fill(2), time: -1, payload: 0 },
  ];
  const found = [...batch("c", 1, reports)];
  assert.deepEqual(found.slice(0, 46), bytes(`c3013008a78dd07701ed026302${"40"}${"01".repeat(16)}${"02".repeat(16)}`).slice(0, 46));
  assert.deepEqual(found.slice(-10), bytes("00100200000000000000"));
});

test("require gives what import gives", async () => {
  const require = createRequire(import.meta.url);
  for (const name of ["uldp-client", "uldp-client/node"])
    assert.deepEqual(Object.keys(require(name)).sort(), Object.keys(await import(name)).sort());
  const { FileStore } = require("uldp-client/node");
  assert.equal(typeof new FileStore("store").change, "function");
});
