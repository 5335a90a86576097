/* A device under local differential privacy, in C11 and C++17: one header, no allocation.
 *
 * It computes by a table, which `uldp device-table SPEC --c` writes as a header. docs/device-table.md has the rule of
 * each form. The code selects by masks where a value is secret: it takes no branch and reads no address by an index, a
 * tag, an item, a place in a ranking or a symbol. The number of items of a set, and the pieces of a string, do take
 * time. What the compiler and the processor make of divisions and of doubles is theirs. Which part of strata a device
 * reports is no secret.
 *
 *     uldp_held held = uldp_value(3, ULDP_NO_TAG);
 *     size_t bytes = uldp_report(&places_table, &held, 1, 0, time_ms, uldp_system_draws(), &places_work, message,
 *                                sizeof message);
 *
 * This is for tables without kept responses and without a budget. For others, uldp_ledger.h has the ledger.
 */
#ifndef ULDP_H
#define ULDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifndef ULDP_NO_SYSTEM
#include <stdlib.h>
#ifdef __APPLE__
#include <sys/random.h>
#elif defined __cplusplus
#include <unistd.h>
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The most symbols that a device holds of a set, the most columns, and the most levels of strata within strata. */
#ifndef ULDP_MOST_HELD
#define ULDP_MOST_HELD 64
#endif
#ifndef ULDP_MOST_COLUMNS
#define ULDP_MOST_COLUMNS 64
#endif
/* The most strings of a set that a device holds; of more, it reports nothing. */
#ifndef ULDP_MOST_TEXTS
#define ULDP_MOST_TEXTS 256
#endif
/* The most draws of an encoding that a ledger keeps. */
#ifndef ULDP_MOST_DRAWS
#define ULDP_MOST_DRAWS 256
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
  ULDP_SIGNED, ULDP_VIEW, ULDP_HITS, ULDP_COHORTS, ULDP_STRINGS, ULDP_SIZE, ULDP_BLOCKS, ULDP_SAME, ULDP_DRAWN, ULDP_GIVEN, ULDP_NAMED
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
  uldp_form form;
  uint64_t size, tags, grid, bits, bins, longest, held, number, pieces, first, second, most, shift, width;
  uldp_list places, base, sizes;
  uldp_form choice;
  double low, high;
  const uldp_base *bases; /* of a view, the encoding of each column; of a set of strings, that of each string */
  size_t bases_count;
  const uldp_map *maps;
};

typedef enum {
  ULDP_NOTHING, ULDP_HOLDS_VALUES, ULDP_HOLDS_NUMBER, ULDP_HOLDS_STRINGS, ULDP_HOLDS_SET, ULDP_HOLDS_RANKING, ULDP_HOLDS_PAIRS, ULDP_HOLDS_STRING_SET
} uldp_kind;

typedef struct {
  const char *const *at;
  size_t count;
} uldp_names;

/* A variable: the only one of a table has an empty name. */
typedef struct {
  const char *name;
  uldp_kind kind;
  uint64_t size, longest; /* how many values, items, keys or candidates there are; the most bytes of a text */
  uldp_names labels, tags, pieces; /* labels: none if the spec lists none; pieces: the vocabulary of prefixes */
} uldp_column;

/* What one report of a value spends, and all of them together; -1 without privacy, or without such a bound. */
typedef struct {
  double epsilon, lasting;
} uldp_spends;

typedef struct {
  const char *collection, *device_digest;
  uint64_t version, slice_ms, offset_ms, window_ms;
  bool exact_time, kept;
  double budget;                /* what a user may spend in every period; 0 if there is no budget */
  uint64_t budget_ms;
  const uldp_spends *spends;    /* of each level of privacy, or one for all */
  size_t spends_count;
  const uldp_column *columns;
  size_t columns_count;
  const uldp_encoding *encoding;
  const uldp_mechanism *mechanism;
  size_t encoding_draws, symbols_count, scratch_count, bytes_count; /* what a report takes */
} uldp_table;

/* What a device holds of one variable, as one of the functions below makes it. Any other bits are refused at best. */
typedef struct {
  uldp_kind kind;
  uint64_t index;
  int64_t tag;
  double number;
  const char *text;
  size_t length;
  const uint64_t *items;
  const double *numbers;
  const char *const *texts;
  const size_t *lengths;
  size_t count;
} uldp_held;

#define ULDP_NO_TAG (-1)
static inline uldp_held uldp_held_of(uldp_kind kind) {
  uldp_held held;
  memset(&held, 0, sizeof held);
  held.kind = kind;
  held.tag = ULDP_NO_TAG;
  return held;
}
/* The value of an index, which the user hides behind the tag of a number, or ULDP_NO_TAG. */
static inline uldp_held uldp_value(uint64_t index, int64_t tag) {
  uldp_held held = uldp_held_of(ULDP_HOLDS_VALUES);
  held.index = index;
  held.tag = tag;
  return held;
}
static inline uldp_held uldp_number(double number) {
  uldp_held held = uldp_held_of(ULDP_HOLDS_NUMBER);
  held.number = number;
  return held;
}
/* A string, by so many bytes of UTF-8. */
static inline uldp_held uldp_text(const char *text, size_t length) {
  uldp_held held = uldp_held_of(ULDP_HOLDS_STRINGS);
  held.text = text;
  held.length = length;
  return held;
}
static inline uldp_held uldp_listed(uldp_kind kind, const uint64_t *items, size_t count) {
  uldp_held held = uldp_held_of(kind);
  held.items = items;
  held.count = count;
  return held;
}
/* A set, by the indices of its items, all different. */
static inline uldp_held uldp_items(const uint64_t *items, size_t count) { return uldp_listed(ULDP_HOLDS_SET, items, count); }
/* A ranking, by the indices of all candidates, the best first. */
static inline uldp_held uldp_ranking(const uint64_t *items, size_t count) { return uldp_listed(ULDP_HOLDS_RANKING, items, count); }
/* Keys with numbers: the index of each key, all different, and its number. */
static inline uldp_held uldp_pairs(const uint64_t *keys, const double *numbers, size_t count) {
  uldp_held held = uldp_listed(ULDP_HOLDS_PAIRS, keys, count);
  held.numbers = numbers;
  return held;
}
/* A set of strings, all different, and the bytes of each. */
static inline uldp_held uldp_texts(const char *const *texts, const size_t *lengths, size_t count) {
  uldp_held held = uldp_held_of(ULDP_HOLDS_STRING_SET);
  held.texts = texts;
  held.lengths = lengths;
  held.count = count;
  return held;
}

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
  size_t scratch_count;
  uint8_t *bytes;
  size_t bytes_count;
} uldp_work;

/* Gives an integer below a limit, which is at most 2^62, uniformly and without state that others can know. */
typedef struct {
  uint64_t (*below)(void *state, uint64_t limit);
  void *state;
} uldp_draws;

/* Draws for the encoding of a device with kept responses, which is to choose the same each time: the numbers that the
 * device keeps, and then new ones, which it must keep. It has `room` numbers; `count` of them are kept before. If it has
 * made more than it has room for, they are not all kept. */
typedef struct {
  uldp_draws from;
  uint64_t *numbers;
  size_t room, count, made;
} uldp_kept;
static inline uldp_draws uldp_draws_of(uint64_t (*below)(void *, uint64_t), void *state) {
  uldp_draws draws;
  draws.below = below;
  draws.state = state;
  return draws;
}
static inline uint64_t uldp_kept_below(void *state, uint64_t limit) {
  uldp_kept *kept = (uldp_kept *)state;
  uint64_t drawn = kept->from.below(kept->from.state, limit);
  if (kept->made >= kept->room) return kept->made++, drawn;
  if (kept->made >= kept->count) kept->numbers[kept->made] = drawn;
  return kept->numbers[kept->made++] % limit;
}
static inline uldp_draws uldp_kept_draws(uldp_kept *kept) { return uldp_draws_of(uldp_kept_below, kept); }

/* ---- masks: all ones if it is so, else 0; for numbers below 2^63 ---- */

static inline uint64_t uldp_eq(uint64_t a, uint64_t b) { return (((a ^ b) | (0 - (a ^ b))) >> 63) - 1; }
static inline uint64_t uldp_lt(uint64_t a, uint64_t b) { return 0 - ((a - b) >> 63); }
static inline uint64_t uldp_select(uint64_t mask, uint64_t a, uint64_t b) { return b ^ (mask & (a ^ b)); }
/* As uldp_lt, for any number that a program gives. */
static inline uint64_t uldp_within(uint64_t number, uint64_t limit) {
  return ~(0 - (number >> 63)) & uldp_lt(number & INT64_MAX, limit);
}
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
static inline void uldp_sha256_begin(uldp_sha256 *hash) {
  static const uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(hash->state, state, sizeof state);
  hash->bytes = 0;
}
static inline uint8_t uldp_sha256_byte(const uldp_sha256 *hash, int place) {
  return (uint8_t)(hash->state[place / 4] >> (24 - 8 * (place % 4)));
}
static inline void uldp_sha256_end(uldp_sha256 *hash) {
  uint64_t bits = 8 * hash->bytes;
  uldp_sha256_add(hash, 0x80);
  while ((hash->bytes & 63) != 56) uldp_sha256_add(hash, 0);
  for (int i = 7; i >= 0; i--) uldp_sha256_add(hash, (uint8_t)(bits >> (8 * i)));
}
/* A byte of a text, which is filled with ff. No text of UTF-8 has this byte. */
static inline uint8_t uldp_text_byte(const char *text, size_t length, uint64_t place) {
  return place < length ? (uint8_t)text[place] : 0xff;
}
/* The symbol of a text: that of its bytes, filled up to `longest`. It hashes as many bytes whatever the text. */
static inline uint64_t uldp_text_symbol(const char *text, size_t length, uint64_t longest) {
  uldp_sha256 hash;
  uint64_t symbol = 0;
  uldp_sha256_begin(&hash);
  for (uint64_t i = 0; i < longest; i++) uldp_sha256_add(&hash, uldp_text_byte(text, length, i));
  uldp_sha256_end(&hash);
  for (int i = 5; i >= 0; i--) symbol = symbol << 8 | uldp_sha256_byte(&hash, i);
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

/* ---- what a device may hold ---- */

/* All ones if the items are below `size` and all different. It compares each with each, whatever they are. */
static inline uint64_t uldp_different(const uint64_t *items, size_t count, uint64_t size) {
  uint64_t right = UINT64_MAX;
  for (size_t i = 0; i < count; i++) {
    right &= uldp_within(items[i], size);
    for (size_t j = 0; j < i; j++) right &= ~uldp_eq(items[i], items[j]);
  }
  return right;
}
/* By its bits, because a compiler may take each number for finite. */
static inline uint64_t uldp_finite(double number) {
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  return ~uldp_eq(bits >> 52 & 0x7ff, 0x7ff);
}
static inline uint64_t uldp_right_text(const char *text, size_t length, uint64_t longest) {
  uint64_t right = UINT64_MAX;
  if ((!text && length) || length > longest) return 0;
  for (size_t i = 0; i < length; i++) right &= ~uldp_eq((uint8_t)text[i], 0xff);
  return right;
}
static inline uint64_t uldp_right_texts(const uldp_held *held, uint64_t longest) {
  uint64_t right = UINT64_MAX;
  if (held->count > ULDP_MOST_TEXTS || (held->count && (!held->texts || !held->lengths))) return 0;
  for (size_t i = 0; i < held->count; i++) {
    if (!uldp_right_text(held->texts[i], held->lengths[i], longest)) return 0;
    for (size_t j = 0; j < i; j++) {
      uint64_t differ = 0;
      for (uint64_t at = 0; at < longest; at++)
        differ |= (uint64_t)uldp_text_byte(held->texts[i], held->lengths[i], at) ^
                  uldp_text_byte(held->texts[j], held->lengths[j], at);
      right &= ~uldp_eq(differ, 0);
    }
  }
  return right;
}
/* All ones if a device may hold this of a column, else 0. */
static inline uint64_t uldp_right(const uldp_column *column, const uldp_held *held) {
  bool listed = held->count <= column->size && (held->items || !held->count);
  uint64_t right = uldp_within((uint64_t)held->tag + 1, column->tags.count + 1);
  if (held->kind != column->kind) return 0;
  switch (column->kind) {
    case ULDP_HOLDS_VALUES:
      return right & uldp_within(held->index, column->size);
    case ULDP_HOLDS_NUMBER:
      return right & uldp_finite(held->number);
    case ULDP_HOLDS_STRINGS:
      return right & uldp_right_text(held->text, held->length, column->longest);
    case ULDP_HOLDS_RANKING:
      return listed && held->count == column->size ? right & uldp_different(held->items, held->count, column->size) : 0;
    case ULDP_HOLDS_SET:
      return listed ? right & uldp_different(held->items, held->count, column->size) : 0;
    case ULDP_HOLDS_PAIRS:
      if (!listed || (held->count && !held->numbers)) return 0;
      for (size_t i = 0; i < held->count; i++) right &= uldp_finite(held->numbers[i]);
      return right & uldp_different(held->items, held->count, column->size);
    case ULDP_HOLDS_STRING_SET:
      return right & uldp_right_texts(held, column->longest);
    default:
      return 0;
  }
}
/* The index of a label in the domain of a column, or the number of labels, which is no index. It compares with all. */
static inline uint64_t uldp_index(const uldp_column *column, const char *label) {
  uint64_t found = column->labels.count;
  size_t length = strlen(label);
  for (size_t i = 0; i < column->labels.count; i++) {
    const char *known = column->labels.at[i];
    uint64_t size = strlen(known), differ = size ^ length;
    for (uint64_t at = 0; at < size; at++) differ |= (uint64_t)(uint8_t)known[at] ^ uldp_text_byte(label, length, at);
    found = uldp_select(uldp_eq(differ, 0), i, found);
  }
  return found;
}

/* ---- encodings ---- */

/* What a device holds, and the column of it. */
typedef struct {
  const uldp_held *held;
  const uldp_column *column;
} uldp_cell;

static inline double uldp_share(const uldp_encoding *e, double number) {
  double inside = number < e->low ? e->low : number > e->high ? e->high : number;
  return (inside - e->low) / (e->high - e->low);
}
/* Rounds to the nearest integer, and to the even one of two. */
static inline uint64_t uldp_rounded(double number) {
  uint64_t below = (uint64_t)number;
  double rest = number - (double)below;
  return below + ((uint64_t)(rest > 0.5) | ((uint64_t)(rest >= 0.5) & below & 1));
}
/* Puts one more number into `count` sorted ones. */
static inline void uldp_insert(uint64_t *sorted, size_t count, uint64_t number) {
  for (size_t i = 0; i < count; i++) {
    uint64_t less = uldp_lt(number, sorted[i]), other = sorted[i];
    sorted[i] = uldp_select(less, number, other);
    number = uldp_select(less, other, number);
  }
  sorted[count] = number;
}
/* Moves `held` of `count` numbers to the front, by draws below 2^32, if there are more. */
static inline void uldp_move(uint64_t *numbers, uint64_t count, const uint64_t *drawn, uint64_t held) {
  for (uint64_t i = 0; i < held && count > held; i++) {
    uint64_t other = i + (drawn[i] * (count - i) >> 32), moved = numbers[i];
    numbers[i] = numbers[other];
    numbers[other] = moved;
  }
}
/* Chooses up to l items or keys of a device, into the scratch; returns how many. */
static inline uint64_t uldp_choose(const uldp_encoding *e, const uldp_held *held, uldp_draws draws, uldp_work *work) {
  uint64_t drawn[ULDP_MOST_HELD];
  for (uint64_t i = 0; i < e->held; i++) drawn[i] = uldp_below(draws, UINT64_C(1) << 32);
  for (size_t i = 0; i < held->count; i++) uldp_insert(work->scratch, i, held->items[i]);
  uldp_move(work->scratch, held->count, drawn, e->held);
  return held->count < e->held ? held->count : e->held;
}
/* Sorts the first `kept` numbers of the scratch, and a dummy from `first` on for each that is missing. */
static inline void uldp_pad(const uldp_encoding *e, uint64_t kept, uint64_t first, const uldp_work *work, uldp_symbol *symbol) {
  for (uint64_t i = 0; i < e->held; i++)
    uldp_insert(symbol->items, (size_t)i, i < kept ? work->scratch[i] : first + i - kept);
}
/* Gives each chosen key a sign, which has the mean of its number. */
static inline void uldp_sign(const uldp_encoding *e, const uldp_held *held, uint64_t kept, uldp_draws draws, uldp_work *work) {
  const uint64_t one = UINT64_C(1) << 52;
  for (uint64_t i = 0; i < e->held; i++) {
    uint64_t drawn = uldp_below(draws, one), above = 0;
    if (i >= kept) continue;
    for (size_t j = 0; j < held->count; j++) {
      uint64_t sum = uldp_rounded(uldp_share(e, held->numbers[j]) * (double)one) + drawn;
      above |= uldp_eq(held->items[j], work->scratch[i]) & ~uldp_lt(sum, one);
    }
    work->scratch[i] = 2 * work->scratch[i] + (above & 1);
  }
}
static inline uint64_t uldp_prefix_symbol(const uldp_names *pieces, const uldp_encoding *e, const char *text, size_t length) {
  uint64_t found = 0;
  size_t end = 0, at = 0;
  while (at < length) {
    size_t longest = 0;
    for (size_t i = 0; i < pieces->count; i++) {
      size_t size = strlen(pieces->at[i]);
      if (size > longest && size <= length - at && !memcmp(pieces->at[i], text + at, size)) longest = size;
    }
    if (!longest) return 0;
    at += longest;
    if (found++ < e->pieces) end = at;
  }
  return uldp_text_symbol(text, end, e->longest + 1 + e->number);
}
static inline uint64_t uldp_string_symbol(const uldp_encoding *e, const uldp_column *column, const char *text, size_t length) {
  return e->form == ULDP_PREFIX ? uldp_prefix_symbol(&column->pieces, e, text, length)
                                : uldp_text_symbol(text, length, e->longest);
}
/* No symbol of a string. */
#define ULDP_NO_STRING (UINT64_C(1) << 48)
/* The different symbols of up to l strings of a set, in ascending order, and ULDP_NO_STRING in place of missing ones. */
static inline void uldp_strings(const uldp_encoding *e, const uldp_cell *cell, uldp_draws draws, uldp_symbol *symbol) {
  const uldp_held *held = cell->held;
  uint64_t symbols[ULDP_MOST_TEXTS], drawn[ULDP_MOST_HELD];
  for (uint64_t i = 0; i < e->held; i++) drawn[i] = uldp_below(draws, UINT64_C(1) << 32);
  for (size_t i = 0; i < held->count; i++)
    uldp_insert(symbols, i, uldp_string_symbol(e->bases[0].encoding, cell->column, held->texts[i], held->lengths[i]));
  uldp_move(symbols, held->count, drawn, e->held);
  for (uint64_t i = 0; i < e->held; i++)
    uldp_insert(symbol->items, (size_t)i, i < held->count ? symbols[i] : ULDP_NO_STRING);
}

/* Encodes what a device holds, of each column. `part` is the level of privacy or the slice of a device that has one.
 * Returns whether there is this part. The draws do not depend on what it holds. */
static inline bool uldp_encode_at(const uldp_encoding *e, const uldp_mechanism *strata, const uldp_cell *cells, uint64_t part,
                                  uldp_draws draws, uldp_work *work, size_t depth, uldp_symbol *symbol) {
  const uldp_held *held = cells[0].held;
  uint64_t shown = 0 - ((uint64_t)held->tag >> 63); /* all ones if no tag hides it */
  memset(symbol, 0, sizeof *symbol);
  switch (e->form) {
    case ULDP_VALUE:
      symbol->own = uldp_select(shown, held->index, e->size + (uint64_t)held->tag);
      return true;
    case ULDP_ZONES:
      symbol->own = uldp_select(shown, held->index, uldp_row_at(e->places, (uint64_t)held->tag * e->size + held->index, 1, 0));
      return true;
    case ULDP_GRID: {
      double scale = (double)(e->grid << e->bits);
      symbol->own = (uldp_rounded(uldp_share(e, held->number) * scale) + uldp_below(draws, UINT64_C(1) << e->bits)) >> e->bits;
      return true;
    }
    case ULDP_BINS: {
      uint64_t bin = (uint64_t)(uldp_share(e, held->number) * (double)e->bins);
      symbol->own = uldp_select(uldp_lt(bin, e->bins), bin, e->bins - 1);
      return true;
    }
    case ULDP_STRING:
    case ULDP_PREFIX:
      symbol->own = uldp_string_symbol(e, cells[0].column, held->text, held->length);
      return true;
    case ULDP_PAIR: {
      uint64_t first = 0, second = 0;
      for (size_t i = 0; i < held->count; i++) {
        first |= uldp_eq(held->items[i], e->first) & i;
        second |= uldp_eq(held->items[i], e->second) & i;
      }
      symbol->own = uldp_lt(second, first) & 1;
      return true;
    }
    case ULDP_VIEW: {
      uint64_t cell = 0;
      for (size_t i = 0; i < e->bases_count; i++) {
        uldp_encode_at(e->bases[i].encoding, NULL, cells + i, part, draws, work, depth, symbol);
        cell = cell * e->sizes.at[i] + symbol->own;
      }
      symbol->own = cell;
      return true;
    }
    case ULDP_SIZE: {
      uint64_t size = held->count;
      symbol->own = (uldp_select(uldp_lt(size, e->most), size, e->most) + e->shift) / e->width;
      return true;
    }
    case ULDP_STRINGS:
      uldp_strings(e, &cells[0], draws, symbol);
      return true;
    case ULDP_SET:
    case ULDP_SIGNED: {
      uint64_t kept = uldp_choose(e, held, draws, work);
      if (e->form == ULDP_SIGNED) uldp_sign(e, held, kept, draws, work);
      uldp_pad(e, kept, e->form == ULDP_SIGNED ? 2 * e->size : e->size, work, symbol);
      return true;
    }
    case ULDP_STRATA: {
      if (depth >= ULDP_MOST_DEPTH) return false;
      uldp_symbol *symbols = work->symbols;
      uldp_work rest = *work;
      rest.symbols += e->bases_count;
      rest.symbols_count -= e->bases_count;
      for (size_t i = 0; i < e->bases_count; i++) {
        uldp_cell own[ULDP_MOST_COLUMNS];
        size_t reader = 0;
        for (size_t j = 0; j < e->bases[i].columns.count; j++) own[j] = cells[e->bases[i].columns.at[j]];
        while (e->base.at[reader] != i) reader++;
        const uldp_mechanism *nested = &strata->mechanisms[strata->which.at[reader]];
        if (!uldp_encode_at(e->bases[i].encoding, nested, own, part, draws, &rest, depth + 1, &symbols[i])) return false;
      }
      uint64_t drawn = e->choice != ULDP_DRAWN ? part : uldp_reached(strata->draw, uldp_below(draws, UINT64_C(1) << 53));
      if (drawn >= e->base.count) return false;
      *symbol = symbols[e->base.at[drawn]];
      symbol->parts[depth] = drawn;
      const uldp_map *map = &e->maps[drawn];
      if (map->form == ULDP_BLOCKS) symbol->own /= map->width;
      if (map->form == ULDP_DESIGN) {
        uint64_t place = symbol->own - map->first;
        symbol->own = uldp_select(~uldp_lt(symbol->own, map->first) & uldp_lt(place & INT64_MAX, map->width), place, map->width);
      }
      return true;
    }
    default:
      return false;
  }
}
/* Encodes what a device holds of `columns` columns. Returns false, and draws nothing, if there are not as many columns in
 * the table, if one of the values is not as its column has it, if the work area is of a smaller table, or if a pointer is
 * NULL; and false if there is no such part. */
static inline bool uldp_encode(const uldp_table *table, const uldp_held *held, size_t columns, uint64_t part,
                               uldp_draws draws, uldp_work *work, uldp_symbol *symbol) {
  uldp_cell cells[ULDP_MOST_COLUMNS];
  uint64_t right = UINT64_MAX;
  if (!table || !held || !draws.below || !work || !symbol || columns != table->columns_count ||
      columns > ULDP_MOST_COLUMNS || work->symbols_count < table->symbols_count ||
      work->scratch_count < table->scratch_count || work->bytes_count < table->bytes_count)
    return false;
  for (size_t i = 0; i < columns; i++) {
    cells[i].held = &held[i];
    cells[i].column = &table->columns[i];
    right &= uldp_right(cells[i].column, cells[i].held);
  }
  return right && uldp_encode_at(table->encoding, table->mechanism, cells, part, draws, work, 0, symbol);
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
static inline uldp_payload uldp_payload_of(uint64_t symbol, size_t length) {
  uldp_payload payload;
  payload.symbol = symbol;
  payload.length = length;
  return payload;
}
static inline uldp_payload uldp_symbol_payload(uint64_t symbol) { return uldp_payload_of(symbol, 0); }
static inline uldp_payload uldp_bytes_payload(size_t length) { return uldp_payload_of(0, length); }

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
    case ULDP_IDENTITY: /* no privacy */
      return uldp_symbol_payload(z);
    default: /* kept responses, which uldp_permanent draws; and what no table has */
      return uldp_symbol_payload(0);
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

/* Writes a message: Avro's single-object encoding of report.avsc. `id` has 16 random bytes, of uldp_id for example.
 * Returns its bytes; 0 if there is no room for ULDP_MESSAGE. */
static inline size_t uldp_message(const uldp_table *table, const uint8_t id[16], uint64_t time_ms, uldp_payload payload,
                                  const uldp_work *work, uint8_t *out, size_t room) {
  static const uint8_t header[10] = {0xc3, 0x01, 0xe6, 0xa3, 0xdb, 0xfe, 0x76, 0xe5, 0xd3, 0x90};
  size_t length = sizeof header, name = strlen(table->collection);
  if (!out || room < ULDP_MESSAGE(name, payload.length)) return 0;
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
/* Draws the 16 bytes of an id. */
static inline void uldp_id(uint8_t id[16], uldp_draws draws) {
  for (size_t i = 0; i < 4; i++) uldp_little_endian(id + 4 * i, uldp_below(draws, UINT64_C(1) << 32), 4);
}
/* Whether a time is in milliseconds since 1970: seconds would be before 1973, and microseconds after the year 5000. */
static inline bool uldp_is_time(uint64_t time_ms) {
  return time_ms >= UINT64_C(100000000000) && time_ms < UINT64_C(100000000000000);
}

/* Encodes, perturbs and writes a report by a table without kept responses and without a budget. Returns its bytes; 0 if
 * the table needs a ledger, a value or the time is wrong, or `room` is below NAME_message_bytes of its header. */
static inline size_t uldp_report(const uldp_table *table, const uldp_held *held, size_t columns, uint64_t part,
                                 uint64_t time_ms, uldp_draws draws, uldp_work *work, uint8_t *out, size_t room) {
  uldp_symbol symbol;
  uint8_t id[16];
  if (!table || table->kept || table->budget > 0 || !uldp_is_time(time_ms) ||
      room < ULDP_MESSAGE(strlen(table->collection), table->bytes_count) ||
      !uldp_encode(table, held, columns, part, draws, work, &symbol))
    return 0;
  uldp_payload payload = uldp_perturb(table, &symbol, draws, work);
  uldp_id(id, draws);
  return uldp_message(table, id, time_ms, payload, work, out, room);
}

/* ---- the randomness of the system ---- */

#ifndef ULDP_NO_SYSTEM
#if !defined __cplusplus && !defined __APPLE__
int getentropy(void *, size_t); /* of Linux, macOS and the BSDs; strict C11 does not declare it */
#endif
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
static inline uldp_draws uldp_system_draws(void) { return uldp_draws_of(uldp_system_below, NULL); }
#endif

#ifdef __cplusplus
}
#endif

#endif
