// Rights of the threads of a process.
//   look         drops its user and capabilities and checks that no thread has more than it has
//   run PROGRAM  drops its user and executes the program
//   forge        greets the supervisor as if it were its helper, and reports as one
#include "check.h"

#include <dirent.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/socket.h>

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

struct rights {
    unsigned user[4], group[4];
    unsigned long long permitted, effective;
};

static struct rights of(const char *task)
{
    char path[300], line[300];
    struct rights rights = { 0 };
    snprintf(path, sizeof path, "/proc/self/task/%s/status", task);
    FILE *file = fopen(path, "r");
    CHECK(file);
    while (fgets(line, sizeof line, file)) {
        sscanf(line, "Uid: %u %u %u %u", &rights.user[0], &rights.user[1], &rights.user[2], &rights.user[3]);
        sscanf(line, "Gid: %u %u %u %u", &rights.group[0], &rights.group[1], &rights.group[2], &rights.group[3]);
        sscanf(line, "CapPrm: %llx", &rights.permitted);
        sscanf(line, "CapEff: %llx", &rights.effective);
    }
    fclose(file);
    return rights;
}

// No thread has a capability in effect or permitted that the first thread does not have, nor another user.
static void compare(const char *when)
{
    char own[32];
    int threads = 0;
    snprintf(own, sizeof own, "%d", getpid());
    struct rights mine = of(own);
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks);
    for (struct dirent *task; (task = readdir(tasks));) {
        if (task->d_name[0] == '.' || !strcmp(task->d_name, own))
            continue;
        struct rights other = of(task->d_name);
        fprintf(stderr, "%s: %s user %u group %u permitted %llx effective %llx\n", when, task->d_name, other.user[1],
                other.group[1], other.permitted, other.effective);
        CHECK(!memcmp(mine.user, other.user, sizeof mine.user));
        CHECK(!memcmp(mine.group, other.group, sizeof mine.group));
        CHECK(!(other.permitted & ~mine.permitted));
        CHECK(!other.effective);
        // CAP_SYS_ADMIN and its like are none that the helper ever needs.
        CHECK(!(other.permitted & ~(1ull << 6 | 1ull << 7 | 1ull << 14)));
        threads++;
    }
    closedir(tasks);
    CHECK(threads == 1);
}

static void drop(void)
{
    CHECK(!setgroups(0, 0));
    CHECK(!setresgid(65534, 65534, 65534));
    CHECK(!setresuid(65534, 65534, 65534));
}

static void drop_capability(int number)
{
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct data[2];
    CHECK(!syscall(SYS_capget, &header, data));
    data[0].permitted &= ~(1u << number);
    data[0].effective &= ~(1u << number);
    CHECK(!syscall(SYS_capset, &header, data));
}

// The number of the one other thread, which is the helper.
static int helper(void)
{
    int found = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks);
    for (struct dirent *task; (task = readdir(tasks));)
        if (atoi(task->d_name) && atoi(task->d_name) != getpid())
            found = atoi(task->d_name);
    closedir(tasks);
    CHECK(found);
    return found;
}

// A program may take its helper's socket and send READY once more, with the number of a process that is not its own
// where a thread's could be. The supervisor raises the priority of helpers: that process must not get it.
static void forge_ready(void)
{
    pid_t bystander = fork();
    if (bystander == 0) {
        pause();
        _exit(0);
    }
    int thread = syscall(SYS_pidfd_open, helper(), PIDFD_THREAD), sent = 0;
    // Before Linux 6.9 there is no way to take it.
    CHECK(thread >= 0 || errno == EINVAL);
    for (int number = 0; thread >= 0 && number < 64; number++) {
        uint64_t ready[] = { 1, bystander };
        int socket = syscall(SYS_pidfd_getfd, thread, number, 0);
        sent += send(socket, ready, sizeof ready, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof ready;
        close(socket);
    }
    CHECK(thread < 0 || sent == 1);
    // A call that the supervisor answers: it has read the message before.
    char *memory = map(MIB);
    stamp(memory, MIB, 1);
    press();
    CHECK(holds(memory, MIB, 1));
    errno = 0;
    CHECK(getpriority(PRIO_PROCESS, bystander) == 0 && errno == 0);
    CHECK(kill(bystander, SIGKILL) == 0 && waitpid(bystander, 0, 0) == bystander);
}

static int forge(void)
{
    forge_ready();
    // What a helper says: prctl("afar", HELLO, version).
    for (long greeting = 1; greeting <= 2; greeting++)
        CHECK(syscall(SYS_prctl, 0x61666172L, greeting, 2L, 0L, 0L, 0L) < 0);
    CHECK(syscall(SYS_prctl, 0x61666172L, 5L, 0L, 0L, 0L, 0L) < 0);
    CHECK(syscall(SYS_prctl, 0x61666172L, 4L, 0x7e4000000000L, 0L, 0L, 0L) < 0);
    return 0;
}

int main(int count, char **words)
{
    // So that there is memory to manage, and a helper.
    char *memory = malloc(1 << 20);
    CHECK(memory);
    memset(memory, 1, 1 << 20);
    if (count == 2 && !strcmp(words[1], "forge"))
        return forge();
    if (count == 3 && !strcmp(words[1], "run")) {
        drop();
        execv(words[2], words + 2);
        return 1;
    }
    compare("at first");
    drop_capability(14);
    compare("without CAP_IPC_LOCK");
    drop();
    compare("as another user");
    return 0;
}
