/* A ledger and a queue in memory, by the table of table.h, whose names begin with NAME. Reads lines from its input:
 *   clock NOW ELAPSED BOOT        sets the clock; BOOT is - if it is not known
 *   report INDEX PART TIME        a report of a value; prints STATUS UNTIL
 *   spent                         prints the spendings, TIME EPSILON ...
 *   ahead                         prints since when each has been ahead of the clock, 0 if it is not
 *   record EPSILON TIME           enters a spending, without a check
 *   admit EPSILON TIME EPSILON MS prints when a budget admits a report
 *   start                         prints when the run of the machine began
 *   add LENGTH                    puts a message of so many bytes into the queue; prints STATUS
 *   flush COUNT STATUS SECONDS... a round, with these answers; prints what was posted, and what became of the round
 *   text TEXT                     what the server says in each answer, without white space
 *   buffer BYTES                  sets the room that a round has for a message
 *   within MS                     in the next attempt, another process begins a round after so long
 *   flip NAME PLACE               changes a byte of an entry
 *   move FROM TO                  copies an entry to the place of another
 *   room BYTES                    sets the room of each entry */
#include "memory.h"
#include "table.h"

#define CONCAT(a, b) a##b
#define NAMED(a, b) CONCAT(a, b)

static int answers[4096];
static uint64_t seconds[4096];
static size_t answered;

static uint64_t later;
static char text[600];
static bool within;

static void post(void *ctx, const uint8_t *message, size_t length, uldp_answer *answer) {
  static uint8_t other[1 << 20];
  printf("%02x%zu ", message[0], length);
  answer->retry_after_s = seconds[answered];
  answer->status = answers[answered++];
  uldp_hear(text, 1, strlen(text), answer);
  if (within) {
    within = false;
    set_clock.now_ms += later;
    printf("[ ");
    uldp_flush((uldp_queue *)ctx, post, ctx, uldp_system_draws(), other, sizeof other);
    printf("] ");
  }
}

/* Gives the body of the ledger to a function, as a device would change it. */
typedef struct {
  char step;
  double epsilon, budget;
  int64_t time, every;
} asked;
static uldp_edited look(void *ctx, uldp_entry *entry) {
  asked *own = (asked *)ctx;
  uldp_body body;
  if (uldp_ledger_body(entry, uldp_system_draws(), &body)) printf("damaged");
  else if (own->step == 'a') printf("%" PRId64, uldp_admitted_at(&body, own->epsilon, own->time, own->budget, own->every));
  else if (own->step == 'b') printf("%.36s %" PRId64, (const char *)body.at + ULDP_AT_BOOT, (int64_t)uldp_read(body.at + ULDP_AT_START, 8));
  else if (own->step == 'h')
    for (size_t i = 0; i < uldp_spent_count(&body); i++) printf("%" PRId64 " ", uldp_spent_at(&body, i).seen);
  else if (own->step == 'r') uldp_record(&body, own->epsilon, own->time);
  else
    for (size_t i = 0; i < uldp_spent_count(&body); i++)
      printf("%" PRId64 " %a ", uldp_spent_at(&body, i).time, uldp_spent_at(&body, i).epsilon);
  putchar('\n');
  uldp_sealed(entry, "ledger", &body);
  return own->step == 'r' ? ULDP_CHANGED : ULDP_UNCHANGED;
}

int main(void) {
  static uint8_t out[1 << 20], message[1 << 20];
  uldp_ledger ledger = {memory_store(), clock_of, NULL, ULDP_HOUR_MS};
  uldp_queue queue = {memory_store(), clock_of, NULL, 1000, 30000, false};
  char word[16], other[16];
  uint8_t added = 0;
  size_t buffer = sizeof message;
  while (scanf("%15s", word) == 1) {
    asked own = {word[0], 0, 0, 0, 0};
    if (!strcmp(word, "clock")) {
      memset(&set_clock, 0, sizeof set_clock);
      if (scanf("%" SCNu64 " %" SCNu64 " %39s", &set_clock.now_ms, &set_clock.elapsed_ms, set_clock.boot) != 3) return 2;
      if (set_clock.boot[0] == '-') set_clock.boot[0] = 0;
    } else if (!strcmp(word, "report")) {
      uint64_t index, part, time;
      if (scanf("%" SCNu64 " %" SCNu64 " %" SCNu64, &index, &part, &time) != 3) return 2;
      uldp_held held = uldp_value(index, ULDP_NO_TAG);
      uldp_made made = uldp_ledger_report(&ledger, &NAMED(NAME, _table), &held, 1, part, time, uldp_system_draws(),
                                          &NAMED(NAME, _work), out, sizeof out);
      printf("%d %" PRIu64 "\n", (int)made.status, made.status == ULDP_OVER_BUDGET ? made.until_ms : (uint64_t)!made.bytes);
    } else if (!strcmp(word, "spent") || !strcmp(word, "boot") || !strcmp(word, "ahead")) {
      if (!strcmp(word, "ahead")) own.step = 'h';
      ledger.store.change(ledger.store.ctx, "ledger", look, &own);
    } else if (!strcmp(word, "record")) {
      if (scanf("%lf %" SCNd64, &own.epsilon, &own.time) != 2) return 2;
      ledger.store.change(ledger.store.ctx, "ledger", look, &own);
    } else if (!strcmp(word, "admit")) {
      if (scanf("%lf %" SCNd64 " %lf %" SCNd64, &own.epsilon, &own.time, &own.budget, &own.every) != 4) return 2;
      ledger.store.change(ledger.store.ctx, "ledger", look, &own);
    } else if (!strcmp(word, "add")) {
      size_t length;
      if (scanf("%zu", &length) != 1 || length > sizeof message) return 2;
      memset(message, added++, length);
      printf("%d\n", (int)uldp_add(&queue, message, length, uldp_system_draws(), NULL));
    } else if (!strcmp(word, "flush")) {
      size_t count;
      if (scanf("%zu", &count) != 1 || count > 4095) return 2;
      for (size_t i = 0; i < count; i++)
        if (scanf("%d %" SCNu64, &answers[i], &seconds[i]) != 2) return 2;
      answered = 0;
      uldp_round round = uldp_flush(&queue, post, &queue, uldp_system_draws(), message, buffer);
      printf("| %d %zu %zu %zu %" PRIu64 " %d %d\n", (int)round.status, round.taken, round.refused, round.waiting,
             round.again_ms ? round.again_ms - set_clock.now_ms : 0, round.needs_you, queue.set_aside);
      if (answered > count) return 3;
    } else if (!strcmp(word, "buffer")) {
      if (scanf("%zu", &buffer) != 1 || buffer > sizeof message) return 2;
    } else if (!strcmp(word, "text")) {
      if (scanf("%599s", text) != 1) return 2;
    } else if (!strcmp(word, "within")) {
      if (scanf("%" SCNu64, &later) != 1) return 2;
      within = true;
    } else if (!strcmp(word, "flip")) {
      size_t place;
      if (scanf("%15s %zu", word, &place) != 2) return 2;
      entry_of(word)->bytes[place % entry_of(word)->length] ^= 1;
    } else if (!strcmp(word, "move")) {
      if (scanf("%15s %15s", word, other) != 2) return 2;
      *entry_of(other) = *entry_of(word);
    } else if (!strcmp(word, "room")) {
      if (scanf("%zu", &room_of_memory) != 1 || room_of_memory > MEMORY) return 2;
    } else {
      return 2;
    }
  }
  return 0;
}
