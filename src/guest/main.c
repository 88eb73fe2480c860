/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The main of a program that only serves calls. Alone in its object, so that the linker takes it from the
 * archive just when the program has none.
 */
#include <pinhole/guest.h>

int main(void);

int main(void) {
    return ph_serve();
}
