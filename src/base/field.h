/* field.h - one table row for each member of a struct that crosses the border of the program.
 *
 * JSON, YAML, query strings, CLI flags, the API text and the limits all come from these rows (wire/bind.h reads and
 * writes them). The C type of a member follows from its field type:
 *
 *   F_BOOL bool | F_INT int64_t | F_TEXT const char * | F_ID int64_t | F_TIME int64_t, ms since 1970, RFC 3339 outside
 *   F_DURATION int64_t seconds ("90", "10m", "1h30m", "1:30:00", "2d") | F_MIB int64_t ("512MB", "16GB", "16" = GB)
 *   F_MILLI int64_t thousandths ("0.5" = 500) | F_ENUM int, spelled by .names | F_TEXTS struct texts | F_PAIRS struct pairs
 *   F_OBJECT a struct embedded at the offset, .sub | F_OBJECTS struct objects of .sub | F_INLINE .sub bound into this very
 *   struct (a group such as `resources:`) | F_JSON const char *, any JSON value kept as compact text */
#pragma once
#include "base/base.h"

enum field_type {
    F_BOOL, F_INT, F_TEXT, F_ID, F_TIME, F_DURATION, F_MIB, F_MILLI, F_ENUM, F_TEXTS, F_PAIRS, F_OBJECT, F_OBJECTS,
    F_INLINE, F_JSON, FIELD_TYPE_COUNT
};

struct texts   { const char **at; size_t count; };
struct pair    { const char *key, *value; };
struct pairs   { struct pair *at; size_t count; };
struct objects { void *at; size_t count; };
struct names   { const char *const *at; size_t count; };
#define NAMES(array) { (array), COUNT(array) }

struct field {
    const char *name;
    enum field_type type;
    uint32_t offset;
    bool required;
    bool in_path;               /* comes from the route's {name} */
    bool secret;                /* never printed, logged or audited */
    bool hidden;                /* accepted, but not in help and API text (an alias group) */
    bool when_set;              /* left out of what is printed while it is zero, NULL or empty */
    int64_t min, max;           /* of a number (both 0: any); max of a text is its bytes (0: 256), of a list its entries (0: 64) */
    const char *pattern;        /* of a text: one of the classes of bind.c: "name", "label", "path", "digest" */
    const char *prefix;         /* of an F_ID */
    const struct names *names;
    bool (*named)(const char *text, int64_t *number);   /* of an F_INT: words that stand for numbers */
    const char *words;          /* all of those, for people */
    const struct fields *sub;
    const char *def;            /* what stands for it when it is not given, in the spelling of a user */
    const char *aliases;        /* names of other systems for the same, separated by blanks */
    const char *flag;           /* CLI flag, "-g --gpus" style; NULL: --name */
    const char *help;
    const char *example;
};

struct fields { const char *name; const struct field *rows; size_t count, size; };

#define FIELD(T, member, kind, ...) { .name = #member, .type = F_##kind, .offset = offsetof(T, member), __VA_ARGS__ }
#define FIELD_AS(T, member, name_, kind, ...) { .name = name_, .type = F_##kind, .offset = offsetof(T, member), __VA_ARGS__ }
#define FIELDS(T, array) { #T, (array), COUNT(array), sizeof(struct T) }
