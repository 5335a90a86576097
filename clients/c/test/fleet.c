/* Devices that report once each, by the table of table.h, whose name is NAME. A line of input is what one device holds:
 *   COLUMNS, and for each column INDEX TAG NUMBER COUNT ITEMS...
 * Prints the messages in hexadecimal digits. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include "table.h"

#define CONCAT(a, b) a##b
#define NAMED(a, b) CONCAT(a, b)

int main(void) {
  static uint8_t out[NAMED(NAME, _message_bytes)];
  static uint64_t items[64][ULDP_MOST_HELD * 4];
  static double numbers[64][ULDP_MOST_HELD * 4];
  uldp_held held[64] = {0};
  size_t columns;
  while (scanf("%zu", &columns) == 1) {
    for (size_t i = 0; i < columns; i++) {
      if (scanf("%" SCNu64 " %" SCNd64 " %lf %zu", &held[i].index, &held[i].tag, &held[i].number, &held[i].items_count) != 4) return 2;
      for (size_t j = 0; j < held[i].items_count; j++)
        if (scanf("%" SCNu64 " %lf", &items[i][j], &numbers[i][j]) != 2) return 2;
      held[i].items = items[i];
      held[i].numbers = numbers[i];
    }
    uint8_t id[16];
    uldp_fill(id, sizeof id);
    uint64_t now = (uint64_t)time(NULL) * 1000;
    size_t bytes = uldp_report(&NAME, held, columns, 0, id, now, uldp_system_draws(), &NAMED(NAME, _work), out);
    if (!bytes) return 1;
    for (size_t i = 0; i < bytes; i++) printf("%02x", out[i]);
    putchar('\n');
  }
  return 0;
}
