/* yaml.h - a YAML document (libyaml) as the same tree that JSON gives, so that one binder serves both.
 *
 * Bounded: depth 64, 100,000 nodes, no aliases across more than that (a billion laughs is refused), one document,
 * duplicate keys refused. Plain scalars stay text with .plain set: the field's type decides what they mean, so the
 * Norway problem and 1:30 in base sixty do not exist here. ~, null and empty become JSON_NULL. */
#pragma once
#include "wire/json.h"

MUST_CHECK bool yaml_parse(struct slice text, struct arena *mem, struct json **out, struct err *err);
/* Several documents, as a list of at most `most`; empty ones are left out. Ten times as many nodes in all. */
MUST_CHECK bool yaml_parse_all(struct slice text, size_t most, struct arena *mem, struct json **out, struct err *err);
void yaml_print(struct str *out, const struct json *value);             /* for -o yaml; reads back as the same value */
