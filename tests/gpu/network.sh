#!/usr/bin/env bash
# network.sh - on a bare host: which networks can it make, do tasks of a project reach each other and nobody else, and do two ranks of torch.distributed (gloo) meet
# over it, each on half of a GPU where there is one? Starts a cloud of its own, prints TAP. Needs root, python3, and `arcus` with its crun beside it in PATH (or ARCUS=...).
# Touches nothing of the host's own network: no uplink, no underlay.
set -uo pipefail
: "${ARCUS:=$(command -v arcus)}"
[ -x "$ARCUS" ] || { echo "Bail out! no arcus: set ARCUS or PATH"; exit 1; }
[ "$(id -u)" = 0 ] || { echo "Bail out! needs root"; exit 1; }
ARCUS=$(readlink -f "$ARCUS") PY=${PY:-$(command -v python3)}
BASE=$(mktemp -d /opt/arcus-network.XXXXXX) && chmod 755 "$BASE" || exit 1
export ARCUS_CONFIG=$BASE/config HOME=$BASE
count=0 bad=0 UP=''
pass() { count=$((count + 1)); echo "ok $count - $1"; }
fail() { count=$((count + 1)) bad=$((bad + 1)); echo "not ok $count - $1"; printf '%s\n' "got: $2" "wanted: $3" | head -c 3000 | sed 's/^/#   /'; }
is() { if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "$2" "$3"; fi; }
like() { if [[ $2 =~ $3 ]]; then pass "$1"; else fail "$1" "$2" "something like /$3/"; fi; }
skip() { count=$((count + 1)); echo "ok $count - $1 # SKIP $2"; }
note() { printf '%s\n' "$*" | sed 's/^/# /'; }
until_ok() { local end=$((SECONDS + $1)); shift; until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $end ] || return 1; sleep 0.1; done; }
leave() {
    trap - EXIT
    [ -n "$UP" ] && { kill "$UP" 2>/dev/null; wait "$UP" 2>/dev/null; }
    for p in $(pgrep -f "^$BASE/run/bin/arcus-task "); do kill "$p" 2>/dev/null; done
    sleep 1
    [ -n "${KEEP:-}" ] || rm -rf --one-file-system "$BASE" 2>/dev/null
    echo "1..$count"
    exit $((bad > 0))
}
trap leave EXIT
trap 'exit 1' INT TERM
value() { "$PY" -c "import json,sys; d=json.load(sys.stdin); print($1)" 2>/dev/null; }

note "host: $(uname -r)"
"$ARCUS" up --data "$BASE/data" --run "$BASE/run" --listen 127.0.0.1:0 --name here >"$BASE/log" 2>&1 &
UP=$!
until_ok 30 test -s "$BASE/data/address" || { echo "Bail out! $(tail -n 3 "$BASE/log")"; exit 1; }
"$ARCUS" config set here --server "$(cat "$BASE/data/address")" --key-file "$BASE/data/admin.key" >/dev/null
knows() { "$ARCUS" describe node here -o json | grep -qE '"runtime": *"(crun|runc)'; }
until_ok 60 knows || { echo "Bail out! the node does not come: $(tail -n 3 "$BASE/log")"; exit 1; }
about=$("$ARCUS" describe node here -o json)
note "cannot: $(value 'd["info"]["cannot"]' <<<"$about")"
run() { "$ARCUS" run --cpus 1 --memory 512MB "$@" 2>"$BASE/err"; }
alone=$(run --network none -- sh -c "sed -n 's/^ *\([a-z0-9]*\):.*/\1/p' /proc/net/dev | sort | tr '\n' ' '")
is "a task that wants no network has only itself" "$alone" "lo "
note "$(cat "$BASE/err")"
if [ "$(value 'd["info"].get("network")' <<<"$about")" != True ]; then
    closed=$(run -- sh -c "sed -n 's/^ *\([a-z0-9]*\):.*/\1/p' /proc/net/dev | sort | tr '\n' ' '")
    is "where there are no networks a task has only itself, too" "$closed" "lo "
    note "$(tail -n 5 "$BASE/log")"
    exit
fi
like "a task has an address" "$(run -- hostname -i)" '^100\.64\.'
cat >"$BASE/listen.py" <<'EOF'
import socket, time
s = socket.socket(); s.bind(("0.0.0.0", 5000)); s.listen(8); print(socket.gethostbyname(socket.gethostname()), flush=True)
while True:
    c, _ = s.accept(); c.sendall(b"found\n"); c.close()
EOF
cat >"$BASE/ask.py" <<'EOF'
import socket, sys
try:
    s = socket.create_connection((sys.argv[1], 5000), 3); print(s.recv(99).decode().strip())
except OSError as e:
    print("nobody")
EOF
"$ARCUS" projects create other >/dev/null
JOB=$("$ARCUS" run -d --cpus 1 --memory 512MB -- "$PY" -c "$(cat "$BASE/listen.py")")
JOB=$(grep -oE 'job-[a-z0-9]+' <<<"$JOB" | head -n 1)
said() { AT=$("$ARCUS" logs "$JOB" 2>/dev/null | head -n 1); [ -n "$AT" ]; }
until_ok 30 said
is "another of the project reaches it" "$(run -- "$PY" -c "$(cat "$BASE/ask.py")" "$AT")" found
is "one of another project does not" "$(ARCUS_PROJECT=other run -- "$PY" -c "$(cat "$BASE/ask.py")" "$AT")" nobody
is "... and neither does the host itself" "$("$PY" "$BASE/ask.py" "$AT")" nobody
"$ARCUS" cancel "$JOB" >/dev/null

"$PY" -c 'import torch.distributed' 2>/dev/null || { skip "two ranks meet" "$PY has no PyTorch"; exit; }
cat >"$BASE/ranks.py" <<'EOF'
import os, socket, time, torch, torch.distributed as dist
rank = int(os.environ["ARCUS_ARRAY_INDEX"])
me = socket.gethostbyname(socket.gethostname())
if rank == 0:
    open("/shared/at.new", "w").write(me); os.rename("/shared/at.new", "/shared/at")
while not os.path.exists("/shared/at"):
    time.sleep(0.05)
os.environ.update(MASTER_ADDR=open("/shared/at").read(), MASTER_PORT="29500", RANK=str(rank), WORLD_SIZE="2", GLOO_SOCKET_IFNAME="eth0")
dist.init_process_group("gloo")
x = torch.ones(1 << 24) * (rank + 1)
dist.all_reduce(x)
t = time.time()
for _ in range(10):
    dist.all_reduce(x)
took = (time.time() - t) / 10
print("rank %d at %s: sum %d, all_reduce of 64 MiB in %.1f ms, %s" % (rank, me, 3, took * 1000, torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"), flush=True)
dist.destroy_process_group()
EOF
"$ARCUS" volumes create shared >/dev/null
gpu=()
[ -e /dev/nvidia0 ] && gpu=(--gpus 0.5)
ID=$("$ARCUS" run -d --count 2 "${gpu[@]}" --cpus 2 --memory 8GB --volume shared:/shared -- "$PY" -c "$(cat "$BASE/ranks.py")")
ID=$(grep -oE 'job-[a-z0-9]+' <<<"$ID" | head -n 1)
over() { "$ARCUS" describe "$ID" -o json | grep -qE '"state": *"(done|failed|cancelled)"'; }
until_ok 180 over
out=$("$ARCUS" logs "$ID" 2>&1; "$ARCUS" logs "$ID" --task 1 2>&1)
note "$out"
is "two ranks of torch.distributed meet over the project's network" "$(grep -cE '^(.*\| *)?rank [01] at 100\.64\.' <<<"$(sort -u <<<"$out")")" 2
