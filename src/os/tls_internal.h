/* tls_internal.h - shared by real_tls.c and tls_cert.c only. */
#pragma once
#include "os/real.h"
#include <openssl/pem.h>
#include <openssl/x509.h>

bool tls_error(struct err *err, const char *what);      /* with OpenSSL's reason; always false */
bool cert_sha256(const X509 *cert, char hex[static 65]);
bool host_is_ip(const char *host);
