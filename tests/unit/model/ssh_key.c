/* ssh_key.c - public keys are taken apart before they let anybody in. */
#include "model/ssh_key.h"
#include "tap.h"
#include "wire/digest.h"

static void put(struct str *out, const void *at, size_t n)
{
    const char head[4] = { (char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n };
    str_put(out, head, 4);
    str_put(out, at, n);
}

/* A key of these parts: sizes of them, filled with a byte that is no zero; a text part is its own. */
static const char *key(struct arena *mem, const char *outside, const char *inside, const char *curve, const size_t *sizes, size_t count, const char *behind)
{
    AUTO(str_done) struct str blob = { 0 };
    AUTO(str_done) struct str text = { 0 };
    char part[4096];
    memset(part, 0x55, sizeof part);
    put(&blob, inside, strlen(inside));
    if (curve)
        put(&blob, curve, strlen(curve));
    for (size_t i = 0; i < count; i++)
        put(&blob, part, sizes[i]);
    str_text(&blob, behind);
    base64_text(&text, blob.at, blob.len);
    return arena_printf(mem, "%s %s", outside, text.at);
}
#define SIZES(...) (const size_t[]){ __VA_ARGS__ }, COUNT(((const size_t[]){ __VA_ARGS__ }))

static bool good(const char *line)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    const char *settled = NULL, *again = NULL;
    bool ok = ssh_key_parse(line, mem, &settled, &err);
    CHECK(ok ? ssh_key_parse(settled, mem, &again, &err) && text_is(settled, again) : err.rc == RC_BAD_INPUT && !settled);
    return ok;
}

TEST(every_kind_of_key_is_taken_when_it_is_whole)
{
    AUTO(arena_free) struct arena *m = arena_new();
    CHECK(good(key(m, "ssh-ed25519", "ssh-ed25519", NULL, SIZES(32), "")));
    CHECK(good(key(m, "ssh-rsa", "ssh-rsa", NULL, SIZES(3, 256), "")));
    CHECK(good(key(m, "ssh-rsa", "ssh-rsa", NULL, SIZES(1, 2048), "")));
    CHECK(good(key(m, "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256", "nistp256", SIZES(65), "")));
    CHECK(good(key(m, "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp384", "nistp384", SIZES(97), "")));
    CHECK(good(key(m, "ecdsa-sha2-nistp521", "ecdsa-sha2-nistp521", "nistp521", SIZES(133), "")));
    CHECK(good(key(m, "sk-ssh-ed25519@openssh.com", "sk-ssh-ed25519@openssh.com", NULL, SIZES(32, 4), "")));
    CHECK(good(key(m, "sk-ecdsa-sha2-nistp256@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com", "nistp256", SIZES(65, 4), "")));
}

TEST(a_key_is_what_it_says_to_the_last_byte)
{
    AUTO(arena_free) struct arena *m = arena_new();
    CHECK(!good(key(m, "ssh-ed25519", "ssh-rsa", NULL, SIZES(32), "")));
    CHECK(!good(key(m, "ssh-ed25519", "ssh-ed25519", NULL, SIZES(31), "")));
    CHECK(!good(key(m, "ssh-ed25519", "ssh-ed25519", NULL, SIZES(32), "x")));
    CHECK(!good(key(m, "ssh-ed25519", "ssh-ed25519", NULL, SIZES(32, 1), "")));
    CHECK(!good(key(m, "ssh-rsa", "ssh-rsa", NULL, SIZES(3, 128), "")));
    CHECK(!good(key(m, "ssh-rsa", "ssh-rsa", NULL, SIZES(3, 2049), "")));
    CHECK(!good(key(m, "ssh-rsa", "ssh-rsa", NULL, SIZES(9, 256), "")));
    CHECK(!good(key(m, "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256", "nistp384", SIZES(65), "")));
    CHECK(!good(key(m, "ssh-dss", "ssh-dss", NULL, SIZES(128, 20, 128, 128), "")));
    for (const char *const *p = (const char *const[]){ "", " ", "ssh-ed25519", "ssh-ed25519 ", "ssh-ed25519 ====", "ssh-ed25519 AAAA", "ssh-ed25519 !!!!",
                                                       "ssh-ed25519 /////w==", "# comment", "-----BEGIN OPENSSH PRIVATE KEY-----", NULL };
         *p; p++)
        CHECK(!good(*p));
    const char *settled;
    struct err err = { 0 };
    CHECK(!ssh_key_parse("\n", m, &settled, &err) && strstr(err.text, "there is no public key in it"));
}

TEST(nothing_can_come_along_with_a_key)
{
    AUTO(arena_free) struct arena *m = arena_new();
    struct err err = { 0 };
    const char *k = key(m, "ssh-ed25519", "ssh-ed25519", NULL, SIZES(32), ""), *settled = NULL;
    CHECK(!good(arena_printf(m, "command=\"id\" %s", k)));
    CHECK(!good(arena_printf(m, "no-pty,from=\"*\" %s", k)));
    CHECK(!good(arena_printf(m, "%s\n%s", k, k)));
    CHECK(!good(arena_printf(m, "%s a\nssh-rsa b", k)));
    CHECK(good(arena_printf(m, "%s ada\n", k)) && good(arena_printf(m, "  %s\r\n", k)));
    CHECK(ssh_key_parse(arena_printf(m, "%s \t ada \x1b[31m at\x7f home  ", k), m, &settled, &err));
    CHECK(text_is(settled, arena_printf(m, "%s ada ?[31m at? home", k)));
}

TEST(a_fingerprint_is_the_one_that_ssh_keygen_prints_and_the_comment_is_no_part_of_it)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    static const char bare[] = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINAFP4FVHFSQR5i8x2p0NXH8yArPvV+ue+K7UlRDjM3p";
    const char *comment;
    CHECK(text_is(ssh_key_bare(arena_printf(mem, "%s ada at home", bare), mem, &comment), bare) && text_is(comment, "ada at home"));
    CHECK(text_is(ssh_key_bare(bare, mem, &comment), bare) && text_is(comment, ""));
    CHECK(text_is(ssh_key_fingerprint(bare, mem), "SHA256:YLy0McLSJk+gO3KXaLEPVw1IgbQ5YNEvlDf5oh0oGDU") && text_is(ssh_key_fingerprint(arena_printf(mem, "%s ada", bare), mem), "SHA256:YLy0McLSJk+gO3KXaLEPVw1IgbQ5YNEvlDf5oh0oGDU"));
}
