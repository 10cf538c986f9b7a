/* fake_control.h - a door of straw for the tests of api/: the same check of roles from verbs[],
 * answers by script.
 *
 * A bearer is its own hash: "dev", "view", "admin", "op" and "other" are people, "node1" and
 * "node2" are nodes. */
#pragma once
#include "control/control.h"

enum { HELD = 16 };
struct control {
    struct os *os;
    /* True: answered (r->ok, r->reply and r->err are set). False or NULL: the straw answers by itself. */
    bool (*script)(void *arg, struct control *c, struct request *r);
    void *arg;
    bool hold;                          /* keep what comes until fake_release */
    struct request *held[HELD];
    size_t held_count;
    void (*on_commit)(void *arg, const struct commit *k);
    void *follower;
    int64_t last_event;
    int asked[VERB_COUNT];
    bool ready;
    const char *writer;                 /* the URL of another server that writes; "" nobody does; NULL: this one */
    void (*on_turn)(void *arg);
    void *turn_arg;
    int usurped, usurped_idle;
    bool lost;                          /* writes are answered with RC_NOT_WRITER */
    const char *disabled;               /* this bearer is no longer good */
};
struct control *fake_control_new(struct os *os);
void fake_control_free(struct control *c);
void fake_release(struct control *c);
void fake_commit(struct control *c, const struct commit *k);    /* followers hear it at once */
void fake_turn(struct control *c, const char *writer);          /* somebody else writes from now on */
int64_t fake_node(int n);                                       /* the ids of node1 and node2 */
int64_t fake_project(void);
