/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Pools of sandboxes (pinhole/pool.h): who has which, who waits, and whose turn it is. Called by programs
 * alone, and itself made of the public functions of sandboxes and snapshots, but for ph__output_forget.
 *
 * One lock covers the lists and counts. Sandboxes are made, put back and destroyed without it, since each of
 * that takes as long as hundreds of takes.
 *
 * Somebody waits only while nothing is idle and all places are in use. Whatever then becomes free goes to who
 * has waited longest, by name, before the lock is let go: nobody who comes later can be first. What becomes
 * free is a sandbox, or the place of one that could not be made again. With a place, who waited makes one
 * himself and gets the error if that fails, and the place goes on to the next: nobody waits for what no
 * longer exists.
 */
#include <pinhole/pool.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/process.h"
#include "base/system.h"
#include "base/time.h"
#include "sandbox/sandbox.h"

/* ---- lists --------------------------------------------------------------------------------------------- */

/* A place in a list that is a ring; its head is one too. The first member of what is in the list. */
struct link {
    struct link *previous, *next;
};

static void list_init(struct link *list) {
    list->previous = list->next = list;
}

static bool list_is_empty(const struct link *list) {
    return list->next == list;
}

static void list_append(struct link *list, struct link *link) {
    link->previous = list->previous;
    link->next = list;
    list->previous->next = link;
    list->previous = link;
}

static void list_remove(struct link *link) {
    link->previous->next = link->next;
    link->next->previous = link->previous;
}

/* ---- what a pool is ------------------------------------------------------------------------------------ */

/* One sandbox. In the list of those that are idle or taken, or in none while a function of the pool works on
 * it. */
struct member {
    struct link link;
    ph_sandbox *sandbox;
    /* Who gave it back last, 0 for nobody: a number that no later thread gets, so the counts are exact. A
     * wrong one would do no harm, since it only chooses among what is idle. */
    uint64_t thread;
};

/* A thread that waits, on its stack. */
struct waiter {
    struct link link;
    pthread_cond_t wake;
    bool served;
    struct member *member; /* NULL when it was served a place */
};

struct ph_pool {
    uint64_t owner;
    ph_snapshot *snapshot;
    ph_pool_config config;
    ph_config sandbox_config; /* where config.sandbox leads */

    pthread_mutex_t lock;
    pthread_cond_t left; /* for ph_pool_destroy: something came back, or somebody left ph_pool_take */
    struct link idle;    /* the one that was given back first in front */
    struct link taken;
    struct link waiters; /* the one that waits longest in front */
    uint32_t places;     /* in use, of (capacity): idle, taken, being made, being put back */
    uint32_t inside;     /* threads in ph_pool_take */
    bool closing;
    ph_pool_stats stats; /* but for taken, which is what is not idle */
};

/* ---- making and putting back, without the lock --------------------------------------------------------- */

static ph_status prepare(const ph_pool *pool, ph_sandbox *sandbox, ph_error *error) {
    ph_status status = pool->config.prepare(pool->config.prepare_context, sandbox);
    const ph_error *cause = ph_sandbox_error(sandbox);

    if (status != PH_OK)
        return ph__error_set(error, status, "preparing a sandbox of the pool failed: %s",
                             cause->status == status ? cause->message : ph_status_message(status));
    /* Whatever it has done to the guest. */
    status = ph_sandbox_restore(sandbox, pool->snapshot);
    if (status != PH_OK)
        return ph__error_set(error, status, "a sandbox of the pool cannot be put back once prepared: %s",
                             cause->message);
    ph__output_forget(sandbox);
    return PH_OK;
}

/* A sandbox that can be handed out, or NULL in (*sandbox). */
static ph_status make(const ph_pool *pool, ph_sandbox **sandbox, ph_error *error) {
    ph_status status = ph_sandbox_create_from(pool->snapshot, pool->config.sandbox, sandbox, error);

    if (status == PH_OK && pool->config.prepare) {
        status = prepare(pool, *sandbox, error);
        if (status != PH_OK) {
            ph_sandbox_destroy(*sandbox);
            *sandbox = NULL;
        }
    }
    return status;
}

/* A member with a sandbox, or NULL in (*made). */
static ph_status member_make(const ph_pool *pool, struct member **made, ph_error *error) {
    struct member *member = calloc(1, sizeof *member);

    *made = NULL;
    if (!member)
        return ph__error_set(error, PH_E_MEMORY, "no memory for a place in the pool");
    ph_status status = make(pool, &member->sandbox, error);
    if (status != PH_OK) {
        free(member);
        return status;
    }
    *made = member;
    return PH_OK;
}

/* ---- whose turn it is, with the lock ------------------------------------------------------------------- */

/* The idle sandbox that the calling thread gave back last, or else the one that has been idle longest, which
 * is the least likely to be missed by another thread. NULL when none is idle. */
static struct member *idle_take(ph_pool *pool) {
    const uint64_t thread = ph__process_thread_number();
    struct link *chosen = pool->idle.next;

    if (list_is_empty(&pool->idle))
        return NULL;
    for (struct link *each = pool->idle.previous; each != &pool->idle; each = each->previous) {
        if (((struct member *)each)->thread == thread) {
            chosen = each;
            break;
        }
    }
    list_remove(chosen);
    pool->stats.idle--;
    return (struct member *)chosen;
}

/* Gives (member), or without one a place, to who has waited longest. False when nobody waits. Those who still
 * wait in a pool that is being destroyed get nothing. */
static bool waiter_serve(ph_pool *pool, struct member *member) {
    struct waiter *waiter = (struct waiter *)pool->waiters.next;

    if (list_is_empty(&pool->waiters) || pool->closing)
        return false;
    list_remove(&waiter->link);
    waiter->member = member;
    waiter->served = true;
    pthread_cond_signal(&waiter->wake);
    return true;
}

static void member_put(ph_pool *pool, struct member *member) {
    if (waiter_serve(pool, member))
        return;
    list_append(&pool->idle, &member->link);
    pool->stats.idle++;
}

static void place_put(ph_pool *pool) {
    if (!waiter_serve(pool, NULL))
        pool->places--;
}

/* Waits, without the lock, until something is served. */
static ph_status waiter_wait(ph_pool *pool, struct waiter *waiter, uint64_t timeout_ns, ph_error *error) {
    const uint64_t now_ns = ph__time_ns(CLOCK_MONOTONIC);
    /* What the clock will not come to is without end. */
    const bool endless = timeout_ns > (uint64_t)INT64_MAX - now_ns;
    const struct timespec until = ph__timespec_of(endless ? 0 : now_ns + timeout_ns);
    int result = 0;

    list_append(&pool->waiters, &waiter->link);
    pool->stats.waits++;
    while (!waiter->served && !pool->closing && result == 0)
        result = endless ? pthread_cond_wait(&waiter->wake, &pool->lock)
                         : pthread_cond_timedwait(&waiter->wake, &pool->lock, &until);
    /* Served in the last moment is served: it is out of the list, and nobody else would get it. */
    if (waiter->served)
        return PH_OK;
    list_remove(&waiter->link);
    if (pool->closing)
        return ph__error_set(error, PH_E_STATE, "the pool is being destroyed");
    if (result != ETIMEDOUT)
        return ph__error_set_system(error, PH_E_SYSTEM, result, "waiting for a sandbox of the pool failed");
    return ph__error_set(error, PH_E_TIMED_OUT, "none of the pool's %u sandboxes came back in time",
                         pool->config.capacity);
}

static ph_status place_wait(ph_pool *pool, uint64_t timeout_ns, struct member **member, ph_error *error) {
    struct waiter waiter = {0};
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    int result = pthread_cond_init(&waiter.wake, &attributes);
    pthread_condattr_destroy(&attributes);
    if (result != 0)
        return ph__error_set_system(error, PH_E_SYSTEM, result, "waiting for a sandbox of the pool failed");
    ph_status status = waiter_wait(pool, &waiter, timeout_ns, error);
    pthread_cond_destroy(&waiter.wake);
    *member = waiter.member;
    return status;
}

/* A sandbox, or with a NULL (*member) a place for one that is still to be made. */
static ph_status place_take(ph_pool *pool, uint64_t timeout_ns, struct member **member, ph_error *error) {
    if (pool->closing)
        return ph__error_set(error, PH_E_STATE, "the pool is being destroyed");
    *member = idle_take(pool);
    if (*member)
        return PH_OK;
    if (pool->places < pool->config.capacity) {
        pool->places++;
        return PH_OK;
    }
    if (timeout_ns == 0)
        return ph__error_set(error, PH_E_BUSY, "all of the pool's %u sandboxes are taken",
                             pool->config.capacity);
    return place_wait(pool, timeout_ns, member, error);
}

/* Nothing of (pool) may be used once the lock is let go after this. */
static void left(ph_pool *pool) {
    if (pool->closing)
        pthread_cond_signal(&pool->left);
}

/* ---- the public functions ------------------------------------------------------------------------------ */

ph_status ph_pool_take(ph_pool *pool, uint64_t timeout_ns, ph_sandbox **sandbox, ph_error *error) {
    struct member *member = NULL;

    if (sandbox)
        *sandbox = NULL;
    if (!pool || !sandbox)
        return ph__error_set(error, PH_E_ARGUMENT, "a pool and a place for the sandbox are needed");
    if (pool->owner != ph__process_id())
        return ph__error_set(error, PH_E_FORKED,
                             "the pool was made before fork(); the child may only destroy it");
    pthread_mutex_lock(&pool->lock);
    pool->inside++;
    ph_status status = place_take(pool, timeout_ns, &member, error);
    if (status == PH_OK && !member) {
        pthread_mutex_unlock(&pool->lock);
        status = member_make(pool, &member, error);
        pthread_mutex_lock(&pool->lock);
        if (member)
            pool->stats.made++;
        else
            place_put(pool);
    }
    if (member) {
        pool->stats.takes++;
        pool->stats.takes_same_thread += member->thread == ph__process_thread_number();
        list_append(&pool->taken, &member->link);
        *sandbox = member->sandbox;
    } else {
        pool->stats.failures++;
    }
    pool->inside--;
    left(pool);
    pthread_mutex_unlock(&pool->lock);
    return status;
}

/* The taken member that (sandbox) is, out of its list: whoever gives it back a second time finds nothing. */
static struct member *taken_remove(ph_pool *pool, const ph_sandbox *sandbox) {
    for (struct link *each = pool->taken.next; each != &pool->taken; each = each->next) {
        struct member *member = (struct member *)each;
        if (member->sandbox == sandbox) {
            list_remove(each);
            return member;
        }
    }
    return NULL;
}

void ph_pool_give(ph_pool *pool, ph_sandbox *sandbox) {
    bool made = false;

    if (!pool || !sandbox || pool->owner != ph__process_id())
        return;
    pthread_mutex_lock(&pool->lock);
    struct member *member = taken_remove(pool, sandbox);
    bool closing = pool->closing;
    pthread_mutex_unlock(&pool->lock);
    if (!member)
        return;
    /* The restore is the pool's own doing, and in nobody's trace. */
    ph__context_forget(sandbox);
    ph_status status = ph_sandbox_restore(sandbox, pool->snapshot);
    bool restored = status == PH_OK;
    /* No part of a snapshot: the next taker would find it, and room for it would run out. */
    if (restored)
        ph__output_forget(sandbox);
    if (!restored && status != PH_E_BUSY) {
        ph_sandbox_destroy(sandbox);
        member->sandbox = NULL;
        /* A failure is for who takes next, and tries again. */
        made = !closing && make(pool, &member->sandbox, NULL) == PH_OK;
    }
    pthread_mutex_lock(&pool->lock);
    if (status == PH_E_BUSY) {
        list_append(&pool->taken, &member->link);
    } else {
        pool->stats.restores += restored;
        pool->stats.replaced += !restored;
        pool->stats.made += made;
        if (restored || made) {
            member->thread = ph__process_thread_number();
            member_put(pool, member);
        } else {
            free(member);
            place_put(pool);
        }
        left(pool);
    }
    pthread_mutex_unlock(&pool->lock);
}

ph_status ph_pool_stats_get(ph_pool *pool, ph_pool_stats *stats) {
    if (!pool || !stats || stats->size != sizeof *stats)
        return PH_E_ARGUMENT;
    if (pool->owner != ph__process_id())
        return PH_E_FORKED;
    pthread_mutex_lock(&pool->lock);
    *stats = pool->stats;
    stats->size = sizeof *stats;
    stats->taken = pool->places - pool->stats.idle;
    pthread_mutex_unlock(&pool->lock);
    return PH_OK;
}

/* Frees the members of (list), which is of no use then. */
static void list_free(struct link *list) {
    struct link *next;

    for (struct link *each = list->next; each != list; each = next) {
        next = each->next;
        ph_sandbox_destroy(((struct member *)each)->sandbox);
        free(each);
    }
}

/* What is left of a pool that nobody uses. */
static void pool_free(ph_pool *pool) {
    list_free(&pool->idle);
    list_free(&pool->taken);
    ph_snapshot_close(pool->snapshot);
    free(pool);
}

void ph_pool_destroy(ph_pool *pool) {
    if (!pool)
        return;
    if (pool->owner != ph__process_id()) {
        /* The lock is as it was when the process forked. When another thread had it, the lists may be half
         * changed, and nobody will ever finish that: then they are left where they are. Nothing is waited
         * for, and so neither the lock nor a condition is destroyed: who waits on one here is not here. */
        if (pthread_mutex_trylock(&pool->lock) == 0)
            pool_free(pool);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    for (struct link *each = pool->waiters.next; each != &pool->waiters; each = each->next)
        pthread_cond_signal(&((struct waiter *)each)->wake);
    while (pool->inside != 0 || pool->places != pool->stats.idle)
        pthread_cond_wait(&pool->left, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    pthread_cond_destroy(&pool->left);
    pthread_mutex_destroy(&pool->lock);
    pool_free(pool);
}

/* Copies the caller's struct, and the one that it points to, which may be of an older header and shorter than
 * ours. */
static ph_status take_config(ph_pool *pool, const ph_pool_config *config, ph_error *error) {
    const ph_pool_config defaults = PH_POOL_CONFIG_INIT;
    const ph_config *sandbox = config ? config->sandbox : NULL;

    if (config && config->size != sizeof *config)
        return ph__error_set(error, PH_E_ARGUMENT,
                             "the config's size is not one of this library: use PH_POOL_CONFIG_INIT");
    if (sandbox && (sandbox->size < sizeof sandbox->size || sandbox->size > sizeof *sandbox))
        return ph__error_set(error, PH_E_ARGUMENT,
                             "the sandbox config's size is not one of this library: use PH_CONFIG_INIT");
    pool->config = config ? *config : defaults;
    if (sandbox) {
        memcpy(&pool->sandbox_config, sandbox, sandbox->size);
        pool->config.sandbox = &pool->sandbox_config;
    }
    if (pool->config.capacity == 0) {
        long processors = ph__system.sysconf(_SC_NPROCESSORS_ONLN);
        pool->config.capacity = processors > 0 ? (uint32_t)processors : 1;
    }
    if (pool->config.warm > pool->config.capacity)
        pool->config.warm = pool->config.capacity;
    return PH_OK;
}

ph_status ph_pool_create(ph_snapshot *snapshot, const ph_pool_config *config, ph_pool **result,
                         ph_error *error) {
    if (result)
        *result = NULL;
    if (!snapshot || !result)
        return ph__error_set(error, PH_E_ARGUMENT, "a snapshot and a place for the pool are needed");
    ph_status status = ph__process_init(error);
    if (status != PH_OK)
        return status;
    ph_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return ph__error_set(error, PH_E_MEMORY, "no memory for a pool");
    pool->owner = ph__process_id();
    ph_snapshot_retain(snapshot);
    pool->snapshot = snapshot;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->left, NULL);
    list_init(&pool->idle);
    list_init(&pool->taken);
    list_init(&pool->waiters);
    status = take_config(pool, config, error);
    while (status == PH_OK && pool->places < pool->config.warm) {
        struct member *member;
        status = member_make(pool, &member, error);
        if (member) {
            pool->places++;
            pool->stats.made++;
            member_put(pool, member);
        }
    }
    if (status != PH_OK) {
        ph_pool_destroy(pool);
        return status;
    }
    *result = pool;
    return PH_OK;
}
