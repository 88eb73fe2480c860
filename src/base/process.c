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
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/hot.h"
#include "base/error.h"

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
        void *fresh = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (fresh == MAP_FAILED || madvise(fresh, 4096, MADV_WIPEONFORK) != 0) {
            status = ph__error_set_system(error, PH_E_SYSTEM, errno,
                                          "a page that notices fork() could not be made");
            if (fresh != MAP_FAILED)
                munmap(fresh, 4096);
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
        known.thread = (pid_t)syscall(SYS_gettid);
    }
    return known.thread;
}
