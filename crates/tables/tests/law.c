// The law of a link as the kernel side has it, run outside the kernel: reads reservations, a line each (direction 0 in,
// 1 out; bytes' time and now in picoseconds), and prints when each was sent and was ready.
//
//   law MODE RTT_PS PROFILED SEED < reservations
#include <stdio.h>
#include <stdlib.h>

#include "law.h"

static struct link way;
static struct profile profile;

int main(int count, char **words)
{
    if (count != 5)
        return 2;
    way.mode = atoi(words[1]);
    way.rtt_ps = strtoull(words[2], 0, 10);
    way.profiled = atoi(words[3]);
    way.profile_state = strtoull(words[4], 0, 10);
    for (unsigned i = 0; i < PROFILE_ENTRIES; i++)
        profile.ns[i] = i * 3 + 7;
    unsigned out;
    unsigned long long busy_ps, now_ps;
    while (scanf("%u %llu %llu", &out, &busy_ps, &now_ps) == 3) {
        __u64 sent_ps = out ? reserve_out(&way, now_ps, busy_ps) : reserve(&way, now_ps, busy_ps);
        printf("%llu %llu\n", (unsigned long long)sent_ps, (unsigned long long)(sent_ps + latency_of(&way, &profile)));
    }
    return 0;
}
