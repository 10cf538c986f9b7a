/* goods.c - which images and work folders a node has and a job needs, for the planner (model/goods.h). Only memory knows it: a node tells it
 * with every hello, and a wrong word of it costs a download. */
#include "control/call.h"
#include "model/hello.h"
#include <stdlib.h>

void node_goods_set(struct node *n, const struct good *list, size_t count)
{
    free(n->goods);
    n->goods = NULL;
    n->good_count = 0;
    if (!count)
        return;
    if (!(n->goods = calloc(count, sizeof *n->goods)))
        abort();
    memcpy(n->goods, list, count * sizeof *list);
    n->good_count = count;
}

void goods_tell(struct call *c, const struct node *n)
{
    struct sched_event *e = emit_news(c, SCHED_NODE_HAS);
    e->node = n->id;
    e->good_count = n->good_count;
    e->goods = ARENA_ARRAY(c->batch->mem, struct good, n->good_count + 1);
    if (n->good_count)
        memcpy(e->goods, n->goods, n->good_count * sizeof *e->goods);
}

/* What cannot be read is of a version to come: left out. */
void goods_take(struct call *c, struct node *n, const struct texts *has)
{
    struct good list[GOODS_MOST];
    size_t count = 0;
    for (size_t i = 0; i < has->count && count < GOODS_MOST; i++)
        count += good_parse(has->at[i], &list[count]);
    if (count == n->good_count && (!count || memcmp(list, n->goods, count * sizeof *list) == 0))
        return;
    node_goods_set(n, list, count);
    goods_tell(c, n);
}

void goods_of_job(struct state *s, const struct job *j, struct sched_event *e)
{
    const struct image *image = text_given(j->spec.image) ? state_image(s, j->project->id, j->spec.image) : NULL;
    if (image)
        e->needs[0] = good_of_digest(image->digest);
    else if (text_given(j->spec.image) && !text_is(j->spec.image, "host"))
        e->needs[0] = good_of_reference(j->spec.image);
    if (text_given(j->spec.workdir))
        e->needs[1] = good_of_digest(j->spec.workdir);
    e->spread = j->count > 1 ? (enum spread)j->spec.spread : SPREAD_NONE;
}
