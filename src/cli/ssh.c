/* ssh.c - `arcus ssh`: OpenSSH into a running task, and `arcus ssh --stdio`, its ProxyCommand, for whatever else speaks through ssh (scp, rsync, VS Code).
 *
 * The server inside is started for each connection and lets in the public keys of the caller's profile, and those that we bring: whoever may do this may run commands in the task
 * anyway. The way there is the cloud's own, so there is no host key to compare: the cloud vouches for it. */
#include "cli/terminal.h"
#include "model/ssh_key.h"
#include "wire/http_parse.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FILE_BYTES = SSH_KEY_TEXT, KEYS_BYTES = 12 << 10 };

struct ssh_own { bool stdio; const char *login, *identity; };
static const struct field ssh_rows[] = {
    FIELD(struct ssh_own, stdio, BOOL, .flag = "--stdio", .help = "only carry bytes: for ProxyCommand"),
    FIELD(struct ssh_own, login, TEXT, .max = 64, .def = "root", .flag = "-l --login", .help = "who to log in as: the user that the task runs as", .example = "root"),
    FIELD(struct ssh_own, identity, TEXT, .max = 4096, .flag = "-i --identity", .help = "a key of yours (its .pub stands beside it); your profile's and every .pub in ~/.ssh when left out", .example = "~/.ssh/id_ed25519"),
};
const struct fields ssh_fields = FIELDS(ssh_own, ssh_rows);

static void add_key(struct cli *c, struct json *list, const char *line)
{
    struct json *e = json_new(c->mem, JSON_TEXT);
    e->text = line;
    e->len = strlen(line);
    json_add(list, NULL, e);
}

static bool one_file(struct cli *c, const char *path, struct json *list, struct err *err)
{
    struct slice text;
    const char *line;
    if (!file_read(c->os, path, FILE_BYTES, c->mem, &text, err) || !ssh_key_parse(arena_bytes(c->mem, text.at, text.len), c->mem, &line, err))
        return err_wrap(err, "%s", path);
    add_key(c, list, line);
    return true;
}

/* As they travel: in the head of a request, which has room for 16 KiB. */
static size_t keys_bytes(const struct json *list)
{
    AUTO(str_done) struct str all = { 0 };
    for (const struct json *e = list->first; e; e = e->next)
        url_encode(&all, e->text);
    return all.len;
}

/* Of many in the folder those that are none are left out, and those that there is no room for: who names one wants to know. */
static bool keys_find(struct cli *c, const char *identity, struct json *list, struct err *err)
{
    const char *home = getenv("HOME"), *folder = arena_printf(c->mem, "%s/.ssh", text_given(home) ? home : "/");
    struct texts names = { 0 };
    struct err ignored;
    if (identity) {
        size_t len = strlen(identity);
        bool pub = len > 4 && text_is(identity + len - 4, ".pub");
        const char *path = identity[0] == '/' ? identity : arena_printf(c->mem, "%s/%s", getcwd(ARENA_ARRAY(c->mem, char, 4096), 4096), identity);
        return one_file(c, pub ? path : arena_printf(c->mem, "%s.pub", path), list, err);
    }
    if (dir_list(c->os, folder, c->mem, &names, &ignored))
        for (size_t i = 0, n = 0; i < names.count && n < SSH_KEYS_MOST; i++) {
            size_t len = strlen(names.at[i]);
            struct json one = *json_new(c->mem, JSON_LIST);
            if (len <= 4 || !text_is(names.at[i] + len - 4, ".pub")
                || !one_file(c, arena_printf(c->mem, "%s/%s", folder, names.at[i]), &one, &ignored)
                || keys_bytes(list) + keys_bytes(&one) > KEYS_BYTES)
                continue;
            add_key(c, list, one.first->text);
            n++;
        }
    return true;
}

/* Who has a key in the profile needs none here: an agent or a piece of hardware may hold it. */
static bool profile_has(struct cli *c, struct err *err)
{
    struct json *doc = json_new(c->mem, JSON_OBJECT), *reply;
    if (!cli_call(c, VERB_SSH_KEY_LIST, doc, &reply, err))
        return false;
    const struct json *items = json_get(reply, "items");
    return (items && items->first)
           || err_set(err, RC_BAD_INPUT, "there is no public key in ~/.ssh, and none in your profile; make one (ssh-keygen -t ed25519), name one with -i, or add one to your profile (arcus ssh-keys add FILE)");
}

/* The ProxyCommand is a program of its own and finds the cloud as we did. */
static void hand_down(struct cli *c)
{
    const struct { const char *name, *value; } all[] = {
        { "ARCUS_SERVER", c->context.server }, { "ARCUS_KEY", c->context.key }, { "ARCUS_PIN", c->context.pin },
        { "ARCUS_CA", c->context.ca },         { "ARCUS_PROJECT", c->context.project },
    };
    for (size_t i = 0; i < COUNT(all); i++)
        if (text_given(all[i].value))
            setenv(all[i].name, all[i].value, 1);
}

static const char *quoted(struct cli *c, const char *text)
{
    AUTO(str_done) struct str out = { 0 };
    str_char(&out, '\'');
    for (; *text; text++)
        if (*text == '\'')
            str_text(&out, "'\\''");
        else if (*text == '%')
            str_text(&out, "%%");
        else
            str_char(&out, *text);
    str_char(&out, '\'');
    return arena_text(c->mem, out.at);
}

static int run_ssh(struct cli *c, const struct flags *f)
{
    const struct ssh_own *own = f->own;
    const char *job = json_text(f->doc, "job");
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[MAX(n, 0)] = 0;
    const struct json *task = json_get(f->doc, "task");
    const char *proxy = arena_printf(c->mem, "ProxyCommand=%s ssh --stdio %s%s%s%s %s", quoted(c, self),
                                     own->identity ? "-i " : "", own->identity ? quoted(c, own->identity) : "",
                                     task ? " --task " : "", task ? arena_printf(c->mem, "%lld", (long long)task->number) : "", quoted(c, job));
    const char *const head[] = { "ssh", "-o", proxy, "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-l", own->login };
    const char **argv = ARENA_ARRAY(c->mem, const char *, COUNT(head) + f->rest.count + 6);
    size_t count = 0;
    for (; count < COUNT(head); count++)
        argv[count] = head[count];
    if (own->identity)
        argv[count++] = "-i", argv[count++] = own->identity;
    argv[count++] = "--";
    argv[count++] = job;
    for (size_t i = 0; i < f->rest.count; i++)
        argv[count++] = f->rest.at[i];
    hand_down(c);
    execvp("ssh", (char *const *)argv);
    err_set(&c->err, RC_UNAVAILABLE, "cannot run ssh: %s; `arcus exec -it` needs none", strerror(errno));
    return print_error(c, &c->err);
}

/* OpenSSH names us the host that was typed, of `Host *.arcus`. To cut it here spares the user's shell from ever seeing it. */
static void without_suffix(struct cli *c, const struct json *doc)
{
    static const char suffix[] = ".arcus";
    struct json *job = json_get(doc, "job");
    size_t n = sizeof suffix - 1;
    if (!job || job->type != JSON_TEXT || job->len <= n || !text_is(job->text + job->len - n, suffix))
        return;
    job->len -= n;
    job->text = arena_bytes(c->mem, job->text, job->len);
}

int word_ssh(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    const struct ssh_own *own = f.own;
    struct json *keys = json_new(c->mem, JSON_LIST);
    if (!config_load(c, &c->err) || !keys_find(c, own->identity, keys, &c->err) || (!own->stdio && !keys->first && !profile_has(c, &c->err)))
        return print_error(c, &c->err);
    if (!own->stdio)
        return run_ssh(c, &f);
    without_suffix(c, f.doc);
    if (keys->first)
        json_add(f.doc, "keys", keys);
    return exec_session(c, VERB_JOB_SSH, f.doc, false, true, NULL);
}
