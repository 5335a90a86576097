// Two processes, or two tabs of a browser, that share a store and are killed at random until their budget is spent.
// Usage: node test/shared.mjs processes|tabs REPORTS KILLS SEED. Prints a line of JSON: what came of the reports.
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { Browser } from "./browser.mjs";
import { counting, seeded } from "./counting.mjs";

/** Two of what `start` starts, each anew once it was killed, until both have ended by themselves; gives the server's result. */
async function killing(reports, most, seed, files, { start, kill, read }) {
  const below = seeded(seed);
  const every = Math.floor(reports / most);
  let kills = 0;
  const running = [];
  // A moment later, for the post is but one of the steps at which a kill may come.
  const server = await counting(reports, below, files, (posts) => {
    if (posts % every !== 0 || kills === most) return;
    kills++;
    setTimeout(() => running.length === 2 && kill(running[below(2)], below), below(30));
  });
  const keep = async (place) => {
    do {
      running[place] = await start(server.url);
    } while (!(await running[place].done));
  };
  try {
    await Promise.all([keep(0), keep(1)]);
    return server.result(await read(server.url), kills);
  } finally {
    await server.close();
  }
}

export async function processes(reports, kills, seed) {
  const folder = mkdtempSync(join(tmpdir(), "uldp-"));
  const store = join(folder, "store");
  const program = fileURLToPath(new URL("process.mjs", import.meta.url));
  try {
    const result = await killing(reports, kills, seed, {}, {
      start: async (url) => {
        const child = spawn(process.execPath, [program, store, url], { stdio: ["ignore", "ignore", "inherit"] });
        const done = new Promise((resolve, reject) =>
          child.once("exit", (code, signal) => (code ? reject(new Error(`${program} ended with ${code}`)) : resolve(signal === null))),
        );
        return { child, done };
      },
      kill: ({ child }) => child.kill("SIGKILL"),
      read: async () => readFileSync(join(store, "ledger"), "utf8"),
    });
    return { ...result, left: readdirSync(store).filter((name) => name.endsWith(".lock")) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const PAGE = `
import * as client from "uldp-client";
import { work } from "./work.mjs";
const store = new client.BrowserStore();
globalThis.read = () => store.change("ledger", (text) => ({ result: text }));
if (location.hash === "#read") ended("");
else work(client, store, location.origin).then(() => ended(""), (error) => ended(String(error)));
`;

export async function tabs(reports, kills, seed) {
  const folder = fileURLToPath(new URL(".", import.meta.url));
  const options = { stdin: { contents: PAGE, resolveDir: folder }, bundle: true, format: "esm", platform: "browser", write: false };
  const { outputFiles } = await build(options);
  const files = { "/": '<!doctype html><script type="module" src="/page.js"></script>', "/page.js": outputFiles[0].text };
  const browser = new Browser();
  try {
    return await killing(reports, kills, seed, files, {
      start: (url) => browser.tab(url),
      // Not the browser: Chromium may lose its whole database then, ledger and queue, although transactions are strict.
      kill: (tab, below) => [() => tab.close(), () => tab.crash(), () => tab.reload()][below(3)](),
      read: async (url) => {
        const tab = await browser.tab(`${url}/#read`);
        await tab.done;
        return tab.run("read()");
      },
    });
  } finally {
    await browser.end();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [kind, ...numbers] = process.argv.slice(2);
  console.log(JSON.stringify(await { processes, tabs }[kind](...numbers.map(Number))));
}
