/* prefix.h - how the id of each kind of thing begins (base/id.h). One list, so that both ends of a wire agree. */
#pragma once
#define PREFIX_JOB      "job"
#define PREFIX_ATTEMPT  "att"
#define PREFIX_PROJECT  "prj"
#define PREFIX_ORG      "org"
#define PREFIX_USER     "usr"
#define PREFIX_ACCOUNT  "svc"
#define PREFIX_KEY      "key"
#define PREFIX_NODE     "nod"
#define PREFIX_VOLUME   "vol"
#define PREFIX_SECRET   "sec"
#define PREFIX_IMAGE    "img"
#define PREFIX_TOKEN    "tok"
