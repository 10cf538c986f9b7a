/* http_parse.h - bytes -> the head and body of an HTTP/1.1 message, around libhttp-parser behind a thin face (llhttp can
 * take its place). Pure: no sockets, no clock.
 *
 * Stricter than the library: refuses a missing, empty or double Host, obs-fold, bare LF, NUL, a space before the colon, two
 * Content-Lengths (even equal), Content-Length with Transfer-Encoding, a Transfer-Encoding other than chunked, signs or
 * prefixes in lengths and chunk sizes, unknown versions, control bytes in a target, and anything over its limits. */
#pragma once
#include "base/err.h"
#include "base/str.h"

struct http_pair { const char *name, *value; };     /* both in the message's arena; the name in lower case */

struct http_head {
    const char *method;             /* of a request */
    const char *target;             /* as it came: path and query */
    int status;                     /* of a response */
    int minor;                      /* HTTP/1.minor */
    bool keep_alive, chunked, upgrade, expect_continue;
    int64_t content_length;         /* -1: not given */
    struct http_pair *headers;
    size_t header_count;
};
const char *http_head_get(const struct http_head *h, const char *lower_name);   /* the first of that name, or NULL */

struct http_parse;
enum http_parse_kind { HTTP_PARSE_REQUEST, HTTP_PARSE_RESPONSE };
struct http_parse_events {
    bool (*on_head)(void *arg, struct http_head *h);            /* false: stop here (refused by the caller): feeding takes nothing more */
    bool (*on_body)(void *arg, const char *at, size_t n);       /* false: the same */
    void (*on_message)(void *arg);                              /* the message is complete; feeding stops behind it */
};
struct http_parse *http_parse_new(enum http_parse_kind kind, size_t head_limit, const struct http_parse_events *events, void *arg);
void http_parse_free(struct http_parse *p);
AUTO_FN(struct http_parse *, http_parse_free)
/* An interim reply (1xx) is a message of its own. A target in absolute form is given as its path. HTTP/1.0 may lack a Host.
 * Takes up to n bytes; *taken says how many (bytes behind the end of a message, or of an upgrade's head, are not taken).
 * False: the peer broke the rules, err has RC_BAD_INPUT (or RC_TOO_LARGE) and the connection must close after the reply. */
MUST_CHECK bool http_parse_feed(struct http_parse *p, const char *at, size_t n, size_t *taken, struct err *err);
void http_parse_next(struct http_parse *p, bool reply_has_no_body);   /* ready for the next message; a reply to HEAD has none */
void http_parse_eof(struct http_parse *p, bool *complete);      /* the peer closed: was the message whole? */
struct arena *http_parse_mem(struct http_parse *p);             /* lives until http_parse_next */

/* Percent-decoding of a path part or a query value. False: bad escape, NUL or not UTF-8. */
MUST_CHECK bool url_decode(struct slice in, bool plus_is_space, struct arena *mem, char **out);
void url_encode(struct str *out, const char *text);
