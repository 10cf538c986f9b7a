/* own_tls.h - the certificates of a server that was given none. */
#pragma once
#include "os/os.h"

struct own_ca { const char *cert, *key; char pin[65]; };        /* PEM; pin: the SHA-256 that everybody knows the cloud by */
struct own_cert { const char *cert, *key; bool made; };         /* made: just now */
/* KEYS/ca.pem and ca.key (mode 0600); made where there is none. */
MUST_CHECK bool own_ca(struct os *os, const char *keys, struct arena *mem, struct own_ca *out, struct err *err);
/* DATA/tls: cert.pem with the authority's behind it, key.pem (mode 0600), pin. */
MUST_CHECK bool own_cert(struct os *os, const char *data, const struct own_ca *ca, struct texts names, struct arena *mem, struct own_cert *out, struct err *err);
