/* mesh.h - which address of a project's network is behind which other node, as the server tells it: the neighbours of our tunnels, and the
 * nodes whose frames are taken at all.
 *
 * Nothing is learnt: what the server has not named is not reached and not heard. The kernel's tables are the record, so an agent that takes
 * over knows what the one before it was told, and what it is told next is compared with that. Belongs to the fabric's thread. */
#pragma once
#include "agent/fabric.h"
#include "base/field.h"
#include "base/str.h"

struct mesh_at { uint32_t address, node; };         /* node 0: nobody has it any more */
struct mesh_part { int64_t net; bool whole; struct mesh_at *at; size_t count; };
struct mesh_news { bool full; struct mesh_part *parts; size_t count; };
struct mesh_news *mesh_read(bool full, struct objects nets);        /* of struct net_part; what makes no sense in it is left out */
void mesh_news_free(struct mesh_news *news);                        /* NULL is fine */

void mesh_found(struct fabric *f);                  /* what the agent before us was told */
void mesh_heard(const struct fabric *f, struct str *text);  /* the elements of the filter, for nft(8) */
MUST_CHECK bool mesh_take(struct fabric *f, const struct mesh_news *news, struct err *err);
MUST_CHECK bool mesh_again(struct fabric *f, struct err *err);      /* what is owed */
void mesh_here(struct fabric *f, uint32_t address); /* a task of ours has it now */
void mesh_done(struct fabric *f);
