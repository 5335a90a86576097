/** Sends messages to `uldp collect`, each until the server has it. A copy keeps its bytes, so it is counted once. */
import type { DamagedError } from "./errors.js";
import { QueueFullError } from "./errors.js";
import { bytesOf, hex } from "./numbers.js";
import { type Answer, answerOf, checkedToken, reportsUrl } from "./posting.js";
import { isDue, lease, LONGEST_WAIT_MS, Queue, remove, reschedule, type Row } from "./queue.js";
import type { Store } from "./store.js";
import { needCrypto } from "./support.js";

export interface SenderOptions {
  token?: string;
  /** How long an attempt may take, in milliseconds. */
  timeLimitMs?: number;
  /** The longest wait between two attempts, in milliseconds, unless the server asks for a longer one, of up to a day. */
  longestWaitMs?: number;
  /** At most so many messages wait; `add` refuses more, so that a server that is away does not fill the device. */
  mostWaiting?: number;
  /** Hears what became of each attempt, by the id that `add` gave. */
  onOutcome?: (id: string, outcome: Outcome) => void;
  /** Hears that the queue was damaged; it is kept in another entry of the store, and a new queue begins. */
  onDamage?: (error: DamagedError) => void;
  fetch?: typeof fetch;
}

/** What became of an attempt: the server has the message; will never count it; may take it later; or the app must act. */
export type Outcome =
  | { kind: "taken" }
  | { kind: "refused"; status: number; reason: string }
  /** `status` is null without an answer. */
  | { kind: "again"; status: number | null; at: number }
  | { kind: "needsYou"; status: number; text: string };

/** What a round has done, and what it leaves. */
export interface Flushed {
  taken: number;
  refused: number;
  waiting: number;
  /** When to flush again, in milliseconds since 1970; null if nothing waits, or if it needs you first. */
  again: number | null;
  /** An answer that no other attempt would change, as 401; status 0 is a redirection in a browser. */
  needsYou: { status: number; text: string } | null;
}

/** So many attempts in a row without an answer, or with 429 or 503 that is not about one message, end a round. */
const MOST_FAILURES = 3;
const FIRST_WAIT_MS = 500;

export class Sender {
  private readonly url: string;
  private readonly queue: Queue;
  private sending: Promise<Flushed> | null = null;

  /** All senders of a store share its queue, so `url` is that of one server: another one needs another store. */
  constructor(
    url: string,
    store: Store,
    private readonly options: SenderOptions = {},
  ) {
    needCrypto();
    this.url = reportsUrl(url);
    checkedToken(options.token);
    this.queue = new Queue(store, options.onDamage);
  }

  /** Puts a message into the queue, where a restart finds it, and returns its id. */
  add(message: Uint8Array): Promise<string> {
    const { mostWaiting = 1000 } = this.options;
    const row: Row = { id: hex(crypto.getRandomValues(new Uint8Array(16))), message: hex(message), attempts: 0, next: 0 };
    return this.queue.change((rows) => {
      if (rows.length >= mostWaiting) throw new QueueFullError(mostWaiting);
      rows.push(row);
      return row.id;
    });
  }

  /** Gives each message that is due one attempt. While it does, another call waits for the same round. */
  flush(): Promise<Flushed> {
    this.sending ??= this.round().finally(() => (this.sending = null));
    return this.sending;
  }

  private async round(): Promise<Flushed> {
    const counts = { taken: 0, refused: 0 };
    let needsYou: Flushed["needsYou"] = null;
    let failures = 0;
    let notBefore = 0; // when others may be sent, if the round ends before them
    const began = Date.now();
    const due = await this.queue.change((rows) => rows.filter((row) => isDue(row, began)).map(({ id }) => id));
    for (const id of due) {
      const { outcome, ends, ofMessage } = (await this.attempt(id)) ?? {};
      if (outcome === undefined) continue;
      if (outcome.kind === "taken" || outcome.kind === "refused") counts[outcome.kind]++;
      if (outcome.kind === "needsYou") {
        needsYou = { status: outcome.status, text: outcome.text };
        break;
      }
      const failed = outcome.kind === "again" && [null, 429, 503].includes(outcome.status) && !ofMessage;
      failures = failed ? failures + 1 : 0;
      if (outcome.kind === "again" && (ends || failures === MOST_FAILURES)) {
        notBefore = outcome.at;
        break;
      }
    }
    const { waiting, next } = await this.queue.change((rows) => ({
      waiting: rows.length,
      next: rows.reduce((least, row) => Math.min(least, row.next), Number.POSITIVE_INFINITY),
    }));
    const again = waiting && needsYou === null ? Math.max(next, notBefore, began) : null;
    return { ...counts, waiting, again, needsYou };
  }

  /** Sends a message once; nothing if it is gone, is not due any more, or another sender has brought it to its end. */
  private async attempt(id: string): Promise<{ outcome: Outcome; ends: boolean; ofMessage: boolean } | undefined> {
    const { timeLimitMs = 30_000, token, fetch: send = fetch } = this.options;
    // Half of the limit more, for what comes before and behind the attempt. Whoever ends meanwhile leaves the row due.
    const leased = await this.queue.change((rows) => lease(rows, id, Date.now(), Date.now() + 1.5 * timeLimitMs));
    if (leased === null) return undefined;
    const answer = await answerOf(this.url, bytesOf(leased.message), timeLimitMs, token, send);
    const outcome = this.outcome(answer, leased.attempts);
    const { ofMessage } = answer;
    const ends = answer.retryAfterMs !== null && !ofMessage; // the server asks all messages of this sender to wait
    const done = outcome.kind === "taken" || outcome.kind === "refused";
    const next = outcome.kind === "again" ? outcome.at : 0;
    const first = await this.queue.change((rows) =>
      done ? remove(rows, leased) : (reschedule(rows, leased, next, ends ? next : 0), true),
    );
    if (!first) return undefined;
    queueMicrotask(() => this.options.onOutcome?.(id, outcome)); // so that what a listener throws ends no round
    return { outcome, ends, ofMessage };
  }

  private outcome({ status, text, retryAfterMs }: Answer, attempts: number): Outcome {
    if (status === 202) return { kind: "taken" };
    if (status === 413 || status === 422) return { kind: "refused", status, reason: text };
    if (status !== null && status !== 408 && status !== 429 && status < 500) return { kind: "needsYou", status, text };
    const { longestWaitMs = 60_000 } = this.options;
    // A random part, so that devices do not come back at one moment.
    const wait = Math.min(FIRST_WAIT_MS * 2 ** Math.min(attempts - 1, 30), longestWaitMs) * (0.5 + Math.random() / 2);
    const waitMs = Math.min(Math.max(wait, retryAfterMs ?? 0), LONGEST_WAIT_MS);
    return { kind: "again", status, at: Math.ceil(Date.now() + waitMs) };
  }
}
