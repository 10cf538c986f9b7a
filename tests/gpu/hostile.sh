#!/usr/bin/env bash
# hostile.sh - on a host with an NVIDIA GPU: the check helper on a real device, and tenants who want what a neighbour left or has on it. Prints TAP; no mode of the card is
# touched. Needs no PyTorch; lib.sh says what else. About 3 minutes.
#   tests/gpu/hostile.sh
. "$(dirname "$0")/lib.sh"
begin
UUID=$(nvidia-smi --query-gpu=uuid --format=csv,noheader | head -n 1)
cloud_up
read -ra all <<<"--cpus $(some 4 0.5) --memory ${MEMORY:-16GB} --gpus 1"
program() { echo "$PY $BASE/in/mem.py $*"; }

part "what a neighbour left"
arcus projects create other >/dev/null
ALL=${ALL:-130000}
like "a tenant fills the GPU with its pattern and ends" "$(run "${all[@]}" -- $(program write "$ALL"))" 'write 1[0-9]{5} MiB'
note "the same project, without a scrub, finds: $(run "${all[@]}" -- $(program read "$ALL") | tr '\n' ' ') (0 where the driver clears memory itself)"
run "${all[@]}" -- $(program write "$ALL") >/dev/null
like "refused: another project reads nothing of it" "$(run --project other "${all[@]}" -- $(program read "$ALL"))" 'read 1[0-9]{5} MiB 0 found'
scrubbed=$(arcus events --limit 1000 -o json 2>/dev/null | grep -aoE '[0-9]+ of [0-9]+ MiB overwritten in [0-9]+ ms' | tr '\n' ';')
like "... because it was overwritten, which is an event" "$scrubbed" '[0-9]{5} of [0-9]+ MiB overwritten'
note "overwritten: $scrubbed"

part "more than one's share, by every way in"
over='out_of_memory .*of the GPU.s memory together'
share() { # share NAME SCRIPT [COMMAND]: a quarter runs it, COMMAND besides when it does (JOB is its id); how it ended
    local JOB at
    JOB=$(start --name "$1" --gpus 0.25 --cpus "$(some 2 0.2)" --memory "${MEMORY:-8GB}" -- sh -c "$2")
    if [ -n "${3:-}" ]; then until_ok 60 state_is "$JOB" running; eval "$3"; fi
    until_ok 60 over "$JOB" || arcus cancel "$JOB" --grace 0s >/dev/null
    until_ok 20 over "$JOB"
    at=$(said "$JOB" | grep -oE 'at [0-9.]+' | sort | tail -n 1)
    how_ended "$JOB"
    note "$1: $(said "$JOB" | tr '\n' ';' | head -c 400); memory $at, end $(attempts "$JOB" "d['items'][-1].get('ended_at', d['items'][-1].get('ended'))")" >&2
}
QUARTER=${QUARTER:-25000} PIECE=${PIECE:-1000}
like "refused: more than its part in several processes (fork)" "$(share fork "$(program hold "$QUARTER" 3 "$PIECE")")" "$over"
like "refused: ... by exec" "$(share exec "$(program hold "$QUARTER" 1 "$PIECE")" 'for i in 1 2; do arcus exec "$JOB" -- $(program hold "$QUARTER" 1 "$PIECE") </dev/null >/dev/null 2>&1 & done')" "$over"
like "refused: ... with another environment, around MPS" "$(share environ "export CUDA_MPS_PIPE_DIRECTORY=/nonexistent; $(program hold 100000 1 "$PIECE")")" 'out_of_memory|signaled .*around MPS'
like "refused: ... with every word of the environment that MPS has" "$(share words "export CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=140G CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=100; $(program hold "$QUARTER" 3 "$PIECE")")" "$over"
like "refused: ... in a namespace of its own (none can be made, or it is counted)" "$(share nested "unshare -Urp --fork true 2>&1 && echo made; $(program hold "$QUARTER" 3 "$PIECE")")" "$over"
if command -v gcc >/dev/null && gcc -static -w -o "$BASE/in/static" "$BASE/in/static.c" 2>"$BASE/err"; then
    chmod 755 "$BASE/in/static"
    how=$(share static "$BASE/in/static $QUARTER")
    # a static program that cannot load the driver has no GPU, and exceeds nothing
    like "refused: ... by a static binary" "$how $(said "$(cat "$BASE/last")" | tr '\n' ' ')" "$over|no library|^exited|^signaled"
else
    skip "refused: ... by a static binary" "no gcc -static here: $(tail -n 1 "$BASE/err")"
fi
if command -v ssh >/dev/null && mkdir -p -m 700 "$BASE/.ssh" && ssh-keygen -q -t ed25519 -N '' -f "$BASE/.ssh/id_ed25519" </dev/null; then
    into() { # into JOB COMMAND: by ssh
        timeout 60 ssh -F none -i "$BASE/.ssh/id_ed25519" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ProxyCommand="$ARCUS ssh --stdio $1" "root@$1" "$2" </dev/null >"$BASE/ssh.out" 2>&1
    }
    like "refused: ... by ssh" "$(share ssh "$(program hold "$QUARTER" 1 "$PIECE")" 'into "$JOB" "$(program hold "$QUARTER" 2 "$PIECE")" &') $(tail -n 3 "$BASE/ssh.out" 2>/dev/null | tr '\n' ' ')" "$over"
else
    skip "refused: ... by ssh" "no ssh client here"
fi

part "a process that is killed in the middle of its work on memory"
like "one that is killed between two kernels hurts nobody of its own" "$(share victim "$(program hold 4000) & sleep 3; kill -9 \$!; wait; sleep 1; $(program write 4000)")" '^succeeded'

part "the helper that tests and overwrites"
check() { timeout 120 "$ARCUS" gpu-check --do "$1" --uuid "${2:-$UUID}" $CHECK 2>&1; }
CHECK=${CHECK:-}
note "test: $(check test); scrub: $(check scrub)"
like "a good GPU passes its test: patterns over all of its memory, and matrix products" "$(check test)" '^\{"ok":true,"mib":[1-9][0-9]+'
like "... and all that is free of its memory can be overwritten" "$(check scrub)" '^\{"ok":true,"mib":[1-9][0-9]+'
like "a GPU that is not there is told" "$(check test GPU-00000000-0000-0000-0000-000000000000)" '"ok":false'
