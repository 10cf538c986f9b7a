/* audit.c - the links of the audit chain as the writer makes them. An act's link is in the row of its first event, so that a
 * submit stays two rows; what left no event gets a row of its own (notes.c counts those first).
 *
 * Where the chain ends is one more row, written once a commit, so that cutting off its end shows too. If that row does not
 * fit what is there when the writer starts, a number is left out: a hole that stays, for audit.verify to find. */
#include "control/audit.h"
#include <endian.h>
#include <stdio.h>

enum { ROW_USUAL = 500 };       /* bytes */

/* --- hashing */

void audit_put_int(struct str *s, int64_t n)
{
    uint64_t little = htole64((uint64_t)n);
    memcpy(s->room - s->len < 9 ? str_grow(s, 8) : s->at + s->len, &little, sizeof little);
    s->len += 8;
    s->at[s->len] = 0;
}

/* With its length, so that nothing can move from one column to the next. */
void audit_put_text(struct str *s, const char *text)
{
    size_t n = text ? strlen(text) : 0;
    audit_put_int(s, text ? (int64_t)n : -1);
    if (n)
        str_put(s, text, n);
}

void audit_hash(const struct control *c, const char *before, const struct audit_row *r,
                char out[static MAC_HEX])
{
    AUTO(str_done) struct str s = { 0 };
    const int64_t ints[] = { r->number, r->seq, r->at_ms, r->project, r->actor_id, r->key, r->times };
    const char *const texts[] = { before,     r->verb,    r->kind,   r->subject, r->actor, r->address,
                                  r->request, r->result, r->idem,   r->data };
    str_grow(&s, ROW_USUAL);
    str_text(&s, "row");
    for (size_t i = 0; i < COUNT(ints); i++)
        audit_put_int(&s, ints[i]);
    for (size_t i = 0; i < COUNT(texts); i++)
        audit_put_text(&s, texts[i]);
    digest_mac(c->audit_key, s.at, s.len, out);
}

void audit_head_mac(const struct control *c, int id, int64_t number, const char *chain,
                    char out[static MAC_HEX])
{
    AUTO(str_done) struct str s = { 0 };
    str_text(&s, "head");
    audit_put_int(&s, id);
    audit_put_int(&s, number);
    audit_put_text(&s, chain);
    digest_mac(c->audit_key, s.at, s.len, out);
}

/* --- rows and lines */

void audit_row_read(const struct rows *r, size_t i, struct audit_row *out)
{
    *out = (struct audit_row){
        .number = row_int(r, i, 0),   .seq = row_int(r, i, 1),       .at_ms = row_int(r, i, 2),
        .project = row_int(r, i, 3),  .verb = row_text(r, i, 4),     .kind = row_text(r, i, 5),
        .subject = row_text(r, i, 6), .actor = row_text(r, i, 7),    .actor_id = row_int(r, i, 8),
        .key = row_int(r, i, 9),      .address = row_text(r, i, 10), .request = row_text(r, i, 11),
        .result = row_text(r, i, 12), .times = row_int(r, i, 13),    .idem = row_text(r, i, 14),
        .data = row_text(r, i, 15),   .chain = row_text(r, i, 16),
    };
}

void audit_line(struct str *out, const struct audit_row *r)
{
    struct json_out o = { .to = out };
    json_open(&o, '[');
    const int64_t first[] = { r->number, r->seq, r->at_ms, r->project };
    for (size_t i = 0; i < COUNT(first); i++)
        json_put_int(&o, first[i]);
    const char *const words[] = { r->verb, r->kind, r->subject, r->actor };
    for (size_t i = 0; i < COUNT(words); i++)
        json_put_text(&o, words[i]);
    json_put_int(&o, r->actor_id);
    json_put_int(&o, r->key);
    const char *const more[] = { r->address, r->request, r->result };
    for (size_t i = 0; i < COUNT(more); i++)
        json_put_text(&o, more[i]);
    json_put_int(&o, r->times);
    const char *const last[] = { r->idem, r->data, r->chain };
    for (size_t i = 0; i < COUNT(last); i++)
        json_put_text(&o, last[i]);
    json_close(&o, ']');
    str_char(out, '\n');
}

bool audit_line_read(struct slice line, struct arena *mem, struct audit_row *out, struct err *err)
{
    static const char types[] = "iiiitttt" "iittt" "ittt";
    struct json *doc;
    struct value v[sizeof types - 1];
    size_t n = 0;
    if (!json_parse(line, mem, &doc, err))
        return false;
    for (struct json *m = doc->type == JSON_LIST ? doc->first : NULL; m; m = m->next, n++) {
        bool fits = n < COUNT(v)
                    && (types[n] == 'i' ? m->type == JSON_NUMBER && m->is_int
                                        : m->type == JSON_TEXT || m->type == JSON_NULL);
        if (!fits)
            return err_set(err, RC_INTERNAL, "a line of an archive segment is damaged");
        v[n] = types[n] == 'i' ? V_INT(m->number)
                               : V_TEXT(m->type == JSON_TEXT ? m->text : NULL);
    }
    if (n != COUNT(v))
        return err_set(err, RC_INTERNAL, "a line of an archive segment is damaged");
    audit_row_read(&(struct rows){ 1, (int)n, v }, 0, out);
    return true;
}

/* --- the writer's memory of it */

bool audit_load(struct control *c, struct state *s, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct rows head, last;
    if (!store_query(c->writer.conn, ST_AUDIT_HEAD, (struct value[]){ V_INT(HEAD_AUDIT) }, 1, mem, &head, err)
        || !store_query(c->writer.conn, ST_AUDIT_LAST, NULL, 0, mem, &last, err))
        return false;
    int64_t most = row_int(&last, 0, 0), number = head.count ? row_int(&head, 0, 0) : 0;
    char mac[MAC_HEX];
    bool good = !head.count && !most;
    if (head.count) {
        audit_head_mac(c, HEAD_AUDIT, number, row_text(&head, 0, 1), mac);
        good = number >= most && text_is(mac, row_text(&head, 0, 2));
        snprintf(s->audit.chain, sizeof s->audit.chain, "%s", row_text(&head, 0, 1));
    }
    s->audit.number = s->audit.headed = good ? number : MAX(number, most) + 1;
    return true;
}

static void link_row(struct control *c, struct state *s, struct audit_row *r)
{
    r->number = ++s->audit.number;
    audit_hash(c, s->audit.chain, r, s->audit.chain);
    r->chain = s->audit.chain;
}

/* People and programs, and whoever trades a word for a key; not agents, and not ourselves. */
static bool is_act(const struct call *c)
{
    enum principal kind = c->who->kind;
    return kind == PRINCIPAL_USER || kind == PRINCIPAL_ACCOUNT || !verbs[c->r->verb].roles;
}

void audit_seal(struct call *call)
{
    if (!call->first_event || !is_act(call))
        return;
    struct batch *b = call->batch;
    struct value *v = (struct value *)b->writes[call->first_event - 1].args;
    struct audit_row row = { .seq = v[0].n,
                             .at_ms = v[1].n,
                             .project = v[2].n,
                             .kind = v[3].text,
                             .subject = v[4].text,
                             .actor = v[5].text,
                             .actor_id = v[6].n,
                             .key = v[7].n,
                             .address = v[8].text,
                             .request = v[9].text,
                             .idem = v[10].text,
                             .data = v[11].text,
                             .verb = verbs[call->r->verb].name,
                             .result = "ok",
                             .times = 1 };
    link_row(call->control, call->s, &row);
    v[12] = V_INT(row.number);
    v[13] = V_TEXT(row.verb);
    v[14] = V_TEXT(arena_text(b->mem, row.chain));
    call->r->audited = true;
}

void audit_head_set(struct call *call, int id, int64_t number, const char *chain)
{
    char mac[MAC_HEX];
    audit_head_mac(call->control, id, number, chain, mac);
    EMIT(call, AUDIT_HEAD_SET, V_INT(id), V_INT(number), V_TEXT(chain), V_TEXT(mac));
}

static struct audit_row row_of(const struct note *n)
{
    return (struct audit_row){ .at_ms = n->at_ms,
                               .project = n->project,
                               .verb = n->verb,
                               .kind = "",
                               .subject = n->subject,
                               .actor = n->actor,
                               .actor_id = n->actor_id,
                               .key = n->key,
                               .address = n->address,
                               .request = n->request,
                               .result = n->result,
                               .times = n->times,
                               .data = "" };
}

void audit_add_note(struct call *c, const struct note *n)
{
    struct audit_row row = row_of(n);
    link_row(c->control, c->s, &row);
    EMIT(c, AUDIT_ADD, V_INT(row.number), V_INT(row.at_ms), V_INT(row.project), V_TEXT(row.verb),
         V_TEXT(row.subject), V_TEXT(row.actor), V_INT(row.actor_id), V_INT(row.key),
         V_TEXT(row.address), V_TEXT(row.request), V_TEXT(row.result), V_INT(row.times),
         V_TEXT(row.chain));
}

bool audit_note(struct call *c, const void *body, struct err *err)
{
    const struct note_ask *ask = body;
    (void)err;
    for (size_t i = 0; i < ask->count; i++)
        audit_add_note(c, &ask->at[i]);
    return true;
}

/* --- from a server that does not write */

bool audit_leave(struct control *c, const struct note_ask *ask, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct write *writes = ARENA_ARRAY(mem, struct write, ask->count);
    bool unknown;
    for (size_t i = 0; i < ask->count; i++) {
        AUTO(str_done) struct str line = { 0 };
        struct audit_row row = row_of(&ask->at[i]);
        struct value *v = ARENA_ARRAY(mem, struct value, 2);
        uint64_t id;
        os_random(c->os, &id, sizeof id);
        row.chain = "";
        audit_line(&line, &row);
        v[0] = V_INT((int64_t)(id >> 1));
        v[1] = V_TEXT(arena_text(mem, line.at));
        writes[i] = (struct write){ ST_INBOX_ADD, 2, v };
    }
    return store_commit(c->writer.conn, writes, ask->count, &unknown, err);
}

bool audit_note_read(const char *line, struct arena *mem, struct note *out, struct err *err)
{
    struct audit_row r;
    if (!audit_line_read(SLICE(line), mem, &r, err))
        return false;
    *out = (struct note){ .at_ms = r.at_ms, .project = r.project, .actor_id = r.actor_id, .key = r.key, .times = r.times,
                          .verb = r.verb ? r.verb : "", .result = r.result ? r.result : "" };
    const struct { char *to; size_t room; const char *from; } texts[] = {
        { out->subject, sizeof out->subject, r.subject },
        { out->actor, sizeof out->actor, r.actor },
        { out->address, sizeof out->address, r.address },
        { out->request, sizeof out->request, r.request },
    };
    for (size_t i = 0; i < COUNT(texts); i++)
        if (!text_copy(texts[i].to, texts[i].room, texts[i].from ? texts[i].from : ""))
            return err_set(err, RC_INTERNAL, "a note in the inbox of the audit is too long");
    return true;
}
