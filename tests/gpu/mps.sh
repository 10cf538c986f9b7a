#!/usr/bin/env bash
# mps.sh - on a host with an NVIDIA GPU and its MPS: four tasks share it by quarters. Does each get its part, can one take more, and what does a neighbour feel? Prints
# TAP and a table; no mode of the card is touched. Needs PyTorch; lib.sh says what else. About 7 minutes; what is most important comes first.
#   SECONDS_EACH=10 tests/gpu/mps.sh [compute|sizes|memory|words|faults|more]...      none: all
. "$(dirname "$0")/lib.sh"
: "${SECONDS_EACH:=10}" "${AHEAD:=20}"          # AHEAD: how long four tasks may take to come up
wants=${*:-compute memory words faults more sizes}
for part in $wants; do case $part in compute | sizes | memory | words | faults | more) ;; *) echo "Bail out! there is no part $part"; exit 2 ;; esac; done
begin torch
CONTROL=$(command -v nvidia-cuda-mps-control || ls /usr/local/nvidia/bin/nvidia-cuda-mps-control 2>/dev/null)
mode_before=$(mode) alone=
cloud_up
read -ra quarter <<<"--gpus 0.25 --cpus $(some 2 0.2) --memory ${MEMORY:-8GB}"
read -ra whole <<<"--gpus 1 --cpus $(some 4 0.5) --memory ${MEMORY:-16GB}"
bench() { # bench AHEAD SECONDS FLAGS...: what one task says
    run "${@:3}" -- "$PY" "$BASE/in/bench.py" "$(soon "$1")" "$2"
}
four() { # four PROGRAM WORD WORDS-OF-THE-THREE: figures of four at once
    local t job jobs=() i words
    t=$(soon "$AHEAD")
    for i in 0 1 2 3; do
        read -ra words <<<"$([ "$i" = 0 ] || echo "$3")"
        job=$(start "${quarter[@]}" -- "$PY" "$BASE/in/$1" "$t" "$SECONDS_EACH" "${words[@]}")
        jobs+=("$job")
    done
    for job in "${jobs[@]}"; do
        until_ok 90 over "$job"
        [ "$(said "$job" | grep "$2" | cut -d' ' -f5 | cut -d. -f1)" -le 0 ] 2>/dev/null || [ "$2" != TFLOPS ] || note "$job came late: raise AHEAD: $(said "$job" | tail -n 3 | tr '\n' ' ') $(how_ended "$job")" >&2
        said "$job" | figure "$2"
    done | tr '\n' ' '
}

SIZES=(2048 4096 16384)
in_sizes() { # the product of other sizes, four quarters at once against the whole
    local n job t jobs=() figures all
    all=$(run "${whole[@]}" -- "$PY" "$BASE/in/bench.py" "$(soon 8)" 3 "${SIZES[@]}")
    t=$(soon "$AHEAD")
    for _ in 0 1 2 3; do jobs+=("$(start "${quarter[@]}" -- "$PY" "$BASE/in/bench.py" "$t" 3 "${SIZES[@]}")"); done
    for job in "${jobs[@]}"; do until_ok 90 over "$job"; done
    note "| bf16 matrix product of size | the whole GPU, TFLOP/s | four quarters at once | of the whole |" && note "|---|---|---|---|"
    for n in TFLOPS "${SIZES[@]/#/SIZE}"; do
        mapfile -t figures < <(for job in "${jobs[@]}"; do said "$job" | figure "$n"; done)
        "$PY" -IS -c 'import sys; n, all, *f = sys.argv[1:]; f = [float(x) for x in f]; print("# | %s | %s | %s | %.1f %% |" % (n.replace("TFLOPS", "8192").replace("SIZE", ""), all, " ".join("%.1f" % x for x in f), 100 * sum(f) / float(all)))' \
            "$n" "$(figure "$n" <<<"$all")" "${figures[@]}" || note "| $n | not measured |"
    done
}
table() {
    "$PY" -IS - "$exclusive" "$again" "$polite" "$busy" "$(figure TFLOPS <<<"$alone")" "$band" <<'PY'
import sys
def numbers(s): return [float(x) for x in s.split()]
e1, e2, p, b, alone, band = map(numbers, sys.argv[1:7])
e = e1 + e2
mean = sum(e) / len(e) if e else 0
s = sum(p) or 1
print("| bf16 matrix product 8192, TFLOP/s | | |\n|---|---|---|")
print("| the whole GPU, one task, before and after | %s | |" % " ".join("%.1f" % x for x in e))
print("| a quarter, alone | %s | |" % " ".join("%.1f" % x for x in alone))
print("| four quarters at once | %s | together %.1f: %.2f %% of the whole; parts %s %% |" % (" ".join("%.1f" % x for x in p), s, 100 * s / mean if mean else 0, " ".join("%.2f" % (100 * x / s) for x in p)))
print("| the first polite, three greedy | %s | the first keeps %.2f %% |" % (" ".join("%.1f" % x for x in b), 100 * b[0] / p[0] if p and b else 0))
print("| copies in memory, four at once, GB/s (not promised) | %s | together %.0f |" % (" ".join("%.0f" % x for x in band), sum(band)))
print("FIGURES", len(p), round(max(abs(100 * x / s - 25) for x in p), 3) if p else 99, round(100 * s / mean, 2) if mean else 0, round(100 * b[0] / p[0], 2) if p and b else 0)
PY
}

in_compute() {
    part "its part of the compute"
    bench 6 1 "${whole[@]}" >/dev/null              # files are read, kernels are known
    exclusive=$(bench 8 "$SECONDS_EACH" "${whole[@]}" | figure TFLOPS)
    note "the whole GPU in one task: $exclusive TFLOP/s"
    polite=$(four bench.py TFLOPS '')
    note "four quarters: $polite"
    busy=$(four bench.py TFLOPS greedy)
    note "the first beside three greedy ones: $busy"
    again=$(bench 8 "$SECONDS_EACH" "${whole[@]}" | figure TFLOPS)
    alone=$(bench 8 5 "${quarter[@]}")
    note "a quarter alone: $alone"
    band=$(four band.py GBPS '')
    table >"$BASE/table" 2>&1
    grep -v ^FIGURES "$BASE/table" | sed 's/^/# /'
    read -r _ n off sum kept <<<"$(grep ^FIGURES "$BASE/table")"
    like "a quarter sees a quarter of the multiprocessors and of the memory" "$alone" 'TFLOPS [0-9.]+ 3[0-9] 3[0-9]{4} '
    true_that "each of four has a quarter of the aggregate, within 3 points" "${n:-0} == 4 and ${off:-99} <= 3"
    true_that "together they have 97 % of the whole or more" "${sum:-0} >= 97"
    true_that "one keeps 97 % of it beside three that are greedy" "${kept:-0} >= 97"
}

in_memory() {
    part "its part of the memory"
    share=$(arcus gpus -o json | json "d['items'][0]['memory_mib'] // 4")
    job=$(start "${quarter[@]}" -- "$PY" "$BASE/in/mem.py" hold 143000 1 100)
    until_ok 60 has_said "$job" '^hold'
    sleep 2
    got=$(said "$job" | figure hold) free=$(said "$job" | figure free) now=$(arcus top -o json >/dev/null; sleep 3; arcus top -o json | json "d['items'][0]['tasks'][0]['memory_used_mib']")
    note "promised $share MiB; it sees $free free and got $got in pieces of 100; NVML says that it holds $now"
    true_that "the promise is exact: all but what the driver keeps with a process can be had, and no more" "$share - 400 <= ${free:-0} <= $share and ${free:-0} - 200 < ${got:-0} <= ${free:-0}"
    is "who holds all of its share is left alone" "$(field "$job" "d['state']")" running
    arcus cancel "$job" --grace 0s >/dev/null 2>&1
    job=$(start "${quarter[@]}" -- "$PY" "$BASE/in/mem.py" hold 20000 2 1000)
    until_ok 60 over "$job"
    like "two processes that hold more together are ended, with that as the reason" "$(how_ended "$job")" 'out_of_memory .*held [23][0-9]{4} MiB|out_of_memory .*held 4[0-9]{4} MiB'
    note "its memory was taken: $(said "$job" | grep -oE 'at [0-9.]+' | tr '\n' ' '); it ended: $(attempts "$job" "d['items'][0].get('ended_at', d['items'][0].get('ended'))") (now $(date -u +%T.%3N), $(date +%s.%3N))"
}

in_words() {
    part "words to the daemon"
    keeps=$(start "${quarter[@]}" -- "$PY" "$BASE/in/spin.py" 25)
    until_ok 30 has_said "$keeps" begins
    asks=$(start "${quarter[@]}" -- sh -c 's=$(echo get_server_list | "$0" | head -n 1); for w in quit "set_default_active_thread_percentage 100" "set_default_device_pinned_mem_limit 0 100G" "start_server -uid 0" "shutdown_server $s -f" "set_active_thread_percentage $s 100" "terminate_client $s $(echo "get_client_list $s" | "$0" | head -n 1)"; do echo "<$w: $(echo "$w" | "$0" 2>&1 | tr "\n" " ")>"; done; echo "door: $(ls -A /tmp/nvidia-mps | tr "\n" " ")"; echo "divides: $(echo get_default_active_thread_percentage | "$0")"' "$CONTROL")
    until_ok 60 over "$asks"
    told=$(said "$asks")
    for words in quit set_default_active_thread_percentage set_default_device_pinned_mem_limit start_server shutdown_server set_active_thread_percentage terminate_client; do
        like "a task's $words is refused" "$(grep "<$words" <<<"$told")" '[Pp]rivilege'
    done
    like "it sees one socket of the daemon, which divides as before" "$told" $'door: control \n.*divides: 25.0'
    until_ok 60 over "$keeps"
    like "the neighbour of those words has felt nothing" "$(said "$keeps")" well
}

in_faults() {
    part "neighbours of one that dies: whatever it did to them, they are told and tried again"
    feel() { # feel NAME COMMAND-THAT-HURTS SPIN-WORD SAYS GUILTY
        local a b hurt
        room_for 50 "$1: the neighbour ends well" || return
        a=$(start "${quarter[@]}" -- "$PY" "$BASE/in/spin.py" 10)
        until_ok 30 has_said "$a" begins
        # behind a shell: nobody can kill the first process of a container from inside
        b=$(start "${quarter[@]}" -- sh -c '"$0" "$@" & echo $! >/tmp/pid; wait $!' "$PY" "$BASE/in/spin.py" 10 "$3")
        until_ok 30 has_said "$b" "$4"
        hurt=$(date +%s.%3N)
        B=$b eval "$2"
        until_ok 90 over "$a"
        note "$1, at $hurt: it ended: $(how_ended "$b"), it said: $(said "$b" | tr '\n' ' ')"
        note "  the neighbour: $(attempts "$a" "[(x.get('outcome'), x.get('detail')) for x in d['items']]"); it said: $(said "$a" | tr '\n' ' ')"
        note "  MPS: $(tail -n 8 "$BASE"/run/mps/*/log/* 2>/dev/null | cut -c1-200)"
        echo "$a" >"$BASE/last"
        like "$1: the neighbour ends well, at once or when it is tried again" "$(field "$a" "d['state']") $(said "$a" | tail -n 1)" '^done well'
        [ -z "${5:-}" ] || like "$1: it is told whose fault that was (not where the log names nobody)" "$(attempts "$b" "[str(x.get('outcome')) for x in d['items']][0]")" "$5"
        arcus cancel "$b" --grace 0s >/dev/null 2>&1
    }
    feel "a task that kills itself in mid-kernel" 'arcus exec "$B" -- sh -c "kill -9 \$(cat /tmp/pid)" </dev/null' long 'in kernel'
    feel "a task that writes where it may not" true bad begins
    feel "a task that is cancelled in mid-kernel" 'arcus cancel "$B" >/dev/null' long 'in kernel'
}

in_more() {
    part "asking for more"
    wide() { run "${quarter[@]}" --env "$1" ${2:+--env "$2"} -- "$PY" "$BASE/in/bench.py" "$(soon 6)" 2; }
    [ -n "$alone" ] || alone=$(bench 8 3 "${quarter[@]}")
    base=$(figure TFLOPS <<<"$alone") share=$(arcus gpus -o json | json "d['items'][0]['memory_mib'] // 4")
    for words in 'CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING=1 CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=100' CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=100 CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=120G CUDA_MPS_CLIENT_PRIORITY=0; do
        room_for 20 "$words does not widen it" || continue
        read -ra one <<<"$words"
        out=$(wide "${one[@]}")
        note "$words: $out"
        true_that "$words does not widen it" "0 < $(figure TFLOPS <<<"$out" | grep . || echo 0) <= ${base:-0} * 1.05 and $(grep TFLOPS <<<"$out" | cut -d' ' -f4 | grep . || echo 999999) <= $share"
    done
    if room_for 40 "one that goes around MPS is ended, with that as the reason"; then
        job=$(start "${quarter[@]}" --env CUDA_MPS_PIPE_DIRECTORY=/nowhere -- "$PY" "$BASE/in/mem.py" hold 500)
        until_ok 30 over "$job"
        like "one that goes around MPS is ended, with that as the reason" "$(how_ended "$job")" 'around MPS'
    fi
}

for part in $wants; do "in_$part"; done

part "afterwards"
for job in $(arcus ps -o json 2>/dev/null | json "' '.join(j['id'] for j in d['items'])"); do arcus cancel "$job" --grace 0s >/dev/null 2>&1; done
none() { ! grep -lsE '^.{0,60}nvidia-cuda-mps-(control|server)' /proc/[0-9]*/cmdline; }
if until_ok 40 none; then pass "with the last share its daemon has left"; else fail "with the last share its daemon has left" "$(pgrep -a -f nvidia-cuda-mps)" "nobody"; fi
is "the mode of the card was left alone" "$(mode)" "$mode_before"
note "what the daemons said: $(tail -n 40 "$BASE"/run/mps/*/log/* 2>/dev/null | cut -c1-200)"
