/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Descriptors and paths, for a program whose standard streams are pipes or files: duplicates, flags, stat,
 * poll, the working directory, and paths that lead nowhere. Writes a line to each of 1 and 2 in several ways,
 * and echoes its standard input when it is given the argument "echo".
 */
#include "sys_check.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static void wrong_descriptors_are_refused(void) {
    char byte = 0;
    struct iovec vector = {&byte, 1};
    struct stat status;
    CHECK_ERROR(write(50, "x", 1), EBADF);
    CHECK_ERROR(syscall(SYS_write, -1, "x", 1), EBADF);
    CHECK_ERROR(read(50, &byte, 1), EBADF);
    CHECK_ERROR(writev(50, &vector, 1), EBADF);
    CHECK_ERROR(readv(50, &vector, 1), EBADF);
    CHECK_ERROR(pread(50, &byte, 1, 0), EBADF);
    CHECK_ERROR(close(50), EBADF);
    CHECK_ERROR(dup(50), EBADF);
    CHECK_ERROR(dup2(50, 5), EBADF);
    CHECK_ERROR(fcntl(50, F_GETFD), EBADF);
    CHECK_ERROR(fcntl(50, F_DUPFD, 10), EBADF);
    CHECK_ERROR(fstat(50, &status), EBADF);
    CHECK_ERROR(lseek(50, 0, SEEK_SET), EBADF);
    CHECK_ERROR(syscall(SYS_ioctl, 50, TIOCGWINSZ, &byte), EBADF);
    CHECK_ERROR(syscall(SYS_writev, 1, &vector, 2000), EINVAL);
    vector.iov_len = (size_t)-1;
    CHECK_ERROR(writev(1, &vector, 1), EINVAL);
}

static void duplicates_stand_for_the_stream(void) {
    int copy = dup(1);
    CHECK(copy >= 3);
    CHECK(write(copy, "to dup\n", 7) == 7);
    int high = fcntl(1, F_DUPFD_CLOEXEC, 30);
    CHECK(high == 30 && fcntl(high, F_GETFD) == FD_CLOEXEC);
    CHECK(fcntl(high, F_SETFD, 0) == 0 && fcntl(high, F_GETFD) == 0);
    CHECK(dup2(2, high) == high && write(high, "to dup2\n", 8) == 8);
    CHECK(dup2(high, high) == high);
    CHECK(dup3(1, 31, O_CLOEXEC) == 31 && fcntl(31, F_GETFD) == FD_CLOEXEC);
    CHECK_ERROR(dup3(1, 1, 0), EINVAL);
    CHECK(close(31) == 0 && close(high) == 0 && close(copy) == 0);
    CHECK_ERROR(write(high, "x", 1), EBADF);
    /* As a shell does for a redirection. */
    int saved = fcntl(1, F_DUPFD, 10);
    CHECK(saved >= 10 && close(1) == 0 && dup2(2, 1) == 1 && write(1, "1 is 2\n", 7) == 7);
    CHECK(dup2(saved, 1) == 1 && close(saved) == 0 && write(1, "1 is 1\n", 7) == 7);
    int copy_of_input = dup(0);
    CHECK_ERROR(write(copy_of_input, "x", 1), EBADF);
    CHECK(close(copy_of_input) == 0);
}

static void vectors_are_written_in_order(void) {
    struct iovec vector[4] = {{"one ", 4}, {NULL, 0}, {"two ", 4}, {"three\n", 6}};
    CHECK(writev(1, vector, 4) == 14);
    CHECK(writev(1, vector, 0) == 0);
    CHECK(write(1, NULL, 0) == 0);
    CHECK(write(2, "error stream\n", 13) == 13);
}

static void large_output_arrives_whole(void) {
    enum { SIZE = 300000 };
    static char large[SIZE];
    for (int i = 0; i < SIZE; i++)
        large[i] = i % 64 == 63 ? '\n' : (char)('a' + i / 64 % 26);
    ssize_t done = 0;
    while (done < SIZE) {
        ssize_t count = write(1, large + done, (size_t)(SIZE - done));
        CHECK(count > 0);
        if (count <= 0)
            break;
        done += count;
    }
}

static void streams_look_like_pipes(void) {
    struct stat status;
    struct winsize size;
    CHECK(fstat(1, &status) == 0 && fstat(0, &status) == 0);
    CHECK(fstatat(1, "", &status, AT_EMPTY_PATH) == 0);
    CHECK(!isatty(1) && errno == ENOTTY);
    CHECK_ERROR(ioctl(1, TIOCGWINSZ, &size), ENOTTY);
    CHECK((fcntl(1, F_GETFL) & O_ACCMODE) != O_RDONLY);
    if (S_ISFIFO(status.st_mode)) {
        CHECK(status.st_blksize == 4096);
        CHECK_ERROR(lseek(1, 0, SEEK_CUR), ESPIPE);
    }
    CHECK(!in_pinhole() || S_ISFIFO(status.st_mode));
    unsigned char extended[256]; /* struct statx, which musl has not got; stx_mode is at 28 */
    unsigned short mode;
    CHECK(syscall(SYS_statx, 1, "", AT_EMPTY_PATH, 0x7ff, extended) == 0);
    memcpy(&mode, extended + 28, sizeof mode);
    CHECK(mode == status.st_mode);
}

static void output_is_ready(void) {
    struct pollfd polls[3] = {{1, POLLOUT, 0}, {-1, POLLIN, 9}, {50, POLLIN, 0}};
    CHECK(poll(polls, 3, -1) == 2);
    CHECK(polls[0].revents == POLLOUT && polls[1].revents == 0 && polls[2].revents == POLLNVAL);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(1, &set);
    CHECK(select(2, NULL, &set, NULL, NULL) == 1 && FD_ISSET(1, &set));
    FD_ZERO(&set);
    FD_SET(50, &set);
    CHECK_ERROR(select(78, &set, NULL, NULL, NULL), EBADF);
}

static void paths_lead_nowhere(void) {
    struct stat status;
    char text[64];
    char longest[5000];
    CHECK_ERROR(open("/no/such/file", O_RDONLY), ENOENT);
    CHECK_ERROR(openat(AT_FDCWD, "no-such-file", O_RDONLY), ENOENT);
    CHECK_ERROR(open("", O_RDONLY), ENOENT);
    CHECK_ERROR(stat("/no/such/file", &status), ENOENT);
    CHECK_ERROR(lstat("no-such-file", &status), ENOENT);
    CHECK_ERROR(fstatat(AT_FDCWD, "", &status, 0), ENOENT);
    CHECK_ERROR(access("/no/such/file", F_OK), ENOENT);
    CHECK_ERROR(readlink("/no/such/file", text, sizeof text), ENOENT);
    CHECK_ERROR(chdir("/no/such/directory"), ENOENT);
    CHECK_ERROR(unlink("/no/such/file"), ENOENT);
    CHECK_ERROR(rmdir("/no/such/file"), ENOENT);
    CHECK_ERROR(rename("/no/such/file", "/no/such/other"), ENOENT);
    CHECK_ERROR(execl("/no/such/file", "x", (char *)NULL), ENOENT);
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    CHECK_ERROR(open(longest, O_RDONLY), ENAMETOOLONG);
    if (in_pinhole()) {
        CHECK_ERROR(open("/new", O_CREAT | O_WRONLY, 0600), EROFS);
        CHECK_ERROR(mkdir("/new", 0700), EROFS);
        CHECK_ERROR(readlink("/proc/self/exe", text, sizeof text), ENOENT);
    }
}

static void the_root_is_there(void) {
    struct stat status;
    char text[64];
    CHECK(stat("/", &status) == 0 && S_ISDIR(status.st_mode));
    CHECK(access("/", R_OK | X_OK) == 0);
    CHECK(chdir("/") == 0);
    CHECK(getcwd(text, sizeof text) == text && strcmp(text, "/") == 0);
    CHECK(syscall(SYS_getcwd, text, sizeof text) == 2);
    CHECK_ERROR(syscall(SYS_getcwd, text, 1), ERANGE);
    CHECK_ERROR(mkdir("/", 0700), EEXIST);
    umask(022);
    CHECK(umask(077) == 022 && umask(022) == 077);
}

static void echo_input(void) {
    char first[5], second[9], rest[4096];
    struct iovec vector[2] = {{first, sizeof first}, {second, sizeof second}};
    ssize_t count = readv(0, vector, 2);
    CHECK(count > 0);
    for (int i = 0; i < 2 && count > 0; i++) {
        size_t piece = (size_t)count < vector[i].iov_len ? (size_t)count : vector[i].iov_len;
        CHECK(write(1, vector[i].iov_base, piece) == (ssize_t)piece);
        count -= (ssize_t)piece;
    }
    while ((count = read(0, rest, sizeof rest)) > 0)
        CHECK(write(1, rest, (size_t)count) == count);
    CHECK(count == 0);
    CHECK(read(0, rest, 0) == 0);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1 && strcmp(argv[1], "echo") == 0) {
        echo_input();
        return check_end();
    }
    wrong_descriptors_are_refused();
    duplicates_stand_for_the_stream();
    vectors_are_written_in_order();
    streams_look_like_pipes();
    output_is_ready();
    paths_lead_nowhere();
    the_root_is_there();
    if (argc > 1 && strcmp(argv[1], "large") == 0)
        large_output_arrives_whole();
    return check_end();
}
