#include "place.h"
#include "store/postgres_internal.h"

/* No sentence of ours shows any part of the password, here hush or xyzzy */
TEST(a_bad_url_is_refused_without_showing_the_password)
{
    static const char *const bad[] = {
        "postgres://u:hush@xyzzy@127.0.0.1:1/db",
        "postgres://u:hush/xyzzy@127.0.0.1:1/db",
        "postgres://u:hush?xyzzy@127.0.0.1:1/db",
        "postgres://u:hush#xyzzy@127.0.0.1:1/db",
        "postgres://u:hush",
        "postgres://u:hush%zz@127.0.0.1:1/db",
        "postgres://u:hush@127.0.0.1:port/db",
        "postgres://u:hush@[::1/db",
        "postgres://127.0.0.1:1/db?password=hush&nonsense=xyzzy",
        "postgres://u:hush@127.0.0.1:1/db?sslmode=odd",
        "postgres://u:hush@127.0.0.1:1/db?connect_timeout=x",
        "postgresql://u:hush@127.0.0.1:1/db",
        "postgres://u:hush@127.0.0.1:99999/db",
        "postgres://u:hush@/db?host=/nowhere",
    };
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct store *s = NULL;
        err = (struct err){ 0 };
        CHECK(!store_open(os, bad[i], &s, &err) && !s
              && (err.rc == RC_BAD_INPUT || err.rc == RC_UNAVAILABLE));
        CHECK(!strstr(err.text, "hush") && !strstr(err.text, "xyzzy") && strlen(err.text) > 20);
    }
    os_free(os);
}

TEST(a_good_url_is_let_through)
{
    static const char *const good[] = {
        "postgres:///arcus?host=/run/postgresql&user=postgres",
        "postgres://u:p%40%2F%3A@db.example:5432/arcus?sslmode=verify-full",
        "postgresql://a,b:5433/arcus?target_session_attrs=read-write",
        "postgres://u:a:b@[::1]:5432/arcus",
        "postgres://",
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        struct err err = { 0 };
        CHECK(url_check(good[i], &err));
    }
}

TEST(a_text_that_repeats_the_password_gets_stars)
{
    char text[] = "no role sesame, sesame? s e", stars[] = "***", none[] = "as it is";
    url_hide("postgres://u:sesame@h/d", text);
    CHECK(text_is(text, "no role ******, ******? s e"));
    url_hide("postgres://u:*@h/d", stars); /* and it comes to an end */
    CHECK(text_is(stars, "***"));
    url_hide("postgres://u@h/d", none);
    CHECK(text_is(none, "as it is"));
}

TEST(a_database_over_a_network_is_spoken_to_with_tls_or_after_two_words)
{
    static const struct { const char *url; bool good, plain; } all[] = {
        { "arcus.db", true, true },
        { "postgres:///arcus?host=/run/postgresql&user=postgres", true, true },
        { "postgres://u@127.0.0.1:5432/arcus", true, true },
        { "postgres://u@[::1]/arcus", true, true },
        { "postgres://u@localhost/arcus", true, true },
        { "postgres://u@db.example/arcus", false, false },
        { "postgres://u@127.example/arcus", false, false },
        { "postgres://u@localhost,db.example/arcus", false, false },
        { "postgres:///arcus?host=10.0.0.1", false, false },
        { "postgres:///arcus?host=localhost&hostaddr=10.0.0.1", false, false },
        { "postgres://u@db.example/arcus?sslmode=prefer", false, false },
        { "postgres://u@db.example/arcus?sslmode=disable", false, true },
        { "postgres://u@db.example/arcus?sslmode=require", true, true },
        { "postgresql://u@db.example,other/arcus?sslmode=verify-full", true, true },
    };
    for (size_t i = 0; i < COUNT(all); i++) {
        struct err err = { 0 };
        bool good = store_place_check(all[i].url, false, &err);
        CHECK(good == all[i].good && (good || strstr(err.text, "sslmode=verify-full")));
        CHECK(store_place_check(all[i].url, true, &err) == all[i].plain);
    }
}
