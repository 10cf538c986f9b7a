/* tls_cert.c - the cloud's own authority, and the certificates that it signs for its servers.
 *
 * Clients and agents know the authority by the SHA-256 of its certificate, which they get out of band
 * (the join token carries it); so every server of the cloud is known by one hash, and a server's own
 * certificate may be short-lived and made again at any time. Times are those of the real clock. */
#include "os/tls_internal.h"
#include <arpa/inet.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>

enum { CA_DAYS = 20 * 365 + 5, CERT_DAYS = 90, RENEW_DAYS = 30, DAY = 24 * 60 * 60, NAMES_MOST = 16 };

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

static X509 *cert_of(const char *pem)
{
    AUTO(bio_done) BIO *bio = BIO_new_mem_buf(pem ? pem : "", -1);
    return PEM_read_bio_X509(bio, NULL, NULL, NULL);
}

static EVP_PKEY *key_of(const char *pem)
{
    AUTO(bio_done) BIO *bio = BIO_new_mem_buf(pem ? pem : "", -1);
    return PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
}

bool tls_sha256(const char *cert_pem, char hex[static 65], struct err *err)
{
    AUTO(X509_free) X509 *cert = cert_of(cert_pem);
    return (cert && cert_sha256(cert, hex)) || tls_error(err, "the certificate");
}

static bool extend(X509 *cert, X509 *signer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, signer, cert, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = e && X509_add_ext(cert, e, -1) == 1;
    X509_EXTENSION_free(e);
    return ok;
}

bool host_is_ip(const char *name)
{
    unsigned char raw[16];
    return inet_pton(AF_INET, name, raw) == 1 || inet_pton(AF_INET6, name, raw) == 1;
}

static bool host_is_good(const char *host)
{
    size_t n = host ? strlen(host) : 0;
    return n && n < 254
        && strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:*") == n;
}

/* Those asked for, each once, and the loopback's. */
static bool all_names(struct texts asked, const char *out[static NAMES_MOST], size_t *count,
                      struct err *err)
{
    static const char *const always[] = { "localhost", "127.0.0.1", "::1" };
    size_t n = 0;
    for (size_t i = 0; i < asked.count + COUNT(always); i++) {
        const char *name = i < asked.count ? asked.at[i] : always[i - asked.count];
        bool known = false;
        if (!host_is_good(name))
            return err_set(err, RC_BAD_INPUT, "'%.60s' is not a host name or address",
                           name ? name : "");
        for (size_t k = 0; k < n; k++)
            known |= text_is(out[k], name);
        if (known)
            continue;
        if (n == NAMES_MOST)
            return err_set(err, RC_BAD_INPUT, "a certificate has at most %d names", NAMES_MOST);
        out[n++] = name;
    }
    *count = n;
    return true;
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

static bool call_it(X509 *cert, const char *what, const X509_NAME *by)
{
    X509_NAME *name = X509_get_subject_name(cert);
    return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)what, -1, -1, 0) == 1
        && X509_set_issuer_name(cert, by ? by : name) == 1;
}

static bool fill(X509 *cert, EVP_PKEY *key, int days)
{
    return X509_set_version(cert, X509_VERSION_3) == 1 && number_it(cert)
        && X509_gmtime_adj(X509_getm_notBefore(cert), -DAY)
        && X509_time_adj_ex(X509_getm_notAfter(cert), days, 0, NULL) && X509_set_pubkey(cert, key) == 1;
}

static char *cert_text(struct arena *mem, X509 *cert, X509 *by)
{
    AUTO(bio_done) BIO *bio = BIO_new(BIO_s_mem());
    char *at;
    if (!bio || PEM_write_bio_X509(bio, cert) != 1 || (by && PEM_write_bio_X509(bio, by) != 1))
        return NULL;
    long n = BIO_get_mem_data(bio, &at);
    return arena_bytes(mem, at, (size_t)n);
}

static char *key_text(struct arena *mem, EVP_PKEY *key)
{
    AUTO(bio_done) BIO *bio = BIO_new(BIO_s_mem());
    char *at;
    if (!bio || PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) != 1)
        return NULL;
    long n = BIO_get_mem_data(bio, &at);
    return arena_bytes(mem, at, (size_t)n);
}

bool tls_ca_make(struct arena *mem, char **cert_pem, char **key_pem, struct err *err)
{
    AUTO(EVP_PKEY_free) EVP_PKEY *key = EVP_EC_gen("P-256");
    AUTO(X509_free) X509 *ca = X509_new();
    char *cert = NULL, *secret = NULL;
    bool ok = key && ca && fill(ca, key, CA_DAYS) && call_it(ca, "arcus cloud authority", NULL)
        && extend(ca, ca, NID_basic_constraints, "critical,CA:TRUE,pathlen:0")
        && extend(ca, ca, NID_key_usage, "critical,keyCertSign")
        && extend(ca, ca, NID_subject_key_identifier, "hash") && X509_sign(ca, key, EVP_sha256()) > 0
        && (cert = cert_text(mem, ca, NULL)) && (secret = key_text(mem, key));
    if (!ok)
        return tls_error(err, "cannot make an authority");
    *cert_pem = cert;
    *key_pem = secret;
    return true;
}

static bool name_it(X509 *cert, X509 *ca, const char *const *names, size_t count)
{
    AUTO(str_done) struct str text = { 0 };
    for (size_t i = 0; i < count; i++)
        str_printf(&text, "%s%s:%s", i ? "," : "", host_is_ip(names[i]) ? "IP" : "DNS", names[i]);
    return extend(cert, ca, NID_subject_alt_name, text.at);
}

bool tls_cert_make(const char *ca_pem, const char *ca_key_pem, struct texts names,
                   struct arena *mem, char **cert_pem, char **key_pem, struct err *err)
{
    const char *all[NAMES_MOST];
    size_t count;
    if (!all_names(names, all, &count, err))
        return false;
    AUTO(X509_free) X509 *ca = cert_of(ca_pem);
    AUTO(EVP_PKEY_free) EVP_PKEY *ca_key = key_of(ca_key_pem);
    if (!ca || !ca_key || X509_check_private_key(ca, ca_key) != 1)
        return tls_error(err, "the authority's certificate and key");
    AUTO(EVP_PKEY_free) EVP_PKEY *key = EVP_EC_gen("P-256");
    AUTO(X509_free) X509 *cert = X509_new();
    char *text = NULL, *secret = NULL;
    bool ok = key && cert && fill(cert, key, CERT_DAYS)
        && call_it(cert, "arcus", X509_get_subject_name(ca)) && name_it(cert, ca, all, count)
        && extend(cert, ca, NID_basic_constraints, "critical,CA:FALSE")
        && extend(cert, ca, NID_key_usage, "critical,digitalSignature")
        && extend(cert, ca, NID_ext_key_usage, "serverAuth")
        && extend(cert, ca, NID_authority_key_identifier, "keyid:always")
        && X509_sign(cert, ca_key, EVP_sha256()) > 0 && (text = cert_text(mem, cert, ca))
        && (secret = key_text(mem, key));
    if (!ok)
        return tls_error(err, "cannot make a certificate");
    *cert_pem = text;
    *key_pem = secret;
    return true;
}

static bool has_names(X509 *cert, const char *const *names, size_t count)
{
    GENERAL_NAMES *list = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    bool ok = list && (size_t)sk_GENERAL_NAME_num(list) == count;
    GENERAL_NAMES_free(list);
    for (size_t i = 0; ok && i < count; i++)
        ok = host_is_ip(names[i]) ? X509_check_ip_asc(cert, names[i], 0) == 1
                             : X509_check_host(cert, names[i], 0, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, NULL) == 1;
    return ok;
}

bool tls_cert_holds(const char *cert_pem, const char *key_pem, const char *ca_pem,
                    struct texts names)
{
    const char *all[NAMES_MOST];
    size_t count;
    struct err ignored;
    int days = 0, seconds = 0;
    AUTO(X509_free) X509 *cert = cert_of(cert_pem);
    AUTO(X509_free) X509 *ca = cert_of(ca_pem);
    AUTO(EVP_PKEY_free) EVP_PKEY *key = key_of(key_pem);
    bool ok = cert && ca && key && all_names(names, all, &count, &ignored)
        && X509_check_private_key(cert, key) == 1 && X509_verify(cert, X509_get0_pubkey(ca)) == 1
        && has_names(cert, all, count)
        && ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(cert)) == 1 && days >= RENEW_DAYS
        && X509_cmp_current_time(X509_get0_notBefore(cert)) < 0;
    tls_error(&ignored, "");            /* what OpenSSL noted on the way is nobody's */
    return ok;
}
