/* exec.c - a command over a WebSocket: its streams, its exit code, its refusal. */
#include "cli_test.h"
#include "model/channel.h"
#include "wire/digest.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct far { struct str got, controls; const char *last; };

static void send_on(struct ws *w, enum channel channel, const char *text)
{
    AUTO(str_done) struct str m = { 0 };
    str_char(&m, (char)channel);
    str_text(&m, text);
    ws_send(w, false, m.at, m.len);
}

static void on_message(void *arg, struct ws *w, bool text, const char *at, size_t n)
{
    struct far *f = arg;
    (void)text;
    str_put(at[0] == CHANNEL_IN ? &f->got : &f->controls, at + 1, n - 1);
    if (at[0] != CHANNEL_CONTROL || !strstr(f->controls.at, "eof"))
        return;
    send_on(w, CHANNEL_OUT, "out\n");
    send_on(w, CHANNEL_ERR, "err\n");
    send_on(w, CHANNEL_CONTROL, f->last);
    ws_close(w, 1000, "");
}
static void on_close(void *arg, struct ws *w, const struct err *why)
{
    (void)arg, (void)w, (void)why;
}
static const struct ws_events events = { .on_message = on_message, .on_close = on_close };

TEST(a_command_gets_our_input_and_we_exit_as_it_does)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct far far = { .last = "{\"exit\":7}" };
    straw_answers(&s, NULL, 0);
    straw_ws(&s, &events, &far);
    CHECK(play_with(&s, "typed",
                    (const char *const[]){ "exec", "-i", "train", "--task", "2", "--", "cat", "-x",
                                           NULL })
          == 7);
    CHECK(text_is(s.out.at, "out\n") && text_is(s.errors.at, "err\n")
          && text_is(far.got.at, "typed"));
    CHECK(strstr(straw_seen(&s), "GET /v1/jobs/train/exec?") && strstr(straw_seen(&s), "task=2")
          && strstr(straw_seen(&s), "argv=cat&argv=-x"));
    str_clear(&far.got);
    str_clear(&far.controls);
    CHECK(play_with(&s, "not for it", (const char *const[]){ "exec", "train", "ls", NULL }) == 7
          && !far.got.len);
    str_done(&far.got);
    str_done(&far.controls);
}

TEST(a_command_that_could_not_run_is_no_exit_code_of_it)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct far far = { .last = "{\"error\":\"the task has ended\"}" };
    straw_answers(&s, NULL, 0);
    straw_ws(&s, &events, &far);
    CHECK(PLAY(&s, "exec", "train", "ls") == 125
          && strstr(s.errors.at, "arcus: the task has ended\n"));
    far.last = "{\"error\":\"nope: command not found in the image\"}";
    str_clear(&far.controls);
    CHECK(PLAY(&s, "exec", "train", "nope") == 127);
    far.last = "{\"error\":\"the command cannot be executed: it is a folder\"}";
    str_clear(&far.controls);
    CHECK(PLAY(&s, "exec", "train", "/etc") == 126);
    far.last = "{}";
    str_clear(&far.controls);
    CHECK(PLAY(&s, "exec", "train", "ls") == 125
          && strstr(s.errors.at, "the connection ended before the command did"));
    str_done(&far.controls);
}

TEST(what_exec_needs_is_asked_for)
{
    AUTO(stage_down) struct stage s = stage_up();
    static const struct answer answers[]
        = { { "GET", "/v1/jobs/gone/exec", 0, 404,
              "{\"type\":\"/problems/not_found\",\"detail\":\"there is no job 'gone'\"}" } };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "exec", "train") == 2 && strstr(s.errors.at, "what to run?"));
    CHECK(PLAY(&s, "exec", "-it", "train", "sh") == 2 && strstr(s.errors.at, "needs a terminal"));
    CHECK(PLAY(&s, "exec", "gone", "ls") == 4 && strstr(s.errors.at, "there is no job 'gone'"));
}

/* keys of so many bytes of nonsense, as OpenSSH would write them */
static void write_key(const char *home, int n, size_t bytes)
{
    AUTO(str_done) struct str blob = { 0 }, line = { 0 };
    static const char type[] = "ssh-rsa", e[] = "\1\0\1";
    const struct { const char *at; size_t len; } parts[] = { { type, 7 }, { e, 3 }, { NULL, bytes } };
    for (size_t i = 0; i < COUNT(parts); i++) {
        const char head[] = { 0, 0, (char)(parts[i].len >> 8), (char)parts[i].len };
        str_put(&blob, head, sizeof head);
        for (size_t k = 0; k < parts[i].len; k++)
            str_char(&blob, parts[i].at ? parts[i].at[k] : 'a');
    }
    str_text(&line, "ssh-rsa ");
    base64_text(&line, blob.at, blob.len);
    str_text(&line, " me\n");
    char path[4200];
    snprintf(path, sizeof path, "%s/.ssh/k%d.pub", home, n);
    FILE *f = fopen(path, "w");
    fwrite(line.at, 1, line.len, f);
    fclose(f);
}

TEST(ssh_brings_as_many_keys_as_a_head_has_room_for_and_takes_a_name_of_the_config)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct far far = { .last = "{\"exit\":0}" };
    char home[] = "/tmp/arcus-ssh.XXXXXX", path[64];
    const char *before = getenv("HOME");
    AUTO(str_done) struct str kept = { 0 };
    str_text(&kept, before ? before : "/");
    CHECK(mkdtemp(home));
    snprintf(path, sizeof path, "%s/.ssh", home);
    mkdir(path, 0700);
    for (int i = 0; i < 8; i++)
        write_key(home, i, 2000);
    setenv("HOME", home, 1);
    straw_answers(&s, NULL, 0);
    straw_ws(&s, &events, &far);
    CHECK(PLAY(&s, "ssh", "--stdio", "lab.arcus") == 0);
    const char *seen = straw_seen(&s);
    int keys = 0;
    for (const char *at = seen; (at = strstr(at, "keys=")); at++)
        keys++;
    CHECK(strstr(seen, "GET /v1/jobs/lab/ssh?") && keys == 4 && strlen(seen) < (13 << 10));
    setenv("HOME", kept.at, 1);
    for (int i = 0; i < 8; i++) {
        snprintf(path, sizeof path, "%s/.ssh/k%d.pub", home, i);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/.ssh", home);
    rmdir(path);
    rmdir(home);
    str_done(&far.got);
    str_done(&far.controls);
}
