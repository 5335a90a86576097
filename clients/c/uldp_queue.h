/* A queue of messages that wait for the server, as the entry "queue" of a store. Threads and processes may share it.
 *
 * The program posts: it gives uldp_flush a function that makes one attempt. A message stays until the server has it or
 * will never count it. A copy has the same bytes, so it is counted once.
 */
#ifndef ULDP_QUEUE_H
#define ULDP_QUEUE_H

#include "uldp_store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A server may ask for a longer wait than anybody wants. */
#define ULDP_LONGEST_WAIT_MS UINT64_C(86400000)
#define ULDP_LONGEST_BACKOFF_MS UINT64_C(60000)
/* How long after the time limit of an attempt its lease ends, so that another process may try. */
#ifndef ULDP_SLACK_MS
#define ULDP_SLACK_MS UINT64_C(10000)
#endif

typedef struct {
  uldp_store store;
  uldp_clock (*clock)(void *clock_ctx);
  void *clock_ctx;
  size_t most;       /* so many messages wait at the most: 1000 */
  uint64_t limit_ms; /* the time limit of an attempt, which the program keeps: 30000 */
  bool set_aside;    /* whether a damaged queue was kept under another name, and a new one begun; the program clears it */
} uldp_queue;

/* What a server says: the status, 0 without an answer; the seconds of Retry-After; and the beginning of the text. */
typedef struct {
  int status;
  uint64_t retry_after_s;
  size_t length;
  char text[512];
} uldp_answer;
/* One attempt: sends the bytes, and enters the answer, which is zeros before. */
typedef void (*uldp_post)(void *post_ctx, const uint8_t *message, size_t length, uldp_answer *answer);
/* Adds a part to the text of an answer, as curl's CURLOPT_WRITEFUNCTION does; what does not fit is left out. */
static inline size_t uldp_hear(char *part, size_t size, size_t count, void *answer) {
  uldp_answer *own = (uldp_answer *)answer;
  size_t room = sizeof own->text - own->length, length = size * count < room ? size * count : room;
  memcpy(own->text + own->length, part, length);
  own->length += length;
  return size * count;
}
/* Whether an answer is a JSON object with a `reason`: then it judges one message, and others of this sender may be sent. */
static inline bool uldp_has_reason(const uldp_answer *answer) {
  static const char key[] = "\"reason\"";
  const char *text = answer->text;
  size_t i = 0, depth = 0, begins = 0;
  bool quoted = false;
  while (i < answer->length && strchr(" \t\r\n", text[i]) && text[i]) i++;
  if (i == answer->length || text[i] != '{') return false;
  for (; i < answer->length; i++) {
    if (quoted && text[i] == '\\') i++;
    else if (text[i] == '"' && !quoted) begins = i, quoted = true;
    else if (text[i] == '"') quoted = false;
    else if (!quoted && (text[i] == '{' || text[i] == '[')) depth++;
    else if (!quoted && (text[i] == '}' || text[i] == ']')) depth--;
    else if (!quoted && text[i] == ':' && depth == 1 && i - begins >= sizeof key - 1 && !memcmp(text + begins, key, sizeof key - 1))
      return true;
  }
  return false;
}

/* What became of a round. `again_ms` is the next attempt; 0 if nothing waits. `needs_you` is an answer that only a person
 * can change, as 401 or 404; 0 if there was none: the messages stay, and the round has ended. */
typedef struct {
  uldp_status status;
  size_t taken, refused, waiting;
  uint64_t again_ms;
  int needs_you;
} uldp_round;

/* A row: id, the next attempt, how many attempts there were, the length of the message, the message. */
#define ULDP_ROW_HEAD 32

typedef enum { ULDP_ADD, ULDP_TAKE, ULDP_SETTLE } uldp_step;
typedef struct {
  uldp_queue *queue;
  uldp_step step;
  uint64_t now_ms, due_ms; /* rows whose next attempt is at due_ms or before are due */
  uint64_t next_ms, others_ms; /* of a row that is kept, 0 if it is removed; and of all others at the earliest */
  bool attempted;
  uldp_draws draws;
  uint8_t id[16];
  uint8_t *out;
  size_t room, length;
  const uint8_t *message;
  bool found, too_long;
  uint64_t attempts;
  uldp_status status;
  uldp_round *round;
} uldp_stepping;

static inline uint8_t *uldp_row(const uldp_body *body, size_t at) { return body->at + at; }
static inline size_t uldp_row_length(const uldp_body *body, size_t at) { return (size_t)uldp_read(uldp_row(body, at) + 28, 4); }
static inline size_t uldp_after(const uldp_body *body, size_t at) { return at + ULDP_ROW_HEAD + uldp_row_length(body, at); }
static inline bool uldp_rows_are_whole(const uldp_body *body) {
  size_t at = 0;
  while (body->length - at >= ULDP_ROW_HEAD && uldp_row_length(body, at) <= body->length - at - ULDP_ROW_HEAD)
    at = uldp_after(body, at);
  return at == body->length;
}
/* A time that is further than any wait was written by a clock that was wrong: such a row is due. */
static inline uint64_t uldp_next(const uldp_body *body, size_t at, uint64_t now_ms) {
  uint64_t next = uldp_read(uldp_row(body, at) + 16, 8);
  return next > now_ms + ULDP_LONGEST_WAIT_MS + ULDP_SLACK_MS ? 0 : next;
}
static inline bool uldp_row_add(uldp_body *body, uldp_stepping *own) {
  size_t end = body->length;
  if (!uldp_resize(body, end, 0, ULDP_ROW_HEAD + own->length)) return false;
  memset(uldp_row(body, end), 0, ULDP_ROW_HEAD);
  memcpy(uldp_row(body, end), own->id, 16);
  uldp_little_endian(uldp_row(body, end) + 28, own->length, 4);
  memcpy(uldp_row(body, end) + ULDP_ROW_HEAD, own->message, own->length);
  return true;
}
/* Takes the first row that is due, and leases it. */
static inline void uldp_row_take(uldp_body *body, size_t at, uldp_stepping *own) {
  uint8_t *row = uldp_row(body, at);
  if (own->found || uldp_next(body, at, own->now_ms) > own->due_ms) return;
  own->length = uldp_row_length(body, at);
  own->too_long |= own->length > own->room;
  if (own->length > own->room) return;
  own->found = true;
  own->attempts = uldp_read(row + 24, 4);
  memcpy(own->id, row, 16);
  memcpy(own->out, row + ULDP_ROW_HEAD, own->length);
  uldp_little_endian(row + 16, own->next_ms, 8);
}
/* Removes a row, or says when it is due; returns whether it was removed. */
static inline bool uldp_row_settle(uldp_body *body, size_t at, uldp_stepping *own) {
  uint8_t *row = uldp_row(body, at);
  bool own_row = !memcmp(row, own->id, 16);
  if (own_row && !own->next_ms) return uldp_resize(body, at, uldp_after(body, at) - at, 0);
  if (own_row) uldp_little_endian(row + 16, own->next_ms, 8);
  if (own_row && own->attempted) uldp_little_endian(row + 24, own->attempts + 1, 4);
  if (!own_row && uldp_next(body, at, own->now_ms) < own->others_ms) uldp_little_endian(row + 16, own->others_ms, 8);
  return false;
}
static inline uldp_edited uldp_step_edit(void *edit_ctx, uldp_entry *entry) {
  uldp_stepping *own = (uldp_stepping *)edit_ctx;
  uldp_body body;
  size_t rows = 0;
  bool damaged;
  own->status = uldp_body_of(entry, "queue", &body);
  damaged = own->status == ULDP_DAMAGED || (!own->status && !uldp_rows_are_whole(&body));
  if (own->status && !damaged) return ULDP_UNCHANGED;
  own->status = ULDP_OK;
  own->found = false;
  if (damaged) body.length = 0;
  if (damaged) own->queue->set_aside = true;
  if (own->round) own->round->again_ms = 0;
  for (size_t at = 0; at < body.length;) {
    if (own->step == ULDP_TAKE) uldp_row_take(&body, at, own);
    if (own->step == ULDP_SETTLE && uldp_row_settle(&body, at, own)) continue;
    uint64_t next = uldp_next(&body, at, own->now_ms);
    if (own->round && (!rows || next < own->round->again_ms)) own->round->again_ms = next > own->now_ms ? next : own->now_ms;
    rows++;
    at = uldp_after(&body, at);
  }
  if (own->round) own->round->waiting = rows;
  if (own->step == ULDP_ADD && (rows >= own->queue->most || !uldp_row_add(&body, own))) own->status = ULDP_FULL;
  if (!damaged && (own->status == ULDP_FULL || (own->step == ULDP_TAKE && !own->found))) return ULDP_UNCHANGED;
  uldp_sealed(entry, "queue", &body);
  return damaged ? ULDP_SET_ASIDE : ULDP_CHANGED;
}
static inline uldp_status uldp_stepped(uldp_stepping *own, uldp_step step) {
  own->step = step;
  own->now_ms = own->queue->clock(own->queue->clock_ctx).now_ms;
  uldp_status stored = own->queue->store.change(own->queue->store.ctx, "queue", uldp_step_edit, own);
  return stored ? stored : own->status;
}
static inline bool uldp_begun(uldp_stepping *own, uldp_queue *queue, uldp_draws draws) {
  memset(own, 0, sizeof *own);
  own->queue = queue;
  own->draws = draws;
  return queue && queue->store.change && queue->clock && draws.below;
}

/* Puts a message into the queue, where a restart finds it, and gives its id. ULDP_FULL if there is no room. */
static inline uldp_status uldp_add(uldp_queue *queue, const uint8_t *message, size_t length, uldp_draws draws, uint8_t id[16]) {
  uldp_stepping own;
  if (!uldp_begun(&own, queue, draws) || !message || !length || length > UINT32_MAX) return ULDP_WRONG;
  own.message = message;
  own.length = length;
  uldp_id(own.id, draws);
  if (id) memcpy(id, own.id, 16);
  return uldp_stepped(&own, ULDP_ADD);
}

/* Whether other messages would get the same answer now: there is none, or the server asks this sender to wait. */
static inline bool uldp_is_of_sender(const uldp_answer *answer) {
  return !answer->status || ((answer->status == 429 || answer->status == 503) && !uldp_has_reason(answer));
}
/* When the next attempt is: 0 if there is none. A random part lets devices come back at different moments. */
static inline void uldp_judge(uldp_stepping *own, const uldp_answer *answer, uldp_round *round) {
  int status = answer->status;
  uint64_t now = own->queue->clock(own->queue->clock_ctx).now_ms, asked = 0, wait = UINT64_C(500);
  own->next_ms = own->others_ms = 0;
  own->attempted = true;
  if (status == 202) {
    round->taken++;
  } else if (status == 413 || status == 422) {
    round->refused++;
  } else if (!status || status == 408 || status == 429 || (status >= 500 && status < 600)) {
    for (uint64_t i = 0; i < own->attempts && wait < ULDP_LONGEST_BACKOFF_MS; i++) wait *= 2;
    if (wait > ULDP_LONGEST_BACKOFF_MS) wait = ULDP_LONGEST_BACKOFF_MS;
    wait = wait / 2 + uldp_below(own->draws, wait / 2 + 1);
    if (status) asked = answer->retry_after_s < ULDP_LONGEST_WAIT_MS / 1000 ? 1000 * answer->retry_after_s : ULDP_LONGEST_WAIT_MS;
    own->next_ms = now + (asked > wait ? asked : wait);
    if (asked && uldp_is_of_sender(answer)) own->others_ms = now + asked;
  } else {
    round->needs_you = status;
    own->next_ms = now;
    own->attempted = false;
  }
}
/* Runs one round: each message that is due gets one attempt at the most. `message` has room for the longest message; those for
 * which it has none stay, and the status says so. Call it at start, when the network returns, and at `again_ms`. Three
 * attempts in a row without an answer, or with 429 or 503, end the round. */
static inline uldp_round uldp_flush(uldp_queue *queue, uldp_post post, void *post_ctx, uldp_draws draws, uint8_t *message,
                                    size_t room) {
  uldp_stepping own;
  uldp_round round;
  uldp_answer answer;
  int silent = 0;
  memset(&round, 0, sizeof round);
  round.status = ULDP_WRONG;
  if (!uldp_begun(&own, queue, draws) || !post || !message) return round;
  own.out = message;
  own.room = room;
  own.round = &round;
  own.due_ms = queue->clock(queue->clock_ctx).now_ms;
  for (size_t attempts = 0; attempts < queue->most && silent < 3 && !round.needs_you; attempts++) {
    own.next_ms = queue->clock(queue->clock_ctx).now_ms + queue->limit_ms + ULDP_SLACK_MS;
    if ((round.status = uldp_stepped(&own, ULDP_TAKE))) return round;
    if (!own.found) break;
    memset(&answer, 0, sizeof answer);
    post(post_ctx, message, own.length, &answer);
    silent = uldp_is_of_sender(&answer) ? silent + 1 : 0;
    uldp_judge(&own, &answer, &round);
    if ((round.status = uldp_stepped(&own, ULDP_SETTLE))) return round;
  }
  if (own.too_long) round.status = ULDP_WRONG;
  return round;
}

#ifdef __cplusplus
}
#endif

#endif
