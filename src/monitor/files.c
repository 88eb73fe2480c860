/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * System calls that take a path: a file system that cannot be written, with the files in it that the host has
 * mapped. The root is the working directory.
 */
#include <linux/fcntl.h>

#include "monitor/files.h"
#include "monitor/monitor.h"
#include "monitor/system_calls.h"

#define MAY_EXECUTE 1u
#define MAY_WRITE 2u

static int64_t path_open(uint64_t path, uint64_t flags) {
    struct ph__found found;
    int64_t answer = ph__path_find(path, &found);
    if (answer == -ENOENT && (flags & O_CREAT))
        return -EROFS;
    if (answer != 0)
        return answer;
    /* A directory exists; but none can be open here. */
    if (!found.is_file)
        return (flags & O_ACCMODE) != O_RDONLY ? -EISDIR : -EACCES;
    if ((flags & O_CREAT) && (flags & O_EXCL))
        return -EEXIST;
    if (flags & O_DIRECTORY)
        return -ENOTDIR;
    if ((flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)))
        return -EROFS;
    return ph__descriptor_open(found.number, flags);
}

int64_t ph__sys_open(struct ph__regs *regs) {
    return path_open(regs->rdi, regs->rsi);
}

int64_t ph__sys_openat(struct ph__regs *regs) {
    return path_open(regs->rsi, regs->rdx);
}

int64_t ph__sys_creat(struct ph__regs *regs) {
    return path_open(regs->rdi, O_CREAT | O_WRONLY | O_TRUNC);
}

static int64_t path_access(uint64_t path, uint64_t mode) {
    struct ph__found found;
    int64_t answer = ph__path_find(path, &found);
    if (answer != 0)
        return answer;
    if (mode & MAY_WRITE)
        return -EROFS;
    return found.is_file && (mode & MAY_EXECUTE) ? -EACCES : 0;
}

int64_t ph__sys_access(struct ph__regs *regs) {
    return path_access(regs->rdi, regs->rsi);
}

int64_t ph__sys_faccessat(struct ph__regs *regs) {
    return path_access(regs->rsi, regs->rdx);
}

int64_t ph__sys_getcwd(struct ph__regs *regs) {
    if (regs->rsi < 2)
        return -ERANGE;
    int64_t answer = ph__copy_to_user(regs->rdi, "/", 2);
    return answer != 0 ? answer : 2;
}

int64_t ph__sys_chdir(struct ph__regs *regs) {
    struct ph__found found;
    int64_t answer = ph__path_find(regs->rdi, &found);
    if (answer != 0)
        return answer;
    if (found.is_file)
        return -ENOTDIR;
    return found.is_root ? 0 : -EACCES;
}

static int64_t path_readlink(uint64_t path) {
    struct ph__found found;
    int64_t answer = ph__path_find(path, &found);
    return answer == 0 ? -EINVAL : answer;
}

int64_t ph__sys_readlink(struct ph__regs *regs) {
    return path_readlink(regs->rdi);
}

int64_t ph__sys_readlinkat(struct ph__regs *regs) {
    return path_readlink(regs->rsi);
}

/* What makes a file or a directory. */
static int64_t path_make(uint64_t path) {
    struct ph__found found;
    int64_t answer = ph__path_find(path, &found);
    return answer == 0 ? -EEXIST : answer == -ENOENT ? -EROFS : answer;
}

int64_t ph__sys_make(struct ph__regs *regs) {
    return path_make(regs->rdi);
}

int64_t ph__sys_make_at(struct ph__regs *regs) {
    return path_make(regs->rsi);
}

/* What changes or removes one. */
static int64_t path_change(uint64_t path) {
    struct ph__found found;
    int64_t answer = ph__path_find(path, &found);
    return answer == 0 ? -EROFS : answer;
}

int64_t ph__sys_change(struct ph__regs *regs) {
    return path_change(regs->rdi);
}

int64_t ph__sys_change_at(struct ph__regs *regs) {
    return path_change(regs->rsi);
}

int64_t ph__sys_umask(struct ph__regs *regs) {
    static uint32_t mask = 022;
    uint32_t old = mask;
    mask = (uint32_t)regs->rdi & 0777;
    return old;
}

int64_t ph__sys_execve(struct ph__regs *regs) {
    struct ph__found found;
    int64_t answer = ph__path_find(regs->rdi, &found);
    return answer == 0 ? -EACCES : answer;
}
