/* mig_make.c - `arcus device-mig UUID PROFILE SLOT KEEP [NVML]`: the MIG instance of that profile at that slot is there when it ends, and its UUID and numbers are
 * printed ("MIG-... 5/0"). A process of its own, since a driver may hang, and started only where the operator gave the devices to the agent (`--own-devices`).
 *
 * What is in the way and held by nobody is destroyed first; KEEP ("1g.18gb@0,3g.71gb@4" or "-") is held and never touched, and the driver
 * refuses to destroy what a process uses. The MIG mode itself is never changed: that needs a reset, and is the operator's. */
#include "agent/mig_make.h"
#include "agent/nvml.h"
#include "base/str.h"
#include "model/mig.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { IDS_MOST = 16, PARTS_MOST = 8, PLACES_MOST = 16 };
enum { PROFILE_1G_MEDIA = 7, PROFILE_2G_MEDIA = 8 };    /* NVML's numbers of the two with media extensions */

struct wish { const char *uuid, *profile, *keep; unsigned slot; const struct mig_profile *is; };
struct card { struct nvml n; struct nvml_device *handle; };

static bool said(int rc, const char *what, struct err *err)
{
    return rc == NVML_OK || err_set(err, RC_UNAVAILABLE, "%s: %s (NVML %d)", what, nvml_words(rc), rc);
}

/* "NVIDIA H200 MIG 3g.71gb" at slot 4: is it in "1g.18gb@0,3g.71gb@4"? */
static bool is_kept(const char *keep, const char *profile, unsigned start)
{
    char one[64];
    size_t n = (size_t)snprintf(one, sizeof one, "%s@%u", profile, start);
    for (const char *p = keep; *p; p += strcspn(p, ","), p += *p == ',')
        if (strcspn(p, ",") == n && strncmp(p, one, n) == 0)
            return true;
    return false;
}

static const char *profile_in(const char *name)
{
    const char *at = strstr(name, "MIG ");
    return at ? at + 4 : NULL;
}

/* The instance that begins there, as a device of its own; NULL: there is none, or it has no part that computes. */
static struct nvml_device *device_at(struct card *c, unsigned start, char name[static NVML_NAME], unsigned *id, unsigned *part)
{
    unsigned most = 0;
    if (NVML_CALL(&c->n, mig_count, c->handle, &most) != NVML_OK)
        return NULL;
    for (unsigned i = 0; i < MIN(most, (unsigned)PARTS_MOST); i++) {
        struct nvml_device *mig;
        struct nvml_gpu_instance *gi;
        struct nvml_gi_info info;
        if (NVML_CALL(&c->n, mig_handle, c->handle, i, &mig) == NVML_OK && NVML_CALL(&c->n, gi_id, mig, id) == NVML_OK
            && NVML_CALL(&c->n, ci_id, mig, part) == NVML_OK && NVML_CALL(&c->n, gi_by_id, c->handle, *id, &gi) == NVML_OK
            && NVML_CALL(&c->n, gi_info, gi, &info) == NVML_OK && info.placement.start == start && c->n.name(mig, name, NVML_NAME) == NVML_OK)
            return mig;
    }
    return NULL;
}

static bool tell_if_there(struct card *c, const struct wish *w, bool *there)
{
    char name[NVML_NAME] = "", uuid[NVML_UUID] = "";
    unsigned id, part;
    struct nvml_device *mig = device_at(c, w->slot, name, &id, &part);
    *there = mig && text_is(profile_in(name), w->profile) && c->n.uuid(mig, uuid, sizeof uuid) == NVML_OK;
    return *there && printf("%s %u/%u\n", uuid, id, part) > 0;
}

static bool destroy(struct card *c, struct nvml_gpu_instance *gi, struct err *err)
{
    for (unsigned i = 0; i < PARTS_MOST; i++) {
        struct nvml_compute_instance *ci;
        if (NVML_CALL(&c->n, ci_by_id, gi, i, &ci) == NVML_OK && !said(NVML_CALL(&c->n, ci_destroy, ci), "an instance that is in the way cannot be destroyed", err))
            return false;
    }
    return said(NVML_CALL(&c->n, gi_destroy, gi), "an instance that is in the way cannot be destroyed", err);
}

/* The first whose slots we need; also one that was left half made: it has slots, and is no device. */
static struct nvml_gpu_instance *in_the_way(struct card *c, const struct wish *w, unsigned *start)
{
    for (unsigned i = 0; i < IDS_MOST; i++) {
        struct nvml_gpu_instance *gi;
        struct nvml_gi_info info;
        if (NVML_CALL(&c->n, gi_by_id, c->handle, i, &gi) == NVML_OK && NVML_CALL(&c->n, gi_info, gi, &info) == NVML_OK
            && info.placement.start < w->slot + w->is->size && info.placement.start + info.placement.size > w->slot)
            return *start = info.placement.start, gi;
    }
    return NULL;
}

static bool make_room(struct card *c, const struct wish *w, struct err *err)
{
    struct nvml_gpu_instance *gi;
    unsigned start, id, part;
    for (int i = 0; i < MIG_SLOTS && (gi = in_the_way(c, w, &start)); i++) {
        char name[NVML_NAME] = "";
        struct nvml_device *mig = device_at(c, start, name, &id, &part);
        if (mig && profile_in(name) && is_kept(w->keep, profile_in(name), start))
            return err_set(err, RC_CONFLICT, "the instance %s@%u is in the way, and held", profile_in(name), start);
        if (!destroy(c, gi, err))
            return false;
    }
    return true;
}

static bool may_begin(struct card *c, unsigned profile, const struct wish *w)
{
    struct nvml_placement places[PLACES_MOST];
    unsigned n = PLACES_MOST;
    if (NVML_CALL(&c->n, gi_places, c->handle, profile, places, &n) != NVML_OK)
        return false;
    for (unsigned i = 0; i < MIN(n, (unsigned)PLACES_MOST); i++)
        if (places[i].start == w->slot && places[i].size == w->is->size)
            return true;
    return false;
}

/* The driver's number of the profile: as many slices, as many slots, and media extensions or none. */
static bool profile_number(struct card *c, const struct wish *w, unsigned *out, struct err *err)
{
    for (unsigned i = 0; i < NVML_GI_PROFILES; i++) {
        struct nvml_gi_profile p;
        bool media = i == PROFILE_1G_MEDIA || i == PROFILE_2G_MEDIA;
        if (media == w->is->media && NVML_CALL(&c->n, gi_profile, c->handle, i, &p) == NVML_OK && p.slices == w->is->slices && may_begin(c, p.id, w))
            return *out = p.id, true;
    }
    return err_set(err, RC_UNAVAILABLE, "the driver has no profile %s that begins at slot %u", w->profile, w->slot);
}

/* One part that computes with all of it: by its slices NVML numbers those 1, 2, 3, 4 and 7 as 0 to 4. */
static bool make_part(struct card *c, const struct wish *w, struct nvml_gpu_instance *gi, struct err *err)
{
    struct nvml_ci_profile p;
    struct nvml_compute_instance *ci;
    unsigned number = w->is->slices == 7 ? 4 : w->is->slices - 1u;
    return said(NVML_CALL(&c->n, ci_profile, gi, number, 0, &p), "its part that computes is not known", err)
           && said(NVML_CALL(&c->n, ci_create, gi, p.id, &ci), "its part that computes cannot be made", err);
}

static bool make(struct card *c, const struct wish *w, struct err *err)
{
    struct nvml_placement at = { w->slot, w->is->size };
    struct nvml_gpu_instance *gi;
    unsigned profile;
    if (!profile_number(c, w, &profile, err) || !make_room(c, w, err)
        || !said(NVML_CALL(&c->n, gi_create, c->handle, profile, &at, &gi), "the instance cannot be made", err))
        return false;
    if (make_part(c, w, gi, err))
        return true;
    (void)NVML_CALL(&c->n, gi_destroy, gi);
    return false;
}

static bool do_it(struct wish *w, const char *nvml, struct err *err)
{
    struct card c = { 0 };
    char name[NVML_NAME] = "";
    struct nvml_memory memory;
    unsigned now = 0, pending = 0;
    bool there;
    if (!nvml_load(nvml, &c.n, err) || !said(c.n.init(), "NVML", err) || !said(NVML_CALL(&c.n, handle_of_uuid, w->uuid, &c.handle), w->uuid, err)
        || !said(NVML_CALL(&c.n, mig_mode, c.handle, &now, &pending), "its MIG mode", err) || !said(c.n.name(c.handle, name, sizeof name), "its name", err)
        || !said(NVML_CALL(&c.n, memory, c.handle, &memory), "its memory", err))
        return false;
    if (!now)
        return err_set(err, RC_UNAVAILABLE, "it is not in MIG mode");
    const struct mig_part *part = mig_part_of(name, (int64_t)(memory.total >> 20));
    int p = mig_find(part, w->profile);
    if (p < 0 || !(part->profiles[p].starts >> w->slot & 1))
        return err_set(err, RC_BAD_INPUT, "%s has no %s at slot %u", name, w->profile, w->slot);
    w->is = &part->profiles[p];
    if (tell_if_there(&c, w, &there))
        return true;
    return make(&c, w, err) && (tell_if_there(&c, w, &there) || err_set(err, RC_UNAVAILABLE, "the driver made an instance and does not list it"));
}

int mig_make_main(int argc, char **argv)
{
    struct err err = { 0 };
    char *end = NULL;
    unsigned long slot = argc > 3 ? strtoul(argv[3], &end, 10) : 0;
    if (argc < 5 || argc > 6 || !end || *end || end == argv[3] || slot >= MIG_SLOTS) {
        fprintf(stderr, "arcus device-mig: it is started by the agent\n");
        return 2;
    }
    struct wish w = { argv[1], argv[2], argv[4], (unsigned)slot, NULL };
    bool ok = do_it(&w, argc > 5 ? argv[5] : NULL, &err);
    if (!ok)
        printf("%s\n", err.text);
    fflush(stdout);
    _exit(!ok);                 /* a driver that hangs could not be closed */
}
