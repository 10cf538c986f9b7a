/* tls_cert.c - a self-signed certificate for a server that was given none. Clients know it by
 * its SHA-256, which is passed to them out of band; so it names no CA and lives ten years. */
#include "os/tls_internal.h"
#include <arpa/inet.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>

enum { YEARS = 10, DAY = 24 * 60 * 60 };

AUTO_FN(X509 *, X509_free)
AUTO_FN(EVP_PKEY *, EVP_PKEY_free)
static void bio_done(BIO *b) { BIO_free(b); }
AUTO_FN(BIO *, bio_done)

bool cert_sha256(const X509 *cert, char hex[static 65])
{
    unsigned char raw[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (!cert || X509_digest(cert, EVP_sha256(), raw, &n) != 1 || n != 32)
        return false;
    for (unsigned i = 0; i < n; i++)
        sprintf(hex + 2 * i, "%02x", raw[i]);
    return true;
}

static bool extend(X509 *cert, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, cert, cert, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = e && X509_add_ext(cert, e, -1) == 1;
    X509_EXTENSION_free(e);
    return ok;
}

static bool name_it(X509 *cert, const char *host)
{
    unsigned char raw[16];
    char names[512];
    bool ip = inet_pton(AF_INET, host, raw) == 1 || inet_pton(AF_INET6, host, raw) == 1;
    snprintf(names, sizeof names, "%s:%s,DNS:localhost,IP:127.0.0.1,IP:::1", ip ? "IP" : "DNS",
             host);
    X509_NAME *name = X509_get_subject_name(cert);
    /* Longer than 64 bytes is too long for this field, and nobody reads it: the names that count
     * follow. */
    return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"arcus", -1,
                                      -1, 0) == 1
        && X509_set_issuer_name(cert, name) == 1 && extend(cert, NID_subject_alt_name, names);
}

static bool number_it(X509 *cert)
{
    unsigned char raw[16];
    if (RAND_bytes(raw, sizeof raw) != 1)
        return false;
    raw[0] = (raw[0] & 0x7f) | 0x40;    /* positive, and always of the same length */
    BIGNUM *n = BN_bin2bn(raw, sizeof raw, NULL);
    bool ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));
    BN_free(n);
    return ok;
}

static bool fill(X509 *cert, EVP_PKEY *key, const char *host)
{
    return X509_set_version(cert, X509_VERSION_3) == 1 && number_it(cert)
        && X509_gmtime_adj(X509_getm_notBefore(cert), -DAY)
        && X509_time_adj_ex(X509_getm_notAfter(cert), YEARS * 365 + 2, 0, NULL)
        && X509_set_pubkey(cert, key) == 1 && name_it(cert, host)
        && extend(cert, NID_basic_constraints, "critical,CA:FALSE")
        && extend(cert, NID_key_usage, "critical,digitalSignature")
        && extend(cert, NID_ext_key_usage, "serverAuth")
        && X509_sign(cert, key, EVP_sha256()) > 0;
}

static char *bio_text(BIO *bio, struct arena *mem)
{
    char *at;
    long n = BIO_get_mem_data(bio, &at);
    return arena_bytes(mem, at, (size_t)n);
}

static bool host_is_good(const char *host)
{
    size_t n = host ? strlen(host) : 0;
    return n && n < 254
        && strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:*") == n;
}

bool tls_self_signed(const char *host, struct arena *mem, char **cert_pem, char **key_pem,
                     char **sha256_hex, struct err *err)
{
    if (!host_is_good(host))
        return err_set(err, RC_BAD_INPUT, "'%.60s' is not a host name or address",
                       host ? host : "");
    AUTO(EVP_PKEY_free) EVP_PKEY *key = EVP_EC_gen("P-256");
    AUTO(X509_free) X509 *cert = X509_new();
    AUTO(bio_done) BIO *cert_bio = BIO_new(BIO_s_mem());
    AUTO(bio_done) BIO *key_bio = BIO_new(BIO_s_mem());
    char hex[65];
    if (!key || !cert || !cert_bio || !key_bio || !fill(cert, key, host)
        || PEM_write_bio_X509(cert_bio, cert) != 1 || !cert_sha256(cert, hex)
        || PEM_write_bio_PrivateKey(key_bio, key, NULL, NULL, 0, NULL, NULL) != 1)
        return tls_error(err, "cannot make a certificate");
    *cert_pem = bio_text(cert_bio, mem);
    *key_pem = bio_text(key_bio, mem);
    *sha256_hex = arena_text(mem, hex);
    return true;
}
