/* xid.c - the XIDs after which NVIDIA's documentation asks for a reset, a reboot or a repair. What a program can cause by itself (13, 31, 43, 45,
 * 68, 94, 109) is not here: a tenant must not be able to take a GPU out of the pool. After those that are marked a test tells whether the GPU can be used
 * again; what it cannot see (links between GPUs, rows that are lost, power, keys) stays. */
#include "agent/xid.h"

static const struct { int64_t xid; const char *words; bool tested; } bad[] = {
    { 46, "the GPU stopped processing (XID 46)", true },
    { 48, "uncorrectable memory error (XID 48)", true },
    { 54, "auxiliary power is not connected (XID 54)" },
    { 62, "its internal controller halted (XID 62)", true },
    { 64, "a row of its memory could not be remapped (XID 64)" },
    { 74, "NVLink error (XID 74)" },
    { 79, "it has fallen off the bus (XID 79)", true },
    { 95, "uncontained memory error: every program on it was hit (XID 95)", true },
    { 110, "security fault (XID 110)" },
    { 119, "its firmware does not answer (XID 119)", true },
    { 120, "its firmware failed (XID 120)", true },
    { 136, "link training failed (XID 136)" },
    { 140, "unrecovered memory error (XID 140)", true },
    { 143, "it could not be initialised (XID 143)", true },
    { 151, "its keys could not be rotated (XID 151)" },
    { 155, "NVLink failed: software-defined error (XID 155)" },
    { 158, "fatal timeout of the GPU (XID 158)", true },
};

bool xid_of_program(int64_t xid)
{
    static const int64_t all[] = { 13, 31, 43, 45, 94, 109 };
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i] == xid)
            return true;
    return false;
}

const char *xid_bad(int64_t xid)
{
    for (size_t i = 0; i < COUNT(bad); i++)
        if (bad[i].xid == xid)
            return bad[i].words;
    return NULL;
}

bool xid_tested(int64_t xid)
{
    for (size_t i = 0; i < COUNT(bad); i++)
        if (bad[i].xid == xid)
            return bad[i].tested;
    return false;
}
