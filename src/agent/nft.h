/* nft.h - packet filters, in the words of nft(8), through libnftables, which is loaded when it is needed: it brings more libraries
 * than a command line should wait for, and a node without it is a node without networks.
 *
 * Like a socket it belongs to the network namespace of the thread that opened it. All that is run at once happens at once or not at all. */
#pragma once
#include "base/err.h"

struct nft;
MUST_CHECK bool nft_open(struct nft **out, struct err *err);
MUST_CHECK bool nft_run(struct nft *n, const char *commands, struct err *err);
/* One element more or less of a set of bridge filters whose key is a link, a hardware address and an address, by a message of our own: every start
 * and every end of a task needs one, and libnftables takes a millisecond and more for it. False leaves errno; one that is there, or is not, is no failure. */
struct nft_member { const char *table, *set, *link; const unsigned char *mac; uint32_t address; };
MUST_CHECK bool nft_member(struct nft *n, const struct nft_member *m, bool in);
void nft_close(struct nft *n);          /* NULL is fine; filters stay */
