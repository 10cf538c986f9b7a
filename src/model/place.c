/* place.c - topology addresses as text. */
#include "model/place.h"
#include <ctype.h>

static const char *const level_list[] = {
    [PLACE_ANY] = "any",       [PLACE_REGION] = "region", [PLACE_ZONE] = "zone",
    [PLACE_SWITCH] = "switch", [PLACE_RACK] = "rack",     [PLACE_NVLINK] = "nvlink",
};
_Static_assert(COUNT(level_list) == PLACE_LEVELS, "every level has a name");
const struct names place_names = NAMES(level_list);
static const char *const ask_list[] = { "auto", "any", "region", "zone", "switch", "rack", "nvlink" };
_Static_assert(COUNT(ask_list) == PLACE_LEVELS + 1, "every level can be asked for");
const struct names place_ask_names = NAMES(ask_list);

static bool good(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && !strchr("._-", s[i]))
            return false;
    return n < PLACE_NAME && (!n || isalnum((unsigned char)s[0]));
}

bool place_name_check(const char *field, const char *name, struct err *err)
{
    return !name || good(name, strlen(name))
           || err_field(err, field, "%s: '%.40s' is not up to %d letters, digits, '.', '_' and '-', with a letter or digit first", field,
                        name, PLACE_NAME - 1);
}

bool where_parse(const char *text, struct arena *mem, struct topology *out, struct err *err)
{
    struct topology w = { 0 };
    int level = PLACE_REGION;
    for (const char *at = text; at; level++) {
        size_t n = strcspn(at, "/");
        if (level == PLACE_LEVELS)
            return err_set(err, RC_BAD_INPUT, "'%.80s' has more than five parts; write region/zone/switch/rack/nvlink", text);
        if (!good(at, n))
            return err_set(err, RC_BAD_INPUT,
                           "'%.80s': a part is up to %d letters, digits, '.', '_' and '-', with a letter or digit first", text,
                           PLACE_NAME - 1);
        w.at[level] = n ? arena_bytes(mem, at, n) : NULL;
        at = at[n] ? at + n + 1 : NULL;
    }
    *out = w;
    return true;
}

struct topology where_over(const struct topology *over, const struct topology *under)
{
    struct topology w = { 0 };
    for (int l = PLACE_REGION; l < PLACE_LEVELS; l++)
        w.at[l] = text_given(over->at[l]) ? over->at[l] : under->at[l];
    return w;
}

const char *where_text(const struct topology *w, char out[static PLACE_ADDRESS])
{
    size_t n = 0;
    int last = 0;
    for (int l = PLACE_REGION; l < PLACE_LEVELS; l++)
        last = text_given(w->at[l]) ? l : last;
    for (int l = PLACE_REGION; l <= last; l++) {
        size_t len = text_given(w->at[l]) ? MIN(strlen(w->at[l]), (size_t)PLACE_NAME - 1) : 0;
        if (len)
            memcpy(out + n, w->at[l], len);
        n += len;
        if (l < last)
            out[n++] = '/';
    }
    out[n] = 0;
    return out;
}

bool where_fits(const struct topology *w, const char *region, const char *zone)
{
    return (!text_given(region) || text_is(w->at[PLACE_REGION], region)) && (!text_given(zone) || text_is(w->at[PLACE_ZONE], zone));
}

bool where_same(const struct topology *a, const struct topology *b, enum place_level level)
{
    if (level > PLACE_REGION && !text_given(a->at[level]))
        return false;
    for (int l = PLACE_REGION; l <= (int)level; l++) {
        const char *x = a->at[l] ? a->at[l] : "", *y = b->at[l] ? b->at[l] : "";
        if (strcmp(x, y) != 0)
            return false;
    }
    return true;
}
