/* main.c - argv -> server, agent, up, the supervisor, or a word of the command line. */
#include "agent/agent.h"
#include "agent/gpu_check.h"
#include "agent/helper.h"
#include "agent/mig_make.h"
#include "agent/mps.h"
#include "agent/suspend.h"
#include "base/base.h"
#include "cli/cli.h"
#include "server/server.h"
#include "sim/sim.h"

static const struct { const char *word, *flag; int (*run)(int argc, char **argv); } programs[] = {
    { "server", NULL, server_main },
    { "agent", NULL, agent_main },
    { "up", NULL, up_main },
    { "restore", NULL, restore_main },
    { "sim", NULL, sim_main },
    { "device-helper", NULL, helper_main },     /* nobody types it: the agent starts it */
    { "mps-daemon", NULL, mps_daemon_main },    /* nor these */
    { "device-mode", NULL, mps_mode_main },
    { "suspend-helper", NULL, suspend_main },
    { "device-mig", NULL, mig_make_main },
    { "gpu-check", NULL, gpu_check_main },
    { "store-check", NULL, store_look_main },        /* the server does */
    { "backup", "--data", backup_main },    /* else the server is asked for it */
};

static bool has_flag(int argc, char **argv, const char *flag)
{
    bool found = !flag;
    for (int i = 2; i < argc; i++)
        found = found || text_is(argv[i], flag) || (text_starts(argv[i], flag) && argv[i][strlen(flag)] == '=');
    return found;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < COUNT(programs); i++)
        if (text_is(argv[1], programs[i].word) && has_flag(argc, argv, programs[i].flag))
            return programs[i].run(argc - 1, argv + 1);
    return cli_main(argc, argv);
}
