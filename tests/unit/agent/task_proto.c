#include "agent/task_proto.h"
#include "tap.h"
#include "wire/bind.h"

static bool take(const struct fields *fields, const char *text, void *out)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *doc;
    struct err err = { 0 };
    return json_parse(SLICE(text), mem, &doc, &err) && bind_read(doc, fields, mem, out, NULL, &err);
}

TEST(the_length_of_a_frame_comes_back_whole_whatever_it_is)
{
    static const uint32_t lengths[] = { 0, 1, 255, 256, 65535, FRAME_MAX, 1 << 24, UINT32_MAX };
    for (size_t i = 0; i < COUNT(lengths); i++) {
        unsigned char head[FRAME_HEAD];
        frame_head(head, FRAME_OUTPUT, lengths[i]);
        CHECK(head[0] == 'o' && frame_length(head) == lengths[i]);
    }
}

TEST(what_a_session_may_ask_has_bounds)
{
    struct task_request rq = { 0 };
    struct task_resize size = { 0 };
    struct task_signal sig = { 0 };
    CHECK(take(&task_request_fields, "{\"op\":\"exec\",\"argv\":[\"sh\"],\"tty\":true,\"rows\":24,\"cols\":80}", &rq) && rq.tty && rq.argv.count == 1);
    CHECK(!take(&task_request_fields, "{\"argv\":[\"sh\"]}", &rq) && !take(&task_request_fields, "{\"op\":\"exec\",\"rows\":10001}", &rq)
          && !take(&task_request_fields, "{\"op\":\"exec\",\"cols\":-1}", &rq));
    CHECK(take(&task_resize_fields, "{\"rows\":1,\"cols\":10000}", &size) && !take(&task_resize_fields, "{\"rows\":0,\"cols\":80}", &size)
          && !take(&task_resize_fields, "{\"rows\":1}", &size));
    CHECK(take(&task_signal_fields, "{\"signal\":64}", &sig) && sig.signal == 64);
    CHECK(!take(&task_signal_fields, "{\"signal\":0}", &sig) && !take(&task_signal_fields, "{\"signal\":65}", &sig) && !take(&task_signal_fields, "{}", &sig));
}
