/** A report as bytes: Avro's single-object encoding of report.avsc. */
import { joined, littleEndian } from "./numbers.js";
import type { Payload } from "./perturb.js";

const HEADER = Uint8Array.of(0xc3, 0x01, 0xe6, 0xa3, 0xdb, 0xfe, 0x76, 0xe5, 0xd3, 0x90);

/** Avro's varint: zigzag, and 7 bits a byte, low bits first. */
function varint(number: number): Uint8Array {
  const bytes: number[] = [];
  // Zigzag doubles a number, which may exceed 2^53, so digits are taken from the number itself.
  let low = number < 0 ? (-number * 2 - 1) % 128 : (number % 64) * 2;
  let rest = number < 0 ? Math.floor((-number * 2 - 1) / 128) : Math.floor(number / 64);
  while (rest > 0) {
    bytes.push(low | 0x80);
    low = rest % 128;
    rest = Math.floor(rest / 128);
  }
  return Uint8Array.from([...bytes, low]);
}

/** Encodes a report; `id` has 16 bytes, and `time` is in milliseconds since 1970. */
export function message(collection: string, version: number, id: Uint8Array, time: number, payload: Payload): Uint8Array {
  const name = new TextEncoder().encode(collection);
  const own =
    typeof payload === "number"
      ? joined(Uint8Array.of(0), varint(payload))
      : joined(Uint8Array.of(2), varint(payload.length), payload);
  return joined(HEADER, varint(name.length), name, varint(version), id, varint(time), own);
}

const BATCH_HEADER = Uint8Array.of(0xc3, 0x01, 0x30, 0x08, 0xa7, 0x8d, 0xd0, 0x77, 0x01, 0xed);

/** A report before it is encoded. */
export interface Report {
  id: Uint8Array;
  time: number;
  payload: Payload;
}

/** Encodes reports of one collection and version as columns: a message for gateways, which links these reports. */
export function batch(collection: string, version: number, reports: readonly Report[]): Uint8Array {
  const name = new TextEncoder().encode(collection);
  const ids = joined(...reports.map(({ id }) => id));
  const times = joined(...reports.map(({ time }) => signed64(time)));
  const symbols = reports.every(({ payload }) => typeof payload === "number");
  const column = joined(
    ...reports.map(({ payload }) => (symbols ? littleEndian(payload as number, 4) : (payload as Uint8Array))),
  );
  const union = Uint8Array.of(symbols ? 0 : 2);
  const columns = [ids, times].flatMap((bytes) => [varint(bytes.length), bytes]);
  return joined(
    BATCH_HEADER, varint(name.length), name, varint(version), ...columns, union, varint(column.length), column,
  );
}

function signed64(number: number): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigInt64(0, BigInt(number), true);
  return bytes;
}
