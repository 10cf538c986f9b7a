/* packs.h - what the rest of a shared GPU is worth, given the sizes of shares that come. See packs.c. */
#pragma once
#include "base/base.h"

/* asked: how often each size, in thousandths of a GPU. worth: of a GPU with so much left, in millionths of a whole one. */
void packs_worth(const int64_t asked[static 1001], int64_t worth[static 1001]);
