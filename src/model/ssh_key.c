/* ssh_key.c - a public key is taken apart before it is kept or put into a file that lets people in: the type named before it is the type inside,
 * each part has the size that the type asks for, and nothing follows. */
#include "model/ssh_key.h"
#include "base/str.h"
#include "wire/digest.h"
#include <stdio.h>

enum { COMMENT_MOST = 128, RSA_LEAST = 256, RSA_MOST = 2048, APP_MOST = 256 };   /* RSA: bytes of the modulus */

/* parts: c the curve's name, e an exponent, n a modulus, a the application of a hardware key, else a size in bytes. */
static const struct kind { const char *type, *parts, *curve; size_t point; } kinds[] = {
    { "ssh-ed25519", "p", "", 32 },
    { "ssh-rsa", "en", "", 0 },
    { "ecdsa-sha2-nistp256", "cp", "nistp256", 65 },
    { "ecdsa-sha2-nistp384", "cp", "nistp384", 97 },
    { "ecdsa-sha2-nistp521", "cp", "nistp521", 133 },
    { "sk-ssh-ed25519@openssh.com", "pa", "", 32 },
    { "sk-ecdsa-sha2-nistp256@openssh.com", "cpa", "nistp256", 65 },
};

static bool take(struct slice *blob, struct slice *out)
{
    const unsigned char *at = (const unsigned char *)blob->at;
    if (blob->len < 4)
        return false;
    size_t n = (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
    if (n > blob->len - 4)
        return false;
    *out = (struct slice){ blob->at + 4, n };
    *blob = (struct slice){ blob->at + 4 + n, blob->len - 4 - n };
    return true;
}

static bool is(struct slice s, const char *text) { return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0; }

static bool modulus_good(struct slice n)
{
    if (n.len && n.at[0] == 0) /* a number whose first bit is set has a zero before it */
        n.at++, n.len--;
    return n.len >= RSA_LEAST && n.len <= RSA_MOST && n.at[0] != 0;
}

static bool part_good(const struct kind *k, char what, struct slice s)
{
    switch (what) {
    case 'c': return is(s, k->curve);
    case 'p': return s.len == k->point;
    case 'e': return s.len >= 1 && s.len <= 8 && !(s.at[0] & 0x80);
    case 'n': return modulus_good(s);
    default: return s.len >= 1 && s.len <= APP_MOST;
    }
}

static bool inside_good(const struct kind *k, struct slice blob)
{
    struct slice s;
    if (!take(&blob, &s) || !is(s, k->type))
        return false;
    for (const char *p = k->parts; *p; p++)
        if (!take(&blob, &s) || !part_good(k, *p, s))
            return false;
    return blob.len == 0;
}

static const char *comment_of(const char *at, struct arena *mem)
{
    char out[COMMENT_MOST + 1];
    size_t n = 0;
    for (at += strspn(at, " \t"); *at && n < COMMENT_MOST; at++)
        out[n++] = *at > ' ' && *at < 0x7f ? *at : *at == ' ' ? ' ' : '?';
    while (n && out[n - 1] == ' ')
        n--;
    return arena_bytes(mem, out, n);
}

bool ssh_key_parse(const char *line, struct arena *mem, const char **settled, struct err *err)
{
    size_t all = strcspn(line, "\r\n");
    if (strlen(line) > SSH_KEY_TEXT || line[all + strspn(line + all, "\r\n")])
        return err_set(err, RC_BAD_INPUT, "a public key is one line of a .pub file, and shorter than 16 KB");
    const char *text = arena_bytes(mem, line, all);
    text += strspn(text, " \t");
    size_t n = strcspn(text, " \t");
    const struct kind *k = NULL;
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (strlen(kinds[i].type) == n && memcmp(kinds[i].type, text, n) == 0)
            k = &kinds[i];
    if (!*text)
        return err_set(err, RC_BAD_INPUT, "there is no public key in it; give the line of a .pub file");
    if (!k)
        return err_set(err, RC_BAD_INPUT,
                       "'%.40s' is not a public key of OpenSSH; give the line of a .pub file that begins with ssh-ed25519, ecdsa-sha2-..., ssh-rsa or sk-..., without options",
                       text);
    const char *body = text + n + strspn(text + n, " \t");
    struct slice coded = { body, strcspn(body, " \t") }, blob;
    if (!base64_parse(coded, mem, &blob) || !inside_good(k, blob))
        return err_set(err, RC_BAD_INPUT, "this is not a whole %s key (of RSA, 2048 to 16384 bits); copy the line of the .pub file as it is", k->type);
    AUTO(str_done) struct str canon = { 0 };
    base64_text(&canon, blob.at, blob.len);
    const char *comment = comment_of(body + coded.len, mem);
    *settled = arena_printf(mem, "%s %s%s%s", k->type, canon.at, *comment ? " " : "", comment);
    return true;
}

const char *ssh_key_bare(const char *settled, struct arena *mem, const char **comment)
{
    size_t type = strcspn(settled, " "), n = settled[type] ? type + 1 + strcspn(settled + type + 1, " ") : type;
    *comment = settled[n] ? settled + n + 1 : "";
    return arena_bytes(mem, settled, n);
}

const char *ssh_key_fingerprint(const char *settled, struct arena *mem)
{
    const char *body = settled + strcspn(settled, " "), *at = *body ? body + 1 : body;
    struct slice blob;
    char hex[DIGEST_HEX];
    unsigned char raw[DIGEST_BYTES];
    if (!base64_parse((struct slice){ at, strcspn(at, " ") }, mem, &blob))
        return "";
    digest_sha256(blob.at, blob.len, hex);
    AUTO(str_done) struct str text = { 0 };
    if (!hex_parse(hex, raw, sizeof raw))
        return "";
    base64_text(&text, raw, sizeof raw);
    return arena_printf(mem, "SHA256:%.*s", (int)strcspn(text.at, "="), text.at);
}
