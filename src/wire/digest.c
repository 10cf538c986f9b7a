/* digest.c - libsodium behind our own words. Nothing here reads a clock or makes chance: random bytes are handed in, so
 * that a simulated run can be replayed. Secrets are wiped from the stack where they passed through. */
#include "wire/digest.h"
#include "base/fault.h"
#include <sodium.h>
#include <stdlib.h>

enum {
    NONCE = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
    TAG = crypto_aead_xchacha20poly1305_ietf_ABYTES
};
_Static_assert(DIGEST_BYTES == crypto_hash_sha256_BYTES && NONCE == 24,
               "the sizes in the header are libsodium's");
_Static_assert(crypto_pwhash_STRBYTES <= 128, "password_hash's buffer");

struct sha256 { crypto_hash_sha256_state state; };

bool digest_start(void) { return sodium_init() >= 0; }

/* Of hashes, which are no secrets; and the letters lie in one line of the cache. */
void hex_text(const void *at, size_t n, char *out)
{
    const unsigned char *from = at;
    for (size_t i = 0; i < n; i++) {
        *out++ = "0123456789abcdef"[from[i] >> 4];
        *out++ = "0123456789abcdef"[from[i] & 15];
    }
    *out = 0;
}

bool hex_parse(const char *hex, void *out, size_t n)
{
    size_t got;
    return strlen(hex) == 2 * n && sodium_hex2bin(out, n, hex, 2 * n, NULL, &got, NULL) == 0
           && got == n;
}

void digest_sha256(const void *at, size_t n, char hex[static DIGEST_HEX])
{
    unsigned char hash[DIGEST_BYTES];
    crypto_hash_sha256(hash, at, n);
    hex_text(hash, sizeof hash, hex);
}

struct sha256 *sha256_new(void)
{
    struct sha256 *h = malloc(sizeof *h);
    if (!h)
        abort();
    crypto_hash_sha256_init(&h->state);
    return h;
}

void sha256_add(struct sha256 *h, const void *at, size_t n)
{
    crypto_hash_sha256_update(&h->state, at, n);
}

void sha256_end(struct sha256 *h, char hex[static DIGEST_HEX])
{
    unsigned char hash[DIGEST_BYTES];
    crypto_hash_sha256_final(&h->state, hash);
    hex_text(hash, sizeof hash, hex);
    free(h);
}

bool digest_equal(const char *a, const char *b)
{
    return strlen(a) == DIGEST_HEX - 1 && strlen(b) == DIGEST_HEX - 1 && sodium_memcmp(a, b, DIGEST_HEX - 1) == 0;
}

void digest_mac(const unsigned char key[static 32], const void *at, size_t n, char hex[static MAC_HEX])
{
    unsigned char mac[MAC_HEX / 2];
    crypto_generichash(mac, sizeof mac, at, n, key, 32);
    hex_text(mac, sizeof mac, hex);
}

void digest_keyed(const unsigned char key[static 32], const char *text, char hex[static DIGEST_HEX])
{
    unsigned char hash[DIGEST_BYTES];
    crypto_generichash(hash, sizeof hash, (const unsigned char *)text, strlen(text), key, 32);
    hex_text(hash, sizeof hash, hex);
}

void base64_text(struct str *out, const void *at, size_t n)
{
    size_t room = sodium_base64_ENCODED_LEN(n, sodium_base64_VARIANT_ORIGINAL);
    sodium_bin2base64(str_grow(out, room), room, at, n, sodium_base64_VARIANT_ORIGINAL);
    out->len += room - 1;
}

bool base64_parse(struct slice in, struct arena *mem, struct slice *out)
{
    size_t room = in.len / 4 * 3, n;
    for (size_t i = 0; i < in.len; i++)
        if (in.at[i] & 0x80)            /* libsodium 1.0.18 takes some of these for letters */
            return false;
    unsigned char *bytes = arena_take(mem, room + 1, 1);
    if (sodium_base642bin(bytes, room, in.at, in.len, NULL, &n, NULL,
                          sodium_base64_VARIANT_ORIGINAL)
        != 0)
        return false;
    *out = (struct slice){ (const char *)bytes, n };
    return true;
}

void secret_make(const unsigned char random[static 32], const char *prefix,
                 char out[static SECRET_TEXT])
{
    static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    enum { LETTERS = 43 };              /* 62^43 is just above 2^256 */
    unsigned char n[32];
    size_t skip = strlen(prefix);
    assert(skip + LETTERS < SECRET_TEXT);
    memcpy(n, random, sizeof n);
    memcpy(out, prefix, skip);
    for (size_t i = LETTERS; i-- > 0;) {    /* long division by 62, the last letter first */
        unsigned rest = 0;
        for (size_t j = 0; j < sizeof n; j++) {
            rest = rest << 8 | n[j];
            n[j] = (unsigned char)(rest / 62);
            rest %= 62;
        }
        out[skip + i] = letters[rest];
    }
    out[skip + LETTERS] = 0;
    sodium_memzero(n, sizeof n);
}

bool secret_same(const char *a, const char *b)
{
    size_t n = strlen(a);               /* the length of a key is no secret */
    return n == strlen(b) && sodium_memcmp(a, b, n) == 0;
}

void seal(const unsigned char key[static 32], const unsigned char nonce[static 24],
          const char *context, struct slice plain, struct str *out)
{
    unsigned long long n;
    str_put(out, nonce, NONCE);
    crypto_aead_xchacha20poly1305_ietf_encrypt(
        (unsigned char *)str_grow(out, plain.len + TAG), &n, (const unsigned char *)plain.at,
        plain.len, (const unsigned char *)context, strlen(context), NULL, nonce, key);
    out->len += n;
    out->at[out->len] = 0;
}

bool unseal(const unsigned char key[static 32], const char *context, struct slice sealed,
            struct arena *mem, struct slice *out)
{
    const unsigned char *at = (const unsigned char *)sealed.at;
    unsigned long long n;
    if (sealed.len < NONCE + TAG)
        return false;
    unsigned char *plain = arena_take(mem, sealed.len - NONCE - TAG + 1, 1);
    if (crypto_aead_xchacha20poly1305_ietf_decrypt(plain, &n, NULL, at + NONCE, sealed.len - NONCE,
                                                   (const unsigned char *)context, strlen(context),
                                                   at, key)
        != 0)
        return false;
    plain[n] = 0;
    *out = (struct slice){ (const char *)plain, n };
    return true;
}

bool password_hash(const char *password, char out[static 128])
{
    return !fault("password_hash")
        && crypto_pwhash_str(out, password, strlen(password), crypto_pwhash_OPSLIMIT_INTERACTIVE,
                             crypto_pwhash_MEMLIMIT_INTERACTIVE) == 0;
}

bool password_verify(const char *stored, const char *password)
{
    return crypto_pwhash_str_verify(stored, password, strlen(password)) == 0;
}
