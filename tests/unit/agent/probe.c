#include "agent/probe.h"
#include "tap.h"
#include <string.h>

TEST(memory_is_read_from_meminfo)
{
    CHECK(probe_meminfo_mib(SLICE("MemTotal:       16316412 kB\nMemFree:  1 kB\n")) == 15933);
    CHECK(probe_meminfo_mib(SLICE("MemFree: 1 kB\nMemTotal: 2048 kB")) == 2);
    CHECK(probe_meminfo_mib(SLICE("")) == 0);
    CHECK(probe_meminfo_mib(SLICE("MemTotal:")) == 0);
    CHECK(probe_meminfo_mib(SLICE("MemTotal:   kB\n")) == 0);
    CHECK(probe_meminfo_mib(SLICE("MemTotal: 12 MB\n")) == 0);
    CHECK(probe_meminfo_mib(SLICE("MemTotal: 99999999999999999999999 kB\n")) == 0);
    CHECK(probe_meminfo_mib(SLICE("XMemTotal: 2048 kB\n")) == 0);
}

TEST(processors_are_counted_from_lists)
{
    CHECK(probe_cpu_list("0") == 1);
    CHECK(probe_cpu_list("0-3\n") == 4);
    CHECK(probe_cpu_list("0-1,4,8-9") == 5);
    CHECK(probe_cpu_list("") == 0);
    CHECK(probe_cpu_list("3-1") == 0);
    CHECK(probe_cpu_list("0-") == 0);
    CHECK(probe_cpu_list("0-99999999") == 0);
    CHECK(probe_cpu_list("99999999999999999999") == 0);
    CHECK(probe_cpu_list("none") == 0);
    CHECK(probe_allowed_cpus(SLICE("Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t2-5\nMems_allowed:\t1\n")) == 4);
    CHECK(probe_allowed_cpus(SLICE("Name:\tx\n")) == 0);
}

TEST(limits_of_a_cgroup_are_read)
{
    CHECK(probe_cpu_max_milli("150000 100000") == 1500);
    CHECK(probe_cpu_max_milli("max 100000") == 0);
    CHECK(probe_cpu_max_milli("1 0") == 0);
    CHECK(probe_cpu_max_milli("150000") == 0);
    CHECK(probe_cpu_max_milli("") == 0);
    CHECK(probe_limit_mib("1073741824") == 1024);
    CHECK(probe_limit_mib("max") == 0);
    CHECK(probe_limit_mib("9223372036854771712") == 0);
    CHECK(probe_limit_mib("") == 0);
}

TEST(the_name_of_the_system_is_unquoted)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    CHECK(text_is(probe_os_release(SLICE("ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"), mem), "Debian GNU/Linux 12 (bookworm)"));
    CHECK(text_is(probe_os_release(SLICE("PRETTY_NAME=Alpine"), mem), "Alpine"));
    CHECK(text_is(probe_os_release(SLICE("PRETTY_NAME='x'"), mem), "x"));
    CHECK(probe_os_release(SLICE("ID=x\n"), mem) == NULL);
    CHECK(probe_os_release(SLICE("PRETTY_NAME=\n"), mem) == NULL);
    CHECK(probe_os_release(SLICE("PRETTY_NAME=\""), mem) != NULL);
}
