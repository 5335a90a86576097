// What the conformance vectors do not reach: storages, ledgers over restarts, the queue of messages, and batches.
import "fake-indexeddb/auto";
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { batch, BrowserLedger, BrowserStorage, BudgetExceededError, Device, MemoryStorage, Sender, StoredLedger } from "../dist/index.js";
import { FileStorage } from "../dist/node.js";

const NOW = 1_767_603_600_000;
const HOUR = 3_600_000;
const tables = new URL("../../kotlin/src/test/resources/", import.meta.url);
const [survey, kept] = ["survey", "kept"].map((name) => JSON.parse(readFileSync(new URL(`${name}.json`, tables), "utf8")));
const folder = mkdtempSync(join(tmpdir(), "uldp-"));
// A browser gives a lock to one tab at a time; there is one here.
Object.defineProperty(globalThis, "navigator", { value: { locks: { request: (_, run) => run() } }, configurable: true });
/** What opens each storage anew, as a restart does. */
const STORAGES = { file: () => new FileStorage(join(folder, "ledger")), browser: () => new BrowserStorage("ledger") };
/** Draws one number, or the largest one below a smaller limit. */
const always = (number) => ({ below: (limit) => Math.min(number, limit - 1), wide: () => 0n });
const reporting = (table, ledger, draws) => new Device(table, { ledger, skewMs: null, ...(draws && { draws }) });

for (const [name, opened] of Object.entries(STORAGES)) {
  test(`what is written to a ${name} is read after a restart`, async () => {
    assert.equal(await opened().read(), null);
    for (const text of ["{}", '{"é": "\'"}']) {
      await opened().write(text);
      assert.equal(await opened().read(), text);
    }
  });

  test(`a budget in a ${name} holds after a restart, and until its period is over`, async () => {
    const report = (time) => reporting(survey, new StoredLedger(opened())).payload("once", time);
    await opened().write('{"salt":"00","kept":{},"spent":[]}');
    await report(NOW);
    const refused = await report(NOW + HOUR).catch((error) => error);
    assert.ok(refused instanceof BudgetExceededError);
    assert.equal(refused.name, "BudgetExceededError");
    assert.equal(refused.until, NOW + 30 * 24 * HOUR);
    await report(refused.until);
  });

  test(`a change of a ${name} that fails is not made`, async () => {
    await new StoredLedger(opened()).change(async (content) => (content.spent = [[NOW, 1]]));
    const failing = new StoredLedger(opened()).change(async (content) => {
      content.spent = [];
      throw new Error("no");
    });
    await assert.rejects(failing, /no/);
    assert.deepEqual(await new StoredLedger(opened()).change(async ({ spent }) => spent), [[NOW, 1]]);
  });
}

test("only its owner reads a file", async () => {
  await new FileStorage(join(folder, "modes")).write("{}");
  assert.equal(statSync(join(folder, "modes")).mode & 0o777, 0o600);
});

test("tabs of a browser share a ledger", async () => {
  await reporting(survey, new BrowserLedger("tabs")).payload("once", NOW);
  await assert.rejects(reporting(survey, new BrowserLedger("tabs")).payload("once", NOW), BudgetExceededError);
});

test("a response is kept over restarts, and sent once in a window", async () => {
  const storage = new MemoryStorage();
  // These draws make the first response noise, and let no later report replace it.
  assert.equal(await reporting(kept, new StoredLedger(storage), always(0)).payload("once", NOW), 0);
  assert.equal(await reporting(kept, new StoredLedger(storage), always(2 ** 53 - 1)).payload("once", NOW + HOUR), 0);
  await assert.rejects(reporting(kept, new StoredLedger(storage)).payload("once", NOW + HOUR + 1), /in this window/);
});

test("a device needs a ledger for a budget, and believes its clock", async () => {
  assert.throws(() => new Device(survey), /needs a ledger/);
  await assert.rejects(new Device(survey, { ledger: new StoredLedger(new MemoryStorage()) }).payload("once", NOW), /far from the clock/);
});

test("errors name no value", async () => {
  const device = reporting(survey, new StoredLedger(new MemoryStorage()));
  await assert.rejects(device.report("secret"), { message: "a value is no label of the domain" });
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

/** Runs what is given with a sender to a server that answers with the statuses in turn, and then with 202. */
async function answering(statuses, queue, run) {
  const received = [];
  const waits = [];
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    received.push(Buffer.concat(parts).toString("hex"));
    const [status, after] = [statuses[received.length - 1] ?? 202].flat();
    response.writeHead(status, after === undefined ? {} : { "retry-after": after }).end('{"late":1,"new":[]}'); // a device needs none of it
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const options = { mostWaiting: 2, sleep: async (ms) => waits.push(ms) };
  const sent = await run(new Sender(`http://127.0.0.1:${server.address().port}`, queue, options));
  server.closeAllConnections();
  await new Promise((closed) => server.close(closed));
  return { sent, received, waits };
}

test("a message is sent until the server has it, with the same bytes", async () => {
  const { sent, received, waits } = await answering([500, [503, "7"]], new MemoryStorage(), async (sender) => {
    await sender.add(Uint8Array.of(1, 2));
    return sender.flush();
  });
  assert.deepEqual(sent, { taken: 1, refused: 0 });
  assert.deepEqual(received, ["0102", "0102", "0102"]);
  assert.ok(waits[0] >= 250 && waits[0] <= 500 && waits[1] === 7000);
});

test("no answer of a server makes a device wait for ever, or not at all", async () => {
  const after = ["Wed, 21 Oct 2026 07:28:00 GMT", "-5", "1e300", "x"];
  const { waits } = await answering(after.map((each) => [429, each]), new MemoryStorage(), async (sender) => {
    await sender.add(Uint8Array.of(1));
    await sender.flush();
  });
  assert.equal(waits.length, 4);
  assert.ok(waits.every((ms) => ms >= 250 && ms <= 86_400_000));
});

test("a message that the server never counts is dropped and counted", async () => {
  const queue = new MemoryStorage();
  const { sent } = await answering([422], queue, async (sender) => {
    await sender.add(Uint8Array.of(1));
    await sender.add(Uint8Array.of(2));
    return sender.flush();
  });
  assert.deepEqual(sent, { taken: 1, refused: 1 });
  assert.equal(await queue.read(), "[]");
});

test("only 202, 413 and 422 end the attempts of a message, and those behind it wait", async () => {
  const again = [400, 401, 403, 404, 408, 500];
  const { sent, received, waits } = await answering(again, new MemoryStorage(), async (sender) => {
    await sender.add(Uint8Array.of(1));
    await sender.add(Uint8Array.of(2));
    return sender.flush();
  });
  assert.deepEqual(sent, { taken: 2, refused: 0 });
  assert.deepEqual(received, [...again.map(() => "01"), "01", "02"]);
  assert.equal(waits.length, again.length);
});

test("a sleep that throws ends a flush, and the message waits for the next one", async () => {
  const queue = new MemoryStorage();
  const sleep = async () => {
    throw new Error("no answer");
  };
  const away = new Sender("http://127.0.0.1:9", queue, { sleep });
  await away.add(Uint8Array.of(1));
  await assert.rejects(away.flush(), /no answer/);
  await assert.rejects(away.flush(), /no answer/);
  const { sent } = await answering([], queue, (sender) => sender.flush());
  assert.deepEqual(sent, { taken: 1, refused: 0 });
});

test("a queue outlives a restart, and has an end", async () => {
  const queue = new MemoryStorage();
  const away = new Sender("http://127.0.0.1:9", queue, { mostWaiting: 2 });
  await away.add(Uint8Array.of(1));
  await away.add(Uint8Array.of(2));
  await assert.rejects(away.add(Uint8Array.of(3)), /too many messages wait/);
  const { received } = await answering([], queue, (sender) => sender.flush());
  assert.deepEqual(received, ["01", "02"]);
});

test("two flushes at once send each message once", async () => {
  const { received, sent } = await answering([], new MemoryStorage(), async (sender) => {
    await sender.add(Uint8Array.of(1));
    const first = sender.flush();
    await sender.add(Uint8Array.of(2));
    return Promise.all([first, sender.flush()]);
  });
  assert.deepEqual(received, ["01", "02"]);
  assert.deepEqual(sent, [{ taken: 2, refused: 0 }, { taken: 2, refused: 0 }]);
});
