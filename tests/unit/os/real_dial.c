#include "pair.h"
#include "base/fault.h"

TEST(a_mebibyte_comes_back_by_name) { echo_through("localhost:0"); }

static void expect_failure(const char *address, const char *words)
{
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    struct peer p = { .os = os, .stop_at_close = true };
    p.s = stream_dial(os, address, NULL, NULL, &peer_events, &p);
    stream_write(p.s, "x", 1);
    CHECK(p.closed == 0);               /* never inside the call that caused it */
    run_for(os);
    CHECK(p.opened == 0 && p.closed == 1 && p.why.rc != RC_OK);
    CHECK(strstr(p.why.text, words));
    os_free(os);
}

TEST(bad_and_silent_addresses_fail_through_on_close)
{
    expect_failure("127.0.0.1:1", "refused");
    expect_failure("unix:/nonexistent/socket", "No such file");
    expect_failure("unix:relative", "absolute");
    expect_failure("127.0.0.1", "not an address");
    expect_failure("127.0.0.1:", "not an address");
    expect_failure("127.0.0.1:70000", "not an address");
    expect_failure("::1:80", "not an address");
    expect_failure(":80", "not an address");
    expect_failure("", "not an address");
    expect_failure("host:12x", "not an address");
    expect_failure("no-such-host.invalid:80", "cannot find");
}

TEST(a_dial_that_a_test_makes_fail_is_told_through_on_close)
{
    fault_arm(1);
    expect_failure("127.0.0.1:1", "fault");
    CHECK(fault_fired());
    fault_arm(0);
}

TEST(a_stream_closed_while_its_name_is_looked_up_is_told_once)
{
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    struct peer p = { .os = os, .stop_at_close = true };
    p.s = stream_dial(os, "localhost:1", NULL, NULL, &peer_events, &p);
    stream_close(p.s);
    run_for(os);
    run_ms(os, 30);
    CHECK(p.closed == 1 && p.why.rc == RC_OK);
    os_free(os);
}
