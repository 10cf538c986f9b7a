/* real_tls.c - TLS 1.2 and above on a non-blocking socket, with OpenSSL.
 *
 * A client trusts what its CA signed for the server's name, or what the one certificate signed (or
 * is) whose SHA-256 it was given, or, given both, demands both. An authority that is pinned is the
 * cloud's own: whoever has a certificate of it is one of the cloud's servers, so the name that was
 * dialled does not matter. Certificates for a server that was given none are made in tls_cert.c. */
#include "os/tls_internal.h"
#include <ctype.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <stdlib.h>

struct tls {
    SSL_CTX *ctx;
    int holders;            /* the owner, and streams that have not begun with it yet */
    bool client, has_ca;
    char pin[65];           /* "" : none */
};

void tls_free(struct tls *t)
{
    if (!t || __atomic_sub_fetch(&t->holders, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    SSL_CTX_free(t->ctx);
    free(t);
}

struct tls *tls_keep(struct tls *t)
{
    __atomic_add_fetch(&t->holders, 1, __ATOMIC_RELAXED);
    return t;
}

bool tls_error(struct err *err, const char *what)
{
    unsigned long code = ERR_peek_error();
    const char *why = code ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return err_set(err, RC_BAD_INPUT, "%s: %s", what, why ? why : "not understood");
}

static struct tls *tls_new(const SSL_METHOD *method, bool client)
{
    struct tls *t = os_alloc(sizeof *t);
    t->client = client;
    t->holders = 1;
    t->ctx = SSL_CTX_new(method);
    if (!t->ctx)
        abort();
    SSL_CTX_set_min_proto_version(t->ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(t->ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(t->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
                                 | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(t->ctx, 1);      /* one read for a record's head and body */
    SSL_CTX_set_session_cache_mode(t->ctx, SSL_SESS_CACHE_OFF);     /* resuming is by tickets, which are the clients' to keep */
    SSL_CTX_set_num_tickets(t->ctx, 1);     /* of two, one is a copy of the session that stays for the life of the connection */
    return t;
}

static BIO *text_bio(const char *text) { return BIO_new_mem_buf(text ? text : "", -1); }

static bool use_chain(SSL_CTX *ctx, const char *pem)
{
    BIO *bio = text_bio(pem);
    X509 *leaf = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    bool ok = leaf && SSL_CTX_use_certificate(ctx, leaf) == 1;
    X509_free(leaf);
    for (X509 *more; ok && (more = PEM_read_bio_X509(bio, NULL, NULL, NULL));)
        ok = SSL_CTX_add0_chain_cert(ctx, more) == 1;
    BIO_free(bio);
    if (ok)
        ERR_clear_error();                  /* the end of the text is no error */
    return ok;
}

static bool use_key(SSL_CTX *ctx, const char *pem)
{
    BIO *bio = text_bio(pem);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    bool ok = key && SSL_CTX_use_PrivateKey(ctx, key) == 1;
    EVP_PKEY_free(key);
    BIO_free(bio);
    return ok;
}

static bool use_both(SSL_CTX *ctx, const char *cert_pem, const char *key_pem, struct err *err)
{
    SSL_CTX_clear_chain_certs(ctx);
    if (!use_chain(ctx, cert_pem))
        return tls_error(err, "the certificate");
    if (!use_key(ctx, key_pem) || SSL_CTX_check_private_key(ctx) != 1)
        return tls_error(err, "the certificate's key");
    return true;
}

bool tls_server(struct tls **out, const char *cert_pem, const char *key_pem, struct err *err)
{
    AUTO(tls_free) struct tls *t = tls_new(TLS_server_method(), false);
    if (!use_both(t->ctx, cert_pem, key_pem, err))
        return false;
    *out = TAKE(t);
    return true;
}

/* Tried on the side first, so that a bad pair leaves the good one where it is. */
bool tls_renew(struct tls *server, const char *cert_pem, const char *key_pem, struct err *err)
{
    AUTO(tls_free) struct tls *trial = NULL;
    return tls_server(&trial, cert_pem, key_pem, err) && use_both(server->ctx, cert_pem, key_pem, err);
}

static bool is_pinned(const struct tls *t, X509 *cert)
{
    char hex[65];
    return cert_sha256(cert, hex) && text_is(hex, t->pin);
}

/* The authority among what the server showed; what is pinned must have signed, not only be shown. */
static int check_signed(const struct tls *t, X509_STORE_CTX *store)
{
    STACK_OF(X509) *shown = X509_STORE_CTX_get0_untrusted(store);
    for (int i = 0; i < sk_X509_num(shown); i++) {
        X509 *ca = sk_X509_value(shown, i);
        if (!is_pinned(t, ca))
            continue;
        STACK_OF(X509) *roots = sk_X509_new_null();
        if (!roots || !sk_X509_push(roots, ca))
            abort();
        X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(store), X509_V_FLAG_PARTIAL_CHAIN);
        X509_STORE_CTX_set0_trusted_stack(store, roots);
        int ok = X509_verify_cert(store);
        X509_STORE_CTX_set0_trusted_stack(store, NULL);
        sk_X509_free(roots);
        return ok;
    }
    X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED);
    return 0;
}

static int check_peer(X509_STORE_CTX *store, void *arg)
{
    struct tls *t = arg;
    if (!*t->pin)
        return X509_verify_cert(store);
    if (t->has_ca && X509_verify_cert(store) != 1)
        return 0;
    if (is_pinned(t, X509_STORE_CTX_get0_cert(store)))
        return 1;
    if (!t->has_ca)
        return check_signed(t, store);
    STACK_OF(X509) *chain = X509_STORE_CTX_get0_chain(store);
    for (int i = 0; i < sk_X509_num(chain); i++)
        if (is_pinned(t, sk_X509_value(chain, i)))
            return 1;
    X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED);
    return 0;
}

static bool trust_ca(struct tls *t, const char *pem)
{
    BIO *bio = text_bio(pem);
    X509_STORE *store = SSL_CTX_get_cert_store(t->ctx);
    int count = 0;
    for (X509 *ca; (ca = PEM_read_bio_X509(bio, NULL, NULL, NULL)); X509_free(ca))
        count += X509_STORE_add_cert(store, ca) == 1;
    BIO_free(bio);
    ERR_clear_error();
    /* a self-signed one may be trusted as it is */
    X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
    return count > 0;
}

static bool pin_copy(struct tls *t, const char *pin)
{
    size_t n = 0;
    for (; *pin; pin++) {
        if (*pin == ':')
            continue;
        if (!isxdigit((unsigned char)*pin) || n == 64)
            return false;
        t->pin[n++] = (char)tolower((unsigned char)*pin);
    }
    return n == 64;
}

bool tls_client(struct tls **out, const char *ca_pem, const char *pin_sha256, struct err *err)
{
    AUTO(tls_free) struct tls *t = tls_new(TLS_client_method(), true);
    SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(t->ctx, check_peer, t);
    if (pin_sha256 && !pin_copy(t, pin_sha256))
        return err_set(err, RC_BAD_INPUT, "a pin is the 64 hex digits of a certificate's SHA-256");
    if (ca_pem && !trust_ca(t, ca_pem))
        return err_set(err, RC_BAD_INPUT, "the CA's text holds no certificate");
    if (!ca_pem && !pin_sha256 && SSL_CTX_set_default_verify_paths(t->ctx) != 1)
        return tls_error(err, "this machine's CAs");
    t->has_ca = ca_pem;
    *out = TAKE(t);
    return true;
}

/* --- one connection */
static bool expect_name(const struct tls *t, SSL *ssl, const char *name)
{
    if (!text_given(name))
        return true;
    if (!host_is_ip(name) && SSL_set_tlsext_host_name(ssl, name) != 1)
        return false;
    if (*t->pin && !t->has_ca)
        return true;
    return host_is_ip(name) ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1
                       : SSL_set1_host(ssl, name) == 1;
}

SSL *tls_attach(struct tls *t, int fd, const char *server_name, struct err *err)
{
    SSL *ssl = SSL_new(t->ctx);
    if (!ssl || SSL_set_fd(ssl, fd) != 1 || (t->client && !expect_name(t, ssl, server_name))) {
        tls_error(err, "TLS");
        SSL_free(ssl);
        return NULL;
    }
    if (t->client)
        SSL_set_connect_state(ssl);
    else
        SSL_set_accept_state(ssl);
    return ssl;
}

void tls_detach(SSL *ssl)
{
    SSL_free(ssl);
    ERR_clear_error();
}

static int failed(SSL *ssl, const char *what, struct err *err)
{
    unsigned long code = ERR_peek_error();
    long verify = SSL_get_verify_result(ssl);
    const char *why = code ? ERR_reason_error_string(code) : NULL;
    bool stranger = ERR_GET_LIB(code) == ERR_LIB_SSL
                    && ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED;
    if (stranger)
        why = verify == X509_V_ERR_CERT_REJECTED ? "the server's certificate is not the pinned one"
                                                 : X509_verify_cert_error_string(verify);
    /* Asking again makes no other server of it. */
    err_set(err, stranger ? RC_DENIED : RC_UNAVAILABLE, "%s: %s", what,
            why ? why : "the peer cut the connection");
    ERR_clear_error();
    return IO_FAILED;
}

static int outcome(SSL *ssl, int rc, const char *what, struct err *err)
{
    int why = SSL_get_error(ssl, rc);
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
        return IO_AGAIN;
    if (why == SSL_ERROR_ZERO_RETURN)
        return 0;
    return failed(ssl, what, err);
}

int tls_stage(SSL *ssl) { return (int)SSL_get_state(ssl); }

int tls_handshake(SSL *ssl, struct err *err)
{
    ERR_clear_error();
    int rc = SSL_do_handshake(ssl);
    int how = rc == 1 ? 1 : outcome(ssl, rc, "TLS handshake", err);
    return how == 0 ? failed(ssl, "TLS handshake", err) : how;
}

ssize_t tls_read(SSL *ssl, void *out, size_t n, struct err *err)
{
    ERR_clear_error();
    int got = SSL_read(ssl, out, (int)MIN(n, (size_t)INT32_MAX));
    return got > 0 ? got : outcome(ssl, got, "TLS read", err);
}

ssize_t tls_write(SSL *ssl, const void *at, size_t n, struct err *err)
{
    ERR_clear_error();
    int done = SSL_write(ssl, at, (int)MIN(n, (size_t)INT32_MAX));
    if (done > 0)
        return done;
    int how = outcome(ssl, done, "TLS write", err);
    return how == 0 ? failed(ssl, "TLS write", err) : how;
}

void tls_goodbye(SSL *ssl)
{
    ERR_clear_error();
    if (SSL_is_init_finished(ssl))
        SSL_shutdown(ssl);
    ERR_clear_error();
}
