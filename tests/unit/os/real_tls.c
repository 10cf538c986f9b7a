#include "pair.h"
#include "secure.h"
#include <openssl/ssl.h>
#include <stdio.h>
#include <sys/socket.h>

struct secure {
    struct os *os;
    struct arena *mem;
    struct pair_pem pem;
    const char *ca, *sha; /* the authority's, and its hash */
    struct tls *server_tls;
    struct listener *l;
    struct peer server, client;
};

static struct secure *secure_new(const char *host)
{
    struct err err = { 0 };
    struct secure *w = calloc(1, sizeof *w);
    w->os = w->server.os = w->client.os = os_real_new(&err);
    w->mem = arena_new();
    w->pem = pem_for(host, w->mem);
    w->ca = w->pem.ca;
    w->sha = w->pem.pin;
    CHECK(tls_server(&w->server_tls, w->pem.cert, w->pem.key, &err));
    CHECK(stream_listen(w->os, "127.0.0.1:0", w->server_tls, peer_accept, &w->server, &w->l, &err));
    return w;
}

static void secure_done(struct secure *w)
{
    str_done(&w->server.got);
    str_done(&w->client.got);
    os_free(w->os);
    tls_free(w->server_tls);
    arena_free(w->mem);
    free(w);
}

/* Dials with what the client trusts; true when the two could talk. */
static bool talks(struct secure *w, const char *ca, const char *pin, const char *name)
{
    struct err err = { 0 };
    AUTO(tls_free) struct tls *t = NULL;
    CHECK(tls_client(&t, ca, pin, &err));
    struct peer *c = &w->client;
    str_done(&c->got);
    str_done(&w->server.got);
    *c = (struct peer){ .os = w->os, .stop_at_close = true, .stop_at = 2 };
    w->server = (struct peer){ .os = w->os, .echo = true };
    c->s = stream_dial(w->os, listener_address(w->l), t, name, &peer_events, c);
    stream_write(c->s, "hi", 2);
    run_for(w->os);
    bool ok = c->got.len == 2 && c->opened == 1;
    CHECK(ok == !c->closed && (ok || c->opened == 0));
    CHECK(ok || w->server.got.len == 0);
    if (c->s)
        stream_end(c->s);
    for (int i = 0; i < 1000 && !(c->closed && w->server.closed); i++)
        run_ms(w->os, 5);
    CHECK(c->closed == 1 && w->server.closed == 1);
    return ok;
}

TEST(a_mebibyte_comes_back_over_tls)
{
    struct secure *w = secure_new("localhost");
    struct err err = { 0 };
    AUTO(tls_free) struct tls *t = NULL;
    CHECK(tls_client(&t, w->ca, NULL, &err));
    w->server.echo = true;
    w->client.stop_at = MIB;
    w->client.s
        = stream_dial(w->os, listener_address(w->l), t, "localhost", &peer_events, &w->client);
    char *sent = pattern(MIB);
    for (size_t at = 0; at < MIB; at += 1024)
        stream_write(w->client.s, sent + at, 1024);
    run_for(w->os);
    CHECK(w->client.opened == 1 && w->client.got.len == MIB);
    CHECK(memcmp(w->client.got.at, sent, MIB) == 0);
    w->server.stop_at_close = true;
    stream_end(w->client.s);
    run_for(w->os);
    CHECK(w->client.why.rc == RC_OK && w->server.why.rc == RC_OK);
    free(sent);
    secure_done(w);
}

TEST(a_slow_reader_over_tls_loses_nothing)
{
    struct secure *w = secure_new("localhost");
    struct err err = { 0 };
    AUTO(tls_free) struct tls *t = NULL;
    CHECK(tls_client(&t, NULL, w->sha, &err));
    w->client.s = stream_dial(w->os, listener_address(w->l), t, NULL, &peer_events, &w->client);
    char *sent = pattern(12 * MIB);
    stream_write(w->client.s, "!", 1);
    w->server.stop_at = 1;
    run_for(w->os);
    stream_pause(w->server.s, true);
    stream_write(w->client.s, sent, 12 * MIB);
    stream_end(w->client.s);
    run_ms(w->os, 60);
    CHECK(w->server.got.len == 1 && stream_waiting(w->client.s) > 0);
    w->server.stop_at = 0;
    w->server.stop_at_close = true;
    stream_pause(w->server.s, false);
    run_for(w->os);
    CHECK(w->server.got.len == 12 * MIB + 1 && memcmp(w->server.got.at + 1, sent, 12 * MIB) == 0);
    CHECK(w->server.why.rc == RC_OK && w->client.why.rc == RC_OK);
    free(sent);
    secure_done(w);
}

TEST(a_client_trusts_its_ca_its_pin_or_demands_both)
{
    struct secure *w = secure_new("cloud.example"), *other = secure_new("cloud.example");
    char upper[65];
    for (int i = 0; i < 65; i++)
        upper[i] = (char)(w->sha[i] >= 'a' ? w->sha[i] - 32 : w->sha[i]);
    CHECK(talks(w, w->ca, NULL, "cloud.example"));
    CHECK(talks(w, w->ca, NULL, "localhost"));
    CHECK(talks(w, w->ca, NULL, NULL));           /* the address' own host, 127.0.0.1 */
    CHECK(talks(w, NULL, w->sha, NULL));
    CHECK(talks(w, NULL, upper, "any.name.at.all"));
    CHECK(talks(w, w->ca, w->sha, "cloud.example"));
    CHECK(talks(w, NULL, w->pem.own, "any.name.at.all")); /* that very certificate */
    CHECK(talks(w, w->ca, w->pem.own, "cloud.example"));

    CHECK(!talks(w, w->ca, NULL, "evil.example"));
    CHECK(strstr(w->client.why.text, "mismatch"));
    CHECK(!talks(w, w->ca, NULL, "127.0.0.2"));
    CHECK(!talks(w, other->ca, NULL, "cloud.example"));
    CHECK(!talks(w, NULL, other->sha, "cloud.example"));
    CHECK(strstr(w->client.why.text, "pinned"));
    CHECK(!talks(w, w->ca, other->sha, "cloud.example"));
    CHECK(!talks(w, other->ca, w->sha, "cloud.example"));
    CHECK(!talks(w, NULL, NULL, "cloud.example"));  /* no CA of this machine signed it */
    secure_done(w);
    secure_done(other);
}

/* What is pinned is public. Showing it is not enough: it must have signed. */
TEST(who_shows_the_pinned_authority_behind_a_certificate_of_another_is_refused)
{
    struct secure *w = secure_new("cloud.example"), *evil = secure_new("cloud.example");
    struct err err = { 0 };
    const char *leaf = arena_bytes(evil->mem, evil->pem.cert, (size_t)(strstr(evil->pem.cert + 1, "-----BEGIN") - evil->pem.cert));
    const char *const shown[] = { arena_printf(evil->mem, "%s%s", leaf, w->ca), arena_printf(evil->mem, "%s%s", evil->pem.cert, w->ca),
                                  arena_printf(evil->mem, "%s%s", leaf, w->pem.cert) };
    for (size_t i = 0; i < COUNT(shown); i++) {
        CHECK(tls_renew(evil->server_tls, shown[i], evil->pem.key, &err));
        CHECK(!talks(evil, NULL, w->sha, "cloud.example"));
        CHECK(!talks(evil, NULL, w->pem.own, "cloud.example"));
        CHECK(talks(evil, NULL, evil->pem.own, "cloud.example")); /* so the check can fail */
    }
    secure_done(w);
    secure_done(evil);
}

TEST(a_certificate_can_be_replaced_while_it_serves)
{
    struct secure *w = secure_new("cloud.example");
    struct err err = { 0 };
    const char *name = "cloud.example";
    char *cert, *key, own[65];
    CHECK(tls_cert_make(w->ca, w->pem.ca_key, (struct texts){ &name, 1 }, w->mem, &cert, &key, &err) && tls_sha256(cert, own, &err));
    CHECK(!tls_renew(w->server_tls, cert, w->pem.key, &err)); /* a bad pair changes nothing */
    CHECK(talks(w, w->ca, w->pem.own, name) && !talks(w, w->ca, own, name));
    CHECK(tls_renew(w->server_tls, cert, key, &err));
    CHECK(!talks(w, w->ca, w->pem.own, name) && talks(w, w->ca, own, name) && talks(w, NULL, w->sha, name));
    secure_done(w);
}

TEST(an_address_can_be_in_the_certificate)
{
    struct secure *w = secure_new("10.1.2.3");
    CHECK(talks(w, w->ca, NULL, "10.1.2.3"));
    CHECK(!talks(w, w->ca, NULL, "10.1.2.4"));
    secure_done(w);
}

/* A raw OpenSSL client with the given highest version, in the middle of our loop. */
struct raw { SSL *ssl; int rc; struct os *os; bool done; };
static size_t raw_data(void *arg, const char *at, size_t n)
{
    struct raw *r = arg;
    BIO_write(SSL_get_rbio(r->ssl), at, (int)n);
    return n;
}
static void raw_close(void *arg, const struct err *why)
{
    (void)why;
    ((struct raw *)arg)->done = true;
}
static const struct stream_events raw_events = { .on_data = raw_data, .on_close = raw_close };

static bool version_is_accepted(int version)
{
    struct secure *w = secure_new("localhost");
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_security_level(ctx, 0);
    SSL_CTX_set_min_proto_version(ctx, version);
    SSL_CTX_set_max_proto_version(ctx, version);
    struct raw r = { .ssl = SSL_new(ctx), .os = w->os };
    SSL_set_bio(r.ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(r.ssl);
    struct stream *s = stream_dial(w->os, listener_address(w->l), NULL, NULL, &raw_events, &r);
    for (int i = 0; i < 6 && !r.done && (r.rc = SSL_do_handshake(r.ssl)) != 1; i++) {
        char buf[8192];
        int n = BIO_read(SSL_get_wbio(r.ssl), buf, sizeof buf);
        if (n > 0)
            stream_write(s, buf, (size_t)n);
        run_ms(w->os, 5);
    }
    bool ok = r.rc == 1;
    SSL_free(r.ssl);
    SSL_CTX_free(ctx);
    secure_done(w);
    return ok;
}

TEST(tls_1_1_is_refused_and_1_2_and_1_3_are_not)
{
    CHECK(version_is_accepted(TLS1_3_VERSION));
    CHECK(version_is_accepted(TLS1_2_VERSION));
    CHECK(!version_is_accepted(TLS1_1_VERSION));
}

TEST(plain_bytes_to_a_tls_port_end_the_connection)
{
    struct secure *w = secure_new("localhost");
    w->client.s = stream_dial(w->os, listener_address(w->l), NULL, NULL, &peer_events, &w->client);
    stream_write(w->client.s, "GET / HTTP/1.1\r\n\r\n", 18);
    w->server.stop_at_close = true;
    run_for(w->os);
    CHECK(w->server.closed == 1 && w->server.why.rc != RC_OK && w->server.got.len == 0);
    secure_done(w);
}

TEST(a_tls_client_that_reaches_a_plain_server_is_told)
{
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    struct peer server = { .os = os, .echo = true }, client = { .os = os, .stop_at_close = true };
    struct listener *l;
    AUTO(tls_free) struct tls *t = NULL;
    CHECK(tls_client(&t, NULL, NULL, &err));
    CHECK(stream_listen(os, "127.0.0.1:0", NULL, peer_accept, &server, &l, &err));
    client.s = stream_dial(os, listener_address(l), t, "localhost", &peer_events, &client);
    run_for(os);
    CHECK(client.opened == 0 && client.closed == 1 && strstr(client.why.text, "TLS"));
    str_done(&server.got);
    os_free(os);
}

static void count_eof(void *arg) { ((struct peer *)arg)->eofs++; }

TEST(after_a_half_close_over_tls_the_other_direction_still_carries)
{
    struct secure *w = secure_new("localhost");
    struct err err = { 0 };
    AUTO(tls_free) struct tls *t = NULL;
    CHECK(tls_client(&t, NULL, w->sha, &err));
    w->client.s = stream_dial(w->os, listener_address(w->l), t, NULL, &peer_events, &w->client);
    stream_write(w->client.s, "!", 1);
    w->server.stop_at = 1;
    run_for(w->os);
    w->server.stop_at = 0;
    struct stream_events with_eof = peer_events;
    with_eof.on_eof = count_eof;
    stream_bind(w->server.s, &with_eof, &w->server);
    stream_shut(w->client.s);
    run_ms(w->os, 20);
    CHECK(w->server.eofs == 1 && !w->server.closed && !w->client.closed);
    stream_write(w->server.s, "reply", 5);
    stream_end(w->server.s);
    w->client.stop_at_close = true;
    run_for(w->os);
    CHECK(w->client.got.len == 5 && w->client.closed == 1 && w->client.why.rc == RC_OK);
    secure_done(w);
}

static void accept_any(void *arg, struct stream *s)
{
    struct peer **next = arg;
    peer_accept((*next)++, s);
}

/* Handshakes take turns; each must still come to its end. */
TEST(fifty_that_come_at_once_all_get_their_handshake)
{
    struct secure *w = secure_new("localhost");
    struct err err = { 0 };
    static struct peer servers[50], clients[50];
    struct peer *next = servers;
    struct listener *l;
    AUTO(tls_free) struct tls *t = NULL;
    CHECK(tls_client(&t, NULL, w->sha, &err));
    CHECK(stream_listen(w->os, "127.0.0.1:0", w->server_tls, accept_any, &next, &l, &err));
    for (int i = 0; i < 50; i++) {
        servers[i] = (struct peer){ .os = w->os, .echo = true };
        clients[i] = (struct peer){ .os = w->os };
        clients[i].s = stream_dial(w->os, listener_address(l), t, NULL, &peer_events, &clients[i]);
        stream_write(clients[i].s, "hi", 2);
    }
    for (int i = 0; i < 50; i++) {
        for (int n = 0; n < 1000 && clients[i].got.len < 2 && !clients[i].closed; n++)
            run_ms(w->os, 5);
        CHECK(clients[i].opened == 1 && clients[i].got.len == 2);
    }
    for (int i = 0; i < 50; i++) {
        str_done(&servers[i].got);
        str_done(&clients[i].got);
    }
    secure_done(w);
}
