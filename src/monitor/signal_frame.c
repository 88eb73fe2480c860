/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The signal frame of x86-64 Linux (arch/x86/kernel/signal_64.c): what a handler finds on its stack, and what
 * rt_sigreturn takes back. Programs read and edit it, so every field is where Linux has it. The frame that
 * comes back is the guest's word and can only hurt the guest.
 */
#include <asm/sigcontext.h>
#include <linux/signal.h>

#include "monitor/monitor.h"

/* asm/ucontext.h, which does not stand on its own. */
#define UC_FP_XSTATE 0x1u
#define UC_SIGCONTEXT_SS 0x2u
#define UC_STRICT_RESTORE_SS 0x4u

#define RED_ZONE 128u
#define FRAME_ALIGNMENT 16u
#define STATE_ALIGNMENT 64u

/* Linux's selectors, for programs that look; ours differ, and nobody loads these. */
#define LINUX_USER_CODE 0x33u
#define LINUX_USER_DATA 0x2bu

/* CF PF AF ZF SF TF DF OF RF AC: the flags that a frame may change. */
#define FLAGS_OF_FRAME 0x50dd5u
#define FLAG_IF 0x200ull
#define FLAGS_CLEAR_IN_HANDLER 0x10500ull /* DF, RF, TF */

struct frame {
    uint64_t restorer;
    struct {
        uint64_t flags;
        uint64_t link;
        struct ph__signal_stack stack;
        struct sigcontext_64 registers;
        uint64_t mask;
    } context;
    struct ph__signal_info info;
};
_Static_assert(sizeof(struct sigcontext_64) == 256, "struct sigcontext");
/* Linux keeps zeroes there; ours are of no use to a program. */
_Static_assert(sizeof(struct ph__interrupted) <= sizeof(((struct sigcontext_64 *)0)->reserved1), "trace.c");
_Static_assert(sizeof(struct frame) == 440, "struct rt_sigframe");

bool ph__on_signal_stack(const struct ph__signal_stack *stack, uint64_t stack_pointer) {
    return !(stack->flags & SS_DISABLE) && stack_pointer > stack->base &&
           stack_pointer - stack->base <= stack->size;
}

static void registers_save(struct sigcontext_64 *to, const struct ph__regs *regs) {
    to->r8 = regs->r8;
    to->r9 = regs->r9;
    to->r10 = regs->r10;
    to->r11 = regs->r11;
    to->r12 = regs->r12;
    to->r13 = regs->r13;
    to->r14 = regs->r14;
    to->r15 = regs->r15;
    to->di = regs->rdi;
    to->si = regs->rsi;
    to->bp = regs->rbp;
    to->bx = regs->rbx;
    to->dx = regs->rdx;
    to->ax = regs->rax;
    to->cx = regs->rcx;
    to->sp = regs->rsp;
    to->ip = regs->rip;
    to->flags = regs->rflags | FLAG_IF; /* as it always is on Linux */
    to->cs = LINUX_USER_CODE;
    to->ss = LINUX_USER_DATA;
}

static void registers_restore(struct ph__regs *regs, const struct sigcontext_64 *from) {
    regs->r8 = from->r8;
    regs->r9 = from->r9;
    regs->r10 = from->r10;
    regs->r11 = from->r11;
    regs->r12 = from->r12;
    regs->r13 = from->r13;
    regs->r14 = from->r14;
    regs->r15 = from->r15;
    regs->rdi = from->di;
    regs->rsi = from->si;
    regs->rbp = from->bp;
    regs->rbx = from->bx;
    regs->rdx = from->dx;
    regs->rax = from->ax;
    regs->rcx = from->cx;
    regs->rsp = from->sp;
    regs->rip = from->ip;
    regs->rflags = (regs->rflags & ~(uint64_t)FLAGS_OF_FRAME) | (from->flags & FLAGS_OF_FRAME);
}

/* Where the frame goes, and where the vector state above it. False if the alternate stack has no room. */
static bool frame_place(const struct ph__regs *regs, const struct ph__signal_action *action,
                        const struct ph__signal_stack *stack, uint64_t *frame, uint64_t *state) {
    uint64_t top = regs->rsp - RED_ZONE;
    bool on_stack = ph__on_signal_stack(stack, regs->rsp);
    if ((action->flags & SA_ONSTACK) && !on_stack && !(stack->flags & SS_DISABLE)) {
        top = stack->base + stack->size;
        on_stack = true;
    }
    *state = (top - ph__floating_point_size()) & ~(uint64_t)(STATE_ALIGNMENT - 1);
    /* As if a call had just pushed the return address. */
    *frame = ((*state - sizeof(struct frame)) & ~(uint64_t)(FRAME_ALIGNMENT - 1)) - 8;
    return *frame < top && (!on_stack || ph__on_signal_stack(stack, *frame));
}

bool ph__signal_frame_push(struct ph__regs *regs, const struct ph__signal_info *info,
                           const struct ph__signal_action *action, const struct ph__signal_context *context,
                           const struct ph__exception *exception) {
    uint64_t address, state;
    /* Without a restorer a handler has nowhere to return to; Linux refuses it on this processor, too. */
    if (!(action->flags & SA_RESTORER) || !frame_place(regs, action, &context->stack, &address, &state))
        return false;
    struct frame frame = {
        .restorer = action->restorer,
        .context.flags = UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS,
        .context.stack = context->stack,
        .context.mask = context->mask,
        .info = *info,
    };
    if (ph__floating_point_is_extended())
        frame.context.flags |= UC_FP_XSTATE;
    registers_save(&frame.context.registers, regs);
    frame.context.registers.oldmask = context->mask;
    frame.context.registers.fpstate = state;
    if (ph__is_traced()) {
        struct ph__interrupted *interrupted = (void *)frame.context.registers.reserved1;
        *interrupted = ph__trace_interrupt(regs->rip);
    }
    if (exception != NULL) {
        frame.context.registers.trapno = exception->vector;
        frame.context.registers.err = exception->error_code;
        frame.context.registers.cr2 = exception->address;
    }
    if (!ph__floating_point_save(state) || ph__copy_to_user(address, &frame, sizeof frame) != 0)
        return false;
    ph__floating_point_reset();
    *regs = (struct ph__regs){
        .rdi = (uint64_t)info->signo,
        .rsi = address + offsetof(struct frame, info),
        .rdx = address + offsetof(struct frame, context),
        .rsp = address,
        .rip = action->handler,
        .rflags = regs->rflags & ~FLAGS_CLEAR_IN_HANDLER,
        .rbx = regs->rbx,
        .rbp = regs->rbp,
        .rcx = regs->rcx,
        .r8 = regs->r8,
        .r9 = regs->r9,
        .r10 = regs->r10,
        .r11 = regs->r11,
        .r12 = regs->r12,
        .r13 = regs->r13,
        .r14 = regs->r14,
        .r15 = regs->r15,
    };
    return true;
}

bool ph__signal_frame_pop(struct ph__regs *regs, struct ph__signal_context *context) {
    struct frame frame;
    /* The handler's `ret` has taken the restorer's address off. */
    if (ph__copy_from_user(&frame, regs->rsp - 8, sizeof frame) != 0)
        return false;
    struct sigcontext_64 *registers = &frame.context.registers;
    if (ph__is_traced())
        registers->ip = ph__trace_resume((const void *)registers->reserved1, registers->ip);
    /* The jump that ends a system call would fault in the monitor if it led nowhere. */
    if (!ph__user_range(registers->ip, 1) || !ph__floating_point_restore(registers->fpstate))
        return false;
    registers_restore(regs, registers);
    *context = (struct ph__signal_context){.mask = frame.context.mask, .stack = frame.context.stack};
    return true;
}
