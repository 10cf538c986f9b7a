/* spool.h - what the node has to tell, kept in a file until the server has it.
 *
 * The law: an item is written before it may be sent, so a kill -9 loses none, and each start and each end of an attempt is told once. It is
 * sent without a wait for the disk, since a server that answers at once has it safer than any disk here; what is not confirmed soon the
 * owner has synced (spool_sync). So a power cut may lose an item of the last moment, whether the server has it or not: then what is found on
 * the node is told, maybe a second time, and a server takes what it has settled for late. No number is ever given to two items: before the
 * server has told in this life what it has, an item gets none that a lost one could have had.
 * The file is a list of checksummed lines; a torn last one is cut off. What was told of an attempt is remembered until spool_forget, so
 * that a folder found again is not told again. */
#pragma once
#include "model/order.h"
#include "os/os.h"

struct spool;
struct spool_told { int64_t attempt; int64_t started_n, ended_n; };     /* numbers of the items; 0: not told */

MUST_CHECK bool spool_open(struct os *os, const char *path, struct spool **out, struct err *err);
void spool_free(struct spool *s);
AUTO_FN(struct spool *, spool_free)
size_t spool_damaged(const struct spool *s);        /* lines inside the file that could not be read when it was opened */

/* The item gets the next number, or until the first spool_align one for the time being. True and nothing added: it was told before, or its
 * end was. On false nothing is sent, and the same item may be added again later. */
MUST_CHECK bool spool_add(struct spool *s, const struct report_item *item, struct err *err);
/* Items behind `after`, at most `limit`, of struct report_item; borrowed until the spool changes. They count as sent. */
struct objects spool_items(struct spool *s, int64_t after, size_t limit);
MUST_CHECK bool spool_kept(struct spool *s, int64_t n, struct err *err);   /* the server holds everything up to n */
bool spool_unsynced(const struct spool *s);         /* a power cut could take what the server does not hold */
MUST_CHECK bool spool_sync(struct spool *s, struct err *err);              /* no more; on false ask again later */
/* The same as spool_kept in the answer to a hello, when nothing is under way; nothing is sent before the first. Where the numbers do not
 * meet (a spool or a line of it was lost here, or the server came back from a backup) what waits is numbered anew, from n + 1. */
MUST_CHECK bool spool_align(struct spool *s, int64_t n, struct err *err);
int64_t spool_last_kept(const struct spool *s);
int64_t spool_next(const struct spool *s);          /* behind all that may have been sent; 1: nothing ever was, as far as is known */
size_t spool_waiting(const struct spool *s);

const struct spool_told *spool_told(const struct spool *s, int64_t attempt);    /* NULL: nothing */
const struct spool_told *spool_each(const struct spool *s, size_t *at);         /* as map_next */
void spool_forget(struct spool *s, int64_t attempt);                            /* settled and its folder is gone */
