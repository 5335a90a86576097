// Which times a device believes, by clocks that the tests set: those of the ledger in Python, and clocks that were wrong.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { BudgetExceededError, ClockError, Device, MemoryStore } from "../dist/index.js";
import { checkedStarts } from "../dist/clock.js";
import { FileStore } from "../dist/node.js";
import { bounded, changed, DAY, HOUR, kept, NOW } from "./tables.mjs";

const table = await bounded(4);
const YEAR = 365 * DAY;

/** A clock that a test sets, and the time that passes in truth. */
class SetClock {
  ahead = 0;
  passed = 0;
  run = "first";
  began = 0;
  now() {
    return NOW + this.passed + this.ahead;
  }
  uptime() {
    return this.run === null ? null : { run: this.run, elapsed: this.passed - this.began };
  }
}

/** Reports until a device that has just started refuses for want of budget, and returns how often. */
async function reports(store, clock, off = 0, skewMs = HOUR) {
  const device = new Device(table, { ledger: store, clock, skewMs });
  for (let made = 0; ; made++)
    try {
      await device.report("once", clock.now() + off);
    } catch (error) {
      if (error instanceof BudgetExceededError) return made;
      throw error;
    }
}
const setUp = (keys = {}) => [new MemoryStore(), Object.assign(new SetClock(), keys)];
const read = (store) => store.change("ledger", (text) => ({ result: text }));

for (const off of [31 * DAY, 62 * DAY, -31 * DAY, HOUR + 1, -HOUR - 1])
  test(`times of observations buy no budget: ${off}`, async () => {
    const [store, clock] = setUp();
    const said = /^the time of the observation is [\d,]+ s (ahead of|behind) .*skewMs, or null/;
    await assert.rejects(reports(store, clock, off), (error) => error instanceof ClockError && said.test(error.message));
    assert.equal(await read(store), null);
    assert.equal(await reports(store, clock), 4);
    await assert.rejects(reports(store, clock, off), ClockError);
  });

for (const off of [HOUR, -HOUR])
  test(`times within the skew are believed: ${off}`, async () => assert.equal(await reports(...setUp(), off), 4));

test("a clock that is set ahead buys no budget", async () => {
  const [store, clock] = setUp();
  assert.equal(await reports(store, clock), 4);
  const before = await read(store);
  for (const days of [31, 62]) {
    clock.ahead = days * DAY;
    await assert.rejects(reports(store, clock), new RegExp(`come ${(days * 86_400).toLocaleString("en")} s further than the time .*start the program anew`));
  }
  assert.equal(await read(store), before);
  clock.ahead = 0;
  clock.passed = 30 * DAY;
  assert.equal(await reports(store, clock), 4);
});

test("small jumps do not add up", async () => {
  const [store, clock] = setUp();
  assert.equal(await reports(store, clock), 4);
  clock.ahead = HOUR;
  assert.equal(await reports(store, clock), 0);
  clock.ahead = 2 * HOUR;
  await assert.rejects(reports(store, clock), ClockError);
});

test("a clock that was ahead when the run began is not the measure", async () => {
  const [store, clock] = setUp({ ahead: 62 * DAY });
  await new Device(table, { ledger: store, clock }).report("once", clock.now());
  clock.ahead = 0;
  assert.equal(await reports(store, clock), 3); // the clock is set back, which frees nothing
  clock.ahead = 62 * DAY;
  await assert.rejects(reports(store, clock), ClockError);
});

test("a new run begins anew", async () => {
  const [store, clock] = setUp({ ahead: -10 * DAY });
  assert.equal(await reports(store, clock), 4);
  clock.ahead = 0;
  await assert.rejects(reports(store, clock), ClockError);
  Object.assign(clock, { run: "second", began: HOUR, passed: HOUR });
  const before = await read(store);
  assert.equal(await reports(store, clock), 0);
  assert.equal(await read(store), before); // a refusal writes nothing
  clock.passed += 30 * DAY;
  assert.equal(await reports(store, clock), 4);
});

test("a clock without runs is believed", async () => {
  const [store, clock] = setUp({ run: null });
  assert.equal(await reports(store, clock), 4);
  clock.ahead = 31 * DAY;
  assert.equal(await reports(store, clock), 4);
});

test("a caller may say how far times are off", async () => {
  const [store, clock] = setUp();
  assert.equal(await reports(store, clock, -2 * DAY, 2 * DAY), 4);
  await assert.rejects(reports(store, clock, -2 * DAY - 1, 2 * DAY), ClockError);
  assert.equal(await reports(store, clock, 31 * DAY, null), 4);
});

test("tabs in turn are runs of their own", async () => {
  const store = new MemoryStore();
  const [first, second] = ["first", "second"].map((run) => Object.assign(new SetClock(), { run }));
  const report = (clock) => new Device(table, { ledger: store, clock }).report("once", clock.now());
  await report(first);
  await report(second);
  first.ahead = 31 * DAY;
  await assert.rejects(report(first), ClockError);
});

test("a device with kept responses checks too", async () => {
  const [store, clock] = setUp();
  const device = new Device(kept, { ledger: store, clock });
  await assert.rejects(device.report("once", NOW + DAY), /ahead of the clock/);
  await device.report("once", NOW);
});

test("a clock of 2038 in an earlier run silences a device for a period, not for years", async () => {
  const ahead = Date.UTC(2038, 0, 19) - NOW;
  const [store, clock] = setUp({ ahead });
  assert.equal(await reports(store, clock), 4);
  Object.assign(clock, { run: "second", ahead: 0 });
  assert.equal(await reports(store, clock), 0); // nor does it double the budget
  clock.passed = 30 * DAY - 1;
  assert.equal(await reports(store, clock), 0);
  clock.passed = 30 * DAY;
  assert.equal(await reports(store, clock), 4);
  clock.passed = ahead + DAY; // the time has come that the clock showed
  assert.equal(await reports(store, clock), 0);
});

test("a clock of 2010 in a later run frees nothing when it is right again", async () => {
  const [store, clock] = setUp();
  assert.equal(await reports(store, clock), 4);
  Object.assign(clock, { run: "second", ahead: Date.UTC(2010, 0, 1) - NOW });
  assert.equal(await reports(store, clock), 0);
  Object.assign(clock, { run: "third", ahead: 0, passed: DAY });
  assert.equal(await reports(store, clock), 0);
  Object.assign(clock, { ahead: -2 * HOUR }); // a little back, from which 2010 must not count
  assert.equal(await reports(store, clock), 0);
  Object.assign(clock, { ahead: 0, passed: 30 * DAY });
  assert.equal(await reports(store, clock), 4);
});

test("years that a clock jumps while a device is silent are no time that passes", async () => {
  const [store, clock] = setUp({ ahead: 12 * YEAR });
  assert.equal(await reports(store, clock), 4);
  clock.run = "second";
  for (const ahead of [-3 * YEAR, 0, -16 * YEAR, -2 * HOUR, 0]) {
    clock.ahead = ahead;
    clock.passed += HOUR;
    assert.equal(await reports(store, clock), 0);
  }
  clock.passed = HOUR + 30 * DAY - 1;
  assert.equal(await reports(store, clock), 0);
  clock.passed++;
  assert.equal(await reports(store, clock), 4);
});

test("tabs that have both looked at a clock see one jump of it", async () => {
  const [store, clock] = setUp({ ahead: 12 * YEAR });
  assert.equal(await reports(store, clock), 4);
  for (const [ahead, run] of [[-3 * YEAR, "a"], [-3 * YEAR, "b"], [0, "a"], [0, "b"]]) {
    Object.assign(clock, { ahead, run, passed: clock.passed + HOUR });
    assert.equal(await reports(store, clock), 0);
  }
  clock.passed = HOUR + 30 * DAY - 1;
  assert.equal(await reports(store, clock), 0);
  clock.passed++;
  assert.equal(await reports(store, clock), 4);
});

test("a clock that is set back twice silences a device for a period", async () => {
  const [store, clock] = setUp({ ahead: 12 * YEAR });
  assert.equal(await reports(store, clock), 4);
  for (const [run, ahead] of [["second", 11 * YEAR], ["third", 0]]) {
    Object.assign(clock, { run, ahead });
    assert.equal(await reports(store, clock), 0);
  }
  clock.passed = 30 * DAY;
  assert.equal(await reports(store, clock), 4);
});

test("a device says when it can report again, also if its clock comes to the time of a wrong one before", async () => {
  const [store, clock] = setUp({ ahead: 10 * DAY });
  assert.equal(await reports(store, clock), 4);
  Object.assign(clock, { run: "second", ahead: 0 });
  await assert.rejects(new Device(table, { ledger: store, clock }).report("once", clock.now()), { until: NOW + 40 * DAY });
});

test("a spending of 2038 does not let those of a day count as one", async () => {
  const [store, clock] = setUp({ ahead: 12 * YEAR });
  const often = await changed(table, { budget: { epsilon: 4, every_ms: 6 * HOUR } });
  const report = () => new Device(often, { ledger: store, clock }).report("once", clock.now());
  await report();
  Object.assign(clock, { run: "second", ahead: 0, passed: DAY });
  for (let round = 0; round < 30; round++) {
    clock.passed += 2 * HOUR;
    await report();
  }
});

test("a window of 2038 does not keep a device with kept responses from reporting", async () => {
  const [store, clock] = setUp({ ahead: Date.UTC(2038, 0, 19) - NOW });
  const report = () => new Device(kept, { ledger: store, clock }).report("once", clock.now());
  await report();
  Object.assign(clock, { run: "second", ahead: 0 });
  await report();
  await assert.rejects(report(), /in this window, or in a later one/);
});

for (const time of [1_767_603_600, 1_767_603_600.5, NOW + 0.5, Number.NaN, -1, 0, Number.POSITIVE_INFINITY, "2026", null, new Date(NOW)])
  test(`a time that is not in milliseconds is refused: ${time}`, async () => {
    const [store, clock] = setUp();
    for (const skewMs of [HOUR, null]) {
      const device = new Device(table, { ledger: store, clock, skewMs });
      await assert.rejects(device.report("once", time), { name: "RangeError", message: /not an integer of milliseconds since 1970 UTC: write Date\.now\(\)/ });
    }
    assert.equal(await read(store), null);
  });

test("a report without privacy spends more than any budget, also after a restart", async () => {
  const [store, clock] = setUp();
  const open = await changed(table, { spends: { epsilon: null, lasting: null }, budget: null });
  await new Device(open, { ledger: store, clock }).report("once", clock.now());
  assert.equal(await reports(store, clock), 0);
});

test("in one run, the clock never comes further than time and skew", () => {
  let seed = 1;
  const below = (limit) => (seed = (seed * 48_271) % 2_147_483_647) % limit;
  for (let round = 0; round < 200; round++) {
    const clock = new SetClock();
    let known = [];
    const admitted = [];
    for (let step = 0; step < 8; step++) {
      clock.passed += below(10) * DAY;
      clock.ahead = (below(80) - 40) * DAY * (below(2) ? 1 : 0.001);
      try {
        known = checkedStarts(known, clock.now(), clock.uptime(), clock.now(), HOUR);
        for (const [passed, now] of admitted) assert.ok(clock.now() - now <= clock.passed - passed + HOUR);
        admitted.push([clock.passed, clock.now()]);
      } catch (error) {
        if (!(error instanceof ClockError)) throw error;
      }
    }
    assert.ok(admitted.length > 0);
  }
});

test("a store of files has the clock of the machine, whose run outlives a program", { skip: process.platform !== "linux" }, () => {
  const [first, second] = [0, 1].map(() => new FileStore("store").clock.uptime());
  assert.equal(first.run, second.run);
  const asked = 'import("uldp-client/node").then(({ FileStore }) => console.log(JSON.stringify(new FileStore("store").clock.uptime())))';
  const later = JSON.parse(execFileSync(process.execPath, ["--eval", asked], { cwd: new URL(".", import.meta.url), encoding: "utf8" }));
  assert.equal(later.run, first.run);
  assert.ok(later.elapsed >= second.elapsed && first.elapsed > 0);
});
