/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Signals of the one thread. They come from the program itself (kill, raise, abort) or from a fault that the
 * host hands back; they are delivered when a system call ends, or at once for a fault. Nothing ever
 * arrives from outside, so a wait for a signal that is not pending never ends.
 */
#include <linux/signal.h>

#include "monitor/monitor.h"
#include "monitor/system_calls.h"

#define SET_SIZE 8u /* sizeof the kernel's sigset_t */
#define UNBLOCKABLE (PH__SIGNAL_BIT(SIGKILL) | PH__SIGNAL_BIT(SIGSTOP))
#define SYNCHRONOUS                                                                                          \
    (PH__SIGNAL_BIT(SIGSEGV) | PH__SIGNAL_BIT(SIGBUS) | PH__SIGNAL_BIT(SIGILL) | PH__SIGNAL_BIT(SIGTRAP) |   \
     PH__SIGNAL_BIT(SIGFPE) | PH__SIGNAL_BIT(SIGSYS))
/* Whose default is to do nothing. To stop would be to hang: nobody could continue the program. */
#define IGNORED_BY_DEFAULT                                                                                   \
    (PH__SIGNAL_BIT(SIGCHLD) | PH__SIGNAL_BIT(SIGCONT) | PH__SIGNAL_BIT(SIGURG) | PH__SIGNAL_BIT(SIGWINCH) | \
     PH__SIGNAL_BIT(SIGSTOP) | PH__SIGNAL_BIT(SIGTSTP) | PH__SIGNAL_BIT(SIGTTIN) | PH__SIGNAL_BIT(SIGTTOU))

#define HANDLER_DEFAULT 0u
#define HANDLER_IGNORE 1u
#define STACK_AUTODISARM (1u << 31)

/* Index = signal number. */
static struct ph__signal_action actions[PH__SIGNALS_MAX + 1];
static struct ph__signal_info infos[PH__SIGNALS_MAX + 1]; /* of the pending ones */

/* What every system call looks at, in one place. Sets of signals are PH__SIGNAL_BITs. */
static struct {
    uint64_t with_handler; /* the signals whose action is a handler */
    uint64_t blocked;
    uint64_t pending;
    /* The mask that comes back at the end of a call that has one of its own. */
    uint64_t mask_after_call;
    bool mask_is_for_call;
    struct ph__signal_stack stack;
} now = {.stack.flags = SS_DISABLE};

static bool is_handled(uint64_t signal) {
    return actions[signal].handler != HANDLER_DEFAULT && actions[signal].handler != HANDLER_IGNORE;
}

static void mask_set(uint64_t mask) {
    now.blocked = mask & ~UNBLOCKABLE;
    ph__state.handled_signals = now.with_handler & ~now.blocked;
}

static void action_set(uint64_t signal, const struct ph__signal_action *action) {
    actions[signal] = *action;
    now.with_handler &= ~PH__SIGNAL_BIT(signal);
    if (is_handled(signal))
        now.with_handler |= PH__SIGNAL_BIT(signal);
    /* What the host may hand back: handled and not blocked. */
    ph__state.handled_signals = now.with_handler & ~now.blocked;
}

static bool is_ignored(uint64_t signal) {
    uint64_t handler = actions[signal].handler;
    return handler == HANDLER_IGNORE ||
           (handler == HANDLER_DEFAULT && (IGNORED_BY_DEFAULT & PH__SIGNAL_BIT(signal)));
}

/* A signal that is ignored vanishes, unless it is blocked and may find a handler later. */
static void signal_raise(const struct ph__signal_info *info) {
    uint64_t signal = (uint64_t)info->signo;
    if (is_ignored(signal) && !(now.blocked & PH__SIGNAL_BIT(signal)))
        return;
    if (!(now.pending & PH__SIGNAL_BIT(signal)))
        infos[signal] = *info;
    now.pending |= PH__SIGNAL_BIT(signal);
}

/* ---------------------------------------------------------------- delivery -- */

static struct ph__signal_context context_now(void) {
    return (struct ph__signal_context){
        .mask = now.mask_is_for_call ? now.mask_after_call : now.blocked,
        .stack = now.stack,
    };
}

/* Enters the handler of (info)'s signal. False if its frame cannot be written. */
static bool handler_enter(struct ph__regs *regs, const struct ph__signal_info *info,
                          const struct ph__exception *exception) {
    uint64_t signal = (uint64_t)info->signo;
    struct ph__signal_action action = actions[signal];
    struct ph__signal_context context = context_now();
    if (!ph__signal_frame_push(regs, info, &action, &context, exception))
        return false;
    now.mask_is_for_call = false;
    if ((uint32_t)now.stack.flags & STACK_AUTODISARM)
        now.stack = (struct ph__signal_stack){.flags = SS_DISABLE};
    uint64_t mask = now.blocked | action.mask;
    if (!(action.flags & SA_NODEFER))
        mask |= PH__SIGNAL_BIT(signal);
    if (action.flags & SA_RESETHAND) {
        action.handler = HANDLER_DEFAULT;
        action_set(signal, &action);
    }
    mask_set(mask);
    return true;
}

/* Linux's answer to a stack that cannot take a frame, and to a frame that is none. */
static void segmentation_fault(struct ph__regs *regs, uint64_t cause) {
    struct ph__signal_info info = {.signo = SIGSEGV, .code = SI_KERNEL};
    if (cause == SIGSEGV || !(ph__state.handled_signals & PH__SIGNAL_BIT(SIGSEGV)) ||
        !handler_enter(regs, &info, NULL))
        ph__kill(SIGSEGV);
}

bool ph__signals_pending(void) {
    return (now.pending & ~now.blocked) != 0;
}

void ph__signals_deliver(struct ph__regs *regs) {
    for (;;) {
        uint64_t deliverable = now.pending & ~now.blocked;
        if (deliverable == 0)
            break;
        if (deliverable & SYNCHRONOUS)
            deliverable &= SYNCHRONOUS;
        uint64_t signal = (uint64_t)__builtin_ctzll(deliverable) + 1;
        now.pending &= ~PH__SIGNAL_BIT(signal);
        if (is_ignored(signal))
            continue;
        if (!is_handled(signal))
            ph__kill(signal);
        if (!handler_enter(regs, &infos[signal], NULL))
            segmentation_fault(regs, signal);
    }
    if (now.mask_is_for_call) {
        now.mask_is_for_call = false;
        mask_set(now.mask_after_call);
    }
}

void ph__signals_mask_for_call(uint64_t mask) {
    now.mask_after_call = now.blocked;
    now.mask_is_for_call = true;
    mask_set(mask);
}

/* -------------------------------------------------------------- exceptions -- */

/* siginfo as Linux fills it (arch/x86/kernel/traps.c, arch/x86/mm/fault.c). */
static struct ph__signal_info exception_info(const struct ph__exception *exception) {
    static const int32_t codes[] = {[0] = FPE_INTDIV, [1] = TRAP_TRACE, [6] = ILL_ILLOPN, [17] = BUS_ADRALN};
    struct ph__signal_info info = {.signo = ph__exception_signal(exception->vector), .code = SI_KERNEL};
    switch (exception->vector) {
    case 0:
    case 1:
    case 6:
        info.code = codes[exception->vector];
        info.address = exception->regs.rip;
        break;
    case 14:
        info.code = ph__is_mapped(exception->address) ? SEGV_ACCERR : SEGV_MAPERR;
        info.address = exception->address;
        break;
    case 16:
    case 19:
        info.code = ph__floating_point_code(exception->vector);
        info.address = exception->regs.rip;
        break;
    case 17:
        info.code = codes[exception->vector];
        break;
    default:
        break;
    }
    return info;
}

void ph__monitor_exception(struct ph__regs *regs) {
    const struct ph__exception *exception = &ph__state.exception;
    *regs = exception->regs;
    struct ph__signal_info info = exception_info(exception);
    /* Linux ends a program whose fault meets a blocked or ignored signal; the host knows how. */
    if (info.signo == 0 || !(ph__state.handled_signals & PH__SIGNAL_BIT(info.signo)) ||
        !handler_enter(regs, &info, exception))
        ph__unhandled();
}

/* Makes (wanted) the alternate stack of a thread whose stack pointer is (stack_pointer). */
static int64_t stack_set(struct ph__signal_stack wanted, uint64_t stack_pointer) {
    uint32_t mode = (uint32_t)wanted.flags & ~STACK_AUTODISARM;
    if (ph__on_signal_stack(&now.stack, stack_pointer))
        return -EPERM;
    if (mode != SS_DISABLE && mode != SS_ONSTACK && mode != 0)
        return -EINVAL;
    if (mode == SS_DISABLE) {
        wanted.base = 0;
        wanted.size = 0;
    } else if (wanted.size < MINSIGSTKSZ) {
        return -ENOMEM;
    }
    wanted.flags &= ~SS_ONSTACK;
    wanted.pad = 0;
    now.stack = wanted;
    return 0;
}

int64_t ph__sys_rt_sigreturn(struct ph__regs *regs) {
    struct ph__signal_context context;
    if (!ph__signal_frame_pop(regs, &context)) {
        segmentation_fault(regs, 0);
        return (int64_t)regs->rax;
    }
    mask_set(context.mask);
    /* As on Linux, no error of this ends the return. */
    stack_set(context.stack, regs->rsp);
    return (int64_t)regs->rax;
}

/* ------------------------------------------------------- actions and masks -- */

int64_t ph__signal_set_from_user(uint64_t address, uint64_t size, uint64_t *set) {
    if (size != SET_SIZE)
        return -EINVAL;
    return ph__copy_from_user(set, address, sizeof *set);
}

int64_t ph__sys_rt_sigaction(struct ph__regs *regs) {
    uint64_t signal = regs->rdi;
    struct ph__signal_action action;
    if (regs->r10 != SET_SIZE || signal < 1 || signal > PH__SIGNALS_MAX)
        return -EINVAL;
    if (regs->rsi != 0) {
        if (UNBLOCKABLE & PH__SIGNAL_BIT(signal))
            return -EINVAL;
        if (ph__copy_from_user(&action, regs->rsi, sizeof action) != 0)
            return -EFAULT;
    }
    if (regs->rdx != 0 && ph__copy_to_user(regs->rdx, &actions[signal], sizeof action) != 0)
        return -EFAULT;
    if (regs->rsi == 0)
        return 0;
    action.mask &= ~UNBLOCKABLE;
    action_set(signal, &action);
    if (is_ignored(signal))
        now.pending &= ~PH__SIGNAL_BIT(signal);
    return 0;
}

int64_t ph__sys_rt_sigprocmask(struct ph__regs *regs) {
    uint64_t old = now.blocked;
    uint64_t set;
    if (regs->r10 != SET_SIZE)
        return -EINVAL;
    if (regs->rsi != 0) {
        if (ph__copy_from_user(&set, regs->rsi, sizeof set) != 0)
            return -EFAULT;
        switch ((int32_t)regs->rdi) {
        case SIG_BLOCK:
            mask_set(now.blocked | set);
            break;
        case SIG_UNBLOCK:
            mask_set(now.blocked & ~set);
            break;
        case SIG_SETMASK:
            mask_set(set);
            break;
        default:
            return -EINVAL;
        }
    }
    return regs->rdx == 0 ? 0 : ph__copy_to_user(regs->rdx, &old, sizeof old);
}

int64_t ph__sys_rt_sigpending(struct ph__regs *regs) {
    uint64_t waiting = now.pending & now.blocked;
    return regs->rsi > SET_SIZE ? -EINVAL : ph__copy_to_user(regs->rdi, &waiting, regs->rsi);
}

int64_t ph__sys_sigaltstack(struct ph__regs *regs) {
    struct ph__signal_stack old = now.stack;
    struct ph__signal_stack wanted;
    if (ph__on_signal_stack(&old, regs->rsp))
        old.flags |= SS_ONSTACK;
    if (regs->rdi != 0) {
        if (ph__copy_from_user(&wanted, regs->rdi, sizeof wanted) != 0)
            return -EFAULT;
        int64_t answer = stack_set(wanted, regs->rsp);
        if (answer != 0)
            return answer;
    }
    return regs->rsi == 0 ? 0 : ph__copy_to_user(regs->rsi, &old, sizeof old);
}

/* ----------------------------------------------------------------- sending -- */

static int64_t signal_send(uint64_t signal, int32_t code) {
    if (signal > PH__SIGNALS_MAX)
        return -EINVAL;
    if (signal == 0)
        return 0;
    struct ph__signal_info info = {.signo = (int32_t)signal, .code = code};
    info.pid = PH__PROCESS_ID;
    info.uid = PH__USER_ID;
    signal_raise(&info);
    return 0;
}

int64_t ph__sys_kill(struct ph__regs *regs) {
    int32_t process = (int32_t)regs->rdi;
    /* 0 and -1 * the group are this process; -1 is every other one, and there is none. */
    if (process != 0 && process != PH__PROCESS_ID)
        return -ESRCH;
    return signal_send((uint32_t)regs->rsi, SI_USER);
}

int64_t ph__sys_tkill(struct ph__regs *regs) {
    if ((int32_t)regs->rdi <= 0)
        return -EINVAL;
    return (int32_t)regs->rdi == PH__PROCESS_ID ? signal_send((uint32_t)regs->rsi, SI_TKILL) : -ESRCH;
}

int64_t ph__sys_tgkill(struct ph__regs *regs) {
    if ((int32_t)regs->rdi <= 0 || (int32_t)regs->rsi <= 0)
        return -EINVAL;
    if ((int32_t)regs->rdi != PH__PROCESS_ID || (int32_t)regs->rsi != PH__PROCESS_ID)
        return -ESRCH;
    return signal_send((uint32_t)regs->rdx, SI_TKILL);
}

int64_t ph__sys_rt_sigqueueinfo(struct ph__regs *regs) {
    struct ph__signal_info info;
    if ((int32_t)regs->rdi != PH__PROCESS_ID)
        return -ESRCH;
    if (ph__copy_from_user(&info, regs->rdx, sizeof info) != 0)
        return -EFAULT;
    uint64_t signal = (uint32_t)regs->rsi;
    if (signal > PH__SIGNALS_MAX)
        return -EINVAL;
    info.signo = (int32_t)signal;
    if (signal != 0)
        signal_raise(&info);
    return 0;
}

/* ----------------------------------------------------------------- waiting -- */

int64_t ph__sys_pause(struct ph__regs *regs) {
    (void)regs;
    if (!ph__signals_pending())
        ph__sleep(PH__FOREVER);
    return -EINTR;
}

int64_t ph__sys_rt_sigsuspend(struct ph__regs *regs) {
    uint64_t mask;
    int64_t answer = ph__signal_set_from_user(regs->rdi, regs->rsi, &mask);
    if (answer != 0)
        return answer;
    ph__signals_mask_for_call(mask);
    if (!ph__signals_pending())
        ph__sleep(PH__FOREVER);
    return -EINTR;
}

int64_t ph__sys_rt_sigtimedwait(struct ph__regs *regs) {
    uint64_t set;
    uint64_t duration = PH__FOREVER;
    int64_t answer = ph__signal_set_from_user(regs->rdi, regs->r10, &set);
    if (answer == 0 && regs->rdx != 0)
        answer = ph__duration_from_user(regs->rdx, &duration);
    if (answer != 0)
        return answer;
    set &= now.pending & ~UNBLOCKABLE;
    if (set == 0) {
        ph__sleep(duration);
        return -EAGAIN;
    }
    uint64_t signal = (uint64_t)__builtin_ctzll(set) + 1;
    now.pending &= ~PH__SIGNAL_BIT(signal);
    if (regs->rsi != 0 && ph__copy_to_user(regs->rsi, &infos[signal], sizeof infos[signal]) != 0)
        return -EFAULT;
    return (int64_t)signal;
}
