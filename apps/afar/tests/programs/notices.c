// What a program does that cannot work with managed memory.
#include "check.h"
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

static void own_userfaultfd(void)
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    struct uffdio_api api = { .api = UFFD_API };
    char *memory = map(16 * PAGE);
    if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0) {
        puts("not here");
        return;
    }
    struct uffdio_register watched = { .range = { (uintptr_t)memory, 16 * PAGE },
                                       .mode = UFFDIO_REGISTER_MODE_MISSING };
    if (getenv("AFAR_TEST_TRAP"))
        CHECK_ERRNO(ioctl(fd, UFFDIO_REGISTER, &watched), EBUSY);
    else
        CHECK(ioctl(fd, UFFDIO_REGISTER, &watched) == 0);
}

static void ring(void)
{
    struct io_uring_params parameters = { 0 };
    if (syscall(SYS_io_uring_setup, 8, &parameters) < 0)
        puts("not here");
    stamp(map(PAGE), PAGE, 1);
}

// As Chromium starts it.
static void zygote(void)
{
    char *arguments[] = { "notices", "nothing", "--type=zygote", 0 };
    execv("/proc/self/exe", arguments);
    CHECK(!"executed");
}

static void own_users(void)
{
    bool refused = unshare(CLONE_NEWUSER) != 0;
    CHECK(!getenv("AFAR_TEST_TRAP") || (refused && errno == EINVAL));
    stamp(map(PAGE), PAGE, 1);
}

static void nothing(void) { stamp(map(PAGE), PAGE, 1); }

MAIN(CASE(own_userfaultfd), CASE(ring), CASE(zygote), CASE(own_users), CASE(nothing))
