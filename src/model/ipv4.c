/* ipv4.c - see ipv4.h. Numbers are in the host's order until they are written. */
#include "model/ipv4.h"
#include <stdio.h>
#include <stdlib.h>

static const char *const network_list[] = { [NETWORK_PROJECT] = "project", [NETWORK_NONE] = "none", [NETWORK_HOST] = "host" };
_Static_assert(COUNT(network_list) == NETWORK_COUNT, "every network has a name");
const struct names network_names = NAMES(network_list);

uint32_t net_address(int64_t number, int64_t host)
{
    return NET_POOL + ((uint32_t)number << NET_HOST_BITS) + (uint32_t)host;
}

bool net_has(int64_t number, uint32_t address)
{
    int64_t host = address & (NET_HOSTS - 1);
    return number > 0 && number < NET_NUMBERS && net_address(number, host) == address && host >= NET_FIRST && host <= NET_LAST;
}

const char *net_range(struct arena *mem, int64_t number)
{
    char four[IPV4_TEXT];
    return number ? arena_printf(mem, "%s/%d", ipv4_text(net_address(number, 0), four), 32 - NET_HOST_BITS) : "";
}

/* Leading zeros would be octal for some. */
static bool parse_four(const char *text, size_t n, uint32_t *out)
{
    uint32_t value = 0;
    size_t at = 0;
    for (int part = 0; part < 4; part++) {
        unsigned number = 0;
        size_t digits = 0;
        for (; at < n && text[at] >= '0' && text[at] <= '9' && digits < 3; at++, digits++)
            number = number * 10 + (unsigned)(text[at] - '0');
        if (digits == 0 || number > 255 || (digits > 1 && text[at - digits] == '0'))
            return false;
        value = value << 8 | number;
        if (part < 3 && (at == n || text[at++] != '.'))
            return false;
    }
    if (at != n)
        return false;
    *out = value;
    return true;
}

bool ipv4_parse(const char *text, uint32_t *out)
{
    return text && parse_four(text, strlen(text), out);
}

const char *ipv4_text(uint32_t address, char out[static IPV4_TEXT])
{
    snprintf(out, IPV4_TEXT, "%u.%u.%u.%u", address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255);
    return out;
}

/* 02: given by hand, and one machine's. */
void ipv4_mac(uint32_t address, unsigned char out[static MAC_BYTES])
{
    out[0] = 0x02;
    out[1] = 0xa7;
    for (int i = 0; i < 4; i++)
        out[2 + i] = (unsigned char)(address >> (24 - 8 * i));
}

bool cidr_parse(const char *text, size_t n, struct cidr *out)
{
    const char *slash = memchr(text, '/', n);
    size_t head = slash ? (size_t)(slash - text) : n, tail = slash ? n - head - 1 : 0;
    struct cidr c = { .bits = 32 };
    if (!parse_four(text, head, &c.address) || (slash && (tail == 0 || tail > 2 || (tail == 2 && slash[1] == '0'))))
        return false;
    for (size_t i = 0; i < tail; i++) {
        if (slash[1 + i] < '0' || slash[1 + i] > '9')
            return false;
        c.bits = (i ? c.bits * 10 : 0) + (slash[1 + i] - '0');
    }
    uint32_t rest = c.bits >= 32 ? 0 : UINT32_MAX >> c.bits;
    if (c.bits > 32 || (c.address & rest))
        return false;
    *out = c;
    return true;
}

static int by_address(const void *a, const void *b)
{
    const struct cidr *x = a, *y = b;
    return x->address != y->address ? (x->address > y->address) - (x->address < y->address) : x->bits - y->bits;
}

bool egress_parse(const char *text, struct arena *mem, const char **out, struct err *err)
{
    struct cidr list[EGRESS_MOST];
    size_t count = 0;
    if (!text_given(text) || text_is(text, "all") || text_is(text, "none"))
        return *out = text_is(text, "none") ? "none" : "all", true;
    for (const char *at = text; *at;) {
        at += strspn(at, ", ");
        size_t n = strcspn(at, ", ");
        if (n == 0)
            break;
        if (count == EGRESS_MOST)
            return err_field(err, "egress", "at most %d networks", EGRESS_MOST);
        if (!cidr_parse(at, n, &list[count++]))
            return err_field(err, "egress", "expected all, none, or networks such as 10.1.0.0/16,192.0.2.7, not '%.*s'", (int)MIN(n, (size_t)40), at);
        at += n;
    }
    if (!count)
        return err_field(err, "egress", "expected all, none, or networks such as 10.1.0.0/16");
    qsort(list, count, sizeof *list, by_address);
    AUTO(str_done) struct str s = { 0 };
    char four[IPV4_TEXT];
    for (size_t i = 0; i < count; i++)
        if (i == 0 || by_address(&list[i], &list[i - 1]) != 0)
            str_printf(&s, "%s%s/%d", i ? "," : "", ipv4_text(list[i].address, four), list[i].bits);
    *out = arena_text(mem, s.at);
    return true;
}
