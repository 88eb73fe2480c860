/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Knowing, without a system call, in which process we are: a page that the kernel empties in a child
 * (MADV_WIPEONFORK, Linux 4.14) holds a number of the process. Sandboxes compare it with the one that made
 * them.
 */
#include "base/process.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "abi/hot.h"
#include "base/error.h"
#include "base/system.h"

static _Atomic(_Atomic uint64_t *) page;
static uint64_t
    generation; /* a child inherits it and counts on, so no two in a line of processes are the same */

PH__HOT uint64_t ph__process_id(void) {
    _Atomic uint64_t *id = atomic_load_explicit(&page, memory_order_acquire);
    return id ? atomic_load_explicit(id, memory_order_relaxed) : 0;
}

ph_status ph__process_init(ph_error *error) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    ph_status status = PH_OK;

    if (ph__process_id() != 0)
        return PH_OK;
    pthread_mutex_lock(&lock);
    _Atomic uint64_t *id = atomic_load(&page);
    if (!id) {
        void *fresh = ph__system.mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (fresh == MAP_FAILED || ph__system.madvise(fresh, 4096, MADV_WIPEONFORK) != 0) {
            status = ph__error_set_system(error, PH_E_SYSTEM, errno,
                                          "a page that notices fork() could not be made");
            if (fresh != MAP_FAILED)
                ph__system.munmap(fresh, 4096);
            goto unlock;
        }
        id = fresh;
        atomic_store_explicit(&page, id, memory_order_release);
    }
    atomic_store(id, ++generation);
unlock:
    pthread_mutex_unlock(&lock);
    return status;
}

PH__HOT pid_t ph__process_thread(void) {
    static _Thread_local struct {
        uint64_t process;
        pid_t thread;
    } known;

    if (known.process != ph__process_id() || known.thread == 0) {
        known.process = ph__process_id();
        known.thread = ph__system.gettid();
    }
    return known.thread;
}

PH__HOT uint64_t ph__process_thread_number(void) {
    static _Thread_local uint64_t number;
    static _Atomic uint64_t last;

    if (number == 0)
        number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    return number;
}

static bool thread_faults(uint64_t *faults) {
    struct rusage usage;

    if (ph__system.getrusage(RUSAGE_THREAD, &usage) != 0)
        return false;
    *faults = (uint64_t)usage.ru_minflt + (uint64_t)usage.ru_majflt;
    return true;
}

/* Has the kernel write to a page that nobody has touched, and looks whether it counts that. It does since it
 * counts at all (Linux, mm/memory.c, mm_account_fault), but much depends on it. */
static bool counts_faults(void) {
    uint64_t before = 0, after = 0;
    char byte = 1;
    void *fresh = ph__system.mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const struct iovec local = {&byte, 1}, remote = {fresh, 1};

    if (fresh == MAP_FAILED)
        return false;
    bool counted = thread_faults(&before) &&
                   ph__system.process_vm_writev(ph__system.getpid(), &local, 1, &remote, 1, 0) == 1 &&
                   thread_faults(&after) && after > before;
    ph__system.munmap(fresh, 4096);
    return counted;
}

bool ph__process_faults(uint64_t *faults) {
    enum { UNKNOWN, YES, NO };
    static _Atomic int known = UNKNOWN;
    int counted = atomic_load_explicit(&known, memory_order_relaxed);

    if (counted == UNKNOWN) {
        counted = counts_faults() ? YES : NO;
        atomic_store_explicit(&known, counted, memory_order_relaxed);
    }
    return counted == YES && thread_faults(faults);
}
