/* self.h - this node's identity while it works: the key it comes with, and how it is replaced.
 *
 * The next key is in the file before the server hears of it, and the old one leaves the file only after the server has answered to the
 * new one. Whatever dies in between, one of the two is good, and both are tried: the next one first. */
#pragma once
#include "agent/heads.h"
#include "agent/identity.h"

struct self;
/* The key is set in heads, which is borrowed. on_switch: there is another key in heads; dial anew. */
struct self *self_new(struct os *os, struct heads *heads, const char *data, const struct identity *me, void (*on_switch)(void *arg), void *arg);
void self_free(struct self *s);                         /* NULL is fine */
void self_rotate(struct self *s);                       /* the server wants a new key; asked again and again until it has one */
void self_greeted(struct self *s);                      /* the server has answered to the key that is set */
void self_refused(struct self *s);                      /* it does not take that key: the other one is set, if there are two */
void self_servers(struct self *s, struct texts urls);   /* what the cloud tells about its head nodes: into heads, and kept */
