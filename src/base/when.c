#include "base/when.h"
#include <ctype.h>
#include <stdio.h>
#include <strings.h>
#include <stdlib.h>
#include <time.h>

const char *when_text(char out[static WHEN_TEXT], int64_t ms)
{
    time_t s = (time_t)(ms / 1000);
    struct tm t;
    gmtime_r(&s, &t);
    size_t n = strftime(out, WHEN_TEXT, "%Y-%m-%dT%H:%M:%S", &t);
    snprintf(out + n, WHEN_TEXT - n, ".%03dZ", (int)(((ms % 1000) + 1000) % 1000));
    return out;
}

bool when_parse(const char *text, int64_t *ms)
{
    struct tm t = { 0 };
    int frac = 0, n = 0, sign = 1, oh = 0, om = 0;
    if (sscanf(text, "%4d-%2d-%2d%n", &t.tm_year, &t.tm_mon, &t.tm_mday, &n) != 3 || n != 10)
        return false;
    const char *p = text + n;
    if (*p) {
        if ((*p != 'T' && *p != 't' && *p != ' ')
            || sscanf(p + 1, "%2d:%2d:%2d%n", &t.tm_hour, &t.tm_min, &t.tm_sec, &n) != 3 || n != 8)
            return false;
        p += 9;
        if (*p == '.') {
            int unit = 100;
            for (p++; isdigit((unsigned char)*p); p++, unit /= 10)
                frac += (*p - '0') * unit;
        }
        if (*p == '+' || *p == '-') {
            sign = *p == '-' ? -1 : 1;
            if (sscanf(p + 1, "%2d:%2d%n", &oh, &om, &n) != 2 || n != 5)
                return false;
            p += 6;
        } else if (*p == 'Z' || *p == 'z') {
            p++;
        }
        if (*p)
            return false;
    }
    if (t.tm_year < 1970 || t.tm_mon < 1 || t.tm_mon > 12 || t.tm_mday < 1 || t.tm_mday > 31 || t.tm_hour > 23
        || t.tm_min > 59 || t.tm_sec > 60 || oh > 14 || om > 59)
        return false;
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    *ms = ((int64_t)timegm(&t) - sign * (oh * 3600 + om * 60)) * 1000 + frac;
    return true;
}

static const struct { char unit; int64_t seconds; } spans[] = { { 'd', 86400 }, { 'h', 3600 }, { 'm', 60 }, { 's', 1 } };
static const int64_t longest = 10LL * 366 * 86400;

const char *span_text(char out[static WHEN_TEXT], int64_t seconds)
{
    int parts = 0, n = 0;
    out[0] = 0;
    for (size_t i = 0; i < COUNT(spans) && parts < 2; i++)
        if (seconds >= spans[i].seconds || (i == COUNT(spans) - 1 && !parts)) {
            n += snprintf(out + n, (size_t)(WHEN_TEXT - n), "%lld%c", (long long)(seconds / spans[i].seconds), spans[i].unit);
            seconds %= spans[i].seconds;
            parts++;
            if (!seconds)
                break;
        }
    return out;
}

static bool digits(const char **p, int64_t most, int64_t *out)
{
    int64_t n = 0;
    const char *from = *p;
    for (; isdigit((unsigned char)**p); (*p)++) {
        n = n * 10 + (**p - '0');
        if (n > most)
            return false;
    }
    return *out = n, *p > from;
}

static bool clock_parse(const char *p, int64_t *seconds)       /* [[d-]h:]m:s, as Slurm writes it */
{
    int64_t total = 0, n;
    for (int part = 0; part < 4; part++) {
        if (!digits(&p, longest, &n))
            return false;
        if (*p == '-' && part == 0)
            total = n * 24;
        else
            total = total * (part ? 60 : 1) + n;
        if (total > longest)
            return false;
        if (!*p)
            return *seconds = total, true;
        if (*p != ':' && !(*p == '-' && part == 0))
            return false;
        if (*p == '-') {
            p++;
            if (!digits(&p, 10000, &n))
                return false;
            total += n;
            if (!*p)
                return *seconds = total * 3600, true;
            if (*p != ':')
                return false;
        }
        p++;
    }
    return false;
}

bool span_parse(const char *text, int64_t *seconds)
{
    if (strchr(text, ':') || strchr(text, '-'))
        return clock_parse(text, seconds) && *seconds <= longest;
    int64_t total = 0, n;
    const char *p = text;
    if (!*p)
        return false;
    while (*p) {
        if (!digits(&p, longest, &n))
            return false;
        int64_t unit = 0;
        for (size_t i = 0; i < COUNT(spans); i++)
            if (*p == spans[i].unit)
                unit = spans[i].seconds;
        if (!*p && p > text && total == 0)
            unit = 1;
        else if (!unit)
            return false;
        else
            p++;
        if (n > longest / unit || (total += n * unit) > longest)
            return false;
    }
    return *seconds = total, true;
}

bool mib_parse(const char *text, int64_t *mib)
{
    static const struct { const char *unit; int64_t bytes; } units[] = {
        { "", 1LL << 30 }, { "B", 1 }, { "K", 1 << 10 }, { "KB", 1 << 10 }, { "Ki", 1 << 10 }, { "KiB", 1 << 10 },
        { "M", 1 << 20 }, { "MB", 1 << 20 }, { "Mi", 1 << 20 }, { "MiB", 1 << 20 },
        { "G", 1LL << 30 }, { "GB", 1LL << 30 }, { "Gi", 1LL << 30 }, { "GiB", 1LL << 30 },
        { "T", 1LL << 40 }, { "TB", 1LL << 40 }, { "Ti", 1LL << 40 }, { "TiB", 1LL << 40 },
    };
    int64_t whole, thousandths = 0;
    const char *p = text;
    if (!digits(&p, 1LL << 40, &whole))
        return false;
    if (*p == '.') {
        p++;
        int64_t scale = 100;
        const char *from = p;
        for (; isdigit((unsigned char)*p); p++, scale /= 10)
            thousandths += (*p - '0') * scale;
        if (p == from)
            return false;
    }
    while (*p == ' ')
        p++;
    for (size_t i = 0; i < COUNT(units); i++)
        if (strcasecmp(p, units[i].unit) == 0) {
            __int128 bytes = (__int128)whole * units[i].bytes + (__int128)thousandths * units[i].bytes / 1000;
            __int128 n = (bytes + (1 << 20) - 1) >> 20;
            if (n > (1LL << 40))
                return false;
            return *mib = (int64_t)n, true;
        }
    return false;
}

bool milli_parse(const char *text, int64_t *milli)
{
    int64_t whole, part = 0;
    bool minus = *text == '-';
    const char *p = text + minus;
    if (!digits(&p, 1000000000, &whole))
        return false;
    if (*p == '.') {
        int64_t scale = 100;
        const char *from = ++p;
        for (; isdigit((unsigned char)*p); p++, scale /= 10) {
            if (!scale)
                return false;
            part += (*p - '0') * scale;
        }
        if (p == from)
            return false;
    }
    return !*p && (*milli = (whole * 1000 + part) * (minus ? -1 : 1), true);
}
