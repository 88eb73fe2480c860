/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What stat says: the streams are pipes; of paths there are files, the folders that they are in, and the
 * root.
 */
#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/stat.h>

#include "monitor/files.h"
#include "monitor/monitor.h"
#include "monitor/system_calls.h"

#define BLOCK_SIZE 512u /* of st_blocks */

/* Inodes: the root, the streams, and then room for each file, and each folder by a file in it. */
#define ROOT_NUMBER 1u
#define FILE_NUMBER 16u
#define FOLDER_NUMBER (FILE_NUMBER + PH__FILES_MAX)

/* What both forms of stat tell. */
struct node {
    uint32_t mode;
    uint32_t links;
    uint64_t number;
    uint64_t size;
    int64_t seconds;
    uint32_t nanoseconds;
};

static const struct node root = {.mode = S_IFDIR | 0555, .links = 2, .number = ROOT_NUMBER};

static struct node node_of_file(uint32_t file) {
    const struct ph__file_entry *entry = ph__file_entry(file);
    return (struct node){
        .mode = S_IFREG | 0444,
        .links = 1,
        .number = FILE_NUMBER + file,
        .size = entry->size,
        .seconds = entry->modified_seconds,
        .nanoseconds = entry->modified_nanoseconds,
    };
}

static int64_t node_of_descriptor(uint64_t descriptor, struct node *node) {
    enum ph__descriptor kind = ph__descriptor_get(descriptor);
    const struct ph__open_file *open = ph__descriptor_file(descriptor);
    *node = open ? node_of_file(open->file)
                 : (struct node){.mode = S_IFIFO | 0600, .links = 1, .number = 1 + (uint64_t)kind};
    return kind == PH__CLOSED ? -EBADF : 0;
}

static int64_t node_of_path(uint64_t address, struct node *node) {
    struct ph__found found;
    int64_t answer = ph__path_find(address, &found);
    if (answer != 0)
        return answer;
    *node = found.is_file ? node_of_file(found.number) : root;
    if (!found.is_file && !found.is_root)
        node->number = FOLDER_NUMBER + found.number;
    return 0;
}

/* As fstatat and statx find it: an empty path means the descriptor, if (flags) allow that. */
static int64_t node_find(uint64_t descriptor, uint64_t path, uint64_t flags, struct node *node) {
    int64_t length = path == 0 ? 0 : ph__length_user(path, 1);
    if (length < 0)
        return length;
    if (length == 0 && (flags & AT_EMPTY_PATH))
        return (int32_t)descriptor == AT_FDCWD ? (*node = root, 0) : node_of_descriptor(descriptor, node);
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
        .st_size = (long)node->size,
        .st_blksize = PH__PAGE_SIZE,
        .st_blocks = (long)((node->size + BLOCK_SIZE - 1) / BLOCK_SIZE),
        .st_atime = (unsigned long)node->seconds,
        .st_atime_nsec = node->nanoseconds,
        .st_mtime = (unsigned long)node->seconds,
        .st_mtime_nsec = node->nanoseconds,
        .st_ctime = (unsigned long)node->seconds,
        .st_ctime_nsec = node->nanoseconds,
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
    const struct statx_timestamp time = {.tv_sec = node.seconds, .tv_nsec = node.nanoseconds};
    struct statx stat = {
        .stx_mask = STATX_BASIC_STATS,
        .stx_blksize = PH__PAGE_SIZE,
        .stx_nlink = node.links,
        .stx_uid = PH__USER_ID,
        .stx_gid = PH__USER_ID,
        .stx_mode = (uint16_t)node.mode,
        .stx_ino = node.number,
        .stx_size = node.size,
        .stx_blocks = (node.size + BLOCK_SIZE - 1) / BLOCK_SIZE,
        .stx_atime = time,
        .stx_mtime = time,
        .stx_ctime = time,
        .stx_dev_minor = 1,
    };
    return ph__copy_to_user(regs->r8, &stat, sizeof stat);
}
