/** Hashes, digits and bits that several mechanisms need. */

const MASK = (1n << 64n) - 1n;

/** The bucket of a symbol under the hash function of a seed: SplitMix64, and its low 32 bits scaled to the buckets. */
export function bucketOf(seed: number, symbol: number, buckets: number): number {
  let word = ((BigInt(seed) << 32n) + (BigInt(symbol) + 1n) * 0x9e3779b97f4a7c15n) & MASK;
  word = ((word ^ (word >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  word = ((word ^ (word >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return Number((((word ^ (word >> 31n)) & 0xffffffffn) * BigInt(buckets)) >> 32n);
}

/** Of integers below 2^31, 1 if the first is below the second, else 0: by arithmetic, as a branch would tell by its time. */
const below = (a: number, b: number): number => (a - b) >>> 31;

/** Of the same, 1 if both are equal, else 0. */
export const same = (a: number, b: number): number => 1 - (((a - b) | (b - a)) >>> 31);

/** The first of two integers if `choice` is 1, the second if it is 0. */
export const select = (choice: number, a: number, b: number): number => b ^ (-choice & (a ^ b));

/** The m digits of a vector in base g, the highest first. */
export function digitsOf(vector: number, g: number, m: number): number[] {
  const digits = new Array<number>(m).fill(0);
  for (let place = m - 1, rest = vector; place >= 0; place--, rest = (rest / g) | 0) digits[place] = rest % g;
  return digits;
}

/** The number of points of the projective space of vectors of m digits. */
export const pointsOf = (g: number, m: number): number => (g ** m - 1) / (g - 1);

/** The vector of a point: the points are the vectors whose first digit but 0 is a 1, in ascending order. */
export function vectorOf(point: number, g: number, m: number): number {
  let vector = 0;
  for (let i = 0, power = 1, points = 0; i < m; i++, points += power, power *= g)
    vector = select(below(point, points), vector, power + point - points);
  return vector;
}

/** The point of a vector, whose first digit but 0 must be a 1. */
export function pointOf(vector: number, g: number, m: number): number {
  let point = 0;
  for (let i = 0, power = 1, points = 0; i < m; i++, points += power, power *= g)
    point = select(below(vector, power), point, vector - power + points);
  return point;
}

/** Point number `number` of the hyperplane of a point; as many operations for each of them. */
export function onPlane(point: number, number: number, g: number, m: number): number {
  const x = digitsOf(vectorOf(point, g, m), g, m);
  const others = [0, ...digitsOf(vectorOf(number, g, m - 1), g, m - 1), 0];
  let place = 0; // of the last digit but 0
  let last = 0;
  for (let i = 0; i < m; i++) {
    const zero = same(x[i]!, 0);
    place = select(zero, place, i);
    last = select(zero, last, x[i]!);
  }
  const y = new Array<number>(m).fill(0);
  let sum = 0;
  for (let i = 0; i < m; i++) {
    y[i] = select(same(i, place), 0, select(below(i, place), others[i + 1]!, others[i]!));
    sum = (sum + x[i]! * y[i]!) % g;
  }
  let solved = 0; // the digit at the place that makes the product 0
  for (let digit = 1; digit < g; digit++) solved = select(same((sum + last * digit) % g, 0), digit, solved);
  return pointOf(y.reduce((vector, digit, i) => vector * g + select(same(i, place), solved, digit), 0), g, m);
}

/** Packs bits, most significant bit first, with zeros up to whole bytes. */
export function packed(bits: ArrayLike<boolean | number>): Uint8Array {
  const bytes = new Uint8Array(Math.ceil(bits.length / 8));
  for (let at = 0; at < bits.length; at++) if (bits[at]) bytes[at >> 3]! |= 0x80 >> (at & 7);
  return bytes;
}

/** A number in little-endian bytes. */
export function littleEndian(number: number, bytes: number): Uint8Array {
  const found = new Uint8Array(bytes);
  for (let at = 0; at < bytes; at++, number = Math.floor(number / 256)) found[at] = number % 256;
  return found;
}

export function joined(...parts: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) whole.set(part, at), (at += part.length);
  return whole;
}

/** The number of ones in the binary form of a number below 2^32, modulo 2. */
export function parity(number: number): number {
  for (let shift = 16; shift; shift >>= 1) number ^= number >>> shift;
  return number & 1;
}

/** How many ends of cumulated sums a draw has reached. */
export function reached<T extends number | bigint>(ends: readonly T[], drawn: T): number {
  let count = 0;
  for (const end of ends) count += Number(drawn >= end); // all of them, so that it takes the same time
  return count;
}

export const hex = (bytes: Uint8Array): string => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");

export const bytesOf = (text: string): Uint8Array =>
  Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
