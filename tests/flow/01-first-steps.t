#!/usr/bin/env bash
# 01-first-steps.t - the tour of the README, typed as a newcomer would, and what each step must show.
# also on PostgreSQL
. "$(dirname "$0")/lib.sh"
cloud_up
cd "$BASE" || exit 1

out=$(arcus run --gpus 1 -- sh -c 'echo hello from $ARCUS_JOB_ID on $CUDA_VISIBLE_DEVICES' 2>err.log)
like "run prints what the job prints" "$out" '^hello from job-[0-9a-z]{13} on [0-3]$'
arcus run -- sh -c 'echo out; echo err >&2; exit 42' >out 2>err
is "run exits as the job does" $? 42
is "... with its output" "$(cat out)" out
like "... and its errors apart" "$(cat err)" '(^|
)err($|
)'
arcus run -t 1s --grace 0s -- sleep 60 >/dev/null 2>&1
is "run: over its time is 124" $? 124
arcus run -- /no/such/program >/dev/null 2>err
is "run: a command that is not there is 127" $? 127
like "... and says why" "$(cat err)" /no/such/program

cat >train.yaml <<'EOF'
name: train
resources:
  gpu: H200:1
  cpus: 0.5
  memory: 1GB
env:
  EPOCHS: "3"
run: |
  for i in $(seq $EPOCHS); do echo epoch $i; sleep 0.2; done
  while [ ! -e /tmp/seen ]; do sleep 0.1; done
  echo done > /outputs/result
max_duration: 10m
retries: 2
EOF
id=$(arcus submit -f train.yaml)
like "submit prints the id and nothing else" "$id" '^job-[0-9a-z]{13}$'
like "ps shows what is alive" "$(arcus ps)" 'train'
wait_for train running
arcus exec train -- touch /tmp/seen </dev/null
printf 'name: one\ncommand: ["true"]\n---\nname: two\ncommand: ["true"]\ncount: 2\n' >many.yaml
like "several workloads in one file are submitted together" "$(arcus submit -f many.yaml --cpus 0.1 --memory 64MB | tr '\n' ' ')" '^job-[0-9a-z]{13} job-[0-9a-z]{13} $'
printf -- '---\nname: three\ncommand: ["true"]\nsecrets: [nosuch]\n' >>many.yaml
like "... or not at all, and the bad one is named" "$(arcus submit -f many.yaml 2>&1)" 'jobs\[2\].*nosuch'
is "logs -f follows to the end" "$(arcus logs -f train 2>/dev/null)" "epoch 1
epoch 2
epoch 3"
wait_end "$id"
unlike "ps does not show what has ended" "$(arcus ps 2>/dev/null)" 'train'
like "ps --all does" "$(arcus ps --all)" "$id +train +done"
described=$(arcus describe train)
like "describe shows state, attempts and what was asked" "$described" 'done'
like "... the attempt" "$described" 'att-[0-9a-z]{13}'
like "... the wish" "$described" 'EPOCHS'
arcus cp train:/outputs/result . >/dev/null 2>&1
is "cp brings the output" "$(cat result)" done

gpus=$(arcus gpus)
is "gpus shows four, each marked simulated" "$(grep -c simulated <<<"$gpus")" 4
like "nodes marks them too" "$(arcus nodes)" simulated
like "flavors marks them too" "$(arcus flavors)" simulated
like "... and usage" "$(arcus usage --by user,flavor)" simulated
like "... and ps" "$(arcus ps --all)" simulated
for word in gpus nodes flavors 'usage --by flavor'; do
    is "$word -o json marks them too" "$(arcus $word -o json | jq '[.items[] | select((.gpus // .gpu_seconds // 1) != 0) | .simulated] | all')" true
done

arcus run -d --name sleeper -- sleep 600 >detached 2>&1
ok "run -d comes back at once" test $? = 0
wait_for sleeper running
is "exec runs inside" "$(arcus exec sleeper -- sh -c 'echo $ARCUS_JOB_NAME' 2>/dev/null </dev/null)" sleeper
arcus cancel sleeper --grace 0s >/dev/null
is "cancel ends it" "$(how sleeper | cut -d' ' -f1)" cancelled
arcus cancel sleeper >/dev/null 2>err
is "cancelled again: exit code 5, a sentence" "$? $(grep -c '^arcus: ' err)" "5 1"

like "usage counts GPU seconds" "$(arcus usage --by user,flavor -o json | jq -c '[.items[].gpu_seconds] | add > 0')" true
events=$(arcus events -o json --limit 1000)
is "events are numbered without gaps" "$(jq '[.items[].id] | . == [range(.[0]; .[0] + length)]' <<<"$events")" true
like "... and tell the story" "$(jq -r '.items[].name' <<<"$events" | tr '\n' ' ')" 'job.queued .*task.placed .*task.started .*attempt.ended .*job.done'

arcus submit --name sweep --array 0-9 -c 0.1 -m 64MB -- sh -c 'echo task $ARCUS_ARRAY_INDEX' >/dev/null
after=$(arcus submit --after ok:sweep -- echo all ten went well)
is "an array, and a job after it" "$(how "$after" 60)" "done succeeded 0"
is "... which printed" "$(arcus logs "$after")" "all ten went well"
printf s3cret | arcus secrets set token >/dev/null
is "a secret from standard input" $? 0
arcus volumes create data >/dev/null
mkdir code && echo 'echo this is my code' >code/main.sh
is "secrets, volumes and a work folder in one run" "$(arcus run --secret token --volume data:/data -w code -- sh -c 'pwd; ls; sh main.sh; cat /run/secrets/token; echo kept >/data/file' 2>/dev/null)" "/workdir
main.sh
this is my code
s3cret"
is "the volume outlives the job" "$(arcus run --volume data:/data:ro -- cat /data/file 2>/dev/null)" kept

# --- the word itself
like "help lists the words" "$(arcus help)" 'run.*submit.*ps'
for word in run submit ps describe logs exec cp cancel nodes gpus flavors projects users keys secrets volumes images events usage login whoami config version completion; do
    text=$(arcus $word --help 2>&1)
    [[ $? = 0 && $text == *rcus\ $word* ]] || fail "$word --help shows usage and examples" "$text" "a text with arcus $word"
    for shell in bash zsh; do [ $word != completion ] || like "completion for $shell" "$(arcus completion $shell)" sleeper\|arcus; done
done
pass "every word has help"
ok "the completion is good bash" bash -n <(arcus completion bash)
like "version" "$(arcus version)" '[0-9]+\.[0-9]+\.[0-9]+'
is "whoami" "$(arcus whoami -o json | jq -r .name)" admin
for word in ps nodes gpus flavors projects users keys secrets volumes images events usage; do
    is "$word -o json is items and next, each with id, name and state" "$(arcus $word -o json | jq -c '[keys == ["items", "next"], ([.items[] | has("id") and has("name") and has("state")] | all)]')" "[true,true]"
done
ok "-o yaml is YAML of the same" test "$(arcus ps --all -o yaml | grep -c '^ *-* *id: ')" -gt 5
unlike "no colours but on a terminal" "$(arcus ps --all | cat -v)" '\^\['
like "... where there are" "$(script -qec "$ARCUS ps --all" /dev/null </dev/null | cat -v)" '\^\['
arcus pss >/dev/null 2>err
is "an unknown word: exit code 2, and the nearest" "$? $(grep -cE '\bps\b' err)" "2 1"
arcus run --gpu-s 1 -- true >/dev/null 2>err
is "an unknown flag: exit code 2, and the nearest" "$? $(grep -c -- '--gpus' err)" "2 1"
arcus describe nothing-of-this-name >/dev/null 2>err
is "not found: exit code 4" $? 4
ARCUS_CONFIG=$BASE/none arcus ps >/dev/null 2>err
ok "without a cloud: a sentence that says what to do" test $? != 0 -a -s err
is "the config is for its owner alone" "$(stat -c %a "$ARCUS_CONFIG")" 600
cd / || exit 1
finish
