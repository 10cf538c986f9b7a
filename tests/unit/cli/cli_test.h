/* cli_test.h - what the tests of the command line share: a struct cli on the real machine with a
 * folder of its own, its output caught, and a server of straw that answers from a table. */
#pragma once
#include "cli/cli.h"
#include "net/ws.h"
#include "tap.h"

struct straw;                   /* a server */
struct stage {                  /* everything a test needs; stage_up and stage_down */
    struct cli *c;
    char folder[64];            /* fresh, removed at the end */
    struct straw *straw;
    struct str out, errors;     /* what the last play() printed */
};
struct stage stage_up(void);
void stage_down(struct stage *s);
static inline void stage_down_auto(struct stage *s) { stage_down(s); }
/* in its folder; lives as long as the stage */
char *stage_path(struct stage *s, const char *name);
void stage_write(struct stage *s, const char *name, const char *text);

/* One answer: the nth request (from 1; 0: any) of this method and path prefix. A body that begins
 * with "@cut " is sent without its end, so that the client sees a broken connection; "@after " puts a Retry-After of a second
 * before it. */
struct answer { const char *method, *path; int nth, status; const char *body; };
/* starts the server, points the cli at it */
void straw_answers(struct stage *s, const struct answer *answers, size_t count);
/* upgrades go here */
void straw_ws(struct stage *s, const struct ws_events *events, void *arg);
/* how many of these came */
size_t straw_count(struct stage *s, const char *method, const char *path);
const char *straw_idem(struct stage *s, size_t nth);    /* Idempotency-Keys, as they came */
const char *straw_seen(
    struct stage *s); /* "METHOD path-with-query\nheaders of note\nbody\n\n" of each request */

/* Runs a word as if it were typed, with its output caught; `input` is its standard input. */
int play_with(struct stage *s, const char *input, const char *const *argv);
#define PLAY(s, ...) play_with((s), "", (const char *const[]){ __VA_ARGS__, NULL })
/* The whole program, from its own name on. */
int play_main(struct stage *s, const char *const *argv);
#define MAIN(s, ...) play_main((s), (const char *const[]){ "arcus", __VA_ARGS__, NULL })
