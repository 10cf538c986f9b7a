/* own_tls.c - the cloud's authority, kept beside the other keys that all servers of a cloud share, and the certificate that it
 * signed for this server, kept in DATA/tls.
 *
 * The authority is made once and never again: everybody pins it. The certificate is made again whenever it does not fit any more:
 * another authority or other names, or its end is near. A key is written before the certificate that needs it, so that a crash
 * between the two means that both are made again. */
#include "server/own_tls.h"

enum { PEM_MOST = 1 << 20 };

static bool read_pem(struct os *os, const char *path, struct arena *mem, const char **out, struct err *err)
{
    struct slice text;
    struct err why = { 0 };
    *out = NULL;
    if (file_read(os, path, PEM_MOST, mem, &text, &why))
        return *out = arena_bytes(mem, text.at, text.len), true;
    return why.rc == RC_NOT_FOUND || (*err = why, false);
}

bool own_ca(struct os *os, const char *keys, struct arena *mem, struct own_ca *out, struct err *err)
{
    const char *cert_file = arena_printf(mem, "%s/ca.pem", keys), *key_file = arena_printf(mem, "%s/ca.key", keys);
    struct own_ca ca = { 0 };
    if (!read_pem(os, cert_file, mem, &ca.cert, err) || !read_pem(os, key_file, mem, &ca.key, err))
        return false;
    if (ca.cert && !ca.key)
        return err_set(err, RC_NOT_FOUND, "%s is missing: it belongs to %s; copy the whole folder of keys", key_file, cert_file);
    if (!ca.cert) {
        char *cert, *key;
        if (!tls_ca_make(mem, &cert, &key, err) || !dir_make(os, keys, 0700, err)
            || !file_replace(os, key_file, SLICE(key), 0600, err) || !file_replace(os, cert_file, SLICE(cert), 0644, err))
            return err_wrap(err, "the cloud's authority");
        ca.cert = cert, ca.key = key;
    }
    if (!tls_sha256(ca.cert, ca.pin, err))
        return err_wrap(err, "%s", cert_file);
    return *out = ca, true;
}

bool own_cert(struct os *os, const char *data, const struct own_ca *ca, struct texts names, struct arena *mem, struct own_cert *out, struct err *err)
{
    const char *folder = arena_printf(mem, "%s/tls", data), *cert_file = arena_printf(mem, "%s/cert.pem", folder),
               *key_file = arena_printf(mem, "%s/key.pem", folder), *pin_file = arena_printf(mem, "%s/pin", folder), *pin;
    struct own_cert c = { 0 };
    if (!read_pem(os, cert_file, mem, &c.cert, err) || !read_pem(os, key_file, mem, &c.key, err) || !read_pem(os, pin_file, mem, &pin, err))
        return false;
    if (!c.cert || !c.key || !tls_cert_holds(c.cert, c.key, ca->cert, names)) {
        char *cert, *key;
        if (!tls_cert_make(ca->cert, ca->key, names, mem, &cert, &key, err) || !dir_make(os, folder, 0700, err)
            || !file_replace(os, key_file, SLICE(key), 0600, err) || !file_replace(os, cert_file, SLICE(cert), 0644, err))
            return err_wrap(err, "a certificate of our own");
        c.cert = cert, c.key = key, c.made = true;
    }
    if (!text_is(pin, ca->pin) && !file_replace(os, pin_file, SLICE(ca->pin), 0644, err))
        return err_wrap(err, "the authority's hash");
    return *out = c, true;
}
