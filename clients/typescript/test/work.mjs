// What each process and each tab of a test does that share a store.

/** Reports until the budget is spent and nothing waits. Says of each report to the server that it is in the queue. */
export async function work({ Device, Sender }, store, url) {
  const table = await (await fetch(`${url}/table`)).json();
  const device = new Device(table, { ledger: store });
  const sender = new Sender(url, store, { timeLimitMs: 500, longestWaitMs: 100, mostWaiting: 10_000 });
  for (let spent = false, waiting = 1, again = null; !spent || waiting > 0; { waiting, again } = await sender.flush()) {
    if (again !== null) await new Promise((done) => setTimeout(done, Math.min(again - Date.now(), 100)));
    for (let made = 0; made < 3 && !spent; made++)
      try {
        const report = await device.report("once");
        await sender.add(report);
        await fetch(`${url}/added`, { method: "POST", body: report });
      } catch (error) {
        if (error.name !== "BudgetExceededError") throw error;
        spent = true;
      }
  }
}
