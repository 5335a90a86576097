/* A store in files of one folder, for Linux, macOS and the BSDs, and the clock of the system.
 *
 * A change writes the whole file aside, synchronizes it to the disk and renames it, so that a crash leaves the file before or
 * after the change. Processes and threads wait for each other by a lock, on a file beside it with `.lock` behind its name,
 * which the kernel opens again when a process dies. The lock holds on one machine: no folder of a network drive. Only the
 * owner may read the files. Compile as gnu11 or later, which compilers take without -std, or with -D_DEFAULT_SOURCE.
 */
#ifndef ULDP_FILES_H
#define ULDP_FILES_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "uldp_store.h"

#ifndef O_NOFOLLOW
#error "compile with -std=gnu11 or -D_DEFAULT_SOURCE, so that the headers of the system declare POSIX"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* One thread uses one of these at a time; its memory must be as large as the largest entry. */
typedef struct {
  const char *folder; /* which exists */
  uint8_t *memory;
  size_t room;
} uldp_files;

#define ULDP_PATH 1024
static inline bool uldp_path(char path[ULDP_PATH], const uldp_files *files, const char *name, const char *end) {
  int length = snprintf(path, ULDP_PATH, "%s/%s%s", files->folder, name, end);
  if (length > 0 && length < ULDP_PATH) return true;
  errno = ENAMETOOLONG;
  return false;
}
/* Whether a file is still the one of a path: a lock on a removed file locks nothing. */
static inline bool uldp_is_at(int file, const char *path) {
  struct stat own, there;
  return !fstat(file, &own) && !lstat(path, &there) && own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}
static inline int uldp_locked(const char *path) {
  for (;;) {
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0) return -1;
    while (flock(lock, LOCK_EX))
      if (errno != EINTR) return close(lock), -1;
    if (uldp_is_at(lock, path)) return lock;
    close(lock);
  }
}
static inline bool uldp_synced(int file) {
#ifdef F_FULLFSYNC
  if (!fcntl(file, F_FULLFSYNC)) return true; /* fsync of macOS leaves bytes in the drive */
#endif
  return !fsync(file);
}
static inline uldp_status uldp_read_file(const char *path, uldp_entry *entry) {
  struct stat is;
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  entry->length = 0;
  if (file < 0) return errno == ENOENT ? ULDP_OK : errno == ELOOP ? ULDP_OPEN : ULDP_FAILED;
  uldp_status status = fstat(file, &is) ? ULDP_FAILED : !S_ISREG(is.st_mode) || (is.st_mode & 077) ? ULDP_OPEN : ULDP_OK;
  if (!status && (uint64_t)is.st_size > entry->room) status = ULDP_FULL;
  while (!status && entry->length < (size_t)is.st_size) {
    ssize_t got = read(file, entry->bytes + entry->length, (size_t)is.st_size - entry->length);
    if (got > 0) entry->length += (size_t)got;
    else if (!got || errno != EINTR) status = ULDP_FAILED;
  }
  entry->exists = !status;
  close(file);
  return status;
}
static inline bool uldp_write_file(const char *path, const uldp_entry *entry) {
  size_t done = 0;
  if (unlink(path) && errno != ENOENT) return false; /* a crash may have left it */
  int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return false;
  while (done < entry->length) {
    ssize_t put = write(file, entry->bytes + done, entry->length - done);
    if (put > 0) done += (size_t)put;
    else if (errno != EINTR) break;
  }
  bool written = done == entry->length && uldp_synced(file);
  return !close(file) && written;
}
/* Gives a damaged file a second name, which no other has: NAME.damaged-1, -2 and so on. */
static inline bool uldp_aside(const uldp_files *files, const char *name, const char *path) {
  char other[ULDP_PATH], end[32];
  for (int number = 1; number < 1000; number++) {
    snprintf(end, sizeof end, ".damaged-%d", number);
    if (!uldp_path(other, files, name, end)) return false;
    if (!link(path, other)) return true;
    if (errno != EEXIST) return false;
  }
  return false;
}
/* Puts a file in the place of another, also after a power cut, unless somebody has removed the lock. */
static inline bool uldp_renamed(const uldp_files *files, const char *from, const char *to, int lock, const char *lock_path) {
  if (!uldp_is_at(lock, lock_path) || rename(from, to)) return false;
  int folder = open(files->folder, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
  if (folder < 0) return false;
  bool synced = uldp_synced(folder);
  return !close(folder) && synced;
}
static inline uldp_status uldp_files_change(void *ctx, const char *name, uldp_edit edit, void *edit_ctx) {
  const uldp_files *files = (const uldp_files *)ctx;
  char path[ULDP_PATH], lock_path[ULDP_PATH], new_path[ULDP_PATH];
  uldp_entry entry;
  entry.bytes = files->memory;
  entry.length = 0;
  entry.room = files->room;
  entry.exists = false;
  if (!uldp_path(path, files, name, "") || !uldp_path(lock_path, files, name, ".lock") || !uldp_path(new_path, files, name, ".new"))
    return ULDP_FAILED;
  int lock = uldp_locked(lock_path);
  if (lock < 0) return ULDP_FAILED;
  uldp_status status = uldp_read_file(path, &entry);
  uldp_edited edited = status ? ULDP_UNCHANGED : edit(edit_ctx, &entry);
  if (edited == ULDP_SET_ASIDE && !uldp_aside(files, name, path)) status = ULDP_FAILED;
  if (edited != ULDP_UNCHANGED && !status &&
      (!uldp_write_file(new_path, &entry) || !uldp_renamed(files, new_path, path, lock, lock_path)))
    status = ULDP_FAILED;
  close(lock);
  return status;
}
static inline uldp_store uldp_file_store(uldp_files *files) {
  uldp_store store;
  store.change = uldp_files_change;
  store.ctx = files;
  return store;
}

static inline uint64_t uldp_milliseconds(clockid_t of) {
  struct timespec is;
  return clock_gettime(of, &is) ? 0 : (uint64_t)is.tv_sec * 1000 + (uint64_t)is.tv_nsec / 1000000;
}
static inline uint64_t uldp_now_ms(void) { return uldp_milliseconds(CLOCK_REALTIME); }
/* The clock of this machine. Only Linux names its runs. */
static inline uldp_clock uldp_system_clock(void *clock_ctx) {
  uldp_clock clock;
  (void)clock_ctx;
  memset(&clock, 0, sizeof clock);
#ifdef CLOCK_BOOTTIME
  FILE *run = fopen("/proc/sys/kernel/random/boot_id", "re");
  if (run && fread(clock.boot, 1, 36, run) != 36) clock.boot[0] = 0;
  if (run) fclose(run);
  clock.elapsed_ms = uldp_milliseconds(CLOCK_BOOTTIME);
#endif
  clock.now_ms = uldp_now_ms();
  return clock;
}

#ifdef __cplusplus
}
#endif

#endif
