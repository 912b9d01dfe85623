/* A disk that fails when it is told to, for the process that has this library preloaded.

   Writes and syncs of files whose name holds $DISK_FILES are watched.  disk_plan() says which of the next ones fails, and
   how; disk_trace() writes all of them down, so that a test can make up what a power failure would have left.
   tests/disk.py is the other side. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { WRITE = 1, SYNC = 2, TRUNCATE = 4 };
enum { FAIL = 0, SHORT = 1, DIE = 2 };

static int plan_operations, plan_way, plan_error, plan_after, plan_times;
static int trace = -1;
static long failures;

/* The next operations of these kinds: `after` of them work, then `times` go wrong (-1: all). */
void disk_plan(int operations, int way, int error, int after, int times) {
    plan_operations = operations; plan_way = way; plan_error = error; plan_after = after; plan_times = times;
}

long disk_failures(void) { return failures; }

void disk_trace(int descriptor) { trace = descriptor; }

static int watched(int descriptor, char *name, size_t size) {
    const char *wanted = getenv("DISK_FILES");
    char link[64];
    if (!wanted) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, name, size - 1);
    if (length < 0) return 0;
    name[length] = 0;
    return strstr(name, wanted) && !strstr(name, ".lock") && !strstr(name, "-shm");
}

static int goes_wrong(int operation) {
    if (!(plan_operations & operation) || !plan_times) return 0;
    if (plan_after > 0) { plan_after--; return 0; }
    if (plan_times > 0) plan_times--;
    failures++;
    return 1;
}

static ssize_t plainly(const void *data, size_t length) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = dlsym(RTLD_NEXT, "write");
    const char *next = data;
    while (length) {
        ssize_t done = real(trace, next, length);
        if (done < 0) return -1;
        next += done; length -= done;
    }
    return 0;
}

/* kind, length of name, offset, length of data; name; data */
static void noted(char kind, const char *name, int64_t offset, const void *data, int64_t length) {
    if (trace < 0) return;
    int64_t head[4] = {kind, (int64_t)strlen(name), offset, length};
    plainly(head, sizeof head);
    plainly(name, strlen(name));
    if (data) plainly(data, length);
}

static ssize_t written(int descriptor, const void *data, size_t length, off_t offset,
                       ssize_t (*real)(int, const void *, size_t, off_t)) {
    char name[4096];
    if (descriptor == trace || !watched(descriptor, name, sizeof name)) return real(descriptor, data, length, offset);
    if (goes_wrong(WRITE)) {
        if (plan_way == FAIL) { errno = plan_error; return -1; }
        ssize_t half = real(descriptor, data, length / 2, offset);
        if (plan_way == DIE) kill(getpid(), SIGKILL);
        return half;
    }
    ssize_t done = real(descriptor, data, length, offset);
    if (done > 0) noted('w', name, offset, data, done);
    return done;
}

ssize_t pwrite(int descriptor, const void *data, size_t length, off_t offset) {
    static ssize_t (*real)(int, const void *, size_t, off_t);
    if (!real) real = dlsym(RTLD_NEXT, "pwrite");
    return written(descriptor, data, length, offset, real);
}

ssize_t pwrite64(int descriptor, const void *data, size_t length, off_t offset) {
    static ssize_t (*real)(int, const void *, size_t, off_t);
    if (!real) real = dlsym(RTLD_NEXT, "pwrite64");
    return written(descriptor, data, length, offset, real);
}

static int synced(int descriptor, int (*real)(int)) {
    char name[4096];
    if (!watched(descriptor, name, sizeof name)) return real(descriptor);
    if (goes_wrong(SYNC)) {
        if (plan_way == DIE) kill(getpid(), SIGKILL);
        errno = plan_error;
        return -1;
    }
    int done = real(descriptor);
    if (!done) noted('s', name, 0, NULL, 0);
    return done;
}

int fsync(int descriptor) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fsync");
    return synced(descriptor, real);
}

int fdatasync(int descriptor) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fdatasync");
    return synced(descriptor, real);
}

static int cut(int descriptor, off_t length, int (*real)(int, off_t)) {
    char name[4096];
    if (!watched(descriptor, name, sizeof name)) return real(descriptor, length);
    if (goes_wrong(TRUNCATE)) {
        if (plan_way == DIE) kill(getpid(), SIGKILL);
        errno = plan_error;
        return -1;
    }
    int done = real(descriptor, length);
    if (!done) noted('t', name, length, NULL, 0);
    return done;
}

int ftruncate(int descriptor, off_t length) {
    static int (*real)(int, off_t);
    if (!real) real = dlsym(RTLD_NEXT, "ftruncate");
    return cut(descriptor, length, real);
}

int ftruncate64(int descriptor, off_t length) {
    static int (*real)(int, off_t);
    if (!real) real = dlsym(RTLD_NEXT, "ftruncate64");
    return cut(descriptor, length, real);
}

/* A mark in the trace, of whoever is traced. */
void disk_mark(long number) { noted('m', "", number, NULL, 0); }
