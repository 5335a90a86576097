/** A table as an import or `JSON.parse` gives it, whose texts have no narrower type; a device checks all of it. */
export interface TableJson {
  format: number;
  collection: string;
  version: number;
  digest: string;
}

/** The table of a spec, as `uldp device-table SPEC --json` writes it. Its rules are in docs/device-table.md. */
export interface DeviceTable extends TableJson {
  format: 1;
  device_digest: string;
  slice_ms: number;
  offset_ms: number;
  window_ms: number;
  exact_time: boolean;
  kept: boolean;
  spends: Spends;
  spends_at_level?: Record<string, Spends>;
  budget: { epsilon: number; every_ms: number } | null;
  columns: Column[];
  encoding: EncodingForm;
  mechanism: Form;
}

/** What one report of a value spends, and all of them together; null without privacy, or without such a bound. */
export interface Spends {
  epsilon: number | null;
  lasting: number | null;
}

/** A variable: the only one has no name. */
export interface Column {
  name: string;
  kind: string;
  domain: Record<string, unknown>;
  tags: string[];
}

/** What makes a symbol of a string, or of each string of a set. */
export type StringForm = { form: "string"; longest: number } | { form: "prefix"; number: number; pieces: number; longest: number };

export type EncodingForm =
  | StringForm
  | { form: "value"; size: number; tags: number }
  | { form: "zones"; size: number; places: number[][] }
  | { form: "grid"; low: number; high: number; grid: number; bits: number }
  | { form: "bins"; low: number; high: number; bins: number }
  | { form: "strings"; of: StringForm; held: number }
  | { form: "set"; size: number; held: number }
  | { form: "signed"; size: number; held: number; low: number; high: number }
  | { form: "size"; size: number; most: number; shift: number; width: number }
  | { form: "pair"; first: number; second: number }
  | { form: "view"; encodings: EncodingForm[]; sizes: number[] }
  | StrataEncodingForm;

export interface StrataEncodingForm {
  form: "strata";
  bases: { encoding: EncodingForm; columns: number[] }[];
  base: number[];
  maps: (MapForm | null)[];
  choice: { form: "drawn" } | { form: "level"; levels: string[] } | NamedForm;
}

/** The values of the public attributes of a report number its part, the last one as the fastest. */
export interface NamedForm {
  form: "named";
  by: Record<string, string[]>;
}

/** What a part of strata makes of the symbol of its base. */
export type MapForm = { form: "design"; first: number; width: number } | { form: "blocks"; width: number };

/** Thresholds of each bit, or one for all of them. */
export type Thresholds = number | number[];

export type Form =
  | { form: "identity" }
  | { form: "response"; size: number; sensitive: number[] | null; noise: number }
  | { form: "bits"; size: number; sensitive: number[] | null; set: Thresholds; clear: Thresholds }
  | { form: "flips"; size: number; flip: number }
  | { form: "subset"; size: number; sensitive: number[] | null; chosen: number; noise: number }
  | { form: "set"; size: number; held: number; chosen: number; noise: number; hits: number[] }
  | { form: "design"; size: number; sensitive: number[] | null; noise: number; blocks: number; set: number[] | null }
  | { form: "hash"; buckets: number; noise: number }
  | { form: "hits"; buckets: number; held: number; hit: number }
  | { form: "cohorts"; cohorts: number; buckets: number; held: number; hits: number[] }
  | { form: "row"; rows: number; noise: number }
  | { form: "linear"; g: number; m: number; noise: number }
  | { form: "point"; g: number; m: number; noise: number }
  | IntegersForm
  | { form: "bit"; grid: number; flip: number }
  | { form: "interval"; grid: number; width: number; noise: number }
  | { form: "steps"; grid: number; margin: number; ends: number[] }
  | { form: "cohort"; cohorts: number; buckets: number; noise: number }
  | { form: "bloom"; cohorts: number; hashes: number; size: number; set: number; clear: number }
  | { form: "near"; ends: string[][] }
  | NestedForm
  | StrataForm
  | KeptForm;

export interface IntegersForm {
  form: "integers";
  size: number;
  flip: number;
  magnitudes: number[];
}

export interface NestedForm {
  form: "nested";
  noise: number;
  kinds: number[];
  others: number[];
  outer: number[];
  zone: number[];
  first: number[];
  nests: { symbol: number; uniform: number; points: number; planes: number[][] }[];
}

export interface StrataForm {
  form: "strata";
  draw: number[];
  mechanisms: Form[];
  which: number[];
  first: number[] | null;
  width: number | null;
}

export interface KeptForm {
  form: "kept";
  permanent: Form;
  once: Form;
  replace?: number;
  set?: Thresholds;
  clear?: Thresholds;
}
