/* Gives devices of the tables of refused.h what a program can get wrong, and what is right beside it. Prints each line that
 * is not as it should be, and the number of checks. The sanitizers say what reads or writes other memory. */
#include <math.h>
#include <stdio.h>
#include "memory.h"
#include "refused.h"

static size_t checks, wrong;
static void is(bool right, int line) {
  checks++;
  wrong += !right;
  if (!right) printf("line %d\n", line);
}
#define NOW UINT64_C(1767258000000)
#define MAKES(name, held, columns, part) is(reports(&name##_table, &name##_work, held, columns, part, NOW, 512), __LINE__)
#define REFUSES(name, held, columns, part) is(!reports(&name##_table, &name##_work, held, columns, part, NOW, 512), __LINE__)

/* Whether there is a report, by the ledger and without it, where the table needs none. */
static bool reports(const uldp_table *table, uldp_work *work, const uldp_held *held, size_t columns, uint64_t part, uint64_t time,
                    size_t room) {
  static uint8_t out[512];
  uldp_ledger ledger = {memory_store(), clock_of, NULL, -1};
  uldp_draws draws = uldp_system_draws();
  bool in_need = !table || table->kept || table->budget > 0;
  in_ledger.exists = false;
  in_ledger.length = 0;
  bool made = uldp_ledger_report(&ledger, table, held, columns, part, time, draws, work, out, room).bytes > 0;
  bool alone = uldp_report(table, held, columns, part, time, draws, work, out, room) > 0;
  is(alone == (made && !in_need), __LINE__);
  is(made == in_ledger.exists, __LINE__); /* what is refused spends nothing */
  return made;
}

static uint64_t no_draw(void *ctx, uint64_t limit) {
  (void)limit;
  ++*(size_t *)ctx;
  return 0;
}

int main(void) {
  uldp_held one, both[2] = {uldp_value(1, ULDP_NO_TAG), uldp_number(3)};
  MAKES(record, both, 2, 0);
  REFUSES(record, both, 1, 0);
  REFUSES(record, both, 0, 0);
  REFUSES(record, both, 3, 0);
  REFUSES(record, both, SIZE_MAX, 0);
  REFUSES(record, NULL, 2, 0);
  uldp_held turned[2] = {both[1], both[0]};
  REFUSES(record, turned, 2, 0);
  memset(turned, 0, sizeof turned);
  REFUSES(record, turned, 2, 0);

  for (uint64_t index = 0; index < 9; index++)
    for (int64_t tag = -3; tag < 3; tag++) {
      one = uldp_value(index, tag);
      if (index < 5 && tag >= -1 && tag < 1) MAKES(places, &one, 1, 0);
      else REFUSES(places, &one, 1, 0);
      if (index < zones_table.columns[0].size && tag >= -1 && tag < (int64_t)zones_table.columns[0].tags.count) MAKES(zones, &one, 1, 0);
      else REFUSES(zones, &one, 1, 0);
    }
  one = uldp_value(UINT64_MAX, -1);
  REFUSES(places, &one, 1, 0);
  one = uldp_value(1, INT64_MIN);
  REFUSES(places, &one, 1, 0);
  one = uldp_value(1, INT64_MAX);
  REFUSES(places, &one, 1, 0);
  one = uldp_number(1);
  REFUSES(places, &one, 1, 0);
  is(uldp_index(&places_table.columns[0], "flat") == 3, __LINE__);
  one = uldp_value(uldp_index(&places_table.columns[0], "fla"), -1);
  REFUSES(places, &one, 1, 0);
  is(uldp_index(&places_table.columns[0], "flats") == 5 && uldp_index(&places_table.columns[0], "") == 5, __LINE__);

  const double infinite[] = {NAN, -NAN, INFINITY, -INFINITY};
  for (size_t i = 0; i < 4; i++) {
    both[1] = uldp_number(infinite[i]);
    REFUSES(record, both, 2, 0);
  }
  both[1] = uldp_number(-1e308);
  MAKES(record, both, 2, 0);

  const uint64_t right[] = {2, 0, 1}, sevens[] = {7, 7, 7}, twice[] = {0, 1, 1}, above[] = {0, 1, 3}, longer[] = {0, 1, 2, 3};
  const uint64_t *const rankings[] = {sevens, twice, above, NULL};
  one = uldp_ranking(right, 3);
  MAKES(vote, &one, 1, 0);
  for (size_t i = 0; i < 4; i++) {
    one = uldp_ranking(rankings[i], 3);
    REFUSES(vote, &one, 1, 0);
  }
  for (size_t count = 0; count < 5; count++) {
    one = uldp_ranking(longer, count);
    if (count == 3) MAKES(vote, &one, 1, 0);
    else REFUSES(vote, &one, 1, 0);
    one = uldp_items(longer, count);
    REFUSES(vote, &one, 1, 0);
    MAKES(items, &one, 1, 0);
  }
  one = uldp_items(NULL, 0);
  MAKES(items, &one, 1, 0);
  const uint64_t many[] = {0, 1, 2, 3, 4, 5}, far[] = {0, UINT64_MAX}, same[] = {4, 2, 4}, five[] = {5};
  one = uldp_items(many, 5);
  MAKES(items, &one, 1, 0);
  one = uldp_items(many, 6);
  REFUSES(items, &one, 1, 0);
  one = uldp_items(far, 2);
  REFUSES(items, &one, 1, 0);
  one = uldp_items(same, 3);
  REFUSES(items, &one, 1, 0);
  one = uldp_items(five, 1);
  REFUSES(items, &one, 1, 0);
  one = uldp_items(NULL, 1);
  REFUSES(items, &one, 1, 0);
  one = uldp_items(many, SIZE_MAX);
  REFUSES(items, &one, 1, 0);

  double numbers[] = {1, 2, 3};
  one = uldp_pairs(right, numbers, 3);
  MAKES(pairs, &one, 1, 0);
  one = uldp_pairs(right, NULL, 3);
  REFUSES(pairs, &one, 1, 0);
  for (size_t i = 0; i < 3; i++)
    for (size_t j = 0; j < 4; j++) {
      double kept = numbers[i];
      numbers[i] = infinite[j];
      one = uldp_pairs(right, numbers, 3);
      REFUSES(pairs, &one, 1, 0);
      numbers[i] = kept;
    }
  one = uldp_pairs(twice, numbers, 3);
  REFUSES(pairs, &one, 1, 0);

  const char *texts[] = {"ab", "a", "ab"};
  size_t lengths[] = {2, 1, 2};
  one = uldp_texts(texts, lengths, 2);
  MAKES(texts, &one, 1, 0);
  one = uldp_texts(texts, lengths, 3);
  REFUSES(texts, &one, 1, 0);
  lengths[1] = 13;
  one = uldp_texts(texts, lengths, 2);
  REFUSES(texts, &one, 1, 0);
  lengths[1] = 1;
  texts[1] = NULL;
  REFUSES(texts, &one, 1, 0);
  one = uldp_texts(texts, lengths, ULDP_MOST_TEXTS + 1);
  REFUSES(texts, &one, 1, 0);
  one = uldp_texts(NULL, lengths, 2);
  REFUSES(texts, &one, 1, 0);
  one = uldp_texts(texts, NULL, 2);
  REFUSES(texts, &one, 1, 0);
  one = uldp_text("0123456789ab", 12);
  MAKES(text, &one, 1, 0);
  one = uldp_text("0123456789abc", 13);
  REFUSES(text, &one, 1, 0);
  one = uldp_text("\xff", 1);
  REFUSES(text, &one, 1, 0);
  one = uldp_text(NULL, 1);
  REFUSES(text, &one, 1, 0);
  one = uldp_text(NULL, 0);
  MAKES(text, &one, 1, 0);

  one = uldp_value(1, -1);
  for (uint64_t part = 0; part < 4; part++) {
    if (part < 2) MAKES(levels, &one, 1, part);
    else REFUSES(levels, &one, 1, part);
    if (part < 3) MAKES(sliced, &one, 1, part);
    else REFUSES(sliced, &one, 1, part);
  }
  REFUSES(levels, &one, 1, UINT64_MAX);
  MAKES(kept, &one, 1, 0);

  const uint64_t times[] = {0, NOW / 1000, NOW * 1000, NOW * 1000000, UINT64_MAX};
  for (size_t i = 0; i < 5; i++) is(!reports(&places_table, &places_work, &one, 1, 0, times[i], 512), __LINE__);
  is(!reports(NULL, &places_work, &one, 1, 0, NOW, 512), __LINE__);
  is(!reports(&places_table, NULL, &one, 1, 0, NOW, 512), __LINE__);
  is(!reports(&many_table, &places_work, &one, 1, 0, NOW, 512), __LINE__); /* the memory of a smaller table */
  is(reports(&many_table, &many_work, &one, 1, 0, NOW, 512), __LINE__);
  is(!reports(&many_table, &many_work, &one, 1, 0, NOW, many_message_bytes - 1), __LINE__);
  is(reports(&many_table, &many_work, &one, 1, 0, NOW, many_message_bytes), __LINE__);
  is(!uldp_report(&many_table, &one, 1, 0, NOW, uldp_system_draws(), &many_work, NULL, 512), __LINE__);
  is(!uldp_report(&many_table, &one, 1, 0, NOW, uldp_draws_of(NULL, NULL), &many_work, in_aside.bytes, 512), __LINE__);

  size_t drawn = 0; /* what is refused draws nothing */
  uldp_symbol symbol;
  one = uldp_ranking(sevens, 3);
  is(!uldp_encode(&vote_table, &one, 1, 0, uldp_draws_of(no_draw, &drawn), &vote_work, &symbol) && !drawn, __LINE__);
  one = uldp_value(1, -1); /* by itself, a kept value is not perturbed, so nothing of it is sent */
  is(uldp_encode(&kept_table, &one, 1, 0, uldp_system_draws(), &kept_work, &symbol), __LINE__);
  is(!uldp_perturb(&kept_table, &symbol, uldp_system_draws(), &kept_work).symbol && symbol.own == 1, __LINE__);
  printf("%zu checks, %zu wrong\n", checks, wrong);
  return 0;
}
