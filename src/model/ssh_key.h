/* ssh_key.h - public keys of people, as OpenSSH writes them in a .pub file. */
#pragma once
#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"

enum { SSH_KEY_TEXT = 16 << 10, SSH_KEYS_MOST = 16, SSH_KEYS_BYTES = 12 << 10 };      /* of one profile, or brought at once */
/* One line: TYPE BASE64 [COMMENT]. What it says it is must be what is inside, to the last byte; options before the type are refused, since they could
 * run commands. *settled is the line with single blanks, and its comment without what a terminal or another program could take for a command. */
MUST_CHECK bool ssh_key_parse(const char *line, struct arena *mem, const char **settled, struct err *err);
/* Of a settled line: the key without its comment, which is what two of them are compared by; and its comment. */
const char *ssh_key_bare(const char *settled, struct arena *mem, const char **comment);
const char *ssh_key_fingerprint(const char *settled, struct arena *mem);      /* "SHA256:...", as ssh-keygen -l prints it */
