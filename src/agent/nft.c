/* nft.c - see nft.h. The few functions are declared here as libnftables(3) does; its header is not needed to build. */
#include "agent/nft.h"
#include "base/fault.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct nft_ctx;
struct nft {
    struct nft_ctx *ctx;
    void (*ctx_free)(struct nft_ctx *ctx);
    const char *(*errors)(struct nft_ctx *ctx);
    int (*run)(struct nft_ctx *ctx, const char *text);
};

static bool load(void *lib, const char *name, void *to)
{
    void *at = dlsym(lib, name);
    memcpy(to, &at, sizeof at);
    return at != NULL;
}

bool nft_open(struct nft **out, struct err *err)
{
    struct nft_ctx *(*new)(uint32_t flags);
    int (*buffer)(struct nft_ctx *ctx), (*buffer_output)(struct nft_ctx *ctx);
    struct nft n = { 0 };
    void *lib = broken("nft.open") ? NULL : dlopen("libnftables.so.1", RTLD_NOW | RTLD_LOCAL); /* stays, as libraries do */
    if (!lib || !load(lib, "nft_ctx_new", &new) || !load(lib, "nft_ctx_free", &n.ctx_free) || !load(lib, "nft_ctx_buffer_error", &buffer)
        || !load(lib, "nft_ctx_buffer_output", &buffer_output) || !load(lib, "nft_ctx_get_error_buffer", &n.errors)
        || !load(lib, "nft_run_cmd_from_buffer", &n.run))
        return err_set(err, RC_UNAVAILABLE, "libnftables is not installed");
    n.ctx = new(0);
    if (!n.ctx)
        return err_set(err, RC_UNAVAILABLE, "libnftables does not start");
    buffer(n.ctx);
    buffer_output(n.ctx);
    *out = malloc(sizeof n);
    if (!*out)
        abort();
    **out = n;
    return true;
}

bool nft_run(struct nft *n, const char *commands, struct err *err)
{
    if (!broken("nft.run") && n->run(n->ctx, commands) == 0)
        return true;
    const char *why = n->errors(n->ctx); /* "internal:0:0-0: Error: Could not process rule: No such file or directory" and more lines */
    const char *at = why ? strstr(why, "Error: ") : NULL;
    why = at ? at + strlen("Error: ") : why ? why : "";
    return err_set(err, RC_UNAVAILABLE, "nftables: %.*s", (int)MIN(strcspn(why, "\n"), (size_t)160), why);
}

void nft_close(struct nft *n)
{
    if (!n)
        return;
    n->ctx_free(n->ctx);
    free(n);
}
