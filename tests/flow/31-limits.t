#!/usr/bin/env bash
# 31-limits.t - many who ask at once: tenants take turns, who asks too often is told 429 and when to come again, floods are borne, and what
# was acknowledged is kept. Nothing here measures time: fairness is counted in how many of another's requests went first.
. "$(dirname "$0")/lib.sh"
server_start server --listen 127.0.0.1:0 --default-image host
tenant() { # tenant NAME PROJECT: a developer's key
    call POST /v1/projects "{\"name\":\"$2\"}"
    call POST /v1/users "{\"name\":\"$1\",\"password\":\"password of $1\"}"
    call PUT "/v1/members/$1?project=$2" '{"roles":"developer"}'
    call POST /v1/login "{\"user\":\"$1\",\"password\":\"password of $1\"}"
    field .key
}
RED=$(tenant alice red) BLUE=$(tenant bob blue)
many() { # many KEY COUNT PATH [CURL FLAGS...]: the same request again and again, by one curl; the statuses
    local key=$1 n=$2 path=$3
    shift 3
    for _ in $(seq "$n"); do printf 'url = "%s"\noutput = "/dev/null"\n' "$URL$path"; done |
        curl -sk --max-time 100 -H "Authorization: Bearer $key" -w '%{http_code} %header{retry-after}\n' -K - "$@" 2>/dev/null
}
submit_flags=(-H 'Content-Type: application/json' --data-binary '{"command":["true"],"cpus":0.1,"memory":"64MB"}')
had() { grep -c "^$1" "$2"; }
jobs_of() { sql "SELECT count(*) FROM job j JOIN project p ON p.id = j.project WHERE p.name = '$1'"; }

# --- a tenant with a hundred connections, and one with one
many "$RED" 3000 /v1/jobs --parallel --parallel-max 100 "${submit_flags[@]}" >"$BASE/red" &
pids+=($!) NOISE=$!
busy() { [ "$(jobs_of red)" -gt 200 ]; }
until_ok 60 busy || give_up "the noise does not begin"
# All twenty are sent at once, on one connection: what a client does between two of them is not the server's.
body=${submit_flags[-1]} requests='' last=''
for i in $(seq 20); do
    [ "$i" != 20 ] || last=$'Connection: close\r\n'
    requests+=$'POST /v1/jobs HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n'"Authorization: Bearer $BLUE"$'\r\n'"Content-Length: ${#body}"$'\r\n'"$last"$'\r\n'"$body"
done
exec 5<>"/dev/tcp/127.0.0.1/${URL##*:}"
printf %s "$requests" >&5
timeout 100 cat <&5 | grep -ao 'HTTP/1.1 [0-9]*' >"$BASE/blue"
exec 5>&-
queued() { echo "SELECT $1 FROM event e JOIN project p ON p.id = e.project WHERE e.kind = 'job.queued' AND p.name = '$2'"; }
between=$(sql "$(queued 'count(*)' red) AND e.seq > ($(queued 'min(e.seq)' blue)) AND e.seq < ($(queued 'max(e.seq)' blue))")
kill -0 $NOISE 2>/dev/null && note "the noise went on beside all of it"
is "who asks one at a time beside a hundred gets all he asked for" "$(sort "$BASE/blue" | uniq -c | tr -s ' ')" " 20 HTTP/1.1 201"
note "$between jobs of the other went in meanwhile"
ok "... and each time waits for few of them: in order of arrival it would be a hundred" [ "$between" -lt 1000 ]
wait $NOISE
is "the many get what they asked for, too" "$(sort "$BASE/red" | uniq -c | tr -s ' ')" " 3000 201 "
is "what was acknowledged is in the store" "$(jobs_of red) $(jobs_of blue)" "3000 20"

# --- rates
stop "$UP"
server_start server --listen 127.0.0.1:0 --default-image host --rate-key 20 --rate-failures 1 --connections 100
call GET /v1/whoami
many "$RED" 200 /v1/jobs --parallel --parallel-max 40 "${submit_flags[@]}" >"$BASE/red"
ok "a key that asks too often is told 429" [ "$(had 429 "$BASE/red")" -gt 0 ]
is "... and when to come again" "$(grep ^429 "$BASE/red" | sort -u)" "429 1"
is "... and the rest was done, and all of it is there" "$(jobs_of red)" $((3000 + $(had 201 "$BASE/red")))
is "nothing else came back" "$(grep -vc '^201 \|^429 1' "$BASE/red")" 0
is "another key goes on" "$(many "$BLUE" 5 /v1/jobs "${submit_flags[@]}" | sort -u)" "201 "
many not-a-key 100 /v1/jobs >"$BASE/bad"
ok "bad keys are refused, and soon not even looked at" [ "$(had 401 "$BASE/bad") $(had 429 "$BASE/bad")" != "100 0" ]
is "... which hurts no good key of the same address" "$(many "$BLUE" 5 /v1/whoami | sort -u)" "200 "
ok "the log says so" grep -q 'limit: refused' "$BASE/server.log"

# --- floods
stop "$UP"
server_start server --listen 127.0.0.1:0 --default-image host --connections 400
perl tests/flood.pl "${URL#http://}" "$RED" 6 half=30 head=20 pipeline=20 body=30 follow=30 garbage=20 idle=100 >"$BASE/flood" 2>&1 &
pids+=($!) FLOOD=$!
many "$BLUE" 30 /v1/jobs "${submit_flags[@]}" >"$BASE/blue"
is "beside a flood of half requests, unread replies and garbage a tenant is served" "$(sort "$BASE/blue" | uniq -c | tr -s ' ')" " 30 201 "
wait $FLOOD
like "the flood was one" "$(cat "$BASE/flood")" 'body=[1-9].* garbage=[1-9].* half=[1-9].* pipeline=[1-9]'
is "... and all that was acknowledged is there" "$(jobs_of blue)" 55
perl tests/flood.pl "${URL#http://}" "$RED" 3 idle=450 >"$BASE/flood" 2>&1 &
pids+=($!) FLOOD=$!
is "with more connections than there are places a new one still gets one" "$(for _ in 1 2 3 4 5 6; do get /v1/whoami | jq -r .name; sleep 0.3; done | sort | uniq -c | tr -s ' ')" " 6 admin"
wait $FLOOD
finish
