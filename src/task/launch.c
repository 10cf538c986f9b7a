/* launch.c - arcus-launch: how a program on one node of a gang starts others on the rest of it, without sshd and keys in the image. It is this
 * same static program under another name, mounted into the tasks of gangs (bundle.c), and runs inside of them with no rights of its own.
 *
 *   arcus-launch --gang COMMAND...     on every node: rank 0 runs the command, the others serve until it has ended
 *   arcus-launch HOST COMMAND...       as rsh(1) is called, by mpirun: runs it on a node that serves, with its input, output and exit code
 *
 * Who may is told by the address: only those of the gang are heard, and nobody in a project's network can take another's (agent/fabric.c). Frames are
 * those of task_proto.h: a request is the command as text, FRAME_SIGNAL instead of one says that all is over, FRAME_EXIT has the code as text. */
#include "agent/task_proto.h"
#include "task/task.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 29501, PIECE = 32 << 10, COME_S = 300, QUIT_S = 10, NOT_THERE = 255, SESSIONS = 64 };

static bool put_all(int fd, const void *at, size_t n)
{
    for (const char *p = at; n;) {
        ssize_t done = write(fd, p, n);
        if (done == -1 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        p += done;
        n -= (size_t)done;
    }
    return true;
}

/* What a pipe has goes on as frames; false: it has ended. */
static bool pass(int from, int to, int kind)
{
    char piece[PIECE];
    ssize_t n = read(from, piece, sizeof piece);
    return n > 0 ? frame_send(to, kind, piece, (size_t)n) : n == -1 && (errno == EINTR || errno == EAGAIN);
}

/* --- the gang, as the environment tells it */

static bool is_ours(struct in_addr who, bool first_only)
{
    const char *list = getenv("ARCUS_NODE_IPS");
    char four[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &who, four, sizeof four);
    for (size_t n; list && (n = strcspn(list, ",")); list += n + (list[n] == ',')) {
        if (n == strlen(four) && strncmp(list, four, n) == 0)
            return true;
        if (first_only)
            return false;
    }
    return false;
}

static int64_t now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* It may not have begun yet, and a try that nobody answers would take minutes. */
static int dial(const char *host, int patience_s)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
    const struct timeval once = { .tv_sec = 3 }, for_ever = { 0 };
    if (inet_pton(AF_INET, host, &to.sin_addr) != 1)
        return errno = EINVAL, -1;
    for (int64_t end = now_s() + patience_s;; usleep(200 * 1000)) {
        int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (s != -1 && setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &once, sizeof once) == 0 && connect(s, (struct sockaddr *)&to, sizeof to) == 0
            && setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &for_ever, sizeof for_ever) == 0)
            return s;
        int why = errno;
        if (s != -1)
            close(s);
        if (now_s() >= end)
            return errno = why, -1;
    }
}

/* --- as rsh is called */

static int call(const char *host, const char *command)
{
    int s = dial(host, COME_S), code = NOT_THERE, kind = 0;
    char bytes[FRAME_MAX + 1];
    if (s == -1 || !frame_send(s, FRAME_REQUEST, command, strlen(command)))
        return fprintf(stderr, "arcus-launch: %s: %s\n", host, strerror(errno)), NOT_THERE;
    struct pollfd p[] = { { s, POLLIN, 0 }, { STDIN_FILENO, POLLIN, 0 } };
    while (kind != FRAME_EXIT && (poll(p, COUNT(p), -1) != -1 || errno == EINTR)) {
        if (p[1].revents && !pass(STDIN_FILENO, s, FRAME_INPUT)) {
            p[1].fd = -1;
            if (!frame_send(s, FRAME_INPUT_END, "", 0))
                break;
        }
        size_t n;
        if (!p[0].revents)
            continue;
        if (!frame_receive(s, &kind, bytes, FRAME_MAX, &n))
            break;
        bytes[n] = 0;
        if (kind == FRAME_EXIT)
            code = atoi(bytes);
        else if (!put_all(kind == FRAME_ERRORS ? STDERR_FILENO : STDOUT_FILENO, bytes, n))
            break;
    }
    return code;
}

static int as_rsh(int argc, char **argv)
{
    char *command = calloc(1, FRAME_MAX + 1);
    int at = 1;
    size_t len = 0;
    while (at < argc && argv[at][0] == '-') /* what is said to rsh or ssh: only -l takes a word */
        at += text_is(argv[at], "-l") ? 2 : 1;
    for (int i = at + 1; command && i < argc; i++) {
        if (len + strlen(argv[i]) + 2 > FRAME_MAX)
            return fprintf(stderr, "arcus-launch: the command is too long\n"), 64;
        len += (size_t)sprintf(command + len, "%s%s", len ? " " : "", argv[i]);
    }
    if (!len)
        return fprintf(stderr, "usage: arcus-launch --gang COMMAND... | HOST COMMAND...\n"), 64;
    int code = call(argv[at], command);
    free(command);
    return code;
}

/* --- who serves */

struct child { pid_t pid; int in, out, err; };

static bool child_start(struct child *c, const char *command)
{
    int in[2] = { -1, -1 }, out[2] = { -1, -1 }, err[2] = { -1, -1 };
    sigset_t none;
    if (pipe2(in, O_CLOEXEC) == -1 || pipe2(out, O_CLOEXEC) == -1 || pipe2(err, O_CLOEXEC) == -1 || (c->pid = fork()) == -1)
        return false;
    if (c->pid == 0) {
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        signal(SIGPIPE, SIG_DFL);
        setsid();
        if (dup2(in[0], 0) != -1 && dup2(out[1], 1) != -1 && dup2(err[1], 2) != -1)
            execl("/bin/sh", "sh", "-c", command, NULL);
        _exit(127);
    }
    close(in[0]), close(out[1]), close(err[1]);
    c->in = in[1], c->out = out[0], c->err = err[0];
    return true;
}

/* False: nobody is at the other end any more. */
static bool take_input(int s, struct child *c)
{
    int kind;
    char bytes[FRAME_MAX];
    size_t n;
    if (!frame_receive(s, &kind, bytes, sizeof bytes, &n))
        return false;
    if (c->in != -1 && (kind == FRAME_INPUT_END || !put_all(c->in, bytes, n)))
        close(c->in), c->in = -1;
    return true;
}

/* Until it has ended; what it leaves behind (a daemon) is not waited for. */
static void converse(int s, struct child *c, int signals)
{
    struct pollfd p[] = { { s, POLLIN, 0 }, { c->out, POLLIN, 0 }, { c->err, POLLIN, 0 }, { signals, POLLIN, 0 } };
    int status = 0;
    char text[16];
    bool ended = false;
    while (!ended && (poll(p, COUNT(p), -1) != -1 || errno == EINTR)) {
        for (int i = 1; i <= 2; i++)
            if (p[i].revents && !pass(p[i].fd, s, i == 1 ? FRAME_OUTPUT : FRAME_ERRORS))
                p[i].fd = -1;
        if (p[0].revents && !take_input(s, c)) {
            kill(-c->pid, SIGHUP);
            return;
        }
        struct signalfd_siginfo ignored;
        if (p[3].revents && read(signals, &ignored, sizeof ignored) > 0)
            ended = waitpid(c->pid, &status, WNOHANG) == c->pid;
    }
    for (int i = 1; i <= 2; i++)
        if (p[i].fd != -1 && fcntl(p[i].fd, F_SETFL, O_NONBLOCK) == 0)
            for (struct pollfd one = { p[i].fd, POLLIN, 0 }; poll(&one, 1, 0) > 0 && pass(p[i].fd, s, i == 1 ? FRAME_OUTPUT : FRAME_ERRORS);)
                ;
    snprintf(text, sizeof text, "%d", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    if (!frame_send(s, FRAME_EXIT, text, strlen(text)))
        return; /* who asked is gone */
}

/* A process for each that calls. */
static int session(int s, bool from_first, int quit)
{
    int kind;
    char bytes[FRAME_MAX + 1];
    size_t n;
    struct child c;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals == -1 || !frame_receive(s, &kind, bytes, FRAME_MAX, &n))
        return 1;
    bytes[n] = 0;
    if (kind == FRAME_SIGNAL && from_first)
        return !put_all(quit, "q", 1);
    if (kind == FRAME_REQUEST && child_start(&c, bytes))
        converse(s, &c, signals);
    return 0;
}

static void on_term(int number)
{
    _exit(128 + number);
}

/* We may be the first process of the container: nobody else buries the dead there, and no signal has a meaning by itself. */
static int serve(void)
{
    struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(PORT) }, who = { 0 };
    int one = 1, quit[2], l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (l == -1 || bind(l, (struct sockaddr *)&here, sizeof here) == -1 || listen(l, SESSIONS) == -1 || pipe2(quit, O_CLOEXEC) == -1)
        return fprintf(stderr, "arcus-launch: cannot serve on port %d: %s\n", PORT, strerror(errno)), 1;
    for (;;) {
        struct pollfd p[] = { { l, POLLIN, 0 }, { quit[0], POLLIN, 0 } };
        if (poll(p, COUNT(p), 1000) == -1 && errno != EINTR)
            return 1;
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (p[1].revents)
            return 0;
        socklen_t n = sizeof who;
        int s = p[0].revents ? accept4(l, (struct sockaddr *)&who, &n, SOCK_CLOEXEC) : -1;
        if (s != -1 && is_ours(who.sin_addr, false) && fork() == 0)
            _exit(session(s, is_ours(who.sin_addr, true), quit[1]));
        if (s != -1)
            close(s);
    }
}

/* --- who commands */

static void end_others(void)
{
    const char *list = getenv("ARCUS_NODE_IPS");
    list = list ? strchr(list, ',') : NULL;
    for (char host[INET_ADDRSTRLEN]; list && *list == ','; list += strcspn(list, ",")) {
        list++;
        snprintf(host, sizeof host, "%.*s", (int)strcspn(list, ","), list);
        int s = dial(host, QUIT_S);
        if (s == -1 || !frame_send(s, FRAME_SIGNAL, "", 0))
            fprintf(stderr, "arcus-launch: %s is not there any more\n", host);
        if (s != -1)
            close(s);
    }
}

/* Signals that come to us are for it; whatever else ends in the container is buried by us. */
static int command(char **argv)
{
    int status = 0;
    sigset_t set, before;
    siginfo_t what;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD), sigaddset(&set, SIGTERM), sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, &before);
    pid_t pid = fork();
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        signal(SIGPIPE, SIG_DFL);
        execvp(argv[0], argv);
        fprintf(stderr, "arcus-launch: %s: %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    bool told = false;
    for (bool over = pid == -1; !over;) {
        int number = sigwaitinfo(&set, &what);
        if (number == SIGTERM || number == SIGINT)
            told = kill(pid, number) == 0;
        int how;
        for (pid_t gone; (gone = waitpid(-1, &how, WNOHANG)) > 0;)
            if (gone == pid)
                over = true, status = how;
    }
    if (!told) /* else all of the gang is */
        end_others();
    return pid == -1 ? 1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int launch_main(int argc, char **argv)
{
    const char *rank = getenv("NODE_RANK");
    signal(SIGPIPE, SIG_IGN);
    if (argc < 3 || !text_is(argv[1], "--gang"))
        return as_rsh(argc, argv);
    if (!rank || text_is(rank, "0"))
        return command(argv + 2);
    signal(SIGTERM, on_term), signal(SIGINT, on_term);
    return serve();
}
