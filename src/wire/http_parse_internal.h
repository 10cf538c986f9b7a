/* http_parse_internal.h - what http_parse.c and http_body.c share. */
#pragma once
#include "wire/http_parse.h"

enum http_state {
    AT_HEAD, AT_LENGTH, AT_CHUNK_SIZE, AT_CHUNK, AT_CHUNK_END, AT_TRAILER, AT_UNTIL_EOF,
    AT_DONE, AT_STOPPED, AT_BROKEN        /* these take nothing more */
};

struct http_parse {
    enum http_parse_kind kind;
    enum http_state state;
    bool no_body, cr_seen;
    size_t head_limit, lines, blanks;
    uint64_t left;              /* of the body or of a chunk */
    struct str buf;             /* the head, or the line of a chunk, as far as it came */
    size_t line_from;           /* where the unfinished line begins in it */
    struct http_head *head;
    struct http_parse_events events;
    void *arg;
    struct arena *mem;          /* of one message */
};

/* Takes bytes up to the end of a line. line->at stays NULL while it is unfinished; its CR and LF are checked and cut off. */
bool http_line(struct http_parse *p, const char **at, const char *end, size_t limit, struct slice *line, struct err *err);
void http_line_clear(struct http_parse *p);
bool http_header_line(struct slice line, struct slice *name, struct slice *value, struct err *err);
bool http_body_feed(struct http_parse *p, const char **at, const char *end, struct err *err);
