/* A process that reports, queues and sends, by the table of table.h, whose names begin with NAME, and by the files of the
 * folder FOLDER, which it shares with others, to the port PORT. It prints each message that it has queued, and ends when the
 * budget is spent and the queue is empty; then it prints what the user has spent. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include "table.h"
#include "uldp_files.h"
#include "uldp_ledger.h"
#include "uldp_queue.h"

#define CONCAT(a, b) a##b
#define NAMED(a, b) CONCAT(a, b)

static int port;

static void post(void *ctx, const uint8_t *message, size_t length, uldp_answer *answer) {
  char text[512];
  struct sockaddr_in to;
  (void)ctx;
  int head = snprintf(text, sizeof text, "POST /v1/reports HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n", length);
  int own = socket(AF_INET, SOCK_STREAM, 0);
  memset(&to, 0, sizeof to);
  to.sin_family = AF_INET;
  to.sin_port = htons((uint16_t)port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  memcpy(text + head, message, length);
  size_t all = (size_t)head + length, got = 0;
  if (!connect(own, (struct sockaddr *)&to, sizeof to) && send(own, text, all, MSG_NOSIGNAL) == (ssize_t)all) {
    for (ssize_t part = 1; part > 0 && got < sizeof text - 1; got += part > 0 ? (size_t)part : 0) part = recv(own, text + got, sizeof text - 1 - got, 0);
    text[got] = 0;
    if (sscanf(text, "HTTP/1.%*d %d", &answer->status) != 1) answer->status = 0;
  }
  close(own);
}

static uldp_edited look(void *ctx, uldp_entry *entry) {
  uldp_body body;
  double sum = 0;
  (void)ctx;
  if (uldp_ledger_body(entry, uldp_system_draws(), &body)) sum = -1;
  else
    for (size_t i = 0; i < uldp_spent_count(&body); i++) sum += uldp_spent_at(&body, i).epsilon;
  printf("spent %.17g\n", sum);
  return ULDP_UNCHANGED;
}

int main(int count, char **arguments) {
  static uint8_t memory[1 << 20], message[NAMED(NAME, _message_bytes)];
  if (count != 3) return 2;
  port = atoi(arguments[2]);
  uldp_files files = {arguments[1], memory, sizeof memory};
  uldp_store store = uldp_file_store(&files);
  uldp_ledger ledger = {store, uldp_system_clock, NULL, ULDP_HOUR_MS};
  uldp_queue queue = {store, uldp_system_clock, NULL, 1000, 1000, false};
  uldp_held held = uldp_value(1, ULDP_NO_TAG);
  uldp_made made = {ULDP_OK, 0, 0};
  uldp_round round;
  do {
    for (int i = 0; i < 5 && !made.status; i++) {
      made = uldp_ledger_report(&ledger, &NAMED(NAME, _table), &held, 1, 0, uldp_now_ms(), uldp_system_draws(), &NAMED(NAME, _work), message, sizeof message);
      if (made.status == ULDP_OVER_BUDGET) break;
      if (made.status) return fprintf(stderr, "%s\n", uldp_says(made.status)), 3;
      uldp_status added = uldp_add(&queue, message, made.bytes, uldp_system_draws(), NULL);
      if (added) return fprintf(stderr, "%s\n", uldp_says(added)), 4;
      for (size_t at = 0; at < made.bytes; at++) printf("%02x", message[at]);
      printf(" queued\n");
      fflush(stdout);
    }
    round = uldp_flush(&queue, post, NULL, uldp_system_draws(), message, sizeof message);
    if (round.status || round.needs_you || queue.set_aside) return fprintf(stderr, "%s\n", uldp_says(round.status)), 5;
    if (made.status && round.waiting) usleep(20000);
  } while (!made.status || round.waiting);
  store.change(store.ctx, "ledger", look, NULL);
  return 0;
}
