#include "agent/mps.h"
#include "devices_kit.h"
#include <fcntl.h>
#include <sys/wait.h>

#define UUID "GPU-fa4e0000-0000-0000-0000-000000000000"

/* A process of its own, as the agent has it. */
static int mode(struct kit *k, const char *uuid, const char *what)
{
    char file[96];
    int status;
    snprintf(file, sizeof file, "%s/mode", k->top);
    pid_t pid = fork();
    if (pid == 0) {
        char *argv[] = { "device-mode", file, (char *)uuid, (char *)what, k->lib, NULL };
        close(STDERR_FILENO);
        open("/dev/null", O_WRONLY);
        _exit(mps_mode_main(5, argv));
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static bool reads(struct kit *k, const char *name, const char *wanted)
{
    char path[128], text[512] = "";
    snprintf(path, sizeof path, "%s/%s", k->top, name);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    return strcmp(text, wanted) == 0;
}

TEST(a_shared_card_is_exclusive_and_then_as_it_was)
{
    AUTO(kit_done) struct kit k;
    if (!kit_open(&k))
        return;
    kit_driver(&k, "gpus 1\ngpu 0 mode 2\n");
    CHECK(mode(&k, UUID, "exclusive_process") == 0 && reads(&k, "mode", "2 " UUID "\n") && reads(&k, "nvml.conf.log", "set_compute_mode " UUID " 3\n"));
    CHECK(mode(&k, UUID, "exclusive_process") == 0 && reads(&k, "mode", "2 " UUID "\n"));      /* what it was is not forgotten */
    CHECK(mode(&k, "unknown", "restore") == 0 && reads(&k, "mode", "") && reads(&k, "nvml.conf.log", "set_compute_mode " UUID " 3\nset_compute_mode " UUID " 2\n"));
    CHECK(mode(&k, UUID, "restore") == 0 && reads(&k, "nvml.conf.log", "set_compute_mode " UUID " 3\nset_compute_mode " UUID " 2\n"));
}

TEST(what_a_card_was_before_us_is_kept_although_somebody_changed_it_meanwhile)
{
    AUTO(kit_done) struct kit k;
    char file[96];
    if (!kit_open(&k))
        return;
    kit_driver(&k, "gpus 1\ngpu 0 mode 0\n");
    snprintf(file, sizeof file, "%s/mode", k.top);
    FILE *f = fopen(file, "we");
    CHECK(f && fputs("2 " UUID "\n", f) >= 0 && fclose(f) == 0);
    CHECK(mode(&k, UUID, "exclusive_process") == 0 && reads(&k, "mode", "2 " UUID "\n"));
}

TEST(a_card_that_its_operator_made_exclusive_stays_so)
{
    AUTO(kit_done) struct kit k;
    if (!kit_open(&k))
        return;
    kit_driver(&k, "gpus 1\ngpu 0 mode 3\n");
    CHECK(mode(&k, UUID, "exclusive_process") == 0 && mode(&k, UUID, "restore") == 0 && reads(&k, "nvml.conf.log", ""));
}

TEST(a_driver_that_refuses_is_told)
{
    AUTO(kit_done) struct kit k;
    if (!kit_open(&k))
        return;
    kit_driver(&k, "gpus 1\ngpu 0 set_rc 4\n");
    CHECK(mode(&k, UUID, "exclusive_process") == 1 && mode(&k, "GPU-other", "exclusive_process") == 1 && mode(&k, UUID, "prohibited") == 2);
}
