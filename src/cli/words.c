/* words.c - every word of the command line in one table, and how a word is found in what was typed.
 *
 * Most rows need no code: their flags come from the verb's fields and their table from the columns here. */
#include "cli/cli.h"
#include <stdio.h>

#define COLUMNS(array) .columns = (array), .column_count = COUNT(array)

static const struct column job_columns[] = {
    { "ID", "id" }, { "NAME", "name" }, { "STATE", "state:state" }, { "REASON", "some:reason" }, { "OUTCOME", "some:outcome" },
    { "GPUS", "gpus:gpus" }, { "NODE", "node" }, { "TASKS", "count", .right = true }, { "RUNNING", "running", .wide = true, .right = true },
    { "FAILED", "failed", .wide = true, .right = true }, { "CPUS", "cpus", .wide = true, .right = true }, { "MEMORY", "mib:memory_mib", .wide = true, .right = true },
    { "FLAVOR", "flavor", .wide = true }, { "IMAGE", "image", .wide = true }, { "OWNER", "owner" }, { "PRIORITY", "priority", .wide = true, .right = true },
    { "EXIT", "exit_code", .wide = true, .right = true }, { "CREATED", "age:created" },
};
static const struct column node_columns[] = {
    { "NAME", "name" }, { "STATE", "state:state" }, { "GPUS", "gpus:gpus" }, { "FREE", "gpus_free", .right = true }, { "MODEL", "gpu_model" },
    { "CPUS", "cpus", .right = true }, { "FREE", "cpus_free", .right = true }, { "MEMORY", "mib:memory_mib", .right = true },
    { "FREE", "mib:memory_free_mib", .right = true }, { "TASKS", "tasks", .right = true }, { "REGION", "some:region" }, { "ZONE", "some:zone" },
    { "TAINTS", "some:taints" }, { "ONLY FOR", "some:exclusive" }, { "TOPOLOGY", "topology", .wide = true }, { "DRAIN UNTIL", "some:drain_until" }, { "NOTE", "some:note" }, { "JOINED", "age:joined", .wide = true }, { "ID", "id", .wide = true },
};
static const struct column gpu_columns[] = {
    { "NODE", "node" }, { "GPU", "index", .right = true }, { "MODEL", "gpus:model" }, { "STATE", "state:state" }, { "MEMORY", "mib:memory_mib", .right = true },
    { "FREE", "free", .right = true }, { "FREE MEMORY", "mib:memory_free_mib", .right = true }, { "TASKS", "tasks", .right = true }, { "WALL", "wall" },
    { "MIG", "some:mig" }, { "MIG FREE", "some:mig_free" }, { "HEALTH", "some:health" }, { "NOTE", "some:note" }, { "DRIVER", "some:driver", .wide = true }, { "PCI", "some:pci", .wide = true },
    { "NUMA", "figure:numa", .wide = true, .right = true }, { "NVLINKS", "nvlinks", .wide = true, .right = true }, { "ID", "id", .wide = true },
};
static const struct column flavor_columns[] = {
    { "NAME", "gpus:name" }, { "GPU", "gpu" }, { "GPUS", "gpus", .right = true }, { "GPU MEMORY", "mib:gpu_memory_mib", .right = true },
    { "CPUS", "cpus", .right = true }, { "MEMORY", "mib:memory_mib", .right = true }, { "NODES", "nodes", .right = true }, { "FREE", "free", .right = true },
};
static const struct column reserve_columns[] = {
    { "NAME", "name" }, { "STATE", "state:state" }, { "PROJECT", "project" }, { "COUNT", "count", .right = true }, { "GPUS", "gpus" }, { "FROM", "from" },
    { "UNTIL", "until" }, { "ID", "id", .wide = true },
};
static const struct column server_columns[] = {
    { "ADDRESS", "address" }, { "STATE", "state:state" }, { "VERSION", "version" }, { "SEEN", "age:seen" }, { "ID", "id", .wide = true },
};
static const struct column quota_columns[] = {
    { "LIMIT", "name" }, { "USER", "user" }, { "MODEL", "model" }, { "MOST", "limit", .right = true }, { "USED", "used", .right = true },
    { "RESERVED", "reserved", .right = true }, { "STATE", "state:state" },
};
static const struct column project_columns[] = {
    { "NAME", "name" }, { "STATE", "state:state" }, { "ORG", "org" }, { "YOUR ROLES", "roles" }, { "GPUS", "limit:quota.gpus", .right = true },
    { "CPUS", "limit:quota.cpus", .right = true }, { "MEMORY", "mib:quota.memory_mib", .right = true }, { "JOBS", "limit:quota.jobs", .right = true },
    { "CREATED", "age:created" }, { "ID", "id", .wide = true },
};
static const struct column who_columns[] = { { "NAME", "name" }, { "STATE", "state:state" }, { "ROLES", "roles" }, { "ID", "id", .wide = true } };
static const struct column user_columns[] = {
    { "NAME", "name" }, { "STATE", "state:state" }, { "ROLES", "roles" }, { "CREATED", "age:created" }, { "ID", "id", .wide = true },
};
static const struct column key_columns[] = {
    { "ID", "id" }, { "NAME", "name" }, { "STATE", "state:state" }, { "OWNER", "owner" }, { "BEGINS", "hint" }, { "ROLES", "roles" },
    { "PROJECT", "project", .wide = true }, { "CREATED", "age:created" }, { "EXPIRES", "age:expires" },
};
static const struct column ssh_key_columns[] = {
    { "NAME", "name" }, { "STATE", "state:state" }, { "FINGERPRINT", "fingerprint" }, { "CREATED", "age:created" }, { "ID", "id", .wide = true }, { "KEY", "key", .wide = true },
};
static const struct column secret_columns[] = {
    { "NAME", "name" }, { "STATE", "state:state" }, { "CREATED", "age:created" }, { "UPDATED", "age:updated" }, { "ID", "id", .wide = true },
};
static const struct column volume_columns[] = {
    { "NAME", "name" }, { "STATE", "state:state" }, { "NODE", "node" }, { "CREATED", "age:created" }, { "ID", "id", .wide = true },
};
static const struct column image_columns[] = {
    { "NAME", "name" }, { "STATE", "state:state" }, { "FORMAT", "format" }, { "SIZE", "bytes:size", .right = true }, { "CREATED", "age:created" },
    { "DIGEST", "digest", .wide = true }, { "ID", "id", .wide = true },
};
static const struct column org_columns[] = { { "NAME", "name" }, { "STATE", "state:state" }, { "CREATED", "age:created" }, { "ID", "id", .wide = true } };
static const struct column task_columns[] = {
    { "TASK", "task", .right = true }, { "STATE", "state:state" }, { "OUTCOME", "outcome" }, { "TRIES", "tries", .right = true },
    { "EXIT", "exit_code", .right = true }, { "SIGNAL", "signal", .right = true }, { "STARTED", "age:started" }, { "ENDED", "age:ended" }, { "DETAIL", "some:detail" },
};
static const struct column attempt_columns[] = {
    { "ID", "id" }, { "TASK", "task", .right = true }, { "STATE", "state:state" }, { "OUTCOME", "outcome" }, { "NODE", "node" }, { "GPUS", "gpus" },
    { "EXIT", "exit_code", .right = true }, { "SIGNAL", "signal", .right = true }, { "PLACED", "age:placed" }, { "STARTED", "age:started" },
    { "ENDED", "age:ended" }, { "DETAIL", "some:detail" },
};

static const struct column audit_columns[] = {
    { "NUMBER", "id", .right = true }, { "AT", "at" }, { "RESULT", "state" }, { "TIMES", "times", .right = true }, { "VERB", "name" }, { "SUBJECT", "some:subject" },
    { "ACTOR", "some:actor" }, { "ADDRESS", "address" }, { "PROJECT", "some:project", .wide = true }, { "KEY", "some:key", .wide = true }, { "REQUEST", "request", .wide = true },
};
static const struct column usage_columns[] = {
    { "PROJECT", "some:project" }, { "USER", "some:user" }, { "FLAVOR", "some:flavor" }, { "DAY", "some:day" }, { "TASKS", "tasks", .right = true },
    { "HOURS", "hours:seconds", .right = true }, { "GPU HOURS", "hours:gpu_seconds", .right = true }, { "GPU GB-HOURS", "gib_hours:gpu_mib_seconds", .wide = true, .right = true },
    { "CPU HOURS", "hours:cpu_seconds", .right = true }, { "GB-HOURS", "gib_hours:memory_mib_seconds", .right = true }, { "NOTE", "mark:simulated" },
};

const struct word words[] = {
    { "run", VERB_JOB_SUBMIT, word_run, "[FLAGS] [--] COMMAND [ARG...]", "Run a command in the cloud, show its output and exit as it does", .own = &run_fields, .takes = "", .command = true,
      .more = "Ctrl-C cancels the job and waits for its end; a second Ctrl-C leaves it alone. It exits with the job's own exit code; 128 + n when\n"
              "signal n ended it, 137 out of memory, 124 over its time, 130 cancelled, 127 when the image has no such command,\n"
              "126 when it cannot be executed, 125 when it could not be run for another reason.",
      .examples = "arcus run --gpus 1 -- nvidia-smi\narcus run -g 0.5 -w . -- python train.py\narcus run -d --name train -i debian:12 -- sh -c 'echo $ARCUS_JOB_ID'" },
    { "submit", VERB_JOB_SUBMIT, word_submit, "[-f FILE] [FLAGS] [--] [COMMAND [ARG...]]", "Queue a job and print its id", .own = &submit_fields, .takes = "", .command = true,
      .more = "FILE is a workload in YAML or JSON, as arcus(5) describes it; `-` is standard input. Flags overrule the file. Several\n"
              "(YAML documents, or a list) are queued together or not at all, and their ids are printed in order.",
      .examples = "arcus submit -f train.yaml\narcus submit -f train.yaml --gpus 2 -e EPOCHS=5\narcus submit -n 100 -- ./sweep.sh" },
    { "plan", VERB_JOB_PLAN, word_plan, "[-f FILE] [FLAGS] [--] [COMMAND [ARG...]]", "Tell where a job would run now, or when, or why never; nothing is queued", .own = &submit_fields, .takes = "", .command = true,
      .more = "It takes what submit takes and checks the same. What it tells is true now: nothing is held for the job. Folders are not uploaded.",
      .examples = "arcus plan -f train.yaml\narcus plan --gpus H200:8 -- python train.py\narcus plan -f train.yaml -o json" },
    { "ps", VERB_JOB_LIST, word_generic, "[FLAGS]", "List jobs, newest first", .takes = "", COLUMNS(job_columns),
      .examples = "arcus ps\narcus ps --all --state failed\narcus ps -a --limit 20 -o json" },
    { "describe", -1, word_describe, "JOB... | node NODE... | project PROJECT... | reservation NAME...", "Show a thing with all that belongs to it, or several", .own = &describe_fields, .takes = "job name", .many = true,
      .examples = "arcus describe train\narcus describe node gpu-07 gpu-08" },
    { "logs", VERB_JOB_LOGS, word_logs, "JOB [FLAGS]", "Show or follow what a task printed", .own = &logs_fields, .takes = "job",
      .examples = "arcus logs train\narcus logs -f train --task 3\narcus logs train --tail 100 --stderr" },
    { "exec", VERB_JOB_EXEC, word_exec, "[-it] JOB [FLAGS] [--] COMMAND [ARG...]", "Run a command inside a running task", .own = &exec_fields, .takes = "job", .command = true,
      .more = "It exits as the command does, with 127 when there is no such command, 126 when it cannot be executed, and 125 when the connection fails.", .examples = "arcus exec -it train -- bash\narcus exec train -- nvidia-smi\ntar c data | arcus exec -i train -- tar x -C /tmp" },
    { "port-forward", VERB_JOB_DIAL, word_port_forward, "JOB [LOCAL:]REMOTE...", "Make ports of a running task reachable on this machine", .own = &forward_fields, .takes = "job ports", .many = true,
      .more = "It listens on 127.0.0.1 here until it is interrupted. Each connection goes through the server and the node's own connection to the\n"
              "task's loopback: nothing is opened on the node, and nothing but the task is reached. :REMOTE takes any free port here.",
      .examples = "arcus port-forward train 6006\narcus port-forward lab 8080:80 :8888" },
    { "ssh", VERB_JOB_SSH, word_ssh, "JOB [FLAGS] [--] [COMMAND [ARG...]]", "Log in to a running task with SSH", .own = &ssh_fields, .takes = "job", .command = true,
      .more = "An SSH server is started inside the task for this connection and lets in your public keys: those of your profile (`arcus ssh-keys`) and\n~/.ssh/*.pub. Nothing listens on the node. As a "
              "ProxyCommand it serves scp, rsync, VS Code and all else: in ~/.ssh/config write\n"
              "    Host *.arcus\n        User root\n        ProxyCommand arcus ssh --stdio '%n'\n"
              "        StrictHostKeyChecking no\n        UserKnownHostsFile /dev/null\n"
              "sftp, and scp of today, need sftp-server in the image; `scp -O`, rsync and `arcus cp` do not.",
      .examples = "arcus ssh lab\narcus ssh lab -- nvidia-smi\nscp -o ProxyCommand='arcus ssh --stdio lab' data.csv root@lab:" },
    { "jupyter", -1, word_jupyter, "JOB [--port LOCAL]", "Open the notebook of an instance on this machine", .own = &jupyter_fields, .takes = "job",
      .more = "For what `arcus run -d --jupyter --name lab -i jupyter/base-notebook:latest` started:\nit prints the address with its token, and forwards the port until it is interrupted.",
      .examples = "arcus jupyter lab\narcus jupyter lab --port 8888" },
    { "cp", -1, word_cp, "FROM TO", "Copy files into or out of a task or a volume", .own = &cp_fields, .takes = "from to",
      .more = "One of the two is a local path, the other JOB:/path or vol:NAME/path. A target that is a folder gets the thing under its own name, any\n"
              "other target becomes the thing. Of a task that has ended, what it left in /outputs can be fetched.",
      .examples = "arcus cp data.csv train:/data/\narcus cp train:/outputs ./results\narcus cp vol:data/checkpoints ." },
    { "cancel", VERB_JOB_CANCEL, word_generic, "JOB...", "End jobs, or one task of each", .many = true,
      .more = "Each is asked for by itself: one that cannot be cancelled does not stop the others, and is the exit code.",
      .examples = "arcus cancel train\narcus cancel train --task 3 --grace 5s\narcus cancel first second third" },
    { "suspend", VERB_JOB_SUSPEND, word_generic, "JOB...", "Let running jobs give their GPUs back, and stand still", .many = true,
      .more = "What a task has on its GPUs goes to the memory of its node, and others may have them. It holds its place there, and pays for memory, not for GPUs.\n"
              "`arcus attempts JOB` says whether a task can be suspended, and why not.",
      .examples = "arcus suspend train\narcus suspend train --task 3" },
    { "resume", VERB_JOB_RESUME, word_generic, "JOB...", "Let suspended jobs go on", .many = true,
      .more = "A task comes back to the GPUs that it had: as soon as nobody else has them, and before anything that is queued.", .examples = "arcus resume train" },
    { "stop", VERB_JOB_STOP, word_generic, "JOB...", "Stop an instance: it gives back all but its disk", .takes = "job", .many = true,
      .more = "What it wrote is there again after `arcus start`, on the same node; /outputs belongs to each run. While it is stopped nothing is metered.\nCancelling it removes the disk.",
      .examples = "arcus stop lab" },
    { "start", VERB_JOB_START, word_generic, "JOB...", "Start a stopped instance again, with its disk", .takes = "job", .many = true,
      .more = "It waits for the node that has its disk; `arcus queue` tells if that is away or full.", .examples = "arcus start lab" },
    { "update", VERB_JOB_UPDATE, word_generic, "JOB... --priority N", "Change the priority of queued jobs", .many = true, .examples = "arcus update train --priority 80" },
    { "tasks", VERB_JOB_TASKS, word_generic, "JOB", "List the tasks of a job", COLUMNS(task_columns), .examples = "arcus tasks train" },
    { "queue", VERB_JOB_QUEUE, word_generic, "JOB", "Show where a waiting job stands, and what it waits for", .examples = "arcus queue train" },
    { "attempts", VERB_JOB_ATTEMPTS, word_generic, "JOB", "List every attempt to run the tasks of a job", COLUMNS(attempt_columns), .examples = "arcus attempts train" },

    { "nodes list", VERB_NODE_LIST, word_generic, "", "List nodes", COLUMNS(node_columns), .examples = "arcus nodes\narcus nodes -o wide" },
    { "nodes get", VERB_NODE_GET, word_generic, "NODE...", "Show a node and what its agent tells about the machine", .many = true, .examples = "arcus nodes get gpu-07" },
    { "nodes token", VERB_NODE_TOKEN, word_generic, "", "Make a token that one machine can join with, once", .examples = "arcus nodes token\narcus nodes token --expires-in 24h" },
    { "nodes rotate", VERB_NODE_ROTATE, word_generic, "NODE...", "Have a node replace its key now; each does so by itself every week", .many = true, .examples = "arcus nodes rotate gpu-07" },
    { "nodes cordon", VERB_NODE_UPDATE, word_generic, "NODE...", "Place nothing new on a node", .fixed = "{\"state\":\"cordoned\"}", .takes = "node", .many = true, .examples = "arcus nodes cordon gpu-07" },
    { "nodes uncordon", VERB_NODE_UPDATE, word_generic, "NODE...", "Use a node again", .fixed = "{\"state\":\"ready\"}", .takes = "node", .many = true, .examples = "arcus nodes uncordon gpu-07" },
    { "nodes drain", VERB_NODE_DRAIN, word_generic, "NODE... [FLAGS]", "Empty a node: its tasks may finish until a deadline, then they are queued again", .takes = "node", .many = true,
      .more = "Nothing new is placed there from now on. What still runs at the deadline gets SIGTERM, SIGKILL after its grace period, and runs\n"
              "again elsewhere; that is no failed try and is not billed. The node is `drained` when it holds nothing; `arcus uncordon` uses it again.",
      .examples = "arcus nodes drain gpu-07\narcus nodes drain gpu-07 --deadline 4h\narcus nodes drain gpu-07 --requeue\narcus nodes drain gpu-07 --wait" },
    { "nodes lost", VERB_NODE_LOST, word_generic, "NODE...", "Say that a silent node is gone for good", .many = true,
      .more = "Its tasks are queued again as soon as they can run there no more, also while so much of the fleet is silent that nothing else is moved;\n"
              "what was to wait for it has failed. If it comes back after all, it is a node as before.", .examples = "arcus nodes lost gpu-07" },
    { "nodes taint", VERB_NODE_UPDATE, word_generic, "NODE TAINT", "Let only jobs that tolerate it run on a node, or with a - behind it: let all again", .takes = "node taint",
      .more = "A taint is key=value:NoSchedule, key=value or key. Jobs name those they tolerate (`arcus run --toleration key=value`). What runs there stays.",
      .examples = "arcus nodes taint gpu-07 dedicated=vision:NoSchedule\narcus nodes taint gpu-07 dedicated-" },
    { "nodes set", VERB_NODE_UPDATE, word_generic, "NODE...", "Say where a node is, who may run there and how its GPUs are shared", .many = true,
      .more = "A job asks for a region or a zone, and a gang for nodes close together (`arcus run --help`: nodes, within, prefer). \"\" leaves it to the agent again.",
      .examples = "arcus nodes set gpu-07 --region eu-west --zone a --rack r12\narcus nodes set gpu-07 --rack \"\"" },
    { "nodes remove", VERB_NODE_REMOVE, word_generic, "NODE...", "Take a node out of the fleet; its tasks count as lost", .many = true, .examples = "arcus nodes remove gpu-07" },
    { "cordon", VERB_NODE_UPDATE, word_generic, "NODE...", "Place nothing new on a node", .fixed = "{\"state\":\"cordoned\"}", .takes = "node", .many = true, .examples = "arcus cordon gpu-07" },
    { "uncordon", VERB_NODE_UPDATE, word_generic, "NODE...", "Use a node again: it is neither cordoned nor drained any more", .fixed = "{\"state\":\"ready\"}", .takes = "node", .many = true, .examples = "arcus uncordon gpu-07" },
    { "drain", VERB_NODE_DRAIN, word_generic, "NODE... [FLAGS]", "Empty a node, as `arcus nodes drain` does", .takes = "node", .many = true,
      .examples = "arcus drain gpu-07 --deadline 1h\narcus drain gpu-07 --requeue" },
    { "gpus list", VERB_GPU_LIST, word_generic, "", "List GPUs and what is free of them", COLUMNS(gpu_columns), .examples = "arcus gpus\narcus gpus -o wide" },
    { "top", VERB_GPU_LIVE, word_top, "[FLAGS]", "Show what GPUs do now, and the tasks that hold them, until q is pressed", .own = &top_fields, .takes = "",
      .more = "Operators see every GPU; others those that tasks of their project hold, and of one that they share only their own part of it.\n"
              "A dash is a figure that the device does not tell. -o json prints everything once.",
      .examples = "arcus top\narcus top -n 1\narcus top --node gpu-07 -o json" },
    { "flavors list", VERB_FLAVOR_LIST, word_generic, "", "List the standard shapes that this cloud can give", COLUMNS(flavor_columns), .examples = "arcus flavors" },

    { "status", VERB_FLEET_GET, word_generic, "", "How the cloud stands: nodes, jobs, and whether too much of it is silent", .takes = "", .examples = "arcus status" },
    { "rules list", VERB_RULES_GET, word_rules, "", "Show who yields to whom, the brake, and how much silence is too much", .takes = "", .examples = "arcus rules" },
    { "rules set", VERB_RULES_SET, word_rules, "[FLAGS]", "Change the rules of the cloud; what is not given stays", .takes = "",
      .examples = "arcus rules set --brake 10% --window 1h\narcus rules set --preempt high:low,spot\narcus rules set --lift 30m\narcus rules set --silent 30%\narcus rules set --weights stuck=250,fetch=usual" },
    { "rules weights", VERB_RULES_GET, word_rules_weights, "", "Show what a place for a task is judged by, how much each counts, and what it is for", .takes = "",
      .more = "A term is a cost in GPUs, a weight is in thousandths; the node with the least sum is taken. `arcus sim --weight` tries others on a trace,\n"
              "`arcus rules set --weights` sets them.", .examples = "arcus rules weights" },
    { "reserve list", VERB_RESERVE_LIST, word_generic, "[FLAGS]", "List reservations", .takes = "", COLUMNS(reserve_columns), .examples = "arcus reserve\narcus reserve list --all" },
    { "reserve create", VERB_RESERVE_CREATE, word_generic, "--for PROJECT --gpus GPUS [FLAGS]", "Promise a project a part of the fleet for a time", .takes = "",
      .more = "From its beginning on its places are for jobs of that project, until then and while it is not there for spot work, which yields when it\n"
              "comes; other jobs start there only if they end before (max_duration). It is refused where it could not be kept.",
      .examples = "arcus reserve create --for vision --gpus H200:8 --count 4 --from 2026-12-01T08:00:00Z --duration 12h" },
    { "reserve get", VERB_RESERVE_GET, word_generic, "RESERVATION...", "Show a reservation", .many = true, .examples = "arcus reserve get release" },
    { "reserve remove", VERB_RESERVE_REMOVE, word_generic, "RESERVATION...", "End a reservation before its time", .many = true, .examples = "arcus reserve remove release" },
    { "servers list", VERB_SERVER_LIST, word_generic, "", "List the servers of this cloud, and which of them writes", COLUMNS(server_columns), .examples = "arcus servers" },

    { "projects list", VERB_PROJECT_LIST, word_generic, "", "List the projects that you are in", COLUMNS(project_columns), .examples = "arcus projects" },
    { "projects create", VERB_PROJECT_CREATE, word_generic, "NAME", "Make a project", .examples = "arcus projects create vision --gpus 8" },
    { "projects get", VERB_PROJECT_GET, word_generic, "PROJECT...", "Show a project", .many = true, .examples = "arcus projects get vision" },
    { "projects quota", VERB_PROJECT_UPDATE, word_generic, "PROJECT [FLAGS]", "Change what a project may hold at once, and its weight against others", .examples = "arcus projects quota vision --gpus 16 --jobs 1000\narcus projects quota vision --weight 2" },
    { "projects set", VERB_PROJECT_UPDATE, word_generic, "PROJECT [FLAGS]", "The same, and where its tasks may run", .examples = "arcus projects set vision --residency eu,de\narcus projects set vision --residency \"\"" },
    { "quota list", VERB_QUOTA_LIST, word_generic, "", "Show what the project, its users and GPU models are limited to, and what is used", COLUMNS(quota_columns),
      .more = "RESERVED is what the tasks that run could still come to: all the time they may run for.", .examples = "arcus quota\narcus quota --project vision -o json" },
    { "quota set", VERB_QUOTA_SET, word_generic, "PROJECT [FLAGS]", "Limit tasks, GPUs or GPU-hours of a project, of a user in it, or of one GPU model", .takes = "project",
      .more = "What is not given stays; -1 takes a limit away. Where GPU-hours are limited, jobs with GPUs need a max_duration.",
      .examples = "arcus quota set vision --gpu-hours-month 5000\narcus quota set vision --user ada --model H200 --gpus 4" },
    { "orgs list", VERB_ORG_LIST, word_generic, "", "List organisations", COLUMNS(org_columns), .examples = "arcus orgs" },
    { "orgs create", VERB_ORG_CREATE, word_generic, "NAME", "Make an organisation", .examples = "arcus orgs create physics" },
    { "members list", VERB_MEMBER_LIST, word_generic, "", "List the members of the project", COLUMNS(who_columns), .examples = "arcus members --project vision" },
    { "members set", VERB_MEMBER_SET, word_generic, "USER ROLES", "Give a user roles in the project", .takes = "user roles", .examples = "arcus members set ada developer --project vision" },
    { "members remove", VERB_MEMBER_REMOVE, word_generic, "USER...", "Take a user out of the project", .many = true, .examples = "arcus members remove ada --project vision" },
    { "users list", VERB_USER_LIST, word_generic, "", "List users", COLUMNS(user_columns), .examples = "arcus users" },
    { "users create", VERB_USER_CREATE, word_user_create, "NAME", "Make a user; the password is asked for", .own = &user_create_fields,
      .examples = "arcus users create ada\narcus users create ada --roles operator --password-stdin <pw" },
    { "users passwd", -1, word_user_passwd, "[USER]", "Change your password, or (as an operator) somebody's", .own = &user_passwd_fields, .takes = "user",
      .examples = "arcus users passwd\narcus users passwd ada" },
    { "users disable", VERB_USER_UPDATE, word_generic, "USER...", "No login and no key of this user works any more", .fixed = "{\"disabled\":true}", .takes = "user", .many = true, .examples = "arcus users disable ada" },
    { "users enable", VERB_USER_UPDATE, word_generic, "USER...", "Let a user in again", .fixed = "{\"disabled\":false}", .takes = "user", .many = true, .examples = "arcus users enable ada" },
    { "users roles", VERB_USER_UPDATE, word_generic, "USER ROLES", "Change the platform roles of a user", .takes = "user roles", .examples = "arcus users roles ada auditor" },
    { "accounts list", VERB_ACCOUNT_LIST, word_generic, "", "List the service accounts of the project", COLUMNS(who_columns), .examples = "arcus accounts" },
    { "accounts create", VERB_ACCOUNT_CREATE, word_generic, "NAME", "Make a service account for programs", .examples = "arcus accounts create ci --roles developer" },
    { "accounts disable", VERB_ACCOUNT_DISABLE, word_generic, "ACCOUNT...", "Disable a service account and all its keys at once", .many = true, .examples = "arcus accounts disable ci" },
    { "keys list", VERB_KEY_LIST, word_generic, "", "List API keys", COLUMNS(key_columns), .examples = "arcus keys" },
    { "keys create", VERB_KEY_CREATE, word_generic, "[NAME]", "Make an API key; it is shown once", .takes = "name", .examples = "arcus keys create laptop --expires-in 30d\narcus keys create ci-key --account ci --roles viewer" },
    { "keys disable", VERB_KEY_DISABLE, word_generic, "KEY...", "Disable a key at once", .many = true, .examples = "arcus keys disable laptop" },
    { "ssh-keys list", VERB_SSH_KEY_LIST, word_generic, "", "List the public keys of your profile", COLUMNS(ssh_key_columns), .examples = "arcus ssh-keys" },
    { "ssh-keys add", VERB_SSH_KEY_ADD, word_ssh_key_add, "FILE [--name NAME]", "Put a public key into your profile: it lets you in wherever you may use arcus ssh", .own = &ssh_key_add_fields, .takes = "file",
      .more = "With a key in the profile ssh works from machines that have no .pub file of it: with an agent, or a piece of\nhardware. One that is there already stays as it is.",
      .examples = "arcus ssh-keys add ~/.ssh/id_ed25519.pub\nssh-add -L | head -n 1 | arcus ssh-keys add - --name yubikey" },
    { "ssh-keys remove", VERB_SSH_KEY_REMOVE, word_generic, "SSH_KEY...", "Remove a public key: no new SSH session of yours comes in with it", .many = true,
      .more = "By name, id or fingerprint. It does not come in either when a client brings it along, until it is added again; sessions that are open stay.",
      .examples = "arcus ssh-keys remove laptop" },
    { "secrets list", VERB_SECRET_LIST, word_generic, "", "List the names of secrets", COLUMNS(secret_columns), .examples = "arcus secrets" },
    { "secrets set", VERB_SECRET_SET, word_secret_set, "NAME", "Store or replace a secret, asked for or read from standard input", .own = &secret_fields, .takes = "name",
      .more = "A newline at the very end of standard input is not part of the value.", .examples = "arcus secrets set HF_TOKEN\narcus secrets set HF_TOKEN <token.txt" },
    { "secrets remove", VERB_SECRET_REMOVE, word_generic, "NAME...", "Remove a secret", .many = true, .examples = "arcus secrets remove HF_TOKEN" },
    { "volumes list", VERB_VOLUME_LIST, word_generic, "", "List volumes", COLUMNS(volume_columns), .examples = "arcus volumes" },
    { "volumes create", VERB_VOLUME_CREATE, word_generic, "NAME...", "Make a folder that outlives jobs", .many = true, .examples = "arcus volumes create data" },
    { "volumes remove", VERB_VOLUME_REMOVE, word_generic, "VOLUME...", "Remove a volume, with what is in it", .many = true, .examples = "arcus volumes remove data" },
    { "images list", VERB_IMAGE_LIST, word_generic, "", "List imported images", COLUMNS(image_columns), .examples = "arcus images" },
    { "images import", VERB_IMAGE_ADD, word_image_import, "FILE --name NAME", "Upload an OCI layout or a docker archive as an image of the project", .own = &import_fields, .takes = "file",
      .more = "What the cloud has already is not uploaded again.", .examples = "arcus images import busybox.tar --name busybox:1.36\ndocker save app -o app.tar; arcus images import app.tar --name app" },
    { "images remove", VERB_IMAGE_REMOVE, word_generic, "IMAGE...", "Remove an imported image", .many = true, .examples = "arcus images remove busybox:1.36" },

    { "events", VERB_EVENT_LIST, word_events, "[FLAGS]", "Show what happened, or follow it", .takes = "", .examples = "arcus events --since 1200\narcus events -f -o json" },
    { "audit list", VERB_AUDIT_LIST, word_audit_list, "[FLAGS]", "List who did what, from where and with what result", .takes = "", COLUMNS(audit_columns),
      .more = "Every change that people and programs asked for is in it, and every refusal; many alike within a\nminute are one line with their count.",
      .examples = "arcus audit --limit 20\narcus audit --result denied --from 2026-11-01 -o json" },
    { "audit verify", VERB_AUDIT_VERIFY, word_audit_verify, "", "Check that no entry of the audit was changed, removed, inserted or moved", .takes = "",
      .more = "It walks all entries and the archives of audit and usage, prints the number of each one that is not\nas it was written, and exits with 1 if there is any.",
      .examples = "arcus audit verify" },
    { "audit export", VERB_AUDIT_LIST, word_audit_export, "[FLAGS]", "Write the audit as JSON lines, oldest first", .takes = "",
      .examples = "arcus audit export\narcus audit export --since 120000" },
    { "usage", VERB_USAGE_SUM, word_generic, "[FLAGS]", "Sum what was used", .takes = "", COLUMNS(usage_columns),
      .examples = "arcus usage\narcus usage --by project,user,day --from 2026-11-01 -o json" },
    { "export trace", VERB_TRACE_LIST, word_export_trace, "[FLAGS]", "Write what ran, and when, as CSV that arcus sim replays", .takes = "",
      .more = "Operators get all projects, admins their own. Each line is one attempt that held something; of what still runs, deletion_time is now.\n"
              "Projects are p1, p2, ... in the order in which they come, unless --names is given.",
      .examples = "arcus export trace\narcus export trace --from 2026-10-01 --to 2026-11-01" },
    { "export nodes", -1, word_export_nodes, "", "Write the fleet as CSV that arcus sim reads (operators)", .examples = "arcus export nodes" },
    { "backup", VERB_BACKUP, word_backup, "FILE", "Take a consistent copy of the whole cloud, while it runs (operators)", .own = &backup_fields, .takes = "file",
      .more = "The keys are not in it: they are in keys/ and tls/ of the server's data folder; keep a copy of both elsewhere, once. On the head node\n"
              "itself `arcus backup FILE --data DIR` does the same without asking the server. `arcus restore --help` tells the way back.",
      .examples = "arcus backup cloud-2026-11-15.backup" },
    { "login", VERB_LOGIN, word_login, "--user NAME [--server URL]", "Trade your password for a key, and keep it in the config file", .own = &login_fields, .takes = "",
      .examples = "arcus login --user ada\narcus login --server https://cloud.example.org:6640 --user ada --context lab" },
    { "whoami", VERB_WHOAMI, word_generic, "", "Who this key belongs to, and what it may do", .examples = "arcus whoami" },
    { "config list", -1, word_config_list, "", "List the clouds of the config file", .examples = "arcus config list" },
    { "config use", -1, word_config_use, "NAME", "Make a cloud the current one", .own = &config_ref_fields, .takes = "name", .examples = "arcus config use lab" },
    { "config set", -1, word_config_set, "NAME [FLAGS]", "Add or change a cloud, and make it the current one", .own = &config_set_fields, .takes = "name",
      .examples = "arcus config set lab --server https://lab.example.org:6640 --key-file lab.key" },
    { "config remove", -1, word_config_remove, "NAME", "Forget a cloud", .own = &config_ref_fields, .takes = "name", .examples = "arcus config remove lab" },
    { "completion", -1, word_completion, "bash|zsh", "Print a script that completes words and flags", .own = &completion_fields, .takes = "shell",
      .examples = "source <(arcus completion bash)" },
    { "version", -1, word_version, "", "Print the version", .examples = "arcus version" },
    { "help", -1, word_help_word, "[WORD]", "Help about a word", .command = true, .takes = "", .examples = "arcus help run" },
};
const size_t word_count = COUNT(words);

/* --- finding */

static const struct { const char *said, *meant; } synonyms[] = {
    { "ls", "list" }, { "rm", "remove" }, { "delete", "remove" }, { "add", "create" }, { "create", "add" }, { "new", "create" }, { "new", "add" }, { "show", "get" }, { "describe", "get" }, { "put", "set" },
};

static bool same_part(const char *known, size_t n, const char *said, bool subject)
{
    size_t m = strlen(said);
    if (n == m && strncmp(known, said, n) == 0)
        return true;
    return subject && n == m + 1 && known[m] == 's' && strncmp(known, said, m) == 0;        /* node = nodes */
}

static bool same_subword(const char *known, const char *said)
{
    for (size_t i = 0; i < COUNT(synonyms); i++)
        if (text_is(synonyms[i].said, said) && text_is(synonyms[i].meant, known))
            return true;
    return text_is(known, said);
}

/* How many arguments of what was typed are this word: 2 "nodes list", 1 "nodes", 0 it is not. */
static int fits(const struct word *w, int argc, char **argv)
{
    size_t n = strcspn(w->name, " ");
    const char *sub = w->name[n] ? w->name + n + 1 : NULL;
    if (!same_part(w->name, n, argv[0], sub || text_is(w->name, "jobs")))
        return 0;
    if (!sub)
        return 1;
    if (argc > 1 && same_subword(sub, argv[1]))
        return 2;
    return text_is(sub, "list") && (argc == 1 || argv[1][0] == '-');
}

const struct word *word_find(int argc, char **argv, int *used)
{
    const struct word *best = NULL;
    int most = 0;
    if (argc > 0 && (text_is(argv[0], "job") || text_is(argv[0], "jobs"))) {    /* jobs cancel is cancel, jobs is ps */
        static char *ps[] = { "ps" };
        bool list = argc == 1 || argv[1][0] == '-' || same_subword("list", argv[1]);
        const struct word *w = list ? word_find(1, ps, used) : word_find(argc - 1, argv + 1, used);
        *used += list && (argc == 1 || argv[1][0] == '-') ? 0 : !list;
        return list && argc > 1 && argv[1][0] != '-' ? (*used = 2, w) : w;
    }
    for (size_t i = 0; argc > 0 && i < word_count; i++) {
        int n = fits(&words[i], argc, argv);
        if (n > most)
            most = n, best = &words[i];
    }
    *used = most;
    return best;
}

bool word_unknown(int argc, char **argv, struct err *err)
{
    AUTO(str_done) struct str subs = { 0 };
    const char *best = "help";
    size_t distance = SIZE_MAX;
    for (size_t i = 0; i < word_count; i++) {
        char first[64];
        size_t n = strcspn(words[i].name, " ");
        snprintf(first, sizeof first, "%.*s", (int)n, words[i].name);
        if (words[i].name[n] && same_part(words[i].name, n, argv[0], true))
            str_printf(&subs, "%s%s", subs.len ? ", " : "", words[i].name + n + 1);
        size_t d = text_distance(argv[0], first);
        if (d < distance)
            distance = d, best = words[i].name;
    }
    if (subs.len)
        return argc > 1 ? err_set(err, RC_BAD_INPUT, "%s knows no '%.40s'; it knows %s", argv[0], argv[1], subs.at)
                        : err_set(err, RC_BAD_INPUT, "%s needs one of %s", argv[0], subs.at);
    return err_set(err, RC_BAD_INPUT, "there is no word '%.40s'; did you mean '%.*s'? (arcus help shows all)", argv[0], (int)strcspn(best, " "), best);
}
