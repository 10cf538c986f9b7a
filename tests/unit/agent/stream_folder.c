#include "agent/streams.h"
#include "agent/tree.h"
#include "base/id.h"
#include "head.h"
#include "model/channel.h"
#include "model/prefix.h"
#include "wire/tar.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* On the real machine: the tree is walked by a thread. */
struct node {
    struct os *os;
    struct head head;
    struct http_client *client;
    struct streams *streams;
    char data[64];
    struct arena *mem;
    bool enough;
};

static bool is_alive(void *arg, int64_t attempt) { (void)arg, (void)attempt; return false; }
static void no_folder(void *arg, int64_t attempt, char out[static 256]) { (void)arg, (void)attempt; out[0] = 0; }
static bool no_socket(void *arg, int64_t attempt, char out[static 108]) { (void)arg, (void)attempt, (void)out; return false; }
static const struct streams_host host = { .is_alive = is_alive, .log_folder = no_folder, .socket = no_socket };

static const char *path_of(struct node *x, const char *kind, const char *prefix, const char *rest)
{
    char id[ID_TEXT];
    return arena_printf(x->mem, "%s/%s/%s%s", x->data, kind, id_text(id, prefix, 7), rest);
}

static void put_file(struct node *x, const char *path, const char *text)
{
    struct err err = { 0 };
    char *folder = arena_text(x->mem, path);
    *strrchr(folder, '/') = 0;
    CHECK(dir_make(x->os, folder, 0700, &err) && file_replace(x->os, path, SLICE(text), 0600, &err));
}

static void node_open(struct node *x)
{
    struct err err = { 0 };
    *x = (struct node){ .os = os_real_new(&err), .data = "/tmp/arcus-folder-XXXXXX", .mem = arena_new() };
    CHECK(x->os && mkdtemp(x->data));
    x->head.os = x->os;
    head_open(&x->head, NULL);
    CHECK(http_client_new(x->os, arena_printf(x->mem, "http://%s", http_address(x->head.http)), NULL, NULL, "nk_1", &x->client, &err));
    x->streams = streams_new(x->os, x->data, &host, x);
    put_file(x, path_of(x, "outputs", PREFIX_ATTEMPT, "/result.txt"), "42\n");
    put_file(x, path_of(x, "outputs", PREFIX_ATTEMPT, "/deep/er.txt"), "below\n");
}

static void stop_loop(void *arg) { os_stop(arg); }

static void look(void *arg)
{
    struct node *x = arg;
    if (x->head.stream.closed && streams_count(x->streams) == 0)
        os_stop(x->os);
    else
        timer_start(x->os, 2, look, x);
}

static void run_until_closed(struct node *x)
{
    struct timer *late = timer_start(x->os, 60000, stop_loop, x->os);
    timer_start(x->os, 1, look, x);
    os_run(x->os);
    CHECK(x->head.stream.closed);
    if (x->head.stream.closed)
        timer_cancel(late);
}

static void node_close(struct node *x)
{
    struct err err = { 0 };
    streams_free(x->streams);
    http_client_free(x->client);
    head_free(&x->head);
    timer_start(x->os, 50, stop_loop, x->os);
    os_run(x->os);
    CHECK(tree_remove(x->data, &err));
    os_free(x->os);
    arena_free(x->mem);
}

static void ask(struct node *x, const char *what, bool volume, const char *path)
{
    struct open_stream o = { .kind = "open", .stream = "st_1", .what = what, .path = path };
    *(volume ? &o.volume : &o.attempt) = 7;
    streams_open(x->streams, x->client, &o);
}

static bool control_has(struct node *x, const char *text)
{
    bool has = x->head.stream.control.at && strstr(x->head.stream.control.at, text);
    if (!has)
        printf("# control [%s]\n", x->head.stream.control.at ? x->head.stream.control.at : "");
    return has;
}

static bool out_has(struct node *x, const char *text)
{
    return x->head.stream.out.at && memmem(x->head.stream.out.at, x->head.stream.out.len, text, strlen(text));
}

TEST(outputs_of_an_ended_task_come_as_tar)
{
    struct node x;
    node_open(&x);
    ask(&x, "get", false, "/outputs");
    run_until_closed(&x);
    CHECK(control_has(&x, "{\"exit\":0}") && x.head.stream.out.len % TAR_BLOCK == 0);
    CHECK(out_has(&x, "result.txt") && out_has(&x, "42\n") && out_has(&x, "deep/er.txt") && out_has(&x, "below\n"));
    node_close(&x);
}

TEST(one_file_of_the_outputs_comes_alone)
{
    struct node x;
    node_open(&x);
    ask(&x, "get", false, "/outputs/deep/er.txt");
    run_until_closed(&x);
    CHECK(control_has(&x, "{\"exit\":0}") && out_has(&x, "below\n") && !out_has(&x, "42\n"));
    node_close(&x);
}

TEST(nothing_else_of_the_node_can_be_had)
{
    static const char *const paths[] = { "/etc/passwd", "/outputsx", "/outputs/../../secret", "../secret", "/outputs/link/passwd", "/outputs/none" };
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct node x;
        node_open(&x);
        put_file(&x, arena_printf(x.mem, "%s/secret", x.data), "root:");
        CHECK(symlink("/etc", path_of(&x, "outputs", PREFIX_ATTEMPT, "/link")) == 0);
        ask(&x, "get", false, paths[i]);
        run_until_closed(&x);
        CHECK(control_has(&x, "\"error\"") && !out_has(&x, "root:"));
        if (text_is(paths[i], "/outputs/none"))
            CHECK(control_has(&x, "\"/outputs/none: no such file or folder\""));
        node_close(&x);
    }
}

TEST(an_attempt_without_outputs_says_so)
{
    struct node x;
    struct err err = { 0 };
    node_open(&x);
    CHECK(tree_remove(path_of(&x, "outputs", PREFIX_ATTEMPT, ""), &err));
    ask(&x, "get", false, "/outputs");
    run_until_closed(&x);
    CHECK(control_has(&x, "there are no files"));
    node_close(&x);
}

static void tar_of(struct str *tar, const char *name, const char *text)
{
    tar_header(tar, &(struct tar_entry){ .type = TAR_FILE, .name = name, .mode = 0644, .size = (int64_t)strlen(text) });
    str_text(tar, text);
    tar_pad(tar, (int64_t)strlen(text));
}

struct sending { struct node *x; const struct str *tar; bool whole; };

static void send_it(void *arg)
{
    struct sending *s = arg;
    if (!s->x->head.stream.ws) {
        timer_start(s->x->os, 2, send_it, s);
        return;
    }
    head_stream_send(&s->x->head, CHANNEL_IN, s->tar->at, s->tar->len);
    head_stream_say(&s->x->head, CHANNEL_CONTROL, "{\"eof\":true}");
}

TEST(what_is_put_into_a_volume_is_there_and_can_be_had_again)
{
    struct node x;
    AUTO(str_done) struct str tar = { 0 };
    struct slice text;
    struct err err = { 0 };
    node_open(&x);
    tar_of(&tar, "model/weights", "0.5 0.25");
    tar_end(&tar);
    CHECK(dir_make(x.os, arena_printf(x.mem, "%s/volumes", x.data), 0700, &err));
    ask(&x, "put", true, "/");
    timer_start(x.os, 1, send_it, &(struct sending){ &x, &tar, true });
    run_until_closed(&x);
    CHECK(control_has(&x, "{\"exit\":0}"));
    CHECK(file_read(x.os, path_of(&x, "volumes", PREFIX_VOLUME, "/model/weights"), 100, x.mem, &text, &err) && text.len == 8);
    str_clear(&x.head.stream.control);
    x.head.stream.closed = false;
    ask(&x, "get", true, "/model");
    run_until_closed(&x);
    CHECK(control_has(&x, "{\"exit\":0}") && out_has(&x, "model/weights") && out_has(&x, "0.5 0.25"));
    node_close(&x);
}

TEST(a_tar_that_is_cut_or_climbs_out_is_refused)
{
    static const struct { const char *name; bool end; } rows[] = { { "half", false }, { "../../escape", true } };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct node x;
        AUTO(str_done) struct str tar = { 0 };
        struct err err = { 0 };
        node_open(&x);
        CHECK(dir_make(x.os, arena_printf(x.mem, "%s/volumes", x.data), 0700, &err));
        tar_of(&tar, rows[i].name, "text");
        if (rows[i].end)
            tar_end(&tar);
        ask(&x, "put", true, "/");
        timer_start(x.os, 1, send_it, &(struct sending){ &x, &tar, true });
        run_until_closed(&x);
        CHECK(control_has(&x, "\"error\"") && access(arena_printf(x.mem, "%s/escape", x.data), F_OK) != 0);
        node_close(&x);
    }
}

TEST(nothing_can_be_put_into_an_ended_task)
{
    struct node x;
    node_open(&x);
    ask(&x, "put", false, "/outputs");
    run_until_closed(&x);
    CHECK(control_has(&x, "nothing can be copied into it"));
    node_close(&x);
}
