#!/usr/bin/env bash
# 48-mpi.t - mpirun (openmpi of Debian) over two nodes, each in a network namespace of its own: what a gang finds in its tasks is enough to start ranks on
# the others, without sshd, keys or a shared disk. Without openmpi the launcher itself is tried, and the rest is skipped.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nets.sh"
N=m$$
declare -A NET=([h]=10 [a]=11 [b]=12)
networks_up 198.51.100
cloud_in h 198.51.100.10:7000
for n in a b; do
    call POST /v1/nodes/tokens '{}'
    node_in $n --token "$(field .token)"
done
nodes_come a b
ends() { until_ok 90 eval '[[ " done failed cancelled " == *" $(job '"$1"' .state) "* ]]'; job "$1" '.state + " " + (.exit_code | tostring)'; }
said() { get "/v1/jobs/$1/logs?task=$2"; }

# --- the launcher
GANG='{"nodes":2,"gpus":1}'
J=$(submit "$(sh_job 'exec $ARCUS_LAUNCH --gang sh -c '"'"'cat $ARCUS_HOSTFILE; other=${ARCUS_NODE_IPS#*,}; echo words | $ARCUS_LAUNCH -x $other "echo rank \$NODE_RANK got \$(cat); echo wrong >&2; exit 7"; echo code $?; exit 3'"'" "$GANG")")
is "what rank 0 ends with is the end of the gang" "$(ends "$J")" "failed 3"
OUT=$(said "$J" 0)
like "each has a hostfile" "$OUT" $'^100\\.64\\.16\\.[0-9]+ slots=1\n100\\.64\\.16\\.[0-9]+ slots=1\n'
like "a command on the other node has its input, its output and its exit code" "$OUT" $'rank 1 got words\n(.*\n)*code 7'
is "... and what it has to say about errors" "$(grep -c '^wrong$' <<<"$OUT")" 1

# --- who is not of the gang is not heard
J=$(submit "$(sh_job 'exec $ARCUS_LAUNCH --gang sleep 600' "$GANG")")
until_ok 60 eval '[ "$(job $J .state)" = running ]'
OTHER=$(sql "SELECT lease FROM attempt WHERE job = (SELECT max(job) FROM attempt) AND task = 1" | jq -r .address)
K=$(submit "$(sh_job "for i in \$(seq 100); do perl -MIO::Socket::INET -e 'my \$s = IO::Socket::INET->new(PeerAddr => \"$OTHER:29501\", Timeout => 2) or exit 1; my \$c = \"echo heard >/outputs/it\"; print \$s pack(\"aN\", \"q\", length \$c), \$c; \$s->flush; exit defined(my \$l = <\$s>) ? 3 : 0' && exit 0; sleep 0.1; done; exit 4" "{\"node\":\"$NODE-a\"}")")
is "refused: a task of the same project that is not of the gang" "$(ends "$K")" "done 0"
call POST "/v1/jobs/$J/cancel" '{}'
is "a gang that waits in the launcher ends when it is told" "$(ends "$J" | cut -d ' ' -f 1)" cancelled

# --- the node's own network
J=$(submit "$(sh_job 'sed -n "s/^ *\([a-z0-9]*\):.*/\1/p" /proc/net/dev | tr "\n" " "; ls /sys/class/net | tr "\n" " "; touch /sys/kernel/uevent_seqnum 2>&1 | grep -c Read-only; perl -MIO::Socket::INET -e "print IO::Socket::INET->new(PeerAddr => q(198.51.100.10:7000)) ? q(there) : q(not there)"' '{"network":"host"}')")
held() { get "/v1/jobs/$J/why" | jq -e '.refused[] | select(.filter == "host_network")'; }
ok "network: host waits for a node that is its project's alone" until_ok 60 held
is "... and has not run" "$(job "$J")" queued
call PATCH "/v1/nodes/$NODE-b" '{"exclusive":"default"}'
is "... and runs when there is one" "$(ends "$J")" "done 0"
like "it sees what the node sees, and changes nothing" "$(said "$J" 0)" 'eth0 .*eth0 .*1.*there$'
call PATCH "/v1/nodes/$NODE-b" '{"exclusive":""}'

# --- mpirun
if ! command -v mpirun orted cc >/dev/null; then
    skip "mpirun over two nodes" "openmpi-bin or a compiler is not installed"
    finish
    exit
fi
mkdir "$BASE/mpi"
cat >"$BASE/mpi/ring.c" <<'END'
#include <stdio.h>
#include <unistd.h>
/* As Open MPI's mpi.h has them, which is in another package than mpirun. */
extern char ompi_mpi_comm_world, ompi_mpi_int, ompi_mpi_op_sum;
int MPI_Init(int *, char ***), MPI_Finalize(void), MPI_Comm_rank(void *, int *), MPI_Comm_size(void *, int *);
int MPI_Allreduce(const void *, void *, int, void *, void *, void *), MPI_Barrier(void *);
int main(void)
{
    enum { MANY = 1 << 20 };
    static int mine[MANY], all[MANY];
    int rank, size;
    char host[64];
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(&ompi_mpi_comm_world, &rank), MPI_Comm_size(&ompi_mpi_comm_world, &size);
    for (int i = 0; i < MANY; i++)
        mine[i] = rank + i;
    MPI_Allreduce(mine, all, MANY, &ompi_mpi_int, &ompi_mpi_op_sum, &ompi_mpi_comm_world);
    int good = 1;
    for (int i = 0; i < MANY; i++)
        good &= all[i] == size * (size - 1) / 2 + size * i;
    gethostname(host, sizeof host);
    printf("rank %d of %d on %s: %s\n", rank, size, host, good ? "summed" : "wrong");
    return MPI_Finalize();
}
END
ok "a program of MPI is built" cc -O1 -o "$BASE/mpi/ring" "$BASE/mpi/ring.c" -l:libmpi.so.40
RING=$(base64 -w0 "$BASE/mpi/ring")
J=$(submit "$(sh_job "echo $RING | base64 -d >/tmp/ring; chmod 755 /tmp/ring; exec \$ARCUS_LAUNCH --gang mpirun --oversubscribe -np 4 /tmp/ring" '{"nodes":2,"gpus":2,"memory":"2GB"}')")
is "mpirun starts its ranks on both nodes and they end well" "$(ends "$J")" "done 0"
OUT=$(said "$J" 0)
is "each of four ranks has the sum of all" "$(grep -c ': summed$' <<<"$OUT")" 4
is "... two on each node" "$(sed -n 's/.* on \(.*\): .*/\1/p' <<<"$OUT" | sort | uniq -c | awk '{print $1}' | tr '\n' ' ')" "2 2 "
[ "$(grep -c summed <<<"$OUT")" = 4 ] || note "$(head -c 1500 <<<"$OUT" | tr '\n' '~') / $(said "$J" 1 | head -c 500 | tr '\n' '~')"
finish
