/* mps_mode.c - `arcus device-mode FILE UUID exclusive_process|restore [NVML]`: the one place where something of a device is set. A process of its own,
 * since a driver may hang, and started only where the operator gave the devices to the agent (`--own-devices`).
 *
 * What the mode was before is in FILE before anything is changed, and FILE is gone when it is so again: whoever is killed in between has lost
 * nothing. A card that was exclusive before is its operator's business, and stays so. */
#include "agent/mps.h"
#include "agent/nvml.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static bool keep(const char *file, const char *uuid, int mode, struct err *err)
{
    char fresh[1100], text[128];
    if (access(file, F_OK) == 0)
        return true; /* what it was before us is older than what it is now */
    snprintf(fresh, sizeof fresh, "%.1080s.new", file);
    int n = snprintf(text, sizeof text, "%d %.95s\n", mode, uuid);
    int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool ok = (fd != -1 && write(fd, text, (size_t)n) == n && rename(fresh, file) == 0) || err_errno(err, "cannot keep %s", file);
    if (fd != -1)
        close(fd);
    return ok;
}

static bool kept(const char *file, char uuid[static 96], int *mode, struct err *err)
{
    char text[128] = "";
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), was;
    ssize_t n = fd == -1 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0)
        err_errno(err, "cannot read %s", file);
    if (fd != -1)
        close(fd);
    if (n <= 0)
        return false;
    if (sscanf(text, "%d %95s", &was, uuid) != 2 || was < NVML_MODE_DEFAULT || was > NVML_MODE_EXCLUSIVE_PROCESS)
        return err_set(err, RC_INTERNAL, "%s does not say what the mode was", file);
    return *mode = was, true;
}

static bool find(struct nvml *n, const char *uuid, struct nvml_device **card, struct err *err)
{
    int rc = NVML_CALL(n, handle_of_uuid, uuid, card);
    return rc == NVML_OK || err_set(err, RC_UNAVAILABLE, "%s: %s (NVML %d)", uuid, nvml_words(rc), rc);
}

static bool set(struct nvml *n, struct nvml_device *card, int mode, struct err *err)
{
    int rc = NVML_CALL(n, set_compute_mode, card, mode), now = -1;
    if (rc == NVML_OK)
        rc = NVML_CALL(n, compute_mode, card, &now);
    if (rc != NVML_OK)
        return err_set(err, RC_UNAVAILABLE, "%s (NVML %d)", nvml_words(rc), rc);
    return now == mode || err_set(err, RC_UNAVAILABLE, "the driver took mode %d and has %d", mode, now);
}

static bool own(struct nvml *n, const char *file, const char *uuid, struct err *err)
{
    struct nvml_device *card;
    int was = NVML_MODE_DEFAULT;
    if (!find(n, uuid, &card, err))
        return false;
    int rc = NVML_CALL(n, compute_mode, card, &was);
    if (rc != NVML_OK)
        return err_set(err, RC_UNAVAILABLE, "%s (NVML %d)", nvml_words(rc), rc);
    return was == NVML_MODE_EXCLUSIVE_PROCESS || (keep(file, uuid, was, err) && set(n, card, NVML_MODE_EXCLUSIVE_PROCESS, err));
}

/* Whose it was the file knows: who finds a folder of an agent before him may not. */
static bool give_back(struct nvml *n, const char *file, struct err *err)
{
    struct nvml_device *card;
    char uuid[96];
    int was;
    if (access(file, F_OK) == -1)
        return true;
    return kept(file, uuid, &was, err) && find(n, uuid, &card, err) && set(n, card, was, err)
           && (unlink(file) == 0 || err_errno(err, "cannot remove %s", file));
}

static bool do_it(int argc, char **argv, struct err *err)
{
    struct nvml n;
    if (!nvml_load(argc > 4 ? argv[4] : NULL, &n, err))
        return false;
    int rc = n.init();
    if (rc != NVML_OK)
        return err_set(err, RC_UNAVAILABLE, "%s (NVML %d)", nvml_words(rc), rc);
    return text_is(argv[3], "restore") ? give_back(&n, argv[1], err) : own(&n, argv[1], argv[2], err);
}

int mps_mode_main(int argc, char **argv)
{
    struct err err = { 0 };
    if (argc < 4 || argc > 5 || *argv[1] != '/' || (!text_is(argv[3], "restore") && !text_is(argv[3], "exclusive_process"))) {
        fprintf(stderr, "arcus device-mode: it is started by the agent\n");
        return 2;
    }
    bool ok = do_it(argc, argv, &err);
    if (!ok)
        fprintf(stderr, "%s\n", err.text);
    fflush(stderr);
    _exit(!ok);                 /* a driver that hangs could not be closed */
}
