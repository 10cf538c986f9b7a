#include "world.h"
#include "base/fault.h"
#include "model/view.h"
#include <unistd.h>

struct straw { int adds; int64_t size; int64_t project; char id[80]; bool drops; };

static void drop(struct control *c, int64_t project, const char *digest)
{
    struct event e = { .seq = ++c->last_event, .project = project, .kind = "blob.dropped", .subject = digest, .data = "{}" };
    fake_commit(c, &(struct commit){ .events = &e, .event_count = 1 });
}

static bool answer(void *arg, struct control *c, struct request *r)
{
    struct straw *s = arg;
    if (r->verb == VERB_BLOB_ADD) {
        const struct blob_view *b = r->body;
        if (s->drops)
            drop(c, r->who.project, b->id);
        s->adds++;
        s->size = b->size;
        s->project = r->who.project;
        snprintf(s->id, sizeof s->id, "%s", b->id);
        bind_write(&(struct json_out){ .to = &r->reply }, &blob_view_fields, b);
        return true;
    }
    if (r->verb != VERB_BLOB_GET || r->who.kind != PRINCIPAL_NODE)
        return false;
    r->ok = r->who.id == fake_node(1)
            || err_set(&r->err, RC_NOT_FOUND, "no task on this node names it");
    str_text(&r->reply, "{\"project\":\"prj-00000000000fm\"}"); /* 500, as the door would name it */
    return true;
}

static size_t files(struct world *w)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct texts projects = { 0 }, names = { 0 };
    struct err err;
    size_t n = 0;
    CHECK(dir_list(w->os, arena_printf(mem, "%s/blobs", w->data), mem, &projects, &err));
    for (size_t i = 0; i < projects.count; i++) {
        CHECK(dir_list(w->os, arena_printf(mem, "%s/blobs/%s", w->data, projects.at[i]), mem,
                       &names, &err));
        n += names.count;
    }
    return n;
}

static void path_of(char out[static 128], struct slice bytes)
{
    char hex[DIGEST_HEX];
    digest_sha256(bytes.at, bytes.len, hex);
    snprintf(out, 128, "/v1/blobs/sha256:%s", hex);
}

static bool nobody(void *arg) { return ((struct api *)arg)->users == 0; }

TEST(a_blob_goes_up_and_comes_down_whatever_its_size)
{
    static const size_t sizes[] = { 0, 1, 70000, 3 << 20 };
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct world w;
        struct straw s = { 0 };
        struct got g;
        char path[128], *bytes = malloc(sizes[i] + 1);
        for (size_t k = 0; k < sizes[i]; k++)
            bytes[k] = (char)(k * 31 + k / 256);
        struct slice all = { bytes, sizes[i] };
        world_open(&w);
        w.control->script = answer;
        w.control->arg = &s;
        path_of(path, all);
        got_start(&g, &w, "dev", "PUT", path, NULL, all);
        CHECK(got_wait(&g, &w) && g.status == 201 && text_is(g.location, path)
              && got_says(&g, "id", path + 10));
        CHECK(s.adds == 1 && s.size == (int64_t)sizes[i] && s.project == fake_project()
              && text_is(s.id, path + 10) && files(&w) == 1);
        got_done(&g);
        got_start(&g, &w, "dev", "GET", path, NULL, (struct slice){ 0 });
        CHECK(got_wait(&g, &w) && g.status == 200 && g.err.rc == RC_OK && g.body.len == sizes[i]);
        CHECK(sizes[i] == 0 || memcmp(g.body.at, bytes, sizes[i]) == 0);
        CHECK(text_is(g.type, "application/octet-stream") && strstr(g.etag, path + 10));
        got_done(&g);
        CHECK(world_until(&w, nobody, w.api));
        world_close(&w);
        free(bytes);
    }
}

TEST(the_file_of_a_blob_that_was_dropped_goes_unless_it_is_being_uploaded_again)
{
    struct world w;
    struct straw s = { 0 };
    struct got g;
    char path[128];
    world_open(&w);
    w.control->script = answer;
    w.control->arg = &s;
    path_of(path, SLICE("one"));
    for (int i = 0; i < 3; i++) {
        s.drops = i == 2;               /* between its place on the disk and the door's word */
        got_start(&g, &w, "dev", "PUT", path, NULL, SLICE("one"));
        CHECK(got_wait(&g, &w) && g.status == 201 && files(&w) == 1);
        got_done(&g);
        CHECK(world_until(&w, nobody, w.api) && files(&w) == 1);
        if (s.drops)
            break;
        drop(w.control, fake_project(), "sha256:0000000000000000000000000000000000000000000000000000000000000000");
        drop(w.control, fake_project() + 1, path + 10);
        drop(w.control, fake_project(), "nonsense");
        CHECK(world_until(&w, nobody, w.api) && files(&w) == 1);
        drop(w.control, fake_project(), path + 10);
        CHECK(world_until(&w, nobody, w.api) && files(&w) == 0);
    }
    world_close(&w);
}

TEST(a_wrong_digest_is_refused_and_leaves_nothing)
{
    struct world w;
    struct straw s = { 0 };
    struct got g;
    char path[128];
    world_open(&w);
    w.control->script = answer;
    w.control->arg = &s;
    path_of(path, SLICE("one"));
    got_start(&g, &w, "dev", "PUT", path, NULL, SLICE("two"));
    CHECK(got_wait(&g, &w) && g.status == 400 && got_says(&g, "field", "digest") && s.adds == 0
          && files(&w) == 0);
    got_done(&g);
    world_close(&w);
}

TEST(whoever_may_not_upload_is_refused_before_a_byte_is_kept)
{
    static const struct {
        const char *key;
        int status;
    } who[] = { { "view", 403 }, { "op", 403 }, { "node1", 403 }, { "nobody", 401 } };
    struct world w;
    struct straw s = { 0 };
    struct got g;
    char path[128];
    world_open(&w);
    w.control->script = answer;
    w.control->arg = &s;
    path_of(path, SLICE("one"));
    for (size_t i = 0; i < COUNT(who); i++) {
        got_start(&g, &w, who[i].key, "PUT", path, NULL, SLICE("one"));
        CHECK(got_wait(&g, &w) && g.status == who[i].status && s.adds == 0 && files(&w) == 0);
        got_done(&g);
    }
    world_close(&w);
}

TEST(a_node_fetches_only_what_a_task_on_it_names)
{
    struct world w;
    struct straw s = { 0 };
    struct got g;
    char path[128];
    world_open(&w);
    w.control->script = answer;
    w.control->arg = &s;
    path_of(path, SLICE("one"));
    got_start(&g, &w, "dev", "PUT", path, NULL, SLICE("one"));
    CHECK(got_wait(&g, &w) && g.status == 201);
    got_done(&g);
    ask(&g, &w, "node1", "GET", path, NULL, NULL);
    CHECK(g.status == 200 && text_is(g.body.at, "one"));
    got_done(&g);
    ask(&g, &w, "node2", "GET", path, NULL, NULL);
    CHECK(g.status == 404);
    got_done(&g);
    ask(&g, &w, "other", "GET", path, NULL,
        NULL); /* another project has no such file, whatever the door says */
    CHECK(g.status == 500);
    got_done(&g);
    world_close(&w);
}

static void half_sent(struct got *g, struct world *w, const char *path, size_t n)
{
    static const struct http_header headers[] = { { "Authorization", "Bearer dev" } };
    static char bytes[600000];
    *g = (struct got){ 0 };
    g->call = http_call(w->client, "PUT", path, headers, 1, (struct slice){ 0 }, 20 << 20,
                        &(struct http_call_events){ 0 }, g);
    http_call_body(g->call, bytes, n);
}

static bool something_held(void *arg) { return ((struct control *)arg)->held_count > 0; }

static bool all_taken(void *arg) { return http_call_waiting(arg) == 0; }

TEST(an_upload_is_not_read_before_the_door_has_let_it_in)
{
    struct world w;
    struct straw s = { 0 };
    struct got g;
    char path[128];
    world_open(&w);
    w.control->script = answer;
    w.control->arg = &s;
    w.control->hold = true;
    path_of(path, SLICE("one"));
    half_sent(&g, &w, path, 600000);
    for (int i = 0; i < 30; i++)
        http_call_body(g.call, (char[600000]){ 0 }, 600000);
    CHECK(world_until(&w, something_held, w.control));
    world_wait(&w, 100);
    CHECK(http_call_waiting(g.call) > 4 << 20 && files(&w) == 0);
    fake_release(w.control);
    CHECK(world_until(&w, all_taken, g.call) && files(&w) == 1);
    http_call_cancel(g.call);
    world_close(&w);
}

static bool has_file(void *arg) { return files(arg) == 1; }
static bool has_none(void *arg) { return files(arg) == 0; }

TEST(an_upload_that_breaks_off_leaves_nothing)
{
    struct world w;
    struct straw s = { 0 };
    struct got g;
    char path[128];
    world_open(&w);
    w.control->script = answer;
    w.control->arg = &s;
    path_of(path, SLICE("one"));
    half_sent(&g, &w, path, 600000);
    CHECK(world_until(&w, has_file, &w));
    http_call_cancel(g.call);
    CHECK(world_until(&w, has_none, &w) && world_until(&w, nobody, w.api) && s.adds == 0);
    world_close(&w);
}

TEST(closing_in_the_middle_of_an_upload_leaves_nothing)
{
    struct world w;
    struct straw s = { 0 };
    struct got g;
    char path[128];
    world_open(&w);
    w.control->script = answer;
    w.control->arg = &s;
    path_of(path, SLICE("one"));
    half_sent(&g, &w, path, 600000);
    CHECK(world_until(&w, has_file, &w));
    http_call_cancel(g.call);
    api_close(w.api, 0);
    CHECK(world_until(&w, has_none, &w));
    world_close(&w);
}

TEST(whatever_fails_on_the_disk_is_told_and_what_is_told_as_done_is_there)
{
    struct world w;
    struct straw s = { 0 };
    struct got g;
    char path[128];
    world_open(&w);
    w.control->script = answer;
    w.control->arg = &s;
    path_of(path, SLICE("one"));
    for (int nth = 1, done = 0; !done && nth < 60; nth++) {
        int before = s.adds;
        fault_arm(nth);
        got_start(&g, &w, "dev", "PUT", path, NULL, SLICE("one"));
        bool ended = got_wait(&g, &w);
        done = !fault_fired();
        fault_arm(0);
        CHECK(ended && (g.status == 0 || (g.status == 201) == (s.adds > before)));      /* 0: the wire failed, on the way there or back */
        CHECK(!done || g.status == 201);
        got_done(&g);
        if (s.adds > before) {
            ask(&g, &w, "dev", "GET", path, NULL, NULL);
            CHECK(g.status == 200 && text_is(g.body.at, "one"));
            got_done(&g);
        }
    }
    world_close(&w);
}
