/* Devices that report once each, by the table of table.h, whose names begin with NAME. A line of input is what one device holds,
 * as held.h reads it. Prints the messages in hexadecimal digits. */
#include <time.h>
#include "held.h"
#include "table.h"

int main(void) {
  static uint8_t out[NAMED(NAME, _message_bytes)];
  static device own;
  while (read_device(&own)) {
    uint64_t now = (uint64_t)time(NULL) * 1000;
    size_t bytes = uldp_report(&NAMED(NAME, _table), own.held, own.columns, 0, now, uldp_system_draws(), &NAMED(NAME, _work), out,
                               sizeof out);
    if (!bytes) return 1;
    for (size_t i = 0; i < bytes; i++) printf("%02x", out[i]);
    putchar('\n');
  }
  return 0;
}
