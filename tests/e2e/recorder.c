/* Writes down, in order, what a process does to the files below BARA_DISK: preloaded, so that SQLite's own calls are
   seen too. One record: kind, two numbers, the lengths of two byte strings, the strings (see power_cuts.py).

   w path data offset    bytes were written            t path size      the file was cut or stretched
   c path                the file was made             s path           its content was synced (or a folder's names)
   r old new             it was renamed                u path           its name was removed
   m path                a folder was made             a - line         something was acknowledged (below BARA_ACKS)

   Memory maps are not seen: SQLite maps its -shm file only, which it makes anew after a crash. */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static const char *disk, *acks;
static int sink = -1;
static ssize_t (*plain_write)(int, const void *, size_t);

__attribute__((constructor)) static void begin(void) {
    disk = getenv("BARA_DISK");
    acks = getenv("BARA_ACKS");
    const char *log = getenv("BARA_RECORD");
    plain_write = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    int (*plain_open)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    if (disk && log) sink = plain_open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int below(const char *path, const char *folder) {
    size_t n = folder ? strlen(folder) : 0;
    return n && strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == 0);
}

static void note(char kind, const char *path, const void *data, uint64_t length, uint64_t number) {
    struct __attribute__((packed)) { char kind; uint64_t number, path, data; } head = {kind, number, strlen(path), length};
    struct iovec parts[] = {{&head, sizeof head}, {(void *)path, head.path}, {(void *)data, length}};
    if (sink < 0) return;
    ssize_t (*plain_writev)(int, const struct iovec *, int) =
        (ssize_t (*)(int, const struct iovec *, int))dlsym(RTLD_NEXT, "writev");
    size_t all = sizeof head + head.path + length;
    if (plain_writev(sink, parts, 3) != (ssize_t)all) abort();
}

/* Where a descriptor leads, if that is below the disk; 2 if it is an acknowledgement. */
static int where(int fd, char *path) {
    char link[64];
    if (sink < 0 || fd == sink) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, PATH_MAX - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return below(path, disk) ? 1 : below(path, acks) ? 2 : 0;
}

static int whole(int folder, const char *name, char *path) {
    if (sink < 0) return 0;
    if (name[0] == '/') snprintf(path, PATH_MAX, "%s", name);
    else if (folder == AT_FDCWD) {
        char here[PATH_MAX];
        if (!getcwd(here, sizeof here)) return 0;
        snprintf(path, PATH_MAX, "%s/%s", here, name);
    } else {
        if (!where(folder, path)) return 0;
        size_t n = strlen(path);
        snprintf(path + n, PATH_MAX - n, "/%s", name);
    }
    return below(path, disk);
}

static int opened(int fd, int existed, const char *path, int flags) {
    if (fd < 0) return fd;
    if (!existed) note('c', path, "", 0, 0);
    else if (flags & O_TRUNC) note('t', path, "", 0, 0);
    return fd;
}

#define OPEN(name) \
    int name(const char *given, int flags, ...) { \
        va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest); \
        REAL(int, #name, const char *, int, ...); \
        char path[PATH_MAX]; struct stat found; \
        if (!(flags & (O_CREAT | O_TRUNC)) || !whole(AT_FDCWD, given, path)) return real(given, flags, mode); \
        pthread_mutex_lock(&turn); \
        int existed = stat(path, &found) == 0; \
        int fd = opened(real(given, flags, mode), existed, path, flags); \
        pthread_mutex_unlock(&turn); \
        return fd; \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
    int name(int folder, const char *given, int flags, ...) { \
        va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest); \
        REAL(int, #name, int, const char *, int, ...); \
        char path[PATH_MAX]; struct stat found; \
        if (!(flags & (O_CREAT | O_TRUNC)) || !whole(folder, given, path)) return real(folder, given, flags, mode); \
        pthread_mutex_lock(&turn); \
        int existed = stat(path, &found) == 0; \
        int fd = opened(real(folder, given, flags, mode), existed, path, flags); \
        pthread_mutex_unlock(&turn); \
        return fd; \
    }
OPENAT(openat)
OPENAT(openat64)

static void wrote(int fd, const char *path, int kind, const void *data, ssize_t done, off_t offset) {
    if (done > 0 && kind == 2) note('a', "", data, done, 0);
    else if (done > 0) note('w', path, data, done, offset < 0 ? lseek(fd, 0, SEEK_CUR) - done : offset);
}

ssize_t write(int fd, const void *data, size_t length) {
    char path[PATH_MAX];
    int kind = where(fd, path);
    if (!kind) return plain_write ? plain_write(fd, data, length) : -1;
    pthread_mutex_lock(&turn);
    ssize_t done = plain_write(fd, data, length);
    wrote(fd, path, kind, data, done, -1);
    pthread_mutex_unlock(&turn);
    return done;
}

#define PWRITE(name, kind_of_offset) \
    ssize_t name(int fd, const void *data, size_t length, kind_of_offset offset) { \
        REAL(ssize_t, #name, int, const void *, size_t, kind_of_offset); \
        char path[PATH_MAX]; \
        int kind = where(fd, path); \
        if (!kind) return real(fd, data, length, offset); \
        pthread_mutex_lock(&turn); \
        ssize_t done = real(fd, data, length, offset); \
        wrote(fd, path, kind, data, done, offset); \
        pthread_mutex_unlock(&turn); \
        return done; \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

/* What nobody here is known to call must not be missed in silence. */
ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    char path[PATH_MAX];
    if (where(fd, path)) abort();
    return real(fd, parts, count);
}

#define TRUNCATE(name, kind_of_size) \
    int name(int fd, kind_of_size size) { \
        REAL(int, #name, int, kind_of_size); \
        char path[PATH_MAX]; \
        if (where(fd, path) != 1) return real(fd, size); \
        pthread_mutex_lock(&turn); \
        int code = real(fd, size); \
        if (code == 0) note('t', path, "", 0, size); \
        pthread_mutex_unlock(&turn); \
        return code; \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

#define SYNC(name) \
    int name(int fd) { \
        REAL(int, #name, int); \
        char path[PATH_MAX]; \
        if (where(fd, path) != 1) return real(fd); \
        pthread_mutex_lock(&turn); \
        int code = 0; /* the disk of this test is a list in a file: nothing need be waited for */ \
        note('s', path, "", 0, 0); \
        pthread_mutex_unlock(&turn); \
        return code; \
    }
SYNC(fsync)
SYNC(fdatasync)

int rename(const char *old, const char *new) {
    REAL(int, "rename", const char *, const char *);
    char from[PATH_MAX], to[PATH_MAX];
    if (!whole(AT_FDCWD, old, from) || !whole(AT_FDCWD, new, to)) return real(old, new);
    pthread_mutex_lock(&turn);
    int code = real(old, new);
    if (code == 0) note('r', from, to, strlen(to), 0);
    pthread_mutex_unlock(&turn);
    return code;
}

int unlink(const char *given) {
    REAL(int, "unlink", const char *);
    char path[PATH_MAX];
    if (!whole(AT_FDCWD, given, path)) return real(given);
    pthread_mutex_lock(&turn);
    int code = real(given);
    if (code == 0) note('u', path, "", 0, 0);
    pthread_mutex_unlock(&turn);
    return code;
}

int mkdir(const char *given, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    char path[PATH_MAX];
    if (!whole(AT_FDCWD, given, path)) return real(given, mode);
    pthread_mutex_lock(&turn);
    int code = real(given, mode);
    if (code == 0) note('m', path, "", 0, 0);
    pthread_mutex_unlock(&turn);
    return code;
}
