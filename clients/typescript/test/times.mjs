// Times reports of two devices in turn. Usage: node test/times.mjs TABLE CALLS < HOLDINGS, a line of JSON for each device.
// Prints nanoseconds and the number of draws of each report; those of the first device are in lines 1, 3, 5 and so on.
import { readFileSync } from "node:fs";
import { Device, SystemDraws } from "../dist/index.js";

const [tablePath, calls] = process.argv.slice(2);
const table = JSON.parse(readFileSync(tablePath, "utf8"));
const values = readFileSync(0, "utf8").trim().split("\n").map((line) => JSON.parse(line).value);

class Counted {
  draws = new SystemDraws();
  taken = 0;
  below(limit) {
    this.taken++;
    return this.draws.below(limit);
  }
  wide() {
    this.taken++;
    return this.draws.wide();
  }
}

const TIME = 1_767_603_600_000;
const draws = new Counted();
const device = new Device(table, { draws });
const lines = [];
// Those below 0 are not counted: the compiler and caches get warm.
for (let call = -calls; call < Number(calls); call++) {
  const before = draws.taken;
  const began = process.hrtime.bigint();
  await device.payload(values[call & 1], TIME);
  const took = process.hrtime.bigint() - began;
  if (call >= 0) lines.push(`${took} ${draws.taken - before}`);
}
console.log(lines.join("\n"));
