// Devices that report once each. Usage: node test/fleet.mjs TABLE [URL] < HOLDINGS
// A line of HOLDINGS is JSON: {"value", "hidden", "level"}. Posts the reports to URL, or prints them in hexadecimal digits.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Device, MemoryStorage, Sender, StoredLedger } from "../dist/index.js";

const AT_ONCE = 64;
const MOST_ATTEMPTS = 8; // about 40 seconds

/** Waits between attempts, which an app would not end: whoever runs a fleet forgot to start the server. */
function patience() {
  let attempts = 0;
  return async (ms) => {
    if (++attempts === MOST_ATTEMPTS) throw new Error(`${url} took no report in ${attempts} attempts; is uldp collect there?`);
    await new Promise((done) => setTimeout(done, ms));
  };
}
const [tablePath, url] = process.argv.slice(2);
const table = JSON.parse(readFileSync(tablePath, "utf8"));
const holdings = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
let taken = 0;
await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    for (let line = await holdings.next(); !line.done; line = await holdings.next()) {
      const { value, hidden, level } = JSON.parse(line.value);
      const ledger = table.kept || table.budget ? new StoredLedger(new MemoryStorage()) : undefined;
      const report = await new Device(table, { hidden, level, ledger }).report(value);
      if (url === undefined) console.log(Buffer.from(report).toString("hex"));
      else {
        const sender = new Sender(url, new MemoryStorage(), { sleep: patience() });
        await sender.add(report);
        const sent = await sender.flush();
        taken += sent.taken; // behind the await, for others change it meanwhile
      }
    }
  }),
);
if (url !== undefined) console.log(taken);
