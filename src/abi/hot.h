/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * PH__HOT marks a function that every call runs, PH__COLD one that only failures run: the compiler moves
 * branches that lead there out of the way. The linker then puts what is hot side by side. After an exit, what
 * the processor had cached of addresses and code is gone, and each page that a call has to look up anew costs
 * it some 20 ns.
 */
#ifndef PH_ABI_HOT_H
#define PH_ABI_HOT_H

#define PH__HOT __attribute__((hot))
#define PH__COLD __attribute__((cold))

#endif
