/* mig.h - MIG: which profiles a GPU can be cut into, and where each may begin. The rules are the hardware's: a profile takes a run of memory
 * slots, of which a GPU has eight (four on small parts), and begins only at some of them; two fit beside each other if
 * their slots do not overlap. Media extensions (+me) exist once a GPU.
 *
 * What is held of a GPU is a set of slots, with MIG_MEDIA for the media extensions. */
#pragma once
#include "base/arena.h"
#include "base/err.h"

enum { MIG_SLOTS = 8, MIG_PROFILES = 7, MIG_MEDIA = 1 << MIG_SLOTS, MIG_TEXT = 24 };

struct mig_profile { const char *name; uint8_t slices, size, starts; bool media; };   /* slices: of compute; size: in slots; starts: set of slots */
struct mig_part { const char *models; int64_t mem_from_mib, mem_to_mib; uint8_t slices, slots; struct mig_profile profiles[MIG_PROFILES]; };
/* What one GPU offers: of each profile of its part, where it may begin. All zero: it is not in MIG mode. */
struct mig_layout { bool on; uint8_t starts[MIG_PROFILES]; };

const struct mig_part *mig_part_of(const char *model, int64_t mem_mib);         /* NULL: it cannot be cut, or not known */
int mig_find(const struct mig_part *part, const char *profile);                 /* its number; -1: the part has none of that name */
int mig_milli(const char *profile);                                             /* thousandths of the GPU's compute; 0: no such name anywhere */
int64_t mig_mib(const struct mig_part *part, int profile, int64_t mem_mib);
uint16_t mig_slots(int start, int size, bool media);                            /* as a set */
/* "" is not in MIG mode, "on" in it without instances, "1g.18gb@0,3g.71gb@4" with these. dynamic: whatever the hardware can do, the
 * instances are made anew as tasks come; else these instances alone. */
MUST_CHECK bool mig_layout_parse(const char *text, const char *model, int64_t mem_mib, bool dynamic, struct mig_layout *out, struct err *err);
/* Where a profile with these starts begins best, given what is taken: so that the most places for large profiles stay. -1: nowhere. */
int mig_start(const struct mig_part *part, int profile, uint8_t starts, uint16_t taken);
int mig_room(const struct mig_part *part, uint16_t taken);      /* those places, weighted by their size */
