#include "world.h"
#include <stdio.h>
#include <stdlib.h>

#define DIGEST       "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
#define GHOST_DIGEST "sha256:fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9"

const struct person_of people[WHO_COUNT] = {
    [VERA] = { "viewer", ROLE_VIEWER | ROLE_PERSON, true },
    [DEV] = { "developer", ROLE_DEVELOPER | ROLE_PERSON, true },
    [ADA] = { "admin", ROLE_ADMIN | ROLE_PERSON, true },
    [OP] = { "operator", ROLE_OPERATOR | ROLE_PERSON, true },
    [AUD] = { "auditor", ROLE_AUDITOR | ROLE_PERSON, true },
    [STRANGER] = { "admin of another project", ROLE_ADMIN | ROLE_PERSON, true },
    [NODE_ONE] = { "node", ROLE_NODE, true },
    [NOBODY] = { "nobody", ROLE_PERSON, true },
    [REMOVED] = { "removed member", ROLE_PERSON, true },
    [NO_KEY] = { "no key" },
    [BAD_KEY] = { "bad key" },
    [EXPIRED] = { "expired key" },
    [DISABLED_KEY] = { "disabled key" },
    [DISABLED_USER] = { "key of a disabled user" },
    [DISABLED_ACCOUNT] = { "key of a disabled account" },
    [REMOVED_NODE] = { "key of a removed node" },
};

#define SSH_KEY "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH"
#define JOB  "{\"job\":\"{job}\"}"
#define PAGE "{\"limit\":10}"
/* clang-format off */
const struct wish wishes[] = {
    { VERB_LOGIN, "{\"user\":\"vera\",\"password\":\"not hers\"}" },
    { VERB_WHOAMI, "{}" },
    { VERB_PASSWORD, "{\"password\":\"old word\",\"new_password\":\"new word\"}", .expect = "password" },
    { VERB_ORG_CREATE, "{\"name\":\"physics\"}" },
    { VERB_ORG_LIST, PAGE },
    { VERB_PROJECT_CREATE, "{\"name\":\"gamma\",\"org\":\"default\"}" },
    { VERB_PROJECT_LIST, PAGE },
    { VERB_PROJECT_GET, "{\"project\":\"{project}\"}", true },
    { VERB_PROJECT_UPDATE, "{\"project\":\"{project}\",\"gpus\":8}", true },
    { VERB_QUOTA_LIST, PAGE },
    { VERB_QUOTA_SET, "{\"project\":\"{project}\",\"user\":\"{user}\",\"model\":\"H200\",\"gpus\":8,\"gpu_hours_day\":100}", true },
    { VERB_MEMBER_LIST, PAGE },
    { VERB_MEMBER_SET, "{\"user\":\"{user}\",\"roles\":\"viewer\"}" },
    { VERB_MEMBER_REMOVE, "{\"user\":\"{leaver}\"}", true },
    { VERB_USER_CREATE, "{\"name\":\"newcomer\"}" },
    { VERB_USER_LIST, PAGE },
    { VERB_USER_UPDATE, "{\"user\":\"{user}\",\"disabled\":true}", true },
    { VERB_ACCOUNT_CREATE, "{\"name\":\"newbot\"}" },
    { VERB_ACCOUNT_LIST, PAGE },
    { VERB_ACCOUNT_DISABLE, "{\"account\":\"{account}\"}", true },
    { VERB_KEY_CREATE, "{\"name\":\"mine\"}", .expect = "roles" },
    { VERB_KEY_CREATE, "{\"account\":\"{ci}\"}", true, "account" },
    { VERB_KEY_LIST, PAGE },
    { VERB_KEY_DISABLE, "{\"key\":\"{key}\"}", true, "" },
    { VERB_SSH_KEY_ADD, "{\"key\":\"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINAFP4FVHFSQR5i8x2p0NXH8yArPvV+ue+K7UlRDjM3p desk\",\"name\":\"desk\"}" },
    { VERB_SSH_KEY_LIST, PAGE },
    { VERB_SSH_KEY_REMOVE, "{\"ssh_key\":\"{sshkey}\"}", true },
    { VERB_SECRET_SET, "{\"name\":\"TOKEN\",\"value\":\"another\"}" },
    { VERB_SECRET_LIST, PAGE },
    { VERB_SECRET_REMOVE, "{\"name\":\"{oldsecret}\"}", true },
    { VERB_VOLUME_CREATE, "{\"name\":\"fresh\"}" },
    { VERB_VOLUME_LIST, PAGE },
    { VERB_VOLUME_REMOVE, "{\"volume\":\"{spare}\"}", true },
    { VERB_VOLUME_FILES, "{\"volume\":\"{volume}\",\"path\":\"/x\"}", true },
    { VERB_IMAGE_ADD, "{\"name\":\"other:1\",\"digest\":\"{digest}\"}", true },
    { VERB_IMAGE_LIST, PAGE },
    { VERB_IMAGE_REMOVE, "{\"image\":\"{oldimage}\"}", true },
    { VERB_BLOB_PUT, "{\"digest\":\"{digest}\"}" },
    { VERB_BLOB_HEAD, "{\"digest\":\"{digest}\"}", true },
    { VERB_BLOB_GET, "{\"digest\":\"{digest}\"}", true },
    { VERB_BLOB_ADD, NULL },
    { VERB_JOB_SUBMIT, "{\"command\":[\"true\"]}" },
    { VERB_JOB_SUBMIT, "{\"command\":[\"true\"],\"secrets\":[\"{secret}\"]}", true },
    { VERB_JOB_SUBMIT, "{\"command\":[\"true\"],\"volumes\":[\"{volumename}:/v\"]}", true },
    { VERB_JOB_SUBMIT, "{\"command\":[\"true\"],\"after\":[{\"job\":\"{job}\"}]}", true },
    { VERB_JOB_SUBMIT, "{\"command\":[\"true\"],\"workdir\":\"{digest}\"}", true },
    { VERB_JOB_SUBMIT, "{\"command\":[\"true\"],\"image\":\"{imagename}\"}", true },
    { VERB_JOB_BATCH, "{\"jobs\":[{\"command\":[\"true\"]},{\"command\":[\"true\"]}]}" },
    { VERB_JOB_BATCH, "{\"jobs\":[{\"command\":[\"true\"],\"secrets\":[\"{secret}\"]}]}", true },
    { VERB_JOB_LIST, "{\"all\":true}" },
    { VERB_JOB_GET, JOB, true },
    { VERB_JOB_UPDATE, "{\"job\":\"{waits}\",\"priority\":7}", true },
    { VERB_JOB_CANCEL, "{\"job\":\"{cancel}\"}", true },
    { VERB_JOB_SUSPEND, JOB, true },
    { VERB_JOB_RESUME, JOB, true, .expect = "" },
    { VERB_JOB_STOP, "{\"job\":\"{box}\"}", true },
    { VERB_JOB_START, "{\"job\":\"{halted}\"}", true },
    { VERB_JOB_TASKS, JOB, true },
    { VERB_JOB_ATTEMPTS, JOB, true },
    { VERB_JOB_LOGS, JOB, true },
    { VERB_JOB_EXEC, "{\"job\":\"{job}\",\"argv\":[\"sh\"]}", true },
    { VERB_JOB_DIAL, "{\"job\":\"{job}\",\"port\":80}", true },
    { VERB_JOB_SSH, "{\"job\":\"{job}\",\"keys\":[\"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINAFP4FVHFSQR5i8x2p0NXH8yArPvV+ue+K7UlRDjM3p ada\"]}", true },
    { VERB_JOB_FILES, "{\"job\":\"{job}\",\"path\":\"/x\"}", true },
    { VERB_JOB_PLACE, NULL },
    { VERB_JOB_TICK, NULL },
    { VERB_RESERVE_CREATE, "{\"project\":\"{project}\",\"gpus\":\"H200:1\",\"duration\":\"1h\"}" },
    { VERB_RESERVE_LIST, "{}" },
    { VERB_RESERVE_GET, "{\"reservation\":\"{reservation}\"}", true },
    { VERB_RESERVE_REMOVE, "{\"reservation\":\"{reservation}\"}", true },
    { VERB_NODE_TOKEN, "{}" },
    { VERB_NODE_REKEY, "{\"key\":\"nk_0123456789012345678901234567890123456789abc\"}" },
    { VERB_NODE_ROTATE, "{\"node\":\"{node}\"}" },
    { VERB_NODE_JOIN, "{\"token\":\"jt_nonesuch\",\"name\":\"n9\"}" },
    { VERB_JOB_QUEUE, JOB, true },
    { VERB_JOB_WHY, "{\"job\":\"{waits}\"}", true },
    { VERB_JOB_PLAN, "{\"command\":[\"true\"]}" },
    { VERB_JOB_PLAN, "{\"command\":[\"true\"],\"secrets\":[\"{secret}\"]}", true },
    { VERB_JOB_PLAN, "{\"command\":[\"true\"],\"volumes\":[\"{volumename}:/v\"]}", true },
    { VERB_JOB_PLAN, "{\"command\":[\"true\"],\"after\":[{\"job\":\"{job}\"}]}", true },
    { VERB_JOB_PLAN, "{\"command\":[\"true\"],\"workdir\":\"{digest}\"}", true },
    { VERB_JOB_PLAN, "{\"command\":[\"true\"],\"image\":\"{imagename}\"}", true },
    { VERB_NODE_LIST, PAGE },
    { VERB_NODE_GET, "{\"node\":\"{node}\"}" },
    { VERB_NODE_UPDATE, "{\"node\":\"{node}\",\"state\":\"cordoned\"}" },
    { VERB_NODE_DRAIN, "{\"node\":\"{node}\",\"deadline\":\"10m\"}" },
    { VERB_NODE_LOST, "{\"node\":\"{oldnode}\"}", .expect = "" },
    { VERB_FLEET_GET, "{}" },
    { VERB_RULES_GET, "{}" },
    { VERB_RULES_SET, "{\"brake\":20,\"preempt\":\"high:low,spot\",\"lift\":\"10m\"}" },
    { VERB_NODE_REMOVE, "{\"node\":\"{oldnode}\"}" },
    { VERB_NODE_LINK, "{}" },
    { VERB_NODE_STREAM, "{\"stream\":\"word\"}" },
    { VERB_NODE_HELLO, NULL },
    { VERB_NODE_REPORT, "{\"kind\":\"report\",\"items\":[]}" },
    { VERB_GPU_LIST, PAGE },
    { VERB_GPU_LIVE, "{\"limit\":10}" },
    { VERB_METRICS, "{}" },
    { VERB_FLAVOR_LIST, PAGE },
    { VERB_EVENT_LIST, "{\"limit\":1000}" },
    { VERB_SERVER_LIST, PAGE },
    { VERB_USAGE_SUM, "{\"by\":\"project,user,flavor,day\"}" },
    { VERB_TRACE_LIST, "{\"limit\":10}" },
    { VERB_BACKUP, "{}" },
    { VERB_DATA_DROP, NULL },
    { VERB_AUDIT_NOTE, NULL },
    { VERB_AUDIT_LIST, "{\"limit\":1000}" },
    { VERB_AUDIT_VERIFY, "{}" },
};
/* clang-format on */
const size_t wish_count = COUNT(wishes);

/* --- making it */
static void add(struct world *w, const char *token, const char *prefix, const char *id,
                const char *name, bool of_project)
{
    CHECK(w->thing_count < THINGS_MOST && text_given(id));
    struct thing *t = &w->things[w->thing_count++];
    *t = (struct thing){ .token = token,
                         .id = id,
                         .name = name,
                         .of_project = of_project,
                         .ghost_name = "ghost",
                         .ghost_id = prefix ? FMT(w->d, "%s-0000000000zzz", prefix) : "ghost" };
}
static void add_name(struct world *w, const char *token, const char *name, const char *ghost)
{
    struct thing *t = &w->things[w->thing_count++];
    *t = (struct thing){
        .token = token, .id = name, .name = name, .ghost_id = ghost, .ghost_name = ghost
    };
}

static const char *make(struct world *w, enum verb_id verb, const char *body)
{
    struct answer a = door_ask(w->d, w->d->admin, verb, body);
    CHECK(a.ok);
    if (!a.ok)
        printf("# %s %s: %s\n", verbs[verb].name, a.err.field, a.err.text);
    return text_given(get(&a, "key")) ? get(&a, "key") : get(&a, "id");
}

static void make_people(struct world *w)
{
    static const struct {
        const char *name, *roles, *platform;
    } users[] = {
        { "vera", "viewer", "" },   { "dev", "developer", "" }, { "ada", "admin", "" },
        { "op", NULL, "operator" }, { "aud", NULL, "auditor" }, { "sam", NULL, "" },
        { "nob", NULL, "" },        { "rem", "developer", "" }, { "dis", "developer", "" },
        { "leaver", "viewer", "" }, { "ursula", "viewer", "" },
    };
    struct door *d = w->d;
    for (size_t i = 0; i < COUNT(users); i++) {
        make(w, VERB_USER_CREATE,
             FMT(d, "{\"name\":\"%s\",\"roles\":\"%s\"}", users[i].name, users[i].platform));
        if (users[i].roles)
            make(w, VERB_MEMBER_SET,
                 FMT(d, "{\"user\":\"%s\",\"roles\":\"%s\"}", users[i].name, users[i].roles));
    }
    make(w, VERB_PROJECT_CREATE, "{\"name\":\"beta\"}");
    CHECK(door_ask_full(d, d->admin, "beta", VERB_MEMBER_SET,
                        "{\"user\":\"sam\",\"roles\":\"admin\"}", NULL, 0)
              .ok);
    static const struct {
        enum who who;
        const char *name;
    } granted[] = {
        { VERA, "vera" },  { DEV, "dev" },     { ADA, "ada" },
        { OP, "op" },      { AUD, "aud" },     { STRANGER, "sam" },
        { NOBODY, "nob" }, { REMOVED, "rem" }, { DISABLED_USER, "dis" },
    };
    for (size_t i = 0; i < COUNT(granted); i++)
        w->keys[granted[i].who] = door_grant(d, PRINCIPAL_USER, granted[i].name, NULL, 0, 0);
    w->keys[EXPIRED] = door_grant(d, PRINCIPAL_USER, "ada", NULL, 0, os_wall_ms(d->os) - 1);
    w->keys[DISABLED_KEY] = door_grant(d, PRINCIPAL_USER, "ada", NULL, 0, 0);
    w->keys[BAD_KEY] = "ak_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG";
    struct answer list = door_ask(d, w->keys[DISABLED_KEY], VERB_WHOAMI, NULL);
    make(w, VERB_KEY_DISABLE, FMT(d, "{\"key\":\"%s\"}", get(&list, "key")));
    make(w, VERB_USER_UPDATE, "{\"user\":\"dis\",\"disabled\":true}");
    make(w, VERB_MEMBER_REMOVE, "{\"user\":\"rem\"}");
    struct answer extra
        = door_ask(d, door_grant(d, PRINCIPAL_USER, "ada", NULL, 0, 0), VERB_WHOAMI, NULL);
    add(w, "key", PREFIX_KEY, get(&extra, "key"), get(&extra, "key"), true);
    struct answer ssh = door_ask(d, w->keys[VERA], VERB_SSH_KEY_ADD, "{\"name\":\"laptopkey\",\"key\":\"" SSH_KEY "\"}");
    add(w, "sshkey", PREFIX_SSH_KEY, get(&ssh, "id"), "laptopkey", true);
    add(w, "user", PREFIX_USER,
        FMT(d, "%s",
            id_text(arena_take(d->mem, ID_TEXT, 1), PREFIX_USER,
                    state_person(memory_of(d), "ursula")->id)),
        "ursula", false);
    add(w, "leaver", PREFIX_USER,
        FMT(d, "%s",
            id_text(arena_take(d->mem, ID_TEXT, 1), PREFIX_USER,
                    state_person(memory_of(d), "leaver")->id)),
        "leaver", false);
    add(w, "project", PREFIX_PROJECT,
        id_text(arena_take(d->mem, ID_TEXT, 1), PREFIX_PROJECT,
                state_project(memory_of(d), "default")->id),
        "default", true);
}

static void make_things(struct world *w)
{
    struct door *d = w->d;
    add(w, "account", PREFIX_ACCOUNT, make(w, VERB_ACCOUNT_CREATE, "{\"name\":\"oldbot\"}"),
        "oldbot", true);
    add(w, "ci", PREFIX_ACCOUNT, make(w, VERB_ACCOUNT_CREATE, "{\"name\":\"cibot\"}"), "cibot",
        true);
    make(w, VERB_ACCOUNT_CREATE, "{\"name\":\"offbot\"}");
    w->keys[DISABLED_ACCOUNT]
        = door_grant(d, PRINCIPAL_ACCOUNT, "offbot", "default", ROLE_DEVELOPER, 0);
    make(w, VERB_ACCOUNT_DISABLE, "{\"account\":\"offbot\"}");
    make(w, VERB_SECRET_SET, "{\"name\":\"TOKEN\",\"value\":\"squeamish ossifrage\"}");
    make(w, VERB_SECRET_SET, "{\"name\":\"OLD_SECRET\",\"value\":\"bygone\"}");
    add_name(w, "secret", "TOKEN", "GHOST");
    add_name(w, "oldsecret", "OLD_SECRET", "GHOST");
    w->things[w->thing_count - 1].of_project = true;
    add(w, "volume", PREFIX_VOLUME, make(w, VERB_VOLUME_CREATE, "{\"name\":\"datavol\"}"),
        "datavol", true);
    add(w, "spare", PREFIX_VOLUME, make(w, VERB_VOLUME_CREATE, "{\"name\":\"sparevol\"}"),
        "sparevol", true);
    add_name(w, "volumename", "datavol", "ghost");
    struct blob_view *blob = ARENA_NEW(d->mem, struct blob_view);
    *blob = (struct blob_view){ .id = DIGEST, .name = DIGEST, .state = "active", .size = 3 };
    CHECK(door_ask_bound(d, d->admin, NULL, VERB_BLOB_ADD, blob).ok);
    add_name(w, "digest", DIGEST, GHOST_DIGEST);
    add(w, "image", PREFIX_IMAGE,
        make(w, VERB_IMAGE_ADD, "{\"name\":\"baseimage\",\"digest\":\"" DIGEST "\"}"), "baseimage",
        true);
    add(w, "oldimage", PREFIX_IMAGE,
        make(w, VERB_IMAGE_ADD, "{\"name\":\"oldimage\",\"digest\":\"" DIGEST "\"}"), "oldimage",
        true);
    add_name(w, "imagename", "baseimage", "ghost");
}

static void make_nodes_and_jobs(struct world *w)
{
    struct door *d = w->d;
    char *one = arena_take(d->mem, SECRET_TEXT, 1), *two = arena_take(d->mem, SECRET_TEXT, 1),
         *three = arena_take(d->mem, SECRET_TEXT, 1);
    door_node(d, "n1", 4, one);
    door_node(d, "n2", 1, two);
    door_node(d, "n3", 1, three);
    make(w, VERB_NODE_REMOVE, "{\"node\":\"n3\"}");
    w->keys[NODE_ONE] = one;
    w->keys[REMOVED_NODE] = three;
    struct state *s = memory_of(d);
    add(w, "node", PREFIX_NODE,
        id_text(arena_take(d->mem, ID_TEXT, 1), PREFIX_NODE, state_node(s, "n1")->id), "n1", false);
    add(w, "oldnode", PREFIX_NODE,
        id_text(arena_take(d->mem, ID_TEXT, 1), PREFIX_NODE, state_node(s, "n2")->id), "n2", false);
    add(w, "job", PREFIX_JOB,
        make(w, VERB_JOB_SUBMIT,
             "{\"name\":\"runner\",\"command\":[\"true\"],\"gpus\":\"1\",\"node\":\"n1\","
             "\"volumes\":[\"datavol:/d\"],"
             "\"secrets\":[\"TOKEN\"],\"workdir\":\"" DIGEST "\"}"),
        "runner", true);
    if (d->plan)
        door_run(d, 50);
    else
        CHECK(door_place(d, thing_id(w, "job"), 0, "n1", 0));
    CHECK(door_report(d, one, 1, door_attempt(d, thing_id(w, "job"), 0), "started", NULL).ok);
    add(w, "reservation", PREFIX_RESERVATION,
        make(w, VERB_RESERVE_CREATE, "{\"project\":\"default\",\"name\":\"keepout\",\"gpus\":\"H200:1\",\"duration\":\"300d\"}"),
        "keepout", true);
    add(w, "waits", PREFIX_JOB,
        make(w, VERB_JOB_SUBMIT,
             "{\"name\":\"waiter\",\"command\":[\"true\"],\"gpus\":\"H999:1\"}"),
        "waiter", true);
    add(w, "cancel", PREFIX_JOB,
        make(w, VERB_JOB_SUBMIT,
             "{\"name\":\"doomed\",\"command\":[\"true\"],\"gpus\":\"H999:1\"}"),
        "doomed", true);
    add(w, "box", PREFIX_JOB, make(w, VERB_JOB_SUBMIT, "{\"name\":\"boxmachine\",\"type\":\"instance\",\"gpus\":\"H999:1\"}"), "boxmachine", true);
    add(w, "halted", PREFIX_JOB, make(w, VERB_JOB_SUBMIT, "{\"name\":\"haltedmachine\",\"type\":\"instance\",\"gpus\":\"H999:1\"}"), "haltedmachine", true);
    make(w, VERB_JOB_STOP, "{\"job\":\"haltedmachine\"}");
    door_run(d, 50);
}

void world_make(struct world *w, bool plan)
{
    *w = (struct world){ .d = door_new(plan), .digest = DIGEST };
    make_people(w);
    make_things(w);
    make_nodes_and_jobs(w);
    w->token = make(w, VERB_NODE_TOKEN, "{}");
}

void world_freeze(struct world *w, struct frozen *f, struct arena *mem)
{
    for (int i = 0; i < WHO_COUNT; i++)
        w->keys[i] = arena_text(mem, w->keys[i]);
    for (size_t i = 0; i < w->thing_count; i++) {
        struct thing *t = &w->things[i];
        *t = (struct thing){ t->token,
                             arena_text(mem, t->id),
                             arena_text(mem, t->name),
                             arena_text(mem, t->ghost_id),
                             arena_text(mem, t->ghost_name),
                             t->of_project };
    }
    w->token = arena_text(mem, w->token);
    door_freeze(TAKE(w->d), f);
}

/* --- asking */
static const struct thing *thing_of(struct world *w, const char *token, size_t n)
{
    for (size_t i = 0; i < w->thing_count; i++)
        if (strlen(w->things[i].token) == n && memcmp(w->things[i].token, token, n) == 0)
            return &w->things[i];
    return NULL;
}
const char *thing_id(struct world *w, const char *token)
{
    return thing_of(w, token, strlen(token))->id;
}

const char *world_body(struct world *w, const char *text, enum spelling how)
{
    AUTO(str_done) struct str out = { 0 };
    for (const char *p = text; *p;) {
        size_t n = *p == '{' ? strspn(p + 1, "abcdefghijklmnopqrstuvwxyz0123456789") : 0;
        if (!n || p[n + 1] != '}') {
            str_char(&out, *p++);
            continue;
        }
        const struct thing *t = thing_of(w, p + 1, n);
        CHECK(t != NULL);
        const char *const words[] = { [BY_ID] = t->id,
                                      [BY_NAME] = t->name,
                                      [GHOST_ID] = t->ghost_id,
                                      [GHOST_NAME] = t->ghost_name };
        str_text(&out, words[how]);
        p += n + 2;
    }
    return arena_text(w->d->mem, out.at);
}

struct answer world_ask(struct world *w, enum who who, const char *project, const struct wish *wish,
                        enum spelling how)
{
    struct door *d = w->d;
    if (wish->body)
        return door_ask_full(d, w->keys[who], project, wish->verb, world_body(w, wish->body, how),
                             NULL, 0);
    struct blob_view *blob = ARENA_NEW(d->mem, struct blob_view);
    struct hello *hello = ARENA_NEW(d->mem, struct hello);
    struct place_ask *place = ARENA_NEW(d->mem, struct place_ask);
    *blob = (struct blob_view){
        .id = GHOST_DIGEST, .name = GHOST_DIGEST, .state = "active", .size = 4
    };
    *hello = (struct hello){ .kind = "hello",
                             .next = 2,
                             .info = { .hostname = "n1", .cpu_milli = 1000, .mem_mib = 1000 } };
    const void *body = wish->verb == VERB_BLOB_ADD     ? (void *)blob
                       : wish->verb == VERB_NODE_HELLO ? (void *)hello
                                                       : (void *)place;
    return door_ask_bound(d, w->keys[who], project, wish->verb, body);
}
