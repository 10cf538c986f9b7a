/* events.c - history page by page, and a stream that is taken up again after its last number. */
#include "cli_test.h"

#define EVENT(n)                                                                                   \
    "{\"id\":" #n ",\"at\":\"2026-11-15T13:00:00Z\",\"name\":\"job.queued\",\"subject\":\"job-" #n \
    "\",\"actor\":\"ada\",\"data\":{\"k\":1}}"

TEST(events_are_lines_for_people_and_objects_for_programs)
{
    AUTO(stage_down) struct stage s = stage_up();
    static const struct answer answers[]
        = { { "GET", "/v1/events", 0, 200,
              "{\"items\":[" EVENT(1) "," EVENT(2) "],\"next\":null}" } };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "events", "--since", "0") == 0
          && text_starts(s.out.at, "1        2026-11-15T13:00:00Z     job.queued"));
    CHECK(strstr(s.out.at, "job-2") && strstr(s.out.at, "{\"k\":1}\n"));
    CHECK(PLAY(&s, "events", "-o", "json") == 0 && strstr(s.out.at, "\"next\": null"));
}

TEST(a_broken_stream_goes_on_after_the_last_event)
{
    AUTO(stage_down) struct stage s = stage_up();
    static const struct answer answers[] = {
        { "GET", "/v1/events", 1, 200,
          "@cut id: 1\nevent: job.queued\ndata: " EVENT(1) "\n\n:\n\nid: 2\nda" },
        { "GET", "/v1/events", 2, 200,
          "@cut id: 2\nevent: job.queued\ndata: " EVENT(
              2) "\n\nid: 3\nevent: job.queued\ndata: " EVENT(3) "\n\n" },
    };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "events", "-f", "-o", "json", "--limit", "3") == 0);
    AUTO(str_done) struct str want = { 0 };
    str_text(&want, EVENT(1) "\n" EVENT(2) "\n" EVENT(3) "\n");
    CHECK(text_is(s.out.at, want.at) && strstr(straw_seen(&s), "since=0")
          && strstr(straw_seen(&s), "since=1"));
}

TEST(who_may_not_follow_is_told_and_not_kept_waiting)
{
    AUTO(stage_down) struct stage s = stage_up();
    static const struct answer answers[]
        = { { "GET", "/v1/events", 0, 403,
              "{\"type\":\"/problems/denied\",\"detail\":\"event.list is for viewers\"}" } };
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "events", "-f") == 3 && strstr(s.errors.at, "event.list is for viewers")
          && straw_count(&s, "GET", "/v1/events") == 1);
}
