/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A guest that says nothing itself: it is compiled with -finstrument-functions, so every function is a span.
 */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <pinhole/guest.h>

static jmp_buf landing;

__attribute__((noinline)) static int64_t leaf(int64_t n) {
    __asm__ volatile("" : "+r"(n));
    return n + 1;
}

__attribute__((noinline)) static int64_t branch(int64_t n) {
    return leaf(n) + leaf(n + 1);
}

static int64_t tree(int64_t n) {
    return branch(n) + branch(2 * n);
}
PH_EXPORT(tree, PH_I64, PH_I64);

static int64_t fibonacci(int64_t n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
PH_EXPORT(fibonacci, PH_I64, PH_I64);

/* Ends in a jump to the exit hook where the compiler optimises. */
__attribute__((noinline)) static void down(int64_t n) {
    if (n > 0)
        down(n - 1);
    __asm__ volatile("");
}
PH_EXPORT(down, PH_VOID, PH_I64);

/* The stack pointer at the exit is another than at the entry. */
__attribute__((noinline)) static int64_t allocates(int64_t n) {
    char *text = __builtin_alloca((size_t)n + 1); /* cppcheck-suppress allocaCalled; what is tested */
    memset(text, 1, (size_t)n);
    return leaf(text[0]) + (n > 1 ? allocates(n - 1) : 0);
}
PH_EXPORT(allocates, PH_I64, PH_I64);

static volatile bool is_jumping = true;

/* Functions that longjmp leaves have no exit. The compiler shall not know that they always are left. */
__attribute__((noinline)) static void leave(int64_t depth) {
    if (depth > 0)
        leave(depth - 1);
    else if (is_jumping)
        longjmp(landing, 1);
    __asm__ volatile("");
}

static int64_t jump(int64_t depth) {
    if (setjmp(landing) == 0)
        leave(depth);
    return leaf(depth);
}
PH_EXPORT(jump, PH_I64, PH_I64);

/* Each turn leaves the last one's functions behind, and calls the same ones at the same places. */
static int64_t retry(int64_t turns) {
    volatile int64_t turn = 0;

    setjmp(landing);
    while (turn < turns) {
        turn = turn + 1;
        if (turn % 3 == 0)
            leaf(turn);
        leave(turn % 2);
    }
    return leaf(turn);
}
PH_EXPORT(retry, PH_I64, PH_I64);

int main(void) {
    if (!ph_running_in_pinhole()) {
        down(10000);
        return tree(1) == 12 && fibonacci(10) == 55 && allocates(3) == 6 && jump(5) == 6 && retry(7) == 8 ? 0
                                                                                                          : 1;
    }
    return ph_serve();
}
