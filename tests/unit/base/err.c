#include "base/err.h"
#include "tap.h"
#include <errno.h>
#include <stdlib.h>

TEST(wrap_reads_outside_in)
{
    struct err e = { 0 };
    CHECK(!err_set(&e, RC_NOT_FOUND, "no image %s", "a"));
    CHECK(!err_wrap(&e, "job %d", 3));
    CHECK(text_is(e.text, "job 3: no image a") && e.rc == RC_NOT_FOUND && rc_http(e.rc) == 404);
}

TEST(long_reasons_are_cut_and_never_overflow)
{
    struct err e = { 0 };
    char big[1000];
    memset(big, 'x', sizeof big - 1);
    big[999] = 0;
    CHECK(!err_set(&e, RC_INTERNAL, "%s", big) && strlen(e.text) == sizeof e.text - 1);
    for (int i = 0; i < 300; i++)
        err_wrap(&e, "%.*s", i, big);
    CHECK(strlen(e.text) < sizeof e.text && e.rc == RC_INTERNAL);
    CHECK(!err_field(&e, big, "%s", big) && strlen(e.field) == sizeof e.field - 1 && e.rc == RC_BAD_INPUT);
}

TEST(a_reason_may_be_made_of_the_reason_before)
{
    struct err e = { 0 };
    err_field(&e, "limit", "must be small");
    err_field(&e, e.field, "%s, as was said", e.text);
    CHECK(text_is(e.text, "must be small, as was said") && text_is(e.field, "limit"));
    err_set(&e, RC_CONFLICT, "%s (%s)", e.text, e.field);
    CHECK(text_is(e.text, "must be small, as was said (limit)") && e.field[0] == 0);
}

TEST(errno_becomes_words_and_a_kind)
{
    struct err e = { 0 };
    errno = ENOENT;
    CHECK(!err_errno(&e, "open %s", "x") && e.rc == RC_NOT_FOUND && text_is(e.text, "open x: No such file or directory"));
    errno = ENOSPC;
    CHECK(!err_errno(&e, "write") && e.rc == RC_UNAVAILABLE);
    errno = EIO;
    CHECK(!err_errno(&e, "read") && e.rc == RC_INTERNAL);
}

TEST(every_kind_has_its_own_name_a_status_and_an_exit_code)
{
    for (int i = 0; i < RC_COUNT; i++) {
        enum rc rc = (enum rc)i;
        CHECK(rc_name(rc) && rc_title(rc) && (i == 0) == (rc_exit(rc) == 0) && rc_http(rc) >= 200 && rc_http(rc) < 600 && (i == 0) == (rc_http(rc) < 400));
        CHECK(rc_http(rc_of_http(rc_http(rc))) == rc_http(rc));
        for (int k = 0; k < i; k++)
            CHECK(!text_is(rc_name(rc), rc_name((enum rc)k)));
    }
    CHECK(rc_of_http(204) == RC_OK && rc_of_http(418) == RC_BAD_INPUT && rc_of_http(502) == RC_INTERNAL && rc_of_http(404) == RC_NOT_FOUND);
}
