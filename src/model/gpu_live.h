/* gpu_live.h - what a GPU does at this moment, as its agent tells it in reports. Only memory holds it: it is never committed.
 *
 * A number of -1 is one that the device or its driver does not tell. */
#pragma once
#include "base/field.h"

enum { LIVE_PIDS = 640 };
struct live_task {              /* what of the GPU's memory one task's processes hold */
    int64_t attempt;            /* 0: processes that are none of the cloud's */
    int64_t mem_mib, processes;
    int64_t outside;            /* of these, that are no clients of MPS; told by the device helper alone, where shares are watched */
    const char *pids;           /* the first of them, numbers with blanks; as outside */
};
struct gpu_live {
    const char *uuid;
    int64_t util, mem_util;                     /* per cent of the last moments: of compute, of the memory's bandwidth */
    int64_t mem_used_mib, mem_free_mib;
    int64_t power_mw, energy_mj;                /* energy: since the driver was loaded */
    int64_t temp_c, mem_temp_c;
    int64_t sm_mhz, mem_mhz;
    int64_t encoder, decoder;                   /* per cent */
    int64_t ecc_corrected, ecc_uncorrected;     /* since the driver was loaded */
    int64_t rows_corrected, rows_uncorrected, row_failure;  /* of memory that were remapped for such errors; failure 1: one could not be */
    int64_t replays;                            /* of PCIe */
    int64_t xid;                                /* the last error that the driver told; 0: none */
    const char *throttle;                       /* why its clocks are low, words with commas; "": they are not */
    struct objects tasks;                       /* of struct live_task */
};
extern const struct fields gpu_live_fields, live_task_fields;
struct gpu_live gpu_live_unknown(const char *uuid);     /* every figure -1 */
/* How often figures go up: where nobody looks; where somebody does, at most. */
enum { LIVE_IDLE_MS = 15000, LIVE_LOOK_MS = 1000 };
