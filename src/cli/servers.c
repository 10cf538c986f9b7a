/* servers.c - the way to the cloud: one address, or several with commas between, of which any will do.
 *
 * One is used until it cannot be reached or does not serve; then the one behind it is. Who follows something tells which one failed, so
 * that many who lose the same server at once move on by one step, not by one each. */
#include "cli/cli.h"

enum { CA_MOST = 1 << 20, LOOK_MS = 2000 };

static bool read_ca(struct cli *c, const char **ca, struct err *err)
{
    struct slice pem;
    *ca = NULL;
    if (!text_given(c->context.ca))
        return true;
    if (!file_read(c->os, c->context.ca, CA_MOST, c->mem, &pem, err))
        return err_wrap(err, "the CA of context %s", c->context.name ? c->context.name : "");
    *ca = arena_bytes(c->mem, pem.at, pem.len);
    return true;
}

struct texts url_list(const char *text, struct arena *mem)
{
    struct texts list = { ARENA_ARRAY(mem, const char *, CLI_SERVERS), 0 };
    for (const char *at = text ? text : ""; *at && list.count < CLI_SERVERS;) {
        size_t n = strcspn(at, ", ");
        if (n)
            list.at[list.count++] = arena_bytes(mem, at, n);
        at += n;
        at += strspn(at, ", ");
    }
    return list;
}

bool servers_within(const char *some, const char *all, struct arena *mem)
{
    struct texts few = url_list(some, mem), many = url_list(all, mem);
    for (size_t i = 0; i < few.count; i++) {
        bool there = false;
        for (size_t k = 0; k < many.count; k++)
            there |= text_is(few.at[i], many.at[k]);
        if (!there)
            return false;
    }
    return few.count > 0;
}

bool cli_connect(struct cli *c, struct err *err)
{
    const char *ca;
    if (c->client)
        return true;
    if (!config_load(c, err) || !read_ca(c, &ca, err))
        return false;
    struct texts urls = url_list(c->context.server, c->mem);
    if (!urls.count)
        return err_set(err, RC_BAD_INPUT, "the server's address is empty");
    for (size_t i = 0; i < urls.count; i++) {
        if (!http_client_new(c->os, urls.at[i], ca, c->context.pin,
                             text_given(c->context.key) ? c->context.key : NULL,
                             &c->clients[c->client_count], err))
            return cli_disconnect(c), false;
        c->client_count++;
    }
    c->client = c->clients[0];
    return true;
}

void cli_disconnect(struct cli *c)
{
    while (c->client_count)
        http_client_drop(c->clients[--c->client_count]);
    c->client = NULL;
}

void cli_leave(struct cli *c, const struct http_client *failed)
{
    for (size_t i = 0; i < c->client_count; i++)
        if (c->clients[i] == failed && c->client == failed) {
            c->client = c->clients[(i + 1) % c->client_count];
            return;
        }
}

struct look {
    struct cli *c;
    bool done, good;
};
static void on_look(void *arg, int status, struct slice body, const struct err *err)
{
    struct look *l = arg;
    (void)body, (void)err;
    l->done = true;
    l->good = status == 200;
    os_stop(l->c->os);
}

bool cli_connect_live(struct cli *c, struct err *err)
{
    static const struct http_call_events events = { .on_end = on_look };
    if (!cli_connect(c, err))
        return false;
    for (size_t i = 0; c->client_count > 1 && i < c->client_count; i++) {
        struct look l = { .c = c };
        struct http_call *call
            = http_call(c->client, "GET", "/readyz", NULL, 0, (struct slice){ 0 }, 0, &events, &l);
        http_call_timeout(call, LOOK_MS);
        cli_wait(c, &l.done);
        if (l.good)
            break;
        cli_leave(c, c->client);
    }
    return true;
}
