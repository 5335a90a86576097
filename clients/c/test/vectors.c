/* Follows the conformance vectors of the tables that tables.h defines. Reads lines from its input:
 *   table INDEX                                       the reports that follow are by this table
 *   device PART                                       a device begins, at a level or slice
 *   held KIND INDEX TAG NUMBER COUNT ITEMS... TEXT         what it holds of a column, by uldp_kind; TEXT is hexadecimal, - without one,
 *                                                     and has commas between the strings of a set
 *   draws COUNT LIMIT NUMBER ...                      the draws of the next report
 *   report TIME ID MESSAGE                            makes a report, and compares it
 * Prints what differs, and the number of reports. */
#include "memory.h"
#include "tables.h"

static uint64_t limits[1 << 16], numbers[1 << 16];
static size_t count, taken;
static uldp_held held[64];
static uint64_t items[64][1 << 17];
static double of_items[64][1 << 17];
static char texts[64][4096];
static const char *of_set[64][ULDP_MOST_TEXTS];
static size_t lengths[64][ULDP_MOST_TEXTS];

static uint64_t recorded(void *state, uint64_t limit) {
  if (taken >= count || limits[taken] != limit) {
    printf("draw %zu is below %" PRIu64 ", but %" PRIu64 " is recorded\n", taken, limit, taken < count ? limits[taken] : 0);
    taken = count + 1;
    return 0;
  }
  (void)state;
  return numbers[taken++];
}

static size_t unhex(const char *text, uint8_t *bytes) {
  size_t length = 0;
  unsigned byte;
  for (; sscanf(text, "%2x", &byte) == 1; text += 2) bytes[length++] = (uint8_t)byte;
  return length;
}

/* The four draws of 16 bytes. */
static void draw_words(const uint8_t *bytes) {
  for (size_t i = 0; i < 4; i++, count++) {
    limits[count] = UINT64_C(1) << 32;
    numbers[count] = bytes ? uldp_read(bytes + 4 * i, 4) : i;
  }
}

int main(void) {
  static char word[1 << 20], message[1 << 20];
  static uint8_t out[1 << 20], wanted[1 << 20];
  uldp_draws draws = uldp_draws_of(recorded, NULL);
  uldp_ledger ledger = {memory_store(), clock_of, NULL, ULDP_HOUR_MS};
  uint64_t part = 0;
  size_t index = 0, columns = 0, reports = 0, differ = 0;
  define();
  while (scanf("%31s", word) == 1) {
    if (!strcmp(word, "table")) {
      if (scanf("%zu", &index) != 1) return 2;
    } else if (!strcmp(word, "device")) {
      if (scanf("%" SCNu64, &part) != 1) return 2;
      columns = 0;
      in_ledger.exists = false;
      in_ledger.length = 0;
    } else if (!strcmp(word, "held")) {
      uldp_held *each = &held[columns];
      int kind;
      if (scanf("%d", &kind) != 1) return 2;
      *each = uldp_held_of((uldp_kind)kind);
      if (scanf("%" SCNu64 " %" SCNd64 " %lf %zu", &each->index, &each->tag, &each->number, &each->count) != 4) return 2;
      for (size_t i = 0; i < each->count; i++)
        if (scanf("%" SCNu64 " %lf", &items[columns][i], &of_items[columns][i]) != 2) return 2;
      if (scanf("%8191s", word) != 1) return 2;
      each->items = items[columns];
      each->numbers = of_items[columns];
      each->text = texts[columns];
      each->texts = of_set[columns];
      each->lengths = lengths[columns];
      char *end = texts[columns];
      size_t number = 0;
      for (char *text = strtok(word, ","); text && number < ULDP_MOST_TEXTS; text = strtok(NULL, ","), number++) {
        of_set[columns][number] = end;
        end += lengths[columns][number] = text[0] == '-' ? 0 : unhex(text, (uint8_t *)end);
      }
      each->length = lengths[columns++][0];
    } else if (!strcmp(word, "draws")) {
      size_t first = count = 0;
      if (scanf("%zu", &first) != 1) return 2;
      if (tables[index].kept && !in_ledger.exists) draw_words(NULL); /* the salt of a new ledger */
      for (size_t i = 0; i < first; i++, count++)
        if (scanf("%" SCNu64 " %" SCNu64, &limits[count], &numbers[count]) != 2) return 2;
      taken = 0;
    } else {
      uint64_t time;
      uint8_t id[16];
      if (scanf("%" SCNu64 " %1048575s %1048575s", &time, word, message) != 3) return 2;
      unhex(word, id);
      draw_words(id);
      uldp_symbol symbol;
      set_clock.now_ms = time;
      size_t length = 0;
      if (tables[index].kept) {
        length = uldp_ledger_report(&ledger, &tables[index], held, columns, part, time, draws, &works[index], out, sizeof out).bytes;
      } else if (uldp_encode(&tables[index], held, columns, part, draws, &works[index], &symbol)) {
        uldp_payload payload = uldp_perturb(&tables[index], &symbol, draws, &works[index]);
        uldp_id(id, draws);
        length = uldp_message(&tables[index], id, time, payload, &works[index], out, sizeof out);
      }
      size_t expected = unhex(message, wanted);
      reports++;
      if (taken != count || length != expected || memcmp(out, wanted, length)) {
        differ++;
        printf("differs: table %zu, report %zu, %zu of %zu draws, %zu bytes\n", index, reports, taken, count, length);
      }
    }
  }
  printf("%zu reports, %zu differ\n", reports, differ);
  return 0;
}
