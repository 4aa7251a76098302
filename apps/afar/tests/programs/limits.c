// Programs that restrict themselves, or have little to live on.
#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static void use_memory(uint64_t seed)
{
    char *memory = map(64 * PAGE), *heap = malloc(200000);
    CHECK(heap && is_zero(memory, 64 * PAGE));
    stamp(memory, 64 * PAGE, seed);
    stamp(heap, 200000, seed + 1);
    press();
    CHECK(holds(memory, 64 * PAGE, seed) && holds(heap, 200000, seed + 1));
    memory = mremap(memory, 64 * PAGE, 512 * PAGE, MREMAP_MAYMOVE);
    CHECK(memory != MAP_FAILED && holds(memory, 64 * PAGE, seed));
    CHECK(madvise(memory, 512 * PAGE, MADV_DONTNEED) == 0 && is_zero(memory, 512 * PAGE));
    CHECK(munmap(memory, 512 * PAGE) == 0);
    free(heap);
}

static void use_memory_in_child(uint64_t seed)
{
    char *memory = map(64 * PAGE);
    stamp(memory, 64 * PAGE, seed);
    press();
    pid_t child = fork();
    if (child == 0) {
        CHECK(holds(memory, 64 * PAGE, seed));
        stamp(memory, 64 * PAGE, seed + 1);
        use_memory(seed);
        _exit(0);
    }
    CHECK(status_of(child) == 0);
    CHECK(holds(memory, 64 * PAGE, seed));
    CHECK(munmap(memory, 64 * PAGE) == 0);
}

static void address_space(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    press();
    struct rlimit limit = { pages * PAGE + 64 * MIB, RLIM_INFINITY };
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    CHECK_ERRNO(mmap(0, 128 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), ENOMEM);
    CHECK(malloc(128 * MIB) == 0);
    for (int i = 0; i < 10; i++)
        use_memory(i);
    char *memory = map(MIB);
    stamp(memory, MIB, 1);
    CHECK_ERRNO(mremap(memory, MIB, 256 * MIB, MREMAP_MAYMOVE), ENOMEM);
    CHECK(holds(memory, MIB, 1));
    use_memory_in_child(2);
}

static int open_all(void)
{
    int fd, last = -1;
    while ((fd = open("/dev/null", O_RDONLY)) >= 0)
        last = fd;
    CHECK(errno == EMFILE);
    return last;
}

static void few_descriptors(void)
{
    struct rlimit limit = { 64, 64 };
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    use_memory(1);
    use_memory_in_child(2);
    CHECK(open_all() == 63);
    use_memory(3);
    // A child is made with not one descriptor to spare.
    use_memory_in_child(4);
}

static void no_descriptors(void)
{
    struct rlimit limit = { 0, 0 };
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    use_memory(1);
    use_memory_in_child(2);
}

static void closed_descriptors(void)
{
    CHECK(syscall(SYS_close_range, 3, ~0U, 0) == 0);
    use_memory(1);
    use_memory_in_child(2);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    use_memory(3);
    int fd = open("/dev/null", O_RDONLY);
    CHECK(fd == 3);
    CHECK(syscall(SYS_close_range, 0, ~0U, 0) == 0);
    use_memory(4);
    use_memory_in_child(5);
}

static void filter(int flags, int denied)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ, denied, 0, 1),
        BPF_STMT(BPF_RET, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof code / sizeof code[0], code };
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0);
}

static void own_filter(void)
{
    use_memory(1);
    filter(0, SYS_getppid);
    CHECK_ERRNO(syscall(SYS_getppid), EPERM);
    use_memory(2);
    use_memory_in_child(3);
}

// A filter for all threads.
static void own_filter_for_all(void)
{
    use_memory(1);
    filter(SECCOMP_FILTER_FLAG_TSYNC, SYS_getppid);
    CHECK_ERRNO(syscall(SYS_getppid), EPERM);
    use_memory(2);
    use_memory_in_child(3);
}

// Only what this test needs is allowed any more; everything else kills the process.
static void sandbox_with(int flags)
{
    static const int allowed[] = { SYS_read, SYS_write, SYS_mmap, SYS_munmap, SYS_mremap,
                                   SYS_madvise, SYS_brk, SYS_mprotect, SYS_futex, SYS_exit,
                                   SYS_exit_group, SYS_rt_sigreturn, SYS_rt_sigprocmask };
    enum { COUNT = sizeof allowed / sizeof allowed[0] };
    use_memory(1);
    struct sock_filter code[COUNT + 3] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0) };
    for (int i = 0; i < COUNT; i++)
        code[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ, allowed[i], COUNT - i, 0);
    code[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET, SECCOMP_RET_KILL_PROCESS);
    code[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW);
    struct sock_fprog program = { COUNT + 3, code };
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0);
    use_memory(2);
}

static void sandbox(void) { sandbox_with(0); }
static void sandbox_for_all(void) { sandbox_with(SECCOMP_FILTER_FLAG_TSYNC); }

static void not_dumpable(void)
{
    CHECK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
    use_memory(1);
    use_memory_in_child(2);
}

static void dropped_privileges(void)
{
    if (getuid() == 0) {
        CHECK(setresgid(65534, 65534, 65534) == 0);
        CHECK(setresuid(65534, 65534, 65534) == 0);
    }
    use_memory(1);
    use_memory_in_child(2);
}

static void new_root(void)
{
    if (getuid() == 0)
        CHECK(chroot("/tmp") == 0 && chdir("/") == 0);
    use_memory(1);
    use_memory_in_child(2);
}

static void user_namespace(void)
{
    use_memory(1);
    CHECK(unshare(CLONE_NEWUSER) == 0);
    use_memory(2);
    use_memory_in_child(3);
}

static void pid_namespace(void)
{
    if (getuid() != 0)
        return;
    CHECK(unshare(CLONE_NEWPID | CLONE_NEWNS) == 0);
    pid_t child = fork();
    if (child == 0) {
        CHECK(getpid() == 1);
        use_memory(1);
        use_memory_in_child(2);
        _exit(0);
    }
    CHECK(status_of(child) == 0);
}

static void stack_limit(void)
{
    struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
    setrlimit(RLIMIT_STACK, &limit);
    if (!getenv("AGAIN")) {
        setenv("AGAIN", "1", 1);
        execl("/proc/self/exe", "limits", "stack_limit", (char *)0);
    }
    use_memory(1);
    use_memory_in_child(2);
}

static void one_processor(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    CHECK(sched_setaffinity(0, sizeof set, &set) == 0);
    for (int i = 0; i < 5; i++)
        use_memory(i);
    use_memory_in_child(2);
}

MAIN(CASE(address_space), CASE(few_descriptors), CASE(no_descriptors), CASE(closed_descriptors),
     CASE(own_filter), CASE(own_filter_for_all), CASE(sandbox), CASE(sandbox_for_all),
     CASE(not_dumpable), CASE(dropped_privileges), CASE(new_root), CASE(user_namespace),
     CASE(pid_namespace), CASE(stack_limit), CASE(one_processor))
