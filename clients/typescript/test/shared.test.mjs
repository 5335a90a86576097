// Two processes, and two tabs, that share a store and are killed at random; tests/clients/test_typescript.py has 1,000 reports.
import assert from "node:assert/strict";
import { test } from "node:test";
import { INSTALLED } from "./browser.mjs";
import { processes, tabs } from "./shared.mjs";

const REPORTS = 60;
const KILLS = 4;
for (const [run, skip] of [
  [processes, false],
  [tabs, INSTALLED ? false : "no Chromium"],
])
  test(`${run.name} that are killed spend a budget once, and lose nothing that was added`, { skip }, async () => {
    const { spent, counted, added, lost, kills } = await run(REPORTS, KILLS, 1);
    assert.deepEqual({ spent: Math.round(spent * 1e6) / 1e6, lost, kills }, { spent: REPORTS, lost: 0, kills: KILLS });
    // A kill between the ledger and the queue spends, and sends nothing; one between the queue and the word of it is sent.
    assert.ok(counted >= added && counted >= REPORTS - KILLS && counted <= REPORTS, `${counted} of ${added} added`);
  });
