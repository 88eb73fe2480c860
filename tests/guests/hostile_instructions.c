/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Instructions that only a kernel or a hypervisor may run, and others that a sandbox might get wrong. One
 * export for each; the name is the instruction.
 */
#include "hostile.h"

/* ---- for ring 0 ---------------------------------------------------------------------------------------- */

LIE_ASM(hlt, "hlt");
LIE_ASM(cli, "cli");
LIE_ASM(sti, "sti");
LIE_ASM(clts, "clts");
LIE_ASM(invd, "invd");
LIE_ASM(wbinvd, "wbinvd");
LIE_ASM(read_cr0, "mov %%cr0, %%rax");
LIE_ASM(read_cr2, "mov %%cr2, %%rax");
LIE_ASM(read_cr3, "mov %%cr3, %%rax");
LIE_ASM(read_cr4, "mov %%cr4, %%rax");
LIE_ASM(read_cr8, "mov %%cr8, %%rax");
LIE_ASM(write_cr0, "mov $0x80050033, %%eax\n mov %%rax, %%cr0");
LIE_ASM(write_cr3, "xor %%eax, %%eax\n mov %%rax, %%cr3");
LIE_ASM(write_cr4, "xor %%eax, %%eax\n mov %%rax, %%cr4");
LIE_ASM(write_cr8, "xor %%eax, %%eax\n mov %%rax, %%cr8");
LIE_ASM(read_dr0, "mov %%dr0, %%rax");
LIE_ASM(read_dr7, "mov %%dr7, %%rax");
LIE_ASM(write_dr0, "xor %%eax, %%eax\n mov %%rax, %%dr0");
LIE_ASM(write_dr7, "mov $0x700, %%eax\n mov %%rax, %%dr7");
LIE_ASM(lgdt, "lgdt (%%rsp)");
LIE_ASM(lidt, "lidt (%%rsp)");
LIE_ASM(lldt, "xor %%eax, %%eax\n lldt %%ax");
LIE_ASM(ltr, "mov $0x28, %%eax\n ltr %%ax");
LIE_ASM(lmsw, "mov $1, %%eax\n lmsw %%ax");
LIE_ASM(invlpg, "invlpg (%%rsp)");
LIE_ASM(rdmsr, "mov $0xc0000082, %%ecx\n rdmsr");
LIE_ASM(wrmsr, "mov $0xc0000082, %%ecx\n xor %%eax, %%eax\n xor %%edx, %%edx\n wrmsr");
LIE_ASM(swapgs, "swapgs");
LIE_ASM(sysretq, "lea 1f(%%rip), %%rcx\n mov $0x202, %%r11d\n sysretq\n 1:");
LIE_ASM(sysexit, "sysexitl");
LIE_ASM(xsetbv, "xor %%ecx, %%ecx\n xor %%edx, %%edx\n mov $3, %%eax\n xsetbv");
LIE_ASM(invpcid, "xor %%eax, %%eax\n invpcid -16(%%rsp), %%rax");
LIE_ASM(xsaves,
        "xor %%eax, %%eax\n xor %%edx, %%edx\n lea -1024(%%rsp), %%rbx\n and $-64, %%rbx\n xsaves (%%rbx)");
LIE_ASM(xrstors,
        "xor %%eax, %%eax\n xor %%edx, %%edx\n lea -1024(%%rsp), %%rbx\n and $-64, %%rbx\n xrstors (%%rbx)");
LIE_ASM(rsm, ".byte 0x0f, 0xaa");
LIE_ASM(rdpmc, "xor %%ecx, %%ecx\n rdpmc");
LIE_ASM(clac, "clac");
LIE_ASM(stac, "stac");

/* ---- for a hypervisor ---------------------------------------------------------------------------------- */

LIE_ASM(vmcall, "xor %%eax, %%eax\n vmcall");
LIE_ASM(vmcall_random, "mov $0x12345678, %%eax\n mov %%eax, %%ebx\n mov %%eax, %%ecx\n vmcall");
LIE_ASM(vmmcall, "mov $1, %%eax\n vmmcall");
LIE_ASM(vmxon, "vmxon (%%rsp)");
LIE_ASM(vmxoff, "vmxoff");
LIE_ASM(vmlaunch, "vmlaunch");
LIE_ASM(vmresume, "vmresume");
LIE_ASM(vmread, "vmread %%rax, %%rbx");
LIE_ASM(vmwrite, "vmwrite %%rax, %%rbx");
LIE_ASM(vmptrld, "vmptrld (%%rsp)");
LIE_ASM(invept, "xor %%eax, %%eax\n invept (%%rsp), %%rax");
LIE_ASM(invvpid, "xor %%eax, %%eax\n invvpid (%%rsp), %%rax");
LIE_ASM(vmfunc, "xor %%eax, %%eax\n xor %%ecx, %%ecx\n vmfunc");
LIE_ASM(vmrun, "xor %%eax, %%eax\n vmrun");
LIE_ASM(vmload, "xor %%eax, %%eax\n vmload");
LIE_ASM(vmsave, "xor %%eax, %%eax\n vmsave");
LIE_ASM(stgi, "stgi");
LIE_ASM(clgi, "clgi");
LIE_ASM(skinit, "xor %%eax, %%eax\n skinit");
LIE_ASM(invlpga, "xor %%eax, %%eax\n xor %%ecx, %%ecx\n invlpga");
LIE_ASM(getsec, "xor %%eax, %%eax\n getsec");
LIE_ASM(encls, "xor %%eax, %%eax\n encls");
LIE_ASM(enclu, "mov $2, %%eax\n enclu");
LIE_ASM(monitor, "lea (%%rsp), %%rax\n xor %%ecx, %%ecx\n xor %%edx, %%edx\n monitor");
LIE_ASM(mwait, "xor %%eax, %%eax\n xor %%ecx, %%ecx\n mwait");
LIE_ASM(monitorx, "lea (%%rsp), %%rax\n xor %%ecx, %%ecx\n xor %%edx, %%edx\n monitorx");
LIE_ASM(mwaitx, "xor %%eax, %%eax\n xor %%ecx, %%ecx\n mwaitx");
LIE_ASM(umwait, "xor %%eax, %%eax\n xor %%edx, %%edx\n xor %%ecx, %%ecx\n umwait %%ecx");
LIE_ASM(tpause, "xor %%eax, %%eax\n xor %%edx, %%edx\n xor %%ecx, %%ecx\n tpause %%ecx");

/* ---- for anybody, but somewhere else ------------------------------------------------------------------- */

LIE_ASM(sysenter, "sysenter");
LIE_ASM(int1, ".byte 0xf1");
LIE_ASM(int3, "int3");
LIE_ASM(into, ".byte 0xce");
LIE_ASM(ud0, ".byte 0x0f, 0xff, 0xc0");
LIE_ASM(ud1, ".byte 0x0f, 0xb9, 0xc0");
LIE_ASM(ud2, "ud2");
LIE_ASM(lock_nothing, ".byte 0xf0, 0x90");
LIE_ASM(too_long,
        ".byte 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, "
        "0x90");
LIE_ASM(push_cs, ".byte 0x0e");
LIE_ASM(far_call_imm, ".byte 0x9a, 0, 0, 0, 0, 0, 0");
LIE_ASM(salc, ".byte 0xd6");
LIE_ASM(jump_to_the_last_byte, "mov $-1, %%rax\n jmp *%%rax");
LIE_ASM(sgdt, "sgdt -16(%%rsp)");
LIE_ASM(sidt, "sidt -16(%%rsp)");
LIE_ASM(sldt, "sldt %%rax");
LIE_ASM(str, "str %%rax");
LIE_ASM(smsw, "smsw %%rax");
LIE_ASM(cpuid, "mov $0x40000000, %%eax\n xor %%ecx, %%ecx\n cpuid");
LIE_ASM(cpuid_huge, "mov $0xffffffff, %%eax\n mov %%eax, %%ecx\n cpuid");
LIE_ASM(rdtsc, "rdtsc");
LIE_ASM(rdtscp, "rdtscp");
LIE_ASM(xgetbv, "xor %%ecx, %%ecx\n xgetbv");
LIE_ASM(xgetbv_odd, "mov $77, %%ecx\n xgetbv");
LIE_ASM(rdpkru, "xor %%ecx, %%ecx\n rdpkru");
LIE_ASM(wrpkru, "xor %%ecx, %%ecx\n xor %%edx, %%edx\n xor %%eax, %%eax\n wrpkru");
LIE_ASM(rdfsbase, "rdfsbase %%rax");
LIE_ASM(wrfsbase_odd, "movabs $0x800000000000, %%rax\n wrfsbase %%rax");
LIE_ASM(wrgsbase_odd, "movabs $0x8000000000000000, %%rax\n wrgsbase %%rax");
LIE_ASM(wrfsbase_upper, "movabs $0xffffffff81000000, %%rax\n wrfsbase %%rax\n mov %%fs:0, %%rbx");
LIE_ASM(wrgsbase_upper, "movabs $0xffffffff81000000, %%rax\n wrgsbase %%rax\n mov %%gs:0, %%rbx");
LIE_ASM(pause, "pause");
LIE_ASM(clflush_nowhere, "clflush 0");
LIE_ASM(prefetch_nowhere, "prefetcht0 0\n movabs $0xffffffff81000000, %%rax\n prefetcht0 (%%rax)");
LIE_ASM(xrstor_rubbish, "lea -2048(%%rsp), %%rdi\n and $-64, %%rdi\n mov %%rdi, %%rbx\n mov $128, %%ecx\n"
                        "mov $-1, %%rax\n rep stosq\n mov $-1, %%eax\n mov %%eax, %%edx\n xrstor (%%rbx)");
LIE_ASM(fxrstor_rubbish, "lea -2048(%%rsp), %%rdi\n and $-64, %%rdi\n mov %%rdi, %%rbx\n mov $128, %%ecx\n"
                         "mov $-1, %%rax\n rep stosq\n fxrstor (%%rbx)");
LIE_ASM(ldmxcsr_rubbish, "movl $-1, -8(%%rsp)\n ldmxcsr -8(%%rsp)");
LIE_ASM(bus_lock, "lea -64(%%rsp), %%rax\n and $-64, %%rax\n lock incq -4(%%rax)");
LIE_ASM(cmpxchg16b_odd, "lea -64(%%rsp), %%rax\n and $-64, %%rax\n lock cmpxchg16b 8(%%rax)");
LIE_ASM(tsx, "mov $-1, %%eax\n xbegin 1f\n xend\n 1:");
LIE_ASM(xabort, "xabort $1");
LIE_ASM(rdrand, "rdrand %%rax");
LIE_ASM(movsxd, ".byte 0x63, 0xc0");

/* Faults at address 0, behind instructions that do not fault; R8 is where. */
#define FAULT_AT(code) "lea 1f(%%rip), %%r8\n xor %%edi, %%edi\n mov (%%rsp), %%rax\n inc %%eax\n 1: " code
LIE_ASM(fault_load, FAULT_AT("mov (%%rdi), %%rax"));
LIE_ASM(fault_vector_load, FAULT_AT("movups (%%rdi), %%xmm0"));
LIE_ASM(fault_vector_store, FAULT_AT("movups %%xmm0, (%%rdi)"));
LIE_ASM(fault_exchange, FAULT_AT("xchg %%rax, (%%rdi)"));
LIE_ASM(fault_locked, FAULT_AT("lock incq (%%rdi)"));
LIE_ASM(fault_x87, FAULT_AT("fldl (%%rdi)"));
LIE_ASM(fault_string, FAULT_AT("stosq"));

/* ---- int N --------------------------------------------------------------------------------------------- */

/* clang-format off */
__asm__(
    ".pushsection .text\n"
    ".balign 4\n"
    "interrupts:\n"
    "vector = 0\n"
    ".rept 256\n"
    ".byte 0xcd, vector, 0xc3, 0xcc\n" /* int N, ret */
    "vector = vector + 1\n"
    ".endr\n"
    ".popsection");
/* clang-format on */
extern const uint8_t interrupts[] __asm__("interrupts");

static void interrupt(uint32_t vector) {
    const uint8_t *code = interrupts + (vector & 255) * 4;

    __asm__ volatile("call *%0"
                     :
                     : "r"(code)
                     : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
}
PH_EXPORT(interrupt, PH_VOID, PH_U32);
