/* ssh_key.h - public keys of people, as OpenSSH writes them in a .pub file. */
#pragma once
#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"

enum { SSH_KEY_TEXT = 16 << 10, SSH_KEYS_MOST = 16 };
/* One line: TYPE BASE64 [COMMENT]. What it says it is must be what is inside, to the last byte; options before the type are refused, since they could
 * run commands. *settled is the line with single blanks, and its comment without what a terminal or another program could take for a command. */
MUST_CHECK bool ssh_key_parse(const char *line, struct arena *mem, const char **settled, struct err *err);
