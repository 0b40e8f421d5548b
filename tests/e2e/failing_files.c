// Preloaded into a process: calls that write to files whose path contains
// FAILING_PATH fail with FAILING_ERRNO, after the first FAILING_AFTER of them.
// FAILING_CALL names one of: open, write, sync, rename, mkdir, link. A file
// layer that fails like a full disk, a read-only mount or a server that lost a
// file, without any of them.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_int matches;

static int fails(const char *call, const char *path) {
  const char *failing = getenv("FAILING_CALL");
  const char *part = getenv("FAILING_PATH");
  const char *after = getenv("FAILING_AFTER");
  if (!failing || !part || strcmp(call, failing) != 0 || !strstr(path, part))
    return 0;
  if (atomic_fetch_add(&matches, 1) < (after ? atoi(after) : 0))
    return 0;
  errno = atoi(getenv("FAILING_ERRNO"));
  return 1;
}

static int fails_at(const char *call, int file) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const int saved = errno;
  const ssize_t size = readlink(link, path, sizeof path - 1);
  errno = saved;
  if (size < 0)
    return 0;
  path[size] = 0;
  return fails(call, path);
}

#define SYSTEM(result, name, parameters)                                       \
  static result(*system_call) parameters;                                      \
  if (!system_call)                                                            \
    system_call = (result(*) parameters)dlsym(RTLD_NEXT, #name)

#define OPEN(name)                                                             \
  int name(const char *path, int flags, ...) {                                 \
    SYSTEM(int, name, (const char *, int, ...));                               \
    va_list rest;                                                              \
    va_start(rest, flags);                                                     \
    const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;            \
    va_end(rest);                                                              \
    if (flags & (O_WRONLY | O_RDWR | O_CREAT) && fails("open", path))          \
      return -1;                                                               \
    return system_call(path, flags, mode);                                     \
  }
OPEN(open)
OPEN(open64)

#define FOPEN(name)                                                            \
  FILE *name(const char *path, const char *mode) {                             \
    SYSTEM(FILE *, name, (const char *, const char *));                        \
    if (strpbrk(mode, "wa+") && fails("open", path))                           \
      return NULL;                                                             \
    return system_call(path, mode);                                            \
  }
FOPEN(fopen)
FOPEN(fopen64)

ssize_t write(int file, const void *data, size_t size) {
  SYSTEM(ssize_t, write, (int, const void *, size_t));
  return fails_at("write", file) ? -1 : system_call(file, data, size);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
  SYSTEM(ssize_t, writev, (int, const struct iovec *, int));
  return fails_at("write", file) ? -1 : system_call(file, parts, count);
}

#define PWRITE(name, position)                                                 \
  ssize_t name(int file, const void *data, size_t size, position at) {         \
    SYSTEM(ssize_t, name, (int, const void *, size_t, position));              \
    return fails_at("write", file) ? -1 : system_call(file, data, size, at);   \
  }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

int fsync(int file) {
  SYSTEM(int, fsync, (int));
  return fails_at("sync", file) ? -1 : system_call(file);
}

int rename(const char *from, const char *to) {
  SYSTEM(int, rename, (const char *, const char *));
  return fails("rename", from) || fails("rename", to) ? -1
                                                      : system_call(from, to);
}

int mkdir(const char *path, mode_t mode) {
  SYSTEM(int, mkdir, (const char *, mode_t));
  return fails("mkdir", path) ? -1 : system_call(path, mode);
}

int symlink(const char *to, const char *path) {
  SYSTEM(int, symlink, (const char *, const char *));
  return fails("link", path) ? -1 : system_call(to, path);
}
