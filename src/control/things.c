/* things.c - secrets, volumes, images and blobs: the small things of a project that jobs name. */
#include "control/call.h"
#include <stdio.h>
#include <stdlib.h>

static void secret_reply(struct call *c, const struct secret *s, const char *state)
{
    struct secret_view view = { .id = s->id,
                                .name = s->name,
                                .state = state,
                                .created_ms = s->created_ms,
                                .updated_ms = s->updated_ms,
                                .version = s->version };
    c->r->version = s->version;
    reply_view(c, &secret_view_fields, &view);
}

/* Sealed with the master key and bound to its project and name: a row copied elsewhere does not
 * open. */
static char *sealed(struct call *c, const char *name, const char *value)
{
    AUTO(str_done) struct str box = { 0 };
    struct str text = { 0 };
    unsigned char nonce[24];
    control_random(c->control, nonce, sizeof nonce);
    seal(control_keys(c->control)->seal, nonce,
         arena_printf(c->mem, "%lld/%s", (long long)c->who->project, name), SLICE(value), &box);
    base64_text(&text, box.at, box.len);
    return text.at;
}

bool secret_set(struct call *c, const void *body, struct err *err)
{
    const struct secret_ask *ask = body;
    struct secret *s = state_secret(c->s, c->who->project, ask->name);
    if (c->r->if_match && c->r->if_match != (s ? s->version : 0))
        return err_set(err, RC_STALE, "secret %s has changed meanwhile; look again", ask->name);
    if (!s && state_named(c->s, THING_SECRET, c->who->project) >= c->s->secrets_most)
        return err_set(err, RC_OVER_QUOTA, "this project has %zu secrets, and a project may have no more; remove some first",
                       c->s->secrets_most);
    char *box = sealed(c, ask->name, ask->value);
    if (s) {
        free(s->sealed);
        s->sealed = box;
        s->updated_ms = c->now_ms;
        s->version++;
        EMIT(c, SECRET_SET, V_INT(s->id), V_TEXT(s->sealed), V_INT(s->updated_ms),
             V_INT(s->version));
    } else {
        s = calloc(1, sizeof *s);
        if (!s)
            abort();
        *s = (struct secret){ .id = new_id(c),
                              .project = c->who->project,
                              .created_ms = c->now_ms,
                              .updated_ms = c->now_ms,
                              .version = 1,
                              .sealed = box };
        snprintf(s->name, sizeof s->name, "%s", ask->name);
        map_put(c->s->secrets, s->id, s);
        state_name(c->s, THING_SECRET, s->project, s->name, s);
        EMIT(c, SECRET_ADD, V_INT(s->id), V_INT(s->project), V_TEXT(s->name), V_TEXT(s->sealed),
             V_INT(s->created_ms));
    }
    emit_event(c, s->project, "secret.set", id_of(c, PREFIX_SECRET, s->id),
               arena_printf(c->mem, "{\"name\":\"%s\"}", s->name));
    secret_reply(c, s, "active");
    return true;
}

bool secret_remove(struct call *c, const void *body, struct err *err)
{
    const struct secret_ask *ask = body;
    struct secret *s = state_secret(c->s, c->who->project, ask->name);
    if (!s)
        return err_set(err, RC_NOT_FOUND, "there is no secret '%s' in this project", ask->name);
    EMIT(c, SECRET_DROP, V_INT(s->id));
    emit_event(c, s->project, "secret.removed", id_of(c, PREFIX_SECRET, s->id),
               arena_printf(c->mem, "{\"name\":\"%s\"}", s->name));
    secret_reply(c, s, "removed");
    map_take(c->s->secrets, s->id);
    state_unname(c->s, THING_SECRET, s->project, s->name);
    free(s->sealed);
    free(s);
    return true;
}

static void volume_reply(struct call *c, const struct volume *v, const char *state)
{
    const struct node *n = map_get(c->s->nodes, v->node);
    struct volume_view view = { .id = v->id,
                                .name = v->name,
                                .state = state,
                                .node = n ? n->name : "",
                                .created_ms = v->created_ms };
    reply_view(c, &volume_view_fields, &view);
}

bool volume_create(struct call *c, const void *body, struct err *err)
{
    const struct volume_ask *ask = body;
    if (!name_check(ask->name, PREFIX_VOLUME, err))
        return false;
    if (state_volume(c->s, c->who->project, ask->name))
        return err_set(err, RC_CONFLICT, "the name '%s' is taken by another volume", ask->name);
    struct volume *v = ARENA_NEW(c->s->mem, struct volume);
    *v = (struct volume){ .id = new_id(c), .project = c->who->project, .created_ms = c->now_ms };
    snprintf(v->name, sizeof v->name, "%s", ask->name);
    map_put(c->s->volumes, v->id, v);
    state_name(c->s, THING_VOLUME, v->project, v->name, v);
    EMIT(c, VOLUME_ADD, V_INT(v->id), V_INT(v->project), V_TEXT(v->name), V_INT(0),
         V_INT(v->created_ms));
    emit_event(c, v->project, "volume.created", id_of(c, PREFIX_VOLUME, v->id),
               arena_printf(c->mem, "{\"name\":\"%s\"}", v->name));
    volume_reply(c, v, "active");
    return true;
}

bool volume_remove(struct call *c, const void *body, struct err *err)
{
    const struct volume_ask *ask = body;
    struct volume *v = state_volume(c->s, c->who->project, ask->volume);
    if (!v)
        return err_set(err, RC_NOT_FOUND, "there is no volume '%s' in this project", ask->volume);
    if (v->users > 0)
        return err_set(err, RC_CONFLICT, "volume %s is in use by %lld live jobs; cancel them first",
                       v->name, (long long)v->users);
    EMIT(c, VOLUME_DROP, V_INT(v->id));
    emit_event(c, v->project, "volume.removed", id_of(c, PREFIX_VOLUME, v->id),
               arena_printf(c->mem, "{\"name\":\"%s\"}", v->name));
    struct node *n = map_get(c->s->nodes, v->node);
    if (n) { /* what is in it goes too: the node is told until it says so */
        EMIT(c, GONER_ADD, V_INT(v->id), V_INT(n->id));
        node_goner(n, v->id);
        node_tell(c, n);
    }
    volume_reply(c, v, "removed");
    map_take(c->s->volumes, v->id);
    state_unname(c->s, THING_VOLUME, v->project, v->name);
    return true;
}

static void image_reply(struct call *c, const struct image *m, const char *state)
{
    struct image_view view = { .id = m->id,
                               .name = m->name,
                               .state = state,
                               .digest = m->digest,
                               .format = m->format,
                               .size = m->size,
                               .created_ms = m->created_ms };
    reply_view(c, &image_view_fields, &view);
}

bool emitted_blob(const struct call *c, enum statement st, int64_t project, const char *digest)
{
    for (size_t i = 0; i < c->batch->write_count; i++) {
        const struct write *w = &c->batch->writes[i];
        if (w->st == st && w->args[0].n == project && text_is(w->args[1].text, digest))
            return true;
    }
    return false;
}

bool image_add(struct call *c, const void *body, struct err *err)
{
    const struct image_ask *ask = body;
    struct rows r;
    if (!ROWS(c, BLOB_GET, &r, err, V_INT(c->who->project), V_TEXT(ask->digest)))
        return false;
    if (r.count == 0 || emitted_blob(c, ST_BLOB_DROP, c->who->project, ask->digest))
        return err_field(err, "digest",
                         "this archive has not been uploaded; PUT /v1/blobs/%s first (arcus image "
                         "import does it)",
                         ask->digest);
    if (state_image(c->s, c->who->project, ask->name))
        return err_set(
            err, RC_CONFLICT,
            "the name '%s' is taken by another image; remove it first, or choose another",
            ask->name);
    if (!image_ref_check(ask->name, err) || !name_check(ask->name, PREFIX_IMAGE, err))
        return false;
    if (text_is(ask->name, "host"))
        return err_field(err, "name", "'host' means the node's own root; choose another name");
    struct image *m = ARENA_NEW(c->s->mem, struct image);
    *m = (struct image){ .id = new_id(c),
                         .project = c->who->project,
                         .size = row_int(&r, 0, 0),
                         .created_ms = c->now_ms };
    snprintf(m->name, sizeof m->name, "%s", ask->name);
    snprintf(m->digest, sizeof m->digest, "%s", ask->digest);
    snprintf(m->format, sizeof m->format, "archive");
    map_put(c->s->images, m->id, m);
    state_name(c->s, THING_IMAGE, m->project, m->name, m);
    EMIT(c, IMAGE_ADD, V_INT(m->id), V_INT(m->project), V_TEXT(m->name), V_TEXT(m->digest),
         V_TEXT(m->format), V_INT(m->size), V_INT(m->created_ms));
    EMIT(c, BLOB_USED, V_INT(m->project), V_TEXT(m->digest), V_INT(c->now_ms));
    emit_event(c, m->project, "image.added", id_of(c, PREFIX_IMAGE, m->id), NULL);
    image_reply(c, m, "active");
    return true;
}

bool image_remove(struct call *c, const void *body, struct err *err)
{
    const struct image_ask *ask = body;
    struct image *m = state_image(c->s, c->who->project, ask->image);
    if (!m)
        return err_set(err, RC_NOT_FOUND, "there is no image '%s' in this project", ask->image);
    const struct job *on = disk_on_image(c->s, m);
    if (on)
        return err_set(err, RC_CONFLICT, "the disk of the instance %s lies on the image %s; cancel the instance first, or import under another name", on->name, m->name);
    EMIT(c, IMAGE_DROP, V_INT(m->id));
    emit_event(c, m->project, "image.removed", id_of(c, PREFIX_IMAGE, m->id), NULL);
    image_reply(c, m, "removed");
    map_take(c->s->images, m->id);
    state_unname(c->s, THING_IMAGE, m->project, m->name);
    return true;
}

/* The bytes are in their place already (api/ has checked the digest and synced them); now they
 * count. */
bool blob_add(struct call *c, const void *body, struct err *err)
{
    (void)err;
    const struct blob_view *blob = body;
    EMIT(c, BLOB_ADD, V_INT(c->who->project), V_TEXT(blob->id), V_INT(blob->size),
         V_INT(c->now_ms));
    EMIT(c, BLOB_USED, V_INT(c->who->project), V_TEXT(blob->id), V_INT(c->now_ms));
    emit_event(c, c->who->project, "blob.added", blob->id, NULL);
    struct blob_view view
        = { .id = blob->id, .name = blob->id, .state = "active", .size = blob->size };
    reply_view(c, &blob_view_fields, &view);
    return true;
}

bool job_update(struct call *c, const void *body, struct err *err)
{
    const struct job_update_ask *ask = body;
    struct job *j = state_job(c->s, c->who->project, ask->job);
    if (!j)
        return job_gone(c, ask->job, err);
    if (c->r->if_match && c->r->if_match != j->version)
        return err_set(err, RC_STALE, "job %s has changed meanwhile (version %lld); look again",
                       ask->job, (long long)j->version);
    if (!job_waits(j))
        return err_set(err, RC_CONFLICT,
                       "job %s does not wait any more; its priority means nothing now", ask->job);
    j->priority = ask->priority;
    job_write(c, j);
    emit_event(c, j->project->id, "job.updated", id_of(c, PREFIX_JOB, j->id),
               arena_printf(c->mem, "{\"priority\":%lld}", (long long)j->priority));
    sched_of_job(c->s, j, emit_news(c, SCHED_JOB));
    job_reply(c, j);
    return true;
}
