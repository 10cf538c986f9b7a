#!/usr/bin/env bash
# network.sh - on a bare host: which networks can it make, do tasks of a project reach each other and nobody else, and do two ranks of torch.distributed (gloo) meet
# over it, each on half of a GPU where there is one? Prints TAP; lib.sh says what it needs. Touches nothing of the host's own network: no uplink, no underlay. A minute.
. "$(dirname "$0")/lib.sh"
begin
cloud_up
small() { run --cpus "$(some 1 0.2)" --memory 512MB "$@"; }
links="sed -n 's/^ *\([a-z0-9]*\):.*/\1/p' /proc/net/dev | sort | tr '\n' ' '"
is "a task that wants no network has only itself" "$(small --network none -- sh -c "$links")" "lo "
if [ "$(arcus describe node gpuhost -o json | json "d['info'].get('network')")" != True ]; then
    is "where there are no networks a task has only itself, too" "$(small -- sh -c "$links")" "lo "
    note "$(tail -n 5 "$BASE/log")"
    exit
fi
like "a task has an address" "$(small -- hostname -i)" '^100\.64\.'
cat >"$BASE/in/listen.py" <<'PY'
import socket
s = socket.socket(); s.bind(("0.0.0.0", 5000)); s.listen(8); print(socket.gethostbyname(socket.gethostname()), flush=True)
while True:
    c, _ = s.accept(); c.sendall(b"found\n"); c.close()
PY
cat >"$BASE/in/ask.py" <<'PY'
import socket, sys
try:
    s = socket.create_connection((sys.argv[1], 5000), 3); print(s.recv(99).decode().strip())
except OSError:
    print("nobody")
PY
arcus projects create other >/dev/null
job=$(start --cpus "$(some 1 0.2)" --memory 512MB -- "$PY" "$BASE/in/listen.py")
until_ok 30 has_said "$job" '^100'
at=$(said "$job" | head -n 1)
is "another of the project reaches it" "$(small -- "$PY" "$BASE/in/ask.py" "$at")" found
is "one of another project does not" "$(small --project other -- "$PY" "$BASE/in/ask.py" "$at")" nobody
is "... and neither does the host itself" "$("$PY" "$BASE/in/ask.py" "$at")" nobody
arcus cancel "$job" --grace 0s >/dev/null

"$PY" -c 'import torch.distributed' 2>/dev/null || { skip "two ranks meet" "$PY has no PyTorch"; exit; }
arcus volumes create shared >/dev/null
gpu=()
[ -e /dev/nvidia0 ] || [ -n "$UP" ] && gpu=(--gpus 0.5)
job=$(start --count 2 "${gpu[@]}" --cpus "$(some 2 0.2)" --memory "${MEMORY:-8GB}" --volume shared:/shared -- "$PY" "$BASE/in/ranks.py")
until_ok 120 over "$job"
out=$(arcus logs "$job" 2>&1; arcus logs "$job" --task 1 2>&1)
note "$out"
is "two ranks of torch.distributed meet over the project's network" "$(sort -u <<<"$out" | grep -cE 'rank [01] at 100\.64\.[0-9.]+: sum 3')" 2
