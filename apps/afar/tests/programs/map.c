// mmap, munmap, mprotect: every way to get and lose memory.
#include "check.h"

#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

static void read_write(void)
{
    char *memory = map(64 * PAGE);
    CHECK(is_zero(memory, 64 * PAGE));
    stamp(memory, 64 * PAGE, 1);
    press();
    CHECK(holds(memory, 64 * PAGE, 1));
    CHECK(munmap(memory, 64 * PAGE) == 0);
}

static void protections(void)
{
    char *memory = mmap(0, 64 * PAGE, PROT_NONE, ANON, -1, 0);
    CHECK(memory != MAP_FAILED);
    CHECK(signal_of(memory, false) == SIGSEGV && signal_of(memory + 9 * PAGE, true) == SIGSEGV);
    CHECK(mprotect(memory + 8 * PAGE, 16 * PAGE, RW) == 0);
    CHECK(is_zero(memory + 8 * PAGE, 16 * PAGE));
    stamp(memory + 8 * PAGE, 16 * PAGE, 2);
    press();
    CHECK(mprotect(memory + 8 * PAGE, 16 * PAGE, PROT_READ) == 0);
    CHECK(signal_of(memory + 8 * PAGE, true) == SIGSEGV);
    CHECK(signal_of(memory + 7 * PAGE, false) == SIGSEGV);
    CHECK(holds(memory + 8 * PAGE, 16 * PAGE, 2));
    CHECK(mprotect(memory, 64 * PAGE, PROT_NONE) == 0);
    press();
    CHECK(signal_of(memory + 9 * PAGE, false) == SIGSEGV);
    CHECK(mprotect(memory, 64 * PAGE, RW) == 0);
    CHECK(holds(memory + 8 * PAGE, 16 * PAGE, 2));
    CHECK(is_zero(memory, 8 * PAGE) && is_zero(memory + 24 * PAGE, 40 * PAGE));
}

static void fixed_over_own(void)
{
    char *memory = map(16 * PAGE);
    stamp(memory, 16 * PAGE, 3);
    press();
    CHECK(mmap(memory + 4 * PAGE, 4 * PAGE, RW, ANON | MAP_FIXED, -1, 0) == memory + 4 * PAGE);
    CHECK(is_zero(memory + 4 * PAGE, 4 * PAGE));
    CHECK(holds(memory, 4 * PAGE, 3) && holds(memory + 8 * PAGE, 8 * PAGE, 3 + 8 * PAGE / 8));
    CHECK(mmap(memory, 16 * PAGE, PROT_NONE, ANON | MAP_FIXED, -1, 0) == memory);
    CHECK(signal_of(memory, false) == SIGSEGV);
    CHECK(mmap(memory, 16 * PAGE, RW, ANON | MAP_FIXED, -1, 0) == memory);
    CHECK(is_zero(memory, 16 * PAGE));
}

// A file mapping in the middle of anonymous memory keeps what is written to it.
static void file_over_own(void)
{
    int fd = scratch_file(8 * PAGE, 4, 0);
    char *memory = map(32 * PAGE), *middle = memory + 8 * PAGE;
    stamp(memory, 32 * PAGE, 5);
    CHECK(mmap(middle, 8 * PAGE, RW, MAP_PRIVATE | MAP_FIXED, fd, 0) == middle);
    CHECK(holds(middle, 8 * PAGE, 4));
    stamp(middle, 4 * PAGE, 6);
    press();
    CHECK(holds(middle, 4 * PAGE, 6));
    CHECK(holds(middle + 4 * PAGE, 4 * PAGE, 4 + 4 * PAGE / 8));
    CHECK(holds(memory, 8 * PAGE, 5));
    CHECK(holds(memory + 16 * PAGE, 16 * PAGE, 5 + 16 * PAGE / 8));
    // A shared file mapping, and anonymous memory again.
    CHECK(mmap(middle, 8 * PAGE, RW, MAP_SHARED | MAP_FIXED, fd, 0) == middle);
    CHECK(holds(middle, 8 * PAGE, 4));
    stamp(middle, 8 * PAGE, 7);
    press();
    char back[PAGE];
    CHECK(pread(fd, back, PAGE, 0) == PAGE && holds(back, PAGE, 7));
    CHECK(mmap(middle, 8 * PAGE, RW, ANON | MAP_FIXED, -1, 0) == middle);
    CHECK(is_zero(middle, 8 * PAGE));
    stamp(middle, 8 * PAGE, 8);
    press();
    CHECK(holds(middle, 8 * PAGE, 8));
    CHECK(munmap(memory, 32 * PAGE) == 0);
}

// What is refused destroys nothing.
static void refused_over_own(void)
{
    char *memory = map(32 * PAGE), *middle = memory + 8 * PAGE;
    int read_only = open("/proc/self/exe", O_RDONLY), path = open("/proc/self/exe", O_PATH);
    int directory = open("/", O_RDONLY), write_only = open("/dev/null", O_WRONLY), pipes[2];
    CHECK(read_only >= 0 && path >= 0 && directory >= 0 && write_only >= 0 && pipe(pipes) == 0);
    int closed = dup(read_only);
    CHECK(close(closed) == 0);
    for (int remote = 0; remote < 2; remote++) {
        stamp(memory, 32 * PAGE, 20);
        if (remote)
            press();
        CHECK_ERRNO(mmap(middle, 8 * PAGE, RW, MAP_SHARED | MAP_FIXED, read_only, 0), EACCES);
        CHECK_ERRNO(mmap(middle, 8 * PAGE, RW, MAP_PRIVATE | MAP_FIXED, path, 0), EBADF);
        CHECK_ERRNO(mmap(middle, 8 * PAGE, RW, MAP_PRIVATE | MAP_FIXED, closed, 0), EBADF);
        CHECK_ERRNO(mmap(middle, 8 * PAGE, RW, MAP_PRIVATE | MAP_FIXED, -1, 0), EBADF);
        CHECK_ERRNO(mmap(middle, 8 * PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, directory, 0), ENODEV);
        CHECK_ERRNO(mmap(middle, 8 * PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, pipes[0], 0), ENODEV);
        CHECK_ERRNO(mmap(middle, 8 * PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, write_only, 0), EACCES);
        CHECK_ERRNO(mmap(middle, 8 * PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, read_only, 77), EINVAL);
        CHECK(holds(memory, 32 * PAGE, 20));
    }
}

static void no_replace(void)
{
    char *memory = map(16 * PAGE);
    stamp(memory, 16 * PAGE, 9);
    CHECK_ERRNO(mmap(memory + PAGE, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0), EEXIST);
    CHECK(holds(memory, 16 * PAGE, 9));
    CHECK(munmap(memory + 4 * PAGE, 4 * PAGE) == 0);
    void *again = mmap(memory + 5 * PAGE, 2 * PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(again == memory + 5 * PAGE);
    CHECK(is_zero(again, 2 * PAGE));
    CHECK_ERRNO(mmap(memory + 4 * PAGE, 2 * PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0), EEXIST);
}

static void hints(void)
{
    char *memory = map(16 * PAGE);
    stamp(memory, 16 * PAGE, 10);
    char *other = mmap(memory, 16 * PAGE, RW, ANON, -1, 0);
    CHECK(other != MAP_FAILED && (other + 16 * PAGE <= memory || other >= memory + 16 * PAGE));
    CHECK(munmap(other, 16 * PAGE) == 0);
    other = mmap(other, 16 * PAGE, RW, ANON, -1, 0);
    CHECK(other != MAP_FAILED && is_zero(other, 16 * PAGE));
    void *odd[] = { memory + 1, other + PAGE - 1, (void *)0x10000, (void *)0x7fff00000000,
                    (void *)-PAGE, (void *)0x100000001000, (void *)0x180000000000 };
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        char *at = mmap(odd[i], 4 * PAGE, RW, ANON, -1, 0);
        CHECK(at != MAP_FAILED && ((uintptr_t)at & (PAGE - 1)) == 0);
        CHECK(is_zero(at, 4 * PAGE));
        stamp(at, 4 * PAGE, 11);
        press();
        CHECK(holds(at, 4 * PAGE, 11));
        CHECK(munmap(at, 4 * PAGE) == 0);
    }
    CHECK(holds(memory, 16 * PAGE, 10));
}

static void kinds(void)
{
    int flags[] = { MAP_POPULATE, MAP_LOCKED, MAP_NORESERVE, MAP_STACK, MAP_32BIT,
                    MAP_POPULATE | MAP_NORESERVE, MAP_NONBLOCK, MAP_STACK | MAP_NORESERVE };
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        char *memory = mmap(0, 32 * PAGE, RW, ANON | flags[i], -1, 0);
        CHECK(memory != MAP_FAILED);
        CHECK(is_zero(memory, 32 * PAGE));
        stamp(memory, 32 * PAGE, i);
        press();
        CHECK(holds(memory, 32 * PAGE, i));
        CHECK(!(flags[i] & MAP_32BIT) || (uintptr_t)memory < 1UL << 31);
        CHECK(munmap(memory, 32 * PAGE) == 0);
    }
    int zero = open("/dev/zero", O_RDWR);
    char *memory = mmap(0, 32 * PAGE, RW, MAP_PRIVATE, zero, 0);
    CHECK(memory != MAP_FAILED);
    stamp(memory, 32 * PAGE, 12);
    press();
    CHECK(holds(memory, 32 * PAGE, 12));
}

static void executable(void)
{
    // mov eax, 42; ret
    static const unsigned char answer[] = { 0xb8, 42, 0, 0, 0, 0xc3 };
    int protections[] = { RW | PROT_EXEC, RW };
    for (int i = 0; i < 2; i++) {
        char *memory = mmap(0, 16 * PAGE, protections[i], ANON, -1, 0);
        CHECK(memory != MAP_FAILED);
        for (int page = 0; page < 16; page++)
            memcpy(memory + page * PAGE, answer, sizeof answer);
        if (i == 1)
            CHECK(mprotect(memory, 16 * PAGE, PROT_READ | PROT_EXEC) == 0);
        press();
        for (int page = 0; page < 16; page++)
            CHECK(((int (*)(void))(memory + page * PAGE))() == 42);
        CHECK(mprotect(memory, 16 * PAGE, PROT_READ) == 0);
        CHECK(munmap(memory, 16 * PAGE) == 0);
    }
}

static void shared_with_child(void)
{
    char *memory = mmap(0, 64 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    stamp(memory, 64 * PAGE, 13);
    pid_t child = fork();
    if (child == 0) {
        CHECK(holds(memory, 64 * PAGE, 13));
        press();
        stamp(memory, 64 * PAGE, 14);
        _exit(0);
    }
    CHECK(status_of(child) == 0);
    CHECK(holds(memory, 64 * PAGE, 14));
}

// As a Java machine does: reserve much, use a little, give back, use again.
static void reservation(void)
{
    const size_t island = 2 * PAGE, step = 320 * MIB;
    char *memory = mmap(0, 64 * GIB, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED);
    for (int i = 0; i < 200; i++) {
        CHECK(mprotect(memory + i * step, island, RW) == 0);
        CHECK(is_zero(memory + i * step, island));
        stamp(memory + i * step, island, i);
    }
    press();
    for (int i = 0; i < 200; i++) {
        char *at = memory + i * step;
        CHECK(holds(at, island, i));
        CHECK(signal_of(at + island, false) == SIGSEGV);
        if (i % 2)
            CHECK(mmap(at, island, PROT_NONE, ANON | MAP_NORESERVE | MAP_FIXED, -1, 0) == at);
        else
            CHECK(madvise(at, island, MADV_DONTNEED) == 0);
    }
    for (int i = 0; i < 200; i++) {
        char *at = memory + i * step;
        if (i % 2)
            CHECK(mmap(at, island, RW, ANON | MAP_NORESERVE | MAP_FIXED, -1, 0) == at);
        CHECK(is_zero(at, island));
    }
    CHECK(munmap(memory, 64 * GIB) == 0);
}

// More addresses than an arena has.
static void many_reservations(void)
{
    char *memory[6];
    for (int i = 0; i < 6; i++) {
        memory[i] = mmap(0, 48 * GIB, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
        CHECK(memory[i] != MAP_FAILED);
        CHECK(mprotect(memory[i] + GIB, 16 * PAGE, RW) == 0);
        stamp(memory[i] + GIB, 16 * PAGE, i);
    }
    char *huge = mmap(0, 1024 * GIB, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
    CHECK(huge != MAP_FAILED && mprotect(huge, PAGE, RW) == 0);
    stamp(huge, PAGE, 99);
    press();
    for (int i = 0; i < 6; i++)
        CHECK(holds(memory[i] + GIB, 16 * PAGE, i));
    CHECK(holds(huge, PAGE, 99));
    for (int i = 0; i < 6; i++)
        CHECK(munmap(memory[i], 48 * GIB) == 0);
    char *after = map(MIB);
    stamp(after, MIB, 15);
    press();
    CHECK(holds(after, MIB, 15));
}

// Allocators map too much and cut off both ends to get the alignment they want.
static void trimmed(void)
{
    const size_t size = 2 * MIB;
    for (int i = 0; i < 50; i++) {
        char *memory = map(2 * size - PAGE);
        char *aligned = (char *)(((uintptr_t)memory + size - 1) & ~(size - 1));
        size_t head = aligned - memory, tail = size - PAGE - head;
        if (head)
            CHECK(munmap(memory, head) == 0);
        if (tail)
            CHECK(munmap(aligned + size, tail) == 0);
        CHECK(is_zero(aligned, 8 * PAGE));
        stamp(aligned, 8 * PAGE, i);
        stamp(aligned + size - PAGE, PAGE, i);
        if (i % 10 == 0)
            press();
        CHECK(holds(aligned, 8 * PAGE, i) && holds(aligned + size - PAGE, PAGE, i));
        if (i % 2)
            CHECK(munmap(aligned, size) == 0);
    }
}

// What the kernel refuses leaves everything as it was.
static void errors(void)
{
    int closed = 1000, write_only = open("/dev/null", O_WRONLY);
    char *memory = map(16 * PAGE);
    stamp(memory, 16 * PAGE, 16);
    CHECK_ERRNO(mmap(0, 0, RW, ANON, -1, 0), EINVAL);
    CHECK_ERRNO(mmap(0, 1UL << 62, RW, ANON, -1, 0), ENOMEM);
    CHECK_ERRNO(mmap(0, -1UL, RW, ANON, -1, 0), ENOMEM);
    CHECK_ERRNO(mmap(0, PAGE, RW, MAP_ANONYMOUS, -1, 0), EINVAL);
    CHECK_ERRNO(mmap(0, PAGE, RW, MAP_PRIVATE, -1, 0), EBADF);
    CHECK_ERRNO(mmap(memory + 1, PAGE, RW, ANON | MAP_FIXED, -1, 0), EINVAL);
    CHECK_ERRNO(mmap(memory + PAGE, 0, RW, ANON | MAP_FIXED, -1, 0), EINVAL);
    CHECK_ERRNO(mmap(memory + PAGE, PAGE, RW, MAP_ANONYMOUS | MAP_FIXED, -1, 0), EINVAL);
    CHECK_ERRNO(mmap(memory + PAGE, PAGE, RW, MAP_PRIVATE | MAP_FIXED, closed, 0), EBADF);
    CHECK_ERRNO(mmap(memory + PAGE, PAGE, RW, MAP_PRIVATE | MAP_FIXED, write_only, 0), EACCES);
    CHECK_ERRNO(mmap((void *)-PAGE, 2 * PAGE, RW, ANON | MAP_FIXED, -1, 0), ENOMEM);
    CHECK_ERRNO(munmap(memory + 1, PAGE), EINVAL);
    CHECK_ERRNO(munmap(memory, 0), EINVAL);
    CHECK_ERRNO(mprotect(memory + 1, PAGE, RW), EINVAL);
    CHECK_ERRNO(mprotect(memory, PAGE, 0x100000), EINVAL);
    CHECK(munmap(memory + 8 * PAGE, PAGE) == 0);
    CHECK_ERRNO(mprotect(memory + 8 * PAGE, PAGE, RW), ENOMEM);
    CHECK(munmap(memory + 8 * PAGE, PAGE) == 0);
    press();
    pid_t child = fork();
    if (child == 0) {
        memset(memory, 1, 8 * PAGE);
        _exit(0);
    }
    CHECK(status_of(child) == 0);
    CHECK(holds(memory, 8 * PAGE, 16));
    CHECK(holds(memory + 9 * PAGE, 7 * PAGE, 16 + 9 * PAGE / 8));
}

static void unmapped(void)
{
    char *memory = map(16 * PAGE);
    stamp(memory, 16 * PAGE, 17);
    press();
    CHECK(munmap(memory + 4 * PAGE, 3 * PAGE - 100) == 0);
    for (int page = 0; page < 16; page++) {
        bool gone = page >= 4 && page < 7;
        CHECK(signal_of(memory + page * PAGE + 5, false) == (gone ? SIGSEGV : 0));
    }
    CHECK(holds(memory, 4 * PAGE, 17) && holds(memory + 7 * PAGE, 9 * PAGE, 17 + 7 * PAGE / 8));
}

static void ten_thousand(void)
{
    enum { COUNT = 10000 };
    static char *memory[COUNT];
    for (int i = 0; i < COUNT; i++) {
        memory[i] = map((1 + i % 3) * PAGE);
        *(uint64_t *)memory[i] = mix(i);
        // Alternating protections keep the kernel from making one of them.
        if (i % 2)
            CHECK(mprotect(memory[i], PAGE, PROT_READ) == 0);
    }
    for (int i = 0; i < COUNT; i += 2) {
        CHECK(*(uint64_t *)memory[i] == mix(i));
        CHECK(munmap(memory[i], (1 + i % 3) * PAGE) == 0);
    }
    for (int i = 1; i < COUNT; i += 2)
        CHECK(*(uint64_t *)memory[i] == mix(i));
}

static void churn(void)
{
    int rounds = getenv("AFAR_TEST_FULL") ? 200000 : 20000;
    for (int i = 0; i < rounds; i++) {
        size_t bytes = (1 + i % 7) * PAGE;
        volatile char *memory = map(bytes);
        CHECK(memory[0] == 0 && memory[bytes - 1] == 0);
        memory[0] = memory[bytes - 1] = 1;
        CHECK(munmap((void *)memory, bytes) == 0);
    }
}

// Hundreds of small mappings come and go, in a forked child too: each is zero, and nobody else's. Where one was, there
// is nothing until another is there. Under afar most are ready before they are asked for.
enum { SMALL = 400 };
static void small_ones(void)
{
    struct { char *memory; size_t bytes; uint64_t seed; } all[SMALL] = {{0}};
    uint64_t drawn = 7;
    bool is_child = false;
    for (int step = 0; step < 12 * SMALL; step++) {
        drawn = mix(drawn);
        int at = drawn % SMALL;
        if (all[at].memory) {
            CHECK(holds(all[at].memory, all[at].bytes, all[at].seed));
            CHECK(munmap(all[at].memory, all[at].bytes) == 0);
            if (drawn % 64 == 0)
                CHECK(signal_of(all[at].memory, false) == SIGSEGV);
            all[at].memory = 0;
            continue;
        }
        all[at].bytes = (1 + (drawn >> 20) % 96) * PAGE;
        all[at].seed = step;
        all[at].memory = map(all[at].bytes);
        CHECK(is_zero(all[at].memory, all[at].bytes));
        stamp(all[at].memory, all[at].bytes, all[at].seed);
        if (step == 6 * SMALL) {
            press();
            pid_t child = fork();
            if (child)
                CHECK(status_of(child) == 0);
            else
                is_child = true;
        }
    }
    for (int at = 0; at < SMALL; at++)
        CHECK(!all[at].memory || holds(all[at].memory, all[at].bytes, all[at].seed));
    if (is_child)
        _exit(0);
}

// What a program unmaps though it has nothing there is not given to it afterwards as if it were there.
static void unmapped_before_given(void)
{
    for (int round = 0; round < 40; round++) {
        char *memory = map(16 * PAGE);
        for (int pages = 1; pages <= 64; pages *= 2)
            CHECK(munmap(memory - pages * PAGE, pages * PAGE) == 0);
        for (int i = 0; i < 8; i++) {
            char *other = map(8 * PAGE);
            stamp(other, 8 * PAGE, i);
            CHECK(holds(other, 8 * PAGE, i));
        }
        CHECK(is_zero(memory, 16 * PAGE));
    }
}

MAIN(CASE(read_write), CASE(protections), CASE(fixed_over_own), CASE(file_over_own),
     CASE(refused_over_own), CASE(no_replace), CASE(hints), CASE(kinds), CASE(executable), CASE(shared_with_child),
     CASE(reservation), CASE(many_reservations), CASE(trimmed), CASE(errors), CASE(unmapped),
     CASE(ten_thousand), CASE(churn), CASE(small_ones), CASE(unmapped_before_given))
