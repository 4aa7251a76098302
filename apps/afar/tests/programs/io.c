// The kernel reads and writes the program's memory on its behalf.
#include "check.h"

#include <linux/io_uring.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

struct ring {
    int fd;
    unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
};

static bool ring_open(struct ring *ring)
{
    const int rw = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
    struct io_uring_params params = { 0 };
    ring->fd = (int)syscall(SYS_io_uring_setup, 8, &params);
    if (ring->fd < 0)
        return false;
    size_t bytes = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    size_t sqe_bytes = params.sq_entries * sizeof(struct io_uring_sqe);
    char *rings = mmap(0, bytes, rw, flags, ring->fd, IORING_OFF_SQ_RING);
    CHECK(rings != MAP_FAILED && params.features & IORING_FEAT_SINGLE_MMAP);
    ring->sqes = mmap(0, sqe_bytes, rw, flags, ring->fd, IORING_OFF_SQES);
    CHECK(ring->sqes != MAP_FAILED);
    ring->sq_tail = (unsigned *)(rings + params.sq_off.tail);
    ring->sq_mask = (unsigned *)(rings + params.sq_off.ring_mask);
    ring->sq_array = (unsigned *)(rings + params.sq_off.array);
    ring->cq_head = (unsigned *)(rings + params.cq_off.head);
    ring->cq_tail = (unsigned *)(rings + params.cq_off.tail);
    ring->cq_mask = (unsigned *)(rings + params.cq_off.ring_mask);
    ring->cqes = (struct io_uring_cqe *)(rings + params.cq_off.cqes);
    return true;
}

static int ring_do(struct ring *ring, struct io_uring_sqe request)
{
    unsigned tail = *ring->sq_tail, index = tail & *ring->sq_mask;
    ring->sqes[index] = request;
    ring->sq_array[index] = index;
    __atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
    CHECK(syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) == 1);
    unsigned head = *ring->cq_head;
    CHECK(__atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE) != head);
    int result = ring->cqes[head & *ring->cq_mask].res;
    __atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
    return result;
}

// Pinned buffers: the kernel writes to their frames without looking at page tables again.
static void uring_fixed(int flags)
{
    enum { BYTES = 512 << 10 };
    struct ring ring;
    if (!ring_open(&ring)) {
        printf("no io_uring\n");
        return;
    }
    int fd = scratch_file(2 * BYTES, 1, flags);
    char *buffer;
    CHECK(fd >= 0 && posix_memalign((void **)&buffer, PAGE, BYTES) == 0);
    struct iovec vector = { buffer, BYTES };
    CHECK(syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, &vector, 1) == 0);
    for (int round = 0; round < 10; round++) {
        size_t offset = round % 2 ? BYTES : 0;
        struct io_uring_sqe read = { .opcode = IORING_OP_READ_FIXED, .fd = fd, .len = BYTES,
                                     .addr = (uintptr_t)buffer, .off = offset };
        struct io_uring_sqe write = read;
        write.opcode = IORING_OP_WRITE_FIXED;
        press();
        CHECK(ring_do(&ring, read) == BYTES);
        CHECK(holds(buffer, BYTES, 1 + offset / 8));
        stamp(buffer, BYTES, round);
        press();
        CHECK(ring_do(&ring, write) == BYTES);
        memset(buffer, 0, BYTES);
        press();
        CHECK(ring_do(&ring, read) == BYTES);
        press();
        CHECK(holds(buffer, BYTES, round));
        stamp(buffer, BYTES, 1 + offset / 8);
        CHECK(ring_do(&ring, write) == BYTES);
    }
}

// What cannot be registered is refused, and costs nobody anything.
static void uring_refused(void)
{
    struct ring ring;
    if (!ring_open(&ring)) {
        printf("no io_uring\n");
        return;
    }
    char *memory = map(4 * PAGE);
    stamp(memory, 4 * PAGE, 21);
    press();
    uintptr_t last = ~(uintptr_t)0 - PAGE + 1;
    struct iovec beyond = { (void *)last, PAGE }, nothing = { memory, 0 };
    uint64_t ring_of_buffers[5] = { last, 1U << 31 };
    CHECK(syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, &beyond, 1) < 0);
    CHECK(syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, last, 1U << 31) < 0);
    CHECK(syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, &nothing, 1U << 31) < 0);
    CHECK(syscall(SYS_io_uring_register, ring.fd, 22, ring_of_buffers, 1) < 0);
    CHECK(syscall(SYS_io_uring_register, ring.fd, 22, last, 1) < 0);
    press();
    CHECK(holds(memory, 4 * PAGE, 21));
}

static void uring(void) { uring_fixed(0); }
static void uring_direct(void) { uring_fixed(O_DIRECT); }

static void direct(void)
{
    // Beside what it shares.
    weigh(8 * MIB);
    enum { BYTES = 1 << 20 };
    int fd = scratch_file(BYTES, 2, O_DIRECT);
    if (fd < 0) {
        printf("no direct I/O here\n");
        return;
    }
    char *fresh = map(BYTES), *used = map(BYTES);
    stamp(used, BYTES, 3);
    press();
    CHECK(pread(fd, fresh, BYTES, 0) == BYTES && holds(fresh, BYTES, 2));
    CHECK(pread(fd, used, BYTES, 0) == BYTES && holds(used, BYTES, 2));
    stamp(used, BYTES, 4);
    press();
    CHECK(pwrite(fd, used, BYTES, 0) == BYTES);
    press();
    CHECK(pread(fd, fresh, BYTES, 0) == BYTES);
    press();
    CHECK(holds(fresh, BYTES, 4) && holds(used, BYTES, 4));
}

static void buffered(void)
{
    enum { BYTES = 4 << 20 };
    int fd = scratch_file(BYTES, 5, 0);
    char *fresh = map(BYTES), *used = map(BYTES);
    stamp(used, BYTES, 6);
    press();
    CHECK(pread(fd, fresh, BYTES, 0) == BYTES && holds(fresh, BYTES, 5));
    CHECK(pread(fd, used, BYTES, 0) == BYTES);
    press();
    CHECK(holds(used, BYTES, 5));
    // What the kernel cannot write to is an error, not a signal.
    CHECK(mprotect(used, PAGE, PROT_READ) == 0);
    CHECK_ERRNO(pread(fd, used, 16, 0), EFAULT);
    CHECK(munmap(used, PAGE) == 0);
    CHECK_ERRNO(pread(fd, used, 16, 0), EFAULT);
    CHECK_ERRNO(pwrite(fd, used, 16, 0), EFAULT);
}

static void vectors(void)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    char *from = map(64 * PAGE), *to = map(64 * PAGE);
    for (int round = 0; round < 50; round++) {
        struct iovec out[8], in[4];
        stamp(from, 64 * PAGE, round);
        if (round % 5 == 0)
            press();
        for (int i = 0; i < 8; i++)
            out[i] = (struct iovec){ from + i * 8 * PAGE, PAGE };
        for (int i = 0; i < 4; i++)
            in[i] = (struct iovec){ to + i * 16 * PAGE, 2 * PAGE };
        CHECK(writev(ends[1], out, 8) == 8 * PAGE);
        if (round % 5 == 1)
            press();
        CHECK(readv(ends[0], in, 4) == 8 * PAGE);
        for (int i = 0; i < 8; i++)
            CHECK(holds(to + i / 2 * 16 * PAGE + i % 2 * PAGE, PAGE, round + i * 8 * PAGE / 8));
    }
}

static void spliced(void)
{
    int ends[2], fd = scratch_file(PAGE, 0, 0);
    CHECK(pipe(ends) == 0);
    char *memory = map(16 * PAGE), *back = map(16 * PAGE);
    for (int round = 0; round < 20; round++) {
        struct iovec vector = { memory, 16 * PAGE };
        stamp(memory, 16 * PAGE, round);
        press();
        CHECK(vmsplice(ends[1], &vector, 1, 0) == 16 * PAGE);
        press();
        loff_t offset = 0;
        while (offset < (loff_t)(16 * PAGE))
            CHECK(splice(ends[0], 0, fd, &offset, 16 * PAGE - offset, 0) > 0);
        CHECK(pread(fd, back, 16 * PAGE, 0) == 16 * PAGE && holds(back, 16 * PAGE, round));
        // Pages that the pipe holds are its own once the program has let go of them.
        CHECK(vmsplice(ends[1], &vector, 1, 0) == 16 * PAGE);
        CHECK(madvise(memory, 16 * PAGE, MADV_DONTNEED) == 0 && is_zero(memory, 16 * PAGE));
        for (size_t got = 0; got < 16 * PAGE;) {
            ssize_t moved = read(ends[0], back + got, 16 * PAGE - got);
            CHECK(moved > 0);
            got += moved;
        }
        CHECK(holds(back, 16 * PAGE, round));
    }
}

static void sockets(void)
{
    enum { BYTES = 256 << 10 };
    int pair[2], fd = scratch_file(BYTES, 7, 0);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    char *memory = map(BYTES);
    stamp(memory, BYTES, 8);
    press();
    pid_t child = fork();
    if (child == 0) {
        close(pair[0]);
        char *got = map(2 * BYTES);
        for (size_t at = 0; at < 2 * BYTES;) {
            ssize_t now = recv(pair[1], got + at, 2 * BYTES - at, 0);
            CHECK(now > 0);
            at += now;
        }
        CHECK(holds(got, BYTES, 8) && holds(got + BYTES, BYTES, 7));
        _exit(0);
    }
    close(pair[1]);
    struct iovec vector = { memory, BYTES };
    struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1 };
    CHECK(sendmsg(pair[0], &message, 0) == BYTES);
    for (off_t at = 0; at < BYTES;)
        CHECK(sendfile(pair[0], fd, &at, BYTES - at) > 0);
    CHECK(status_of(child) == 0);
}

static void from_another_process(void)
{
    char *memory = map(64 * PAGE), byte;
    pid_t parent = getpid();
    int go[2], done[2];
    CHECK(pipe(go) == 0 && pipe(done) == 0);
    stamp(memory, 64 * PAGE, 9);
    pid_t child = fork();
    if (child == 0) {
        char *copy = map(64 * PAGE);
        CHECK(read(go[0], &byte, 1) == 1);
        struct iovec own = { copy, 64 * PAGE }, other = { memory, 64 * PAGE };
        ssize_t got = process_vm_readv(parent, &own, 1, &other, 1, 0);
        if (got < 0 && errno == EPERM) {
            // Reading one's parent is not allowed to everybody.
            CHECK(write(done[1], "n", 1) == 1);
            _exit(0);
        }
        CHECK(got == 64 * PAGE && holds(copy, 64 * PAGE, 10));
        CHECK(holds(memory, 64 * PAGE, 9));
        stamp(copy, 64 * PAGE, 11);
        press();
        CHECK(process_vm_writev(parent, &own, 1, &other, 1, 0) == 64 * PAGE);
        CHECK(write(done[1], "y", 1) == 1);
        _exit(0);
    }
    stamp(memory, 64 * PAGE, 10);
    press();
    CHECK(write(go[1], "x", 1) == 1);
    CHECK(read(done[0], &byte, 1) == 1);
    CHECK(holds(memory, 64 * PAGE, byte == 'y' ? 11 : 10));
    CHECK(status_of(child) == 0);
}

static void own_memory_file(void)
{
    int fd = open("/proc/self/mem", O_RDWR);
    CHECK(fd >= 0);
    char *memory = map(64 * PAGE), *copy = map(64 * PAGE);
    off_t at = (off_t)(uintptr_t)memory;
    stamp(memory, 64 * PAGE, 12);
    press();
    if (by_userfaultfd()) {
        // This kernel interface cannot wait for a fault: the program is told so, and gets no wrong bytes.
        ssize_t got = pread(fd, copy, 64 * PAGE, at);
        CHECK(got < 0 ? errno == EIO : holds(copy, got, 12));
        CHECK(holds(memory, 64 * PAGE, 12));
        return;
    }
    CHECK(pread(fd, copy, 64 * PAGE, at) == 64 * PAGE && holds(copy, 64 * PAGE, 12));
    stamp(copy, 64 * PAGE, 13);
    press();
    CHECK(pwrite(fd, copy, 64 * PAGE, at) == 64 * PAGE);
    press();
    CHECK(holds(memory, 64 * PAGE, 13));
}

// Debuggers write to read-only pages this way. The kernel allows it for private mappings only, which managed
// memory is not: the writer is told.
static void own_memory_file_read_only(void)
{
    int fd = open("/proc/self/mem", O_RDWR);
    char *memory = map(4 * PAGE);
    stamp(memory, 4 * PAGE, 14);
    CHECK(mprotect(memory, 4 * PAGE, PROT_READ) == 0);
    press();
    uint64_t word = 15;
    ssize_t got = pwrite(fd, &word, 8, (off_t)(uintptr_t)memory + PAGE);
    CHECK(got == 8 || (errno == EIO && getenv("AFAR_TEST_TRAP")));
    press();
    CHECK(*(uint64_t *)(memory + PAGE) == (got == 8 ? 15 : mix(14 + PAGE / 8)));
    CHECK(holds(memory, PAGE, 14));
}

static volatile bool stop;

static void *keep_pressing(void *argument)
{
    while (!stop)
        press();
    return argument;
}

// Pages leave while the kernel is in the middle of reading and writing them.
static void under_pressure(void)
{
    enum { BYTES = 1 << 20 };
    pthread_t thread;
    int fd = scratch_file(BYTES, 16, 0);
    char *memory = map(BYTES);
    CHECK(pthread_create(&thread, 0, keep_pressing, 0) == 0);
    for (int i = 0; i < 30; i++) {
        CHECK(pread(fd, memory, BYTES, 0) == BYTES && holds(memory, BYTES, 16 + i));
        stamp(memory, BYTES, 17 + i);
        CHECK(pwrite(fd, memory, BYTES, 0) == BYTES);
    }
    stop = true;
    CHECK(pthread_join(thread, 0) == 0);
}

MAIN(CASE(uring), CASE(uring_refused), CASE(uring_direct), CASE(direct), CASE(buffered), CASE(vectors), CASE(spliced),
     CASE(sockets), CASE(from_another_process), CASE(own_memory_file),
     CASE(own_memory_file_read_only), CASE(under_pressure))
