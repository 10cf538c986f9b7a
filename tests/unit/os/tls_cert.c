#include "pair.h"
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <time.h>

TEST(bad_keys_certificates_pins_and_hosts_are_refused)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    struct tls *t = NULL;
    char *cert, *key, *sha, *cert2, *key2, *sha2;
    CHECK(tls_self_signed("a", mem, &cert, &key, &sha, &err));
    CHECK(tls_self_signed("::1", mem, &cert2, &key2, &sha2, &err));
    CHECK(strlen(sha) == 64 && !text_is(sha, sha2));
    CHECK(!tls_server(&t, cert, key2, &err) && err.rc == RC_BAD_INPUT);
    CHECK(!tls_server(&t, "nonsense", key, &err));
    CHECK(!tls_server(&t, cert, "nonsense", &err));
    CHECK(!tls_server(&t, NULL, NULL, &err));
    CHECK(!tls_client(&t, "nonsense", NULL, &err));
    CHECK(!tls_client(&t, NULL, "1234", &err) && strstr(err.text, "pin"));
    CHECK(!tls_client(&t, NULL, "zz", &err));
    CHECK(!tls_self_signed("a,DNS:b", mem, &cert, &key, &sha, &err));
    CHECK(!tls_self_signed("", mem, &cert, &key, &sha, &err));
    CHECK(!t);
}

TEST(a_certificate_made_here_names_its_host_and_the_loopback_for_ten_years)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    char *pem, *key, *sha;
    CHECK(tls_self_signed("cloud.example", mem, &pem, &key, &sha, &err));
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    CHECK(X509_check_host(cert, "cloud.example", 0, 0, NULL) == 1);
    CHECK(X509_check_host(cert, "localhost", 0, 0, NULL) == 1);
    CHECK(X509_check_ip_asc(cert, "127.0.0.1", 0) == 1);
    CHECK(X509_check_host(cert, "other.example", 0, 0, NULL) == 0);
    CHECK(X509_check_ca(cert) == 0);
    time_t later = time(NULL) + (time_t)3650 * 86400;
    CHECK(X509_cmp_time(X509_get0_notAfter(cert), &later) > 0);
    CHECK(X509_cmp_current_time(X509_get0_notBefore(cert)) < 0);
    EVP_PKEY *public = X509_get0_pubkey(cert);
    CHECK(EVP_PKEY_get_base_id(public) == EVP_PKEY_EC && EVP_PKEY_get_bits(public) == 256);
    X509_free(cert);
    BIO_free(bio);
}
