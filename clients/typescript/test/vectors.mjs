// Follows the conformance vectors by the table of each case. Usage: node test/vectors.mjs CASES [--draws]
// CASES has a case a line. Prints a line of JSON: how many cases and reports there were, and which reports differ.
import { readFileSync } from "node:fs";
import { BudgetExceededError, Device, message, MemoryStore } from "../dist/index.js";

class Replay {
  constructor(draws) {
    this.draws = draws;
    this.taken = 0;
  }
  next(limit) {
    const [recorded, number] = this.draws[this.taken++] ?? [null, 0];
    if (recorded === null || BigInt(recorded) !== BigInt(limit))
      throw new Error(`draw ${this.taken} is below ${limit}, but ${recorded} is recorded`);
    return number;
  }
  below(limit) {
    return Number(this.next(limit));
  }
  wide() {
    return BigInt(this.next(2n ** 62n));
  }
}

const hex = (bytes) => Buffer.from(bytes).toString("hex");
const differ = [];
let cases = 0;
let reports = 0;
for (const line of readFileSync(process.argv[2], "utf8").trim().split("\n")) {
  const { name, table, devices } = JSON.parse(line);
  cases++;
  for (const [number, { value, tag, level, by, reports: expected }] of devices.entries()) {
    const only = table.columns[0].name === "";
    const hide = (value, tag) => (tag === null ? {} : { [table.columns[0].domain.labels?.[value] ?? value]: tag });
    const hidden = only ? hide(value, tag) : Object.fromEntries(table.columns.map(({ name }) => [name, tag[name] === null ? {} : { [value[name]]: tag[name] }]));
    const ledger = table.kept || table.budget ? new MemoryStore() : undefined;
    for (const report of expected) {
      const draws = new Replay(report.draws);
      try {
        const device = new Device(table, { hidden, level, ledger, draws, skewMs: null });
        const payload = await device.payload(value, report.event_time, by);
        const written = typeof payload === "number" ? payload : hex(payload);
        const sent = hex(message(table.collection, table.version, Buffer.from(report.report_id, "hex"), device.sentTime(report.event_time), payload));
        reports++;
        if (written !== report.payload) differ.push(`${name}, device ${number}: payload ${written}, not ${report.payload}`);
        else if (sent !== report.message) differ.push(`${name}, device ${number}: message ${sent}, not ${report.message}`);
        else if (draws.taken !== draws.draws.length) differ.push(`${name}, device ${number}: ${draws.taken} draws, not ${draws.draws.length}`);
      } catch (error) {
        differ.push(`${name}, device ${number}: ${error.message}`);
      }
    }
  }
}
console.log(JSON.stringify({ cases, reports, differ }));
