/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Starting the library's own threads, which take no signal of the program's.
 */
#ifndef PH_BASE_THREAD_H
#define PH_BASE_THREAD_H

#include <pthread.h>

/* As pthread_create: 0, or the error and no thread. */
int ph__thread_start(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                     void *argument);

#endif
