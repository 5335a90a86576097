/* Where a device keeps its ledger and its queue: entries by name, without allocation.
 *
 * A store has one operation, `change`. It gives the bytes of an entry to an edit, which is a pure function, and makes
 * durable what the edit made of them. Changes of one entry, of all threads and processes, happen one after the other:
 * that is the promise of whoever writes a store. uldp_files.h has one in files.
 */
#ifndef ULDP_STORE_H
#define ULDP_STORE_H

#include "uldp.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  ULDP_OK, ULDP_WRONG, ULDP_OVER_BUDGET, ULDP_REPORTED, ULDP_TIME, ULDP_CLOCK, ULDP_DAMAGED, ULDP_FULL, ULDP_OPEN, ULDP_FAILED
} uldp_status;

/* A line for the log of a program; it names no value. */
static inline const char *uldp_says(uldp_status status) {
  static const char *const says[] = {
      "done",
      "a value, the time, the part or the room for the message is wrong: see uldp_encode and uldp_is_time",
      "the report would exceed the budget of the user; report again from until_ms on",
      "the device has reported in this window, or in a later one",
      "the time of the observation is too far from the clock; report when you observe, in milliseconds",
      "the clock has come further than the time since an earlier report; set it right, or if it is right now, restart the machine",
      "the ledger is damaged, of a later version or another entry; restore it, or remove it and spend all budgets once more",
      "the entry is larger than the memory of the store, or the queue has its most messages; send some, or give more memory",
      "others may read or write this file, or it is no file; give it the mode 0600",
      "the store could not read or write; errno says why"};
  return says[status];
}

/* The bytes of an entry. An edit changes them in place, and may make them longer, up to `room`. */
typedef struct {
  uint8_t *bytes;
  size_t length, room;
  bool exists;
} uldp_entry;
/* What is to become of what an edit has made. ULDP_SET_ASIDE writes it too, and keeps the earlier entry under another name. */
typedef enum { ULDP_UNCHANGED, ULDP_CHANGED, ULDP_SET_ASIDE } uldp_edited;
typedef uldp_edited (*uldp_edit)(void *edit_ctx, uldp_entry *entry);

/* `change` calls `edit` once, or never if it cannot read the entry. It returns ULDP_OK if nothing was to be changed, or if
 * what was changed outlives a power cut; ULDP_FULL if the entry has no room; ULDP_OPEN; or ULDP_FAILED. */
typedef struct {
  uldp_status (*change)(void *ctx, const char *name, uldp_edit edit, void *edit_ctx);
  void *ctx;
} uldp_store;

/* The time of a machine, and how long it has been running: by a name of this run, empty if that is not known. */
typedef struct {
  uint64_t now_ms, elapsed_ms;
  char boot[40];
} uldp_clock;

/* ---- an entry: a version, its name and its SHA-256 are around its body ---- */

#define ULDP_ENTRY_HEAD 16
#define ULDP_ENTRY_TAIL 32
typedef struct {
  uint8_t *at;
  size_t length, room;
} uldp_body;

static inline void uldp_entry_head(uint8_t head[ULDP_ENTRY_HEAD], const char *name) {
  memset(head, 0, ULDP_ENTRY_HEAD);
  memcpy(head, "uldp\1", 5);
  for (size_t i = 5; i < ULDP_ENTRY_HEAD && *name; i++) head[i] = (uint8_t)*name++;
}
static inline void uldp_entry_tail(uint8_t tail[ULDP_ENTRY_TAIL], const uint8_t *bytes, size_t count) {
  uldp_sha256 hash;
  uldp_sha256_begin(&hash);
  for (size_t i = 0; i < count; i++) uldp_sha256_add(&hash, bytes[i]);
  uldp_sha256_end(&hash);
  for (int i = 0; i < ULDP_ENTRY_TAIL; i++) tail[i] = uldp_sha256_byte(&hash, i);
}
/* Finds the body of an entry, an empty one if there is no entry. */
static inline uldp_status uldp_body_of(const uldp_entry *entry, const char *name, uldp_body *body) {
  uint8_t head[ULDP_ENTRY_HEAD], tail[ULDP_ENTRY_TAIL];
  if (entry->room < ULDP_ENTRY_HEAD + ULDP_ENTRY_TAIL) return ULDP_FULL;
  body->at = entry->bytes + ULDP_ENTRY_HEAD;
  body->length = 0;
  body->room = entry->room - ULDP_ENTRY_HEAD - ULDP_ENTRY_TAIL;
  if (!entry->exists) return ULDP_OK;
  if (entry->length < ULDP_ENTRY_HEAD + ULDP_ENTRY_TAIL) return ULDP_DAMAGED;
  body->length = entry->length - ULDP_ENTRY_HEAD - ULDP_ENTRY_TAIL;
  uldp_entry_head(head, name);
  uldp_entry_tail(tail, entry->bytes, entry->length - ULDP_ENTRY_TAIL);
  if (memcmp(entry->bytes, head, sizeof head) || memcmp(body->at + body->length, tail, sizeof tail)) return ULDP_DAMAGED;
  return ULDP_OK;
}
static inline void uldp_sealed(uldp_entry *entry, const char *name, const uldp_body *body) {
  uldp_entry_head(entry->bytes, name);
  entry->length = ULDP_ENTRY_HEAD + body->length + ULDP_ENTRY_TAIL;
  entry->exists = true;
  uldp_entry_tail(body->at + body->length, entry->bytes, ULDP_ENTRY_HEAD + body->length);
}
/* Makes `length` bytes at a place of a body into `wanted` bytes; false without room. */
static inline bool uldp_resize(uldp_body *body, size_t place, size_t length, size_t wanted) {
  if (wanted > length && wanted - length > body->room - body->length) return false;
  memmove(body->at + place + wanted, body->at + place + length, body->length - place - length);
  body->length = body->length - length + wanted;
  return true;
}
static inline uint64_t uldp_read(const uint8_t *bytes, size_t count) {
  uint64_t number = 0;
  while (count-- > 0) number = number << 8 | bytes[count];
  return number;
}

#ifdef __cplusplus
}
#endif

#endif
