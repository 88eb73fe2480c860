/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * What the files of the soft backend share: the vCPU, and what each file does for soft.c. Unicorn's names
 * stay in here; nothing else of pinhole includes them.
 *
 * What our page tables say Unicorn learns in one of two ways: its memory map is a mirror of them
 * (soft_map.c), or it asks for each page (soft_tlb.c). Its processor stands in ring 3 all the time: there is
 * no ring 0, and none of the monitor's stubs ever runs.
 */
#ifndef PH_VM_SOFT_PARTS_H
#define PH_VM_SOFT_PARTS_H

#include <stdatomic.h>

#include <unicorn/unicorn.h>

#include "vm/paging.h"
#include "vm/vcpu.h"

/* Two pages of the backend's own, where the system region has no pages: one of code, one to write on. The
 * guest can reach them, and finds only constants and what it has itself put into its registers. */
#define PH__SOFT_CODE_GVA PH__GVA(0xb000ull)
#define PH__SOFT_DATA_GVA PH__GVA(0xd000ull)

/* Position of a third page, which the guest gets to see nothing of (soft_map.c). */
#define PH__SOFT_STAND_IN (2 * PH__PAGE_SIZE)
#define PH__SOFT_NO_PAGE UINT64_MAX

/* Positions on the page of code. */
#define PH__SOFT_GDT 0x000u
#define PH__SOFT_STOP 0x190u    /* where the routines below end */
#define PH__SOFT_BOOT 0x200u    /* from Unicorn's reset state to ring 3 */
#define PH__SOFT_PROBE 0x240u   /* a general-protection fault with a known error code */
#define PH__SOFT_INT 0x248u     /* an `int` instruction */
#define PH__SOFT_SAVE 0x250u    /* FXSAVE to the page of data */
#define PH__SOFT_RESTORE 0x260u /* FXRSTOR from there */
#define PH__SOFT_SELECT 0x270u  /* DS, ES, FS, GS from AX, BX, CX, DX */
#define PH__SOFT_END 0x800u     /* nothing: where Unicorn is told to stop */

/* A run of guest memory in the mirror. */
struct ph__soft_range {
    uint64_t gva;
    uint64_t size;
    uint8_t *host;
    uint32_t protection; /* UC_PROT_*: less than page tables say, where the host itself may not write */
};

struct ph__soft_ranges {
    struct ph__soft_range *ranges; /* by address */
    size_t count;
    size_t capacity;
};

/* The page tables that the emulated processor has. */
struct ph__soft_tables {
    uint64_t *entries;
    size_t capacity, used; /* in tables */
    uint64_t gpa;          /* where Unicorn has them */
};

/* The most places where doorbells are looked for. Half of it is for single ones. */
#define PH__SOFT_DOORBELLS 512u

/* The most mappings that Unicorn gets for the mirror, unless a layout alone takes more. */
#define PH__SOFT_MAPPINGS 256u

/* Why Unicorn stopped. */
enum ph__soft_event {
    PH__SOFT_NONE,
    PH__SOFT_KICKED, /* in front of the block at (address), and so is PH__SOFT_FULL */
    PH__SOFT_SERVED, /* a routine of our own is done */
    PH__SOFT_DOORBELL,
    PH__SOFT_SYSTEM_CALL,
    PH__SOFT_INTERRUPT, /* (vector): an exception, or an `int` instruction */
    PH__SOFT_UNDEFINED,
    PH__SOFT_ACCESS,  /* (address), (size), (access): one that is not allowed */
    PH__SOFT_MISSED,  /* the same, of which only RIP is known: (retrying) the instruction tells the rest */
    PH__SOFT_IO,      /* (io) */
    PH__SOFT_STRAYED, /* onto the page of code */
    PH__SOFT_FULL,    /* of translated code: a new engine goes on in its place */
    PH__SOFT_GIVEN_UP /* by Unicorn itself, which can then only be closed */
};

/* An I/O instruction that was not seen to be a doorbell in time. */
struct ph__soft_io {
    bool in;
    uint32_t port;
    uint32_t size;
    struct ph__regs regs; /* at it, but for flags; RIP is there or a little before */
};

/* Where an engine puts the code that it translates. */
struct ph__soft_buffer {
    const uint8_t *mark; /* once there is something on this page it is full; NULL: not known */
    uint32_t blocks;     /* that may still run before that is looked at */
};

struct ph__soft_vcpu;

/* How Unicorn comes to guest memory. */
struct ph__soft_way {
    bool mirrors_data; /* the mirror has all of memory, and not code alone */
    /* Prepares a new engine: the backend's own two pages are there afterwards. False when Unicorn fails. */
    bool (*start)(struct ph__soft_vcpu *vcpu);
    /* What is no longer in the mirror, and what is new in it. False without memory. */
    bool (*remove)(struct ph__soft_vcpu *vcpu, const struct ph__soft_range *range);
    bool (*add)(struct ph__soft_vcpu *vcpu, const struct ph__soft_range *range);
    /* The mirror has followed the page tables, or only code has and data need not be in it. PH_E_MEMORY,
     * PH_E_SYSTEM. */
    ph_status (*changed)(struct ph__soft_vcpu *vcpu, ph_error *error);
    /* An access that Unicorn refuses, of (type) at (address): true if it is to go on, and then comes to a
     * page fault of its processor. */
    bool (*goes_on)(struct ph__soft_vcpu *vcpu, uc_mem_type type, uint64_t address);
    /* A run is over: takes back what Unicorn was told of memory that is not there. */
    void (*settle)(struct ph__soft_vcpu *vcpu);
    /* The guest's address for one that Unicorn says it has no memory at. */
    uint64_t (*address)(uint64_t missing);
};

/* soft_map.c: for Unicorn 2.0. soft_tlb.c: for 2.1 and later; NULL when built with an older one. */
extern const struct ph__soft_way ph__soft_map;
extern const struct ph__soft_way *const ph__soft_tlb;

struct ph__soft_vcpu {
    struct ph__vcpu vcpu;
    struct ph__regs regs;
    struct ph__memory *memory;
    const struct ph__monitor_header *monitor;
    uc_engine *engine;
    uc_context *context;
    uint8_t *pages; /* code, data, and one that is never reached (soft_map.c) */
    const struct ph__soft_way *way;
    struct ph__soft_ranges mirror;
    struct ph__soft_ranges mapped; /* what Unicorn has mapped for it */
    struct ph__soft_tables tables;
    struct ph__soft_buffer buffer;
    uc_hook doorbells[PH__SOFT_DOORBELLS];
    size_t doorbell_count;
    bool rewritable; /* there are pages that the guest can both write and execute */
    bool recoded;    /* pages have become executable since the last load */
    bool given_up;   /* the engine is to be replaced before it is used again */
    /* Positions in (context), found out at the start (soft_state.c). */
    size_t old_exception, error_code;

    _Atomic bool kicked;
    uint64_t block; /* where the block of code under way, or the last one, begins */
    uint32_t block_size;
    bool step_due; /* the last doorbell was rung under single step */
    bool serving;  /* on our own page, because we have sent it there */
    bool retrying; /* at an instruction that has been PH__SOFT_MISSED */
    enum ph__soft_event event;
    uint32_t vector;
    uint64_t address; /* of the last access that Unicorn asked about */
    uint32_t size;
    uc_mem_type access;
    struct ph__soft_io io;
    uint64_t stand_in; /* the page that was given to Unicorn for the last access, or PH__SOFT_NO_PAGE */
};

/* soft_mirror.c: makes Unicorn's memory what the page tables say. (code): what can be executed may have
 * changed. PH_E_MEMORY. */
ph_status ph__soft_mirror(struct ph__soft_vcpu *vcpu, bool code, ph_error *error);

/* Whether the host may write at (offset) of the host range, and how many of (*size) bytes that is so for. */
bool ph__soft_host_writes(const struct ph__memory *memory, uint64_t offset, uint64_t *size);

/* Drops translations of all code. */
void ph__soft_forget(struct ph__soft_vcpu *vcpu);

/* Copies up to (size) bytes of memory that the guest can execute at (gva); returns how many there are. */
size_t ph__soft_fetch(const struct ph__soft_vcpu *vcpu, uint64_t gva, uint8_t *bytes, size_t size);

void ph__soft_mirror_free(struct ph__soft_vcpu *vcpu);

/* soft_tables.c: gives the processor page tables with what the mirror has. Call when that has changed.
 * PH_E_MEMORY, PH_E_SYSTEM. */
ph_status ph__soft_tables_make(struct ph__soft_vcpu *vcpu, ph_error *error);

/* After the engine is closed. */
void ph__soft_tables_free(struct ph__soft_vcpu *vcpu);

/* soft_hooks.c: has Unicorn tell of what stops a run. */
ph_status ph__soft_hook(struct ph__soft_vcpu *vcpu, ph_error *error);

/* Has doorbells in executable pages seen. Call when these have changed. */
ph_status ph__soft_hook_doorbells(struct ph__soft_vcpu *vcpu, ph_error *error);

/* soft_cpuid.c: the leaf that a guest sees: EAX, EBX, ECX, EDX. */
void ph__soft_cpuid(uint32_t leaf, uint32_t index, uint32_t words[4]);

/* soft_state.c: chooses how a new engine comes to guest memory, before anything else is asked of it.
 * PH_E_MEMORY; PH_E_BACKEND when this was not built for the library that is there. */
ph_status ph__soft_prepare(struct ph__soft_vcpu *vcpu, ph_error *error);

/* Brings it into ring 3. PH_E_BACKEND when this is not the Unicorn that we know. */
ph_status ph__soft_boot(struct ph__soft_vcpu *vcpu, ph_error *error);
/* Registers of the engine to (vcpu)->regs and back; RIP goes in with the next run. */
void ph__soft_regs_get(struct ph__soft_vcpu *vcpu);
void ph__soft_regs_set(struct ph__soft_vcpu *vcpu);
/* What Unicorn does not say of an exception. */
struct ph__soft_exception {
    uint32_t error_code;
    bool software; /* an `int` instruction: RIP is behind it */
};

/* Takes that, and forgets that there was an exception, which would make a later one a double fault. */
struct ph__soft_exception ph__soft_exception_end(struct ph__soft_vcpu *vcpu);
/* The state of a snapshot, but for (regs). False when Unicorn fails. */
bool ph__soft_state_get(struct ph__soft_vcpu *vcpu, struct ph__processor *processor);
bool ph__soft_state_set(struct ph__soft_vcpu *vcpu, const struct ph__processor *processor);

/* soft_instruction.c: does the undefined instruction at (regs).rip if it is one that Unicorn lacks and guests
 * are promised. False if not, and then (*vector) is the exception that it is. */
bool ph__soft_emulate(struct ph__soft_vcpu *vcpu, uint32_t *vector);
/* The register with (number) in (regs). */
uint64_t *ph__soft_general(struct ph__regs *regs, unsigned number);

/* Whether the undefined instruction at (regs).rip is a breakpoint that Unicorn does not know. */
bool ph__soft_is_int1(const struct ph__soft_vcpu *vcpu);

/* Whether the instruction at (regs).rip writes the very memory that it reads: a processor asks for both at
 * once, Unicorn reads first. */
bool ph__soft_is_update(const struct ph__soft_vcpu *vcpu);

/* Looks for the instruction that did (io). False when none is found, and otherwise (*gva) is its opcode and
 * (*size) how long it is from there. */
bool ph__soft_find_io(const struct ph__soft_vcpu *vcpu, uint64_t *gva, uint32_t *size);

/* soft_fault.c: an exit of kind EXCEPTION, and one of kind FAILED. */
void ph__soft_raise(struct ph__exit *exit, uint32_t vector, uint32_t error_code);
void ph__soft_fail(struct ph__exit *exit, const char *what);
#define PH__SOFT_UNDEFINED_VECTOR 6u
#define PH__SOFT_STACK_VECTOR 12u
#define PH__SOFT_PROTECTION_VECTOR 13u
#define PH__SOFT_PAGE_FAULT_VECTOR 14u
#define PH__SOFT_FAULT_USER 4u /* error codes (SDM volume 3, chapter 4.7) */
#define PH__SOFT_FAULT_FETCH 16u

/* What PH__SOFT_ACCESS and PH__SOFT_INTERRUPT are to the guest. */
void ph__soft_report_access(struct ph__soft_vcpu *vcpu, struct ph__exit *exit);
void ph__soft_report_interrupt(struct ph__soft_vcpu *vcpu, struct ph__exit *exit);

/* soft_operand.c: whether the instruction at (regs).rip uses (address), which is not canonical, by way of the
 * stack segment. */
bool ph__soft_is_stack(const struct ph__soft_vcpu *vcpu, uint64_t address);

/* Where the operand in memory of the instruction at (regs).rip begins, of which (address) is a part:
 * (address) if it does not fit. */
uint64_t ph__soft_operand_start(const struct ph__soft_vcpu *vcpu, uint64_t address);

/* The last block has ended with a branch to (target), which is not canonical, and where a processor would not
 * have gone: (regs) are then as before the branch, where that can be found out. */
void ph__soft_branch_undo(struct ph__soft_vcpu *vcpu, uint64_t target);

/* soft_guard.c: uc_emu_start from (gva) to (end), with its (*result). False when Unicorn wanted to end the
 * process. */
bool ph__soft_guard(uc_engine *engine, uint64_t gva, uint64_t end, uc_err *result);

/* soft_buffer.c: sets memory aside for the translated code of the engine that this thread opens next.
 * PH_E_MEMORY. */
ph_status ph__soft_buffer_reserve(ph_error *error);

/* When the engine has been opened, or not: gives back what it has not taken. */
void ph__soft_buffer_find(struct ph__soft_vcpu *vcpu);

/* Whether there is as much translated code as an engine may have. Call when (buffer).blocks have run. */
bool ph__soft_buffer_full(struct ph__soft_vcpu *vcpu);

/* soft.c: runs from (gva), one of our own pages or the guest's code, until something stops it. */
uc_err ph__soft_go(struct ph__soft_vcpu *vcpu, uint64_t gva);

#endif
