// What the client says to wrong tables. Usage: node test/refuses.mjs < TABLES
// A line of TABLES is JSON: {"text", "device"}. Prints a line of JSON for each: the error, or null if there was none.
import { createInterface } from "node:readline";
import { Device, MemoryStore } from "../dist/index.js";

for await (const line of createInterface({ input: process.stdin })) {
  const { text, device } = JSON.parse(line);
  let error = null;
  try {
    const options = { level: device.level, ledger: new MemoryStore(), skewMs: null };
    await new Device(JSON.parse(text), options).report(device.value, device.reports[0].event_time, device.by);
  } catch (thrown) {
    error = thrown.message;
  }
  console.log(JSON.stringify(error));
}
