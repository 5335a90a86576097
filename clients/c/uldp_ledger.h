/* The ledger of a user: permanent responses, windows that have been reported to, and what reports have spent.
 *
 * It is as secret as the values. All collections of one user share one ledger, which is the entry "ledger" of a store, so
 * that their spendings add up. Keep it for as long as the device reports: a device that loses it spends all budgets anew.
 * The rules are those of mechanisms/uldp/mechanisms/devices in Python, and docs/client/budget.md explains them.
 */
#ifndef ULDP_LEDGER_H
#define ULDP_LEDGER_H

#include "uldp_store.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ULDP_HOUR_MS INT64_C(3600000)

typedef struct {
  uldp_store store;
  uldp_clock (*clock)(void *clock_ctx);
  void *clock_ctx;
  int64_t skew_ms; /* how far times may be from the clock, and jumps of the clock; -1 believes every time */
} uldp_ledger;

/* The bytes of a message; or 0, why, and over the budget also when the device may report again. */
typedef struct {
  uldp_status status;
  size_t bytes;
  uint64_t until_ms;
} uldp_made;

/* The body of a ledger: salt, the run of the machine and when it began, the same when the ledger last looked at spendings
 * that were ahead of the clock, the number of spendings, the spendings in the order of time, and the kept entries, each
 * with its key and its length before it. */
#define ULDP_AT_BOOT 16
#define ULDP_AT_START 56
#define ULDP_AT_LOOK 64
#define ULDP_LOOK 48
#define ULDP_AT_COUNT 112
#define ULDP_AT_SPENT 120
#define ULDP_SPENDING 24
#define ULDP_KEY 32

/* `seen` is when the clock was found to be before `time`, so that one of the two clocks was wrong; 0 if it is not now. */
typedef struct {
  int64_t time, seen;
  double epsilon;
} uldp_spending;

static inline size_t uldp_spent_count(const uldp_body *body) { return (size_t)uldp_read(body->at + ULDP_AT_COUNT, 8); }
static inline uint8_t *uldp_spent_place(const uldp_body *body, size_t i) { return body->at + ULDP_AT_SPENT + i * ULDP_SPENDING; }
static inline uldp_spending uldp_spent_at(const uldp_body *body, size_t i) {
  uldp_spending spending;
  uint64_t bits = uldp_read(uldp_spent_place(body, i) + 8, 8);
  spending.time = (int64_t)uldp_read(uldp_spent_place(body, i), 8);
  spending.seen = (int64_t)uldp_read(uldp_spent_place(body, i) + 16, 8);
  memcpy(&spending.epsilon, &bits, sizeof bits);
  return spending;
}
static inline void uldp_spent_put(uldp_body *body, size_t i, uldp_spending spending) {
  uint64_t bits;
  memcpy(&bits, &spending.epsilon, sizeof bits);
  uldp_little_endian(uldp_spent_place(body, i), (uint64_t)spending.time, 8);
  uldp_little_endian(uldp_spent_place(body, i) + 8, bits, 8);
  uldp_little_endian(uldp_spent_place(body, i) + 16, (uint64_t)spending.seen, 8);
}
/* Changes how many spendings there are, from a place on. */
static inline bool uldp_spent_resize(uldp_body *body, size_t place, size_t before, size_t now) {
  size_t count = uldp_spent_count(body) - before + now;
  if (!uldp_resize(body, ULDP_AT_SPENT + place * ULDP_SPENDING, before * ULDP_SPENDING, now * ULDP_SPENDING)) return false;
  uldp_little_endian(body->at + ULDP_AT_COUNT, count, 8);
  return true;
}

/* The first time, from `time` on, at which a report that spends `epsilon` keeps a budget; INT64_MAX if none does. What is
 * ahead of the clock counts for a period from when that was seen, and once more from its own time on. */
static inline int64_t uldp_admitted_at(const uldp_body *body, double epsilon, int64_t time, double budget, int64_t every) {
  if (!(epsilon > 0)) return time;
  for (;;) {
    double left = budget * (1 + 1e-9) - epsilon; /* sums of doubles may be off by that part */
    int64_t next = INT64_MAX;
    for (size_t i = uldp_spent_count(body); i-- > 0;) {
      uldp_spending each = uldp_spent_at(body, i);
      int64_t until = (each.seen && each.time > time ? each.seen : each.time) + every;
      if (until <= time) continue;
      left -= each.epsilon;
      if (until < next) next = until;
    }
    if (left >= 0 || next == INT64_MAX) return left >= 0 ? time : INT64_MAX;
    time = next;
  }
}
/* How far the clock has jumped since the last look at it, which becomes this one. In another run of the machine, or where
 * nothing names runs, it is believed. Jumps within the skew are kept until they add up. */
static inline uint64_t uldp_jump(uint8_t look[ULDP_LOOK], const uldp_clock *clock, uint64_t skew) {
  uint64_t start = clock->now_ms - clock->elapsed_ms, jump = 0;
  if (clock->boot[0] && !memcmp(look, clock->boot, sizeof clock->boot)) {
    jump = start - uldp_read(look + sizeof clock->boot, 8);
    if (jump <= skew || (uint64_t)0 - jump <= skew) return 0;
  }
  memset(look, 0, ULDP_LOOK);
  if (!clock->boot[0]) return 0;
  memcpy(look, clock->boot, sizeof clock->boot);
  uldp_little_endian(look + sizeof clock->boot, start, 8);
  return jump;
}
/* Notes which spendings are ahead of the clock, and since when; returns whether that is news. That time moves with a jump
 * of the clock, so that only time that has passed counts; and none is later than now. */
static inline bool uldp_notice(uldp_body *body, const uldp_clock *clock, int64_t skew) {
  uint8_t look[ULDP_LOOK];
  int64_t now = clock->now_ms < INT64_MAX / 2 ? (int64_t)clock->now_ms : INT64_MAX / 2;
  bool ahead = false, news = false;
  if (skew < 0) return false;
  memcpy(look, body->at + ULDP_AT_LOOK, sizeof look);
  uint64_t jump = uldp_jump(look, clock, (uint64_t)skew);
  for (size_t i = 0; i < uldp_spent_count(body); i++) {
    uldp_spending each = uldp_spent_at(body, i);
    int64_t before = each.seen, since = before ? (int64_t)((uint64_t)before + jump) : now;
    each.seen = each.time - now <= skew ? 0 : since > now ? now : since > 0 ? since : 1;
    ahead |= each.seen != 0;
    news |= each.seen != before;
    uldp_spent_put(body, i, each);
  }
  if (!ahead) memset(look, 0, sizeof look);
  news |= memcmp(look, body->at + ULDP_AT_LOOK, sizeof look) != 0;
  memcpy(body->at + ULDP_AT_LOOK, look, sizeof look);
  return news;
}
static inline int64_t uldp_span(int64_t time, int64_t newest) {
  return newest - time < 365 * 24 * ULDP_HOUR_MS ? ULDP_HOUR_MS : 24 * ULDP_HOUR_MS;
}
static inline bool uldp_one_slot(int64_t one, int64_t other, int64_t newest) {
  int64_t span = uldp_span(one, newest);
  return span == uldp_span(other, newest) && one / span == other / span;
}
static inline uldp_spending uldp_merged(uldp_spending one, uldp_spending other) {
  one.time = one.time > other.time ? one.time : other.time;
  one.seen = !one.seen || !other.seen ? 0 : one.seen > other.seen ? one.seen : other.seen;
  one.epsilon += other.epsilon;
  return one;
}
/* Enters a spending. Those of an hour become one at the last of them; those a year older than the newest that is not ahead
 * become one for each day. */
static inline bool uldp_record(uldp_body *body, double epsilon, int64_t time) {
  size_t count = uldp_spent_count(body), kept = 0, place = 0;
  uldp_spending own;
  own.time = time;
  own.seen = 0;
  own.epsilon = epsilon;
  int64_t newest = time;
  for (size_t i = 0; i < count; i++)
    if (!uldp_spent_at(body, i).seen && uldp_spent_at(body, i).time > newest) newest = uldp_spent_at(body, i).time;
  for (size_t i = 0; i < count; i++) {
    uldp_spending each = uldp_spent_at(body, i);
    bool joins = kept && uldp_one_slot(uldp_spent_at(body, kept - 1).time, each.time, newest);
    if (joins) each = uldp_merged(uldp_spent_at(body, kept - 1), each);
    kept += !joins;
    uldp_spent_put(body, kept - 1, each);
  }
  uldp_spent_resize(body, kept, count - kept, 0);
  while (place < kept && uldp_spent_at(body, place).time < time &&
         !uldp_one_slot(uldp_spent_at(body, place).time, time, newest))
    place++;
  if (place < kept && uldp_one_slot(uldp_spent_at(body, place).time, time, newest)) {
    own = uldp_merged(uldp_spent_at(body, place), own);
  } else if (!(epsilon > 0)) {
    return true;
  } else if (!uldp_spent_resize(body, place, 0, 1)) {
    return false;
  }
  uldp_spent_put(body, place, own);
  return true;
}

/* Whether an observation is near the clock, and the clock has not come further than the time; notes when the run began. */
static inline uldp_status uldp_check_time(uldp_body *body, const uldp_clock *clock, int64_t time, int64_t skew) {
  uint64_t now = clock->now_ms, own = (uint64_t)time, most = (uint64_t)skew;
  int64_t start = (int64_t)(now - clock->elapsed_ms);
  if (skew < 0) return ULDP_OK;
  if (own > now ? own - now > most : now - own > most) return ULDP_TIME;
  if (!clock->boot[0]) return ULDP_OK;
  if (!memcmp(body->at + ULDP_AT_BOOT, clock->boot, sizeof clock->boot)) {
    int64_t known = (int64_t)uldp_read(body->at + ULDP_AT_START, 8);
    if (start > known && (uint64_t)start - (uint64_t)known > most) return ULDP_CLOCK;
    start = known < start ? known : start;
  }
  memcpy(body->at + ULDP_AT_BOOT, clock->boot, sizeof clock->boot);
  uldp_little_endian(body->at + ULDP_AT_START, (uint64_t)start, 8);
  return ULDP_OK;
}

/* The key of a kept entry: a salted hash, so that nobody finds values by hashing a domain who reads keys alone. */
static inline void uldp_key(uint8_t key[ULDP_KEY], const uldp_body *body, const uldp_table *table, char kind,
                            const uint64_t *numbers, size_t count) {
  uldp_sha256 hash;
  uldp_sha256_begin(&hash);
  for (size_t i = 0; i < 16; i++) uldp_sha256_add(&hash, body->at[i]);
  for (const char *each = table->collection; *each; each++) uldp_sha256_add(&hash, (uint8_t)*each);
  uldp_sha256_add(&hash, 0);
  for (const char *each = table->device_digest; *each; each++) uldp_sha256_add(&hash, (uint8_t)*each);
  uldp_sha256_add(&hash, (uint8_t)kind);
  for (size_t i = 0; i < 8 * count; i++) uldp_sha256_add(&hash, (uint8_t)(numbers[i / 8] >> (8 * (i % 8))));
  uldp_sha256_end(&hash);
  for (int i = 0; i < ULDP_KEY; i++) key[i] = uldp_sha256_byte(&hash, i);
}
/* Finds the bytes of a kept entry, and their number; NULL if there is none. */
static inline uint8_t *uldp_find(const uldp_body *body, const uint8_t key[ULDP_KEY], size_t *length) {
  size_t at = ULDP_AT_SPENT + uldp_spent_count(body) * ULDP_SPENDING;
  while (at < body->length) {
    *length = (size_t)uldp_read(body->at + at + ULDP_KEY, 4);
    if (!memcmp(body->at + at, key, ULDP_KEY)) return body->at + at + ULDP_KEY + 4;
    at += ULDP_KEY + 4 + *length;
  }
  return NULL;
}
/* Finds a kept entry of so many bytes, or makes one of zeros; NULL if it has another number, or without room. */
static inline uint8_t *uldp_keep(uldp_body *body, const uint8_t key[ULDP_KEY], size_t length) {
  size_t found, end = body->length;
  uint8_t *at = uldp_find(body, key, &found);
  if (at) return found == length ? at : NULL;
  if (!uldp_resize(body, end, 0, ULDP_KEY + 4 + length)) return NULL;
  memcpy(body->at + end, key, ULDP_KEY);
  uldp_little_endian(body->at + end + ULDP_KEY, length, 4);
  memset(body->at + end + ULDP_KEY + 4, 0, length);
  return body->at + end + ULDP_KEY + 4;
}
/* Finds the ledger in an entry, or begins one. */
static inline uldp_status uldp_ledger_body(const uldp_entry *entry, uldp_draws draws, uldp_body *body) {
  uldp_status status = uldp_body_of(entry, "ledger", body);
  if (status) return status;
  if (!entry->exists) {
    if (body->room < ULDP_AT_SPENT) return ULDP_FULL;
    memset(body->at, 0, body->length = ULDP_AT_SPENT);
    uldp_id(body->at, draws);
  }
  if (body->length < ULDP_AT_SPENT || uldp_spent_count(body) > (body->length - ULDP_AT_SPENT) / ULDP_SPENDING) return ULDP_DAMAGED;
  for (size_t i = 0; i < uldp_spent_count(body); i++) {
    uldp_spending each = uldp_spent_at(body, i);
    if (each.time < 0 || each.time > INT64_MAX / 2 || each.seen < 0 || each.seen > INT64_MAX / 2) return ULDP_DAMAGED;
    if (!(each.epsilon > 0 && each.epsilon < 1e308)) return ULDP_DAMAGED;
  }
  size_t at = ULDP_AT_SPENT + uldp_spent_count(body) * ULDP_SPENDING;
  while (body->length - at >= ULDP_KEY + 4 && uldp_read(body->at + at + ULDP_KEY, 4) <= body->length - at - ULDP_KEY - 4)
    at += ULDP_KEY + 4 + (size_t)uldp_read(body->at + at + ULDP_KEY, 4);
  return at == body->length ? ULDP_OK : ULDP_DAMAGED;
}

/* ---- a report ---- */

typedef struct {
  const uldp_ledger *ledger;
  const uldp_table *table;
  const uldp_held *held;
  size_t columns;
  uint64_t part;
  int64_t time;
  uldp_draws draws;
  uldp_work *work;
  uint8_t *out;
  size_t room;
  uldp_made made;
  int64_t latest; /* the latest time that the ledger believes now; -1 if it believes all */
  bool remember;  /* whether a refusal leaves something to remember */
} uldp_reporting;

/* Enters what a report spends that `before` others of the same response have had. */
static inline uldp_status uldp_spend(uldp_reporting *own, uldp_body *body, uint64_t before) {
  const uldp_table *table = own->table;
  const uldp_spends *spends = &table->spends[table->spends_count > 1 ? own->part : 0];
  double epsilon = spends->epsilon < 0 ? 1e300 : spends->epsilon; /* without privacy, more than any budget has */
  if (before && spends->epsilon >= 0 && spends->lasting >= 0) epsilon = before == 1 ? spends->lasting - spends->epsilon : 0;
  if (table->budget > 0) {
    int64_t until = uldp_admitted_at(body, epsilon, own->time, table->budget, (int64_t)table->budget_ms);
    own->made.until_ms = (uint64_t)until;
    if (until > own->time) return ULDP_OVER_BUDGET;
  }
  return uldp_record(body, epsilon, own->time) ? ULDP_OK : ULDP_FULL;
}
/* Encodes always by the same draws, which the ledger keeps. */
static inline uldp_status uldp_encode_again(uldp_reporting *own, uldp_body *body, uldp_symbol *symbol) {
  uint8_t key[ULDP_KEY], *place;
  uint64_t numbers[ULDP_MOST_DRAWS];
  size_t length = 0, count = own->table->encoding_draws;
  uldp_kept kept;
  if (count > ULDP_MOST_DRAWS) return ULDP_WRONG;
  uldp_key(key, body, own->table, 'e', NULL, 0);
  place = uldp_find(body, key, &length);
  if (place && length != 8 * count) return ULDP_DAMAGED;
  for (size_t i = 0; place && i < count; i++) numbers[i] = uldp_read(place + 8 * i, 8);
  kept.from = own->draws;
  kept.numbers = numbers;
  kept.room = ULDP_MOST_DRAWS;
  kept.count = place ? count : 0;
  kept.made = 0;
  if (!uldp_encode(own->table, own->held, own->columns, own->part, uldp_kept_draws(&kept), own->work, symbol)) return ULDP_WRONG;
  if (kept.made != count) return ULDP_WRONG; /* the table does not fit this client */
  if (!count) return ULDP_OK;
  if (!(place = uldp_keep(body, key, 8 * count))) return ULDP_FULL;
  for (size_t i = 0; i < count; i++) uldp_little_endian(place + 8 * i, numbers[i], 8);
  return ULDP_OK;
}
/* The key of the response to a symbol. All slices share it, so that a device whose slice changes spends no more. */
static inline void uldp_response_key(uint8_t key[ULDP_KEY], const uldp_body *body, const uldp_table *table,
                                     const uldp_symbol *symbol) {
  uint64_t numbers[1 + ULDP_MOST_DEPTH + ULDP_MOST_HELD];
  const uldp_mechanism *permanent = uldp_innermost(table->mechanism, symbol)->permanent;
  bool of_items = permanent->form == ULDP_SET || permanent->form == ULDP_HITS || permanent->form == ULDP_COHORTS;
  size_t held = of_items ? (size_t)permanent->held : 0;
  numbers[0] = symbol->own;
  memcpy(numbers + 1, symbol->parts, sizeof symbol->parts);
  if (table->encoding->choice == ULDP_NAMED) numbers[1] = 0;
  memcpy(numbers + 1 + ULDP_MOST_DEPTH, symbol->items, held * sizeof *symbol->items);
  uldp_key(key, body, table, 's', numbers, 1 + ULDP_MOST_DEPTH + held);
}
/* Reports a permanent response, which it draws in any case, so that the time does not tell whether it is a new one. Its
 * entry has the number of its reports up to 2, and its symbol or its bytes. */
static inline uldp_status uldp_report_kept(uldp_reporting *own, uldp_body *body, uldp_payload *payload) {
  const uldp_table *table = own->table;
  uint8_t key[ULDP_KEY], until_key[ULDP_KEY], *place;
  uldp_symbol symbol;
  size_t found = 0;
  uldp_status status = uldp_encode_again(own, body, &symbol);
  if (status) return status;
  uldp_key(until_key, body, table, 'u', NULL, 0);
  uldp_response_key(key, body, table, &symbol);
  place = uldp_find(body, until_key, &found);
  if (place && found != 8) return ULDP_DAMAGED;
  /* What a clock that was far ahead has reported to does not silence the device until then. */
  if (place && own->time < (int64_t)uldp_read(place, 8) &&
      (own->latest < 0 || (int64_t)uldp_read(place, 8) - own->latest <= (int64_t)table->window_ms))
    return ULDP_REPORTED;
  uldp_payload drawn = uldp_permanent(table, &symbol, own->draws, own->work), kept = drawn;
  size_t length = drawn.length ? drawn.length : 8;
  place = uldp_find(body, key, &found);
  if (place && found != 1 + length) return ULDP_DAMAGED;
  uint8_t reports = place ? place[0] : 0;
  if ((status = uldp_spend(own, body, reports))) return status;
  if (!(place = uldp_keep(body, until_key, 8))) return ULDP_FULL;
  uint64_t time = (uint64_t)own->time, since = (time + table->slice_ms - table->offset_ms) % table->slice_ms;
  uldp_little_endian(place, time - since + table->window_ms, 8); /* the end of the last window that has the time */
  if (!(place = uldp_keep(body, key, 1 + length))) return ULDP_FULL;
  if (!reports && drawn.length) memcpy(place + 1, own->work->bytes, length);
  else if (!reports) uldp_little_endian(place + 1, drawn.symbol, 8);
  place[0] = reports < 2 ? (uint8_t)(reports + 1) : 2;
  if (!drawn.length) kept.symbol = uldp_read(place + 1, 8);
  *payload = uldp_again(table, &symbol, kept, place + 1, own->draws, own->work);
  return ULDP_OK;
}
static inline uldp_status uldp_report_in(uldp_reporting *own, uldp_entry *entry) {
  uldp_body body;
  uldp_symbol symbol;
  uldp_payload payload;
  uint8_t id[16];
  uint8_t begun[ULDP_AT_LOOK - ULDP_AT_BOOT];
  uldp_clock clock = own->ledger->clock(own->ledger->clock_ctx);
  int64_t skew = own->ledger->skew_ms;
  uldp_status status = uldp_ledger_body(entry, own->draws, &body);
  if (status) return status;
  size_t length = body.length;
  memcpy(begun, body.at + ULDP_AT_BOOT, sizeof begun);
  if ((status = uldp_check_time(&body, &clock, own->time, skew))) return status;
  own->latest = skew < 0 ? -1 : clock.now_ms > (uint64_t)(INT64_MAX - skew) ? INT64_MAX : (int64_t)clock.now_ms + skew;
  bool news = uldp_notice(&body, &clock, skew);
  if (own->table->kept) {
    status = uldp_report_kept(own, &body, &payload);
  } else {
    if (!uldp_encode(own->table, own->held, own->columns, own->part, own->draws, own->work, &symbol)) return ULDP_WRONG;
    status = uldp_spend(own, &body, 0);
    if (!status) payload = uldp_perturb(own->table, &symbol, own->draws, own->work);
  }
  if (status == ULDP_OVER_BUDGET && news && entry->exists) {
    /* A device that sends nothing must remember, too, since when spendings have been ahead of its clock; and no more. */
    body.length = length;
    memcpy(body.at + ULDP_AT_BOOT, begun, sizeof begun);
    uldp_sealed(entry, "ledger", &body);
    own->remember = true;
  }
  if (status) return status;
  uldp_id(id, own->draws);
  own->made.bytes = uldp_message(own->table, id, (uint64_t)own->time, payload, own->work, own->out, own->room);
  uldp_sealed(entry, "ledger", &body);
  return own->made.bytes ? ULDP_OK : ULDP_WRONG;
}
static inline uldp_edited uldp_report_edit(void *edit_ctx, uldp_entry *entry) {
  uldp_reporting *own = (uldp_reporting *)edit_ctx;
  own->made.status = uldp_report_in(own, entry);
  return own->made.status && !own->remember ? ULDP_UNCHANGED : ULDP_CHANGED;
}

/* As uldp_report, for every table: one change of the ledger decides whether the budget admits the report, and enters what
 * it spends. No message leaves that the ledger does not know: if the store fails, `out` has zeros. */
static inline uldp_made uldp_ledger_report(const uldp_ledger *ledger, const uldp_table *table, const uldp_held *held,
                                           size_t columns, uint64_t part, uint64_t time_ms, uldp_draws draws,
                                           uldp_work *work, uint8_t *out, size_t room) {
  uldp_reporting own;
  memset(&own, 0, sizeof own);
  own.made.status = ULDP_WRONG;
  if (!ledger || !ledger->clock || !ledger->store.change || !table || !held || !work || !out || !draws.below ||
      !uldp_is_time(time_ms) || (table->spends_count > 1 && part >= table->spends_count) ||
      room < ULDP_MESSAGE(strlen(table->collection), table->bytes_count))
    return own.made;
  own.ledger = ledger;
  own.table = table;
  own.held = held;
  own.columns = columns;
  own.part = part;
  own.time = (int64_t)time_ms;
  own.draws = draws;
  own.work = work;
  own.out = out;
  own.room = room;
  uldp_status stored = ledger->store.change(ledger->store.ctx, "ledger", uldp_report_edit, &own);
  if (stored) own.made.status = stored;
  if (own.made.status) memset(out, 0, room);
  if (own.made.status) own.made.bytes = 0;
  return own.made;
}

#ifdef __cplusplus
}
#endif

#endif
