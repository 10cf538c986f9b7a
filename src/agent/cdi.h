/* cdi.h - Container Device Interface specs: what a device needs in a container, as its vendor's tool wrote it down.
 *
 * Pure. A field that this program does not know is refused by its name: what it would have asked for is not known either, and half a
 * device is worse than none. Hooks are programs that would run as root with the tenant's tree before them: none is ever run.
 * Of the well-known ones the effect is had by other means (inject.c); any other makes its device unusable. */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "base/field.h"
#include "base/str.h"

enum { CDI_BYTES = 1 << 20, CDI_DEVICES = 256, CDI_NODES = 64, CDI_MOUNTS = 512, CDI_WORDS = 64, CDI_ARGS = 256, CDI_PATH = 1024 };

struct cdi_node { const char *path, *host, *type, *permissions; int64_t major, minor, mode, uid, gid; };   /* host NULL: at the same path */
struct cdi_mount { const char *host, *path, *type; struct texts options; };
struct cdi_hook { const char *name, *path; struct texts args, env; int64_t timeout; };
struct cdi_edits {
    struct texts env;
    struct objects nodes, mounts, hooks;    /* of cdi_node, cdi_mount, cdi_hook */
    const char *rdt, *groups;               /* JSON as it came, or NULL */
};
struct cdi_device { const char *name; struct pairs annotations; struct cdi_edits edits; };
struct cdi_spec {
    const char *file;
    const char *version, *kind;             /* "0.5.0", "nvidia.com/gpu" */
    struct pairs annotations;
    struct objects devices;                 /* of cdi_device */
    struct cdi_edits edits;                 /* for each of them */
};
extern const struct fields cdi_spec_fields;

/* `file` is in every sentence; a name that ends in .json is JSON, else it is YAML. */
MUST_CHECK bool cdi_parse(const char *file, struct slice text, struct arena *mem, struct cdi_spec *out, struct err *err);
const char *cdi_kind(const char *file, struct slice text, struct arena *mem);     /* of a spec that may be none of ours and not be understood otherwise; NULL: it says none */
const struct cdi_device *cdi_find(const struct cdi_spec *s, const char *name);
/* Absolute, no empty, "." or ".." part, nothing unprintable, shorter than CDI_PATH. */
bool path_is_plain(const char *path);

/* What a hook would have done. False: that is not known, and *err says so. */
struct cdi_effect {
    struct pairs links;         /* key: the link, value: what it says */
    struct texts folders;       /* of libraries, for the loader */
};
MUST_CHECK bool cdi_hook_effect(const struct cdi_hook *h, struct arena *mem, struct cdi_effect *out, struct err *err);
