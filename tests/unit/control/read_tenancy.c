#include "door.h"

TEST(every_list_comes_in_pages_that_miss_and_repeat_nothing)
{
    static const struct {
        enum verb_id make, list;
        const char *body;
    } rows[] = {
        { VERB_ORG_CREATE, VERB_ORG_LIST, "{\"name\":\"x%d\"}" },
        { VERB_PROJECT_CREATE, VERB_PROJECT_LIST, "{\"name\":\"x%d\",\"org\":\"default\"}" },
        { VERB_USER_CREATE, VERB_USER_LIST, "{\"name\":\"x%d\"}" },
        { VERB_ACCOUNT_CREATE, VERB_ACCOUNT_LIST, "{\"name\":\"x%d\"}" },
        { VERB_SECRET_SET, VERB_SECRET_LIST, "{\"name\":\"X%d\",\"value\":\"v\"}" },
        { VERB_VOLUME_CREATE, VERB_VOLUME_LIST, "{\"name\":\"x%d\"}" },
        { VERB_KEY_CREATE, VERB_KEY_LIST, "{\"name\":\"x%d\"}" },
    };
    AUTO(door_free) struct door *d = door_new(false);
    for (size_t r = 0; r < COUNT(rows); r++) {
        for (int i = 0; i < 7; i++) {
            AUTO(str_done) struct str body = { 0 };
            for (const char *p = rows[r].body; *p; p++)
                if (p[0] == '%' && p[1] == 'd')
                    str_printf(&body, "%d", i), p++;
                else
                    str_char(&body, *p);
            CHECK(door_ask(d, d->admin, rows[r].make, body.at).ok);
        }
        struct answer whole = door_ask(d, d->admin, rows[r].list, "{\"limit\":1000}");
        CHECK(whole.ok && item_count(&whole) >= 7 && text_is(get(&whole, "next"), ""));
        const char *page = "";
        size_t seen = 0;
        do {
            struct answer a = door_ask(d, d->admin, rows[r].list,
                                       FMT(d, "{\"limit\":3,\"page\":\"%s\"}", page));
            CHECK(a.ok && item_count(&a) > 0);
            for (size_t i = 0; i < item_count(&a); i++, seen++)
                CHECK(text_is(item(d, &a, i, "id"), item(d, &whole, seen, "id"))
                      && item(d, &a, i, "name") && item(d, &a, i, "state"));
            page = get(&a, "next");
        } while (text_given(page) && seen < 100);
        CHECK(seen == item_count(&whole));
        struct answer bad = door_ask(d, d->admin, rows[r].list, "{\"page\":\"nonsense\"}");
        CHECK(!bad.ok && text_is(bad.err.field, "page"));
    }
}

TEST(a_service_account_does_not_learn_how_many_projects_there_are)
{
    AUTO(door_free) struct door *d = door_new(false);
    for (int i = 0; i < 5; i++)
        CHECK(door_ask(d, d->admin, VERB_PROJECT_CREATE, FMT(d, "{\"name\":\"other%d\"}", i)).ok);
    CHECK(door_ask(d, d->admin, VERB_ACCOUNT_CREATE, "{\"name\":\"bot\"}").ok);
    const char *bot = door_grant(d, PRINCIPAL_ACCOUNT, "bot", "default", ROLE_DEVELOPER, 0);
    struct answer a = door_ask(d, bot, VERB_PROJECT_LIST, "{\"limit\":2}");
    CHECK(a.ok && item_count(&a) == 1 && text_is(item(d, &a, 0, "name"), "default")
          && text_is(get(&a, "next"), ""));
    CHECK(door_ask(d, bot, VERB_PROJECT_GET, "{\"project\":\"default\"}").ok
          && !door_ask(d, bot, VERB_PROJECT_GET, "{\"project\":\"other1\"}").ok);
}
