#include "wire/digest.h"
#include "base/fault.h"
#include "base/rand.h"
#include "tap.h"

static void random_bytes(struct rng *r, void *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)out)[i] = (unsigned char)rng_next(r);
}

TEST(sha256_gives_the_known_answers_whole_and_in_pieces)
{
    char hex[DIGEST_HEX], again[DIGEST_HEX];
    CHECK(digest_start());
    digest_sha256("abc", 3, hex);
    CHECK(text_is(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
    digest_sha256("", 0, hex);
    CHECK(text_is(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
    struct sha256 *h = sha256_new();
    for (const char *c = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"; *c; c++)
        sha256_add(h, c, 1);
    sha256_end(h, again);
    CHECK(text_is(again, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"));
}

TEST(keyed_hashes_depend_on_key_and_text)
{
    unsigned char a[32] = { 1 }, b[32] = { 2 };
    char one[DIGEST_HEX], two[DIGEST_HEX];
    digest_keyed(a, "key", one);
    digest_keyed(a, "key", two);
    CHECK(text_is(one, two) && strlen(one) == 64);
    digest_keyed(b, "key", two);
    CHECK(!text_is(one, two));
    digest_keyed(a, "kez", two);
    CHECK(!text_is(one, two));
}

TEST(hex_and_base64_come_back_and_garbage_does_not)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct rng r = { 5 };
    for (size_t n = 0; n < 60; n++) {
        unsigned char bytes[60], back[60];
        char hex[121];
        AUTO(str_done) struct str text = { 0 };
        struct slice out;
        random_bytes(&r, bytes, n);
        hex_text(bytes, n, hex);
        CHECK(strlen(hex) == 2 * n && hex_parse(hex, back, n) && memcmp(bytes, back, n) == 0 && !hex_parse(hex, back, n + 1));
        str_text(&text, "> ");
        base64_text(&text, bytes, n);
        CHECK(text.len == strlen(text.at) && base64_parse((struct slice){ text.at + 2, text.len - 2 }, mem, &out) && out.len == n && memcmp(out.at, bytes, n) == 0);
    }
    static const char *const bad[] = { "a", "ab", "abc", "abcde", "ab==cd", "ab=c", "a===", "ab!d", "abc\n", " abc", "YWI", "YW==YW==", "YR==", "aGVs\xffxyz" };
    struct slice out;
    char room[4];
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(!base64_parse(SLICE(bad[i]), mem, &out));
    CHECK(!hex_parse("0g", room, 1) && !hex_parse("0", room, 1) && !hex_parse("00 ", room, 1) && hex_parse("aF", room, 1) && room[0] == (char)0xaf);
}

TEST(secrets_have_their_length_and_all_their_chance)
{
    unsigned char bytes[32] = { 0 };
    char text[SECRET_TEXT], other[SECRET_TEXT];
    secret_make(bytes, "ak_", text);
    CHECK(text_is(text, "ak_0000000000000000000000000000000000000000000"));
    memset(bytes, 0xff, sizeof bytes);
    secret_make(bytes, "ak_", text);
    CHECK(strlen(text) == 46 && text_starts(text, "ak_"));
    for (size_t bit = 0; bit < 256; bit++) {        /* no bit is lost */
        memset(bytes, 0xff, sizeof bytes);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        secret_make(bytes, "ak_", other);
        CHECK(!secret_same(text, other));
    }
    CHECK(secret_same("abc", "abc") && !secret_same("abc", "abd") && !secret_same("abc", "ab") && !secret_same("", "a") && secret_same("", ""));
}

TEST(a_sealed_box_opens_only_whole_with_its_key_and_context)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str box = { 0 };
    unsigned char key[32] = { 7 }, wrong[32] = { 8 }, nonce[24] = { 9 };
    struct slice out = { 0 };
    seal(key, nonce, "prj-1/HF_TOKEN", SLICE("hunter2"), &box);
    CHECK(box.len == 24 + 7 + 16 && !memmem(box.at, box.len, "hunter2", 7));
    CHECK(unseal(key, "prj-1/HF_TOKEN", (struct slice){ box.at, box.len }, mem, &out) && out.len == 7 && text_is(out.at, "hunter2"));
    CHECK(!unseal(wrong, "prj-1/HF_TOKEN", (struct slice){ box.at, box.len }, mem, &out));
    CHECK(!unseal(key, "prj-2/HF_TOKEN", (struct slice){ box.at, box.len }, mem, &out));    /* a row moved to another project */
    for (size_t i = 0; i < box.len; i++) {
        CHECK(!unseal(key, "prj-1/HF_TOKEN", (struct slice){ box.at, i }, mem, &out));
        box.at[i] ^= 1;
        CHECK(!unseal(key, "prj-1/HF_TOKEN", (struct slice){ box.at, box.len }, mem, &out));
        box.at[i] ^= 1;
    }
    AUTO(str_done) struct str empty = { 0 };
    seal(key, nonce, "", (struct slice){ "", 0 }, &empty);
    CHECK(unseal(key, "", (struct slice){ empty.at, empty.len }, mem, &out) && out.len == 0);
}

TEST(passwords_verify_and_nothing_else_does)
{
    char stored[128], again[128];
    CHECK(password_hash("correct horse", stored) && password_hash("correct horse", again));
    CHECK(!text_is(stored, again) && text_starts(stored, "$argon2id$"));
    CHECK(password_verify(stored, "correct horse") && !password_verify(stored, "correct horsf"));
    CHECK(!password_verify("", "") && !password_verify("$argon2id$nonsense", "x"));
    fault_arm(1);
    CHECK(!password_hash("x", again));
    fault_arm(0);
}
