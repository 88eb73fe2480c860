/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A Unicorn Engine that says it is 2.1, for a test of a plug-in that was built with 2.0: a build of the
 * plug-in that asks this in the place of uc_version.
 */
unsigned int newer_uc_version(unsigned int *major, unsigned int *minor);

unsigned int newer_uc_version(unsigned int *major, unsigned int *minor) {
    if (major && minor) {
        *major = 2;
        *minor = 1;
    }
    return 0x020100ff;
}
