/* mig.c - the tables of MIG profiles, from NVIDIA's MIG user guide (`nvidia-smi mig -lgipp` prints the same), and choosing a slot. See mig.h.
 *
 * Names follow from the memory of the part, so one name may be of one slot on one part and of two on another. */
#include "model/mig.h"
#include "base/str.h"
#include "model/job.h"
#include <ctype.h>
#include <stdlib.h>

/* Seven slices of compute over eight slots of memory: the last slot goes only with profiles that take several. */
#define SEVEN(models_, from, to, one, two, four, all)                                                                        \
    { models_, from, to, 7, 8,                                                                                               \
      { { "1g." one "gb", 1, 1, 0x7f, false }, { "1g." one "gb+me", 1, 1, 0x7f, true }, { "1g." two "gb", 1, 2, 0x55, false }, \
        { "2g." two "gb", 2, 2, 0x15, false }, { "3g." four "gb", 3, 4, 0x11, false }, { "4g." four "gb", 4, 4, 0x01, false },  \
        { "7g." all "gb", 7, 8, 0x01, false } } }

static const struct mig_part parts[] = {
    SEVEN("A100|A800", 0, 60000, "5", "10", "20", "40"),
    SEVEN("A100|A800|H100|H800", 60000, 90000, "10", "20", "40", "80"),
    SEVEN("H100", 90000, 97000, "12", "24", "47", "94"),
    SEVEN("H100|H20|GH200", 90000, 120000, "12", "24", "48", "96"),
    SEVEN("H200", 120000, INT64_MAX, "18", "35", "71", "141"),
    SEVEN("GH200", 120000, INT64_MAX, "18", "36", "72", "144"),
    SEVEN("B200", 0, INT64_MAX, "23", "45", "90", "180"),
    SEVEN("GB200", 0, INT64_MAX, "23", "47", "93", "186"),
    { "A30", 0, INT64_MAX, 4, 4,
      { { "1g.6gb", 1, 1, 0x0f, false }, { "1g.6gb+me", 1, 1, 0x0f, true }, { "2g.12gb", 2, 2, 0x05, false },
        { "2g.12gb+me", 2, 2, 0x05, true }, { "4g.24gb", 4, 4, 0x01, false } } },
};

const struct mig_part *mig_part_of(const char *model, int64_t mem_mib)
{
    for (size_t i = 0; i < COUNT(parts); i++) {
        struct gpu_ask is = { 0 };
        if (mem_mib >= parts[i].mem_from_mib && mem_mib < parts[i].mem_to_mib
            && text_copy(is.model, sizeof is.model, parts[i].models) && gpu_ask_fits(&is, model, mem_mib))
            return &parts[i];
    }
    return NULL;
}

int mig_find(const struct mig_part *part, const char *profile)
{
    for (int i = 0; part && i < MIG_PROFILES; i++)
        if (part->profiles[i].name && text_is(part->profiles[i].name, profile))
            return i;
    return -1;
}

int mig_milli(const char *profile)
{
    for (size_t i = 0; i < COUNT(parts); i++) {
        int at = mig_find(&parts[i], profile);
        if (at >= 0)
            return 1000 * parts[i].profiles[at].slices / parts[i].slices;
    }
    return 0;
}

int64_t mig_mib(const struct mig_part *part, int profile, int64_t mem_mib)
{
    return mem_mib * part->profiles[profile].size / part->slots;
}

uint16_t mig_slots(int start, int size, bool media)
{
    return (uint16_t)((((1U << size) - 1) << start & (MIG_MEDIA - 1)) | (media ? MIG_MEDIA : 0));
}

static uint16_t slots_at(const struct mig_profile *p, int start)
{
    return mig_slots(start, p->size, p->media);
}

/* One "1g.18gb@0" of a list. */
static bool take_instance(const char *text, size_t n, const struct mig_part *part, struct mig_layout *out, uint16_t *taken)
{
    char name[MIG_TEXT], *at;
    if (n >= sizeof name)
        return false;
    memcpy(name, text, n);
    name[n] = 0;
    if (!(at = strchr(name, '@')) || at[1] < '0' || at[1] >= '0' + MIG_SLOTS || at[2])
        return false;
    *at = 0;
    int profile = mig_find(part, name), start = at[1] - '0';
    if (profile < 0 || !(part->profiles[profile].starts >> start & 1) || (*taken & slots_at(&part->profiles[profile], start)))
        return false;
    *taken |= slots_at(&part->profiles[profile], start);
    out->starts[profile] |= (uint8_t)(1U << start);
    return true;
}

bool mig_layout_parse(const char *text, const char *model, int64_t mem_mib, bool dynamic, struct mig_layout *out, struct err *err)
{
    const struct mig_part *part = mig_part_of(model, mem_mib);
    struct mig_layout layout = { .on = text_given(text) };
    uint16_t taken = 0;
    if (!layout.on)
        return *out = layout, true;
    if (!part)
        return err_field(err, "mig", "mig: '%.48s' is not known to have MIG", model);
    for (const char *at = text; *at && !text_is(text, "on");) {
        size_t n = strcspn(at, ",");
        if (!take_instance(at, n, part, &layout, &taken))
            return err_field(err, "mig", "mig: '%.60s' is not what a %.48s can be cut into; write on, or PROFILE@SLOT,...", text, model);
        at += n + (at[n] != 0);
    }
    for (int i = 0; dynamic && i < MIG_PROFILES; i++)
        layout.starts[i] = part->profiles[i].starts;
    return *out = layout, true;
}

int mig_room(const struct mig_part *part, uint16_t taken)
{
    int room = 0;
    for (int i = 0; i < MIG_PROFILES; i++) {
        const struct mig_profile *p = &part->profiles[i];
        for (int s = 0; s < MIG_SLOTS; s++)
            if ((p->starts >> s & 1) && !(taken & slots_at(p, s)))
                room += p->size;
    }
    return room;
}

int mig_start(const struct mig_part *part, int profile, uint8_t starts, uint16_t taken)
{
    int best = -1, most = -1;
    for (int s = MIG_SLOTS - 1; s >= 0; s--) { /* of equals the last: the first ones are where the largest begin */
        uint16_t slots = slots_at(&part->profiles[profile], s);
        if (!(starts >> s & 1) || (taken & slots))
            continue;
        int room = mig_room(part, taken | slots);
        if (room > most) {
            most = room;
            best = s;
        }
    }
    return best;
}
