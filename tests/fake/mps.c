/* mps.c - nvidia-cuda-mps-control without a driver, for tests. As the real one: with -f it is the daemon of $CUDA_MPS_PIPE_DIRECTORY, else it sends what
 * it reads, line by line, to the daemon there and prints what that answers. Commands that change something are refused to all but root and the
 * daemon's own user, in the words of driver 580.
 *
 * What the daemon was begun with and every word that it took are lines of PIPE/../said. Files beside that make it odd: `deaf` (it answers nothing),
 * `stubborn` (quit is not obeyed), `wrong` (it keeps 100 % whatever it is told), `late` (its sockets come after two seconds), `serves` (it has a server, a
 * process of its own that outlives it; its pid is in server.pid), `idle` (start_server starts none). Clients of the server are the lines of `clients`.
 *
 * A server that it is told to start goes with it. What it writes is what driver 580 was seen to write. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static char folder[80];
static char percentage[32] = "100.0", limit[32] = "0G";

static const char *at(const char *name)
{
    static char path[100];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static bool is_odd(const char *how)
{
    char name[32];
    snprintf(name, sizeof name, "../%s", how);
    return access(at(name), F_OK) == 0;
}

static void said(const char *words)
{
    FILE *f = fopen(at("../said"), "ae");
    if (f) {
        fprintf(f, "%s\n", words);
        fclose(f);
    }
}

static int door(bool listens)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    snprintf(to.sun_path, sizeof to.sun_path, "%s", at("control"));
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (listens)
        unlink(to.sun_path);
    if (fd == -1 || (listens ? bind(fd, (void *)&to, sizeof to) == -1 || chmod(to.sun_path, 0666) == -1 || listen(fd, 64) == -1
                             : connect(fd, (void *)&to, sizeof to) == -1)) {
        fprintf(stderr, "Cannot %s %s: %s\n", listens ? "listen on" : "find MPS control daemon process", to.sun_path, strerror(errno));
        exit(1);
    }
    return fd;
}

static void lines_of(const char *name, char out[static 256])
{
    FILE *f = fopen(at(name), "re");
    size_t n = f ? fread(out, 1, 255, f) : 0;
    out[n] = 0;
    if (f)
        fclose(f);
}

static void writes(const char *who, int pid, const char *words)
{
    char when[32];
    time_t now = time(NULL);
    strftime(when, sizeof when, "%F %T", localtime(&now));
    printf("[%s.000 %s %5d] %s\n", when, who, pid, words);
    fflush(stdout);
}

static int server;

static void begin_server(bool outlives)
{
    char words[64];
    pid_t pid = fork();
    if (pid == 0) {
        if (!outlives)
            prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    server = outlives ? 0 : pid;
    snprintf(words, sizeof words, "Starting new server %d for user 0", pid);
    writes("Control", getpid(), words);
    snprintf(words, sizeof words, "NEW SERVER %d: Ready", pid);
    writes("Control", getpid(), words);
    FILE *f = fopen(at("../server.pid"), "we");
    if (f) {
        fprintf(f, "%d\n", pid);
        fclose(f);
    }
}

static void answer(const char *words, unsigned uid, char out[static 256])
{
    bool ours = uid == 0 || uid == geteuid();
    *out = 0;
    if (strcmp(words, "quit") == 0) {
        if (!ours)
            snprintf(out, 256, "Not enough privilege to execute quit command\n");
        else if (!is_odd("stubborn")) {
            unlink(at("nvidia-cuda-mps-control.pid"));
            if (server)
                kill(server, SIGKILL), unlink(at("../server.pid"));
            exit(0);
        }
    } else if ((strncmp(words, "set_", 4) == 0 || strncmp(words, "terminate_", 10) == 0 || strncmp(words, "start_", 6) == 0 || strncmp(words, "shutdown_", 9) == 0) && !ours) {
        snprintf(out, 256, "Insufficient privileges for UID %u. Control deamon settings can only be modified by the user who started it or by the root user.\n", uid);
    } else if (sscanf(words, "set_default_active_thread_percentage %31s", out) == 1) {
        if (!is_odd("wrong"))
            snprintf(percentage, sizeof percentage, "%s", out);
        snprintf(out, 256, "%s\n", percentage);
    } else if (sscanf(words, "set_default_device_pinned_mem_limit 0 %31s", out) == 1) {
        snprintf(limit, sizeof limit, "%s", out);
        *out = 0;
    } else if (strcmp(words, "get_default_active_thread_percentage") == 0)
        snprintf(out, 256, "%s\n", percentage);
    else if (strcmp(words, "get_default_device_pinned_mem_limit 0") == 0)
        snprintf(out, 256, "%s\n", limit);
    else if (strcmp(words, "get_server_list") == 0)
        lines_of("../server.pid", out);
    else if (strncmp(words, "get_server_status ", 18) == 0)
        snprintf(out, 256, "%s\n", server || is_odd("serves") ? "ACTIVE" : "Server not found");
    else if (strncmp(words, "get_client_list ", 16) == 0)
        lines_of("../clients", out);
    else if (strncmp(words, "start_server ", 13) == 0) {
        if (!is_odd("idle"))
            begin_server(false);
    } else if (strncmp(words, "terminate_client ", 17) != 0 && strncmp(words, "set_", 4) != 0)
        snprintf(out, 256, "Unknown command \"%s\"\n", words);
}

static void serve(int fd)
{
    char words[256], out[260];
    struct ucred who = { 0 };
    socklen_t n = sizeof who;
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n);
    for (ssize_t got; (got = recv(fd, words, sizeof words - 1, 0)) > 0;) {
        words[got] = 0;
        snprintf(out, sizeof out, "%u %.240s", who.uid, words);
        said(out);
        if (is_odd("deaf"))
            pause();
        answer(words, who.uid, out);
        send(fd, out, strlen(out) + 1, MSG_NOSIGNAL);
    }
    close(fd);
}

static __attribute__((noreturn)) void be_daemon(int argc, char **argv)
{
    extern char **environ;
    char line[600] = "begins";
    for (int i = 1; i < argc; i++)
        snprintf(line + strlen(line), sizeof line - strlen(line), " %s", argv[i]);
    for (char **e = environ; *e; e++)
        snprintf(line + strlen(line), sizeof line - strlen(line), " %s", *e);
    unlink(at("../server.pid"));       /* of the last one */
    if (is_odd("late"))
        sleep(2);
    said(line);
    if (is_odd("serves"))
        begin_server(true);
    int control = door(true);
    FILE *f = fopen(at("nvidia-cuda-mps-control.pid"), "we");
    if (f) {
        fprintf(f, "%d", getpid());
        fclose(f);
    }
    for (;;) {
        int fd = accept(control, NULL, NULL);
        if (fd != -1)
            serve(fd);
    }
}

int main(int argc, char **argv)
{
    const char *pipe = getenv("CUDA_MPS_PIPE_DIRECTORY");
    char line[256], out[256];
    if (!pipe || (size_t)snprintf(folder, sizeof folder, "%s", pipe) >= sizeof folder) {
        fprintf(stderr, "no CUDA_MPS_PIPE_DIRECTORY, or a long one\n");
        return 1;
    }
    if (argc > 1 && strcmp(argv[1], "-f") == 0)
        be_daemon(argc, argv);
    int fd = door(false);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (!*line || send(fd, line, strlen(line), MSG_NOSIGNAL) < 0)
            continue;
        ssize_t n = recv(fd, out, sizeof out - 1, 0);
        if (n <= 0)
            return strcmp(line, "quit") != 0;
        out[n] = 0;
        fputs(out, stdout);
    }
    return 0;
}
