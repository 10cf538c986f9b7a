/* secure.h - certificates for tests: an authority of their own, and one that it signed. */
#pragma once
#include "os/os.h"
#include "tap.h"

struct pair_pem { char *ca, *ca_key, *cert, *key, pin[65], own[65]; };      /* pin: of the authority; own: of the certificate */
static inline struct pair_pem pem_for(const char *host, struct arena *mem)
{
    struct pair_pem p = { 0 };
    struct err err = { 0 };
    CHECK(tls_ca_make(mem, &p.ca, &p.ca_key, &err));
    CHECK(tls_cert_make(p.ca, p.ca_key, (struct texts){ &host, 1 }, mem, &p.cert, &p.key, &err));
    CHECK(tls_sha256(p.ca, p.pin, &err) && tls_sha256(p.cert, p.own, &err));
    return p;
}
