/* cuda_lib.h - the CUDA driver's library: where it is, and functions out of it. What is called of it is cuda.h's (suspension) and cuda_work.h's (work on a GPU). */
#pragma once
#include "base/base.h"

struct cuda_symbol { const char *name; size_t at; };                    /* at: offset of the pointer that gets it */
void *cuda_open(const char *path);                                      /* NULL: it is looked for in the usual places; NULL: there is none */
const char *cuda_fill(void *lib, const struct cuda_symbol *all, size_t count, void *to);    /* the first that it does not have; NULL: all are there */
