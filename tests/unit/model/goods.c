#include "model/goods.h"
#include "base/str.h"
#include "tap.h"
#include "wire/digest.h"

TEST(a_thing_has_the_same_number_however_it_is_told)
{
    CHECK(digest_start());
    char text[GOOD_TEXT], hex[DIGEST_HEX], digest[DIGEST_HEX + 8];
    struct good back;
    int64_t key = good_of_reference("debian:12");
    CHECK(key && key != good_of_reference("debian:11"));
    digest_sha256("debian:12", 9, hex);     /* the agent names the file of a reference so */
    snprintf(digest, sizeof digest, "sha256:%s", hex);
    CHECK(good_of_digest(digest) == key);
    CHECK(good_parse(good_text(text, &(struct good){ key, 1234 }), &back) && back.key == key && back.mib == 1234);
    CHECK(good_of_digest("sha256:0000000000000000ffff") == 1);
    static const char *const none[] = { NULL, "", "sha256:", "sha256:12", "md5:0123456789abcdef", "sha256:0123456789ABCDEF" };
    for (size_t i = 0; i < COUNT(none); i++)
        CHECK(!good_of_digest(none[i]));
    static const char *const bad[] = { "", ":", "0123456789abcdef", "0123456789abcdef:", "0123456789abcdef:-1", "0123456789abcdef:1x", "0123456789abcdef:9999999999",
                                       "0123456789abcdeg:1", "0123456789abcdef 1" };
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(!good_parse(bad[i], &back));
}
