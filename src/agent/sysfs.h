/* sysfs.h - small texts and numbers out of sysfs, for the probes of the device helper. What is missing or odd is NULL, "" or -1. */
#pragma once
#include "base/arena.h"
#include "base/field.h"

enum { SYSFS_PATH = 512 };
const char *sysfs_text(struct arena *mem, const char *fmt, ...) PRINTF(2, 3);   /* one line without its end; NULL: there is none */
int64_t sysfs_int(const char *fmt, ...) PRINTF(1, 2);                           /* decimal, or 0x...; -1: there is none, or it is negative */
struct texts sysfs_list(struct arena *mem, const char *begins, const char *fmt, ...) PRINTF(3, 4);  /* sorted names of a folder that begin so */
const char *sysfs_real(struct arena *mem, const char *fmt, ...) PRINTF(2, 3);   /* where it is, without links; NULL: nowhere */
const char *sysfs_base(const char *path);                                       /* its last part */
