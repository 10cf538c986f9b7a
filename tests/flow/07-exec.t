#!/usr/bin/env bash
# 07-exec.t - commands inside a running task: their streams, their exit codes, signals; and a terminal that is one, with its size.
# also on PostgreSQL
. "$(dirname "$0")/lib.sh"
cloud_up
arcus run -d --name box -c 0.5 -m 256MB -- sh -c 'echo main process; trap "exit 0" TERM; while :; do sleep 0.2; done' >/dev/null 2>&1
wait_for box running
in_box() { arcus exec box -- "$@" </dev/null 2>"$BASE/err"; }

is "a command runs inside" "$(in_box sh -c 'echo $ARCUS_JOB_NAME; id -u')" "box
0"
in_box sh -c 'exit 17'
is "its exit code is ours" $? 17
in_box sh -c 'kill -TERM $$'
is "a signal is 128 and its number" $? 143
in_box /no/such/program
is "a command that is not there is 127" $? 127
like "... with a sentence" "$(cat "$BASE/err")" 'no/such/program: command not found'
in_box /etc
is "one that cannot be executed is 126" $? 126
out=$(in_box sh -c 'echo out; echo err >&2')
is "the two streams stay apart" "$out|$(cat "$BASE/err")" "out|err"
is "standard input goes in and ends" "$(printf 'one\ntwo\n' | arcus exec -i box -- sh -c 'wc -l; echo end' 2>/dev/null | tr -d ' ')" "2
end"
head -c 5000000 /dev/urandom >"$BASE/bytes"
is "five million bytes go through and back unchanged" "$(arcus exec -i box -- cat <"$BASE/bytes" 2>/dev/null | sha256sum)" "$(sha256sum <"$BASE/bytes")"
is "without -i there is no input" "$(echo word | arcus exec box -- sh -c 'cat; echo end' 2>/dev/null)" end
is "it is the task's own world: its pids, its limits" "$(in_box sh -c 'ps -e 2>/dev/null | grep -c systemd; grep ^CapBnd /proc/self/status | cut -f2; cat /proc/self/cgroup | grep -c arcus/')" "0
00000000200405fb
$(in_box sh -c 'grep -c arcus/ /proc/1/cgroup')"
in_box sh -c 'tty' >/dev/null
ok "without -t there is no terminal" test $? != 0

# --- a terminal: script(1) gives us one to type at. crun gives it its size while the command begins: for a moment it may be 0 0.
typed() { script -qec "stty rows 33 cols 77; $ARCUS exec -it box -- $1" /dev/null <"${2:-/dev/null}" 2>&1 | tr -d '\r\0'; }
like "with -t there is" "$(typed 'tty')" '/dev/(pts/[0-9]+|console)'
is "it has our size" "$(typed "sh -c 'while [ \"\$(stty size)\" = \"0 0\" ]; do sleep 0.1; done; stty size'" | grep -oE '[0-9]+ [0-9]+$')" "33 77"
script -qec "$ARCUS exec -it box -- sh -c 'exit 9'" /dev/null </dev/null >/dev/null 2>&1
is "the exit code comes through the terminal" $? 9
mkfifo "$BASE/typed"
script -qefc "stty rows 33 cols 77; $ARCUS exec -it box -- sh" "$BASE/typescript" <"$BASE/typed" >/dev/null 2>&1 &
SCRIPT=$!
pids+=($SCRIPT)
exec 6>"$BASE/typed"
asks() { [ "$(tail -c 2 "$BASE/typescript")" = '# ' ]; }         # its prompt: who types earlier types to somebody else
runs() { in_box sh -c 'cat /proc/[0-9]*/cmdline | tr "\0" " " | grep -q "sleep 10[0] "'; }
until_ok 20 asks
printf 'echo typed-%s\r' word >&6
until_ok 20 grep -aq '^typed-word' "$BASE/typescript"
printf 'sleep 100\r' >&6
until_ok 20 runs
printf '\003' >&6
until_ok 20 asks
printf 'echo after-interrupt $?\r' >&6
until_ok 20 grep -aq '^after-interrupt' "$BASE/typescript"
printf 'exit 5\r' >&6
until_ok 20 eval '! kill -0 $SCRIPT'
exec 6>&-
session=$(tr -d '\r' <"$BASE/typescript")
like "what is typed is echoed and run" "$session" $'\ntyped-word'
like "Ctrl-C interrupts what runs there, and only that" "$session" $'\nafter-interrupt 130'

# --- resize while it runs
mkfifo "$BASE/keys"
script -qefc "stty rows 20 cols 50; echo \$\$ >$BASE/shell; tty >$BASE/tty; exec $ARCUS exec -it box -- sh -c 'trap \"stty size\" WINCH; stty size; while [ ! -e /tmp/enough ]; do sleep 0.1; done'" "$BASE/resized" <"$BASE/keys" >/dev/null 2>&1 &
SCRIPT=$!
pids+=($SCRIPT)
exec 7>"$BASE/keys"
until_ok 10 grep -q '^20 50' "$BASE/resized"
stty rows 40 cols 123 <"$(cat "$BASE/tty")"
until_ok 10 grep -q '^40 123' "$BASE/resized"
is "a resized terminal is resized there" "$(tr -d '\r' <"$BASE/resized" | grep -E '^[1-9][0-9]* [0-9]+$' | uniq | tr '\n' ' ')" "20 50 40 123 "
in_box touch /tmp/enough
wait $SCRIPT
exec 7>&-

# --- ends
"$ARCUS" exec box -- sleep 500 </dev/null >/dev/null 2>&1 &
GONE=$!
gone() { ! in_box sh -c 'cat /proc/[0-9]*/cmdline | tr "\0" " " | grep -q "sleep 50[0] "'; }
there() { ! gone; }
until_ok 10 there
kill -9 $GONE
wait $GONE 2>/dev/null
until_ok 10 gone
ok "a command whose client is gone is ended" gone
ok "the task itself goes on" in_state box running
"$ARCUS" exec box -- sh -c 'echo started; sleep 500' </dev/null >"$BASE/out" 2>&1 &
LAST=$!
until_ok 10 grep -q started "$BASE/out"
call POST /v1/jobs/box/cancel '{"grace":"1s"}'
wait $LAST
ok "a command ends with its task, and not with 0" test $? != 0
wait_end box
in_box true
code=$?
ok "nothing runs in what has ended: exit code $code, a sentence" test $code != 0 -a -s "$BASE/err"
arcus exec nothing-here -- true </dev/null >/dev/null 2>&1
is "nor in what is not there: exit code 4" $? 4

# --- a task talks before its node has told of its start
early=
for _ in 1 2 3 4 5 6; do
    J=$(submit "$(sh_job 'echo ready; exec sleep 100')")
    until has_said "$J" ready; do :; done
    early+="$(arcus exec "$J" -- echo here </dev/null 2>&1) "
    arcus cancel "$J" >/dev/null
done
is "exec works from its first line on" "$early" "here here here here here here "
finish
