# slurm.sh - for benches: a Slurm of its own below $TMP, with the cheapest ways to follow and to bind tasks. Sourced.
# start_slurm NODES CPUS [LINES]: that many slurmd on this machine, named bench1 and so on, and more lines of slurm.conf; false: it does not start here.
slurm_nodes() { # slurm_nodes NODES CPUS
    local i
    for i in $(seq "$1"); do
        echo "NodeName=bench$i NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$((6694 + i)) CPUs=$2 RealMemory=1000 State=UNKNOWN"
    done
}

start_slurm() {
    local i
    mkdir -p "$TMP/munge" "$TMP/slurm/state" "$TMP/slurm/spool"
    head -c 128 /dev/urandom >"$TMP/munge/key"
    chmod 600 "$TMP/munge/key"
    munged --force --key-file="$TMP/munge/key" --socket="$TMP/munge/socket" --pid-file="$TMP/munge/pid" --log-file="$TMP/munge/log" --seed-file="$TMP/munge/seed" >/dev/null 2>&1
    cat >"$TMP/slurm/slurm.conf" <<CONF
ClusterName=bench
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$TMP/munge/socket
CredType=cred/munge
SlurmctldPort=6694
StateSaveLocation=$TMP/slurm/state
SlurmdSpoolDir=$TMP/slurm/spool/%n
SlurmctldPidFile=$TMP/slurm/slurmctld.pid
SlurmdPidFile=$TMP/slurm/slurmd-%n.pid
SlurmctldLogFile=$TMP/slurm/slurmctld.log
SlurmdLogFile=$TMP/slurm/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
MaxJobCount=200000
MaxArraySize=10000
ReturnToService=2
GresTypes=gpu
${3:-}
$(slurm_nodes "$1" "$2")
PartitionName=bench Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
    export SLURM_CONF=$TMP/slurm/slurm.conf
    slurmctld -f "$SLURM_CONF" >/dev/null 2>&1
    for i in $(seq "$1"); do slurmd -f "$SLURM_CONF" -N "bench$i" >/dev/null 2>&1 || true; done
    for _ in $(seq 100); do sinfo -h >/dev/null 2>&1 && return; sleep 0.1; done
    return 1
}

stop_slurm() {
    local f
    for f in "$TMP"/slurm/*.pid "$TMP"/munge/pid; do [ -s "$f" ] && kill "$(cat "$f")" 2>/dev/null || true; done
}
