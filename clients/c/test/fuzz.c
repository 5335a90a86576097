/* Gives devices of all tables of tables.h what no program should: values out of range, and draws of any number below
 * their limit. The sanitizers of the compiler say what goes wrong. The numbers come from a fixed seed. */
#include <math.h>
#include <stdio.h>
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
        held[i].tag = number() % 16 ? (int64_t)(number() % 3) - 1 : (int64_t)number();
        held[i].number = numbers[number() % 8];
        held[i].text = number() % 16 ? texts[i] : NULL;
        held[i].length = number() % 16;
        held[i].items = number() % 16 ? items[i] : NULL;
        held[i].numbers = number() % 16 ? of_items[i] : NULL;
        held[i].texts = number() % 16 ? of_set[i] : NULL;
        held[i].lengths = number() % 16 ? lengths[i] : NULL;
        held[i].count = number() % 16 ? count : SIZE_MAX;
      }
      uint8_t id[16] = {0};
      uldp_symbol symbol;
      size_t columns = number() % 16 ? tables[index].columns_count : number() % 8;
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
