/* bundle_user.c - who a container's first process is: a name or numbers, as an image's own
 * passwd and group files know them.
 *
 * The files are a tenant's: lines that make no sense are skipped, ids beyond the container's
 * range are refused. */
#include "agent/bundle.h"
#include "agent/task_plan.h"
#include <stdio.h>
#include <stdlib.h>

/* name:x:ID:GID:gecos:HOME:shell, or name:x:ID:member,member */
struct line {
    struct slice part[7];
    size_t count;
};

static bool next_line(struct slice *in, struct line *out)
{
    if (!in->len)
        return false;
    const char *end = memchr(in->at, '\n', in->len), *at = in->at;
    size_t len = end ? (size_t)(end - in->at) : in->len;
    in->at += len + (end != NULL);
    in->len -= len + (end != NULL);
    *out = (struct line){ 0 };
    for (const char *stop = at + len; out->count < COUNT(out->part);) {
        const char *colon = memchr(at, ':', (size_t)(stop - at));
        out->part[out->count++] = (struct slice){ at, (size_t)((colon ? colon : stop) - at) };
        if (!colon)
            break;
        at = colon + 1;
    }
    return true;
}

static bool same(struct slice s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

static bool id_of(struct slice s, int64_t *out)
{
    int64_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.at[i] < '0' || s.at[i] > '9' || n >= PLAN_UID_COUNT)
            return false;
        n = n * 10 + (s.at[i] - '0');
    }
    if (!s.len || n >= PLAN_UID_COUNT)
        return false;
    *out = n;
    return true;
}

static bool find_group(const char *group, struct slice text, int64_t *gid, struct err *err)
{
    if (id_of(SLICE(group), gid))
        return true;
    for (struct line l; next_line(&text, &l);)
        if (l.count >= 3 && same(l.part[0], group) && id_of(l.part[2], gid))
            return true;
    return err_field(err, "user", "the image has no group '%s'", group);
}

static bool is_member(struct slice members, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = members.at, *end = members.at + members.len; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at)), *stop = comma ? comma : end;
        if ((size_t)(stop - at) == n && memcmp(at, name, n) == 0)
            return true;
        at = stop + 1;
    }
    return false;
}

static void further_groups(struct slice text, const char *name, struct bundle_user *u)
{
    int64_t gid;
    for (struct line l; u->group_count < COUNT(u->groups) && next_line(&text, &l);)
        if (l.count >= 4 && is_member(l.part[3], name) && id_of(l.part[2], &gid) && gid != u->gid)
            u->groups[u->group_count++] = gid;
}

bool bundle_user_find(const char *user, struct slice passwd, struct slice group, struct arena *mem,
                      struct bundle_user *out, struct err *err)
{
    struct bundle_user u = { .home = "/" };
    char *name = arena_text(mem, text_given(user) ? user : "0"), *colon = strchr(name, ':');
    const char *wanted_group = colon ? colon + 1 : NULL;
    if (colon)
        *colon = 0;
    bool numeric = id_of(SLICE(name), &u.uid), found = false;
    if (!numeric && name[0] >= '0' && name[0] <= '9' && strspn(name, "0123456789") == strlen(name))
        return err_field(err, "user", "%s is beyond the %d ids of a container", name,
                         PLAN_UID_COUNT);
    for (struct line l; !found && next_line(&passwd, &l);) {
        int64_t uid, gid;
        if (l.count < 6 || !id_of(l.part[2], &uid) || !id_of(l.part[3], &gid)
            || (numeric ? uid != u.uid : !same(l.part[0], name)))
            continue;
        found = true;
        u.uid = uid;
        u.gid = gid;
        if (l.part[5].len && l.part[5].at[0] == '/')
            u.home = arena_bytes(mem, l.part[5].at, l.part[5].len);
        if (!wanted_group)
            further_groups(group, arena_bytes(mem, l.part[0].at, l.part[0].len), &u);
    }
    if (!found && !numeric)
        return err_field(err, "user", "the image has no user '%s'", name);
    if (!found && u.uid == 0)
        u.home = "/root";
    if (wanted_group && !find_group(wanted_group, group, &u.gid, err))
        return false;
    /* The first group is one of the list too: else a file that denies it to its group would be
     * open to who drops it. */
    memmove(u.groups + 1, u.groups, (COUNT(u.groups) - 1) * sizeof u.groups[0]);
    u.groups[0] = u.gid;
    u.group_count = MIN(u.group_count + 1, COUNT(u.groups));
    *out = u;
    return true;
}
