#include "model/job_state.h"
#include "tap.h"

TEST(no_news_leaves_a_final_state)
{
    for (enum job_state s = 0; s < JOB_STATE_COUNT; s++)
        for (enum job_news n = 0; job_ended(s) && n < JOB_NEWS_COUNT; n++) {
            enum job_state now = s;
            struct err err = { 0 };
            CHECK(!job_step(&now, n, &err) && err.rc == RC_CONFLICT && now == s);
        }
}

TEST(every_state_can_be_reached_and_every_live_one_can_end)
{
    bool reached[JOB_STATE_COUNT] = { [JOB_QUEUED] = true };
    for (int round = 0; round < JOB_STATE_COUNT; round++)
        for (enum job_state s = 0; s < JOB_STATE_COUNT; s++)
            for (enum job_news n = 0; reached[s] && n < JOB_NEWS_COUNT; n++) {
                enum job_state now = s;
                struct err err = { 0 };
                if (job_step(&now, n, &err))
                    reached[now] = true;
            }
    for (enum job_state s = 0; s < JOB_STATE_COUNT; s++) {
        enum job_state now = s;
        struct err err = { 0 };
        CHECK(reached[s]);
        CHECK(job_ended(s) || (job_step(&now, NEWS_FAILED, &err) && job_ended(now)));
    }
}

TEST(a_job_cannot_start_before_it_is_placed)
{
    enum job_state s = JOB_QUEUED;
    struct err err = { 0 };
    CHECK(!job_step(&s, NEWS_STARTED, &err) && err.rc == RC_CONFLICT && s == JOB_QUEUED);
    CHECK(job_step(&s, NEWS_PLACED, &err) && job_step(&s, NEWS_STARTED, &err) && s == JOB_RUNNING);
}

TEST(who_was_asked_to_end_never_runs_again)
{
    for (enum job_news n = 0; n < JOB_NEWS_COUNT; n++) {
        enum job_state s = JOB_STOPPING;
        struct err err = { 0 };
        if (job_step(&s, n, &err))
            CHECK(s == JOB_CANCELLED);
        else
            CHECK(s == JOB_STOPPING);
    }
}

static bool unique(const struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        for (size_t k = 0; k < i; k++)
            if (text_is(names->at[i], names->at[k]))
                return false;
    return true;
}

TEST(names_of_states_outcomes_and_reasons_are_unique)
{
    CHECK(unique(&job_state_names) && job_state_names.count == JOB_STATE_COUNT);
    CHECK(unique(&outcome_names) && outcome_names.count == OUTCOME_COUNT);
    CHECK(unique(&reason_names) && reason_names.count == REASON_COUNT);
    for (enum reason r = REASON_NONE + 1; r < REASON_COUNT; r++)
        CHECK(text_given(reason_name(r)) && text_given(reason_text(r)));
    CHECK(text_is(job_state_name(JOB_QUEUED), "queued") && text_is(outcome_name(OUTCOME_OUT_OF_MEMORY), "out_of_memory"));
}

TEST(only_what_the_user_did_is_billed)
{
    CHECK(outcome_is_our_fault(OUTCOME_NODE_LOST) && outcome_is_our_fault(OUTCOME_NODE_FAULT) && !outcome_is_our_fault(OUTCOME_PREEMPTED));
    CHECK(!outcome_is_our_fault(OUTCOME_EXITED) && !outcome_is_our_fault(OUTCOME_OUT_OF_MEMORY) && !outcome_is_our_fault(OUTCOME_SUCCEEDED)
          && !outcome_is_our_fault(OUTCOME_CANCELLED) && !outcome_is_our_fault(OUTCOME_DEADLINE));
}
