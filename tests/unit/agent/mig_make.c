#include "agent/mig_make.h"
#include "devices_kit.h"
#include <fcntl.h>
#include <sys/wait.h>

#define UUID "GPU-fa4e0000-0000-0000-0000-000000000000"

/* A process of its own, as the agent has it; what it prints is in `said`. */
static char said[512];
static int make(struct kit *k, const char *profile, const char *slot, const char *keep)
{
    char file[96];
    int status;
    snprintf(file, sizeof file, "%s/said", k->top);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        char *argv[] = { "device-mig", UUID, (char *)profile, (char *)slot, (char *)keep, k->lib, NULL };
        int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
        _exit(mig_make_main(6, argv));
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    FILE *f = fopen(file, "re");
    size_t n = f ? fread(said, 1, sizeof said - 1, f) : 0;
    if (f)
        fclose(f);
    said[n] = 0;
    return WEXITSTATUS(status);
}

/* How often a line with these words was logged: what was made and destroyed. */
static bool logged(struct kit *k, const char *wanted)
{
    char path[128], text[1024] = "";
    snprintf(path, sizeof path, "%s/nvml.conf.log", k->top);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    return strcmp(text, wanted) == 0;
}

TEST(an_instance_is_made_once_and_found_again)
{
    AUTO(kit_done) struct kit k;
    if (!kit_open(&k))
        return;
    kit_driver(&k, "gpus 1\ngpu 0 mig 1\n");
    CHECK(make(&k, "3g.71gb", "4", "-") == 0 && strcmp(said, "MIG-made-0-4 1/0\n") == 0 && logged(&k, "gi_create " UUID " 4\n"));
    CHECK(make(&k, "3g.71gb", "4", "-") == 0 && strcmp(said, "MIG-made-0-4 1/0\n") == 0 && logged(&k, "gi_create " UUID " 4\n"));
    CHECK(make(&k, "1g.18gb", "0", "3g.71gb@4") == 0 && strcmp(said, "MIG-made-0-0 2/0\n") == 0);
    CHECK(make(&k, "1g.35gb", "2", "-") == 0 && strcmp(said, "MIG-made-0-2 3/0\n") == 0);
}

TEST(what_is_in_the_way_is_destroyed_unless_it_is_held_or_used)
{
    AUTO(kit_done) struct kit k;
    if (!kit_open(&k))
        return;
    kit_driver(&k, "gpus 1\ngpu 0 mig 1\ngpu 0 instance 1g.18gb 0 MIG-a\ngpu 0 instance 1g.18gb 1 -\ngpu 0 instance 3g.71gb 4 MIG-c\n");
    CHECK(make(&k, "2g.35gb", "0", "3g.71gb@4,1g.18gb@0") == 1 && strstr(said, "1g.18gb@0 is in the way, and held") && logged(&k, ""));
    CHECK(make(&k, "2g.35gb", "0", "3g.71gb@4") == 0 && strstr(said, "MIG-made-0-0"));
    CHECK(logged(&k, "ci_destroy " UUID " 0\ngi_destroy " UUID " 0\ngi_destroy " UUID " 1\ngi_create " UUID " 0\n"));    /* also what was half made; not the third */
    kit_driver(&k, "gpus 1\ngpu 0 mig 1\ngpu 0 instance 3g.71gb 4 MIG-c\ngpu 0 busy 4\n");
    CHECK(make(&k, "7g.141gb", "0", "-") == 1 && strstr(said, "cannot be destroyed"));
}

TEST(what_cannot_be_made_leaves_nothing_half_made_and_is_told)
{
    AUTO(kit_done) struct kit k;
    if (!kit_open(&k))
        return;
    kit_driver(&k, "gpus 1\n");
    CHECK(make(&k, "3g.71gb", "4", "-") == 1 && strstr(said, "not in MIG mode"));
    kit_driver(&k, "gpus 1\ngpu 0 mig 1\ngpu 0 make_rc 4\n");
    CHECK(make(&k, "3g.71gb", "4", "-") == 1 && strstr(said, "cannot be made: the driver does not permit it"));
    CHECK(logged(&k, "gi_create " UUID " 4\ngi_destroy " UUID " 4\n"));
    CHECK(make(&k, "3g.71gb", "2", "-") == 1 && make(&k, "3g.40gb", "4", "-") == 1 && make(&k, "3g.71gb", "9", "-") == 2 && make(&k, "3g.71gb", "x", "-") == 2);
}
