/* A store in memory, of the entries "ledger" and "queue", and a clock that a test sets. */
#include <inttypes.h>
#include <stdio.h>
#include "uldp_ledger.h"
#include "uldp_queue.h"

#define MEMORY (1 << 22)
typedef struct {
  uint8_t bytes[MEMORY];
  size_t length;
  bool exists;
} kept_entry;
static kept_entry in_ledger, in_queue, in_aside;
static uldp_clock set_clock;

static kept_entry *entry_of(const char *name) { return strcmp(name, "ledger") ? &in_queue : &in_ledger; }

static uldp_status change(void *ctx, const char *name, uldp_edit edit, void *edit_ctx) {
  static uint8_t bytes[MEMORY];
  kept_entry *kept = entry_of(name);
  uldp_entry entry;
  size_t *room = (size_t *)ctx;
  if (kept->length > *room) return ULDP_FULL;
  memcpy(bytes, kept->bytes, kept->length);
  entry.bytes = bytes;
  entry.length = kept->length;
  entry.room = *room;
  entry.exists = kept->exists;
  uldp_edited edited = edit(edit_ctx, &entry);
  if (edited == ULDP_UNCHANGED) return ULDP_OK;
  if (edited == ULDP_SET_ASIDE) in_aside = *kept;
  memcpy(kept->bytes, bytes, entry.length);
  kept->length = entry.length;
  kept->exists = true;
  return ULDP_OK;
}

static uldp_clock clock_of(void *ctx) {
  (void)ctx;
  return set_clock;
}

static size_t room_of_memory = MEMORY;
static uldp_store memory_store(void) {
  uldp_store store;
  store.change = change;
  store.ctx = &room_of_memory;
  return store;
}
