#include "nodes.h"
#include "model/hello.h"

bool something_held(void *arg) { return ((struct control *)arg)->held_count > 0; }
void say(struct talk *t, const char *text) { ws_send(t->ws, true, text, strlen(text)); }

void frame(struct talk *t, int channel, const char *text)
{
    AUTO(str_done) struct str out = { 0 };
    str_char(&out, (char)channel);
    str_text(&out, text);
    ws_send(t->ws, false, out.at, out.len);
}

bool straw_answer(void *arg, struct control *c, struct request *r)
{
    struct straw *s = arg;
    (void)c;
    if (r->verb == VERB_NODE_HELLO) {
        const struct hello *h = r->body;
        s->hellos++;
        s->hello_node = r->who.id;
        s->next = h->next;
        str_printf(&r->reply,
                   "{\"kind\":\"desired\",\"generation\":%lld,\"full\":true,\"orders\":[]}",
                   (long long)s->generation);
    } else if (r->verb == VERB_NODE_REPORT) {
        s->reports++;
        str_text(&r->reply, "{\"kind\":\"desired\",\"generation\":6,\"kept\":41,\"beat\":3}");
    } else if (verbs[r->verb].kind == VERB_STREAM && s->where) {
        str_text(&r->reply, s->asks++ && s->then ? s->then : s->where);
    } else {
        return false;
    }
    return true;
}

void node_link(struct talk *t, struct world *w, struct straw *s, const char *key)
{
    w->control->script = straw_answer;
    w->control->arg = s;
    talk_start(t, w, key, "/v1/nodes/link");
    CHECK(talk_open(t));
    say(t, HELLO);
    CHECK(talk_has(t, "\"full\":true"));
}

void push(struct world *w, int64_t node, int64_t generation)
{
    char json[128];
    snprintf(json, sizeof json, "{\"kind\":\"desired\",\"generation\":%lld,\"full\":false}",
             (long long)generation);
    struct node_push p = { node, SLICE(json) };
    fake_commit(w->control, &(struct commit){ .pushes = &p, .push_count = 1 });
}

struct opens { struct talk *link; int nth; const char *at; };

static bool nth_open(void *arg)
{
    struct opens *o = arg;
    const char *p = o->link->got.at;
    for (int i = 0; p && i < o->nth; i++)
        if ((p = strstr(p, "\"kind\":\"open\"")))
            p++;
    o->at = p;
    return p != NULL;
}

bool opened(struct talk *link, int nth, char path[static 128], const char *says)
{
    struct opens o = { link, nth, NULL };
    if (!world_until(link->w, nth_open, &o))
        return false;
    const char *word = strstr(o.at, "\"stream\":\""), *end = strchr(o.at, '\n');
    const char *found = strstr(o.at, says);
    if (!word || (*says && (!found || found > end)))
        return printf("# %.*s\n", (int)(end - o.at), o.at), false;
    word += 10;
    snprintf(path, 128, "/v1/streams/%.*s", (int)strcspn(word, "\""), word);
    return true;
}
