/* task_proto.h - the supervisor's socket (sock, in the folder that it stands in): terminals, copying and word of new log bytes.
 *
 * A stream of frames both ways: one byte of kind, four bytes of length (big endian), the payload (at most 64 KiB). Only
 * root may connect. The first frame is a request, one per connection; the supervisor answers with frames of its kinds
 * and, in the end, exactly one FRAME_EXIT or FRAME_ERROR, then closes. A connection that closes without either means that
 * the task or its supervisor has gone.
 *
 *   {"op":"exec","argv":[...],"tty":true,"rows":24,"cols":80,"term":"xterm"}
 *       to the task: FRAME_INPUT, FRAME_INPUT_END, FRAME_RESIZE {"rows","cols"}, FRAME_SIGNAL {"signal":15}
 *       from it:     FRAME_READY {} once it runs, FRAME_OUTPUT, FRAME_ERRORS (never with a tty), FRAME_EXIT {"exit_code","signal"}
 *       Closing the connection early hangs up: SIGHUP, and SIGKILL 5 s later.
 *   {"op":"get","path":"/outputs"}     from it: FRAME_OUTPUT (a tar stream; its top entry is the path's last part), FRAME_EXIT
 *   {"op":"put","path":"/workdir"}     to it: FRAME_INPUT (a tar stream, unpacked into that folder), FRAME_INPUT_END; from it: FRAME_EXIT
 *   {"op":"follow"}                    from it: FRAME_NEWS (empty) when bytes were added to the log since the last one
 *   {"op":"dial","port":8888}          to the task's own loopback: FRAME_INPUT, FRAME_INPUT_END (half-close); from it: FRAME_READY {} once
 *       it is connected, FRAME_OUTPUT, FRAME_OUTPUT_END (half-close), FRAME_EXIT when both sides have ended
 *   {"op":"ssh","argv":[KEY, ...]}     an SSH server for this one connection, inside; argv: public keys that are let in, barred: that are not
 *       any more; else as exec without a tty
 *
 * Input is taken only as fast as the task reads it: what the socket does not take waits at the sender. */
#pragma once
#include "base/field.h"

enum task_frame {
    FRAME_REQUEST = 'q', FRAME_INPUT = 'i', FRAME_INPUT_END = 'z', FRAME_RESIZE = 'w', FRAME_SIGNAL = 's',
    FRAME_READY = 'r', FRAME_OUTPUT = 'o', FRAME_ERRORS = 'e', FRAME_NEWS = 'n', FRAME_OUTPUT_END = 'y', FRAME_EXIT = 'x', FRAME_ERROR = 'f',
};
enum { FRAME_HEAD = 5, FRAME_MAX = 64 * 1024 };

struct task_request { const char *op; struct texts argv, barred; bool tty; int64_t rows, cols; const char *term, *path; int64_t port; bool socket; };      /* socket: never on the wire; its input and output are one socket */
struct task_resize { int64_t rows, cols; };
struct task_signal { int64_t signal; };
struct task_exit { int64_t exit_code, signal; };
struct task_error { const char *kind, *text; };     /* kind: rc_name of an enum rc */
extern const struct fields task_request_fields, task_resize_fields, task_signal_fields, task_exit_fields, task_error_fields;

static inline void frame_head(unsigned char out[static FRAME_HEAD], enum task_frame kind, uint32_t length)
{
    out[0] = (unsigned char)kind;
    for (int i = 0; i < 4; i++)
        out[1 + i] = (unsigned char)(length >> (24 - 8 * i));
}
static inline uint32_t frame_length(const unsigned char head[static FRAME_HEAD])
{
    return (uint32_t)head[1] << 24 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 8 | head[4];
}
