/* A device under local differential privacy, in C11: one header, no allocation, and no time that depends on the value.
 *
 * It computes by a table, which `uldp device-table SPEC --c` writes as a header. docs/device-table.md has the rule of
 * each form. Where a symbol is secret, the code selects by masks: it takes no branch and reads no address by it. What
 * the compiler and the processor make of divisions is theirs. Which part of strata a device reports is no secret.
 *
 *     uldp_held held = {.index = 3, .tag = -1};
 *     size_t bytes = uldp_report(&places, &held, 1, 0, id, time_ms, uldp_system_draws(), &places_work, message);
 *
 * A device with kept responses calls uldp_encode with uldp_kept_draws, then uldp_permanent, and uldp_again with the response
 * that it keeps for this symbol: see docs/client.md, "Reports every day". This header keeps no ledger and spends no budget.
 */
#ifndef ULDP_H
#define ULDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The most symbols that a device holds of a set, and the most levels of strata within strata. */
#ifndef ULDP_MOST_HELD
#define ULDP_MOST_HELD 64
#endif
/* The most strings of a set that a device holds; of more, it reports nothing. */
#ifndef ULDP_MOST_TEXTS
#define ULDP_MOST_TEXTS 256
#endif
#define ULDP_MOST_DEPTH 4

typedef struct {
  const uint64_t *at;
  size_t count;
} uldp_list;

typedef enum {
  ULDP_IDENTITY, ULDP_RESPONSE, ULDP_BITS, ULDP_FLIPS, ULDP_INTEGERS, ULDP_SUBSET, ULDP_SET, ULDP_DESIGN, ULDP_HASH,
  ULDP_ROW, ULDP_LINEAR, ULDP_POINT, ULDP_BIT, ULDP_INTERVAL, ULDP_STEPS, ULDP_COHORT, ULDP_BLOOM, ULDP_NEAR,
  ULDP_NESTED, ULDP_STRATA, ULDP_KEPT, ULDP_VALUE, ULDP_ZONES, ULDP_GRID, ULDP_BINS, ULDP_STRING, ULDP_PREFIX, ULDP_PAIR,
  ULDP_SIGNED, ULDP_VIEW, ULDP_HITS, ULDP_COHORTS, ULDP_STRINGS, ULDP_SIZE, ULDP_BLOCKS, ULDP_SAME, ULDP_DRAWN, ULDP_GIVEN
} uldp_form;

typedef struct {
  uint64_t symbol, uniform, points, plane; /* plane: the points on each of planes */
  uldp_list planes;
} uldp_nest;

typedef struct uldp_mechanism uldp_mechanism;
struct uldp_mechanism {
  uldp_form form;
  uint64_t size, noise, flip, chosen, held, blocks, buckets, rows, g, m, grid, width, margin, cohorts, hashes, hit;
  uldp_list sensitive, set, clear, hits, magnitudes, ends, draw, which, first, kinds, others, outer, zone, replace;
  const uldp_mechanism *mechanisms, *permanent, *once;
  const uldp_nest *nests;
  size_t nests_count;
};

typedef struct uldp_encoding uldp_encoding;
typedef struct {
  const uldp_encoding *encoding;
  uldp_list columns;
} uldp_base;
typedef struct {
  uldp_form form;
  uint64_t first, width;
} uldp_map;
struct uldp_encoding {
  uldp_form form, choice;
  uint64_t size, tags, grid, bits, bins, longest, held, number, pieces, first, second, most, shift, width;
  double low, high;
  uldp_list places, base, sizes;
  const uldp_base *bases; /* of a view, the encoding of each column; of a set of strings, that of each string */
  size_t bases_count;
  const uldp_map *maps;
};

typedef struct {
  const char *collection;
  uint64_t version, slice_ms, offset_ms;
  bool exact_time;
  const uldp_encoding *encoding;
  const uldp_mechanism *mechanism;
  const char *const *pieces; /* of strings: the vocabulary of prefixes */
  size_t pieces_count;
} uldp_table;

/* What a device holds of one variable. Of text, `length` has the bytes of its UTF-8. */
typedef struct {
  uint64_t index;        /* of a value */
  int64_t tag;           /* behind which the user hides it; -1 if the user does not */
  double number;
  const char *text;
  size_t length;
  const uint64_t *items; /* of a set or the keys of pairs, all different; of a ranking the candidates, the best first */
  size_t items_count;    /* of a set of strings, how many texts it has */
  const char *const *texts; /* of a set of strings, all different */
  const size_t *lengths;    /* the bytes of each */
  const double *numbers; /* of pairs, one for each key */
} uldp_held;

/* The symbol of a mechanism; of strata, the parts that lead to it, the outermost first. */
typedef struct {
  uint64_t own, items[ULDP_MOST_HELD], parts[ULDP_MOST_DEPTH];
} uldp_symbol;

/* A payload: a symbol if `length` is 0, else the bytes of the work area. */
typedef struct {
  uint64_t symbol;
  size_t length;
} uldp_payload;

/* Memory for one report at a time; the header of a table brings one that is large enough. */
typedef struct {
  uldp_symbol *symbols;
  size_t symbols_count;
  uint64_t *scratch;
  uint8_t *bytes;
  size_t bytes_count;
} uldp_work;

/* Gives an integer below a limit, which is at most 2^62, uniformly and without state that others can know. */
typedef struct {
  uint64_t (*below)(void *state, uint64_t limit);
  void *state;
} uldp_draws;

/* Draws for the encoding of a device with kept responses, which is to choose the same each time: the numbers that the
 * device keeps, and then new ones, which it must keep. It has `room` numbers; `count` of them are kept before. */
typedef struct {
  uldp_draws from;
  uint64_t *numbers;
  size_t room, count, made;
} uldp_kept;
static inline uint64_t uldp_kept_below(void *state, uint64_t limit) {
  uldp_kept *kept = state;
  uint64_t drawn = kept->from.below(kept->from.state, limit);
  if (kept->made >= kept->room) return drawn;
  if (kept->made >= kept->count) kept->numbers[kept->made] = drawn;
  return kept->numbers[kept->made++];
}
static inline uldp_draws uldp_kept_draws(uldp_kept *kept) { return (uldp_draws){uldp_kept_below, kept}; }

/* ---- masks: all ones if it is so, else 0; for numbers below 2^63 ---- */

static inline uint64_t uldp_eq(uint64_t a, uint64_t b) { return (((a ^ b) | (0 - (a ^ b))) >> 63) - 1; }
static inline uint64_t uldp_lt(uint64_t a, uint64_t b) { return 0 - ((a - b) >> 63); }
static inline uint64_t uldp_select(uint64_t mask, uint64_t a, uint64_t b) { return b ^ (mask & (a ^ b)); }
static inline uint64_t uldp_below(uldp_draws draws, uint64_t limit) { return draws.below(draws.state, limit); }
static inline uint64_t uldp_happens(uint64_t threshold, uldp_draws draws) {
  return uldp_lt(uldp_below(draws, UINT64_C(1) << 53), threshold);
}
static inline uint64_t uldp_at(uldp_list list, size_t place) { return list.at[list.count == 1 ? 0 : place]; }
static inline size_t uldp_count(const uldp_mechanism *m) { return m->sensitive.count ? m->sensitive.count : (size_t)m->size; }
static inline uint64_t uldp_sensitive(const uldp_mechanism *m, size_t i) { return m->sensitive.count ? m->sensitive.at[i] : i; }
static inline uint64_t uldp_reached(uldp_list ends, uint64_t drawn) {
  uint64_t count = 0;
  for (size_t i = 0; i < ends.count; i++) count += ~uldp_lt(drawn, ends.at[i]) & 1;
  return count;
}
/* Of a row of a secret number: reads all rows. */
static inline uint64_t uldp_row_at(uldp_list rows, uint64_t row, uint64_t length, uint64_t column) {
  uint64_t found = 0;
  for (uint64_t i = 0; i < rows.count / length; i++) found |= uldp_eq(i, row) & rows.at[i * length + column];
  return found;
}
static inline void uldp_bit(uint8_t *bytes, uint64_t place, uint64_t mask) {
  uint8_t bit = (uint8_t)(0x80u >> (place & 7));
  bytes[place >> 3] = (uint8_t)((bytes[place >> 3] & ~bit) | (mask & bit));
}
static inline void uldp_little_endian(uint8_t *bytes, uint64_t number, size_t count) {
  for (size_t i = 0; i < count; i++) bytes[i] = (uint8_t)(number >> (8 * i));
}

/* ---- hashes ---- */

static inline uint64_t uldp_bucket_of(uint64_t seed, uint64_t symbol, uint64_t buckets) {
  uint64_t word = (seed << 32) + (symbol + 1) * UINT64_C(0x9e3779b97f4a7c15);
  word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
  return ((word ^ word >> 31) & UINT32_MAX) * buckets >> 32;
}

typedef struct {
  uint32_t state[8];
  uint8_t block[64];
  uint64_t bytes;
} uldp_sha256;

static inline uint32_t uldp_rotated(uint32_t word, int by) { return word >> by | word << (32 - by); }
static inline void uldp_sha256_block(uldp_sha256 *hash) {
  static const uint32_t round[64] = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
      0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
      0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
      0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
      0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
      0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
      0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
      0xc67178f2};
  uint32_t w[64], s[8];
  for (int i = 0; i < 16; i++)
    w[i] = (uint32_t)hash->block[4 * i] << 24 | (uint32_t)hash->block[4 * i + 1] << 16 |
           (uint32_t)hash->block[4 * i + 2] << 8 | hash->block[4 * i + 3];
  for (int i = 16; i < 64; i++) {
    uint32_t a = uldp_rotated(w[i - 15], 7) ^ uldp_rotated(w[i - 15], 18) ^ w[i - 15] >> 3;
    uint32_t b = uldp_rotated(w[i - 2], 17) ^ uldp_rotated(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + a + w[i - 7] + b;
  }
  memcpy(s, hash->state, sizeof s);
  for (int i = 0; i < 64; i++) {
    uint32_t a = uldp_rotated(s[4], 6) ^ uldp_rotated(s[4], 11) ^ uldp_rotated(s[4], 25);
    uint32_t one = s[7] + a + ((s[4] & s[5]) ^ (~s[4] & s[6])) + round[i] + w[i];
    uint32_t b = uldp_rotated(s[0], 2) ^ uldp_rotated(s[0], 13) ^ uldp_rotated(s[0], 22);
    uint32_t two = b + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    memmove(s + 1, s, 7 * sizeof *s);
    s[4] += one;
    s[0] = one + two;
  }
  for (int i = 0; i < 8; i++) hash->state[i] += s[i];
}
static inline void uldp_sha256_add(uldp_sha256 *hash, uint8_t byte) {
  hash->block[hash->bytes++ & 63] = byte;
  if (!(hash->bytes & 63)) uldp_sha256_block(hash);
}
/* The symbol of a text: that of its bytes, filled with ff up to `longest`. It hashes as many bytes whatever the text. */
static inline uint64_t uldp_text_symbol(const char *text, size_t length, uint64_t longest) {
  uldp_sha256 hash = {.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab,
                                0x5be0cd19}};
  for (uint64_t i = 0; i < longest; i++) uldp_sha256_add(&hash, i < length ? (uint8_t)text[i] : 0xff);
  uldp_sha256_add(&hash, 0x80);
  while ((hash.bytes & 63) != 56) uldp_sha256_add(&hash, 0);
  for (int i = 7; i >= 0; i--) uldp_sha256_add(&hash, (uint8_t)(8 * longest >> (8 * i)));
  uint64_t symbol = 0;
  for (int i = 5; i >= 0; i--) symbol = symbol << 8 | (uint8_t)(hash.state[i / 4] >> (24 - 8 * (i % 4)));
  return symbol;
}

/* ---- vectors over the integers modulo g ---- */

#define ULDP_MOST_DIGITS 64
static inline void uldp_digits(uint64_t *digits, uint64_t vector, uint64_t g, uint64_t m) {
  for (uint64_t i = m; i-- > 0; vector /= g) digits[i] = vector % g;
}
static inline uint64_t uldp_points(uint64_t g, uint64_t m) {
  uint64_t points = 0;
  for (uint64_t i = 0; i < m; i++) points = points * g + 1;
  return points;
}
static inline uint64_t uldp_vector_of(uint64_t point, uint64_t g, uint64_t m) {
  uint64_t power = 1, found = 0, going = UINT64_MAX;
  for (uint64_t i = 0; i < m; i++, power *= g) {
    uint64_t here = going & uldp_lt(point, power);
    found |= here & (power + point);
    going &= ~here;
    point = uldp_select(going, point - power, point);
  }
  return found;
}
static inline uint64_t uldp_point_of(uint64_t vector, uint64_t g, uint64_t m) {
  uint64_t power = 1, found = 0, points = 0;
  for (uint64_t i = 0; i < m; i++, power *= g) {
    uint64_t here = ~uldp_lt(vector, power); /* the highest power that is not above it */
    found = uldp_select(here, vector - power + points, found);
    points += power;
  }
  return found;
}
static inline uint64_t uldp_on_plane(uint64_t point, uint64_t number, uint64_t g, uint64_t m) {
  uint64_t x[ULDP_MOST_DIGITS], o[ULDP_MOST_DIGITS], place = 0, at_place = 0, sum = 0, inverse = 0, vector = 0;
  uldp_digits(x, uldp_vector_of(point, g, m), g, m);
  uldp_digits(o, uldp_vector_of(number, g, m - 1), g, m - 1);
  for (uint64_t i = 0; i < m; i++) {
    place = uldp_select(uldp_eq(x[i], 0), place, i);
    at_place = uldp_select(uldp_eq(x[i], 0), at_place, x[i]);
  }
  for (uint64_t i = 0; i < m; i++) {
    uint64_t here = i < m - 1 ? o[i] : 0, earlier = i ? o[i - 1] : 0;
    uint64_t y = uldp_select(uldp_lt(i, place), here, earlier & ~uldp_eq(i, place));
    sum = (sum + x[i] * y) % g;
  }
  for (uint64_t i = 1; i < g; i++) inverse |= uldp_eq(i * at_place % g, 1) & i;
  uint64_t solved = (g - sum) * inverse % g;
  for (uint64_t i = 0; i < m; i++) {
    uint64_t here = i < m - 1 ? o[i] : 0, earlier = i ? o[i - 1] : 0;
    uint64_t y = uldp_select(uldp_lt(i, place), here, earlier);
    vector = vector * g + uldp_select(uldp_eq(i, place), solved, y);
  }
  return uldp_point_of(vector, g, m);
}

/* ---- encodings ---- */

static inline double uldp_share(const uldp_encoding *e, double number) {
  double inside = number < e->low ? e->low : number > e->high ? e->high : number;
  return (inside - e->low) / (e->high - e->low);
}
/* Rounds to the nearest integer, and to the even one of two. */
static inline uint64_t uldp_rounded(double number) {
  uint64_t below = (uint64_t)number;
  double rest = number - (double)below;
  return below + (rest > 0.5 || (rest == 0.5 && (below & 1)));
}
/* Chooses up to l different items or keys of a device, into the scratch; returns how many, or ULDP_MOST_HELD + 1. */
static inline uint64_t uldp_choose(const uldp_encoding *e, const uldp_held *held, uldp_draws draws, uldp_work *work) {
  uint64_t *items = work->scratch, count = held->items_count, drawn[ULDP_MOST_HELD];
  if (e->held > ULDP_MOST_HELD || count > e->size) return ULDP_MOST_HELD + 1;
  for (uint64_t i = 0; i < e->held; i++) drawn[i] = uldp_below(draws, UINT64_C(1) << 32);
  for (uint64_t i = 0; i < count; i++) {
    if (held->items[i] >= e->size) return ULDP_MOST_HELD + 1;
    uint64_t at = i;
    for (; at && items[at - 1] > held->items[i]; at--) items[at] = items[at - 1];
    items[at] = held->items[i];
    if (at && items[at - 1] == items[at]) return ULDP_MOST_HELD + 1;
  }
  for (uint64_t i = 0; i < e->held && count > e->held; i++) {
    uint64_t other = i + (drawn[i] * (count - i) >> 32), moved = items[i];
    items[i] = items[other];
    items[other] = moved;
  }
  return count < e->held ? count : e->held;
}
/* Sorts the first `kept` numbers of the scratch, and a dummy from `first` on for each that is missing. */
static inline void uldp_pad(const uldp_encoding *e, uint64_t kept, uint64_t first, const uldp_work *work, uldp_symbol *symbol) {
  for (uint64_t i = 0; i < e->held; i++) {
    uint64_t item = i < kept ? work->scratch[i] : first + i - kept, at = i;
    for (; at && symbol->items[at - 1] > item; at--) symbol->items[at] = symbol->items[at - 1];
    symbol->items[at] = item;
  }
}
/* Gives each chosen key a sign, which has the mean of its number. */
static inline bool uldp_sign(const uldp_encoding *e, const uldp_held *held, uint64_t kept, uldp_draws draws, uldp_work *work) {
  const uint64_t one = UINT64_C(1) << 52;
  for (uint64_t i = 0; i < e->held; i++) {
    uint64_t drawn = uldp_below(draws, one);
    if (i >= kept) continue;
    for (size_t j = 0; j < held->items_count; j++) {
      if (held->items[j] != work->scratch[i]) continue;
      if (!(held->numbers[j] - held->numbers[j] == 0)) return false;
      work->scratch[i] = 2 * work->scratch[i] + (uldp_rounded(uldp_share(e, held->numbers[j]) * (double)one) + drawn >= one);
      break;
    }
  }
  return true;
}
static inline uint64_t uldp_prefix_symbol(const uldp_table *table, const uldp_encoding *e, const uldp_held *held) {
  uint64_t found = 0, end = 0, at = 0;
  while (at < held->length) {
    size_t longest = 0;
    for (size_t i = 0; i < table->pieces_count; i++) {
      size_t length = strlen(table->pieces[i]);
      if (length > longest && length <= held->length - at && !memcmp(table->pieces[i], held->text + at, length)) longest = length;
    }
    if (!longest) return 0;
    at += longest;
    if (found++ < e->pieces) end = at;
  }
  return uldp_text_symbol(held->text, (size_t)end, e->longest + 1 + e->number);
}
/* No symbol of a string. */
#define ULDP_NO_STRING (UINT64_C(1) << 48)
/* The different symbols of up to l strings of a set, in ascending order, and ULDP_NO_STRING in place of missing ones. */
static inline bool uldp_strings(const uldp_table *table, const uldp_encoding *e, const uldp_held *held, uldp_draws draws,
                                uldp_symbol *symbol) {
  const uldp_encoding *one = e->bases[0].encoding;
  uint64_t symbols[ULDP_MOST_TEXTS], drawn[ULDP_MOST_HELD], count = held->items_count;
  if (e->held > ULDP_MOST_HELD || count > ULDP_MOST_TEXTS) return false;
  for (uint64_t i = 0; i < e->held; i++) drawn[i] = uldp_below(draws, UINT64_C(1) << 32);
  for (uint64_t i = 0; i < count; i++) {
    uldp_held text = {.text = held->texts[i], .length = held->lengths[i]};
    if (text.length > one->longest) return false;
    uint64_t own = one->form == ULDP_PREFIX ? uldp_prefix_symbol(table, one, &text)
                                            : uldp_text_symbol(text.text, text.length, one->longest);
    uint64_t at = i;
    for (; at && symbols[at - 1] > own; at--) symbols[at] = symbols[at - 1];
    symbols[at] = own;
  }
  for (uint64_t i = 0; i < e->held && count > e->held; i++) {
    uint64_t other = i + (drawn[i] * (count - i) >> 32), moved = symbols[i];
    symbols[i] = symbols[other];
    symbols[other] = moved;
  }
  for (uint64_t i = 0; i < e->held; i++) {
    uint64_t own = i < count ? symbols[i] : ULDP_NO_STRING, at = i;
    for (; at && symbol->items[at - 1] > own; at--) symbol->items[at] = symbol->items[at - 1];
    symbol->items[at] = own;
  }
  return true;
}

/* Encodes what a device holds, of each column. `part` is the level of privacy or the slice of a device that has one.
 * Returns whether all values are in their domains. The draws do not depend on them. */
static inline bool uldp_encode_at(const uldp_table *table, const uldp_encoding *e, const uldp_mechanism *strata,
                                  const uldp_held *const *columns, uint64_t part, uldp_draws draws, uldp_work *work,
                                  size_t depth, uldp_symbol *symbol) {
  const uldp_held *held = columns[0];
  switch (e->form) {
    case ULDP_VALUE:
      symbol->own = held->tag < 0 ? held->index : e->size + (uint64_t)held->tag;
      return held->index < e->size && held->tag < (int64_t)e->tags;
    case ULDP_ZONES:
      if (held->index >= e->size || held->tag >= (int64_t)(e->places.count / e->size)) return false;
      symbol->own = held->tag < 0 ? held->index : e->places.at[(uint64_t)held->tag * e->size + held->index];
      return true;
    case ULDP_GRID: {
      if (!(held->number - held->number == 0)) return false; /* infinite or NaN */
      double scale = (double)(e->grid << e->bits);
      symbol->own = (uldp_rounded(uldp_share(e, held->number) * scale) + uldp_below(draws, UINT64_C(1) << e->bits)) >> e->bits;
      return true;
    }
    case ULDP_BINS: {
      if (!(held->number - held->number == 0)) return false;
      uint64_t bin = (uint64_t)(uldp_share(e, held->number) * (double)e->bins);
      symbol->own = bin < e->bins ? bin : e->bins - 1;
      return true;
    }
    case ULDP_STRING:
      symbol->own = uldp_text_symbol(held->text, held->length, e->longest);
      return held->length <= e->longest;
    case ULDP_PREFIX:
      if (held->length > e->longest) return false;
      symbol->own = uldp_prefix_symbol(table, e, held);
      return true;
    case ULDP_PAIR: {
      size_t first = 0, second = 0;
      for (size_t i = 0; i < held->items_count; i++) {
        first = held->items[i] == e->first ? i : first;
        second = held->items[i] == e->second ? i : second;
      }
      symbol->own = second < first;
      return held->items_count > 0;
    }
    case ULDP_VIEW: {
      uint64_t cell = 0;
      bool all = true;
      for (size_t i = 0; i < e->bases_count; i++) {
        all &= uldp_encode_at(table, e->bases[i].encoding, NULL, columns + i, part, draws, work, depth, symbol);
        cell = cell * e->sizes.at[i] + symbol->own;
      }
      symbol->own = cell;
      return all;
    }
    case ULDP_SIZE: {
      uint64_t size = (uint64_t)held->items_count;
      symbol->own = (uldp_select(uldp_lt(size, e->most), size, e->most) + e->shift) / e->width;
      return !e->size || held->items_count <= e->size; /* 0 for strings, of which nobody has a list */
    }
    case ULDP_STRINGS:
      return uldp_strings(table, e, held, draws, symbol);
    case ULDP_SET:
    case ULDP_SIGNED: {
      uint64_t kept = uldp_choose(e, held, draws, work);
      bool is_signed = e->form == ULDP_SIGNED;
      if (kept > ULDP_MOST_HELD || (is_signed && !uldp_sign(e, held, kept, draws, work))) return false;
      uldp_pad(e, kept, is_signed ? 2 * e->size : e->size, work, symbol);
      return true;
    }
    case ULDP_STRATA: {
      if (depth >= ULDP_MOST_DEPTH || work->symbols_count < e->bases_count) return false;
      uldp_symbol *symbols = work->symbols;
      uldp_work rest = *work;
      rest.symbols += e->bases_count;
      rest.symbols_count -= e->bases_count;
      bool all = true;
      for (size_t i = 0; i < e->bases_count; i++) {
        const uldp_held *own[8] = {0};
        if (e->bases[i].columns.count > 8) return false;
        for (size_t j = 0; j < e->bases[i].columns.count; j++) own[j] = columns[e->bases[i].columns.at[j]];
        size_t reader = 0;
        while (e->base.at[reader] != i) reader++;
        const uldp_mechanism *nested = &strata->mechanisms[strata->which.at[reader]];
        all &= uldp_encode_at(table, e->bases[i].encoding, nested, own, part, draws, &rest, depth + 1, &symbols[i]);
      }
      uint64_t drawn = e->choice == ULDP_GIVEN ? part : uldp_reached(strata->draw, uldp_below(draws, UINT64_C(1) << 53));
      if (drawn >= e->base.count) return false;
      *symbol = symbols[e->base.at[drawn]];
      symbol->parts[depth] = drawn;
      const uldp_map *map = &e->maps[drawn];
      if (map->form == ULDP_BLOCKS) symbol->own /= map->width;
      if (map->form == ULDP_DESIGN) {
        uint64_t place = symbol->own - map->first;
        symbol->own = uldp_select(~uldp_lt(symbol->own, map->first) & uldp_lt(place & INT64_MAX, map->width), place, map->width);
      }
      return all;
    }
    default:
      return false;
  }
}
static inline bool uldp_encode(const uldp_table *table, const uldp_held *held, size_t columns, uint64_t part,
                               uldp_draws draws, uldp_work *work, uldp_symbol *symbol) {
  const uldp_held *all[256];
  if (columns > 256) return false;
  for (size_t i = 0; i < columns; i++) all[i] = &held[i];
  return uldp_encode_at(table, table->encoding, table->mechanism, all, part, draws, work, 0, symbol);
}

/* ---- mechanisms ---- */

/* Draws w different numbers below v, in the order of the draws. */
static inline void uldp_members(uint64_t *found, uint64_t v, uint64_t w, uldp_draws draws) {
  for (uint64_t last = v - w, i = 0; last < v; last++, i++) {
    uint64_t drawn = uldp_below(draws, last + 1), there = 0;
    for (uint64_t j = 0; j < i; j++) there |= uldp_eq(found[j], drawn);
    found[i] = uldp_select(there, last, drawn);
  }
}
static inline uint64_t uldp_among(const uint64_t *row, uint64_t count, uint64_t number) {
  uint64_t there = 0;
  for (uint64_t i = 0; i < count; i++) there |= uldp_eq(row[i], number);
  return there;
}
static inline void uldp_shuffled(uint64_t *row, uint64_t count, uint64_t first, uldp_draws draws) {
  for (uint64_t i = 0; i < first; i++) {
    uint64_t other = i + uldp_below(draws, count - i), moved = row[i];
    row[i] = row[other];
    row[other] = moved;
  }
}
static inline uint64_t uldp_noisy_bucket(uint64_t own, uint64_t buckets, uint64_t noise, uldp_draws draws) {
  uint64_t noisy = uldp_happens(noise, draws), shift = 1 + uldp_below(draws, buckets - 1);
  return (own + (noisy & shift)) % buckets;
}
static inline uldp_payload uldp_symbol_payload(uint64_t symbol) { return (uldp_payload){.symbol = symbol}; }
static inline uldp_payload uldp_bytes_payload(size_t length) { return (uldp_payload){.length = length}; }

/* Writes the entries of a histogram over the bits that are in the bytes. */
static inline uldp_payload uldp_enlarged(const uldp_mechanism *m, uint64_t *ones, uldp_draws draws, uldp_work *work) {
  uint64_t *magnitudes = ones + m->size;
  memset(magnitudes, 0, m->size * sizeof *magnitudes);
  for (size_t bit = 0; bit < m->magnitudes.count; bit++)
    for (uint64_t j = 0; j < m->size; j++) magnitudes[j] |= (uldp_happens(m->magnitudes.at[bit], draws) & 1) << bit;
  for (uint64_t j = 0; j < m->size; j++) {
    uint64_t entry = uldp_select(0 - ones[j], 1 + magnitudes[j], 0 - magnitudes[j]);
    uint64_t cut = uldp_select(~uldp_eq(ones[j], 0) & ~uldp_lt(magnitudes[j], 32767), 32767, entry);
    uldp_little_endian(work->bytes + 2 * j, cut, 2);
  }
  return uldp_bytes_payload(2 * m->size);
}
static inline void uldp_flipped(const uldp_mechanism *m, uint64_t z, uint64_t *ones, uldp_draws draws) {
  for (uint64_t j = 0; j < m->size; j++) ones[j] = (uldp_happens(m->flip, draws) ^ uldp_eq(j, z)) & 1;
}
static inline uldp_payload uldp_packed(const uint64_t *ones, uint64_t size, uint8_t *bytes) {
  memset(bytes, 0, (size + 7) / 8);
  for (uint64_t j = 0; j < size; j++) uldp_bit(bytes, j, 0 - ones[j]);
  return uldp_bytes_payload((size_t)(size + 7) / 8);
}

static inline uldp_payload uldp_perturb_set(const uldp_mechanism *m, const uint64_t *items, uldp_draws draws, uldp_work *work) {
  uint64_t w = m->chosen, l = m->held, most = l < w ? l : w, there = 0;
  uint64_t *found = work->scratch, *leaving = found + w, *coming = leaving + w;
  uldp_members(found, m->size, w, draws);
  uint64_t noisy = uldp_happens(m->noise, draws);
  uint64_t hits = 1 + uldp_reached(m->hits, uldp_below(draws, UINT64_C(1) << 53));
  memcpy(leaving, found, w * sizeof *found);
  memcpy(coming, items, l * sizeof *items);
  uldp_shuffled(leaving, w, most, draws);
  uldp_shuffled(coming, l, most, draws);
  for (uint64_t i = 0; i < l; i++) there |= uldp_among(found, w, items[i]);
  uint64_t kept = noisy | there | uldp_lt(most, hits);
  size_t length = (size_t)(m->size + 7) / 8;
  memset(work->bytes, 0, length);
  for (uint64_t j = 0; j < m->size; j++) {
    uint64_t gone = 0, came = 0;
    for (uint64_t i = 0; i < most; i++) {
      gone |= uldp_lt(i, hits) & uldp_eq(leaving[i], j);
      came |= uldp_lt(i, hits) & uldp_eq(coming[i], j);
    }
    uint64_t in = uldp_among(found, w, j);
    uldp_bit(work->bytes, j, uldp_select(kept, in, (in & ~gone) | came));
  }
  return uldp_bytes_payload(length);
}

static inline uldp_payload uldp_perturb_hits(const uldp_mechanism *m, const uint64_t *items, uldp_draws draws, uldp_work *work) {
  uint64_t seed = uldp_below(draws, UINT64_C(1) << 32), drawn = uldp_below(draws, UINT64_C(1) << 53);
  uint64_t place = uldp_below(draws, m->buckets - m->held), *hit = work->scratch, hits = 0, kind = 0, bucket = 0, others = 0;
  memset(hit, 0, m->buckets * sizeof *hit);
  for (uint64_t i = 0; i < m->held; i++) {
    uint64_t own = uldp_bucket_of(seed, items[i], m->buckets);
    for (uint64_t b = 0; b < m->buckets; b++) hit[b] |= uldp_eq(b, own);
    kind += ~uldp_lt(drawn, (i + 1) * m->hit) & 1;
  }
  for (uint64_t b = 0; b < m->buckets; b++) hits += hit[b] & 1;
  for (uint64_t b = 0; b < m->buckets; b++) { /* where symbols collide, the lowest free buckets are hit too */
    uint64_t free = ~hit[b] & uldp_lt(hits, m->held);
    hit[b] |= free;
    hits += free & 1;
  }
  hits = 0;
  for (uint64_t b = 0; b < m->buckets; b++) {
    uint64_t of_hits = hit[b] & uldp_eq(hits, kind), of_others = ~hit[b] & uldp_eq(kind, m->held) & uldp_eq(others, place);
    bucket |= (of_hits | of_others) & b;
    hits += hit[b] & 1;
    others += ~hit[b] & 1;
  }
  uldp_little_endian(work->bytes, seed, 4);
  uldp_little_endian(work->bytes + 4, bucket, 2);
  return uldp_bytes_payload(6);
}

static inline uldp_payload uldp_perturb_cohort_hits(const uldp_mechanism *m, const uint64_t *items, uldp_draws draws,
                                                    uldp_work *work) {
  uint64_t cohort = uldp_below(draws, m->cohorts), drawn = uldp_below(draws, UINT64_C(1) << 53);
  uint64_t anywhere = uldp_below(draws, m->buckets), *hit = work->scratch, hits = 0, weight = 0, kind = 0, bucket = 0;
  memset(hit, 0, m->buckets * sizeof *hit);
  for (uint64_t i = 0; i < m->held; i++) {
    uint64_t own = uldp_bucket_of(cohort, items[i], m->buckets), there = uldp_lt(items[i], ULDP_NO_STRING);
    for (uint64_t b = 0; b < m->buckets; b++) hit[b] |= uldp_eq(b, own) & there;
  }
  for (uint64_t b = 0; b < m->buckets; b++) hits += hit[b] & 1;
  for (uint64_t i = 0; i < m->held; i++) weight |= uldp_eq(i + 1, hits) & m->hits.at[i];
  for (uint64_t i = 0; i < m->held; i++) kind += ~uldp_lt(drawn, (i + 1) * weight) & 1;
  uint64_t chosen = uldp_lt(kind, hits);
  hits = 0;
  for (uint64_t b = 0; b < m->buckets; b++) {
    bucket |= hit[b] & uldp_eq(hits, kind) & b;
    hits += hit[b] & 1;
  }
  return uldp_symbol_payload(cohort * m->buckets + uldp_select(chosen, bucket, anywhere));
}

static inline uldp_payload uldp_perturb_subset(const uldp_mechanism *m, uint64_t z, uldp_draws draws, uldp_work *work) {
  uint64_t v = uldp_count(m), w = m->chosen, place = 0, sensitive = 0, *found = work->scratch;
  uldp_members(found, v, w, draws);
  uint64_t noisy = uldp_happens(m->noise, draws), replaced = uldp_below(draws, w);
  for (uint64_t i = 0; i < v; i++) {
    uint64_t here = uldp_eq(uldp_sensitive(m, i), z);
    place |= here & i;
    sensitive |= here;
  }
  uint64_t moved = ~noisy & sensitive & ~uldp_among(found, w, place);
  for (uint64_t i = 0; i < w; i++) found[i] = uldp_select(moved & uldp_eq(i, replaced), place, found[i]);
  size_t length = (size_t)(m->size + 7) / 8;
  memset(work->bytes, 0, length);
  uint64_t named = ~noisy & ~sensitive;
  for (uint64_t i = 0; i < v; i++) uldp_bit(work->bytes, uldp_sensitive(m, i), uldp_among(found, w, i) & ~named);
  for (uint64_t j = 0; j < m->size; j++) {
    uint64_t before = 0 - (uint64_t)(work->bytes[j >> 3] >> (7 - (j & 7)) & 1);
    uldp_bit(work->bytes, j, before | (named & uldp_eq(j, z)));
  }
  return uldp_bytes_payload(length);
}

static inline uldp_payload uldp_perturb_design(const uldp_mechanism *m, uint64_t z, uldp_draws draws) {
  uint64_t noisy = uldp_happens(m->noise, draws), noise = uldp_below(draws, m->blocks);
  uint64_t drawn = uldp_below(draws, m->set.count ? m->set.count : m->blocks), place = 0, sensitive = 0, before = 0;
  for (uint64_t i = 0; i < uldp_count(m); i++) {
    uint64_t here = uldp_eq(uldp_sensitive(m, i), z);
    place |= here & i;
    sensitive |= here;
    before += uldp_lt(uldp_sensitive(m, i), z) & 1;
  }
  uint64_t block;
  if (m->set.count) {
    block = (place + m->blocks - m->set.at[drawn]) % m->blocks;
  } else {
    uint64_t row = place + 1, ones = row & drawn;
    for (int shift = 32; shift; shift >>= 1) ones ^= ones >> shift;
    block = drawn ^ ((0 - (ones & 1)) & row & (0 - row));
  }
  uint64_t truth = uldp_select(sensitive, block, m->blocks + z - before);
  return uldp_symbol_payload(uldp_select(noisy, noise, truth));
}

static inline uldp_payload uldp_perturb_nested(const uldp_mechanism *m, uint64_t z, uldp_draws draws) {
  uint64_t noisy = uldp_happens(m->noise, draws), kind = uldp_reached(m->kinds, uldp_below(draws, UINT64_C(1) << 53));
  uint64_t noise = m->others.at[uldp_below(draws, m->others.count)];
  for (size_t i = 0; i < m->nests_count; i++) noise = uldp_select(uldp_eq(kind, i + 1), m->nests[i].symbol, noise);
  uint64_t own = uldp_row_at(m->outer, z, 1, 0), outer = uldp_select(noisy, noise, own);
  uint64_t payload = uldp_row_at(m->first, outer, 1, 0);
  for (size_t i = 0; i < m->nests_count; i++) {
    const uldp_nest *nest = &m->nests[i];
    uint64_t zone = uldp_eq(own, nest->symbol) & uldp_row_at(m->zone, z, 1, 0);
    uint64_t uniform = uldp_happens(nest->uniform, draws), anywhere = uldp_below(draws, nest->points);
    uint64_t near = uldp_row_at(nest->planes, zone, nest->plane, uldp_below(draws, nest->plane));
    payload += uldp_eq(outer, nest->symbol) & uldp_select(noisy | uniform, anywhere, near);
  }
  return uldp_symbol_payload(payload);
}

/* The payload of one part of strata, with the number of this part. */
static inline uldp_payload uldp_wrapped(const uldp_mechanism *m, uint64_t part, uldp_payload own, uldp_work *work) {
  if (m->first.count) return uldp_symbol_payload(m->first.at[part] + own.symbol);
  size_t length = own.length ? own.length : 4;
  if (own.length) memmove(work->bytes + 2, work->bytes, length);
  else uldp_little_endian(work->bytes + 2, own.symbol, 4);
  uldp_little_endian(work->bytes, part, 2);
  memset(work->bytes + 2 + length, 0, (size_t)m->width - 2 - length);
  return uldp_bytes_payload((size_t)m->width);
}

/* Perturbs a symbol; the bytes of a payload are in the work area. */
static inline uldp_payload uldp_perturb_at(const uldp_mechanism *m, const uldp_symbol *symbol, uldp_draws draws,
                                           uldp_work *work, size_t depth) {
  uint64_t z = symbol->own;
  switch (m->form) {
    case ULDP_STRATA: {
      uint64_t part = symbol->parts[depth];
      uldp_payload own = uldp_perturb_at(&m->mechanisms[m->which.at[part]], symbol, draws, work, depth + 1);
      return uldp_wrapped(m, part, own, work);
    }
    case ULDP_RESPONSE: {
      uint64_t noisy = uldp_happens(m->noise, draws), drawn = uldp_sensitive(m, (size_t)uldp_below(draws, uldp_count(m)));
      return uldp_symbol_payload(uldp_select(noisy, drawn, z));
    }
    case ULDP_BITS: {
      uint64_t *ones = work->scratch, clear = 0;
      memset(ones, 0, m->size * sizeof *ones);
      for (size_t i = 0; i < uldp_count(m); i++) {
        uint64_t j = uldp_sensitive(m, i);
        ones[j] = uldp_happens(uldp_at(m->set, (size_t)j), draws) & 1;
      }
      for (uint64_t j = 0; j < m->size; j++) clear |= uldp_eq(j, z) & uldp_at(m->clear, (size_t)j);
      uint64_t own = ~uldp_happens(clear, draws) & 1;
      for (uint64_t j = 0; j < m->size; j++) ones[j] = uldp_select(uldp_eq(j, z), own, ones[j]);
      return uldp_packed(ones, m->size, work->bytes);
    }
    case ULDP_FLIPS:
      uldp_flipped(m, z, work->scratch, draws);
      return uldp_packed(work->scratch, m->size, work->bytes);
    case ULDP_INTEGERS:
      uldp_flipped(m, z, work->scratch, draws);
      return uldp_enlarged(m, work->scratch, draws, work);
    case ULDP_SUBSET:
      return uldp_perturb_subset(m, z, draws, work);
    case ULDP_SET:
      return uldp_perturb_set(m, symbol->items, draws, work);
    case ULDP_HITS:
      return uldp_perturb_hits(m, symbol->items, draws, work);
    case ULDP_COHORTS:
      return uldp_perturb_cohort_hits(m, symbol->items, draws, work);
    case ULDP_DESIGN:
      return uldp_perturb_design(m, z, draws);
    case ULDP_HASH: {
      uint64_t seed = uldp_below(draws, UINT64_C(1) << 32);
      uldp_little_endian(work->bytes, seed, 4);
      uldp_little_endian(work->bytes + 4, uldp_noisy_bucket(uldp_bucket_of(seed, z, m->buckets), m->buckets, m->noise, draws), 2);
      return uldp_bytes_payload(6);
    }
    case ULDP_ROW: {
      uint64_t row = uldp_below(draws, m->rows), ones = row & z;
      for (int shift = 32; shift; shift >>= 1) ones ^= ones >> shift;
      return uldp_symbol_payload(2 * row + ((ones ^ uldp_happens(m->noise, draws)) & 1));
    }
    case ULDP_LINEAR: {
      uint64_t a[ULDP_MOST_DIGITS], b[ULDP_MOST_DIGITS], own = 0, point = uldp_below(draws, uldp_points(m->g, m->m));
      uldp_digits(a, uldp_vector_of(point, m->g, m->m), m->g, m->m);
      uldp_digits(b, z, m->g, m->m);
      for (uint64_t i = 0; i < m->m; i++) own = (own + a[i] * b[i]) % m->g;
      return uldp_symbol_payload(point * m->g + uldp_noisy_bucket(own, m->g, m->noise, draws));
    }
    case ULDP_POINT: {
      uint64_t noisy = uldp_happens(m->noise, draws), anywhere = uldp_below(draws, uldp_points(m->g, m->m));
      uint64_t near = uldp_on_plane(z, uldp_below(draws, uldp_points(m->g, m->m - 1)), m->g, m->m);
      return uldp_symbol_payload(uldp_select(noisy, anywhere, near));
    }
    case ULDP_BIT: {
      uint64_t bit = uldp_lt(uldp_below(draws, m->grid), z);
      return uldp_symbol_payload((bit ^ uldp_happens(m->flip, draws)) & 1);
    }
    case ULDP_INTERVAL: {
      uint64_t noisy = uldp_happens(m->noise, draws), anywhere = uldp_below(draws, m->grid + m->width);
      uint64_t near = z + uldp_below(draws, m->width);
      return uldp_symbol_payload(uldp_select(noisy, anywhere, near));
    }
    case ULDP_STEPS: {
      uint64_t sum = z + uldp_reached(m->ends, uldp_below(draws, m->ends.at[m->ends.count - 1])), most = m->grid + 2 * m->margin;
      uint64_t step = uldp_select(uldp_lt(sum, m->grid), 0, sum - m->grid);
      return uldp_symbol_payload(uldp_select(uldp_lt(most, step), most, step));
    }
    case ULDP_COHORT: {
      uint64_t cohort = uldp_below(draws, m->cohorts), own = uldp_bucket_of(cohort, z, m->buckets);
      return uldp_symbol_payload(cohort * m->buckets + uldp_noisy_bucket(own, m->buckets, m->noise, draws));
    }
    case ULDP_BLOOM: {
      uint64_t cohort = uldp_below(draws, m->cohorts), *ones = work->scratch;
      for (uint64_t j = 0; j < m->size; j++) ones[j] = uldp_happens(uldp_at(m->set, 0), draws) & 1;
      for (uint64_t hash = 0; hash < m->hashes; hash++) {
        uint64_t place = uldp_bucket_of(cohort * m->hashes + hash, z, m->size), own = ~uldp_happens(uldp_at(m->clear, 0), draws) & 1;
        for (uint64_t j = 0; j < m->size; j++) ones[j] = uldp_select(uldp_eq(j, place), own, ones[j]);
      }
      uldp_little_endian(work->bytes, cohort, 2);
      return uldp_bytes_payload(2 + uldp_packed(ones, m->size, work->bytes + 2).length);
    }
    case ULDP_NEAR: {
      uint64_t drawn = uldp_below(draws, UINT64_C(1) << 62), count = 0;
      for (uint64_t y = 0; y < m->size; y++) count += ~uldp_lt(drawn, uldp_row_at(m->ends, z, m->size, y)) & 1;
      return uldp_symbol_payload(count);
    }
    case ULDP_NESTED:
      return uldp_perturb_nested(m, z, draws);
    default: /* ULDP_IDENTITY: no privacy */
      return uldp_symbol_payload(z);
  }
}
static inline uldp_payload uldp_perturb(const uldp_table *table, const uldp_symbol *symbol, uldp_draws draws, uldp_work *work) {
  return uldp_perturb_at(table->mechanism, symbol, draws, work, 0);
}

/* ---- kept responses ---- */

/* The mechanism of the part of a symbol, below all strata. */
static inline const uldp_mechanism *uldp_innermost(const uldp_mechanism *m, const uldp_symbol *symbol) {
  for (size_t depth = 0; m->form == ULDP_STRATA; depth++) m = &m->mechanisms[m->which.at[symbol->parts[depth]]];
  return m;
}
/* Draws the permanent response to a symbol: keep it, and the bytes of the work area if it has some. */
static inline uldp_payload uldp_permanent(const uldp_table *table, const uldp_symbol *symbol, uldp_draws draws, uldp_work *work) {
  return uldp_perturb_at(uldp_innermost(table->mechanism, symbol)->permanent, symbol, draws, work, ULDP_MOST_DEPTH);
}
static inline uldp_payload uldp_uniform(const uldp_mechanism *m, uldp_draws draws, uldp_work *work) {
  switch (m->form) {
    case ULDP_RESPONSE:
      return uldp_symbol_payload(uldp_sensitive(m, (size_t)uldp_below(draws, uldp_count(m))));
    case ULDP_SUBSET:
    case ULDP_SET: {
      uint64_t v = uldp_count(m), *found = work->scratch;
      uldp_members(found, v, m->chosen, draws);
      memset(work->bytes, 0, (m->size + 7) / 8);
      for (uint64_t i = 0; i < v; i++) uldp_bit(work->bytes, uldp_sensitive(m, i), uldp_among(found, m->chosen, i));
      return uldp_bytes_payload((size_t)(m->size + 7) / 8);
    }
    case ULDP_HASH:
    case ULDP_HITS:
      uldp_little_endian(work->bytes, uldp_below(draws, UINT64_C(1) << 32), 4);
      uldp_little_endian(work->bytes + 4, uldp_below(draws, m->buckets), 2);
      return uldp_bytes_payload(6);
    case ULDP_DESIGN:
      return uldp_symbol_payload(uldp_below(draws, m->blocks));
    case ULDP_ROW:
      return uldp_symbol_payload(uldp_below(draws, 2 * m->rows));
    case ULDP_LINEAR:
      return uldp_symbol_payload(uldp_below(draws, uldp_points(m->g, m->m) * m->g));
    case ULDP_POINT:
      return uldp_symbol_payload(uldp_below(draws, uldp_points(m->g, m->m)));
    case ULDP_INTERVAL:
      return uldp_symbol_payload(uldp_below(draws, m->grid + m->width));
    case ULDP_COHORT:
      return uldp_symbol_payload(uldp_below(draws, m->cohorts * m->buckets));
    default: /* ULDP_BIT */
      return uldp_symbol_payload(uldp_below(draws, 2));
  }
}
static inline uldp_payload uldp_again_at(const uldp_mechanism *m, const uldp_symbol *symbol, uldp_payload kept,
                                         const uint8_t *bytes, uldp_draws draws, uldp_work *work, size_t depth) {
  if (m->form == ULDP_STRATA) {
    uint64_t part = symbol->parts[depth];
    uldp_payload own = uldp_again_at(&m->mechanisms[m->which.at[part]], symbol, kept, bytes, draws, work, depth + 1);
    return uldp_wrapped(m, part, own, work);
  }
  if (m->replace.count) {
    uint64_t replaced = uldp_happens(m->replace.at[0], draws);
    uldp_payload anew = uldp_uniform(m->once, draws, work);
    for (size_t i = 0; i < anew.length; i++) work->bytes[i] = (uint8_t)uldp_select(replaced, work->bytes[i], bytes[i]);
    anew.symbol = uldp_select(replaced, anew.symbol, kept.symbol);
    return anew;
  }
  uint64_t size = m->once->size, *ones = work->scratch;
  size_t head = kept.length - (size_t)(size + 7) / 8;
  for (uint64_t j = 0; j < size; j++) {
    uint64_t one = 0 - (uint64_t)(bytes[head + (j >> 3)] >> (7 - (j & 7)) & 1);
    uint64_t threshold = uldp_select(one, uldp_at(m->clear, (size_t)j), uldp_at(m->set, (size_t)j));
    ones[j] = (one ^ uldp_happens(threshold, draws)) & 1;
  }
  if (m->once->form == ULDP_INTEGERS) return uldp_enlarged(m->once, ones, draws, work);
  memcpy(work->bytes, bytes, head);
  return uldp_bytes_payload(head + uldp_packed(ones, size, work->bytes + head).length);
}
/* Perturbs a kept response, of which `bytes` has the bytes, into the payload of a report. */
static inline uldp_payload uldp_again(const uldp_table *table, const uldp_symbol *symbol, uldp_payload kept,
                                      const uint8_t *bytes, uldp_draws draws, uldp_work *work) {
  return uldp_again_at(table->mechanism, symbol, kept, bytes, draws, work, 0);
}

/* ---- messages ---- */

static inline size_t uldp_varint(uint8_t *out, uint64_t number) {
  size_t length = 0;
  for (number <<= 1; number > 0x7f; number >>= 7) out[length++] = (uint8_t)(number | 0x80);
  out[length++] = (uint8_t)number;
  return length;
}
/* The bytes that the message of a table and a payload of `payload` bytes has at the most. */
#define ULDP_MESSAGE(name_length, payload) (10 + 10 + (name_length) + 10 + 16 + 10 + 1 + 10 + (payload))

/* Writes a message: Avro's single-object encoding of report.avsc. `id` has 16 random bytes, of uldp_fill for example. */
static inline size_t uldp_message(const uldp_table *table, const uint8_t id[16], uint64_t time_ms, uldp_payload payload,
                                  const uldp_work *work, uint8_t *out) {
  static const uint8_t header[10] = {0xc3, 0x01, 0xe6, 0xa3, 0xdb, 0xfe, 0x76, 0xe5, 0xd3, 0x90};
  size_t length = sizeof header, name = strlen(table->collection);
  memcpy(out, header, length);
  length += uldp_varint(out + length, name);
  memcpy(out + length, table->collection, name);
  length += name;
  length += uldp_varint(out + length, table->version);
  memcpy(out + length, id, 16);
  length += 16;
  uint64_t since = (time_ms + table->slice_ms - table->offset_ms) % table->slice_ms; /* the slice of the time began */
  length += uldp_varint(out + length, table->exact_time ? time_ms : time_ms - since);
  out[length++] = payload.length ? 2 : 0;
  if (!payload.length) return length + uldp_varint(out + length, payload.symbol);
  length += uldp_varint(out + length, payload.length);
  memcpy(out + length, work->bytes, payload.length);
  return length + payload.length;
}

/* Encodes, perturbs and writes a report of a device that keeps no response. Returns its bytes; 0 if a value is wrong. */
static inline size_t uldp_report(const uldp_table *table, const uldp_held *held, size_t columns, uint64_t part,
                                 const uint8_t id[16], uint64_t time_ms, uldp_draws draws, uldp_work *work, uint8_t *out) {
  uldp_symbol symbol = {0};
  if (!uldp_encode(table, held, columns, part, draws, work, &symbol)) return 0;
  return uldp_message(table, id, time_ms, uldp_perturb(table, &symbol, draws, work), work, out);
}

/* ---- the randomness of the system ---- */

#ifndef ULDP_NO_SYSTEM
#include <stdlib.h>
int getentropy(void *, size_t); /* of Linux, macOS and the BSDs; strict C11 does not declare it */
/* Fills bytes from the system's cryptographic source. A device without randomness must not report, so it ends here. */
static inline void uldp_fill(uint8_t *bytes, size_t count) {
  for (size_t done = 0; done < count; done += 256)
    if (getentropy(bytes + done, count - done < 256 ? count - done : 256)) abort();
}
static inline uint64_t uldp_system_below(void *state, uint64_t limit) {
  (void)state;
  uint64_t word, last = UINT64_MAX - (UINT64_MAX % limit + 1) % limit;
  do uldp_fill((uint8_t *)&word, sizeof word);
  while (word > last); /* words beyond the last whole multiple of the limit would favour small remainders */
  return word % limit;
}
static inline uldp_draws uldp_system_draws(void) { return (uldp_draws){uldp_system_below, NULL}; }
#endif

#endif
