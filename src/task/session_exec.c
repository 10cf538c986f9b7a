/* session_exec.c - a further process in the container, with a terminal or with pipes, until it
 * ends or its user hangs up.
 *
 * The runtime starts it and leaves; it becomes a child of this session. Nothing is buffered
 * beyond one frame each way: output is read when the last piece has gone out, input is taken
 * when the last piece has gone in. */
#include "task/task.h"
#include "agent/task_proto.h"
#include "wire/bind.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

enum {
    ARGS_MAX = 1024,
    CONFIG_BYTES = 1 << 22,
    HANGUP_MS = 5000,
    TERMINAL_LOOK_MS = 20,
    PIECE = 16 * 1024
};
enum { PEER, OUT, ERRORS, INPUT, CHILD, POLLS };

struct exec {
    struct task *t;
    int peer, in, out, errors; /* with a terminal in and out are the same one */
    bool tty, socket, input_over;
    int pid, status;
    bool ended;
    char *frame; /* what came from the peer, not yet a whole frame or not yet passed on */
    size_t have;
    size_t input_left, input_at; /* of a FRAME_INPUT at the front of `frame` */
};

static bool console_listen(struct task *t, char path[static 108], int *fd, struct err *err)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    if ((size_t)snprintf(at.sun_path, sizeof at.sun_path, "%s/console-%d", t->plan.run, getpid())
        >= sizeof at.sun_path)
        return err_set(err, RC_INTERNAL, "the path of the console socket is too long");
    memcpy(path, at.sun_path, sizeof at.sun_path);
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unlink(path);
    return (*fd != -1 && bind(*fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(*fd, 1) == 0)
           || err_errno(err, "cannot listen for the terminal");
}

static bool console_take(int listener, int *terminal, struct err *err)
{
    AUTO(fd_close) int from = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    char name[256], control[CMSG_SPACE(sizeof(int))];
    struct iovec part = { name, sizeof name };
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control
    };
    if (from == -1 || recvmsg(from, &m, MSG_CMSG_CLOEXEC) <= 0)
        return err_errno(err, "the runtime sent no terminal");
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int)))
        return err_set(err, RC_INTERNAL, "the runtime sent no terminal");
    memcpy(terminal, CMSG_DATA(c), sizeof *terminal);
    return true;
}

static void resize(struct exec *x, int64_t rows, int64_t cols)
{
    struct winsize size = { .ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols };
    if (x->tty && rows > 0 && cols > 0)
        ioctl(x->out, TIOCSWINSZ, &size);
}

static void add_text(struct arena *mem, struct json *list, const char *text)
{
    struct json *e = json_new(mem, JSON_TEXT);
    e->text = text;
    e->len = strlen(text);
    json_add(list, NULL, e);
}

static void set_term(struct arena *mem, struct json *env, const char *term)
{
    const char *entry = arena_printf(mem, "TERM=%s", text_given(term) ? term : "xterm");
    for (struct json *e = env->first; e; e = e->next)
        if (text_starts(e->text, "TERM=")) {
            e->text = entry;
            e->len = strlen(entry);
            return;
        }
    add_text(mem, env, entry);
}

/* Before its first instruction: a command that asks at once must not find a terminal without a size. */
static void set_size(struct arena *mem, struct json *process, const struct task_request *rq)
{
    const struct { const char *name; int64_t n; } sides[] = { { "height", rq->rows }, { "width", rq->cols } };
    struct json *size = json_new(mem, JSON_OBJECT);
    if (rq->rows <= 0 || rq->cols <= 0)
        return;
    for (size_t i = 0; i < COUNT(sides); i++) {
        struct json *n = json_new(mem, JSON_NUMBER);
        n->is_int = true;
        n->number = sides[i].n;
        json_add(size, sides[i].name, n);
    }
    json_add(process, "consoleSize", size);
}

/* The task's own process with other arguments: the same user and groups, capabilities, limits, environment, and as little chance
 * to gain rights. What the runtime makes up by itself when it is given arguments lacks half of that. */
static bool process_write(struct exec *x, const struct task_request *rq, const char *path,
                          struct err *err)
{
    struct arena *mem = x->t->mem;
    struct slice text;
    struct json *doc = NULL;
    const char *config = arena_printf(mem, "%s/config.json", x->t->plan.folder);
    if (!small_read(config, CONFIG_BYTES, mem, &text, err) || !json_parse(text, mem, &doc, err))
        return false;
    struct json *process = json_get(doc, "process"), *args = json_get(process, "args"),
                *terminal = json_get(process, "terminal"), *env = json_get(process, "env");
    if (!args || !terminal || !env)
        return err_set(err, RC_INTERNAL, "%s has no process", config);
    args->first = args->last = NULL;
    for (size_t i = 0; i < rq->argv.count && i < ARGS_MAX; i++)
        add_text(mem, args, rq->argv.at[i]);
    terminal->flag = rq->tty;
    if (rq->tty) {
        set_term(mem, env, rq->term);
        set_size(mem, process, rq);
    }
    AUTO(str_done) struct str out = { 0 };
    json_print(&out, process);
    return small_replace(path, (struct slice){ out.at, out.len }, 0600, err);
}

static const char *const *arguments(struct exec *x, const struct task_request *rq,
                                    const char *console, const char *log, const char *pid,
                                    const char *process)
{
    const struct plan *p = &x->t->plan;
    const char **argv = ARENA_ARRAY(x->t->mem, const char *, ARGS_MAX);
    size_t n = 0;
    const char *const head[]
        = { p->runtime,   "--root", p->runtime_root, "--log", log, "exec", "--detach",
            "--pid-file", pid,      "--process",     process };
    for (size_t i = 0; i < COUNT(head); i++)
        argv[n++] = head[i];
    if (rq->tty) {
        argv[n++] = "--tty";
        argv[n++] = "--console-socket";
        argv[n++] = console;
    }
    argv[n++] = p->id;
    return argv;
}

/* The terminal comes while the runtime is still at work. It is taken and sized at once: the command
 * must not see it before it has its size. */
static bool terminal_wait(struct exec *x, int pid, int listener, const struct task_request *rq,
                          int *status, struct err *err)
{
    struct pollfd coming = { .fd = listener, .events = POLLIN };
    while (poll(&coming, 1, TERMINAL_LOOK_MS) <= 0)
        if (waitpid(pid, status, WNOHANG) == pid && poll(&coming, 1, 0) <= 0)
            return err_set(err, RC_INTERNAL, "the runtime sent no terminal");
    if (!console_take(listener, &x->out, err))
        return false;
    resize(x, rq->rows, rq->cols);
    return true;
}

static bool run_runtime(struct exec *x, const struct task_request *rq, const char *const *argv,
                        const int ends[3], int listener, const char *log, struct err *err)
{
    int pid = 0, status = -1;
    struct err terminal = { 0 };
    AUTO(fd_close) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct sealed program;
    sealed_open(&program, argv[0]); /* closed with us: a session is a process */
    if (!helper_spawn(argv, &program, x->tty ? null : ends[0], x->tty ? null : ends[1],
                      x->tty ? null : ends[2], &pid, err))
        return false;
    bool ok = !x->tty || terminal_wait(x, pid, listener, rq, &status, &terminal);
    while (status == -1 && waitpid(pid, &status, 0) == -1 && errno == EINTR)
        ;
    if (status == 0)
        return ok || (*err = terminal, false);
    container_why(x->t, log, err);
    return false;
}

/* Input and output are one socket, each with a descriptor of its own. */
static bool one_socket(int in[static 2], int out[static 2])
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == -1)
        return false;
    in[0] = pair[0], out[0] = pair[1];
    in[1] = fcntl(pair[1], F_DUPFD_CLOEXEC, 3);
    out[1] = fcntl(pair[0], F_DUPFD_CLOEXEC, 3);
    return in[1] != -1 && out[1] != -1;
}

static bool start(struct exec *x, const struct task_request *rq, struct err *err)
{
    struct task *t = x->t;
    char console[108] = "";
    const char *log = arena_printf(t->mem, "%s/exec-%d.log", t->plan.run, getpid());
    const char *pid_file = arena_printf(t->mem, "%s/exec-%d.pid", t->plan.run, getpid());
    const char *process = arena_printf(t->mem, "%s/exec-%d.json", t->plan.run, getpid());
    int in[2] = { -1, -1 }, out[2] = { -1, -1 }, errors[2] = { -1, -1 };
    AUTO(fd_close) int listener = -1;
    if (rq->tty ? !console_listen(t, console, &listener, err)
        : rq->socket ? !one_socket(in, out) || pipe2(errors, O_CLOEXEC) == -1
                : pipe2(in, O_CLOEXEC) == -1 || pipe2(out, O_CLOEXEC) == -1
                      || pipe2(errors, O_CLOEXEC) == -1)
        return err->rc ? false : err_errno(err, "cannot make a pipe");
    struct slice text = { 0 };
    bool ok = process_write(x, rq, process, err)
              && run_runtime(x, rq, arguments(x, rq, console, log, pid_file, process),
                             (int[]){ in[0], out[1], errors[1] }, listener, log, err)
              && small_read(pid_file, 32, t->mem, &text, err);
    unlink(log);
    unlink(pid_file);
    unlink(process);
    unlink(console);
    if (!ok)
        return false;
    x->pid = (int)strtol(text.at, NULL, 10);
    if (!rq->tty) {
        fd_close(in[0]);
        fd_close(out[1]);
        fd_close(errors[1]);
        x->out = out[0];
        x->errors = errors[0];
    }
    x->in = rq->tty ? x->out : in[1];
    fcntl(x->in, F_SETFL, fcntl(x->in, F_GETFL) | O_NONBLOCK);
    return x->pid > 1 || err_set(err, RC_INTERNAL, "the runtime wrote a bad pid");
}

static void input_end(struct exec *x)
{
    x->input_over = true;
    if (x->socket)
        shutdown(x->in, SHUT_WR);
    if (x->tty) /* a terminal has no end of its own: its user types one */
        x->input_over = write(x->in, "\4", 1) == 1;
    else
        fd_close(x->in);
    x->in = x->tty ? x->in : -1;
}

static void command(struct exec *x, int kind, const char *at, size_t n)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *doc = NULL;
    struct err err = { 0 };
    struct task_resize size = { 0 };
    struct task_signal sig = { 0 };
    if (kind == FRAME_INPUT_END)
        input_end(x);
    else if (!json_parse((struct slice){ at, n }, mem, &doc, &err))
        return; /* a peer of another version: what it asks beside the bytes is optional */
    else if (kind == FRAME_RESIZE && bind_read_ours(doc, &task_resize_fields, mem, &size, NULL, &err))
        resize(x, size.rows, size.cols);
    else if (kind == FRAME_SIGNAL && bind_read_ours(doc, &task_signal_fields, mem, &sig, NULL, &err)
             && !x->ended)
        kill(x->pid, (int)sig.signal);
}

/* Whole frames at the front of the buffer are acted on; input stays there until the process has
 * taken it. */
static bool act(struct exec *x)
{
    while (x->have >= FRAME_HEAD) {
        size_t n = frame_length((unsigned char *)x->frame);
        int kind = (unsigned char)x->frame[0];
        if (n > FRAME_MAX)
            return false;
        if (x->have < FRAME_HEAD + n)
            return true;
        if (kind == FRAME_INPUT && x->in != -1 && x->input_at < n) {
            ssize_t done = write(x->in, x->frame + FRAME_HEAD + x->input_at, n - x->input_at);
            if (done == -1 && (errno == EAGAIN || errno == EINTR))
                return true;
            if (done > 0 && (x->input_at += (size_t)done) < n)
                continue;
        } else if (kind != FRAME_INPUT) {
            command(x, kind, x->frame + FRAME_HEAD, n);
        }
        x->input_at = 0;
        x->have -= FRAME_HEAD + n;
        memmove(x->frame, x->frame + FRAME_HEAD + n, x->have);
    }
    return true;
}

static bool from_peer(struct exec *x)
{
    ssize_t n = recv(x->peer, x->frame + x->have, FRAME_HEAD + FRAME_MAX - x->have, MSG_DONTWAIT);
    if (n == -1 && (errno == EAGAIN || errno == EINTR))
        return true;
    x->have += (size_t)MAX(n, 0);
    return n > 0 && act(x);
}

static bool to_peer(struct exec *x, int *fd, int kind)
{
    char piece[PIECE];
    ssize_t n = read(*fd, piece, sizeof piece);
    if (n > 0)
        return frame_send(x->peer, kind, piece, (size_t)n);
    if (n == -1 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (!x->tty) /* EIO of a terminal: nobody has it open any more */
        close(*fd);
    *fd = -1;
    return true;
}

static void reap(struct exec *x, int signals)
{
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof info) > 0)
        ;
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        if (pid == x->pid) {
            x->ended = true;
            x->status = status;
        }
}

/* False: the peer has gone. */
static bool pump(struct exec *x, int signals)
{
    while (!x->ended || x->out != -1 || x->errors != -1) {
        bool room = x->have<FRAME_HEAD + FRAME_MAX, waits = x->have> FRAME_HEAD
                    && x->frame[0] == FRAME_INPUT
                    && x->have >= FRAME_HEAD + frame_length((unsigned char *)x->frame);
        struct pollfd fds[POLLS] = {
            [PEER] = { x->peer, room && !waits ? POLLIN : POLLRDHUP, 0 },
            [OUT] = { x->out, POLLIN, 0 },
            [ERRORS] = { x->errors, POLLIN, 0 },
            [INPUT] = { waits ? x->in : -1, POLLOUT, 0 },
            [CHILD] = { signals, POLLIN, 0 },
        };
        int n = poll(fds, POLLS, x->ended ? 100 : -1);
        if (n == 0) /* a process it left behind holds the pipe open: that one is not waited for */
            break;
        if (fds[CHILD].revents)
            reap(x, signals);
        if (fds[INPUT].revents && !act(x))
            return false;
        if (fds[OUT].revents && !to_peer(x, &x->out, FRAME_OUTPUT))
            return false;
        if (fds[ERRORS].revents && !to_peer(x, &x->errors, FRAME_ERRORS))
            return false;
        if (fds[PEER].revents && !from_peer(x))
            return false;
    }
    return true;
}

static void hang_up(struct exec *x)
{
    for (int waited = 0; !x->ended && waited <= HANGUP_MS; waited += 50) {
        if (waited == 0 || waited >= HANGUP_MS)
            kill(x->pid, waited ? SIGKILL : SIGHUP);
        fd_close(waited ? -1 : x->in);
        usleep(50000);
        x->ended = waitpid(x->pid, NULL, WNOHANG) != 0;
    }
}

bool session_exec(struct task *t, int connection, const struct task_request *rq, struct err *err)
{
    struct exec x
        = { .t = t, .peer = connection, .in = -1, .out = -1, .errors = -1, .tty = rq->tty, .socket = rq->socket };
    if (!rq->argv.count)
        return err_field(err, "argv", "what is to be run?");
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGTERM, SIG_IGN); /* the task ends: our process ends with it, and its end is told */
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    AUTO(fd_close) int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    x.frame = ARENA_ARRAY(t->mem, char, FRAME_HEAD + FRAME_MAX);
    if (signals == -1 || !start(&x, rq, err))
        return false;
    if (!frame_send(connection, FRAME_READY, "{}", 2) || !pump(&x, signals)) {
        hang_up(&x);
        return true;
    }
    struct task_exit end = { .exit_code = WIFEXITED(x.status) ? WEXITSTATUS(x.status) : 0,
                             .signal = WIFSIGNALED(x.status) ? WTERMSIG(x.status) : 0 };
    return frame_object(connection, FRAME_EXIT, &task_exit_fields, &end);
}
