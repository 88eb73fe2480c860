/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Holds a VM with a vCPU that never runs, until it is killed. Linux changes its own code when the first VM
 * comes and when the last one goes (its static keys), and QEMU's emulation, of 7.2 at least, can keep on
 * executing what one of its processors had there while another changed it: both then hang. svm-init.sh starts
 * this so that no test makes the first VM. Prints a line when it is ready.
 */
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

int main(void) {
    int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
    int vm = kvm < 0 ? -1 : ioctl(kvm, KVM_CREATE_VM, 0);

    if (vm < 0 || ioctl(vm, KVM_CREATE_VCPU, 0) < 0) {
        perror("hold_vm: /dev/kvm");
        return 1; /* cppcheck-suppress resourceLeak; the process ends here */
    }
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}
