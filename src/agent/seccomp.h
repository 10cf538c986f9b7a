/* seccomp.h - which system calls a task may make, as the `seccomp` object of an OCI bundle. */
#pragma once
#include "wire/json.h"

void seccomp_write(struct json_out *o);                     /* one JSON object */
bool seccomp_allows(const char *syscall);                   /* without a condition; for tests and `describe` */
