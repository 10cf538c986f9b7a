/* tls_memory.c - OpenSSL's memory in slabs: a connection of an agent that stays is some seventy pieces of it, 14 KB in all, mixed with
 * the handshake's, which go.
 *
 * The one global of the program beside the log: OpenSSL hands no argument to these. Any thread may call them, so they take a lock. */
#include "base/slab.h"
#include "os/real.h"
#include <openssl/crypto.h>
#include <stdlib.h>

static struct { pthread_mutex_t lock; struct slabs *slabs; } held = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *take(size_t n, const char *file, int line)
{
    (void)file, (void)line;
    if (n == 0)
        return NULL;
    if (n > SLAB_PIECE)
        return malloc(n);
    pthread_mutex_lock(&held.lock);
    void *p = slabs_take(held.slabs, n);
    pthread_mutex_unlock(&held.lock);
    return p;
}

static void give(void *p, const char *file, int line)
{
    (void)file, (void)line;
    if (!p)
        return;
    pthread_mutex_lock(&held.lock);
    bool mine = slabs_room(held.slabs, p) > 0;
    if (mine)
        slabs_give(held.slabs, p);
    pthread_mutex_unlock(&held.lock);
    if (!mine)
        free(p);
}

static void *take_more(void *p, size_t n, const char *file, int line)
{
    if (!p)
        return take(n, file, line);
    if (n == 0) {
        give(p, file, line);
        return NULL;
    }
    pthread_mutex_lock(&held.lock);
    size_t room = slabs_room(held.slabs, p);
    pthread_mutex_unlock(&held.lock);
    if (room == 0)
        return realloc(p, n);
    if (n <= room && n > room / 2)
        return p;
    void *to = take(n, file, line);
    if (to) {
        memcpy(to, p, MIN(n, room));
        give(p, file, line);
    }
    return to;
}

size_t tls_idle_memory(void)
{
    pthread_mutex_lock(&held.lock);
    size_t idle = held.slabs ? slabs_idle(held.slabs) : 0;
    pthread_mutex_unlock(&held.lock);
    return idle;
}

bool tls_hold_memory(void)
{
    if (!held.slabs)
        held.slabs = slabs_new();
    return CRYPTO_set_mem_functions(take, take_more, give) == 1;
}
