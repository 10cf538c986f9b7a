/* start.c - how long a start takes, beside the same container made by hand, in turn, so that both see the same machine.
 *
 *   bench-start ADDRESS:PORT KEY JOB.json BUNDLE RUNTIME RUNTIME-ROOT PID ROUNDS
 *   bench-start ADDRESS:PORT KEY JOB.json BUNDLE RUNTIME RUNTIME-ROOT PID COUNT PARALLEL [bare | ours | batch]
 *   bench-start ADDRESS:PORT KEY JOB.json BUNDLE RUNTIME RUNTIME-ROOT PID ROUNDS beside NAME=BUNDLE..
 *
 * The first form tells the time from a submit to the first instruction of its container, and the same for `RUNTIME run` of BUNDLE/0,
 * a copy of the config.json that Arcus writes, in the namespaces of supervisor PID, where that bundle's root is. The command of
 * both prints the time. The second form (a command that ends at once) tells how many come to their end in a second;
 * the bare ones of BUNDLE/0 to BUNDLE/(PARALLEL-1), which differ in their control group. Ours are submitted one by one and, in turn with that,
 * all in one request. With a word behind it only one kind is run, once, for whoever wants to look at it with perf or strace. The third form runs the
 * bundles that are named in turn, by hand, and tells the time and the CPU time of each, and what it is to the first. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int connection = -1, mounts = -1;
static char address[64], body[1 << 16], reply[1 << 20];
static const char *key, *bundle, *runtime, *runtime_root;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int dial(void)
{
    struct sockaddr_in to = { .sin_family = AF_INET };
    char *colon = strrchr(address, ':');
    to.sin_port = htons((uint16_t)atoi(colon + 1));
    *colon = 0;
    inet_pton(AF_INET, address, &to.sin_addr);
    *colon = ':';
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == -1)
        die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

/* One request on the one connection; the body of the answer. */
static const char *ask(const char *method, const char *path, const char *what)
{
    char head[1024];
    int n = snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                     method, path, address, key, strlen(what));
    if (write(connection, head, (size_t)n) != n || write(connection, what, strlen(what)) != (ssize_t)strlen(what))
        die("write");
    size_t got = 0, want = SIZE_MAX;
    char *start = NULL;
    while (!start || got < want) {
        ssize_t k = read(connection, reply + got, sizeof reply - 1 - got);
        if (k <= 0)
            die("read");
        got += (size_t)k;
        reply[got] = 0;
        if (!start && (start = strstr(reply, "\r\n\r\n"))) {
            const char *length = strcasestr(reply, "content-length:");
            start += 4;
            if (!length) {      /* chunked: to its last chunk */
                while (!strstr(start, "\r\n0\r\n\r\n") && strncmp(start, "0\r\n\r\n", 5) && (k = read(connection, reply + got, sizeof reply - 1 - got)) > 0)
                    got += (size_t)k, reply[got] = 0;
                return start;
            }
            want = (size_t)(start - reply) + strtoul(length + 15, NULL, 10);
        }
    }
    return start;
}

static void text_of(const char *json, const char *name, char out[64])
{
    char pattern[32];
    snprintf(pattern, sizeof pattern, "\"%s\":", name);
    const char *at = strstr(json, pattern);
    *out = 0;
    if (at)
        sscanf(at + strlen(pattern), " \"%63[^\"]", out);
}

static int64_t stamp_in(const char *text)
{
    for (const char *at = text; *at; at++)
        if (strspn(at, "0123456789") == 19)
            return strtoll(at, NULL, 10) / 1000;
    fprintf(stderr, "no time in: %.300s\n", text);
    exit(1);
}

static pid_t run_folder(const char *folder, int out)
{
    static int serial;
    char name[32], *libraries = getenv("BARE_LIBRARIES");     /* "LD_LIBRARY_PATH=..." */
    snprintf(name, sizeof name, "bench-%d-%d", getpid(), serial++);
    pid_t pid = vfork();
    if (pid == 0) {
        char *env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", libraries, NULL };
        if (setns(mounts, CLONE_NEWNS) == -1)
            _exit(126);
        dup2(out, 1);
        execle(runtime, runtime, "--root", runtime_root, "run", "--bundle", folder, name, (char *)NULL, env);
        _exit(127);
    }
    return pid;
}

static pid_t run_bare(int slot, int out)
{
    char folder[512];
    snprintf(folder, sizeof folder, "%s/%d", bundle, slot);
    return run_folder(folder, out);
}

static int64_t bare_start(void)
{
    int out[2], status;
    char text[256] = "";
    if (pipe2(out, O_CLOEXEC) == -1)
        die("pipe");
    int64_t t0 = now_us();
    pid_t pid = run_bare(0, out[1]);
    close(out[1]);
    for (ssize_t n = 0, k; (k = read(out[0], text + n, sizeof text - 1 - (size_t)n)) > 0;)
        n += k;
    close(out[0]);
    if (waitpid(pid, &status, 0) != pid || status != 0) {
        fprintf(stderr, "the bare runtime failed: %d %s\n", status, text);
        exit(1);
    }
    return stamp_in(text) - t0;
}

/* Asking is work of the server's that is not what is measured. */
static void wait_end(const char *id, unsigned pause_us)
{
    char path[128], state[64];
    snprintf(path, sizeof path, "/v1/jobs/%s", id);
    for (;; usleep(pause_us)) {
        text_of(ask("GET", path, ""), "state", state);
        if (!strcmp(state, "done"))
            return;
        if (!strcmp(state, "failed") || !strcmp(state, "cancelled")) {
            fprintf(stderr, "a job failed: %.300s\n", reply);
            exit(1);
        }
    }
}

static int64_t our_start(void)
{
    char id[64], path[128];
    int64_t t0 = now_us();
    text_of(ask("POST", "/v1/jobs", body), "id", id);
    if (!*id) {
        fprintf(stderr, "refused: %.300s\n", reply);
        exit(1);
    }
    wait_end(id, 5000);
    snprintf(path, sizeof path, "/v1/jobs/%s/logs", id);
    return stamp_in(ask("GET", path, "")) - t0;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void tell(const char *what, int64_t *us, int n)
{
    qsort(us, (size_t)n, sizeof *us, by_size);
    printf("%-28s median %6.1f ms   90 %% %6.1f ms   least %6.1f ms\n", what, (double)us[n / 2] / 1000, (double)us[n * 9 / 10] / 1000, (double)us[0] / 1000);
}

static void starts(int rounds)
{
    int64_t *bare = calloc((size_t)rounds, sizeof *bare), *ours = calloc((size_t)rounds, sizeof *ours);
    for (int i = -3; i < rounds; i++) {     /* the first three warm up */
        int64_t b = bare_start(), o = our_start();
        if (i >= 0)
            bare[i] = b, ours[i] = o;
    }
    tell("bare runtime, same bundle", bare, rounds);
    tell("submit to first instruction", ours, rounds);
    printf("difference of the medians    %.1f ms\n", (double)(ours[rounds / 2] - bare[rounds / 2]) / 1000);
}

/* CPU time of the whole machine, whoever it was for: compare on a quiet one. */
static double cpu_ms(void)
{
    unsigned long long user = 0, nice = 0, system = 0, irq = 0, soft = 0;
    FILE *f = fopen("/proc/stat", "re");
    if (!f || fscanf(f, "cpu %llu %llu %llu %*u %*u %llu %llu", &user, &nice, &system, &irq, &soft) != 5)
        die("/proc/stat");
    fclose(f);
    return (double)(user + nice + system + irq + soft) * 1000 / (double)sysconf(_SC_CLK_TCK);
}

static double bare_rate(int count, int parallel)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC), running = 0, status;
    pid_t slots[64] = { 0 }, ended;
    int64_t t0 = now_us();
    for (int begun = 0; begun < count || running;) {
        for (int i = 0; i < parallel && begun < count; i++)
            if (!slots[i]) {
                slots[i] = run_bare(i, null);
                begun++, running++;
            }
        if ((ended = wait(&status)) < 0 || status != 0) {
            fprintf(stderr, "a bare runtime failed: %d\n", status);
            exit(1);
        }
        for (int i = 0; i < parallel; i++)
            slots[i] = slots[i] == ended ? 0 : slots[i];
        running--;
    }
    close(null);
    return count * 1e6 / (double)(now_us() - t0);
}

static void none_may_have(const char *state)
{
    char path[128];
    snprintf(path, sizeof path, "/v1/jobs?all=true&limit=1&state=%s", state);
    if (strstr(ask("GET", path, ""), "\"id\":")) {
        fprintf(stderr, "a job %s: %.300s\n", state, reply);
        exit(1);
    }
}

/* Of all that was submitted only the one that holds the place of the bare ones is left; asking each for its state would be work of the server's
 * that is not what is measured. */
static void wait_for_all(void)
{
    for (;; usleep(20000)) {
        const char *list = ask("GET", "/v1/jobs?limit=2", "");
        int n = 0;
        for (const char *at = list; (at = strstr(at, "\"id\":")); at++)
            n++;
        if (n <= 1)
            return;
    }
}

static void must_be_queued(const char *answer)
{
    char state[64];
    text_of(answer, "state", state);
    if (strcmp(state, "queued")) {
        fprintf(stderr, "refused: %.300s\n", reply);
        exit(1);
    }
}

static void submit_batch(int count)
{
    static char all[1 << 20];
    size_t n = (size_t)snprintf(all, sizeof all, "{\"jobs\":[");
    for (int i = 0; i < count; i++)
        n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", i ? "," : "", body);
    snprintf(all + n, sizeof all - n, "]}");
    must_be_queued(ask("POST", "/v1/jobs/batch", all));
}

/* Jobs of one task each; the last one's end counts. That all went well is looked at behind it. */
static double our_rate(int count, bool batch)
{
    int64_t t0 = now_us();
    if (batch)
        submit_batch(count);
    for (int i = 0; !batch && i < count; i++)
        must_be_queued(ask("POST", "/v1/jobs", body));
    wait_for_all();
    double rate = count * 1e6 / (double)(now_us() - t0);
    none_may_have("failed");
    none_may_have("cancelled");
    return rate;
}

/* --- bundles beside each other */

struct beside { const char *name, *folder; int64_t *us, *cpu_us; };

static void run_beside(struct beside *b, int round)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC), status;
    struct rusage used;
    int64_t t0 = now_us();
    pid_t pid = run_folder(b->folder, null);
    if (wait4(pid, &status, 0, &used) != pid || status != 0) {
        fprintf(stderr, "the bundle %s failed: %d\n", b->name, status);
        exit(1);
    }
    close(null);
    if (round < 0)
        return;
    b->us[round] = now_us() - t0;
    b->cpu_us[round] = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 + used.ru_utime.tv_usec + used.ru_stime.tv_usec;
}

static void bundles_beside(int rounds, char **words, int count)
{
    struct beside *all = calloc((size_t)count, sizeof *all);
    for (int i = 0; i < count; i++) {
        char *is = strchr(words[i], '=');
        if (!is)
            exit(fprintf(stderr, "NAME=BUNDLE, not %s\n", words[i]) > 0);
        *is = 0;
        all[i] = (struct beside){ words[i], is + 1, calloc((size_t)rounds, sizeof(int64_t)), calloc((size_t)rounds, sizeof(int64_t)) };
    }
    for (int round = -3; round < rounds; round++)
        for (int i = 0; i < count; i++)
            run_beside(&all[i], round);
    for (int i = 0; i < count; i++) {
        qsort(all[i].us, (size_t)rounds, sizeof(int64_t), by_size);
        qsort(all[i].cpu_us, (size_t)rounds, sizeof(int64_t), by_size);
        double ms = (double)all[i].us[rounds / 2] / 1000, cpu = (double)all[i].cpu_us[rounds / 2] / 1000, first = (double)all[0].us[rounds / 2] / 1000,
               first_cpu = (double)all[0].cpu_us[rounds / 2] / 1000;
        printf("%-44s median %6.2f ms, CPU %6.2f ms   less than the first %5.2f, %5.2f   the first is %.2f, %.2f times as much\n", all[i].name, ms, cpu,
               first - ms, first_cpu - cpu, first / ms, first_cpu / cpu);
    }
}

int main(int argc, char **argv)
{
    if (argc < 9)
        return fprintf(stderr, "see the head of start.c\n"), 1;
    snprintf(address, sizeof address, "%s", argv[1]);
    key = argv[2], bundle = argv[4], runtime = argv[5], runtime_root = argv[6];
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/ns/mnt", argv[7]);
    mounts = open(path, O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/%s/ns/pid", argv[7]);
    int pids = open(path, O_RDONLY | O_CLOEXEC), job = open(argv[3], O_RDONLY);
    if (pids == -1 || setns(pids, CLONE_NEWPID) == -1)      /* its /proc is in those mounts; it holds for our children */
        die("setns");
    if (mounts == -1 || job == -1 || read(job, body, sizeof body - 1) <= 0)
        die("open");
    if (argc > 10 && !strcmp(argv[9], "beside"))
        return bundles_beside(atoi(argv[8]), argv + 10, argc - 10), 0;
    if (argc > 9 && (atoi(argv[9]) < 1 || atoi(argv[9]) > 64))
        return fprintf(stderr, "PARALLEL is 1 to 64\n"), 1;
    connection = dial();
    if (argc == 9)
        starts(atoi(argv[8]));
    if (argc > 10) {
        bool bare = !strcmp(argv[10], "bare");
        double n = atoi(argv[8]), c0 = cpu_ms(), rate = bare ? bare_rate((int)n, atoi(argv[9])) : our_rate((int)n, !strcmp(argv[10], "batch"));
        struct rusage used;
        getrusage(RUSAGE_CHILDREN, &used);
        printf("%s: %.0f a second, %.2f ms of the machine's CPU for each\n", argv[10], rate, (cpu_ms() - c0) / n);
        if (bare)
            printf("   CPU of a bare call: %.2f ms\n", ((double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3) / n);
        return 0;
    }
    for (int i = 0; argc > 9 && i < 3; i++) {
        double n = atoi(argv[8]), c0 = cpu_ms(), bare = bare_rate((int)n, atoi(argv[9])), c1 = cpu_ms(), ours = our_rate((int)n, false), c2 = cpu_ms(),
               batch = our_rate((int)n, true), c3 = cpu_ms();
        printf("no-op jobs to their end: %.0f a second   bare runtime, %s at a time: %.0f a second   ratio %.2f   (CPU of the machine for each: %.1f and %.1f ms)\n",
               ours, argv[9], bare, ours / bare, (c2 - c1) / n, (c1 - c0) / n);
        printf("   submitted in one request: %.0f a second   ratio %.2f   (%.1f ms)\n", batch, batch / bare, (c3 - c2) / n);
    }
    return 0;
}
