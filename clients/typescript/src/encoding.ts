/** From what a device holds to the symbol that its mechanism perturbs: f_pre, grids, hashes, sets and strata. */
import type { Draws } from "./draws.js";
import { reached } from "./numbers.js";
import type { EncodingForm, MapForm, NamedForm, StrataEncodingForm, StrataForm, StringForm } from "./table.js";

/** The index of a key, and its number. */
export type Pair = readonly [number, number];

/** What a device holds of a variable: an index, a number, a string, the indices or strings of a set, or pairs. */
export type Value = number | string | readonly number[] | readonly string[] | readonly Pair[];

/** A value, and the index of the tag behind which the user hides it; -1 if the user does not hide it. */
export interface Held {
  value: Value;
  tag: number;
  /** The public vocabulary that spells strings, if there is one. */
  pieces: ReadonlySet<string>;
}

/** The value of each public attribute of a report. Nothing protects it, so it must not depend on what the device holds. */
export type By = Readonly<Record<string, string>>;

/** The symbol of a mechanism; of strata, that of one part. */
export type Sym = number | number[] | { part: number; own: Sym };

/** Encodes what a device holds. The draws do not depend on it. Errors name no value. */
export async function encode(
  form: EncodingForm,
  columns: readonly Held[],
  draws: Draws,
  strata: StrataForm | null,
  level: string | null,
  by: By | null,
): Promise<Sym> {
  if (form.form === "strata") {
    const symbols: Sym[] = [];
    for (const base of form.bases) {
      const nested = base.encoding.form === "strata" ? nestedOf(strata!, form.base, symbols.length) : null;
      const own = base.columns.map((column) => columns[column]!);
      symbols.push(await encode(base.encoding, own, draws, nested, level, by));
    }
    const part = partOf(form.choice, strata!, draws, level, by);
    return { part, own: mapped(form.maps[part]!, symbols[form.base[part]!]!) };
  }
  if (form.form === "view") {
    let cell = 0;
    for (const [place, encoding] of form.encodings.entries())
      cell = cell * form.sizes[place]! + ((await encode(encoding, [columns[place]!], draws, null, level, by)) as number);
    return cell;
  }
  const { value, tag, pieces } = columns[0]!;
  switch (form.form) {
    case "value": {
      const own = index(value, form.size);
      return tag < 0 ? own : form.size + tag;
    }
    case "zones": {
      const own = index(value, form.size);
      return tag < 0 ? own : form.places[tag]![own]!;
    }
    case "grid": {
      const parts = rounded(share(value, form) * (form.grid * 2 ** form.bits));
      return Math.floor((parts + draws.below(2 ** form.bits)) / 2 ** form.bits);
    }
    case "bins":
      return Math.min(Math.floor(share(value, form) * form.bins), form.bins - 1);
    case "string":
      return symbolOf(value, form.longest);
    case "prefix":
      return prefixSymbol(value, form, pieces);
    case "pair": {
      const order = ranking(value);
      return Number(order.indexOf(form.second) < order.indexOf(form.first));
    }
    case "size":
      return Math.floor((Math.min(sizeOf(value), form.most) + form.shift) / form.width);
    case "strings":
      return differing(kept(await symbolsOf(value, form.of, pieces), form.held, draws));
    case "set":
      return padded(chosen(value, form, draws), form);
    case "signed":
      return padded(signed(value, form, draws), { size: 2 * form.size, held: form.held });
  }
}

/** The mechanism of the parts that read a base, which must be strata too if the base is. */
function nestedOf(strata: StrataForm, bases: readonly number[], base: number): StrataForm {
  return strata.mechanisms[strata.which[bases.indexOf(base)]!] as StrataForm;
}

function partOf(
  choice: StrataEncodingForm["choice"],
  strata: StrataForm,
  draws: Draws,
  level: string | null,
  by: By | null,
): number {
  if (choice.form === "level") return levelOf(choice.levels, level);
  return choice.form === "named" ? sliceOf(choice, by) : reached(strata.draw, draws.below(2 ** 53));
}

function sliceOf({ by: known }: NamedForm, by: By | null): number {
  const names = Object.keys(known);
  if (by === null || Object.keys(by).length !== names.length)
    throw new RangeError(`by needs a value for each of ${names.join(", ")}`);
  return names.reduce((number, name) => {
    const place = Object.hasOwn(by, name) ? known[name]!.indexOf(by[name]!) : -1;
    if (place < 0) throw new RangeError(`by.${name} is none of its values`);
    return number * known[name]!.length + place;
  }, 0);
}

function levelOf(levels: readonly string[], level: string | null): number {
  const part = levels.indexOf(level ?? "");
  if (part < 0) throw new RangeError(`a device needs one of the levels ${levels.join(", ")}`);
  return part;
}

function mapped(map: MapForm | null, symbol: Sym): Sym {
  if (map === null) return symbol;
  const number = symbol as number;
  if (map.form === "blocks") return Math.floor(number / map.width);
  const place = number - map.first;
  return place >= 0 && place < map.width ? place : map.width;
}

function index(value: Value, size: number): number {
  if (!Number.isInteger(value) || (value as number) < 0 || (value as number) >= size)
    throw new RangeError(`a value is no index below ${size}`);
  return value as number;
}

function share(value: Value, { low, high }: { low: number; high: number }): number {
  if (typeof value !== "number" || !Number.isFinite(value)) throw new RangeError("a value is no finite number");
  return (Math.min(Math.max(value, low), high) - low) / (high - low);
}

/** Rounds to the nearest integer, and to the even one of two. */
function rounded(number: number): number {
  const below = Math.floor(number);
  const rest = number - below;
  return rest < 0.5 || (rest === 0.5 && below % 2 === 0) ? below : below + 1;
}

async function symbolOf(value: Value, longest: number): Promise<number> {
  if (typeof value !== "string") throw new RangeError("a value is no string");
  const bytes = new TextEncoder().encode(value);
  // TextEncoder would write U+FFFD for half of a surrogate pair, so that two texts had one symbol.
  if (/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(value))
    throw new RangeError("the value is not valid Unicode");
  if (bytes.length > longest) throw new RangeError(`the value has more than ${longest} bytes of UTF-8`);
  const filled = new Uint8Array(longest).fill(0xff);
  filled.set(bytes);
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", filled));
  return hash.slice(0, 6).reduceRight((number, byte) => number * 256 + byte, 0);
}

/** The symbol of the first pieces of a string, another one for each length; 0 if the pieces do not spell it. */
async function prefixSymbol(
  value: Value,
  { number, pieces, longest }: { number: number; pieces: number; longest: number },
  known: ReadonlySet<string>,
): Promise<number> {
  await symbolOf(value, longest); // refuses it, whatever its prefix is
  const found = spelled(value as string, known);
  const symbol = await symbolOf((found ?? []).slice(0, pieces).join(""), longest + 1 + number);
  return found === null ? 0 : symbol;
}

/** The pieces of a string, the longest first; null if it has a character that is in none. */
function spelled(text: string, pieces: ReadonlySet<string>): string[] | null {
  const longest = Math.max(...Array.from(pieces, (piece) => piece.length));
  const found: string[] = [];
  for (let at = 0; at < text.length; ) {
    let end = Math.min(at + longest, text.length);
    while (end > at && !pieces.has(text.slice(at, end))) end--;
    if (end === at) return null;
    found.push(text.slice(at, end));
    at = end;
  }
  return found;
}

function ranking(value: Value): readonly number[] {
  if (!Array.isArray(value) || new Set(value).size !== value.length || value.some((each) => !(each >= 0 && each < value.length)))
    throw new RangeError("a ranking lists each candidate once, the best first");
  return value as readonly number[];
}

/** The keys of l pairs with a sign each, which has the mean of the number; the draws are the same for all pairs. */
function signed(value: Value, form: { size: number; held: number; low: number; high: number }, draws: Draws): number[] {
  if (!Array.isArray(value)) throw new RangeError("a value is no list of pairs of a key and a number");
  const numbers = new Map((value as readonly Pair[]).map(([key, number]) => [key, rounded(share(number, form) * 2 ** 52)]));
  const keys = chosen([...numbers.keys()], form, draws);
  const drawn = Array.from({ length: form.held }, () => draws.below(2 ** 52));
  return keys.map((key, place) => 2 * key + Number(numbers.get(key)! + drawn[place]! >= 2 ** 52));
}

/** How many different items or keys a set or pairs have. */
function sizeOf(value: Value): number {
  if (!Array.isArray(value)) throw new RangeError("a value is no list of items or of pairs");
  return new Set((value as (number | string | Pair)[]).map((each) => (Array.isArray(each) ? each[0] : each))).size;
}

/** Draws l of the items of a set without repetition; all of them if it has no more. */
function chosen(value: Value, form: { size: number; held: number }, draws: Draws): number[] {
  if (!Array.isArray(value)) throw new RangeError("a value is no list of the indices of items");
  const items = [...new Set(value as number[])].map((item) => index(item, form.size));
  return kept(items, form.held, draws);
}

/** Draws l of some numbers; all of them if there are no more. */
function kept(numbers: readonly number[], held: number, draws: Draws): number[] {
  const drawn = Array.from({ length: held }, () => draws.below(2 ** 32));
  const items = [...numbers].sort((a, b) => a - b);
  if (items.length > held)
    drawn.forEach((number, place) => {
      const other = place + Math.floor((number * (items.length - place)) / 2 ** 32);
      [items[place], items[other]] = [items[other]!, items[place]!];
    });
  return items.slice(0, held);
}

/** The symbol of each string of a set. */
async function symbolsOf(value: Value, form: StringForm, pieces: ReadonlySet<string>): Promise<number[]> {
  if (!Array.isArray(value)) throw new RangeError("a value is no list of strings");
  const texts = [...new Set(value as string[])];
  return Promise.all(
    texts.map((text) => (form.form === "prefix" ? prefixSymbol(text, form, pieces) : symbolOf(text, form.longest))),
  );
}

const differing = (symbols: readonly number[]): number[] => [...new Set(symbols)].sort((a, b) => a - b);

/** Adds a different dummy for each item that a set lacks. */
function padded(items: readonly number[], form: { size: number; held: number }): number[] {
  const dummies = Array.from({ length: form.held - items.length }, (_, number) => form.size + number);
  return [...items, ...dummies].sort((a, b) => a - b);
}
