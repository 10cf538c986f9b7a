#include "agent/self.h"
#include "base/log.h"
#include "wire/json.h"
#include <stdlib.h>

enum { AGAIN_MS = 4000 };

struct self {
    struct os *os;
    struct heads *heads;
    const char *data;
    struct arena *mem, *list; /* of the identity, and of its servers */
    struct identity me;
    bool on_next;             /* the next key is the one that is set */
    bool unsaved;
    struct http_call *call;
    int64_t asked_ms; /* boot clock */
    void (*on_switch)(void *arg);
    void *arg;
};

static void set_key(struct self *s, bool next)
{
    s->on_next = next;
    heads_token(s->heads, next ? s->me.next_key : s->me.key);
}

static struct texts copy_list(struct arena *mem, struct texts from)
{
    struct texts to = { ARENA_ARRAY(mem, const char *, from.count), from.count };
    for (size_t i = 0; i < from.count; i++)
        to.at[i] = arena_text(mem, from.at[i]);
    return to;
}

struct self *self_new(struct os *os, struct heads *heads, const char *data,
                      const struct identity *me, void (*on_switch)(void *arg), void *arg)
{
    struct self *s = calloc(1, sizeof *s);
    if (!s)
        abort();
    *s = (struct self){ .os = os,
                        .heads = heads,
                        .mem = arena_new(),
                        .list = arena_new(),
                        .on_switch = on_switch,
                        .arg = arg };
    s->data = arena_text(s->mem, data);
    s->me = (struct identity){ .id = me->id,
                               .name = arena_text(s->mem, me->name),
                               .key = arena_text(s->mem, me->key),
                               .next_key = arena_text(s->mem, me->next_key),
                               .pin = arena_text(s->mem, me->pin),
                               .servers = copy_list(s->list, me->servers) };
    set_key(s, text_given(s->me.next_key));
    heads_learn(heads, s->me.servers);
    return s;
}

void self_free(struct self *s)
{
    if (!s)
        return;
    if (s->call)
        http_call_cancel(s->call);
    arena_free(s->mem);
    arena_free(s->list);
    free(s);
}

static bool save(struct self *s)
{
    struct err err = { 0 };
    s->unsaved = !identity_store(s->os, s->data, &s->me, &err);
    if (s->unsaved)
        log_line(LOG_ERROR, "agent", "who this node is cannot be stored: %s", err.text);
    return !s->unsaved;
}

static void on_end(void *arg, int status, struct slice body, const struct err *err)
{
    static const int later[] = { 401, 408, 421, 429 };
    struct self *s = arg;
    (void)body;
    s->call = NULL;
    if (status / 100 == 2) {
        set_key(s, true);
        s->on_switch(s->arg);
        return;
    }
    bool again = err || status / 100 != 4;
    for (size_t i = 0; i < COUNT(later); i++)
        again |= status == later[i];
    if (again)
        return; /* the server says again that it wants one */
    log_line(LOG_WARN, "agent", "the server does not take the new key of this node (%d); another will be made", status);
    s->me.next_key = NULL;
    (void)!save(s);
}

void self_rotate(struct self *s)
{
    static const struct http_header headers[] = { { "Content-Type", "application/json" } };
    static const struct http_call_events events = { .on_end = on_end };
    if (s->call || s->on_next)
        return;
    if (!text_given(s->me.next_key)) {
        s->me.next_key = identity_key(s->os, s->mem);
        if (!save(s)) {
            s->me.next_key = NULL;
            return;
        }
    }
    s->asked_ms = os_boot_ms(s->os);
    AUTO(str_done) struct str text = { 0 };
    struct json_out o = { .to = &text };
    json_open(&o, '{');
    json_key(&o, "key"), json_put_text(&o, s->me.next_key);
    json_close(&o, '}');
    s->call = http_call(heads_client(s->heads), "POST", "/v1/nodes/key", headers, COUNT(headers),
                        (struct slice){ text.at, text.len }, (int64_t)text.len, &events, s);
}

void self_greeted(struct self *s)
{
    if (s->on_next) {
        log_line(LOG_INFO, "agent", "this node has a new key");
        s->me.key = s->me.next_key;
        s->me.next_key = NULL;
        s->on_next = false;
        s->unsaved = true; /* the file has both until then, which is as good */
    }
    if (s->unsaved)
        (void)!save(s);
    if (text_given(s->me.next_key) && os_boot_ms(s->os) - s->asked_ms > AGAIN_MS)
        self_rotate(s); /* its answer was lost */
}

void self_refused(struct self *s)
{
    if (text_given(s->me.next_key) && !s->call)
        set_key(s, !s->on_next);
}

void self_servers(struct self *s, struct texts urls)
{
    if (!urls.count || !heads_learn(s->heads, urls))
        return;
    struct arena *list = arena_new();
    s->me.servers = copy_list(list, urls);
    arena_free(s->list);
    s->list = list;
    (void)!save(s);
}
