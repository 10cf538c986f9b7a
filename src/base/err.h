/* err.h - why something did not happen, in words a user may read.
 *
 * A function that can fail returns bool and fills the caller's struct err. The setters return false, so failing is
 * one line. `field` names the member of the request that was wrong, where one was. */
#pragma once
#include "base/base.h"

enum rc {
    RC_OK,
    RC_BAD_INPUT,       /* the request is wrong: fix it */
    RC_UNAUTHENTICATED, /* no credential, or not a good one */
    RC_DENIED,          /* a good credential that may not do this */
    RC_NOT_FOUND,       /* not there, or not yours: the two are never told apart */
    RC_CONFLICT,        /* not in this state */
    RC_STALE,           /* If-Match did not match */
    RC_GONE,            /* it was there; follow from the snapshot instead */
    RC_TOO_LARGE,
    RC_OVER_QUOTA,
    RC_TOO_MANY,        /* slow down */
    RC_TIMEOUT,
    RC_UNAVAILABLE,     /* try again later */
    RC_NOT_WRITER,      /* another server writes: nothing was done here, ask that one */
    RC_INTERNAL,
    RC_COUNT
};

struct err {
    enum rc rc;
    char field[64];
    char text[240];
};

bool err_set(struct err *e, enum rc rc, const char *fmt, ...) PRINTF(3, 4);  /* always false */
bool err_field(struct err *e, const char *field, const char *fmt, ...) PRINTF(3, 4); /* RC_BAD_INPUT; always false */
bool err_wrap(struct err *e, const char *fmt, ...) PRINTF(2, 3);             /* "outer: inner"; always false */
bool err_errno(struct err *e, const char *fmt, ...) PRINTF(2, 3);            /* adds strerror; always false */

int rc_http(enum rc rc);
int rc_exit(enum rc rc);            /* what the CLI exits with */
const char *rc_name(enum rc rc);    /* stable: the last part of problem+json's type */
const char *rc_title(enum rc rc);
enum rc rc_of_http(int status);     /* the nearest kind, for clients */
