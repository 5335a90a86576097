/** Sends messages to `uldp collect`, each until the server has it. A copy keeps its bytes, so it is counted once. */
import { bytesOf, hex, type Storage } from "./ledger.js";

export interface SenderOptions {
  token?: string;
  /** The longest wait between two attempts, in milliseconds, unless the server asks for a longer one, of up to a day. */
  longestWaitMs?: number;
  /** At most so many messages wait; `add` refuses more, so that a server that is away does not fill the device. */
  mostWaiting?: number;
  fetch?: typeof fetch;
  sleep?: (ms: number) => Promise<void>;
}

/** What became of one attempt: the server has the message, will never count it, or may take it later. */
type Outcome = "taken" | "refused" | { retryAfterMs: number };

/** How many messages the server has taken, and how many it will never count. */
export interface Sent {
  taken: number;
  refused: number;
}

/** Timers of browsers count up to 2^31 ms, and a server may ask for longer than anybody wants to wait. */
const LONGEST_RETRY_S = 86_400;

export class Sender {
  private last: Promise<unknown> = Promise.resolve();
  private sending: Promise<Sent> | null = null;

  constructor(
    private readonly url: string,
    private readonly queue: Storage,
    private readonly options: SenderOptions = {},
  ) {}

  /** Puts a message into the queue, where a restart finds it. */
  add(message: Uint8Array): Promise<void> {
    return this.change((waiting) => {
      if (waiting.length >= (this.options.mostWaiting ?? 1000)) throw new RangeError("too many messages wait; try later");
      waiting.push(hex(message));
    });
  }

  /** Sends all that waits; it waits while it must. While it does, another call waits for the same. */
  flush(): Promise<Sent> {
    this.sending ??= this.send().finally(() => (this.sending = null));
    return this.sending;
  }

  private async send(): Promise<Sent> {
    const counts = { taken: 0, refused: 0 };
    const { longestWaitMs = 60_000, sleep = (ms) => new Promise((done) => setTimeout(done, ms)) } = this.options;
    let wait = 500;
    for (let first = await this.first(); first !== undefined; first = await this.first()) {
      const outcome = await this.post(bytesOf(first));
      if (typeof outcome === "object") {
        // A random part, so that devices do not come back at one moment.
        await sleep(Math.max(outcome.retryAfterMs, wait * (0.5 + Math.random() / 2)));
        wait = Math.min(2 * wait, longestWaitMs);
        continue;
      }
      wait = 500;
      counts[outcome]++;
      await this.change((waiting) => waiting.splice(waiting.indexOf(first!), 1));
    }
    return counts;
  }

  private async post(message: Uint8Array): Promise<Outcome> {
    const { token, fetch: send = fetch } = this.options;
    try {
      const headers: Record<string, string> = { "content-type": "application/octet-stream" };
      if (token) headers.authorization = `Bearer ${token}`;
      const { status, headers: answered } = await send(`${this.url}/v1/reports`, { method: "POST", headers, body: message as BodyInit });
      if (status === 202) return "taken";
      if (status === 413 || status === 422) return "refused";
      const seconds = Number(answered.get("retry-after")); // NaN if it is a date
      return { retryAfterMs: seconds > 0 ? 1000 * Math.min(seconds, LONGEST_RETRY_S) : 0 };
    } catch {
      return { retryAfterMs: 0 }; // there was no answer: the server may have the message, and copies are removed
    }
  }

  private async first(): Promise<string | undefined> {
    await this.last;
    return (JSON.parse((await this.queue.read()) ?? "[]") as string[])[0];
  }

  private change(edit: (waiting: string[]) => unknown): Promise<void> {
    const changed = this.last.then(async () => {
      const waiting = JSON.parse((await this.queue.read()) ?? "[]") as string[];
      edit(waiting);
      await this.queue.write(JSON.stringify(waiting));
    });
    this.last = changed.catch(() => undefined);
    return changed;
  }
}
