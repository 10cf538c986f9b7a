/* digest.h - hashes, sealed boxes and secrets as text. libsodium does the work. */
#pragma once
#include "base/err.h"
#include "base/str.h"

enum { DIGEST_BYTES = 32, DIGEST_HEX = 65, MAC_HEX = 33, SECRET_TEXT = 64 };

bool digest_start(void);                                            /* once, before anything here; sodium_init */
void digest_sha256(const void *at, size_t n, char hex[static DIGEST_HEX]);
struct sha256;                                                      /* for files and streams */
struct sha256 *sha256_new(void);
void sha256_add(struct sha256 *h, const void *at, size_t n);
void sha256_end(struct sha256 *h, char hex[static DIGEST_HEX]);     /* frees h */
bool digest_equal(const char *a, const char *b);                      /* of two hex texts, in a time that tells nothing */
void digest_keyed(const unsigned char key[static 32], const char *text, char hex[static DIGEST_HEX]);   /* keyed BLAKE2b: how API keys are stored */
void digest_mac(const unsigned char key[static 32], const void *at, size_t n, char hex[static MAC_HEX]);     /* keyed BLAKE2b of 16 bytes: links of a chain */
void hex_text(const void *at, size_t n, char *out);                 /* 2n + 1 bytes */
bool hex_parse(const char *hex, void *out, size_t n);
void base64_text(struct str *out, const void *at, size_t n);
MUST_CHECK bool base64_parse(struct slice in, struct arena *mem, struct slice *out);
/* A new secret: prefix + 43 letters of base62 from 32 random bytes, e.g. ak_..., and back to constant-time compare. */
void secret_make(const unsigned char random[static 32], const char *prefix, char out[static SECRET_TEXT]);
bool secret_same(const char *a, const char *b);
/* Sealing: XChaCha20-Poly1305 with the master key, bound to a context (project and name), so that rows cannot be swapped. */
void seal(const unsigned char key[static 32], const unsigned char nonce[static 24], const char *context, struct slice plain, struct str *out);
MUST_CHECK bool unseal(const unsigned char key[static 32], const char *context, struct slice sealed, struct arena *mem, struct slice *out);
/* argon2id. Slow on purpose (about 0.1 s, 64 MiB): never on a loop or the writer. */
MUST_CHECK bool password_hash(const char *password, char out[static 128]);
bool password_verify(const char *stored, const char *password);
