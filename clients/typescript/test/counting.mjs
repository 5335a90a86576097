// A server that counts messages by their bytes, as a collector does, and is a bad one: it loses answers and has no time.
import { createServer } from "node:http";
import { bounded, survey } from "./tables.mjs";

/** Numbers from 0 to `limit` - 1, the same ones for a seed. */
export function seeded(seed) {
  let state = seed + 1;
  return (limit) => (state = (state * 48_271) % 2_147_483_647) % limit;
}

/** Starts the server. It also serves files, by path; `onPost` hears of each post, with how many there were. */
export async function counting(reports, below, files, onPost) {
  const table = JSON.stringify(await bounded(reports));
  const counts = new Map();
  const added = new Set();
  let posts = 0;
  const server = createServer(async (request, response) => {
    if (request.method === "GET") {
      const found = { "/table": table, ...files }[request.url];
      const type = request.url === "/" ? "text/html" : request.url === "/table" ? "application/json" : "text/javascript";
      return response.writeHead(found === undefined ? 404 : 200, { "content-type": type }).end(found);
    }
    const parts = [];
    for await (const part of request) parts.push(part);
    const message = Buffer.concat(parts).toString("hex");
    if (request.url === "/added") {
      added.add(message);
      return response.end();
    }
    onPost(++posts);
    const drawn = below(20);
    if (drawn === 0) return response.writeHead(503, { "retry-after": "0" }).end();
    if (drawn === 1) return response.writeHead(500).end();
    counts.set(message, (counts.get(message) ?? 0) + 1);
    if (drawn === 2) return request.socket.destroy(); // the server has it, and the sender does not know
    return response.writeHead(202).end();
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    /** What came of all, with the text of the ledger. */
    result: (ledger, kills) => ({
      budget: reports,
      spent: JSON.parse(ledger.slice(ledger.indexOf("\n"))).spent.reduce((sum, { epsilon }) => sum + epsilon, 0) / survey.spends.epsilon,
      counted: counts.size,
      copies: [...counts.values()].reduce((sum, count) => sum + count - 1, 0),
      added: added.size,
      lost: [...added].filter((message) => !counts.has(message)).length,
      kills,
    }),
    close: () => {
      server.closeAllConnections();
      return new Promise((closed) => server.close(closed));
    },
  };
}
