/* The door on a real machine with its threads; build with SAN=thread to let ThreadSanitizer
 * look. */
#include "door.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct crowd {
    struct os *os;
    struct control *control;
    char key[SECRET_TEXT];
    int sent, answered, good, rounds;
};
struct one { struct request r; struct crowd *crowd; };

static void answered(void *arg, struct request *r)
{
    struct one *o = arg;
    o->crowd->answered++;
    o->crowd->good += r->ok;
    arena_free(r->mem);
    str_done(&r->reply);
    free(o);
}

static void send_one(struct crowd *w, enum verb_id verb, const char *body)
{
    struct one *o = calloc(1, sizeof *o);
    struct json *doc;
    struct err err;
    o->crowd = w;
    o->r = (struct request){ .verb = verb, .mem = arena_new(), .on_reply = answered, .arg = o };
    void *bound = arena_take(o->r.mem, 1, verbs[verb].takes->size);
    o->r.body = bound;
    control_credential(w->control, w->key, NULL, "test", &o->r.from);
    CHECK(json_parse(SLICE(body), o->r.mem, &doc, &err)
          && bind_read(doc, verbs[verb].takes, o->r.mem, bound, &o->r.given, &err));
    w->sent++;
    control_ask(w->control, &o->r);
}

static void push_on(void *arg)
{
    struct crowd *w = arg;
    for (int i = 0; i < 5; i++) {
        send_one(w, VERB_JOB_SUBMIT, "{\"command\":[\"true\"],\"count\":3}");
        send_one(w, VERB_JOB_LIST, "{}");
        send_one(w, VERB_EVENT_LIST, "{}");
        send_one(w, VERB_SECRET_SET, "{\"name\":\"S\",\"value\":\"v\"}");
    }
    if (++w->rounds < 10)
        timer_start(w->os, 5, push_on, w);
    else
        os_stop(w->os); /* with the last of them under way */
}

TEST(on_real_threads_all_that_was_asked_is_answered_before_the_door_is_closed)
{
    char dir[] = "/tmp/arcus-control.XXXXXX", path[64], keys[64], file[64];
    AUTO(arena_free) struct arena *mem = arena_new();
    struct crowd w = { 0 };
    struct store *store = NULL;
    struct err err = { 0 };
    struct slice key;
    bool made;
    CHECK(mkdtemp(dir) != NULL);
    snprintf(path, sizeof path, "%s/arcus.db", dir);
    snprintf(keys, sizeof keys, "%s/keys", dir);
    snprintf(file, sizeof file, "%s/admin.key", dir);
    w.os = os_real_new(&err);
    struct control_config config
        = { .keys = keys, .run_for_s = 300, .margin_s = 15, .default_image = "host", .plan = true };
    CHECK(w.os && store_open(w.os, path, &store, &err)
          && control_bootstrap(w.os, store, keys, file, &made, &err)
          && control_open(w.os, store, &config, &w.control, &err)
          && file_read(w.os, file, 256, mem, &key, &err));
    snprintf(w.key, sizeof w.key, "%.*s", (int)strcspn(key.at, "\n"), key.at);
    timer_start(w.os, 1, push_on, &w);
    os_run(w.os);
    control_close(w.control);
    CHECK(w.sent == 200 && w.answered == 200 && w.good == 200);
    store_close(store);
    os_free(w.os);
    static const char *const left[]
        = { "arcus.db", "arcus.db-wal", "arcus.db-shm", "admin.key", "keys/hash.key", "keys/seal.key" };
    for (size_t i = 0; i < COUNT(left); i++)
        unlink(arena_printf(mem, "%s/%s", dir, left[i]));
    rmdir(keys);
    CHECK(rmdir(dir) == 0);
}
