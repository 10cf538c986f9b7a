/* seccomp.c - the profile of every task: a list of what is allowed.
 *
 * What is not listed does not exist (ENOSYS), so that a C library newer than this table falls
 * back instead of failing. What exists but needs rights that no task has is refused with EPERM,
 * as programs expect. The kernel already refuses most of that inside a user namespace: the list
 * is the second wall, and it keeps tenants away from young parts of the kernel (nested user
 * namespaces, io_uring, bpf, userfaultfd, keyrings). */
#include "agent/seccomp.h"

enum { EPERM_ = 1, ENOSYS_ = 38, CLONE_NEW_ANYTHING = 0x7e020000, AF_VSOCK_ = 40 };

/* One name a line would be four hundred lines. */
/* clang-format off */
static const char *const allowed[] = {
    "accept", "accept4", "access", "adjtimex", "alarm", "arch_prctl", "bind", "brk", "cachestat",
    "capget", "capset", "chdir", "chmod", "chown", "chown32", "clock_adjtime", "clock_adjtime64",
    "clock_getres", "clock_getres_time64", "clock_gettime", "clock_gettime64", "clock_nanosleep",
    "clock_nanosleep_time64", "close", "close_range", "connect", "copy_file_range", "creat", "dup",
    "dup2", "dup3", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_ctl_old", "epoll_pwait",
    "epoll_pwait2", "epoll_wait", "epoll_wait_old", "eventfd", "eventfd2", "execve", "execveat",
    "exit", "exit_group", "faccessat", "faccessat2", "fadvise64", "fadvise64_64", "fallocate",
    "fanotify_mark", "fchdir", "fchmod", "fchmodat", "fchmodat2", "fchown", "fchown32", "fchownat",
    "fcntl", "fcntl64", "fdatasync", "fgetxattr", "flistxattr", "flock", "fork", "fremovexattr",
    "fsetxattr", "fstat", "fstat64", "fstatat64", "fstatfs", "fstatfs64", "fsync", "ftruncate",
    "ftruncate64", "futex", "futex_requeue", "futex_time64", "futex_wait", "futex_waitv",
    "futex_wake", "futimesat", "get_mempolicy", "get_robust_list", "get_thread_area", "getcpu",
    "getcwd", "getdents", "getdents64", "getegid", "getegid32", "geteuid", "geteuid32", "getgid",
    "getgid32", "getgroups", "getgroups32", "getitimer", "getpeername", "getpgid", "getpgrp",
    "getpid", "getppid", "getpriority", "getrandom", "getresgid", "getresgid32", "getresuid",
    "getresuid32", "getrlimit", "getrusage", "getsid", "getsockname", "getsockopt", "gettid",
    "gettimeofday", "getuid", "getuid32", "getxattr", "getxattrat", "inotify_add_watch",
    "inotify_init", "inotify_init1", "inotify_rm_watch", "io_cancel", "io_destroy", "io_getevents",
    "io_pgetevents", "io_pgetevents_time64", "io_setup", "io_submit", "ioctl", "ioprio_get",
    "ioprio_set", "ipc", "kcmp", "kill", "landlock_add_rule", "landlock_create_ruleset",
    "landlock_restrict_self", "lchown", "lchown32", "lgetxattr", "link", "linkat", "listen",
    "listmount", "listxattr", "listxattrat", "llistxattr", "_llseek", "lremovexattr", "lseek",
    "lsetxattr", "lstat", "lstat64", "madvise", "map_shadow_stack", "mbind", "membarrier",
    "memfd_create", "memfd_secret", "mincore", "mkdir", "mkdirat", "mknod", "mknodat", "mlock",
    "mlock2", "mlockall", "mmap", "mmap2", "modify_ldt", "mprotect", "mq_getsetattr", "mq_notify",
    "mq_open", "mq_timedreceive", "mq_timedreceive_time64", "mq_timedsend", "mq_timedsend_time64",
    "mq_unlink", "mremap", "mseal", "msgctl", "msgget", "msgrcv", "msgsnd", "msync", "munlock",
    "munlockall", "munmap", "name_to_handle_at", "nanosleep", "newfstatat", "_newselect", "open",
    "openat", "openat2", "pause", "pidfd_getfd", "pidfd_open", "pidfd_send_signal", "pipe", "pipe2",
    "pkey_alloc", "pkey_free", "pkey_mprotect", "poll", "ppoll", "ppoll_time64", "prctl", "pread64",
    "preadv", "preadv2", "prlimit64", "process_madvise", "process_mrelease", "process_vm_readv",
    "process_vm_writev", "pselect6", "pselect6_time64", "ptrace", "pwrite64", "pwritev", "pwritev2",
    "read", "readahead", "readlink", "readlinkat", "readv", "recv", "recvfrom", "recvmmsg",
    "recvmmsg_time64", "recvmsg", "remap_file_pages", "removexattr", "removexattrat", "rename",
    "renameat", "renameat2", "restart_syscall", "rmdir", "rseq", "rt_sigaction", "rt_sigpending",
    "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait",
    "rt_sigtimedwait_time64", "rt_tgsigqueueinfo", "sched_get_priority_max",
    "sched_get_priority_min", "sched_getaffinity", "sched_getattr", "sched_getparam",
    "sched_getscheduler", "sched_rr_get_interval", "sched_rr_get_interval_time64",
    "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler", "sched_yield",
    "seccomp", "select", "semctl", "semget", "semop", "semtimedop", "semtimedop_time64", "send",
    "sendfile", "sendfile64", "sendmmsg", "sendmsg", "sendto", "set_mempolicy",
    "set_mempolicy_home_node", "set_robust_list", "set_thread_area", "set_tid_address", "setfsgid",
    "setfsgid32", "setfsuid", "setfsuid32", "setgid", "setgid32", "setgroups", "setgroups32",
    "setitimer", "setpgid", "setpriority", "setregid", "setregid32", "setresgid", "setresgid32",
    "setresuid", "setresuid32", "setreuid", "setreuid32", "setrlimit", "setsid", "setsockopt",
    "setuid", "setuid32", "setxattr", "setxattrat", "shmat", "shmctl", "shmdt", "shmget",
    "shutdown", "sigaltstack", "signalfd", "signalfd4", "sigprocmask", "sigreturn", "socketcall",
    "socketpair", "splice", "stat", "stat64", "statfs", "statfs64", "statmount", "statx", "symlink",
    "symlinkat", "sync", "sync_file_range", "syncfs", "sysinfo", "tee", "tgkill", "time",
    "timer_create", "timer_delete", "timer_getoverrun", "timer_gettime", "timer_gettime64",
    "timer_settime", "timer_settime64", "timerfd_create", "timerfd_gettime", "timerfd_gettime64",
    "timerfd_settime", "timerfd_settime64", "times", "tkill", "truncate", "truncate64",
    "ugetrlimit", "umask", "uname", "unlink", "unlinkat", "utime", "utimensat", "utimensat_time64",
    "utimes", "vfork", "vmsplice", "wait4", "waitid", "waitpid", "write", "writev", "chroot",
};

static const char *const refused[] = {
    "acct", "add_key", "bpf", "clock_settime", "clock_settime64", "delete_module", "fanotify_init",
    "finit_module", "fsconfig", "fsmount", "fsopen", "fspick", "init_module", "io_uring_enter",
    "io_uring_register", "io_uring_setup", "ioperm", "iopl", "kexec_file_load", "kexec_load",
    "keyctl", "lookup_dcookie", "migrate_pages", "mount", "mount_setattr", "move_mount",
    "move_pages", "nfsservctl", "open_by_handle_at", "open_tree", "perf_event_open", "pivot_root",
    "quotactl", "quotactl_fd", "reboot", "request_key", "setdomainname", "sethostname", "setns",
    "settimeofday", "stime", "swapoff", "swapon", "syslog", "umount", "umount2", "unshare",
    "userfaultfd", "vhangup",
};
/* clang-format on */

/* clone without any new namespace; sockets of every family but the hypervisor's; the
 * personalities that set nothing odd. */
static const struct {
    const char *name;
    int index;
    uint64_t value, mask;
    const char *op;
} conditional[] = {
    { "clone", 0, CLONE_NEW_ANYTHING, 0, "SCMP_CMP_MASKED_EQ" },
    { "socket", 0, AF_VSOCK_, 0, "SCMP_CMP_NE" },
    { "personality", 0, 0x0, 0, "SCMP_CMP_EQ" },
    { "personality", 0, 0x8, 0, "SCMP_CMP_EQ" },
    { "personality", 0, 0x20000, 0, "SCMP_CMP_EQ" },
    { "personality", 0, 0x20008, 0, "SCMP_CMP_EQ" },
    { "personality", 0, 0xffffffff, 0, "SCMP_CMP_EQ" },
};

static const char *const architectures[] = {
#if defined(__aarch64__)
    "SCMP_ARCH_AARCH64",
    "SCMP_ARCH_ARM",
#else
    "SCMP_ARCH_X86_64",
    "SCMP_ARCH_X86",
    "SCMP_ARCH_X32",
#endif
};

static void rule_open(struct json_out *o, const char *const *names, size_t count,
                      const char *action)
{
    json_open(o, '{');
    json_key(o, "names");
    json_open(o, '[');
    for (size_t i = 0; i < count; i++)
        json_put_text(o, names[i]);
    json_close(o, ']');
    json_key(o, "action");
    json_put_text(o, action);
}

static void number(struct json_out *o, const char *key, int64_t n)
{
    json_key(o, key);
    json_put_int(o, n);
}

static void conditional_rule(struct json_out *o, size_t i)
{
    rule_open(o, &conditional[i].name, 1, "SCMP_ACT_ALLOW");
    json_key(o, "args");
    json_open(o, '[');
    json_open(o, '{');
    number(o, "index", conditional[i].index);
    number(o, "value", (int64_t)conditional[i].value);
    number(o, "valueTwo", (int64_t)conditional[i].mask);
    json_key(o, "op");
    json_put_text(o, conditional[i].op);
    json_close(o, '}');
    json_close(o, ']');
    json_close(o, '}');
}

void seccomp_write(struct json_out *o)
{
    static const char *const not_there[]
        = { "clone3" }; /* its flags lie in memory that a filter cannot see */
    json_open(o, '{');
    json_key(o, "defaultAction");
    json_put_text(o, "SCMP_ACT_ERRNO");
    number(o, "defaultErrnoRet", ENOSYS_);
    json_key(o, "architectures");
    json_open(o, '[');
    for (size_t i = 0; i < COUNT(architectures); i++)
        json_put_text(o, architectures[i]);
    json_close(o, ']');
    json_key(o, "syscalls");
    json_open(o, '[');
    rule_open(o, allowed, COUNT(allowed), "SCMP_ACT_ALLOW");
    json_close(o, '}');
    rule_open(o, refused, COUNT(refused), "SCMP_ACT_ERRNO");
    number(o, "errnoRet", EPERM_);
    json_close(o, '}');
    rule_open(o, not_there, COUNT(not_there), "SCMP_ACT_ERRNO");
    number(o, "errnoRet", ENOSYS_);
    json_close(o, '}');
    for (size_t i = 0; i < COUNT(conditional); i++)
        conditional_rule(o, i);
    json_close(o, ']');
    json_close(o, '}');
}

bool seccomp_allows(const char *syscall)
{
    for (size_t i = 0; i < COUNT(allowed); i++)
        if (text_is(allowed[i], syscall))
            return true;
    return false;
}
