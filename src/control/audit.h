/* audit.h - the chain of who did what: every write of people and programs and every refusal has a number and a hash over the
 * hash before it and all of its own row, so that a row that was changed, removed, inserted or moved shows.
 *
 * The key of the hash is not in the store, so whoever can write there cannot make the chain good again. What agents and the
 * planner do all day is not in it. */
#pragma once
#include "control/control_internal.h"

struct audit_row {              /* the columns of AUDIT_RANGE, in that order */
    int64_t number, seq, at_ms, project;
    const char *verb, *kind, *subject, *actor;
    int64_t actor_id, key;
    const char *address, *request, *result;
    int64_t times;
    const char *idem, *data, *chain;
};
void audit_put_int(struct str *s, int64_t n);              /* of what is hashed */
void audit_put_text(struct str *s, const char *text);
void audit_hash(const struct control *c, const char *before, const struct audit_row *r, char out[static MAC_HEX]);
enum { HEAD_AUDIT = 1, HEAD_USAGE = 2 };        /* which chain ends there */
void audit_head_mac(const struct control *c, int id, int64_t number, const char *chain, char out[static MAC_HEX]);
void audit_row_read(const struct rows *r, size_t i, struct audit_row *out);
/* A line of an archive segment, and back. */
void audit_line(struct str *out, const struct audit_row *r);
MUST_CHECK bool audit_line_read(struct slice line, struct arena *mem, struct audit_row *out, struct err *err);

struct note {
    int64_t at_ms, project, actor_id, key, times;
    const char *verb, *result;
    char subject[96], actor[64], address[46], request[24];
};
struct note_ask { struct note *at; size_t count; };         /* what audit.note takes */

/* --- the writer's */
MUST_CHECK bool audit_load(struct control *c, struct state *s, struct err *err);    /* where the chain ends */
void audit_seal(struct call *call);             /* the verb has run: its first event becomes a link, if it is to be one */
void audit_add_note(struct call *call, const struct note *n);
MUST_CHECK bool audit_leave(struct control *c, const struct note_ask *ask, struct err *err);    /* here another server writes: it takes them from the inbox */
MUST_CHECK bool audit_note_read(const char *line, struct arena *mem, struct note *out, struct err *err);
void audit_head_set(struct call *call, int id, int64_t number, const char *chain);

/* --- the loop's: what left no event, counted per caller, verb and result in each minute */
void notes_open(struct control *c);
void notes_take(struct control *c, struct request *r);      /* an answer is on its way out */
void notes_tick(struct control *c);
void notes_last(struct control *c);             /* what is counted so far goes to the writer, which is about to stop */
void notes_close(struct control *c);
