/* goods.h - what this node has of images and work folders, as the server places tasks by it (model/goods.h). */
#pragma once
#include "base/field.h"
#include "os/os.h"

struct goods;
struct goods *goods_new(struct os *os, const char *data);       /* looks at once, and now and then */
void goods_free(struct goods *g);                               /* NULL is fine */
struct texts goods_told(const struct goods *g);                 /* as of the last look, "KEY:MIB" each; stays until the loop is back. NULL: none */
/* Blocks: the same, of a data folder. */
struct texts goods_look(struct os *os, const char *data, struct arena *mem);
void image_weigh(struct os *os, const char *folder);            /* blocks; an image tells its bytes from now on, without another walk over it */
