/** A device of one user: it perturbs a value and encodes the report. */
import { checkDigest, checked } from "./check.js";
import { type Clock, checkedStarts, checkMilliseconds, jumped, SKEW_MS, type Start, SystemClock, type Uptime } from "./clock.js";
import { type Draws, KeptDraws, SystemDraws } from "./draws.js";
import { type By, encode, type Held, type Pair, type Sym, type Value } from "./encoding.js";
import { BudgetExceededError } from "./errors.js";
import { again, permanent } from "./kept.js";
import { changeLedger, keyOf, type LedgerContent } from "./ledger.js";
import { message } from "./message.js";
import { bytesOf, hex } from "./numbers.js";
import { type Payload, perturb } from "./perturb.js";
import { admittedAt, noticed, record, spentBy } from "./spending.js";
import type { Store } from "./store.js";
import { needCrypto } from "./support.js";
import type { Column, DeviceTable, Spends, StrataForm, TableJson } from "./table.js";

/** Tabs that change one ledger at once come between two changes of a device this often at the most. */
const MOST_TRIES = 100;

/**
 * What a program gives: a label or an index, a number, a string, the labels or indices of the items of a set or its
 * strings, or pairs of the label or index of a key and a number.
 */
export type Holding = string | number | readonly (string | number)[] | readonly (readonly [string | number, number])[];
/** The tag behind which the user hides each value, by its label or index. It never leaves the device. */
export type Hidden = Readonly<Record<string | number, string>>;

export interface DeviceOptions {
  /** The values that this user hides; of a record, by attribute. */
  hidden?: Hidden | Readonly<Record<string, Hidden>>;
  /** Where the device keeps its responses, and what its user has spent: needed if the table has `kept` or a `budget`. */
  ledger?: Store;
  /** The level of privacy that the user has chosen, if the mechanism is `levels`. */
  level?: string;
  /** How far times may be from the clock, for reports that a ledger enters; null believes every time, for tests. */
  skewMs?: number | null;
  /** The default is the clock of the store, or that of the page or program. */
  clock?: Clock;
  /** The source of randomness: the default is that of the system. Nothing else gives privacy. */
  draws?: Draws;
}

/** What the clock of a device says before a change of its ledger. */
interface Reading {
  now: number;
  uptime: Uptime | null;
}

/** A report that asks for a permanent response. */
interface Asked {
  key: string;
  untilKey: string;
  drawn: Payload;
  time: number;
  clock: Reading;
}

/**
 * Perturbs one user's values. One report keeps the promise of the spec against every reader, the collector included:
 * see "Guarantee" in `uldp check`. It protects neither that a report is sent, nor when. Errors name no value.
 */
export class Device {
  private readonly table: DeviceTable;
  private readonly draws: Draws;
  private readonly clock: Clock;
  private whole: Promise<void> | null = null;
  private readonly tags: ReadonlyMap<number, number>[];

  constructor(
    table: TableJson,
    private readonly options: DeviceOptions = {},
  ) {
    needCrypto();
    this.table = checked(table);
    if ((this.table.kept || this.table.budget) && !options.ledger)
      throw new Error(`${table.collection} needs a ledger: its devices keep responses or a budget`);
    this.draws = options.draws ?? new SystemDraws();
    this.clock = options.clock ?? options.ledger?.clock ?? new SystemClock();
    this.tags = this.table.columns.map((column) => tagsOf(column, this.hiddenOf(column.name)));
  }

  /** Perturbs a value, of a record that of each attribute, and returns the message to send. This spends a budget. */
  async report(value: Holding | Readonly<Record<string, Holding>>, time = this.clock.now(), by?: By): Promise<Uint8Array> {
    const id = crypto.getRandomValues(new Uint8Array(16));
    const payload = await this.payload(value, time, by);
    return message(this.table.collection, this.table.version, id, this.sentTime(time), payload);
  }

  /** The time that a report of an observation has. */
  sentTime(time: number): number {
    return this.table.exact_time ? time : this.sliceStart(time);
  }

  /** Perturbs a value into the payload of a report. This spends a budget. */
  async payload(value: Holding | Readonly<Record<string, Holding>>, time = this.clock.now(), by?: By): Promise<Payload> {
    const { table, options, draws } = this;
    await (this.whole ??= checkDigest(table));
    checkMilliseconds(time);
    const columns = table.columns.map((column, at) => this.held(column, at, value));
    // The ledger is written before the report is drawn, so that no report leaves that it does not know.
    if (table.kept) {
      const [symbol, response] = await this.remembered(options.ledger!, columns, time, by);
      return again(table.mechanism, symbol, response, draws);
    }
    const symbol = await this.encoded(columns, draws, by);
    if (options.ledger) {
      const clock = this.read();
      const refused = await changeLedger(options.ledger, (content) => {
        const starts = this.believed(content, time, clock);
        return this.spend(content, spentBy(this.spends, 0), time, starts);
      });
      if (refused !== null) throw refused;
    }
    return perturb(table.mechanism, symbol, draws);
  }

  /** Encodes by the draws that the ledger keeps, and returns the symbol with its permanent response. */
  private async remembered(ledger: Store, columns: readonly Held[], time: number, by?: By): Promise<readonly [Sym, Payload]> {
    const { encoding, mechanism } = this.table;
    // Hashes are asynchronous, and a change of a store is not. So the keys and the symbol are made for what the ledger
    // has before, and made anew if another tab has changed that meanwhile: the salt, or the draws of the encoding.
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const { salt, kept } = await changeLedger(ledger, (content) => content);
      const encodingKey = await this.key(salt, "encoding");
      const before = kept[encodingKey];
      const made = new KeptDraws(JSON.parse(before ?? "[]"), this.draws);
      const symbol = await this.encoded(columns, made, by);
      // All slices share a response, so that a device whose slice changes spends no more.
      const named = encoding.form === "strata" && encoding.choice.form === "named";
      const keptUnder = named ? (symbol as { own: Sym }).own : symbol;
      const [key, untilKey] = await Promise.all([this.key(salt, keptUnder), this.key(salt, "reported until")]);
      // Draws in any case, so that the time does not depend on whether the device has had this value before.
      const drawn = permanent(mechanism, symbol, this.draws);
      const clock = this.read();
      const response = await changeLedger(ledger, (content) => {
        if (content.salt !== salt || content.kept[encodingKey] !== before) return null;
        const found = this.response(content, { key, untilKey, drawn, time, clock });
        if (!(found instanceof Error)) content.kept[encodingKey] = JSON.stringify(made.made);
        return found;
      });
      if (response instanceof Error) throw response;
      if (response !== null) return [symbol, response];
    }
    throw new Error(`other programs change the ledger of ${this.table.collection} all the time`);
  }

  private sliceStart(time: number): number {
    const { slice_ms, offset_ms } = this.table;
    return Math.floor((time - offset_ms) / slice_ms) * slice_ms + offset_ms;
  }

  private get spends(): Spends {
    return own(this.table.spends_at_level ?? {}, this.options.level ?? "") ?? this.table.spends;
  }

  private get skewMs(): number | null {
    return this.options.skewMs === undefined ? SKEW_MS : this.options.skewMs;
  }

  private encoded(columns: readonly Held[], draws: Draws, by?: By): Promise<Sym> {
    const { encoding, mechanism } = this.table;
    return encode(encoding, columns, draws, mechanism as StrataForm, this.options.level ?? null, by ?? null);
  }

  /** The permanent response of a key, which is `drawn` if there is none; or the error of a budget. */
  private response(content: LedgerContent, { key, untilKey, drawn, time, clock }: Asked): Payload | BudgetExceededError {
    const { collection, window_ms } = this.table;
    const starts = this.believed(content, time, clock);
    const until = Number(content.kept[untilKey] ?? 0);
    // What a clock that was far ahead has reported to does not silence the device until then.
    if (time < until && until - time <= window_ms + 2 * (this.skewMs ?? Number.POSITIVE_INFINITY))
      throw new RangeError(`this device has reported to ${collection} in this window, or in a later one`);
    const [reports, before] = JSON.parse(content.kept[key] ?? "[0,null]") as [number, number | string | null];
    const refused = this.spend(content, spentBy(this.spends, reports), time, starts);
    if (refused !== null) return refused;
    const kept = before === null ? drawn : typeof before === "string" ? bytesOf(before) : before;
    content.kept[key] = JSON.stringify([Math.min(reports + 1, 2), typeof kept === "number" ? kept : hex(kept)]);
    content.kept[untilKey] = String(this.sliceStart(time) + window_ms);
    return kept;
  }

  /** Enters what a report spends, or returns why it must not. */
  private spend(content: LedgerContent, epsilon: number, time: number, starts: readonly Start[]): BudgetExceededError | null {
    const { budget, collection } = this.table;
    const until = budget ? admittedAt(content.spent, epsilon, time, budget) : time;
    if (until > time) return new BudgetExceededError(collection, until);
    content.spent = record(content.spent, epsilon, time);
    content.starts = starts;
    return null;
  }

  /** Checks the time and the clock, and notes which spendings are ahead of it: also if the report is refused. */
  private believed(content: LedgerContent, time: number, { now, uptime }: Reading): readonly Start[] {
    if (this.skewMs === null) return content.starts;
    const starts = checkedStarts(content.starts, now, uptime, time, this.skewMs);
    const [jump, looks] = jumped(content.looks, now, uptime, this.skewMs);
    content.spent = noticed(content.spent, now, jump, this.skewMs);
    content.looks = content.spent.some(({ seen }) => seen !== null) ? looks : [];
    return starts;
  }

  private read(): Reading {
    return { now: this.clock.now(), uptime: this.clock.uptime() };
  }

  /** Versions with one device half share entries, and so the budget. */
  private key(salt: string, entry: unknown): Promise<string> {
    return keyOf(salt, JSON.stringify([this.table.collection, this.table.device_digest, entry]));
  }

  private hiddenOf(name: string): Hidden {
    const hidden = this.options.hidden ?? {};
    return name === "" ? (hidden as Hidden) : (own(hidden as Record<string, Hidden>, name) ?? {});
  }

  private held(column: Column, at: number, value: Holding | Readonly<Record<string, Holding>>): Held {
    const ofColumn = column.name === "" ? value : own(value as Readonly<Record<string, Holding>>, column.name);
    if (ofColumn === undefined) throw new RangeError(`a record needs a value for ${column.name}`);
    const index = indexOf(column, ofColumn as Holding);
    const pieces = new Set((column.domain["strings.pieces"] ?? column.domain["set.of.strings.pieces"] ?? []) as string[]);
    return { value: index, tag: typeof index === "number" ? (this.tags[at]!.get(index) ?? -1) : -1, pieces };
  }
}

/** Names such as `constructor` are those of every object, and may be those of attributes too. */
const own = <T>(of: Readonly<Record<string, T>>, name: string): T | undefined => (Object.hasOwn(of, name) ? of[name] : undefined);

/** Turns labels into indices; numbers and strings stay as they are. */
function indexOf({ domain, kind }: Column, value: Holding): Value {
  const labels = (domain.labels ?? domain["set.of.labels"] ?? domain["pairs.of.labels"] ?? domain["ranking.of"]) as string[] | undefined;
  const indexed = (each: string | number): number => {
    const index = typeof each === "string" ? (labels?.indexOf(each) ?? -1) : each;
    if (index < 0) throw new RangeError("a value is no label of the domain");
    return index;
  };
  if (kind === "pairs") {
    const pairs = (value as readonly (readonly [string | number, number])[]).map(([key, number]): Pair => [indexed(key), number]);
    return different(pairs, ([key]) => key);
  }
  if (kind === "string-set") return different(value as readonly string[]);
  if (Array.isArray(value)) return different(value.map(indexed));
  return labels && typeof value === "string" ? indexed(value) : (value as Value);
}

function different<T>(items: readonly T[], key: (item: T) => unknown = (item) => item): readonly T[] {
  if (Array.isArray(items) && new Set(items.map(key)).size < items.length) throw new RangeError("the value has an item twice");
  return items;
}

function tagsOf(column: Column, hidden: Hidden): ReadonlyMap<number, number> {
  const labels = column.domain.labels as string[] | undefined;
  const size = labels?.length ?? (column.domain.size as number | undefined) ?? Number.POSITIVE_INFINITY;
  const entries = Object.entries(hidden).map(([value, tag]) => {
    // The keys of an object are texts: one that is a label means the label, another one an index.
    const index = labels?.includes(value) ? labels.indexOf(value) : /^\d+$/.test(value) ? Number(value) : -1;
    const number = column.tags.indexOf(tag);
    if (index < 0 || index >= size || number < 0)
      throw new RangeError("hidden has a value or a tag that is not in the table");
    return [index, number] as const;
  });
  return new Map(entries);
}
