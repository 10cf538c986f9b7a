#!/usr/bin/env bash
# 40-rules.t - what an operator allows on a node: taints, a node of one project, residency, who shares a GPU, MIG. Two nodes with simulated
# GPUs, some without ECC or in MIG mode; every rule is seen to keep somebody out and to let somebody in.
. "$(dirname "$0")/lib.sh"
server_start server --listen 127.0.0.1:0 --default-image host
arcus config set flow --server "$URL" --key-file "$DATA/admin.key" >/dev/null
N1=$NODE-a N2=$NODE-b
token() { arcus nodes token -o json | jq -r .token; }
agent_start "$N1" --sim-gpus 1,1:ecc=off --beat-ms 500 --token "$(token)"
agent_start "$N2" --sim-gpus 1:mig=1g.18gb@0/3g.71gb@4,1:mig --beat-ms 500 --topology eu/a --token "$(token)"
until_ok 60 node_ready "$N1"
until_ok 60 node_ready "$N2"
ok "both nodes are there" node_ready "$N2"
where() { get "/v1/jobs/$1/attempts" | jq -r '.items | sort_by(.id) | .[-1] | "\(.node) \(.gpus)"'; }
reason_is() { [ "$(job "$1" .reason)" = "$2" ]; }
waits() { until_ok 60 reason_is "$2" "$3"; is "$1" "$(job "$2" '.state + " " + .reason')" "queued $3"; }   # waits NAME JOB REASON
runs() { wait_for "$2" running; is "$1" "$(job "$2") $(where "$2")" "running $3"; }                         # runs NAME JOB PLACE
long() { submit "$(sh_job 'sleep 600' "$1")"; }
end() { local j; for j in "$@"; do call POST "/v1/jobs/$j/cancel" '{"grace":"0s"}'; done; for j in "$@"; do wait_end "$j"; done; }

# --- taints
arcus nodes taint "$N1" team=a:NoSchedule >/dev/null
arcus nodes taint "$N2" team=b >/dev/null
like "taints are listed" "$(arcus nodes)" 'team=a:NoSchedule'
A=$(long '{}') B=$(long '{"tolerations":["team=b:NoSchedule"]}') C=$(arcus submit --toleration team --node "$N1" -- sleep 600)
waits "who tolerates nothing has no node" "$A" NoSuitableNode
runs "who tolerates one taint runs there" "$B" "$N2 "
runs "a key alone tolerates any value" "$C" "$N1 "
arcus nodes taint "$N1" team- >/dev/null
runs "a taint that is taken away lets him in" "$A" "$N1 "
call POST /v1/jobs '{"command":["true"],"tolerations":["a=b:NoExecute"]}'
refused "other effects do not exist" 400 bad_input 'NoSchedule'
arcus nodes taint "$N2" team- >/dev/null
end "$A" "$B" "$C"

# --- a node of one project, and a project that may not leave its region
arcus projects create beta >/dev/null
arcus nodes set "$N1" --exclusive beta >/dev/null
is "a node of one project says so" "$(get "/v1/nodes/$N1" | jq -r .exclusive)" beta
A=$(long "{\"node\":\"$N1\"}")
waits "others have no place there" "$A" NoSuitableNode
B=$(arcus submit --project beta --node "$N1" -- sleep 600)
until_ok 60 eval '[ "$(arcus ps --project beta -o json | jq -r ".items[0].state")" = running ]'
is "the project itself has" "$(arcus ps --project beta -o json | jq -r '.items[0] | .state + " " + .node')" "running $N1"
arcus cancel --project beta "$B" --grace 0s >/dev/null
arcus nodes set "$N1" --exclusive "" >/dev/null
runs "... until it is everybody's again" "$A" "$N1 "
arcus projects set default --residency eu,de >/dev/null
B=$(long '{}') C=$(long "{\"node\":\"$N1\"}")
runs "a project with a residency runs where it may" "$B" "$N2 "
waits "... and nowhere else" "$C" NoSuitableNode
arcus nodes set "$N1" --region de >/dev/null
runs "... until the node counts as such a place" "$C" "$N1 "
arcus projects set default --residency "" >/dev/null
end "$A" "$B" "$C"

# --- shares
A=$(long '{"gpus":0.5}') B=$(long '{"gpus":0.5}') C=$(long '{"gpus":0.5}')
runs "shares go to the GPU with ECC" "$A" "$N1 0:0.500 (simulated)"
runs "... both of them" "$B" "$N1 0:0.500 (simulated)"
waits "... and a third waits beside one without" "$C" Resources
W=$(long '{"gpus":1}')
runs "which takes whole ones" "$W" "$N1 1 (simulated)"
end "$A" "$B" "$C" "$W"
arcus nodes set "$N1" --equal-shares >/dev/null
A=$(long '{"gpus":0.25}')
runs "where shares must be equal, the first decides" "$A" "$N1 0:0.250 (simulated)"
B=$(long '{"gpus":0.5}')
waits "another size waits" "$B" Resources
C=$(long '{"gpus":0.25}')
runs "the same size does not" "$C" "$N1 0:0.250 (simulated)"
end "$A" "$B" "$C"

# --- MIG
A=$(long '{"mig":"1g.18gb"}') B=$(long '{"mig":"1g.18gb"}') C=$(long '{"mig":"2g.35gb"}')
runs "a slice gets the instance that is there" "$A" "$N2 0:1g.18gb@0 (simulated)"
waits "there is no second one" "$B" Resources
waits "nor one of another profile" "$C" NoSuitableNode
arcus nodes set "$N2" --mig dynamic >/dev/null
wait_for "$B" running
wait_for "$C" running
is "where the operator allows it, slices are made" "$(job "$B") $(job "$C")" "running running"
BIG=$(long '{"mig":"4g.71gb"}') ALL=$(long '{"mig":"7g.141gb"}')
wait_for "$BIG" running
is "and small ones have left room for a large one" "$(job "$BIG")" running
is "no two share a slot" "$(for j in "$A" "$B" "$C" "$BIG"; do where "$j"; done | sort | uniq -d)" ""
waits "a whole one waits" "$ALL" Resources
like "an order tells the slot" "$(where "$BIG")" "[01]:4g.71gb@0"
finish
