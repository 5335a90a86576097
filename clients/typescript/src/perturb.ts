/** The mechanisms: a symbol becomes a payload. A case for each form of docs/device-table.md. */
import { type Draws, happens } from "./draws.js";
import type { Sym } from "./encoding.js";
import {
  bucketOf,
  digitsOf,
  joined,
  littleEndian,
  onPlane,
  packed,
  parity,
  pointsOf,
  reached,
  select,
  vectorOf,
} from "./numbers.js";
import type { Form, IntegersForm, NestedForm, StrataForm, Thresholds } from "./table.js";

/** The payload of a report: a symbol, or bytes. */
export type Payload = number | Uint8Array;

export const at = (thresholds: Thresholds, place: number): number =>
  typeof thresholds === "number" ? thresholds : thresholds[place]!;

/** Z_S in ascending order. */
const sensitiveOf = (form: { size: number; sensitive: number[] | null }): number[] =>
  form.sensitive ?? Array.from({ length: form.size }, (_, symbol) => symbol);

/** Perturbs a symbol. Each call takes the same draws, whatever the symbol is. */
export function perturb(form: Form, symbol: Sym, draws: Draws): Payload {
  if (form.form === "strata") {
    const { part, own } = symbol as { part: number; own: Sym };
    return wrapped(form, part, perturb(form.mechanisms[form.which[part]!]!, own, draws));
  }
  if (form.form === "set") return ofSet(form, symbol as number[], draws);
  if (form.form === "hits") return ofHits(form, symbol as number[], draws);
  if (form.form === "cohorts") return ofCohortHits(form, symbol as number[], draws);
  const z = symbol as number;
  switch (form.form) {
    case "identity":
      return z;
    case "response": {
      const sensitive = sensitiveOf(form);
      const noisy = happens(form.noise, draws);
      const drawn = sensitive[draws.below(sensitive.length)]!;
      return noisy ? drawn : z;
    }
    case "bits": {
      const bits = new Uint8Array(form.size);
      for (const j of sensitiveOf(form)) bits[j] = Number(happens(at(form.set, j), draws));
      bits[z] = Number(!happens(at(form.clear, z), draws));
      return packed(bits);
    }
    case "flips":
      return packed(flipped(form, z, draws));
    case "integers":
      return enlarged(form, flipped(form, z, draws), draws);
    case "subset": {
      const sensitive = sensitiveOf(form);
      const found = members(sensitive.length, form.chosen, draws);
      const noisy = happens(form.noise, draws);
      const replaced = draws.below(form.chosen);
      const place = sensitive.indexOf(z);
      if (!noisy && place < 0) return bitsOf([z], form.size);
      if (!noisy && !found.includes(place)) found[replaced] = place;
      return bitsOf(found.map((member) => sensitive[member]!), form.size);
    }
    case "design": {
      const sensitive = sensitiveOf(form);
      const noisy = happens(form.noise, draws);
      const noise = draws.below(form.blocks);
      const drawn = draws.below(form.set === null ? form.blocks : form.set.length);
      const place = sensitive.indexOf(z);
      const own = form.blocks + z - sensitive.filter((other) => other < z).length;
      return noisy ? noise : place < 0 ? own : blockOf(form, place, drawn);
    }
    case "hash": {
      const seed = draws.below(2 ** 32);
      const bucket = noisyBucket(bucketOf(seed, z, form.buckets), form, draws);
      return joined(littleEndian(seed, 4), littleEndian(bucket, 2));
    }
    case "row": {
      const row = draws.below(form.rows);
      return 2 * row + (parity(row & z) ^ Number(happens(form.noise, draws)));
    }
    case "linear": {
      const { g, m } = form;
      const point = draws.below(pointsOf(g, m));
      const own = product(digitsOf(vectorOf(point, g, m), g, m), digitsOf(z, g, m)) % g;
      return point * g + noisyBucket(own, { buckets: g, noise: form.noise }, draws);
    }
    case "point": {
      const noisy = happens(form.noise, draws);
      const anywhere = draws.below(pointsOf(form.g, form.m));
      const near = onPlane(z, draws.below(pointsOf(form.g, form.m - 1)), form.g, form.m);
      return select(Number(noisy), anywhere, near);
    }
    case "bit": {
      const bit = draws.below(form.grid) < z;
      return Number(bit) ^ Number(happens(form.flip, draws));
    }
    case "interval": {
      const noisy = happens(form.noise, draws);
      const anywhere = draws.below(form.grid + form.width);
      const near = z + draws.below(form.width);
      return noisy ? anywhere : near;
    }
    case "steps": {
      const drawn = draws.below(form.ends[form.ends.length - 1]!);
      const sum = z + reached(form.ends, drawn) - form.grid;
      return Math.min(Math.max(sum, 0), form.grid + 2 * form.margin);
    }
    case "cohort": {
      const cohort = draws.below(form.cohorts);
      return cohort * form.buckets + noisyBucket(bucketOf(cohort, z, form.buckets), form, draws);
    }
    case "bloom": {
      const cohort = draws.below(form.cohorts);
      const bits = Array.from({ length: form.size }, () => happens(form.set, draws));
      for (let hash = 0; hash < form.hashes; hash++)
        bits[bucketOf(cohort * form.hashes + hash, z, form.size)] = !happens(form.clear, draws);
      return joined(littleEndian(cohort, 2), packed(bits));
    }
    case "near":
      return reached(form.ends[z]!.map(BigInt), draws.wide());
    case "nested":
      return ofZone(form, z, draws);
    case "kept":
      throw new Error("a permanent response needs a ledger");
  }
}

/** The payload of one part of strata, with the number of this part. */
export function wrapped(form: StrataForm, part: number, own: Payload): Payload {
  if (form.first !== null) return form.first[part]! + (own as number);
  const bytes = new Uint8Array(form.width!);
  bytes.set(littleEndian(part, 2));
  bytes.set(typeof own === "number" ? littleEndian(own, 4) : own, 2);
  return bytes;
}

export function flipped(form: { size: number; flip: number }, z: number, draws: Draws): boolean[] {
  return Array.from({ length: form.size }, (_, j) => happens(form.flip, draws) !== (j === z));
}

/** Bits of a histogram, each with a magnitude that does not depend on it. */
export function enlarged(form: IntegersForm, ones: readonly boolean[], draws: Draws): Uint8Array {
  const magnitudes = new Uint32Array(form.size);
  form.magnitudes.forEach((threshold, bit) => {
    for (let j = 0; j < form.size; j++) magnitudes[j]! |= Number(happens(threshold, draws)) << bit;
  });
  const entries = ones.map((one, j) => Math.min(one ? 1 + magnitudes[j]! : -magnitudes[j]!, 32767));
  return joined(...entries.map((entry) => littleEndian(entry & 0xffff, 2)));
}

/** A uniform set of w numbers below v, by Floyd's algorithm, in the order of the draws. */
export function members(v: number, w: number, draws: Draws): number[] {
  const found: number[] = [];
  for (let last = v - w; last < v; last++) {
    const drawn = draws.below(last + 1);
    found.push(found.includes(drawn) ? last : drawn);
  }
  return found;
}

export function bitsOf(symbols: readonly number[], size: number): Uint8Array {
  const bits = new Uint8Array(size);
  for (const symbol of symbols) bits[symbol] = 1;
  return packed(bits);
}

function ofSet(form: Extract<Form, { form: "set" }>, held: readonly number[], draws: Draws): Uint8Array {
  const found = members(form.size, form.chosen, draws);
  const noisy = happens(form.noise, draws);
  const most = Math.min(form.held, form.chosen);
  const hits = 1 + reached(form.hits, draws.below(2 ** 53));
  const leaving = shuffled(found, most, draws);
  const coming = shuffled(held, most, draws);
  if (noisy || hits > most || found.some((symbol) => held.includes(symbol))) return bitsOf(found, form.size);
  const gone = leaving.slice(0, hits);
  return bitsOf([...found.filter((symbol) => !gone.includes(symbol)), ...coming.slice(0, hits)], form.size);
}

function ofHits(form: Extract<Form, { form: "hits" }>, held: readonly number[], draws: Draws): Uint8Array {
  const seed = draws.below(2 ** 32);
  const drawn = draws.below(2 ** 53);
  const place = draws.below(form.buckets - form.held);
  const hit = new Set(held.map((symbol) => bucketOf(seed, symbol, form.buckets)));
  for (let bucket = 0; hit.size < form.held; bucket++) hit.add(bucket);
  const hits = [...hit].sort((a, b) => a - b);
  const others = Array.from({ length: form.buckets }, (_, bucket) => bucket).filter((bucket) => !hit.has(bucket));
  const kind = hits.findIndex((_, number) => drawn < (number + 1) * form.hit);
  const bucket = kind < 0 ? others[place]! : hits[kind]!;
  return joined(littleEndian(seed, 4), littleEndian(bucket, 2));
}

function ofCohortHits(form: Extract<Form, { form: "cohorts" }>, held: readonly number[], draws: Draws): number {
  const cohort = draws.below(form.cohorts);
  const drawn = draws.below(2 ** 53);
  const anywhere = draws.below(form.buckets);
  const hits = [...new Set(held.map((symbol) => bucketOf(cohort, symbol, form.buckets)))].sort((a, b) => a - b);
  const kind = hits.findIndex((_, number) => drawn < (number + 1) * form.hits[hits.length - 1]!);
  return cohort * form.buckets + (kind < 0 ? anywhere : hits[kind]!);
}

function shuffled(row: readonly number[], first: number, draws: Draws): number[] {
  const all = [...row];
  for (let place = 0; place < first; place++) {
    const other = place + draws.below(all.length - place);
    [all[place], all[other]] = [all[other]!, all[place]!];
  }
  return all;
}

/** A block that holds a sensitive symbol, given its place among them. */
function blockOf({ blocks, set }: { blocks: number; set: number[] | null }, place: number, drawn: number): number {
  if (set !== null) return (place - set[drawn]! + blocks) % blocks;
  const row = place + 1;
  return (drawn ^ (parity(row & drawn) * (row & -row))) >>> 0; // flips the lowest one of the row
}

function noisyBucket(own: number, { buckets, noise }: { buckets: number; noise: number }, draws: Draws): number {
  const noisy = happens(noise, draws);
  const shift = 1 + draws.below(buckets - 1);
  return (own + Number(noisy) * shift) % buckets;
}

const product = (a: readonly number[], b: readonly number[]): number => a.reduce((sum, x, at) => sum + x * b[at]!, 0);

function ofZone(form: NestedForm, z: number, draws: Draws): number {
  const noisy = happens(form.noise, draws);
  const kind = reached(form.kinds, draws.below(2 ** 53));
  const other = form.others[draws.below(form.others.length)]!;
  const noise = kind ? form.nests[kind - 1]!.symbol : other;
  const outer = noisy ? noise : form.outer[z]!;
  let payload = form.first[outer]!;
  for (const nest of form.nests) {
    const plane = nest.planes[form.outer[z] === nest.symbol ? form.zone[z]! : 0]!;
    const uniform = happens(nest.uniform, draws);
    const anywhere = draws.below(nest.points);
    const near = plane[draws.below(plane.length)]!;
    payload += outer === nest.symbol ? (noisy || uniform ? anywhere : near) : 0;
  }
  return payload;
}
