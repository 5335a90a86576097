/** Whether this client can follow a table. It guesses nothing: without its threshold, noise would be truth. */
import { hex } from "./numbers.js";
import type { DeviceTable, EncodingForm, Form, NestedForm, TableJson } from "./table.js";

type Fields = Readonly<Record<string, unknown>>;
/** Checks a value at a place of a table, in the mapping that holds it. */
type Rule = (value: unknown, where: string, within: Fields) => void;
type Rules = Readonly<Record<string, Rule>>;
/** The rules of each form; of some they depend on what it has. */
type Forms = Readonly<Record<string, Rules | ((form: Fields) => Rules)>>;
type Limit = number | ((within: Fields) => number);

const SAFE = 2 ** 53;
/** More symbols, or entries of a list, than a spec can have. */
const MOST = 2 ** 26;
const DEEPEST = 64;

function refuse(where: string, what: string): never {
  throw new RangeError(`the device table is wrong: ${where} ${what}`);
}

const shown = (value: unknown): string => (JSON.stringify(value) ?? "nothing").slice(0, 40);
const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);

const integer =
  (low: number, high: Limit): Rule =>
  (value, where, within) => {
    const most = typeof high === "number" ? high : high(within);
    if (!Number.isInteger(value) || (value as number) < low || (value as number) > most)
      refuse(where, `is ${shown(value)}, and no integer from ${low} to ${most}`);
  };

const finite: Rule = (value, where) => {
  if (!Number.isFinite(value)) refuse(where, `is ${shown(value)}, and no number`);
};
const above =
  (low: string): Rule =>
  (value, where, within) => {
    finite(value, where, within);
    if ((value as number) <= (within[low] as number)) refuse(where, `is not above ${low}`);
  };
const typed =
  (type: "string" | "boolean"): Rule =>
  (value, where) => {
    if (typeof value !== type) refuse(where, `is ${shown(value)}, and no ${type}`);
  };
const text = typed("string");

const orNull =
  (rule: Rule): Rule =>
  (value, where, within) => {
    if (value !== null) rule(value, where, within);
  };

/** A list of as many entries as a number, or of any number from `least` on; `apart` is by how much each exceeds the last. */
const list =
  (rule: Rule, count: Limit | null = null, least = 1, apart: number | null = null): Rule =>
  (value, where, within) => {
    if (!Array.isArray(value) || value.length < least || value.length > MOST) refuse(where, `is ${shown(value)}, and no list`);
    const expected = typeof count === "function" ? count(within) : count;
    if (expected !== null && value.length !== expected) refuse(where, `has ${value.length} entries, not ${expected}`);
    value.forEach((each, at) => {
      rule(each, `${where}[${at}]`, within);
      if (at && apart !== null && !(each - value[at - 1] >= apart)) refuse(where, "is not in ascending order");
    });
  };

/** A mapping with these keys; a further one may change what a report is, so it is refused unless `open`. */
const fields =
  (rules: Rules, open = false): Rule =>
  (value, where) => {
    if (!isFields(value)) refuse(where, `is ${shown(value)}, and no mapping`);
    const unknown = Object.keys(value).find((key) => !Object.hasOwn(rules, key));
    if (unknown !== undefined && !open) refuse(where, `has ${shown(unknown)}, which this client does not know; update it`);
    for (const [key, rule] of Object.entries(rules)) rule(value[key], where ? `${where}.${key}` : key, value);
  };

const form =
  (known: Forms): Rule =>
  (value, where, within) => {
    if (where.split(".").length > DEEPEST) refuse(where.slice(0, 40), "goes on too deep");
    const name = isFields(value) ? value.form : undefined;
    if (typeof name !== "string" || !Object.hasOwn(known, name))
      refuse(where, `has the form ${shown(name)}, which this client does not know; update it`);
    const rules = known[name]!;
    fields({ form: text, ...(typeof rules === "function" ? rules(value as Fields) : rules) })(value, where, within);
  };

const of = (key: string) => (within: Fields) => within[key] as number;
const lengthOf = (key: string, less = 0) => (within: Fields) => (within[key] as unknown[]).length - less;
const below = (key: string): Rule => integer(0, (within) => (within[key] as number) - 1);
const number = integer(0, MOST);
const count = integer(1, MOST);
const threshold = integer(0, SAFE);
const size = { size: count, sensitive: orNull(list(below("size"), null, 1, 1)) };
const symbols = (within: Fields): number => (within.sensitive as number[] | null)?.length ?? (within.size as number);
const thresholds: Rule = (value, where, within) =>
  typeof value === "number" ? threshold(value, where, within) : list(threshold, of("size"))(value, where, within);
const ends = (least: number): Rule => list(threshold, null, least, 0);
const range = { low: finite, high: above("low") };
const zones: Rule = (value, where, within) => {
  const { nests, outer } = within as unknown as NestedForm;
  list(number, outer.length)(value, where, within);
  outer.forEach((symbol, z) => {
    const planes = nests.find((nest) => nest.symbol === symbol)?.planes.length;
    if (planes !== undefined) integer(0, planes - 1)((value as number[])[z], `${where}[${z}]`, within);
  });
};
/** Digits modulo g, of which numbers below 2^30 have m. */
const digits = (least: number) => ({
  g: integer(2, 2 ** 15),
  m: integer(least, ({ g }) => Math.floor(30 / Math.log2(g as number))),
  noise: threshold,
});
const wide: Rule = (value, where) => {
  if (typeof value !== "string" || !/^\d{1,19}$/.test(value) || BigInt(value) > 2n ** 62n)
    refuse(where, `is ${shown(value)}, and no text of an integer up to 2^62`);
};

/** The forms whose permanent responses are bits. */
const BITS: Forms = {
  bits: { ...size, set: thresholds, clear: thresholds },
  flips: { size: count, flip: threshold },
  integers: { size: count, flip: threshold, magnitudes: list(threshold, ({ magnitudes }) => Math.min((magnitudes as []).length, 30), 0) },
  bloom: { cohorts: integer(1, 2 ** 16), hashes: count, size: count, set: threshold, clear: threshold },
};
const MECHANISMS: Forms = {
  ...BITS,
  identity: {},
  response: { ...size, noise: threshold },
  subset: { ...size, chosen: integer(1, symbols), noise: threshold },
  set: { size: count, held: integer(1, of("size")), chosen: integer(1, of("size")), noise: threshold, hits: ends(1) },
  design: { ...size, noise: threshold, blocks: count, set: orNull(list(below("blocks"))) },
  hash: { buckets: integer(2, 2 ** 16), noise: threshold },
  hits: { buckets: integer(2, 2 ** 16), held: integer(1, (within) => (within.buckets as number) - 1), hit: threshold },
  cohorts: {
    cohorts: count,
    buckets: integer(2, 2 ** 16),
    held: integer(1, (within) => (within.buckets as number) - 1),
    hits: list(threshold, of("held")),
  },
  row: { rows: count, noise: threshold },
  linear: digits(1),
  point: digits(2),
  bit: { grid: integer(1, SAFE), flip: threshold },
  interval: { grid: count, width: count, noise: threshold },
  steps: { grid: count, margin: number, ends: ends(1) },
  cohort: { cohorts: count, buckets: integer(2, MOST), noise: threshold },
  near: { ends: list((row, where, { ends: all }) => list(wide, (all as unknown[]).length)(row, where, {})) },
  nested: {
    noise: threshold,
    nests: list(fields({ symbol: number, uniform: threshold, points: count, planes: list(list(number)) })),
    kinds: list(threshold, lengthOf("nests"), 1, 0),
    others: list(number),
    first: list(number),
    outer: list(integer(0, lengthOf("first", 1))),
    zone: zones,
  },
  strata: {
    mechanisms: list((value, where) => mechanism(value, where, {})),
    which: list(integer(0, lengthOf("mechanisms", 1))),
    draw: list(threshold, null, 0, 0),
    first: orNull(list(number, lengthOf("which"))),
    width: (value, where, { first }) => {
      if (first === null) integer(2, MOST)(value, where, {});
      else if (value !== null) refuse(where, "is there beside first");
    },
  },
  kept: ({ once, replace }) => {
    const change: Rule = (value, where) => thresholds(value, where, once as Fields);
    return {
      permanent: mechanism,
      once: replace === undefined ? form(BITS) : mechanism,
      ...(replace === undefined ? { set: change, clear: change } : { replace: threshold }),
    };
  },
};
const mechanism = form(MECHANISMS);

const STRINGS: Forms = {
  string: { longest: count },
  prefix: { number, pieces: count, longest: count },
};
const SCALARS: Forms = {
  ...STRINGS,
  value: { size: count, tags: number },
  zones: { size: count, places: list(list(number, (within) => within.size as number), null, 0) },
  grid: { ...range, bits: integer(0, 52), grid: integer(1, ({ bits }) => 2 ** (53 - (bits as number))) },
  bins: { ...range, bins: count },
  size: { size: number, most: number, shift: number, width: count },
  pair: { first: number, second: number },
};

/** An encoding of so many columns. */
const encoding = (columns: number): Rule =>
  form({
    ...SCALARS,
    set: { size: count, held: integer(1, 2 ** 16) },
    strings: { of: form(STRINGS), held: integer(1, 2 ** 16) },
    signed: { size: count, held: integer(1, 2 ** 16), ...range },
    view: { encodings: list(form(SCALARS), columns), sizes: list(count, columns) },
    strata: {
      bases: list(
        fields({
          columns: list(integer(0, columns - 1)),
          encoding: (value, where, base) => encoding((base.columns as unknown[]).length)(value, where, {}),
        }),
      ),
      base: list(integer(0, lengthOf("bases", 1))),
      maps: list(orNull(form({ design: { first: number, width: count }, blocks: { width: count } })), lengthOf("base")),
      choice: (value, where, { base }) => {
        const parts = (base as unknown[]).length;
        form({ drawn: {}, level: { levels: list(text, parts) }, named: { by: names } })(value, where, {});
        const { by } = value as { by?: Record<string, string[]> };
        if (by && Object.values(by).reduce((product, each) => product * each.length, 1) !== parts)
          refuse(where, `does not name ${parts} parts`);
      },
    },
  });

const names: Rule = (value, where) => {
  if (!isFields(value)) refuse(where, `is ${shown(value)}, and no mapping`);
  for (const [name, values] of Object.entries(value)) list(text)(values, `${where}.${name}`, {});
};
const LABELS = ["labels", "set.of.labels", "pairs.of.labels", "ranking.of", "strings.pieces", "set.of.strings.pieces"];
const domain: Rule = (value, where) => {
  fields({}, true)(value, where, {});
  for (const key of LABELS) if (key in (value as Fields)) list(text)((value as Fields)[key], `${where}.${key}`, {});
};
const spent: Rule = (value, where) => {
  finite(value, where, {});
  if ((value as number) < 0) refuse(where, "is below 0");
};
const spends = fields({ epsilon: orNull(spent), lasting: orNull(spent) });
const table = fields(
  {
    collection: text,
    version: integer(1, 2 ** 31 - 1),
    digest: text,
    device_digest: text,
    slice_ms: integer(1, SAFE),
    offset_ms: integer(0, of("slice_ms")),
    window_ms: integer(1, SAFE),
    exact_time: typed("boolean"),
    kept: typed("boolean"),
    spends,
    spends_at_level: (value, where) => {
      if (value === undefined) return;
      if (!isFields(value)) refuse(where, `is ${shown(value)}, and no mapping`);
      for (const [level, each] of Object.entries(value)) spends(each, `${where}.${level}`, {});
    },
    budget: orNull(fields({ epsilon: spent, every_ms: integer(1, SAFE) })),
    columns: list(fields({ name: text, kind: text, domain, tags: list(text, null, 0) })),
    encoding: (value, where, { columns }) => encoding((columns as unknown[]).length)(value, where, {}),
    mechanism,
  },
  true,
);

/** Refuses an encoding whose symbols are not those of a mechanism. */
function fits(of: EncodingForm, by: Form, kept: boolean): void {
  if (of.form === "strata") {
    if (by.form !== "strata" || by.which.length !== of.base.length) refuse("mechanism", "has not the parts of the encoding");
    of.base.forEach((base, part) => fits(of.bases[base]!.encoding, by.mechanisms[by.which[part]!]!, kept));
    return;
  }
  if (kept !== (by.form === "kept")) refuse("kept", "is not as the mechanism has it");
  const { form: name } = by.form === "kept" ? by.permanent : by;
  const many = of.form === "set" || of.form === "signed";
  const strings = of.form === "strings";
  if (strings !== (name === "cohorts") || many !== (name === "set" || name === "hits") || name === "kept" || name === "strata")
    refuse("mechanism", "does not fit the encoding");
}

/** Refuses a table that this client cannot follow exactly, in one line that names the place. */
export function checked(given: TableJson): DeviceTable {
  if (given?.format !== 1)
    throw new RangeError(`this client reads tables of format 1, not ${shown(given?.format)}; update it`);
  table(given, "", {});
  const found = given as DeviceTable;
  fits(found.encoding, found.mechanism, found.kept);
  return found;
}

/** JSON with the keys of mappings in order, and each number as the hexadecimal digits of its 64 bits. */
function canonical(value: unknown, depth = 0): string {
  if (depth > DEEPEST) refuse("a part", "goes on too deep");
  if (typeof value === "number") {
    const bits = new DataView(new ArrayBuffer(8));
    bits.setFloat64(0, value);
    return `"${bits.getBigUint64(0).toString(16).padStart(16, "0")}"`;
  }
  if (Array.isArray(value)) return `[${value.map((each) => canonical(each, depth + 1)).join()}]`;
  if (!isFields(value)) return JSON.stringify(value);
  const entries = Object.keys(value).sort();
  return `{${entries.map((key) => `${JSON.stringify(key)}:${canonical(value[key], depth + 1)}`).join()}}`;
}

/** The name of a table by its numbers. */
export async function digestOf({ digest: _, ...rest }: DeviceTable): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(canonical(rest)));
  return hex(new Uint8Array(hash)).slice(0, 16);
}

/** Refuses a table whose numbers are not those that its digest names. */
export async function checkDigest(given: DeviceTable): Promise<void> {
  if ((await digestOf(given)) !== given.digest) refuse("digest", "is that of another table; fetch the table again");
}
