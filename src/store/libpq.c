/* libpq.c - loads PostgreSQL's client library once, with every function of ours or not at all. */
#include "store/libpq.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

struct libpq libpq;

static struct { pthread_once_t once; bool ok; char why[160]; } loaded = { .once = PTHREAD_ONCE_INIT };

static void load(void)
{
    static const struct { const char *name; size_t at; } all[] = {
#define X(name) { #name, offsetof(struct libpq, name) },
        LIBPQ(X)
#undef X
    };
    void *lib = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    loaded.ok = lib != NULL;
    for (size_t i = 0; loaded.ok && i < COUNT(all); i++) {
        void *fn = dlsym(lib, all[i].name);
        memcpy((char *)&libpq + all[i].at, &fn, sizeof fn);
        loaded.ok = fn != NULL;
    }
    if (!loaded.ok)
        snprintf(loaded.why, sizeof loaded.why, "%s", dlerror());
}

bool libpq_load(struct err *err)
{
    pthread_once(&loaded.once, load);
    return loaded.ok
        || err_set(err, RC_UNAVAILABLE,
                   "a store on PostgreSQL needs its client library, version 14 or later (Debian: "
                   "apt-get install libpq5): %s", loaded.why);
}
