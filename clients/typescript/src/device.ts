/** A device of one user: it perturbs a value and encodes the report. */
import { check, checkDigest } from "./check.js";
import { type Draws, KeptDraws, SystemDraws } from "./draws.js";
import { type By, encode, type Held, type Pair, type Sym, type Value } from "./encoding.js";
import { again, permanent } from "./kept.js";
import { bytesOf, hex, keyOf, type Ledger, type LedgerContent } from "./ledger.js";
import { message } from "./message.js";
import { type Payload, perturb } from "./perturb.js";
import { admittedAt, BudgetExceededError, record, spentBy } from "./spending.js";
import type { Column, DeviceTable, Spends, StrataForm } from "./table.js";

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
  /** Needed if the table has `kept` or a `budget`. */
  ledger?: Ledger;
  /** The level of privacy that the user has chosen, if the mechanism is `levels`. */
  level?: string;
  /** How far times may be from the clock, for reports that a ledger enters; null believes every time, for tests. */
  skewMs?: number | null;
  /** The source of randomness: the default is that of the system. Nothing else gives privacy. */
  draws?: Draws;
}

/**
 * Perturbs one user's values. One report keeps the promise of the spec against every reader, the collector included:
 * see "Guarantee" in `uldp check`. It protects neither that a report is sent, nor when. Errors name no value.
 */
export class Device {
  private readonly draws: Draws;
  private whole: Promise<void> | null = null;
  private readonly tags: ReadonlyMap<number, number>[];

  constructor(
    private readonly table: DeviceTable,
    private readonly options: DeviceOptions = {},
  ) {
    check(table);
    if ((table.kept || table.budget) && !options.ledger)
      throw new Error(`${table.collection} needs a ledger: its devices keep responses or a budget`);
    this.draws = options.draws ?? new SystemDraws();
    this.tags = table.columns.map((column) => tagsOf(column, this.hiddenOf(column.name)));
  }

  /** Perturbs a value, of a record that of each attribute, and returns the message to send. This spends a budget. */
  async report(value: Holding | Readonly<Record<string, Holding>>, time = Date.now(), by?: By): Promise<Uint8Array> {
    const id = crypto.getRandomValues(new Uint8Array(16));
    const payload = await this.payload(value, time, by);
    return message(this.table.collection, this.table.version, id, this.sentTime(time), payload);
  }

  /** The time that a report of an observation has. */
  sentTime(time: number): number {
    return this.table.exact_time ? time : this.sliceStart(time);
  }

  /** Perturbs a value into the payload of a report. This spends a budget. */
  async payload(value: Holding | Readonly<Record<string, Holding>>, time = Date.now(), by?: By): Promise<Payload> {
    const { table, options, draws } = this;
    await (this.whole ??= checkDigest(table));
    const columns = table.columns.map((column, at) => this.held(column, at, value));
    const { ledger } = options;
    if (!table.kept) {
      const symbol = await this.encoded(columns, draws, by);
      if (ledger)
        await ledger.change(async (content) => {
          this.checkTime(time);
          this.spend(content, spentBy(this.spends, 0), time);
        });
      return perturb(table.mechanism, symbol, draws);
    }
    // The ledger is written before the report is drawn, so that no report leaves that it does not know.
    const [symbol, response] = await ledger!.change(async (content) => {
      this.checkTime(time);
      const encoded = await this.encodedAsBefore(content, columns, by);
      return [encoded, await this.response(content, encoded, time)] as const;
    });
    return again(table.mechanism, symbol, response, draws);
  }

  private sliceStart(time: number): number {
    const { slice_ms, offset_ms } = this.table;
    return Math.floor((time - offset_ms) / slice_ms) * slice_ms + offset_ms;
  }

  private get spends(): Spends {
    return this.table.spends_at_level?.[this.options.level ?? ""] ?? this.table.spends;
  }

  private encoded(columns: readonly Held[], draws: Draws, by?: By): Promise<Sym> {
    const { encoding, mechanism } = this.table;
    return encode(encoding, columns, draws, mechanism as StrataForm, this.options.level ?? null, by ?? null);
  }

  /** Encodes always by the same draws, which the ledger keeps. */
  private async encodedAsBefore(content: LedgerContent, columns: readonly Held[], by?: By): Promise<Sym> {
    const key = await this.key(content, "encoding");
    const draws = new KeptDraws(JSON.parse(content.kept[key] ?? "[]"), this.draws);
    const symbol = await this.encoded(columns, draws, by);
    content.kept[key] = JSON.stringify(draws.made);
    return symbol;
  }

  private async response(content: LedgerContent, symbol: Sym, time: number): Promise<Payload> {
    const { encoding } = this.table;
    // All slices share a response, so that a device whose slice changes spends no more.
    const named = encoding.form === "strata" && encoding.choice.form === "named";
    const keptUnder = named ? (symbol as { own: Sym }).own : symbol;
    const [key, until] = await Promise.all([this.key(content, keptUnder), this.key(content, "reported until")]);
    if (time < Number(content.kept[until] ?? 0))
      throw new RangeError(`this device has reported to ${this.table.collection} in this window, or in a later one`);
    // Draws in any case, so that the time does not depend on whether the device has had this value before.
    const drawn = permanent(this.table.mechanism, symbol, this.draws);
    const [reports, before] = JSON.parse(content.kept[key] ?? "[0,null]") as [number, number | string | null];
    this.spend(content, spentBy(this.spends, reports), time);
    const kept = before === null ? drawn : typeof before === "string" ? bytesOf(before) : before;
    content.kept[key] = JSON.stringify([Math.min(reports + 1, 2), typeof kept === "number" ? kept : hex(kept)]);
    content.kept[until] = String(this.sliceStart(time) + this.table.window_ms);
    return kept;
  }

  private spend(content: LedgerContent, epsilon: number, time: number): void {
    const { budget, collection } = this.table;
    const until = budget ? admittedAt(content.spent, epsilon, time, budget) : time;
    if (until > time) throw new BudgetExceededError(collection, until);
    content.spent = record(content.spent, epsilon, time);
  }

  private checkTime(time: number): void {
    const { skewMs = 3_600_000 } = this.options;
    if (skewMs !== null && Math.abs(time - Date.now()) > skewMs)
      throw new RangeError("the time of an observation is far from the clock, so it would spend another period's budget");
  }

  /** Versions with one device half share entries, and so the budget. */
  private key(content: LedgerContent, entry: unknown): Promise<string> {
    return keyOf(content, JSON.stringify([this.table.collection, this.table.device_digest, entry]));
  }

  private hiddenOf(name: string): Hidden {
    const hidden = this.options.hidden ?? {};
    return name === "" ? (hidden as Hidden) : ((hidden as Record<string, Hidden>)[name] ?? {});
  }

  private held(column: Column, at: number, value: Holding | Readonly<Record<string, Holding>>): Held {
    const own = column.name === "" ? value : (value as Readonly<Record<string, Holding>>)[column.name];
    if (own === undefined) throw new RangeError(`a record needs a value for ${column.name}`);
    const index = indexOf(column, own as Holding);
    const pieces = new Set((column.domain["strings.pieces"] ?? column.domain["set.of.strings.pieces"] ?? []) as string[]);
    return { value: index, tag: typeof index === "number" ? (this.tags[at]!.get(index) ?? -1) : -1, pieces };
  }
}

/** Turns labels into indices; numbers and strings stay as they are. */
function indexOf({ domain, kind }: Column, value: Holding): Value {
  const labels = (domain.labels ?? domain["set.of.labels"] ?? domain["pairs.of.labels"] ?? domain["ranking.of"]) as string[] | undefined;
  const indexed = (each: string | number): number => {
    const index = typeof each === "string" ? (labels?.indexOf(each) ?? -1) : each;
    if (index < 0) throw new RangeError("a value is no label of the domain");
    return index;
  };
  const pairs = value as readonly (readonly [string | number, number])[];
  if (kind === "pairs") return pairs.map(([key, number]): Pair => [indexed(key), number]);
  if (kind === "string-set") return value as readonly string[];
  if (Array.isArray(value)) return value.map(indexed);
  return labels && typeof value === "string" ? indexed(value) : (value as Value);
}

function tagsOf(column: Column, hidden: Hidden): ReadonlyMap<number, number> {
  const labels = column.domain.labels as string[] | undefined;
  const entries = Object.entries(hidden).map(([value, tag]) => {
    const index = labels ? labels.indexOf(value) : Number(value);
    const number = column.tags.indexOf(tag);
    if (index < 0 || number < 0) throw new RangeError("hidden has a value or a tag that is not in the table");
    return [index, number] as const;
  });
  return new Map(entries);
}
