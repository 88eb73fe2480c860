/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Paths: a file system that holds an empty root directory, which is the working directory too, and that
 * cannot be written.
 */
#include <linux/fcntl.h>

#include "monitor/monitor.h"
#include "monitor/system_calls.h"

#define MAY_WRITE 2u

/* 0 for the root, else the error for a path that leads nowhere. */
static int64_t path_find(uint64_t address) {
    char head[2];
    int64_t length = ph__path_from_user(address, head);
    if (length < 0)
        return length;
    return ph__path_is_root(length, head) ? 0 : -ENOENT;
}

static int64_t path_open(uint64_t path, uint64_t flags) {
    int64_t answer = path_find(path);
    if (answer == -ENOENT && (flags & O_CREAT))
        return -EROFS;
    if (answer != 0)
        return answer;
    /* The root exists; but a directory cannot be open here. */
    return (flags & O_ACCMODE) != O_RDONLY ? -EISDIR : -EACCES;
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
    int64_t answer = path_find(path);
    return answer == 0 && (mode & MAY_WRITE) ? -EROFS : answer;
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
    return path_find(regs->rdi);
}

static int64_t path_readlink(uint64_t path) {
    int64_t answer = path_find(path);
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
    int64_t answer = path_find(path);
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
    int64_t answer = path_find(path);
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
    int64_t answer = path_find(regs->rdi);
    return answer == 0 ? -EACCES : answer;
}
