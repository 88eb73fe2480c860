/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Files that the host maps: what a program can do with them, and what not. A plain program: its argument says
 * what it does. test_files.c gives it /data (DATA_SIZE bytes, byte i is pattern(i)), /folder/inner/text
 * ("hello\n") and /empty.
 */
#include "sys_check.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define DATA_SIZE 12411
#define PAGE 4096

static unsigned char pattern(size_t i) {
    return (unsigned char)(i * 7 + (i >> 8));
}

static bool is_pattern(const unsigned char *bytes, size_t from, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != pattern(from + i))
            return false;
    return true;
}

static unsigned char buffer[DATA_SIZE + PAGE];

static void reads_move_the_position(void) {
    int file = open("/data", O_RDONLY);
    CHECK(file >= 3);
    CHECK(read(file, buffer, 100) == 100 && is_pattern(buffer, 0, 100));
    CHECK(lseek(file, 0, SEEK_CUR) == 100);
    struct iovec vector[3] = {{buffer, 10}, {NULL, 0}, {buffer + 10, 5000}};
    CHECK(readv(file, vector, 3) == 5010 && is_pattern(buffer, 100, 5010));
    CHECK(pread(file, buffer, 64, 4090) == 64 && is_pattern(buffer, 4090, 64));
    CHECK(preadv(file, vector, 3, 7) == 5010 && is_pattern(buffer, 7, 5010));
    CHECK(lseek(file, 0, SEEK_CUR) == 5110);
    CHECK(read(file, buffer, sizeof buffer) == DATA_SIZE - 5110 &&
          is_pattern(buffer, 5110, DATA_SIZE - 5110));
    CHECK(read(file, buffer, 1) == 0);
    CHECK(pread(file, buffer, 1, DATA_SIZE) == 0 && pread(file, buffer, 1, INT64_MAX) == 0);
    CHECK(pread(file, buffer, 100, DATA_SIZE - 1) == 1 && buffer[0] == pattern(DATA_SIZE - 1));
    CHECK_ERROR(pread(file, buffer, 1, -1), EINVAL);
    CHECK_ERROR(preadv(file, vector, 3, -1), EINVAL);
    CHECK_ERROR(syscall(SYS_readv, file, vector, 2000), EINVAL);
    CHECK(close(file) == 0);
    CHECK_ERROR(read(file, buffer, 1), EBADF);
}

static void seeks_go_where_they_should(void) {
    int file = open("/data", O_RDONLY);
    CHECK(lseek(file, -11, SEEK_END) == DATA_SIZE - 11);
    CHECK(lseek(file, -5, SEEK_CUR) == DATA_SIZE - 16);
    CHECK(read(file, buffer, 3) == 3 && is_pattern(buffer, DATA_SIZE - 16, 3));
    CHECK(lseek(file, 1 << 30, SEEK_SET) == 1 << 30 && read(file, buffer, 1) == 0);
    CHECK_ERROR(lseek(file, -1, SEEK_SET), EINVAL);
    CHECK_ERROR(syscall(SYS_lseek, file, 0, 77), EINVAL);
    CHECK_ERROR(lseek(file, INT64_MAX, SEEK_CUR), EOVERFLOW);
    CHECK(lseek(file, 5, SEEK_DATA) == 5 && lseek(file, 5, SEEK_HOLE) == DATA_SIZE);
    CHECK_ERROR(lseek(file, DATA_SIZE, SEEK_DATA), ENXIO);
    CHECK(close(file) == 0);
}

static void duplicates_share_the_position(void) {
    int file = open("/data", O_RDONLY | O_CLOEXEC);
    int other = open("data", O_RDONLY);
    int copy = dup(file);
    CHECK(fcntl(file, F_GETFD) == FD_CLOEXEC && fcntl(copy, F_GETFD) == 0);
    CHECK((fcntl(file, F_GETFL) & O_ACCMODE) == O_RDONLY);
    CHECK(read(file, buffer, 10) == 10 && lseek(copy, 0, SEEK_CUR) == 10 && lseek(other, 0, SEEK_CUR) == 0);
    CHECK(close(file) == 0 && read(copy, buffer, 10) == 10 && is_pattern(buffer, 10, 10));
    CHECK(dup2(other, copy) == copy && lseek(copy, 0, SEEK_CUR) == 0);
    CHECK(dup2(copy, copy) == copy && close(copy) == 0 && close(other) == 0);
    /* There is an end to them, and they come back. */
    int files[400], count = 0;
    while (count < 400 && (files[count] = open("/data", O_RDONLY)) >= 0)
        count++;
    CHECK(count >= 32 && count < 400 && (errno == EMFILE || errno == ENFILE));
    while (count > 0)
        CHECK(close(files[--count]) == 0);
    CHECK((file = open("/data", O_RDONLY)) >= 0 && close(file) == 0);
}

static void check_status(const struct stat *status, off_t size) {
    CHECK(S_ISREG(status->st_mode) && (status->st_mode & 0777) == 0444);
    CHECK(status->st_size == size && status->st_nlink == 1 && status->st_blocks == (size + 511) / 512);
}

static void status_is_that_of_a_file(void) {
    struct stat one, two;
    int file = open("/data", O_RDONLY);
    CHECK(fstat(file, &one) == 0);
    check_status(&one, DATA_SIZE);
    CHECK(stat("/data", &two) == 0 && two.st_ino == one.st_ino);
    check_status(&two, DATA_SIZE);
    CHECK(lstat("//./data", &two) == 0 && two.st_ino == one.st_ino);
    CHECK(fstatat(AT_FDCWD, "folder/../data", &two, 0) == 0 && two.st_ino == one.st_ino);
    CHECK(fstatat(file, "", &two, AT_EMPTY_PATH) == 0 && two.st_ino == one.st_ino);
    CHECK(stat("/folder/inner/text", &two) == 0 && two.st_ino != one.st_ino);
    check_status(&two, 6);
    CHECK(stat("/empty", &two) == 0);
    check_status(&two, 0);
    uint64_t extended[32] = {0}; /* struct statx, which musl has not got: stx_size is at 40 */
    CHECK(syscall(SYS_statx, AT_FDCWD, "/data", 0, 0x7ff, extended) == 0 && extended[5] == DATA_SIZE);
    CHECK(close(file) == 0);
}

static void paths_are_followed(void) {
    struct stat status;
    char text[16];
    CHECK(stat("/folder", &status) == 0 && S_ISDIR(status.st_mode));
    CHECK(stat("/folder/inner/", &status) == 0 && S_ISDIR(status.st_mode));
    CHECK(stat("/", &status) == 0 && S_ISDIR(status.st_mode));
    CHECK_ERROR(stat("/fold", &status), ENOENT);
    CHECK_ERROR(stat("/data2", &status), ENOENT);
    CHECK_ERROR(stat("/dat", &status), ENOENT);
    CHECK_ERROR(stat("/data/", &status), ENOTDIR);
    CHECK_ERROR(stat("/data/.", &status), ENOTDIR);
    CHECK_ERROR(stat("/data/x", &status), ENOTDIR);
    CHECK_ERROR(stat("/none/../data", &status), ENOENT);
    CHECK_ERROR(stat("/folder/inner/text2", &status), ENOENT);
    CHECK_ERROR(open("/etc/passwd", O_RDONLY), ENOENT);
    CHECK_ERROR(open("/../etc/passwd", O_RDONLY), ENOENT);
    CHECK_ERROR(open("/proc/self/exe", O_RDONLY), ENOENT);
    CHECK_ERROR(open((const char *)8, O_RDONLY), EFAULT);
    CHECK_ERROR(open("/data", O_RDONLY | O_DIRECTORY), ENOTDIR);
    static char deep[4200];
    for (size_t i = 0; i + 2 < 4000; i += 2)
        memcpy(deep + i, "./", 2);
    memcpy(deep + strlen(deep), "data", sizeof "data");
    CHECK(stat(deep, &status) == 0 && status.st_size == DATA_SIZE);
    memset(deep, 'x', 300);
    CHECK_ERROR(stat(deep, &status), ENAMETOOLONG);
    CHECK(access("/data", F_OK) == 0 && access("/data", R_OK) == 0);
    CHECK(faccessat(AT_FDCWD, "/data", R_OK, 0) == 0);
    CHECK_ERROR(access("/data", W_OK), EROFS);
    CHECK_ERROR(access("/data", X_OK), EACCES);
    CHECK_ERROR(access("/none", F_OK), ENOENT);
    CHECK_ERROR(readlink("/data", text, sizeof text), EINVAL);
    CHECK_ERROR(chdir("/data"), ENOTDIR);
    char *real = realpath("folder//inner/../inner/text", NULL);
    CHECK(real && strcmp(real, "/folder/inner/text") == 0);
    free(real);
}

static void nothing_can_be_written(void) {
    CHECK_ERROR(open("/data", O_WRONLY), EROFS);
    CHECK_ERROR(open("/data", O_RDWR), EROFS);
    CHECK_ERROR(open("/data", O_RDONLY | O_CREAT, 0600), EROFS);
    CHECK_ERROR(open("/data", O_RDONLY | O_TRUNC), EROFS);
    CHECK_ERROR(open("/data", O_WRONLY | O_CREAT | O_EXCL, 0600), EEXIST);
    CHECK_ERROR(open("/new", O_WRONLY | O_CREAT, 0600), EROFS);
    CHECK_ERROR(unlink("/data"), EROFS);
    CHECK_ERROR(rename("/data", "/other"), EROFS);
    CHECK_ERROR(chmod("/data", 0600), EROFS);
    CHECK_ERROR(truncate("/data", 0), EROFS);
    CHECK_ERROR(mkdir("/data", 0700), EEXIST);
    int file = open("/data", O_RDONLY);
    CHECK_ERROR(write(file, "x", 1), EBADF);
    CHECK_ERROR(pwrite(file, "x", 1, 0), EBADF);
    struct iovec vector = {buffer, 1};
    CHECK_ERROR(writev(file, &vector, 1), EBADF);
    CHECK_ERROR(ftruncate(file, 0), EINVAL);
    CHECK(fsync(file) == 0);
    CHECK(close(file) == 0);
}

static void locks_are_granted(void) {
    int file = open("/data", O_RDONLY);
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 5};
    CHECK(fcntl(file, F_SETLK, &lock) == 0 && fcntl(file, F_SETLKW, &lock) == 0);
    lock.l_type = F_WRLCK;
    CHECK(fcntl(file, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK && lock.l_start == 10);
    CHECK(fcntl(file, F_SETLK, &lock) == 0);
    lock.l_type = 77;
    CHECK_ERROR(fcntl(file, F_SETLK, &lock), EINVAL);
    CHECK_ERROR(fcntl(file, F_SETLK, (void *)8), EFAULT);
    CHECK(flock(file, LOCK_SH) == 0 && flock(file, LOCK_UN) == 0);
    CHECK_ERROR(flock(200, LOCK_SH), EBADF);
    struct pollfd poll_entry = {file, POLLIN, 0};
    CHECK(poll(&poll_entry, 1, -1) == 1 && poll_entry.revents == POLLIN);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(file, &set);
    CHECK(select(file + 1, &set, NULL, NULL, NULL) == 1 && FD_ISSET(file, &set));
    CHECK(close(file) == 0);
}

static sigjmp_buf back;
static volatile uintptr_t fault_address;
static volatile int fault_code;

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)context;
    fault_address = (uintptr_t)info->si_addr;
    fault_code = info->si_code;
    siglongjmp(back, 1);
}

static bool store_faults(volatile unsigned char *at) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, old;
    sigaction(SIGSEGV, &action, &old);
    fault_address = 0;
    if (sigsetjmp(back, 1) == 0)
        *at = 1;
    sigaction(SIGSEGV, &old, NULL);
    return fault_address == (uintptr_t)at && fault_code == SEGV_ACCERR;
}

static void mappings_show_the_file(void) {
    int file = open("/data", O_RDONLY);
    unsigned char *whole = mmap(NULL, DATA_SIZE, PROT_READ, MAP_PRIVATE, file, 0);
    unsigned char *part = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, file, PAGE);
    CHECK(whole != MAP_FAILED && is_pattern(whole, 0, DATA_SIZE) && whole[DATA_SIZE] == 0);
    CHECK(part != MAP_FAILED && is_pattern(part, PAGE, 2 * PAGE));
    CHECK(store_faults(whole) && store_faults(part + 5000) && is_pattern(whole, 0, DATA_SIZE));
    CHECK_ERROR(mprotect(whole, PAGE, PROT_READ | PROT_WRITE), EACCES);
    CHECK(mprotect(whole, PAGE, PROT_READ) == 0 && madvise(whole, DATA_SIZE, MADV_WILLNEED) == 0);
    CHECK(madvise(whole, DATA_SIZE, MADV_DONTNEED) == 0 && is_pattern(whole, 0, DATA_SIZE));
    CHECK(mremap(whole, DATA_SIZE, PAGE, 0) == whole &&
          mremap(whole, PAGE, DATA_SIZE, MREMAP_MAYMOVE) == whole);
    CHECK_ERROR((intptr_t)mremap(whole, PAGE, 1 << 30, MREMAP_MAYMOVE), ENOMEM);
    CHECK_ERROR(read(file, whole, 10), EFAULT);
    CHECK(write(1, whole, 0) == 0);
    CHECK(munmap(part, 2 * PAGE) == 0 && munmap(whole, DATA_SIZE) == 0);

    unsigned char *own = mmap(NULL, DATA_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    CHECK(own != MAP_FAILED && is_pattern(own, 0, DATA_SIZE) && own[DATA_SIZE] == 0);
    memset(own, 0xee, DATA_SIZE);
    CHECK(pread(file, buffer, DATA_SIZE, 0) == DATA_SIZE && is_pattern(buffer, 0, DATA_SIZE));
    CHECK(mmap(own, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 2 * PAGE) == own);
    CHECK(is_pattern(own, 2 * PAGE, PAGE) && own[PAGE] == 0xee && store_faults(own + 9));
    /* Longer than the file: what is behind it is zero. */
    unsigned char *longer = mmap(NULL, 4 << 20, PROT_READ, MAP_PRIVATE, file, 0);
    CHECK(longer != MAP_FAILED && is_pattern(longer, 0, DATA_SIZE) && longer[(4 << 20) - 1] == 0);
    CHECK(munmap(longer, 4 << 20) == 0 && munmap(own, DATA_SIZE) == 0);

    int empty = open("/empty", O_RDONLY);
    CHECK(read(empty, buffer, 1) == 0 && lseek(empty, 0, SEEK_END) == 0);
    unsigned char *nothing = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, empty, 0);
    CHECK(nothing != MAP_FAILED && nothing[0] == 0 && munmap(nothing, PAGE) == 0);
    CHECK(close(empty) == 0);

    CHECK_ERROR((intptr_t)mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), EACCES);
    CHECK_ERROR((intptr_t)mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0), EPERM);
    CHECK_ERROR((intptr_t)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, file, 5), EINVAL);
    CHECK_ERROR(syscall(SYS_mmap, NULL, 0L, PROT_READ, MAP_PRIVATE, file, 0L), EINVAL);
    CHECK_ERROR((intptr_t)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, 1, 0), ENODEV);
    CHECK_ERROR((intptr_t)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, 200, 0), EBADF);
    CHECK_ERROR((intptr_t)mmap(NULL, SIZE_MAX - PAGE, PROT_READ, MAP_PRIVATE, file, PAGE), ENOMEM);
    CHECK(close(file) == 0);
}

static void standard_io_works(void) {
    char line[16];
    FILE *stream = fopen("/folder/inner/text", "r");
    CHECK(stream && fgets(line, sizeof line, stream) && strcmp(line, "hello\n") == 0);
    CHECK(stream && !fgets(line, sizeof line, stream) && feof(stream) && fclose(stream) == 0);
    CHECK(!fopen("/folder/inner/text", "r+") && errno == EROFS);
}

/* Stores into a mapping, with nobody to handle it. */
static __attribute__((noinline)) int store(void) {
    int file = open("/data", O_RDONLY);
    volatile unsigned char *data = mmap(NULL, DATA_SIZE, PROT_READ, MAP_SHARED, file, 0);
    close(file); /* the mapping stays */
    printf("%p\n", (void *)(uintptr_t)(data + 5000));
    fflush(stdout);
    data[5000] = 1;
    return 0;
}

/* Reads the first and then, when the host has heard of that, the last byte of /big: by read() or in place. */
static int both_ends(bool in_place) {
    struct stat status;
    int file = open("/big", O_RDONLY);
    CHECK(fstat(file, &status) == 0);
    const volatile unsigned char *big = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, file, 0);
    CHECK(big != MAP_FAILED);
    printf("first %d\n", big[0]);
    fflush(stdout);
    unsigned char last = 0;
    if (in_place)
        last = big[status.st_size - 1];
    else
        CHECK(pread(file, &last, 1, status.st_size - 1) == 1);
    printf("last %d size %lld\n", last, (long long)status.st_size);
    return check_end();
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "store") == 0)
        return store();
    if (strcmp(what, "read-ends") == 0 || strcmp(what, "touch-ends") == 0)
        return both_ends(what[0] == 't');
    reads_move_the_position();
    seeks_go_where_they_should();
    duplicates_share_the_position();
    status_is_that_of_a_file();
    paths_are_followed();
    nothing_can_be_written();
    locks_are_granted();
    mappings_show_the_file();
    standard_io_works();
    return check_end();
}
