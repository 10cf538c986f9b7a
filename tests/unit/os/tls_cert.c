#include "pair.h"
#include "secure.h"
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <time.h>

TEST(bad_keys_certificates_pins_and_hosts_are_refused)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    struct tls *t = NULL;
    struct pair_pem a = pem_for("a", mem), b = pem_for("::1", mem);
    char *cert, *key;
    CHECK(strlen(a.pin) == 64 && !text_is(a.pin, b.pin));
    CHECK(!tls_server(&t, a.cert, b.key, &err) && err.rc == RC_BAD_INPUT);
    CHECK(!tls_server(&t, "nonsense", a.key, &err));
    CHECK(!tls_server(&t, a.cert, "nonsense", &err));
    CHECK(!tls_server(&t, NULL, NULL, &err));
    CHECK(!tls_client(&t, "nonsense", NULL, &err));
    CHECK(!tls_client(&t, NULL, "1234", &err) && strstr(err.text, "pin"));
    CHECK(!tls_client(&t, NULL, "zz", &err));
    static const char *const bad[] = { "a,DNS:b", "", "a b", "a\nb" };
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(!tls_cert_make(a.ca, a.ca_key, (struct texts){ (const char **)&bad[i], 1 }, mem, &cert, &key, &err)
              && strstr(err.text, "host name"));
    CHECK(!tls_cert_make(a.ca, b.ca_key, (struct texts){ 0 }, mem, &cert, &key, &err));
    CHECK(!tls_cert_make("nonsense", b.ca_key, (struct texts){ 0 }, mem, &cert, &key, &err));
    CHECK(!t);
}

static X509 *parse(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    return cert;
}

static time_t in_days(int days) { return time(NULL) + (time_t)days * 86400; }

TEST(a_certificate_names_its_hosts_and_the_loopback_and_the_authority_signed_it)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct pair_pem p = pem_for("cloud.example", mem);
    X509 *cert = parse(p.cert), *ca = parse(p.ca);
    CHECK(X509_check_host(cert, "cloud.example", 0, 0, NULL) == 1);
    CHECK(X509_check_host(cert, "localhost", 0, 0, NULL) == 1);
    CHECK(X509_check_ip_asc(cert, "127.0.0.1", 0) == 1 && X509_check_ip_asc(cert, "::1", 0) == 1);
    CHECK(X509_check_host(cert, "other.example", 0, 0, NULL) == 0);
    CHECK(X509_check_ca(cert) == 0 && X509_check_ca(ca) == 1);
    CHECK(X509_check_issued(ca, cert) == X509_V_OK && X509_verify(cert, X509_get0_pubkey(ca)) == 1);
    time_t soon = in_days(80), late = in_days(100), very_late = in_days(19 * 365);
    CHECK(X509_cmp_time(X509_get0_notAfter(cert), &soon) > 0 && X509_cmp_time(X509_get0_notAfter(cert), &late) < 0);
    CHECK(X509_cmp_time(X509_get0_notAfter(ca), &very_late) > 0);
    CHECK(X509_cmp_current_time(X509_get0_notBefore(cert)) < 0 && X509_cmp_current_time(X509_get0_notBefore(ca)) < 0);
    EVP_PKEY *public = X509_get0_pubkey(cert);
    CHECK(EVP_PKEY_get_base_id(public) == EVP_PKEY_EC && EVP_PKEY_get_bits(public) == 256);
    X509_free(cert);
    X509_free(ca);
}

TEST(a_certificate_holds_for_its_names_its_key_and_its_authority_only)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct pair_pem p = pem_for("cloud.example", mem), q = pem_for("cloud.example", mem);
    const char *same[] = { "cloud.example", "cloud.example", "localhost" }, *more[] = { "cloud.example", "10.0.0.7" }, *other[] = { "a.example" };
    CHECK(tls_cert_holds(p.cert, p.key, p.ca, (struct texts){ same, 1 }));
    CHECK(tls_cert_holds(p.cert, p.key, p.ca, (struct texts){ same, 3 }));
    CHECK(!tls_cert_holds(p.cert, p.key, p.ca, (struct texts){ more, 2 }));
    CHECK(!tls_cert_holds(p.cert, p.key, p.ca, (struct texts){ other, 1 }));
    CHECK(!tls_cert_holds(p.cert, p.key, p.ca, (struct texts){ 0 }));
    CHECK(!tls_cert_holds(p.cert, q.key, p.ca, (struct texts){ same, 1 }));
    CHECK(!tls_cert_holds(p.cert, p.key, q.ca, (struct texts){ same, 1 }));
    CHECK(!tls_cert_holds("", p.key, p.ca, (struct texts){ same, 1 }) && !tls_cert_holds(p.cert, NULL, p.ca, (struct texts){ same, 1 }));
}

TEST(only_addresses_of_this_very_machine_are_loopback)
{
    static const char *const yes[] = { "127.0.0.1:80", "127.1.2.3:80", "[::1]:80", "localhost:6640", "localhost", "127.0.0.1", "unix:/run/x" },
                      *const no[] = { "127.evil.example:80", "127.0.0.1.evil.example:80", "localhost.evil.example:80", "0.0.0.0:80", "[::]:80",
                                      "10.0.0.1:80", "[::ffff:10.0.0.1]:80", "", ":80", "head:80", "128.0.0.1:80", "127.0.0:80" };
    for (size_t i = 0; i < COUNT(yes); i++)
        CHECK(address_is_loopback(yes[i]));
    for (size_t i = 0; i < COUNT(no); i++)
        CHECK(!address_is_loopback(no[i]));
}
