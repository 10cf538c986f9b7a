/* nft.c - see nft.h. The few functions are declared here as libnftables(3) does; its header is not needed to build. */
#include "agent/nft.h"
#include "base/fault.h"
#include <arpa/inet.h>
#include <dlfcn.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct nft_ctx;
struct nft {
    struct nft_ctx *ctx;
    void (*ctx_free)(struct nft_ctx *ctx);
    const char *(*errors)(struct nft_ctx *ctx);
    int (*run)(struct nft_ctx *ctx, const char *text);
    int socket;
};

enum { WAIT_S = 10, IFNAME = 16, KEY_BYTES = IFNAME + 8 + 4, MESSAGE_BYTES = 512 };

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
    struct timeval patience = { .tv_sec = WAIT_S };
    n.socket = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
    if (n.socket != -1)
        setsockopt(n.socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
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

/* --- one element, by hand */

struct message { char bytes[MESSAGE_BYTES]; size_t len; };

static struct nlmsghdr *begin(struct message *m, int type, int flags, int family, int about)
{
    struct nlmsghdr *h = (struct nlmsghdr *)(m->bytes + m->len);
    struct nfgenmsg *g = (struct nfgenmsg *)(h + 1);
    *h = (struct nlmsghdr){ .nlmsg_len = NLMSG_LENGTH(sizeof *g), .nlmsg_type = (uint16_t)type, .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags), .nlmsg_seq = 1 };
    *g = (struct nfgenmsg){ .nfgen_family = (uint8_t)family, .res_id = htons((uint16_t)about) };
    m->len += NLMSG_SPACE(sizeof *g);
    return h;
}

static struct nlattr *put(struct message *m, int type, const void *at, size_t n)
{
    struct nlattr *a = (struct nlattr *)(m->bytes + m->len);
    if (m->len + NLA_HDRLEN + NLA_ALIGN(n) > sizeof m->bytes)
        __builtin_trap();
    *a = (struct nlattr){ .nla_len = (uint16_t)(NLA_HDRLEN + n), .nla_type = (uint16_t)type };
    if (n)
        memcpy(a + 1, at, n);
    m->len += NLA_HDRLEN + NLA_ALIGN(n);
    return a;
}
static void end(const struct message *m, struct nlattr *nest)
{
    nest->nla_len = (uint16_t)(m->bytes + m->len - (char *)nest);
}

/* Each part of a key begins at a multiple of four bytes. */
static void put_key(struct message *m, const struct nft_member *e)
{
    unsigned char key[KEY_BYTES] = { 0 };
    uint32_t address = htonl(e->address);
    memcpy(key, e->link, strnlen(e->link, IFNAME - 1));
    memcpy(key + IFNAME, e->mac, 6);
    memcpy(key + IFNAME + 8, &address, 4);
    struct nlattr *list = put(m, NFTA_SET_ELEM_LIST_ELEMENTS | NLA_F_NESTED, NULL, 0), *one = put(m, NFTA_LIST_ELEM | NLA_F_NESTED, NULL, 0),
                  *data = put(m, NFTA_SET_ELEM_KEY | NLA_F_NESTED, NULL, 0);
    put(m, NFTA_DATA_VALUE, key, sizeof key);
    end(m, data);
    end(m, one);
    end(m, list);
}

static bool answered(int socket)
{
    union {
        struct nlmsghdr head;
        char bytes[4096];
    } in;
    for (;;) {
        ssize_t n = recv(socket, in.bytes, sizeof in.bytes, 0);
        if (n == -1 && errno == EINTR)
            continue;
        if (n < (ssize_t)sizeof in.head)
            return false;
        if (in.head.nlmsg_type != NLMSG_ERROR)
            continue;
        errno = -((struct nlmsgerr *)NLMSG_DATA(&in.head))->error;
        return errno == 0;
    }
}

bool nft_member(struct nft *n, const struct nft_member *e, bool in)
{
    struct message m = { .len = 0 };
    int type = NFNL_SUBSYS_NFTABLES << 8 | (in ? NFT_MSG_NEWSETELEM : NFT_MSG_DELSETELEM);
    begin(&m, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
    struct nlmsghdr *h = begin(&m, type, NLM_F_ACK | (in ? NLM_F_CREATE : 0), NFPROTO_BRIDGE, 0);
    put(&m, NFTA_SET_ELEM_LIST_TABLE, e->table, strlen(e->table) + 1);
    put(&m, NFTA_SET_ELEM_LIST_SET, e->set, strlen(e->set) + 1);
    put_key(&m, e);
    h->nlmsg_len = (uint32_t)(m.bytes + m.len - (char *)h);
    begin(&m, NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
    if (broken("nft.member") || send(n->socket, m.bytes, m.len, 0) == -1)
        return false;
    return answered(n->socket) || errno == (in ? EEXIST : ENOENT);
}

void nft_close(struct nft *n)
{
    if (!n)
        return;
    if (n->socket != -1)
        close(n->socket);
    n->ctx_free(n->ctx);
    free(n);
}
