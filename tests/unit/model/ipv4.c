#include "model/ipv4.h"
#include "tap.h"

TEST(every_project_has_a_range_of_its_own_and_nothing_of_it_is_elsewhere)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    char four[IPV4_TEXT];
    CHECK(text_is(net_range(mem, 1), "100.64.16.0/20") && text_is(net_range(mem, NET_NUMBERS - 1), "100.127.240.0/20") && text_is(net_range(mem, 0), ""));
    CHECK(text_is(ipv4_text(net_address(1, NET_GATEWAY), four), "100.64.16.1") && text_is(ipv4_text(net_address(2, NET_LAST), four), "100.64.47.254"));
    CHECK(net_has(1, net_address(1, NET_FIRST)) && net_has(1, net_address(1, NET_LAST)) && net_has(NET_NUMBERS - 1, net_address(NET_NUMBERS - 1, 77)));
    CHECK(!net_has(1, net_address(1, NET_GATEWAY)) && !net_has(1, net_address(1, 0)) && !net_has(1, net_address(1, NET_HOSTS - 1)));
    CHECK(!net_has(2, net_address(1, 7)) && !net_has(0, net_address(0, 7)) && !net_has(-1, net_address(1, 7)) && !net_has(NET_NUMBERS, net_address(NET_NUMBERS, 7)));
}

TEST(an_address_is_four_numbers_and_nothing_else)
{
    uint32_t a = 7;
    char four[IPV4_TEXT];
    unsigned char mac[MAC_BYTES];
    CHECK(ipv4_parse("10.1.2.3", &a) && a == 0x0a010203 && text_is(ipv4_text(a, four), "10.1.2.3"));
    CHECK(ipv4_parse("255.255.255.255", &a) && a == UINT32_MAX && ipv4_parse("0.0.0.0", &a) && a == 0);
    static const char *const bad[] = { "", "1", "1.2.3", "1.2.3.", "1.2.3.4.", "1.2.3.4.5", "256.1.1.1", "1.2.3.04", "01.2.3.4", "1..3.4", " 1.2.3.4", "1.2.3.4 ", "a.b.c.d",
                                       "1.2.3.-4", "1.2.3.4/8", "1000.2.3.4" };
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(!ipv4_parse(bad[i], &a) && a == 0);
    CHECK(!ipv4_parse(NULL, &a));
    ipv4_mac(0x64401002, mac);
    CHECK(mac[0] == 0x02 && mac[2] == 0x64 && mac[3] == 0x40 && mac[4] == 0x10 && mac[5] == 0x02);
}

TEST(where_a_project_may_go_is_kept_in_one_spelling)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    const char *out = NULL;
    static const struct { const char *text, *is; } rows[] = {
        { NULL, "all" }, { "", "all" }, { "all", "all" }, { "none", "none" }, { "10.1.0.0/16", "10.1.0.0/16" }, { "192.0.2.7", "192.0.2.7/32" },
        { "192.0.2.7, 10.1.0.0/16,192.0.2.7/32", "10.1.0.0/16,192.0.2.7/32" }, { "0.0.0.0/0", "0.0.0.0/0" },
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        CHECK(egress_parse(rows[i].text, mem, &out, &err) && text_is(out, rows[i].is));
    static const char *const bad[] = { ",", "everything", "10.1.0.0/33", "10.1.0.1/16", "10.1.0.0/", "10.1.0.0/016", "10.1.0.0/8/8", "10.1.0.0/1x", "::1", "1.2.3.4 } accept",
                                       "1.2.3.4;1.2.3.5", "1.2.3.4\n" };
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(!egress_parse(bad[i], mem, &out, &err) && text_is(err.field, "egress") && text_is(out, "0.0.0.0/0"));
    AUTO(str_done) struct str many = { 0 };
    for (int i = 0; i <= EGRESS_MOST; i++)
        str_printf(&many, "10.0.0.%d,", i);
    CHECK(!egress_parse(many.at, mem, &out, &err));
}
