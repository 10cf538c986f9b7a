/* when.c - times and spans in the spelling of people. Every parser takes the whole text or refuses it: a blank, a sign, a unit
 * twice or 31 February is a mistake to be told, not to be guessed at. */
#include "base/when.h"
#include <ctype.h>
#include <stdio.h>
#include <strings.h>
#include <time.h>

static void two(char *to, int n)
{
    to[0] = (char)('0' + n / 10);
    to[1] = (char)('0' + n % 10);
}

/* By hand: it is in every listing and every reply, and the library's way takes a lock. */
static void quick(char *out, const struct tm *t, int ms)
{
    memcpy(out, "0000-00-00T00:00:00.000Z", sizeof "0000-00-00T00:00:00.000Z");
    two(out, (t->tm_year + 1900) / 100);
    two(out + 2, (t->tm_year + 1900) % 100);
    two(out + 5, t->tm_mon + 1);
    two(out + 8, t->tm_mday);
    two(out + 11, t->tm_hour);
    two(out + 14, t->tm_min);
    two(out + 17, t->tm_sec);
    out[20] = (char)('0' + ms / 100);
    two(out + 21, ms % 100);
}

/* From 1970 on; the calendar repeats itself every 400 years of 146,097 days, and years begin in March here. */
static struct tm civil(int64_t s)
{
    int64_t days = s / 86400 + 719468, era = days / 146097, day = days % 146097;
    int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    int64_t of_year = day - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;
    return (struct tm){ .tm_year = (int)(year + era * 400 + (month >= 10)) - 1900,
                        .tm_mon = (int)(month < 10 ? month + 2 : month - 10),
                        .tm_mday = (int)(of_year - (153 * month + 2) / 5 + 1),
                        .tm_hour = (int)(s / 3600 % 24), .tm_min = (int)(s / 60 % 60), .tm_sec = (int)(s % 60) };
}

const char *when_text(char out[static WHEN_TEXT], int64_t ms)
{
    static const int64_t year_10000 = 253402300800;
    int64_t part = (ms % 1000 + 1000) % 1000, s = (ms - part) / 1000;
    if (s >= 0 && s < year_10000) {
        struct tm t = civil(s);
        quick(out, &t, (int)part);
        return out;
    }
    time_t at = (time_t)s;
    struct tm t;
    gmtime_r(&at, &t);
    size_t n = strftime(out, WHEN_TEXT, "%Y-%m-%dT%H:%M:%S", &t);
    snprintf(out + n, WHEN_TEXT - n, ".%03dZ", (int)part);
    return out;
}

/* "dd-dd" and the like: d takes digits into the next number, anything else stands for itself. */
static bool fixed(const char **p, const char *form, int *out)
{
    for (; *form; form++, (*p)++) {
        if (*form != 'd') {
            if (**p != *form)
                return false;
            out++;
        } else if (isdigit((unsigned char)**p)) {
            *out = *out * 10 + (**p - '0');
        } else {
            return false;
        }
    }
    return true;
}

static bool zone(const char **p, int *offset_s)
{
    int part[2] = { 0 }, sign = **p == '-' ? -1 : 1;
    if (**p == 'Z' || **p == 'z')
        return (*p)++, true;
    if ((**p != '+' && **p != '-') || ((*p)++, !fixed(p, "dd:dd", part)) || part[0] > 23
        || part[1] > 59)
        return false;
    *offset_s = sign * (part[0] * 3600 + part[1] * 60);
    return true;
}

static bool is_day(const int day[3])
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    int y = day[0], m = day[1];
    bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    return y >= 1970 && m >= 1 && m <= 12 && day[2] >= 1
           && day[2] <= days[m - 1] + (m == 2 && leap);
}

bool when_parse(const char *text, int64_t *ms)
{
    int day[3] = { 0 }, clock[3] = { 0 }, offset_s = 0, part = 0;
    const char *p = text;
    if (!fixed(&p, "dddd-dd-dd", day) || !is_day(day))
        return false;
    if (*p) {
        if (*p != 'T' && *p != 't' && *p != ' ')
            return false;
        p++;
        if (!fixed(&p, "dd:dd:dd", clock) || clock[0] > 23 || clock[1] > 59 || clock[2] > 60)
            return false;
        if (*p == '.') {
            int unit = 100;
            if (!isdigit((unsigned char)*++p))
                return false;
            for (; isdigit((unsigned char)*p); p++, unit /= 10)
                part += (*p - '0') * unit;
        }
        if (!zone(&p, &offset_s) || *p)
            return false;
    }
    struct tm t = { .tm_year = day[0] - 1900,
                    .tm_mon = day[1] - 1,
                    .tm_mday = day[2],
                    .tm_hour = clock[0],
                    .tm_min = clock[1],
                    .tm_sec = clock[2] };
    *ms = ((int64_t)timegm(&t) - offset_s) * 1000 + part;
    return true;
}

static const struct {
    char unit;
    int64_t seconds;
} spans[] = { { 'd', 86400 }, { 'h', 3600 }, { 'm', 60 }, { 's', 1 } };
static const int64_t longest = 10LL * 366 * 86400;

const char *span_text(char out[static WHEN_TEXT], int64_t seconds)
{
    int parts = 0, n = 0;
    out[0] = 0;
    for (size_t i = 0; i < COUNT(spans) && parts < 2; i++)
        if (seconds >= spans[i].seconds || (i == COUNT(spans) - 1 && !parts)) {
            n += snprintf(out + n, (size_t)(WHEN_TEXT - n), "%lld%c",
                          (long long)(seconds / spans[i].seconds), spans[i].unit);
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

/* [d-]h[:m[:s]] with days, [h:]m:s without, as Slurm writes it. */
static bool clock_parse(const char *p, int64_t *seconds)
{
    int64_t part[3] = { 0 }, days = 0;
    size_t count = 0;
    bool dashed = strchr(p, '-') != NULL;
    if (dashed && (!digits(&p, longest / 86400, &days) || *p++ != '-'))
        return false;
    do {
        if (count == COUNT(part) || !digits(&p, longest, &part[count])
            || (count && part[count] > 59))
            return false;
        count++;
    } while (*p == ':' && p++);
    if (*p || (dashed && part[0] > 23))
        return false;
    int64_t unit = dashed || count == 3 ? 3600 : 60, total = days * 86400;
    for (size_t i = 0; i < count; i++, unit /= 60)
        if (part[i] > longest / unit || (total += part[i] * unit) > longest)
            return false;
    return *seconds = total, true;
}

bool span_parse(const char *text, int64_t *seconds)
{
    int64_t total = 0, n;
    const char *p = text;
    if (strchr(text, ':') || strchr(text, '-'))
        return clock_parse(text, seconds);
    if (!digits(&p, longest, &n))
        return false;
    if (!*p)
        return *seconds = n, true;
    for (size_t i = 0; i < COUNT(spans); i++) {     /* each unit once, from days down */
        if (*p != spans[i].unit)
            continue;
        if (n > longest / spans[i].seconds || (total += n * spans[i].seconds) > longest)
            return false;
        if (!*++p)
            return *seconds = total, true;
        if (!digits(&p, longest, &n))
            return false;
    }
    return false;
}

bool mib_parse(const char *text, int64_t *mib)
{
    static const struct { const char *unit; int64_t bytes; } units[] = {
        { "", 1LL << 30 }, { "B", 1 }, { "K", 1 << 10 }, { "KB", 1 << 10 }, { "Ki", 1 << 10 }, { "KiB", 1 << 10 },
        { "M", 1 << 20 }, { "MB", 1 << 20 }, { "Mi", 1 << 20 }, { "MiB", 1 << 20 },
        { "G", 1LL << 30 }, { "GB", 1LL << 30 }, { "Gi", 1LL << 30 }, { "GiB", 1LL << 30 },
        { "T", 1LL << 40 }, { "TB", 1LL << 40 }, { "Ti", 1LL << 40 }, { "TiB", 1LL << 40 },
    };
    int64_t whole, billionths = 0;
    const char *p = text;
    if (!digits(&p, 1LL << 40, &whole))
        return false;
    if (*p == '.') {
        int64_t scale = 100000000;
        const char *from = ++p;
        for (; isdigit((unsigned char)*p) && scale; p++, scale /= 10)
            billionths += (*p - '0') * scale;
        if (p == from)
            return false;
    }
    while (*p == ' ')
        p++;
    for (size_t i = 0; i < COUNT(units); i++)
        if ((*p | 32) == (units[i].unit[0] | 32) && strcasecmp(p, units[i].unit) == 0) {
            const __int128 billion = 1000000000, step = billion << 20;
            __int128 n = ((whole * billion + billionths) * units[i].bytes + step - 1) / step;
            if (n > 1LL << 40)
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
