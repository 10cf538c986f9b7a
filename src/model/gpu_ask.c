/* gpu_ask.c - the ways people write how many GPUs of what kind: parts between colons, in any order, each at most once.
 *
 * A part is a count ("2", "0.5"), an amount of memory ("24GB", "24GB..80GB") or a model ("H200"; "H200|H100" is either, "H200>H100"
 * either with the first preferred). Whether a fleet has such a thing
 * is not asked here. */
#include "base/err.h"
#include "base/str.h"
#include "base/when.h"
#include "model/job.h"
#include <ctype.h>
#include <stdio.h>
#include <strings.h>

enum { SHARE_MIN = 10, TEXT_LIMIT = 96 };
static const int64_t mem_limit_mib = 4 << 20;

struct parts {
    bool count, memory;
};

static bool is_number(const char *p)
{
    return isdigit((unsigned char)*p) && !p[strspn(p, "0123456789.")];
}

/* "3090Ti" is a card and not 3090 TiB, hence only these endings. */
static bool is_size(const char *p, int64_t *mib)
{
    size_t n = strlen(p);
    return n && strchr("bBgG", p[n - 1]) && isdigit((unsigned char)*p) && mib_parse(p, mib);
}

static bool take_count(const char *part, struct gpu_ask *out, struct err *err)
{
    int64_t milli;
    if (!milli_parse(part, &milli))
        return err_field(err, "gpus", "gpus: '%s' is not a number with at most three decimals",
                         part);
    if (milli > JOB_GPUS_MAX * 1000)
        return err_field(err, "gpus", "gpus: %s are too many for one task, at most %d", part,
                         JOB_GPUS_MAX);
    if (milli > 1000 && milli % 1000)
        return err_field(
            err, "gpus",
            "gpus: %s is neither a share nor whole; ask for less than 1 GPU, or for %lld", part,
            (long long)(milli / 1000 + 1));
    if (milli > 0 && milli < SHARE_MIN)
        return err_field(err, "gpus", "gpus: a share is at least 0.01, not %s", part);
    out->milli = milli;
    return true;
}

static bool take_range(char *part, char *dots, struct gpu_ask *out, struct err *err)
{
    const char *least = part, *most = dots + 2;
    *dots = 0;
    if ((is_number(least) || !*least) && (is_number(most) || !*most))
        return err_field(err, "gpus",
                         "gpus: '%s..%s' is a range of counts; a task needs one number (ranges are "
                         "of memory: 24GB..80GB)",
                         least, most);
    if ((*least && !is_size(least, &out->mem_min_mib))
        || (*most && !is_size(most, &out->mem_max_mib)))
        return err_field(
            err, "gpus",
            "gpus: '%s..%s' is not a range of memory such as 24GB..80GB, 24GB.. or ..80GB", least,
            most);
    if (out->mem_max_mib && out->mem_min_mib > out->mem_max_mib)
        return err_field(err, "gpus", "gpus: %s..%s is the wrong way round", least, most);
    return true;
}

static bool take_model(const char *part, struct gpu_ask *out, struct err *err)
{
    bool vendor = strcasecmp(out->model, "nvidia") == 0 || strcasecmp(out->model, "amd") == 0;
    if (strcasecmp(part, "all") == 0)
        return err_field(err, "gpus",
                         "gpus: say how many, not 'all'; `arcus gpus` shows what there is");
    if (out->model[0] && !vendor)
        return err_field(err, "gpus", "gpus: '%s' and '%s' are two models; ask for one", out->model,
                         part);
    for (const char *p = part; *p; p++)
        if (!isalnum((unsigned char)*p)
            && (p == part || !strchr(isalnum((unsigned char)p[1]) ? "-_. /+|>" : "-_. /+", *p)))
            return err_field(err, "gpus",
                             "gpus: '%s' is not understood; write 2, 0.5, H200:8 or 24GB..80GB:2",
                             part);
    return text_copy(out->model, sizeof out->model, part)
           || err_field(err, "gpus", "gpus: '%s' is too long for a model, at most %zu characters",
                        part, sizeof out->model - 1);
}

static bool take_part(char *part, struct parts *seen, struct gpu_ask *out, struct err *err)
{
    char *dots = strstr(part, "..");
    int64_t mib;
    if (!*part)
        return err_field(err, "gpus", "gpus: there is nothing on one side of a ':'; write H200:8");
    if (strcasecmp(part, "gpu") == 0) /* Slurm's gpu:h100:8 */
        return true;
    bool memory = dots || is_size(part, &mib);
    if (!memory && !is_number(part))
        return take_model(part, out, err);
    bool *twice = memory ? &seen->memory : &seen->count;
    if (*twice)
        return err_field(err, "gpus", "gpus: '%s' is a second %s; give one", part,
                         memory ? "amount of memory" : "count");
    *twice = true;
    if (dots)
        return take_range(part, dots, out, err);
    return memory ? (out->mem_min_mib = mib, true) : take_count(part, out, err);
}

bool gpu_ask_parse(const char *text, struct gpu_ask *out, struct err *err)
{
    char copy[TEXT_LIMIT];
    struct gpu_ask ask = { 0 };
    struct parts seen = { 0 };
    while (*text == ' ')
        text++;
    if (!*text || !text_copy(copy, sizeof copy, text))
        return err_field(err, "gpus",
                         *text ? "gpus: too long to be a wish for GPUs"
                               : "gpus: is empty; leave it out for none");
    for (char *part = copy, *next; part; part = next) {
        next = strchr(part, ':');
        if (next)
            *next++ = 0;
        if (!take_part(part, &seen, &ask, err))
            return false;
    }
    if (!seen.count && (seen.memory || ask.model[0]))
        ask.milli = 1000;
    else if (!seen.count)
        return err_field(err, "gpus", "gpus: '%s' does not say how many", text);
    if (ask.mem_min_mib > mem_limit_mib || ask.mem_max_mib > mem_limit_mib)
        return err_field(err, "gpus", "gpus: no GPU has that much memory");
    *out = ask.milli ? ask : (struct gpu_ask){ 0 };
    return true;
}

/* A name in lower case without what is between its words; ends[i] tells that a word ends behind letter i. */
struct squeezed {
    char at[100];
    bool ends[100];
    size_t len;
};

static struct squeezed squeeze(const char *name)
{
    struct squeezed s = { 0 };
    for (; *name && s.len + 1 < sizeof s.at; name++) {
        if (isalnum((unsigned char)*name))
            s.at[s.len++] = (char)tolower((unsigned char)*name);
        else if (s.len)
            s.ends[s.len - 1] = true;
    }
    if (s.len)
        s.ends[s.len - 1] = true;
    return s;
}

/* One word of the wish is one word of the model, or several in a row: rtx4090 is "RTX 4090", and A10 is not "A100". */
static bool has_word(const struct squeezed *model, const char *word, size_t n)
{
    for (size_t i = 0; i + n <= model->len; i++)
        if ((i == 0 || model->ends[i - 1]) && model->ends[i + n - 1]
            && memcmp(model->at + i, word, n) == 0)
            return true;
    return false;
}

static bool model_fits(const char *ask, size_t n, const char *model)
{
    char one[sizeof((struct gpu_ask *)0)->model];
    memcpy(one, ask, n);
    one[n] = 0;
    struct squeezed have = squeeze(model), want = squeeze(one);
    for (size_t from = 0, i = 0; i < want.len; i++)
        if (want.ends[i]) {
            if (!has_word(&have, want.at + from, i + 1 - from))
                return false;
            from = i + 1;
        }
    return true;
}

/* A part of the memory is kept for error correction: an L40S of 48 GB tells 46068 MiB, a T4 of 16 GB 15360. */
bool gpu_ask_memory(const struct gpu_ask *ask, int64_t mem_mib)
{
    return mem_mib >= ask->mem_min_mib - ask->mem_min_mib / 14
           && (!ask->mem_max_mib || mem_mib <= ask->mem_max_mib) && ask->share_mib <= mem_mib;
}

int gpu_ask_model(const struct gpu_ask *ask, const char *model)
{
    int choice = 1;
    for (const char *p = ask->model; *p; p++) {
        size_t n = strcspn(p, "|>");
        if (model_fits(p, n, model))
            return choice;
        p += n;
        choice += *p == '>';
        if (!*p)
            return 0;
    }
    return choice;
}

int gpu_ask_choice(const struct gpu_ask *ask, const char *model, int64_t mem_mib)
{
    return gpu_ask_memory(ask, mem_mib) ? gpu_ask_model(ask, model) : 0;
}

bool gpu_ask_fits(const struct gpu_ask *ask, const char *model, int64_t mem_mib)
{
    return gpu_ask_choice(ask, model, mem_mib) != 0;
}

int64_t gpu_ask_mib(const struct gpu_ask *ask, int64_t mem_mib)
{
    if (ask->milli >= 1000)
        return mem_mib;
    return ask->share_mib ? ask->share_mib : (int64_t)((__int128)mem_mib * ask->milli / 1000);
}
