/* What one device holds, as a line of text: COLUMNS, and for each column KIND INDEX TAG NUMBER COUNT ITEMS...
 * KIND is a number of uldp_kind. */
#include <inttypes.h>
#include <stdio.h>
#include "uldp.h"

#define CONCAT(a, b) a##b
#define NAMED(a, b) CONCAT(a, b)
#define MOST_COLUMNS 16

typedef struct {
  uldp_held held[MOST_COLUMNS];
  size_t columns;
  uint64_t items[MOST_COLUMNS][ULDP_MOST_HELD * 4];
  double numbers[MOST_COLUMNS][ULDP_MOST_HELD * 4];
} device;

/* Reads the next line; false at the end, and where a line is wrong. */
static bool read_device(device *own) {
  if (scanf("%zu", &own->columns) != 1 || own->columns > MOST_COLUMNS) return false;
  for (size_t i = 0; i < own->columns; i++) {
    uldp_held *held = &own->held[i];
    int kind;
    if (scanf("%d", &kind) != 1) return false;
    *held = uldp_held_of((uldp_kind)kind);
    if (scanf("%" SCNu64 " %" SCNd64 " %lf %zu", &held->index, &held->tag, &held->number, &held->count) != 4) return false;
    if (held->count > ULDP_MOST_HELD * 4) return false;
    for (size_t j = 0; j < held->count; j++)
      if (scanf("%" SCNu64 " %lf", &own->items[i][j], &own->numbers[i][j]) != 2) return false;
    held->items = own->items[i];
    held->numbers = own->numbers[i];
  }
  return true;
}
