/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Every system call that is served: Linux's name, and the function that serves it. Declarations and the
 * switch in dispatch.c are both made from this list. A name that is missing here is answered with ENOSYS.
 */
#ifndef PH_MONITOR_SYSTEM_CALLS_H
#define PH_MONITOR_SYSTEM_CALLS_H

#include "monitor/monitor.h"

#define PH__SYSTEM_CALLS(X)                                                                                  \
    /* memory.c */                                                                                           \
    X(brk, ph__sys_brk)                                                                                      \
    X(mmap, ph__sys_mmap)                                                                                    \
    X(munmap, ph__sys_munmap)                                                                                \
    X(mremap, ph__sys_mremap)                                                                                \
    X(mprotect, ph__sys_mprotect)                                                                            \
    X(madvise, ph__sys_madvise)                                                                              \
    X(msync, ph__answer_zero)                                                                                \
    X(mlock, ph__answer_zero)                                                                                \
    X(mlock2, ph__answer_zero)                                                                               \
    X(munlock, ph__answer_zero)                                                                              \
    X(mlockall, ph__answer_zero)                                                                             \
    X(munlockall, ph__answer_zero)                                                                           \
    /* time.c, futex.c */                                                                                    \
    X(clock_gettime, ph__sys_clock_gettime)                                                                  \
    X(clock_getres, ph__sys_clock_getres)                                                                    \
    X(clock_settime, ph__answer_eperm)                                                                       \
    X(clock_nanosleep, ph__sys_clock_nanosleep)                                                              \
    X(nanosleep, ph__sys_nanosleep)                                                                          \
    X(gettimeofday, ph__sys_gettimeofday)                                                                    \
    X(settimeofday, ph__answer_eperm)                                                                        \
    X(time, ph__sys_time)                                                                                    \
    X(times, ph__sys_times)                                                                                  \
    X(getrusage, ph__sys_getrusage)                                                                          \
    X(futex, ph__sys_futex)                                                                                  \
    /* random.c */                                                                                           \
    X(getrandom, ph__sys_getrandom)                                                                          \
    /* io.c */                                                                                               \
    X(read, ph__sys_read)                                                                                    \
    X(readv, ph__sys_readv)                                                                                  \
    X(write, ph__sys_write)                                                                                  \
    X(writev, ph__sys_writev)                                                                                \
    X(pwrite64, ph__sys_write)                                                                               \
    X(pwritev, ph__sys_writev)                                                                               \
    /* file_io.c */                                                                                          \
    X(pread64, ph__sys_pread64)                                                                              \
    X(preadv, ph__sys_preadv)                                                                                \
    /* descriptors.c */                                                                                      \
    X(close, ph__sys_close)                                                                                  \
    X(close_range, ph__sys_close_range)                                                                      \
    X(dup, ph__sys_dup)                                                                                      \
    X(dup2, ph__sys_dup2)                                                                                    \
    X(dup3, ph__sys_dup3)                                                                                    \
    X(fcntl, ph__sys_fcntl)                                                                                  \
    X(ioctl, ph__sys_ioctl)                                                                                  \
    X(lseek, ph__sys_lseek)                                                                                  \
    X(fsync, ph__sys_fsync)                                                                                  \
    X(fdatasync, ph__sys_fsync)                                                                              \
    X(ftruncate, ph__sys_ftruncate)                                                                          \
    X(fadvise64, ph__sys_fadvise64)                                                                          \
    X(flock, ph__sys_flock)                                                                                  \
    X(getdents64, ph__sys_getdents64)                                                                        \
    /* poll.c */                                                                                             \
    X(poll, ph__sys_poll)                                                                                    \
    X(ppoll, ph__sys_ppoll)                                                                                  \
    X(select, ph__sys_select)                                                                                \
    X(pselect6, ph__sys_pselect6)                                                                            \
    /* stat.c */                                                                                             \
    X(fstat, ph__sys_fstat)                                                                                  \
    X(stat, ph__sys_stat)                                                                                    \
    X(lstat, ph__sys_stat)                                                                                   \
    X(newfstatat, ph__sys_newfstatat)                                                                        \
    X(statx, ph__sys_statx)                                                                                  \
    /* files.c */                                                                                            \
    X(open, ph__sys_open)                                                                                    \
    X(openat, ph__sys_openat)                                                                                \
    X(creat, ph__sys_creat)                                                                                  \
    X(access, ph__sys_access)                                                                                \
    X(faccessat, ph__sys_faccessat)                                                                          \
    X(faccessat2, ph__sys_faccessat)                                                                         \
    X(getcwd, ph__sys_getcwd)                                                                                \
    X(chdir, ph__sys_chdir)                                                                                  \
    X(readlink, ph__sys_readlink)                                                                            \
    X(readlinkat, ph__sys_readlinkat)                                                                        \
    X(mkdir, ph__sys_make)                                                                                   \
    X(mkdirat, ph__sys_make_at)                                                                              \
    X(mknod, ph__sys_make)                                                                                   \
    X(mknodat, ph__sys_make_at)                                                                              \
    X(unlink, ph__sys_change)                                                                                \
    X(unlinkat, ph__sys_change_at)                                                                           \
    X(rmdir, ph__sys_change)                                                                                 \
    X(rename, ph__sys_change)                                                                                \
    X(renameat, ph__sys_change_at)                                                                           \
    X(renameat2, ph__sys_change_at)                                                                          \
    X(chmod, ph__sys_change)                                                                                 \
    X(fchmodat, ph__sys_change_at)                                                                           \
    X(chown, ph__sys_change)                                                                                 \
    X(lchown, ph__sys_change)                                                                                \
    X(fchownat, ph__sys_change_at)                                                                           \
    X(truncate, ph__sys_change)                                                                              \
    X(umask, ph__sys_umask)                                                                                  \
    X(execve, ph__sys_execve)                                                                                \
    /* identity.c */                                                                                         \
    X(uname, ph__sys_uname)                                                                                  \
    X(sysinfo, ph__sys_sysinfo)                                                                              \
    X(getpid, ph__answer_process)                                                                            \
    X(gettid, ph__answer_process)                                                                            \
    X(getpgrp, ph__answer_process)                                                                           \
    X(set_tid_address, ph__answer_process)                                                                   \
    X(getpgid, ph__sys_getpgid)                                                                              \
    X(getsid, ph__sys_getpgid)                                                                               \
    X(getppid, ph__answer_zero)                                                                              \
    X(setsid, ph__answer_eperm)                                                                              \
    X(setpgid, ph__answer_zero)                                                                              \
    X(getuid, ph__answer_user)                                                                               \
    X(geteuid, ph__answer_user)                                                                              \
    X(getgid, ph__answer_user)                                                                               \
    X(getegid, ph__answer_user)                                                                              \
    X(getresuid, ph__sys_getresuid)                                                                          \
    X(getresgid, ph__sys_getresuid)                                                                          \
    X(setuid, ph__sys_setuid)                                                                                \
    X(setgid, ph__sys_setuid)                                                                                \
    X(setreuid, ph__sys_setreuid)                                                                            \
    X(setregid, ph__sys_setreuid)                                                                            \
    X(setresuid, ph__sys_setresuid)                                                                          \
    X(setresgid, ph__sys_setresuid)                                                                          \
    X(getgroups, ph__answer_zero)                                                                            \
    X(setgroups, ph__answer_eperm)                                                                           \
    /* process.c */                                                                                          \
    X(exit, ph__sys_exit)                                                                                    \
    X(exit_group, ph__sys_exit)                                                                              \
    X(arch_prctl, ph__sys_arch_prctl)                                                                        \
    X(prctl, ph__sys_prctl)                                                                                  \
    X(set_robust_list, ph__answer_zero)                                                                      \
    X(membarrier, ph__sys_membarrier)                                                                        \
    X(clone, ph__answer_eagain)                                                                              \
    X(fork, ph__answer_eagain)                                                                               \
    X(vfork, ph__answer_eagain)                                                                              \
    X(wait4, ph__answer_echild)                                                                              \
    X(waitid, ph__answer_echild)                                                                             \
    /* limits.c */                                                                                           \
    X(getrlimit, ph__sys_getrlimit)                                                                          \
    X(setrlimit, ph__sys_setrlimit)                                                                          \
    X(prlimit64, ph__sys_prlimit64)                                                                          \
    X(sched_yield, ph__answer_zero)                                                                          \
    X(sched_getaffinity, ph__sys_sched_getaffinity)                                                          \
    X(sched_setaffinity, ph__sys_sched_setaffinity)                                                          \
    X(sched_getscheduler, ph__answer_zero)                                                                   \
    X(sched_get_priority_min, ph__answer_zero)                                                               \
    X(sched_get_priority_max, ph__answer_zero)                                                               \
    X(sched_getparam, ph__sys_sched_getparam)                                                                \
    X(getpriority, ph__sys_getpriority)                                                                      \
    X(setpriority, ph__answer_zero)                                                                          \
    X(getcpu, ph__sys_getcpu)                                                                                \
    /* signals.c */                                                                                          \
    X(rt_sigaction, ph__sys_rt_sigaction)                                                                    \
    X(rt_sigprocmask, ph__sys_rt_sigprocmask)                                                                \
    X(rt_sigpending, ph__sys_rt_sigpending)                                                                  \
    X(rt_sigsuspend, ph__sys_rt_sigsuspend)                                                                  \
    X(rt_sigtimedwait, ph__sys_rt_sigtimedwait)                                                              \
    X(rt_sigreturn, ph__sys_rt_sigreturn)                                                                    \
    X(sigaltstack, ph__sys_sigaltstack)                                                                      \
    X(pause, ph__sys_pause)                                                                                  \
    X(kill, ph__sys_kill)                                                                                    \
    X(tkill, ph__sys_tkill)                                                                                  \
    X(tgkill, ph__sys_tgkill)                                                                                \
    X(rt_sigqueueinfo, ph__sys_rt_sigqueueinfo)

#define PH__DECLARE_SYSTEM_CALL(name, function) ph__system_call_function function;
PH__SYSTEM_CALLS(PH__DECLARE_SYSTEM_CALL)
#undef PH__DECLARE_SYSTEM_CALL

#endif
