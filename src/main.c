/* main.c - argv -> server, agent, up, the supervisor, or a word of the command line. */
#include "agent/agent.h"
#include "base/base.h"
#include "cli/cli.h"
#include "server/server.h"

static const struct { const char *word; int (*run)(int argc, char **argv); } programs[] = {
    { "server", server_main },
    { "agent", agent_main },
    { "up", up_main },
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < COUNT(programs); i++)
        if (text_is(argv[1], programs[i].word))
            return programs[i].run(argc - 1, argv + 1);
    return cli_main(argc, argv);
}
