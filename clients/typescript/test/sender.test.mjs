// The queue and its rounds: what each answer of a server makes of a message, of those behind it, and of the next round.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { MemoryStore, QueueFullError, Sender } from "../dist/index.js";

const NOW = 1_767_603_600_000;
const AWAY = "http://127.0.0.1:9";
const rows = (store) => store.change("queue", (text) => ({ result: text === null ? [] : JSON.parse(text.slice(text.indexOf("\n"))) }));

/** Runs with a server that answers in turn with these, and then with 202. An answer is a status, its headers and its text. */
async function answering(answers, run) {
  const received = [];
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    received.push({ path: request.url, token: request.headers.authorization, message: Buffer.concat(parts).toString("hex") });
    const answer = answers[received.length - 1] ?? 202;
    if (answer === "none") return request.socket.destroy();
    if (answer === "silent") return undefined;
    const [status, headers = {}, text = ""] = [answer].flat();
    return response.writeHead(status, headers).end(text);
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  try {
    await run(`http://127.0.0.1:${server.address().port}`, received);
  } finally {
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  }
  return received.map(({ message }) => message);
}

/** A sender whose queue has messages of one byte each, 1, 2 and so on; and what it has told. */
async function filled(url, count, options = {}, store = new MemoryStore()) {
  const heard = [];
  const sender = new Sender(url, store, { onOutcome: (id, outcome) => heard.push([id, outcome]), ...options });
  const ids = [];
  for (let number = 1; number <= count; number++) ids.push(await sender.add(Uint8Array.of(number)));
  return { sender, store, heard, ids };
}
const stopped = (t, now = NOW) => t.mock.timers.enable({ apis: ["Date"], now });

test("an id names a message, in the queue and to a listener", () =>
  answering([], async (url) => {
    const { sender, store, heard, ids } = await filled(url, 2);
    assert.ok(ids.every((id) => /^[0-9a-f]{32}$/.test(id)) && ids[0] !== ids[1]);
    assert.deepEqual((await rows(store))[0], { id: ids[0], message: "01", attempts: 0, next: 0 });
    assert.deepEqual(await sender.flush(), { taken: 2, refused: 0, waiting: 0, again: null, needsYou: null });
    assert.deepEqual(heard, ids.map((id) => [id, { kind: "taken" }]));
  }));

for (const status of [413, 422])
  test(`${status} drops a message, says why, and holds back no other`, async () => {
    const received = await answering([[status, {}, '{"reason":"not_avro"}']], async (url) => {
      const { sender, heard, ids } = await filled(url, 2);
      assert.deepEqual(await sender.flush(), { taken: 1, refused: 1, waiting: 0, again: null, needsYou: null });
      assert.deepEqual(heard[0], [ids[0], { kind: "refused", status, reason: '{"reason":"not_avro"}' }]);
    });
    assert.deepEqual(received, ["01", "02"]);
  });

for (const status of [200, 204, 302, 400, 401, 403, 404, 405, 415, 431])
  test(`${status} needs the app: it ends the round, and every message stays`, async () => {
    const headers = status === 302 ? { location: "/elsewhere" } : {};
    const received = await answering([[status, headers, status === 204 ? "" : "why"]], async (url) => {
      const { sender, heard, ids } = await filled(url, 2);
      const needsYou = { status, text: status === 204 ? "" : "why" };
      assert.deepEqual(await sender.flush(), { taken: 0, refused: 0, waiting: 2, again: null, needsYou });
      assert.deepEqual(heard, [[ids[0], { kind: "needsYou", ...needsYou }]]);
      // What the app has set right is sent at once.
      assert.deepEqual(await sender.flush(), { taken: 2, refused: 0, waiting: 0, again: null, needsYou: null });
    });
    assert.deepEqual(received, ["01", "01", "02"]);
  });

for (const answer of [408, 500, 502, "none"])
  test(`${answer} gives a message another time, and those behind it theirs`, async (t) => {
    stopped(t);
    const received = await answering([answer], async (url) => {
      const { sender, store, heard, ids } = await filled(url, 2);
      const { again, ...counts } = await sender.flush();
      assert.deepEqual(counts, { taken: 1, refused: 0, waiting: 1, needsYou: null });
      assert.ok(again >= NOW + 250 && again <= NOW + 500);
      assert.deepEqual(heard[0], [ids[0], { kind: "again", status: answer === "none" ? null : answer, at: again }]);
      assert.equal((await rows(store))[0].next, again);
      assert.deepEqual(await sender.flush(), { taken: 0, refused: 0, waiting: 1, again, needsYou: null }); // not yet
      t.mock.timers.setTime(again);
      assert.equal((await new Sender(url, store).flush()).taken, 1); // also behind a restart
    });
    assert.deepEqual(received, ["01", "02", "01"]);
  });

test("waits double, up to the longest one", async (t) => {
  stopped(t);
  t.mock.method(Math, "random", () => 1 - 2 ** -53);
  await answering(Array(12).fill(500), async (url) => {
    const { sender } = await filled(url, 1, { longestWaitMs: 10_000 });
    const waits = [];
    for (let round = 0; round < 8; round++) {
      const { again } = await sender.flush();
      waits.push(again - Date.now());
      t.mock.timers.setTime(again);
    }
    assert.deepEqual(waits, [500, 1000, 2000, 4000, 8000, 10_000, 10_000, 10_000]);
  });
});

test("three in a row without an answer end a round", async (t) => {
  stopped(t);
  const received = await answering(["none", "none", 422, "none", "none", "none"], async (url) => {
    const { sender } = await filled(url, 8);
    const { again, ...counts } = await sender.flush();
    assert.deepEqual(counts, { taken: 0, refused: 1, waiting: 7, needsYou: null });
    assert.ok(again >= NOW + 250);
  });
  assert.deepEqual(received, ["01", "02", "03", "04", "05", "06"]);
});

for (const status of [429, 503]) {
  test(`three in a row with ${status} end a round`, async () => {
    const received = await answering(Array(9).fill(status), async (url) => {
      const { sender } = await filled(url, 5);
      assert.equal((await sender.flush()).waiting, 5);
    });
    assert.deepEqual(received, ["01", "02", "03"]);
  });

  for (const [after, wait] of [
    ["7", 7000],
    ["999999999999", 86_400_000],
    ["Thu, 01 Jan 2026 00:01:00 GMT", 60_000],
  ])
    test(`${status} with Retry-After: ${after} lets all messages wait`, async (t) => {
      stopped(t);
      // The clock of the device is days off, so the date of the answer says what the other one means.
      const headers = { "retry-after": after, date: "Thu, 01 Jan 2026 00:00:00 GMT" };
      const received = await answering([[status, headers]], async (url) => {
        const { sender, store } = await filled(url, 3);
        assert.deepEqual(await sender.flush(), { taken: 0, refused: 0, waiting: 3, again: NOW + wait, needsYou: null });
        assert.deepEqual((await rows(store)).map(({ next }) => next), Array(3).fill(NOW + wait));
        t.mock.timers.setTime(NOW + wait);
        assert.equal((await sender.flush()).taken, 3);
      });
      assert.deepEqual(received, ["01", "01", "02", "03"]);
    });

  for (const after of ["-5", "1e300", "x", "", "Thu, 01 Jan 2015 00:00:00 GMT"])
    test(`${status} with Retry-After: ${after} is one without it`, async (t) => {
      stopped(t);
      await answering([[status, { "retry-after": after }]], async (url) => {
        const { sender } = await filled(url, 2);
        const { again, taken } = await sender.flush();
        assert.equal(taken, 1);
        assert.ok(again >= NOW + 250 && again <= NOW + 500);
      });
    });
}

test("429 with a reason is about that message alone", async (t) => {
  stopped(t);
  const early = [429, { "retry-after": "86400" }, '{"reason":"too_early","detail":"x"}'];
  const received = await answering([early, early, early], async (url) => {
    const { sender, store } = await filled(url, 5);
    assert.deepEqual(await sender.flush(), { taken: 2, refused: 0, waiting: 3, again: NOW + 86_400_000, needsYou: null });
    assert.deepEqual((await rows(store)).map(({ next }) => next), Array(3).fill(NOW + 86_400_000));
  });
  assert.deepEqual(received, ["01", "02", "03", "04", "05"]);
});

for (const text of ['"reason"', '["reason"]', "null", '{"reason"', "the reason"])
  test(`429 with ${text} lets all messages wait`, async (t) => {
    stopped(t);
    await answering([[429, { "retry-after": "60" }, text]], async (url) => {
      const { sender } = await filled(url, 2);
      assert.deepEqual(await sender.flush(), { taken: 0, refused: 0, waiting: 2, again: NOW + 60_000, needsYou: null });
    });
  });

test("an attempt has a time limit, whatever fetch does", async () => {
  await answering(["silent"], async (url) => {
    const { sender } = await filled(url, 2, { timeLimitMs: 100 });
    assert.equal((await sender.flush()).taken, 1);
  });
  const { sender } = await filled(AWAY, 1, { timeLimitMs: 20, fetch: () => new Promise(() => {}) });
  assert.equal((await sender.flush()).waiting, 1);
});

test("an answer without an end counts by its status", async () => {
  const endless = new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(100).fill(97)) });
  const { sender, heard } = await filled(AWAY, 1, { fetch: async () => new Response(endless, { status: 422 }) });
  assert.equal((await sender.flush()).refused, 1);
  assert.equal(heard[0][1].reason, "a".repeat(1000));
});

test("a lease keeps other senders away, and runs out", async (t) => {
  stopped(t);
  const store = new MemoryStore();
  const other = await filled(AWAY, 1, { timeLimitMs: 1000 }, store);
  let ended;
  const hanging = new Sender(AWAY, store, { timeLimitMs: 1000, fetch: () => new Promise((_, reject) => (ended = reject)) });
  const killed = hanging.flush();
  while (ended === undefined) await new Promise(setImmediate);
  const sending = { fetch: async () => new Response("", { status: 202 }) };
  assert.deepEqual(await new Sender(AWAY, store, sending).flush(), { taken: 0, refused: 0, waiting: 1, again: NOW + 1500, needsYou: null });
  t.mock.timers.setTime(NOW + 1500);
  assert.equal((await new Sender(AWAY, store, sending).flush()).taken, 1);
  ended(new TypeError("killed"));
  assert.deepEqual(await killed, { taken: 0, refused: 0, waiting: 0, again: null, needsYou: null });
  assert.equal(other.heard.length, 0);
});

test("of two senders whose lease of a row overlaps, one counts it", async (t) => {
  stopped(t);
  const store = new MemoryStore();
  await filled(AWAY, 1, {}, store);
  let answer;
  const slow = new Sender(AWAY, store, { fetch: () => new Promise((resolve) => (answer = () => resolve(new Response("", { status: 202 })))) });
  const first = slow.flush();
  while (answer === undefined) await new Promise(setImmediate);
  t.mock.timers.setTime(NOW + 60_000);
  const second = await new Sender(AWAY, store, { fetch: async () => new Response("", { status: 202 }) }).flush();
  answer();
  assert.deepEqual([second.taken, (await first).taken], [1, 0]);
});

test("a clock that was wrong holds no message back for years", async (t) => {
  stopped(t, Date.UTC(2038, 0, 19));
  await answering([500], async (url) => {
    const { sender } = await filled(url, 1);
    await sender.flush();
    t.mock.timers.setTime(NOW);
    assert.equal((await sender.flush()).taken, 1);
  });
});

test("what is added in a round waits for the next one, whose time has come", async () => {
  const { sender, store } = await filled(AWAY, 1, {
    fetch: async () => {
      await new Sender(AWAY, store).add(Uint8Array.of(2));
      return new Response("", { status: 202 });
    },
  });
  const { taken, waiting, again } = await sender.flush();
  assert.deepEqual([taken, waiting], [1, 1]);
  assert.ok(again <= Date.now());
});

test("two flushes at once are one round", async () => {
  const received = await answering([], async (url) => {
    const { sender } = await filled(url, 2);
    const [first, second] = await Promise.all([sender.flush(), sender.flush()]);
    assert.deepEqual([first, first.taken], [second, 2]);
  });
  assert.deepEqual(received, ["01", "02"]);
});

test("a queue has an end", async () => {
  const { sender, store } = await filled(AWAY, 2, { mostWaiting: 2 });
  const error = await sender.add(Uint8Array.of(3)).catch((thrown) => thrown);
  assert.ok(error instanceof QueueFullError);
  assert.equal(error.mostWaiting, 2);
  assert.equal((await rows(store)).length, 2);
});

test("a URL may end with slashes, and have a path", () =>
  answering([], async (url, received) => {
    for (const end of ["", "/", "//", "/a", "/a/"]) await (await filled(url + end, 1, { token: "t" })).sender.flush();
    assert.deepEqual(received.map(({ path }) => path), ["/v1/reports", "/v1/reports", "/v1/reports", "/a/v1/reports", "/a/v1/reports"]);
    assert.deepEqual([...new Set(received.map(({ token }) => token))], ["Bearer t"]);
  }));

for (const url of ["", "collect.example", "/v1", "ftp://a", "file:///a", "javascript:1", "https://a?b=1", "https://a?", "https://a#b", "https://u:p@a"])
  test(`no URL of a server: ${url}`, () => assert.throws(() => new Sender(url, new MemoryStore()), { name: "RangeError", message: /^the URL of a server / }));

test("a token is one that a header can hold", () => {
  for (const token of ["a b", "é", "a\n"]) assert.throws(() => new Sender(AWAY, new MemoryStore(), { token }), /the token has/);
});
