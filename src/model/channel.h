/* channel.h - the framing of /v1/streams/...: each binary message begins with one byte that names its channel.
 *
 * The same on both WebSockets, the user's and the agent's, so the server passes messages on unread. Control is one JSON
 * object: {"resize":[rows,cols]}, {"signal":15}, {"eof":true} (no more data follows from this side), {"exit":0} (of exec;
 * 128 + n for signal n; of get, put and dial 0), {"error":"one sentence"}, {"at":"SEGMENT.OFFSET.BYTES"} (of followed logs: where the
 * next message ends; order.h). After exit, error or the eof of logs nothing follows; the sender closes.
 *
 * Of dial each side's eof is a half-close: the other goes on; exit follows when both have ended.
 *
 * The top entry of a get's tar is the last part of its path; it is "./..." where the path is the root of what was kept: /outputs
 * of an ended task, / of a volume. */
#pragma once
#include "base/base.h"

enum channel {
    CHANNEL_IN,         /* stdin of exec, the tar of put: towards the task */
    CHANNEL_OUT,        /* stdout of exec and logs, the tar of get */
    CHANNEL_ERR,        /* stderr */
    CHANNEL_CONTROL,
    CHANNEL_COUNT
};
enum { CHANNEL_MESSAGE = 256 << 10 };   /* no message on a stream is larger, its channel byte included */
