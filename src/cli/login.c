/* login.c - words that ask for a secret: it is typed without echo or read from standard input,
 * never taken from the arguments (others can see those), except where a flag says so by name. */
#include "cli/terminal.h"
#include <stdio.h>
#include <unistd.h>

enum { VALUE_MOST = 64 << 10 };

/* --- login */

struct login_own { const char *pin, *ca; };
static const struct field login_rows[] = {
    FIELD(struct login_own, pin, TEXT, .max = 64,
          .help = "SHA-256 in hex of the cloud's own authority, if no public CA vouches for the server",
          .example = "9f2c..."),
    FIELD(struct login_own, ca, TEXT, .max = 4096,
          .help = "a file with the certificates to trust, in PEM"),
};
const struct fields login_fields = FIELDS(login_own, login_rows);

static const char *context_name(struct cli *c)
{
    if (text_given(c->context_name))
        return c->context_name;
    if (text_given(c->context.name))
        return c->context.name;
    const char *host = strstr(c->context.server, "://");
    host = host ? host + 3 : c->context.server;
    return arena_bytes(c->mem, host, strcspn(host, ":/,"));
}

/* A context that is not there yet may be named: login makes it, for the server that is given or
 * the current one. */
static bool load(struct cli *c, const struct login_own *own, struct err *err)
{
    const char *name = c->context_name, *project = c->context.project;
    bool fresh = name && !config_has(c, name);
    c->context.key = "";                /* the old one may be what is wrong */
    c->context.pin = own->pin;
    c->context.ca = own->ca;
    if (text_given(c->context.server) || fresh)
        c->context_name = NULL;
    bool ok = cli_connect(c, err);
    if (fresh)
        c->context.project = project; /* that of the current context is its user's */
    if (name && !text_is(name, c->context.name))
        c->context.name = name;
    c->context_name = name;
    return ok;
}

int word_login(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    struct json *reply;
    const char *password;
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    const char *user = json_text(f.doc, "user");
    bool ok
        = load(c, f.own, &c->err)
          && (text_given(user)
              || err_set(&c->err, RC_BAD_INPUT, "--user is missing: your name in the cloud"))
          && prompt_hidden(c, arena_printf(c->mem, "password of %s at %s", user, c->context.server),
                           &password, &c->err)
          && doc_set(c, f.doc, "password", password)
          && cli_call(c, VERB_LOGIN, f.doc, &reply, &c->err);
    if (!ok)
        return print_error(c, &c->err);
    struct context x = c->context;
    x.name = context_name(c);
    x.key = json_text(reply, "key");
    if (!config_keep(c, &x, &c->err))
        return print_error(c, &c->err);
    say(c, "logged in as %s at %s; the context '%s' is current", user, x.server, x.name);
    return 0;
}

/* --- passwords */

struct user_own { const char *user; bool password_stdin, no_password; };

static bool new_password(struct cli *c, const char *whose, const char **out, struct err *err)
{
    const char *again;
    if (!prompt_hidden(c, arena_printf(c->mem, "new password of %s", whose), out, err))
        return false;
    if (!isatty(STDIN_FILENO))
        return true;
    return prompt_hidden(c, "once more", &again, err)
           && (text_is(*out, again) || err_set(err, RC_BAD_INPUT, "the two are not the same"));
}

int word_user_create(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    struct json *reply;
    const char *password = "";
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    const struct user_own *own = f.own;
    if (!own->no_password && !new_password(c, json_text(f.doc, "name"), &password, &c->err))
        return print_error(c, &c->err);
    if (text_given(password))
        doc_set(c, f.doc, "password", password);
    if (!cli_call(c, VERB_USER_CREATE, f.doc, &reply, &c->err))
        return print_error(c, &c->err);
    print_reply(c, w, reply);
    if (!text_given(password))
        say(c, "without a password %s can use keys, and cannot log in", json_text(f.doc, "name"));
    return 0;
}

int word_user_passwd(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    struct json *reply;
    const char *password, *old;
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    const struct user_own *own = f.own;
    struct json *ask = json_new(c->mem, JSON_OBJECT);
    bool ok = own->user ? new_password(c, own->user, &password, &c->err)
                              && doc_set(c, ask, "user", own->user)
                              && doc_set(c, ask, "password", password)
                        : prompt_hidden(c, "your present password", &old, &c->err)
                              && new_password(c, "yours", &password, &c->err)
                              && doc_set(c, ask, "password", old)
                              && doc_set(c, ask, "new_password", password);
    if (!ok || !cli_call(c, own->user ? VERB_USER_UPDATE : VERB_PASSWORD, ask, &reply, &c->err))
        return print_error(c, &c->err);
    say(c, "the password is changed");
    return 0;
}

static const struct field create_rows[] = {
    FIELD(struct user_own, password_stdin, BOOL, .flag = "--password-stdin",
          .help = "read the password from standard input, as is done wherever that is no terminal"),
    FIELD(struct user_own, no_password, BOOL, .flag = "--no-password",
          .help = "ask for none: the user can use keys, and cannot log in"),
};
const struct fields user_create_fields = FIELDS(user_own, create_rows);
static const struct field passwd_rows[] = {
    FIELD(struct user_own, user, TEXT, .max = 64, .flag = "--user",
          .help = "whose; your own when left out", .example = "ada"),
};
const struct fields user_passwd_fields = FIELDS(user_own, passwd_rows);

/* --- secrets */

struct secret_own { const char *value; };
static const struct field secret_rows[] = {
    FIELD(struct secret_own, value, TEXT, .max = VALUE_MOST,
          .help = "the value itself; others can see it in the list of processes and in your "
                  "shell's history"),
};
const struct fields secret_fields = FIELDS(secret_own, secret_rows);

static bool read_value(struct cli *c, const char *name, const char **out, struct err *err)
{
    struct slice text;
    if (isatty(STDIN_FILENO))
        return prompt_hidden(c, arena_printf(c->mem, "value of %s", name), out, err);
    if (!stdin_read(c, VALUE_MOST + 1, &text, err))
        return false;
    char *value = arena_bytes(c->mem, text.at, text.len);
    if (strlen(value) != text.len)
        return err_set(err, RC_BAD_INPUT,
                       "the value has a NUL byte in it; encode it first, for instance with base64");
    if (text.len && value[text.len - 1] == '\n')
        value[text.len - 1] = 0;        /* that of echo */
    *out = value;
    return true;
}

int word_secret_set(struct cli *c, const struct word *w, int argc, char **argv)
{
    struct flags f;
    struct json *reply;
    int over = word_open(c, w, argc, argv, &f);
    if (over >= 0)
        return over;
    const char *value = ((struct secret_own *)f.own)->value, *name = json_text(f.doc, "name");
    bool ok = value || read_value(c, name, &value, &c->err);
    ok = ok && (text_given(value) || err_set(&c->err, RC_BAD_INPUT, "the value is empty"));
    if (!ok
        || (doc_set(c, f.doc, "value", value),
            !cli_call(c, VERB_SECRET_SET, f.doc, &reply, &c->err)))
        return print_error(c, &c->err);
    print_reply(c, w, reply);
    return 0;
}
