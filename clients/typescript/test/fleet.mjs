// Devices that report once each. Usage: node test/fleet.mjs TABLE [URL] < HOLDINGS
// A line of HOLDINGS is JSON: {"value", "hidden", "level"}. Posts the reports to URL, or prints them in hexadecimal digits.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Device, MemoryStore, Sender } from "../dist/index.js";

const AT_ONCE = 64;
const MOST_ROUNDS = 8; // about 40 seconds

/** Flushes a sender until nothing waits. */
async function emptied(sender) {
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const { waiting, again, needsYou } = await sender.flush();
    if (needsYou !== null) throw new Error(`${url} answers ${needsYou.status}: ${needsYou.text}`);
    if (waiting === 0) return;
    await new Promise((done) => setTimeout(done, again - Date.now()));
  }
  throw new Error(`${url} took no report in ${MOST_ROUNDS} attempts; is uldp collect there?`);
}
const [tablePath, url] = process.argv.slice(2);
const table = JSON.parse(readFileSync(tablePath, "utf8"));
const holdings = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
let taken = 0;
await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    for (let line = await holdings.next(); !line.done; line = await holdings.next()) {
      const { value, hidden, level } = JSON.parse(line.value);
      const store = new MemoryStore();
      const report = await new Device(table, { hidden, level, ledger: store }).report(value);
      if (url === undefined) console.log(Buffer.from(report).toString("hex"));
      else {
        const sender = new Sender(url, store, { onOutcome: (_, { kind }) => (taken += kind === "taken") });
        await sender.add(report);
        await emptied(sender);
      }
    }
  }),
);
if (url !== undefined) console.log(taken);
