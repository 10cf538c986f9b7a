#include "containers.h"
#include "agent/task_proto.h"
#include "agent/tree.h"
#include "base/id.h"
#include "model/prefix.h"
#include "wire/bind.h"
#include "wire/tar.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* --- a client of a supervisor's socket, as simple as can be */

struct peer { int fd; struct str out, errors; char end; char text[1024]; };

static bool send_frame(struct peer *p, char kind, const char *at, size_t n)
{
    unsigned char head[FRAME_HEAD];
    frame_head(head, (enum task_frame)kind, (uint32_t)n);
    return send(p->fd, head, sizeof head, MSG_NOSIGNAL) == FRAME_HEAD && (n == 0 || send(p->fd, at, n, MSG_NOSIGNAL) == (ssize_t)n);
}

static bool say(struct peer *p, char kind, const char *text) { return send_frame(p, kind, text, strlen(text)); }

static bool dial(struct containers *c, int64_t attempt, const char *request, struct peer *p)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    *p = (struct peer){ .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    runtime_socket(c->r, attempt, at.sun_path);
    struct timeval patience = { .tv_sec = 60 };
    setsockopt(p->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return connect(p->fd, (struct sockaddr *)&at, sizeof at) == 0 && say(p, FRAME_REQUEST, request);
}

/* A process that was stopped and goes on finds itself interrupted here, though nobody sent it a signal. */
static bool hear_bytes(struct peer *p, void *to, size_t n)
{
    for (char *at = to; n;) {
        ssize_t got = recv(p->fd, at, n, 0);
        if (got == -1 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

/* One frame; what it carries goes where it belongs. False: the connection has ended. */
static bool hear(struct peer *p)
{
    unsigned char head[FRAME_HEAD];
    static char at[FRAME_MAX];
    if (!hear_bytes(p, head, sizeof head))
        return false;
    size_t n = frame_length(head);
    if (n > FRAME_MAX || !hear_bytes(p, at, n))
        return false;
    p->end = (char)head[0];
    if (head[0] == FRAME_OUTPUT)
        str_put(&p->out, at, n);
    else if (head[0] == FRAME_ERRORS)
        str_put(&p->errors, at, n);
    else
        snprintf(p->text, sizeof p->text, "%.*s", (int)n, at);
    return true;
}

static void hear_all(struct peer *p) { while (hear(p)) ; }
static bool hear_until(struct peer *p, const char *part)
{
    while (!p->out.at || !strstr(p->out.at, part))
        if (!hear(p))
            return false;
    return true;
}
static void hang_up(struct peer *p) { close(p->fd); str_done(&p->out); str_done(&p->errors); }

static struct order *a_task(struct containers *c, const char *script)
{
    struct order *o = containers_order(c, "host", script);
    runtime_start(c->r, o);
    CHECK(containers_wait(c, o->attempt, PHASE_RUNNING)->phase == PHASE_RUNNING);
    return o;
}

TEST(a_command_in_a_running_task_gets_input_and_tells_its_end)
{
    struct containers c = {0};
    struct peer p;
    if (!containers_open(&c))
        return;
    struct order *o = a_task(&c, "echo private > /tmp/seen; sleep 100");
    CHECK(dial(&c, o->attempt, "{\"op\":\"exec\",\"argv\":[\"sh\",\"-c\",\"cat; cat /tmp/seen; id -u; grep Seccomp: /proc/self/status; grep CapEff /proc/self/status; echo oops >&2; exit 5\"]}", &p));
    CHECK(hear(&p) && p.end == FRAME_READY);
    CHECK(say(&p, FRAME_INPUT, "typed ") && say(&p, FRAME_INPUT, "words\n") && say(&p, FRAME_INPUT_END, ""));
    hear_all(&p);
    CHECK(text_is(p.out.at, "typed words\nprivate\n0\nSeccomp:\t2\nCapEff:\t00000000200405fb\n"));
    CHECK(text_is(p.errors.at, "oops\n"));
    CHECK(p.end == FRAME_EXIT && text_is(p.text, "{\"exit_code\":5,\"signal\":0}"));
    hang_up(&p);
    CHECK(dial(&c, o->attempt, "{\"op\":\"exec\",\"argv\":[\"no-such-thing\"]}", &p));
    hear_all(&p);
    CHECK(p.end == FRAME_ERROR && strstr(p.text, "no-such-thing: command not found"));
    hang_up(&p);
    CHECK(dial(&c, o->attempt, "{\"op\":\"exec\",\"argv\":[\"sleep\",\"100\"]}", &p) && hear(&p));
    CHECK(say(&p, FRAME_SIGNAL, "{\"signal\":15}"));
    hear_all(&p);
    CHECK(p.end == FRAME_EXIT && text_is(p.text, "{\"exit_code\":0,\"signal\":15}"));
    hang_up(&p);
    CHECK(dial(&c, o->attempt, "{\"op\":\"dance\"}", &p));
    hear_all(&p);
    CHECK(p.end == FRAME_ERROR && strstr(p.text, "bad"));
    hang_up(&p);
    runtime_stop(c.r, o->attempt, 0, OUTCOME_CANCELLED);
    containers_wait(&c, o->attempt, PHASE_ENDED);
    containers_close(&c);
}

TEST(a_terminal_has_a_size_and_passes_control_c)
{
    struct containers c = {0};
    struct peer p;
    if (!containers_open(&c))
        return;
    struct order *o = a_task(&c, "sleep 100");
    CHECK(dial(&c, o->attempt, "{\"op\":\"exec\",\"argv\":[\"sh\",\"-c\",\"while [ \\\"$(stty size)\\\" = '0 0' ]; do sleep 0.05; done; stty size; echo $TERM; trap 'echo caught; stty size; exit 9' INT; tty; while :; do sleep 0.05; done\"],\"tty\":true,\"rows\":33,\"cols\":77,\"term\":\"vt220\"}", &p));
    CHECK(hear_until(&p, "/dev/pts/0") && strstr(p.out.at, "33 77\r\nvt220"));
    CHECK(say(&p, FRAME_RESIZE, "{\"rows\":40,\"cols\":100}"));
    CHECK(say(&p, FRAME_INPUT, "\3"));
    hear_all(&p);
    CHECK(p.out.at && strstr(p.out.at, "caught") && strstr(p.out.at, "40 100"));
    CHECK(p.end == FRAME_EXIT && text_is(p.text, "{\"exit_code\":9,\"signal\":0}"));
    hang_up(&p);
    /* Who leaves hangs up: the shell gets SIGHUP and is gone soon. */
    CHECK(dial(&c, o->attempt, "{\"op\":\"exec\",\"argv\":[\"sh\",\"-c\",\"echo $$; exec sleep 77\"],\"tty\":true}", &p) && hear_until(&p, "\n"));
    hang_up(&p);
    CHECK(dial(&c, o->attempt, "{\"op\":\"exec\",\"argv\":[\"sh\",\"-c\",\"for i in $(seq 600); do ps ax | grep -q '[s]leep 77' || exit 0; sleep 0.1; done; exit 1\"]}", &p));
    hear_all(&p);
    CHECK(p.end == FRAME_EXIT && text_is(p.text, "{\"exit_code\":0,\"signal\":0}"));
    hang_up(&p);
    runtime_stop(c.r, o->attempt, 0, OUTCOME_CANCELLED);
    containers_wait(&c, o->attempt, PHASE_ENDED);
    containers_close(&c);
}

TEST(much_output_and_input_pass_without_loss)
{
    struct containers c = {0};
    struct peer p;
    if (!containers_open(&c))
        return;
    struct order *o = a_task(&c, "sleep 100");
    CHECK(dial(&c, o->attempt, "{\"op\":\"exec\",\"argv\":[\"sh\",\"-c\",\"head -c 3000000 /dev/zero\"]}", &p));
    hear_all(&p);
    CHECK(p.out.len == 3000000 && p.end == FRAME_EXIT);
    hang_up(&p);
    static char block[FRAME_MAX];
    memset(block, 'x', sizeof block);
    CHECK(dial(&c, o->attempt, "{\"op\":\"exec\",\"argv\":[\"sh\",\"-c\",\"sleep 0.3; wc -c\"]}", &p));
    for (int i = 0; i < 40; i++)
        CHECK(send_frame(&p, FRAME_INPUT, block, sizeof block));
    CHECK(say(&p, FRAME_INPUT_END, ""));
    hear_all(&p);
    CHECK(p.out.at && atoi(p.out.at) == 40 * FRAME_MAX);
    hang_up(&p);
    runtime_stop(c.r, o->attempt, 0, OUTCOME_CANCELLED);
    containers_wait(&c, o->attempt, PHASE_ENDED);
    containers_close(&c);
}

/* --- copying */

static bool put_bytes(void *arg, const char *at, size_t n, struct err *err) { (void)err; str_put(arg, at, n); return true; }

TEST(files_come_out_of_and_go_into_a_running_task)
{
    struct containers c = {0};
    struct peer p;
    struct err err = {0};
    if (!containers_open(&c))
        return;
    struct order *o = a_task(&c, "mkdir -p /tmp/d/e; echo one > /tmp/d/a; echo two > /tmp/d/e/b; ln -s /etc/passwd /tmp/d/link; echo done; sleep 100");
    while (!strstr(containers_log(&c, o->attempt, 0), "done"))
        usleep(10000);
    CHECK(dial(&c, o->attempt, "{\"op\":\"get\",\"path\":\"/tmp/d\"}", &p));
    hear_all(&p);
    CHECK(p.end == FRAME_EXIT && p.out.len > 5 * TAR_BLOCK);
    AUTO(tree_receiver_free) struct tree_receiver *r = NULL;
    int top = open(c.top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(tree_receive(top, "got", -1, -1, &r, &err) && tree_receive_feed(r, p.out.at, p.out.len, &err) && tree_receive_end(r, &err));
    CHECK(system(containers_path(&c, "cd %s/got/d && test $(cat a) = one && test $(cat e/b) = two && test -L link", c.top)) == 0);
    hang_up(&p);
    struct str tar = {0};
    CHECK(tree_send(top, "got/d", &(struct tree_sink){ put_bytes, &tar }, &err));
    CHECK(dial(&c, o->attempt, "{\"op\":\"put\",\"path\":\"/workplace/deep\"}", &p));
    for (size_t at = 0; at < tar.len; at += 10000)
        CHECK(send_frame(&p, FRAME_INPUT, tar.at + at, MIN((size_t)10000, tar.len - at)));
    CHECK(say(&p, FRAME_INPUT_END, ""));
    hear_all(&p);
    CHECK(p.end == FRAME_EXIT);
    hang_up(&p);
    CHECK(dial(&c, o->attempt, "{\"op\":\"exec\",\"argv\":[\"sh\",\"-c\",\"cat /workplace/deep/d/e/b; stat -c %u /workplace/deep/d\"]}", &p));
    hear_all(&p);
    CHECK(text_is(p.out.at, "two\n0\n"));
    hang_up(&p);
    const char *bad[] = { "{\"op\":\"get\",\"path\":\"/no/such\"}", "{\"op\":\"get\",\"path\":\"/tmp/../etc\"}", "{\"op\":\"get\",\"path\":\"/etc/shadow\"}" };
    for (size_t i = 0; i < COUNT(bad); i++) {
        CHECK(dial(&c, o->attempt, bad[i], &p));
        hear_all(&p);
        CHECK(p.end == FRAME_ERROR && p.out.len == 0);
        hang_up(&p);
    }
    str_done(&tar);
    close(top);
    runtime_stop(c.r, o->attempt, 0, OUTCOME_CANCELLED);
    containers_wait(&c, o->attempt, PHASE_ENDED);
    containers_close(&c);
}

TEST(word_of_new_log_bytes_comes_at_once_and_ends_with_the_task)
{
    struct containers c = {0};
    struct peer p;
    if (!containers_open(&c))
        return;
    struct order *o = a_task(&c, "for word in first second; do until [ -e /outputs/$word ]; do sleep 0.05; done; echo $word; done; sleep 0.3");
    CHECK(dial(&c, o->attempt, "{\"op\":\"follow\"}", &p));
    CHECK(hear(&p) && p.end == FRAME_NEWS);     /* there may be bytes already */
    char name[ID_TEXT];
    int news = 0;
    id_text(name, PREFIX_ATTEMPT, o->attempt);
    for (int i = 0; i < 2; i++) {
        fclose(fopen(containers_path(&c, "%s/outputs/%s/%s", c.data, name, i ? "second" : "first"), "w"));
        CHECK(hear(&p) && p.end == FRAME_NEWS);
        news += strstr(containers_log(&c, o->attempt, 'o'), i ? "second" : "first") != NULL;
    }
    CHECK(news == 2);
    for (news = 0; hear(&p);)
        news += p.end == FRAME_NEWS;
    CHECK(news <= 2);
    hang_up(&p);
    CHECK(containers_wait(&c, o->attempt, PHASE_ENDED)->outcome == OUTCOME_SUCCEEDED);
    containers_close(&c);
}

TEST(a_port_of_the_task_is_dialled_in_its_own_network_and_nowhere_else)
{
    struct containers c = {0};
    struct peer p;
    char request[64];
    if (!containers_open(&c))
        return;
    struct order *o = a_task(&c, "exec perl -MIO::Socket::INET -e 'my $l = IO::Socket::INET->new(Listen => 5, LocalAddr => \"127.0.0.1:7117\"); $| = 1; print \"up\\n\"; while (my $s = $l->accept) { my $n = 0; $n += length while <$s>; print $s \"$n and $!\" . getppid }'");
    while (!strstr(containers_log(&c, o->attempt, 0), "up"))
        usleep(10000);
    CHECK(dial(&c, o->attempt, "{\"op\":\"dial\",\"port\":7117}", &p) && hear(&p) && p.end == FRAME_READY);
    CHECK(say(&p, FRAME_INPUT, "typed ") && say(&p, FRAME_INPUT, "words\n") && say(&p, FRAME_INPUT_END, ""));
    hear_all(&p);
    CHECK(text_starts(p.out.at, "12 and ") && p.end == FRAME_EXIT);
    hang_up(&p);
    /* a service of the machine itself, on its own loopback */
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t size = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int service = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(service, (struct sockaddr *)&at, size) == 0 && listen(service, 5) == 0 && getsockname(service, (struct sockaddr *)&at, &size) == 0);
    snprintf(request, sizeof request, "{\"op\":\"dial\",\"port\":%d}", ntohs(at.sin_port));
    CHECK(dial(&c, o->attempt, request, &p));
    hear_all(&p);
    CHECK(p.end == FRAME_ERROR && strstr(p.text, "nothing in the task listens"));
    hang_up(&p);
    close(service);
    CHECK(dial(&c, o->attempt, "{\"op\":\"dial\",\"port\":0}", &p));
    hear_all(&p);
    CHECK(p.end == FRAME_ERROR && strstr(p.text, "between 1 and 65535"));
    hang_up(&p);
    runtime_stop(c.r, o->attempt, 0, OUTCOME_CANCELLED);
    containers_wait(&c, o->attempt, PHASE_ENDED);
    containers_close(&c);
}
