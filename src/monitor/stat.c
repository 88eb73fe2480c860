/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What stat says: the open streams are pipes, and of paths only the root directory exists.
 */
#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/stat.h>

#include "monitor/monitor.h"
#include "monitor/system_calls.h"

#define PATH_SIZE 4096

int64_t ph__path_from_user(uint64_t address, char head[2]) {
    int64_t length = ph__length_user(address, PATH_SIZE);
    if (length < 0)
        return length;
    if (length == 0)
        return -ENOENT;
    if (length == PATH_SIZE)
        return -ENAMETOOLONG;
    /* With its NUL, a path has at least two bytes. */
    return ph__copy_from_user(head, address, 2) == 0 ? length : -EFAULT;
}

/* The root is also the working directory. */
bool ph__path_is_root(int64_t length, const char head[2]) {
    return (length == 1 && (head[0] == '/' || head[0] == '.')) ||
           (length == 2 && head[0] == '.' && (head[1] == '.' || head[1] == '/'));
}

/* What both forms of stat tell. */
struct node {
    uint32_t mode;
    uint32_t links;
    uint64_t number;
};

static int64_t node_of_descriptor(uint64_t descriptor, struct node *node) {
    enum ph__descriptor stream = ph__descriptor_get(descriptor);
    *node = (struct node){.mode = S_IFIFO | 0600, .links = 1, .number = 1 + (uint64_t)stream};
    return stream == PH__CLOSED ? -EBADF : 0;
}

static int64_t node_of_path(uint64_t address, struct node *node) {
    char head[2];
    int64_t length = ph__path_from_user(address, head);
    if (length < 0)
        return length;
    *node = (struct node){.mode = S_IFDIR | 0555, .links = 2, .number = 1};
    return ph__path_is_root(length, head) ? 0 : -ENOENT;
}

/* As fstatat and statx find it: an empty path means the descriptor, if (flags) allow that. */
static int64_t node_find(uint64_t descriptor, uint64_t path, uint64_t flags, struct node *node) {
    int64_t length = path == 0 ? 0 : ph__length_user(path, 1);
    if (length < 0)
        return length;
    if (length == 0 && (flags & AT_EMPTY_PATH))
        return (int32_t)descriptor == AT_FDCWD
                   ? (*node = (struct node){.mode = S_IFDIR | 0555, .links = 2, .number = 1}, 0)
                   : node_of_descriptor(descriptor, node);
    return path == 0 ? -EFAULT : node_of_path(path, node);
}

static int64_t stat_to_user(uint64_t address, const struct node *node) {
    struct stat stat = {
        .st_dev = 1,
        .st_ino = node->number,
        .st_nlink = node->links,
        .st_mode = node->mode,
        .st_uid = PH__USER_ID,
        .st_gid = PH__USER_ID,
        .st_blksize = PH__PAGE_SIZE,
    };
    return ph__copy_to_user(address, &stat, sizeof stat);
}

int64_t ph__sys_fstat(struct ph__regs *regs) {
    struct node node;
    int64_t answer = node_of_descriptor(regs->rdi, &node);
    return answer != 0 ? answer : stat_to_user(regs->rsi, &node);
}

int64_t ph__sys_stat(struct ph__regs *regs) {
    struct node node;
    int64_t answer = node_of_path(regs->rdi, &node);
    return answer != 0 ? answer : stat_to_user(regs->rsi, &node);
}

int64_t ph__sys_newfstatat(struct ph__regs *regs) {
    struct node node;
    if (regs->r10 & ~(uint64_t)(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT))
        return -EINVAL;
    int64_t answer = node_find(regs->rdi, regs->rsi, regs->r10, &node);
    return answer != 0 ? answer : stat_to_user(regs->rdx, &node);
}

int64_t ph__sys_statx(struct ph__regs *regs) {
    struct node node;
    uint64_t known = AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_SYNC_TYPE;
    if (regs->rdx & ~known)
        return -EINVAL;
    int64_t answer = node_find(regs->rdi, regs->rsi, regs->rdx, &node);
    if (answer != 0)
        return answer;
    struct statx stat = {
        .stx_mask = STATX_BASIC_STATS,
        .stx_blksize = PH__PAGE_SIZE,
        .stx_nlink = node.links,
        .stx_uid = PH__USER_ID,
        .stx_gid = PH__USER_ID,
        .stx_mode = (uint16_t)node.mode,
        .stx_ino = node.number,
        .stx_dev_minor = 1,
    };
    return ph__copy_to_user(regs->r8, &stat, sizeof stat);
}
