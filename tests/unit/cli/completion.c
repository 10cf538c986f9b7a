/* completion.c - the scripts parse, and know the words. */
#include "cli_test.h"
#include <sys/wait.h>

TEST(the_scripts_are_good_bash)
{
    static const char *const shells[] = { "bash", "zsh" };
    for (size_t i = 0; i < COUNT(shells); i++) {
        AUTO(stage_down) struct stage s = stage_up();
        AUTO(str_done) struct str text = { 0 };
        struct err err = { 0 };
        char *output;
        CHECK(completion_text(&text, shells[i]));
        stage_write(&s, "script", text.at);
        const char *argv[] = { "/bin/bash", "-n", stage_path(&s, "script"), NULL };
        CHECK(proc_run(s.c->os, argv, 1000, s.c->mem, &output, NULL, &err));
    }
    AUTO(str_done) struct str none = { 0 };
    CHECK(!completion_text(&none, "fish"));
}

TEST(they_complete_words_subwords_and_flags)
{
    AUTO(stage_down) struct stage s = stage_up();
    AUTO(str_done) struct str text = { 0 };
    struct err err = { 0 };
    char *output = "";
    CHECK(completion_text(&text, "bash"));
    str_text(&text, "ask() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _arcus; echo \"${COMPREPLY[*]}\"; }\n"
                    "arcus() { :; }; timeout() { shift 2; echo \"asked $*\" >>$0.asked; printf 'ID  NAME  STATE\\n1  train  x\\n2  $(touch_$0)  x\\n3  -  x\\n4  tree  x\\n'; }\n"
                    "ask arcus ca\nask arcus nodes unc\nask arcus run --gpu\nask arcus secrets set X --val\nask arcus ps --sta\nask arcus users create x --pass\n"
                    "ask arcus logs tr\nask arcus nodes cordon ''\nask arcus -o ''\nask arcus ps -o j\nask arcus ps --context ''\n"
                    "ask arcus completion ''\nask arcus logs none\nask arcus run --on-lost w\nask arcus ps --state ca\nsort -u $0.asked\n");
    stage_write(&s, "script", text.at);
    const char *argv[] = { "/bin/bash", "--norc", stage_path(&s, "script"), NULL };
    CHECK(proc_run(s.c->os, argv, 4000, s.c->mem, &output, NULL, &err));
    CHECK(text_is(output, "cancel\nuncordon\n--gpus --gpus-per-node "
                          "--gpu-memory\n--value\n--state\n--password-stdin\n"
                          "train tree\ntrain tree\ntable wide json yaml\njson\ntrain tree\nbash zsh\n\nwait\ncancelled\n"
                          "asked config -q\nasked nodes -q\nasked ps --all -q\n"));
}
