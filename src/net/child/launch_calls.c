/* seccomp: system calls that no agent's program needs and that would let it
 * reach other processes and files. Each fails with EPERM.
 *
 * Calls of another architecture (32 bits on x86-64) and of x32 have other
 * numbers, and are rejected as a whole.
 *
 * Two families are closed only if nothing else protects the database: truncate
 * by path where Landlock is older than version 3, and calls that change the
 * rights of a file by path, which Landlock never sees. If a mount hides the
 * data folder, or it belongs to another user, both are open. */
#include "net/child/launch.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "net/child/internal.h"

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#define X32_BIT  0x40000000u
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#endif

/* The same on all architectures, and newer than the headers of some systems. */
enum {
    CALL_OPEN_TREE = 428,
    CALL_MOVE_MOUNT = 429,
    CALL_FSOPEN = 430,
    CALL_FSCONFIG = 431,
    CALL_FSMOUNT = 432,
    CALL_FSPICK = 433,
    CALL_MOUNT_SETATTR = 442,
    CALL_FCHMODAT2 = 452,
    CALL_SETXATTRAT = 463,
    CALL_REMOVEXATTRAT = 466,
    CALL_OPEN_TREE_ATTR = 467,
    CALL_FILE_SETATTR = 469
};

static const unsigned always[] = {
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_pidfd_getfd,
    SYS_process_madvise,
    SYS_kcmp,
    SYS_open_by_handle_at,
    SYS_perf_event_open,
    SYS_bpf,
    SYS_setns,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    CALL_OPEN_TREE,
    CALL_OPEN_TREE_ATTR,
    CALL_MOVE_MOUNT,
    CALL_FSOPEN,
    CALL_FSCONFIG,
    CALL_FSMOUNT,
    CALL_FSPICK,
    CALL_MOUNT_SETATTR,
    /* Its operations bypass filters; Node works without. */
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
};

static const unsigned rights[] = {
    SYS_fchmodat,       SYS_fchownat,      SYS_setxattr,   SYS_lsetxattr,
    SYS_removexattr,    SYS_lremovexattr,  CALL_FCHMODAT2, CALL_SETXATTRAT,
    CALL_REMOVEXATTRAT, CALL_FILE_SETATTR,
#ifdef SYS_chmod
    SYS_chmod,          SYS_chown,         SYS_lchown,
#endif
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

enum { CODE_MAX = 8 + 2 * (COUNT(always) + COUNT(rights) + 1) };

struct code {
    struct sock_filter list[CODE_MAX];
    size_t n;
};

static void filter_put(struct code *c, unsigned what, unsigned k, unsigned yes,
                       unsigned no)
{
    c->list[c->n++] = (struct sock_filter){
        (unsigned short)what, (unsigned char)yes, (unsigned char)no, k};
}

static void put_refusal(struct code *c)
{
    filter_put(c, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0, 0);
}

static void refuse_all(struct code *c, const unsigned *api, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        filter_put(c, BPF_JMP | BPF_JEQ | BPF_K, api[i], 0, 1);
        put_refusal(c);
    }
}

/* Whether calls that take a path can reach the data. */
static bool is_data_in_reach(const struct launch *l)
{
    return !(l->held & (CHILD_HOLDS_MOUNTS | CHILD_HOLDS_USER));
}

void launch_restrict_calls(struct launch *l)
{
#ifdef OUR_ARCH
    static const unsigned truncates[] = {SYS_truncate};
    struct code c = {.n = 0};
    struct sock_fprog program;

    filter_put(&c, BPF_LD | BPF_W | BPF_ABS,
               offsetof(struct seccomp_data, arch), 0, 0);
    filter_put(&c, BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0);
    put_refusal(&c);
    filter_put(&c, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr),
               0, 0);
#ifdef X32_BIT
    filter_put(&c, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
    put_refusal(&c);
#endif
    refuse_all(&c, always, COUNT(always));
    if (is_data_in_reach(l)) {
        refuse_all(&c, rights, COUNT(rights));
        if (l->abi < 3)
            refuse_all(&c, truncates, 1);
    }
    filter_put(&c, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    program = (struct sock_fprog){(unsigned short)c.n, c.list};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) != 0 &&
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return;
    l->held |= CHILD_HOLDS_CALLS;
#else
    (void)l;
#endif
}
