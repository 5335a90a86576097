// Bundles a page, serves it, and runs it in a browser until it has written to the console, twice: by esbuild and by Vite.
// Usage: node test/bundled.mjs FOLDER PORT esbuild|vite. FOLDER has page.js. Prints what the page wrote.
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import * as esbuild from "esbuild";
import * as vite from "vite";
import { Browser } from "./browser.mjs";

const [folder, port, bundler] = process.argv.slice(2);
const BUNDLERS = {
  esbuild: () => esbuild.build({ entryPoints: [join(folder, "page.js")], bundle: true, minify: true, format: "esm", outfile: join(folder, "out", "page.js") }),
  vite: () => {
    const build = { outDir: "out", rollupOptions: { output: { entryFileNames: "page.js" } } };
    return vite.build({ root: folder, logLevel: "warn", configFile: false, build });
  },
};
writeFileSync(join(folder, "index.html"), '<!doctype html><script type="module" src="/page.js"></script>');
await BUNDLERS[bundler]();
const page = readFileSync(join(folder, "out", "page.js"));
const html = `<!doctype html><script>
  console.log = (...said) => ended(JSON.stringify(said));
  addEventListener("unhandledrejection", ({ reason }) => ended(String(reason)));
  addEventListener("error", ({ message }) => ended(message));
</script><script type="module" src="/page.js"></script>`;
const server = createServer(({ url }, response) =>
  url === "/page.js" ? response.writeHead(200, { "content-type": "text/javascript" }).end(page) : response.writeHead(200, { "content-type": "text/html" }).end(html),
);
await new Promise((listening) => server.listen(Number(port), "127.0.0.1", listening));
const browser = new Browser();
try {
  const tab = await browser.tab(`http://127.0.0.1:${port}/`);
  console.log(await tab.done.catch((said) => said.message)); // the first line is all that a test needs
} finally {
  await browser.end();
  server.close();
}
