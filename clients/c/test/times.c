/* Times reports of two devices in turn, by the table of table.h, whose names begin with NAME. A line of input is what one device
 * holds, as of fleet.c. Prints nanoseconds and the number of draws of each of CALLS reports; those of the first device
 * are in lines 1, 3, 5 and so on. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <time.h>
#include "held.h"
#include "table.h"

static uint64_t taken;

static uint64_t counted(void *state, uint64_t limit) {
  taken++;
  return uldp_system_below(state, limit);
}

int main(void) {
  static uint64_t took[CALLS], draws[CALLS];
  static device both[2];
  if (!read_device(&both[0]) || !read_device(&both[1])) return 2;
  uldp_draws source = uldp_draws_of(counted, NULL);
  for (long call = -CALLS; call < CALLS; call++) { /* those below 0 are not counted: caches get warm */
    const device *own = &both[call & 1];
    struct timespec began, ended;
    uint64_t before = taken;
    uldp_symbol symbol;
    clock_gettime(CLOCK_MONOTONIC, &began);
    if (!uldp_encode(&NAMED(NAME, _table), own->held, own->columns, 0, source, &NAMED(NAME, _work), &symbol)) return 1;
    uldp_perturb(&NAMED(NAME, _table), &symbol, source, &NAMED(NAME, _work));
    clock_gettime(CLOCK_MONOTONIC, &ended);
    if (call < 0) continue;
    took[call] = (uint64_t)((ended.tv_sec - began.tv_sec) * 1000000000L + ended.tv_nsec - began.tv_nsec);
    draws[call] = taken - before;
  }
  for (size_t call = 0; call < CALLS; call++) printf("%" PRIu64 " %" PRIu64 "\n", took[call], draws[call]);
  return 0;
}
