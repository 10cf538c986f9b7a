/* weights.c - the table of terms, and how an operator spells weights. */
#include "model/weights.h"
#include "base/str.h"
#include <stdlib.h>

const struct term_row terms[TERM_COUNT] = {
    [TERM_STUCK] = { "stuck", "weight_stuck", "idle GPU that the tasks usually asked for cannot use" },
    [TERM_FEED] = { "feed", "weight_feed", "idle GPU that the node's free CPUs can no longer feed" },
    [TERM_SLIVER] = { "sliver", "weight_sliver", "rests of shared GPUs too small for the shares usually asked for" },
    [TERM_BREAK] = { "break", "weight_break", "a whole GPU that a share breaks" },
    [TERM_FIT] = { "fit", "weight_fit", "what stays free on the node: fill the fullest" },
    [TERM_SCARCE] = { "scarce", "weight_scarce", "GPU that tasks which name its model, or need several at once, will be short of" },
    [TERM_PREFER] = { "prefer", "weight_prefer", "GPU that is not the task's first choice" },
    [TERM_DARK] = { "dark", "weight_dark", "a node where nothing runs yet, and which could sleep" },
    [TERM_SLICE] = { "slice", "weight_slice", "places for large MIG profiles that a slice takes away" },
    [TERM_FETCH] = { "fetch", "weight_fetch", "bytes of image and work folder that are not there yet: 1 GiB counts as a GPU" },
    [TERM_SPREAD] = { "spread", "weight_spread", "a task of the same job on the node, or in the zone, where the job asks for spread" },
};
const int64_t weights_usual[TERM_COUNT] = WEIGHTS_USUAL;

bool term_named(const char *name, enum term *out)
{
    for (int i = 0; i < TERM_COUNT; i++)
        if (text_is(terms[i].name, name))
            return *out = (enum term)i, true;
    return false;
}

static bool weight_read(const char *word, size_t n, int64_t weight[static TERM_COUNT], struct err *err)
{
    char name[24], *end;
    size_t equals = strcspn(word, "= ,;");
    enum term which;
    if (word[equals] != '=' || equals >= sizeof name || equals + 1 >= n)
        return err_field(err, "weights", "'%.*s' is not like stuck=250 (a name, and thousandths or usual)", (int)MIN(n, 40), word);
    memcpy(name, word, equals);
    name[equals] = 0;
    if (!term_named(name, &which))
        return err_field(err, "weights", "there is no weight '%s'; arcus rules weights shows them all", name);
    const char *value = word + equals + 1;
    size_t len = n - equals - 1;
    if (len == 5 && strncmp(value, "usual", len) == 0)
        return weight[which] = weights_usual[which], true;
    long long number = strtoll(value, &end, 10);
    if (end != word + n || *value < '0' || *value > '9' || number > WEIGHT_MOST)
        return err_field(err, "weights", "%s=%.*s: a weight is a whole number of thousandths from 0 to %d, or usual", name, (int)MIN(len, 40), value,
                         WEIGHT_MOST);
    return weight[which] = number, true;
}

bool weights_read(const char *text, int64_t weight[static TERM_COUNT], struct err *err)
{
    int64_t fresh[TERM_COUNT];
    memcpy(fresh, weight, sizeof fresh);
    for (const char *p = text + strspn(text, " ,;"); *p; p += strspn(p, " ,;")) {
        size_t n = strcspn(p, " ,;");
        if (!weight_read(p, n, fresh, err))
            return false;
        p += n;
    }
    memcpy(weight, fresh, sizeof fresh);
    return true;
}
