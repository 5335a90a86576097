/* Gives devices of all tables of tables.h what no program should: values out of range, draws of any number below their
 * limit, and a ledger and a queue of any bytes under a checksum that is right. The sanitizers of the compiler say what goes wrong. The numbers come from a fixed seed. */
#include <math.h>
#include "memory.h"
#include "tables.h"

static uint64_t state = 1;

static uint64_t number(void) { /* SplitMix64 */
  uint64_t word = state += UINT64_C(0x9e3779b97f4a7c15);
  word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
  return word ^ word >> 31;
}

static uint64_t below(void *unused, uint64_t limit) {
  (void)unused;
  switch (number() % 4) {
    case 0: return 0;
    case 1: return limit - 1;
    default: return number() % limit;
  }
}

/* Any body, of which a part was written by a device, with a checksum that is right. */
static void put_junk(const char *name) {
  kept_entry *kept = entry_of(name);
  uldp_entry entry = {kept->bytes, 0, MEMORY, true};
  uldp_body body = {kept->bytes + ULDP_ENTRY_HEAD, (size_t)(number() % 400), MEMORY - 48};
  if (number() % 4 && kept->length > 48) body.length = kept->length - 48;
  for (uint64_t i = number() % 4; i > 0 && body.length; i--) body.at[number() % body.length] = (uint8_t)(number() % 4 ? number() % 3 : number());
  if (!(number() % 4)) body.length = number() % (body.length + 1);
  uldp_sealed(&entry, name, &body);
  kept->length = entry.length;
  kept->exists = true;
}

static void post(void *ctx, const uint8_t *message, size_t length, uldp_answer *answer) {
  static const int answers[] = {0, 202, 422, 429, 503, 401, -1, 500};
  (void)ctx;
  answer->retry_after_s = number() % 2 ? number() % 9 : number();
  static char texts[] = "{\"reason\":[{}]}\\";
  answer->status = length ? answers[(number() + message[length - 1]) % 8] : 0;
  for (uint64_t i = number() % 80; i > 0; i--) {
    size_t from = number() % sizeof texts;
    uldp_hear(texts + from, 1, number() % (sizeof texts - from), answer);
  }
}

/* Reports and sends by a ledger and a queue that somebody has changed. */
static void go_on(const uldp_table *table, uldp_work *work, const uldp_held *held, uint8_t *out) {
  static uint8_t sent[300];
  uldp_draws draws = uldp_draws_of(below, NULL);
  uldp_ledger ledger = {memory_store(), clock_of, NULL, number() % 2 ? -1 : ULDP_HOUR_MS};
  uldp_queue queue = {memory_store(), clock_of, NULL, 9, 30000, false};
  room_of_memory = number() % 4 ? MEMORY : (size_t)(number() % 3000);
  set_clock.now_ms = number() % 8 ? UINT64_C(1767258000000) + number() % 100000 : number();
  set_clock.elapsed_ms = number() % 100000;
  set_clock.boot[0] = (char)(number() % 2);
  uint64_t time = number() % 8 ? set_clock.now_ms : number();
  uldp_made made = uldp_ledger_report(&ledger, table, held, table->columns_count, number() % 4, time, draws, work, out, 1 << 20);
  uldp_add(&queue, out, made.bytes ? made.bytes : (size_t)(number() % 300), draws, NULL);
  uldp_flush(&queue, post, NULL, draws, sent, number() % 4 ? sizeof sent : (size_t)(number() % 300));
  if (!(number() % 8)) put_junk("ledger");
  if (!(number() % 8)) put_junk("queue");
  if (made.status == ULDP_DAMAGED) in_ledger.exists = false;
  if (made.status == ULDP_DAMAGED) in_ledger.length = 0;
}

int main(void) {
  static uint8_t out[1 << 20], kept[1 << 20];
  static uint64_t items[8][ULDP_MOST_HELD * 16];
  static char texts[8][256];
  static const char *of_set[8][20];
  static size_t lengths[8][20];
  static double of_items[8][20];
  static const double numbers[8] = {0, -1e308, 1e308, 1.0 / 3, -0.0, 7, INFINITY, NAN};
  uldp_draws draws = uldp_draws_of(below, NULL);
  size_t reports = 0;
  define();
  for (size_t index = 0; index < sizeof tables / sizeof *tables; index++)
    for (int run = 0; run < RUNS; run++) {
      uldp_held held[8];
      for (size_t i = 0; i < 8; i++) {
        size_t count = number() % 8;
        for (size_t j = 0; j < count; j++) items[i][j] = number() % (number() % 2 ? 16 : UINT64_MAX);
        for (size_t j = 0; j < sizeof texts[i]; j++) texts[i][j] = (char)(number() % 2 ? 'a' + number() % 3 : number());
        for (size_t j = 0; j < count; j++) {
          of_set[i][j] = texts[i] + number() % 128;
          lengths[i][j] = number() % 16;
        }
        for (size_t j = 0; j < count; j++) of_items[i][j] = numbers[number() % 8];
        bool own = number() % 16 && i < tables[index].columns_count;
        held[i] = uldp_held_of(own ? tables[index].columns[i].kind : (uldp_kind)(number() % 9));
        held[i].index = number() % (number() % 4 ? 9 : UINT64_MAX);
        held[i].tag = number() % 64 ? (int64_t)(number() % 3) - 1 : (int64_t)number();
        held[i].number = numbers[number() % 8];
        held[i].text = number() % 64 ? texts[i] : NULL;
        held[i].length = number() % 16;
        held[i].items = number() % 64 ? items[i] : NULL;
        held[i].numbers = number() % 64 ? of_items[i] : NULL;
        held[i].texts = number() % 64 ? of_set[i] : NULL;
        held[i].lengths = number() % 64 ? lengths[i] : NULL;
        held[i].count = number() % 64 ? count : SIZE_MAX;
      }
      uint8_t id[16] = {0};
      go_on(&tables[index], &works[index], held, out);
      uldp_symbol symbol;
      size_t columns = number() % 64 ? tables[index].columns_count : number() % 8;
      if (!uldp_encode(&tables[index], held, columns, number() % 4, draws, &works[index], &symbol)) continue;
      uldp_payload payload;
      if (uldp_innermost(tables[index].mechanism, &symbol)->form == ULDP_KEPT) {
        uldp_payload response = uldp_permanent(&tables[index], &symbol, draws, &works[index]);
        memcpy(kept, works[index].bytes, response.length);
        payload = uldp_again(&tables[index], &symbol, response, kept, draws, &works[index]);
      } else {
        payload = uldp_perturb(&tables[index], &symbol, draws, &works[index]);
      }
      if (uldp_message(&tables[index], id, number() >> 20, payload, &works[index], out, number() % 4 ? sizeof out : number() % 99))
        reports++;
    }
  printf("%zu\n", reports);
  return 0;
}
