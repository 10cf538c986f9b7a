/* postgres_internal.h - what the files of the PostgreSQL backend share. */
#pragma once
#include "store/store_internal.h"

MUST_CHECK bool url_check(const char *url, struct err *err);
void url_hide(const char *url, char *text);     /* stars over its password wherever text has it */
