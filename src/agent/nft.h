/* nft.h - packet filters, in the words of nft(8), through libnftables, which is loaded when it is needed: it brings more libraries
 * than a command line should wait for, and a node without it is a node without networks.
 *
 * Like a socket it belongs to the network namespace of the thread that opened it. All that is run at once happens at once or not at all. */
#pragma once
#include "base/err.h"

struct nft;
MUST_CHECK bool nft_open(struct nft **out, struct err *err);
MUST_CHECK bool nft_run(struct nft *n, const char *commands, struct err *err);
void nft_close(struct nft *n);          /* NULL is fine; filters stay */
