/* house.c - taints, exclusive nodes and residency. See house.h. Spelling is that of Kubernetes; what does not exist here (other effects than
 * NoSchedule) is told so rather than taken for something else. */
#include "model/house.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static const char alone_word[] = "!alone";   /* no taint is called so */

static bool word_good(const char *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)at[i]) && (i == 0 || !strchr("._/-", at[i])))
            return false;
    return n > 0 && n < PLACE_TEXT;
}

bool taint_parse(const char *text, const char *field, char out[static TAINT_TEXT], struct err *err)
{
    size_t all = strcspn(text, ":"), key = MIN(strcspn(text, "="), all);
    bool value = text[key] == '=' && key < all;
    if (!word_good(text, key) || (value && key + 1 < all && !word_good(text + key + 1, all - key - 1)))
        return err_field(err, field, "%s: '%.80s' is not a taint such as dedicated=vision or maintenance", field, text);
    if (text[all] && strcasecmp(text + all, ":NoSchedule") != 0)
        return err_field(err, field, "%s: '%.80s': the only effect here is NoSchedule (arcus nodes cordon and drain do the others)", field, text);
    if (value && key + 1 == all) /* key= is key, as an empty value is none */
        all--;
    snprintf(out, TAINT_TEXT, "%.*s", (int)all, text);
    return true;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted, each once. */
static size_t in_order(const char **list, size_t count)
{
    size_t n = 0;
    if (count)
        qsort(list, count, sizeof *list, by_text);
    for (size_t i = 0; i < count; i++)
        if (!n || strcmp(list[n - 1], list[i]) != 0)
            list[n++] = list[i];
    return n;
}

/* Adds the words of one text to a list of at most PLACES_MOST; what is no word is left out, and counted. */
static size_t take_words(const char *text, const char **list, size_t *count, struct arena *mem)
{
    size_t odd = 0;
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, ", ");
        if (n && word_good(at, n) && *count < PLACES_MOST) {
            char *word = arena_bytes(mem, at, n);
            for (char *c = word; *c; c++)
                *c = (char)tolower((unsigned char)*c);
            list[(*count)++] = word;
        } else {
            odd += n > 0;
        }
        at += n;
        at += *at != 0;
    }
    return odd;
}

bool words_parse(const char *text, const char *field, struct arena *mem, const char **out, struct err *err)
{
    const char *list[PLACES_MOST];
    size_t count = 0;
    AUTO(str_done) struct str all = { 0 };
    if (take_words(text, list, &count, mem))
        return err_field(err, field, "%s: '%.80s' is not a list such as eu,de of at most %d words", field, text, PLACES_MOST);
    count = in_order(list, count);
    for (size_t i = 0; i < count; i++)
        str_printf(&all, "%s%s", i ? "," : "", list[i]);
    *out = all.len ? arena_text(mem, all.at) : "";
    return true;
}

static void lines(const char **list, size_t count, const char *before, struct str *out)
{
    count = in_order(list, count);
    for (size_t i = 0; i < count; i++)
        str_printf(out, "%s%s\n", before, list[i]);
}

const char *tolerations_text(const struct texts *tolerations, bool alone, struct arena *mem)
{
    const char *list[TAINTS_MOST];
    AUTO(str_done) struct str out = { 0 };
    size_t count = MIN(tolerations->count, (size_t)TAINTS_MOST);
    for (size_t i = 0; i < count; i++)
        list[i] = tolerations->at[i];
    lines(list, count, "", &out);
    if (alone)
        str_printf(&out, "%s\n", alone_word);
    return out.len ? arena_text(mem, out.at) : NULL;
}

const char *house_text(const struct texts *taints, int64_t exclusive, const struct texts *places, struct arena *mem)
{
    const char *list[TAINTS_MOST], *words[PLACES_MOST];
    AUTO(str_done) struct str out = { 0 };
    size_t count = MIN(taints->count, (size_t)TAINTS_MOST), word_count = 0;
    for (size_t i = 0; i < count; i++)
        list[i] = taints->at[i];
    lines(list, count, "T ", &out);
    if (exclusive)
        str_printf(&out, "X %" PRId64 "\n", exclusive);
    for (size_t i = 0; i < places->count; i++)
        take_words(places->at[i], words, &word_count, mem);
    lines(words, word_count, "P ", &out);
    return out.len ? arena_text(mem, out.at) : NULL;
}

/* --- the question */

static bool tolerated(const char *taint, size_t n, const char *tolerates)
{
    size_t key = 0;
    while (key < n && taint[key] != '=')
        key++;
    for (const char *at = tolerates; at && *at;) {
        size_t len = strcspn(at, "\n");
        if ((len == n || len == key) && memcmp(at, taint, len) == 0)
            return true;
        at += len + (at[len] != 0);
    }
    return false;
}

static bool among(const char *word, size_t n, const char *list)
{
    for (const char *at = list; *at;) {
        size_t len = strcspn(at, ",");
        if (len == n && memcmp(at, word, n) == 0)
            return true;
        at += len + (at[len] != 0);
    }
    return false;
}

int64_t house_project(const char *house)
{
    const char *x = house && text_starts(house, "X ") ? house : house ? strstr(house, "\nX ") : NULL;
    return x ? strtoll(x + (*x == '\n') + 2, NULL, 10) : 0;
}

enum house_says house_admits(const char *house, const struct guest *g)
{
    bool resident = !text_given(g->residency);
    int64_t only = house_project(house);
    if (only && only != g->project)
        return HOUSE_EXCLUSIVE;
    if (!only && tolerated(alone_word, strlen(alone_word), g->tolerates))
        return HOUSE_SHARED;
    for (const char *at = house; at && *at;) {
        size_t n = strcspn(at, "\n");
        if (*at == 'T' && !tolerated(at + 2, n - 2, g->tolerates))
            return HOUSE_TAINT;
        if (*at == 'P' && !resident)
            resident = among(at + 2, n - 2, g->residency);
        at += n + (at[n] != 0);
    }
    return resident ? HOUSE_YES : HOUSE_RESIDENCY;
}
