/* scratch_pool.h - empty scratch filesystems, kept ready: attaching, mounting and unmounting one is most of what a start and an
 * end would wait for, and all of a node's tasks wait for each other there.
 *
 * Each is held by a mount that is in no namespace, so nothing of it is seen on the host, and the kernel does away with it when the
 * agent is gone and no task uses it. A supervisor mounts the same device. */
#pragma once
#include "agent/scratch_file.h"
#include "os/os.h"

struct scratch_pool;
struct scratch;
struct scratch_pool *scratch_pool_new(struct os *os);
void scratch_pool_free(struct scratch_pool *p);         /* after the last one has come back or is lost; NULL is fine */
/* An empty one of this template, or NULL: then the supervisor makes its own, and the pool makes more. */
struct scratch *scratch_take(struct scratch_pool *p, const char *template);
const char *scratch_device(const struct scratch *s);
void scratch_give(struct scratch_pool *p, struct scratch *s);   /* is emptied, and is there for the next; nothing uses it any more */
void scratch_lose(struct scratch_pool *p, struct scratch *s);   /* may still be in use: the kernel knows when it is not. NULL is fine */
