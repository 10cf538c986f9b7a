/* ipv4.h - addresses of tasks: which range a project has, how an address is written, and where a project's tasks may go.
 *
 * Every project that ever ran something has a number, and with it a range of its own out of one that the public network does not use.
 * The first address of a range is the way out (the node itself), the others are leased to attempts. A task's hardware address follows
 * from its address, so that nobody has to be asked for it. */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "base/field.h"
#include "base/str.h"

/* 100.64.0.0/10, in ranges of 4096. */
enum { NET_POOL_BITS = 10, NET_HOST_BITS = 12, NET_HOSTS = 1 << NET_HOST_BITS, NET_NUMBERS = 1 << (32 - NET_POOL_BITS - NET_HOST_BITS) };
enum { MAX_MBIT = 1000 * 1000 };
enum { NET_GATEWAY = 1, NET_FIRST = 2, NET_LAST = NET_HOSTS - 2 };
static const uint32_t NET_POOL = UINT32_C(100) << 24 | UINT32_C(64) << 16;

enum network { NETWORK_PROJECT, NETWORK_NONE, NETWORK_HOST, NETWORK_COUNT };     /* what a job asks for */
extern const struct names network_names;

enum { IPV4_TEXT = 16, CIDR_TEXT = 20, MAC_BYTES = 6, EGRESS_MOST = 32, EGRESS_TEXT = EGRESS_MOST * CIDR_TEXT };
uint32_t net_address(int64_t number, int64_t host);
bool net_has(int64_t number, uint32_t address);
bool ipv4_parse(const char *text, uint32_t *out);                   /* "10.1.2.3" and nothing else */
const char *ipv4_text(uint32_t address, char out[static IPV4_TEXT]);
void ipv4_mac(uint32_t address, unsigned char out[static MAC_BYTES]);

const char *net_range(struct arena *mem, int64_t number);            /* "100.64.16.0/20"; "" of none */

struct cidr { uint32_t address; int bits; };
bool cidr_parse(const char *text, size_t n, struct cidr *out);      /* "10.1.0.0/16", "10.1.2.3"; the rest of the address must be zero */
/* "all", "none", or networks with commas. *out is how it is kept: the same for the same. */
MUST_CHECK bool egress_parse(const char *text, struct arena *mem, const char **out, struct err *err);
