#!/usr/bin/env bash
# 02-http.t - the wire: what is malformed is refused as nginx 1.22 refuses it, nothing is told to a stranger, limits hold, and an error names
# the field and the fix. Raw bytes where a client would mend them.
# also on PostgreSQL
. "$(dirname "$0")/lib.sh"
server_start server --listen 127.0.0.1:0 --default-image host
PORT=${URL##*:}

raw() { # raw BYTES (as printf %b reads them): the status lines of the replies, on one line; "closed" when nothing came
    local out
    exec 3<>"/dev/tcp/127.0.0.1/$PORT" || return
    printf '%b' "$1" >&3 2>/dev/null
    out=$(timeout 30 cat <&3 2>/dev/null | tr -d '\0' | tr -d '\r' | grep -aoE '^HTTP/1\.[01] [0-9]{3}|\}HTTP/1\.1 [0-9]{3}' | grep -oE '[0-9]{3}$' | tr '\n' ' ')
    exec 3>&-
    echo "${out:-closed}"
}
end='Connection: close\r\n\r\n'
auth="Authorization: Bearer $KEY\\r\\n"
host='Host: x\r\n'
json='Content-Type: application/json\r\n'
while IFS='|' read -r want name bytes; do
    is "raw: $name" "$(raw "$bytes")" "$want "
done <<EOF
200|a plain request|GET /healthz HTTP/1.1\r\n$host$end
200|HTTP/1.0 without a Host|GET /healthz HTTP/1.0\r\n\r\n
400|no Host|GET /healthz HTTP/1.1\r\n$end
400|two Hosts|GET /healthz HTTP/1.1\r\n$host$host$end
400|two Content-Lengths that differ|POST /v1/jobs HTTP/1.1\r\n$host$auth${json}Content-Length: 2\r\nContent-Length: 3\r\n$end{}
400|two Content-Lengths that agree|POST /v1/jobs HTTP/1.1\r\n$host$auth${json}Content-Length: 2\r\nContent-Length: 2\r\n$end{}
400|Content-Length with Transfer-Encoding|POST /v1/jobs HTTP/1.1\r\n$host$auth${json}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n${end}2\r\n{}\r\n0\r\n\r\n
400|a space before the colon|GET /healthz HTTP/1.1\r\nHost : x\r\n$end
400|a NUL in a header|GET /healthz HTTP/1.1\r\n${host}X-A: a\0b\r\n$end
400|a NUL in the target|GET /hea\0lthz HTTP/1.1\r\n$host$end
400|obs-fold|GET /healthz HTTP/1.1\r\n${host}X-A: a\r\n b\r\n$end
400|bare LF|GET /healthz HTTP/1.1\nHost: x\nConnection: close\n\n
400|bare CR in a header|GET /healthz HTTP/1.1\r\n${host}X-A: a\rb\r\n$end
400|Content-Length: +5|POST /v1/jobs HTTP/1.1\r\n$host$auth${json}Content-Length: +5\r\n${end}{"a":
400|Content-Length: -1|POST /v1/jobs HTTP/1.1\r\n$host$auth${json}Content-Length: -1\r\n$end
400|Content-Length with a comma|POST /v1/jobs HTTP/1.1\r\n$host$auth${json}Content-Length: 2, 2\r\n$end{}
400|chunk size 0x1f|POST /v1/jobs HTTP/1.1\r\n$host$auth${json}Transfer-Encoding: chunked\r\n${end}0x1f\r\n{}\r\n0\r\n\r\n
400|chunk size with a sign|POST /v1/jobs HTTP/1.1\r\n$host$auth${json}Transfer-Encoding: chunked\r\n${end}+2\r\n{}\r\n0\r\n\r\n
400|a header without a colon|GET /healthz HTTP/1.1\r\n${host}nonsense\r\n$end
400|a request line of nonsense|nonsense\r\n\r\n
400|a target that is no path|GET healthz HTTP/1.1\r\n$host$end
200 200|pipelining|GET /healthz HTTP/1.1\r\n$host\r\nGET /readyz HTTP/1.1\r\n$host$end
200 400|pipelining, the second malformed|GET /healthz HTTP/1.1\r\n$host\r\nGET /readyz HTTP/1.1\r\n$end
EOF
like "raw: an unknown transfer coding" "$(raw "POST /v1/jobs HTTP/1.1\r\n$host${auth}Transfer-Encoding: gzip\r\n$end")" '^(400|501) $'
like "raw: HTTP/2.0 by name" "$(raw "GET /healthz HTTP/2.0\r\n$host$end")" '^(400|505) $'
like "raw: a header line of 100 KB" "$(raw "GET /healthz HTTP/1.1\r\n${host}X-A: $(head -c 100000 /dev/zero | tr '\0' a)\r\n$end")" '^(400|431) $'
like "raw: 2000 headers" "$(raw "GET /healthz HTTP/1.1\r\n$host$(for _ in $(seq 2000); do printf 'X-A: a\\r\\n'; done)$end")" '^(400|431) $'
like "raw: a target of 100 KB" "$(raw "GET /$(head -c 100000 /dev/zero | tr '\0' a) HTTP/1.1\r\n$host$end")" '^(414|400|431) $'
is "none of them became a job" "$(get '/v1/jobs?all=true' | jq '.items | length')" 0

# --- a stranger learns nothing
call GET /openapi.json
API=$BODY
routes() { jq -r '.paths | to_entries[] | .key as $p | .value | keys[] | select(. != "parameters") | "\(ascii_upcase) \($p)"' <<<"$API" | sort; }
in_source=$(grep -oE '"(GET|HEAD|POST|PUT|PATCH|DELETE)", "/v1/[^"]*"' src/model/verb.c | tr -d '",' | sort)
ok "the source has routes" test "$(wc -l <<<"$in_source")" -gt 50
is "openapi.json has every route of the verbs" "$(comm -23 <(echo "$in_source") <(routes | grep -v '^HEAD' | cat - <(routes | grep '^HEAD /v1/blobs') | sort -u))" ""
is "openapi.json is a document of version 3" "$(jq -r '.openapi | .[0:2]' <<<"$API")" 3.
is "every reference in it leads somewhere" "$(jq -r '. as $d | [.. | objects | ."$ref"? // empty] | unique[] | . as $r | ($r | ltrimstr("#/") | split("/")) as $p | select(($d | getpath($p)) == null) | $r' <<<"$API")" ""
is "every operation has an id of its own" "$(jq '[.paths[][] | objects | .operationId? // empty] | (length > 0) and (length == (unique | length))' <<<"$API")" true
is "every parameter of a path is described" "$(jq -r '. as $d | .paths | to_entries[] | .key as $p | ([$p | scan("\\{([a-z]+)\\}") | .[0]]) as $w | .value as $v | $v | to_entries[] | select(.value | type == "object") | select((([.value.parameters[]?, $v.parameters[]?] | map(if ."$ref" then (."$ref" | ltrimstr("#/") | split("/")) as $x | ($d | getpath($x)) else . end) | map(select(.in == "path") | .name)) as $have | $w - $have | length) > 0) | $p' <<<"$API")" ""

wrong='' other=x asked=0          # wrong keys from one address are counted, so each route is asked from another
[ "${KEY: -1}" != x ] || other=y
while read -r method path; do
    path=$(sed -E 's/\{digest\}/sha256:0000000000000000000000000000000000000000000000000000000000000000/; s/\{[a-z]+\}/x/g' <<<"$path")
    asked=$((asked + 1))
    for key in '' 'ark_nonsense' "${KEY%?}$other"; do
        case $method in POST | PUT | PATCH) data=(-H 'Content-Type: application/json' --data '{}') ;; HEAD) data=(-I) ;; *) data=() ;; esac
        [[ $path =~ ^/(healthz|readyz|openapi.json)$ ]] && continue
        case $path in
        /v1/login) data=(-H 'Content-Type: application/json' --data '{"user":"admin","password":"wrong-password"}') ;;
        /v1/nodes/join) data=(-H 'Content-Type: application/json' --data '{"token":"nonsense","name":"x"}') ;;
        esac
        auth=()
        [ -n "$key" ] && auth=(-H "Authorization: Bearer $key")
        code=$(curl -s --interface "127.0.1.$asked" --max-time 60 -o /dev/null -w '%{http_code}' -X "$method" "${auth[@]}" "${data[@]}" "$URL$path")
        [ "$code" = 401 ] || wrong+="$method $path with '${key:0:6}': $code; "
        [[ $path =~ ^/v1/(login|nodes/join)$ ]] && break
    done
done <<<"$in_source"
is "no route answers a stranger with anything but 401" "$wrong" ""
is "the check can fail: the admin is let in" "$(curl -s -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $KEY" "$URL/v1/jobs")" 200
is "a route that does not exist is not told to a stranger either" "$(curl -s -o /dev/null -w '%{http_code}' "$URL/v1/nonsense" | tr 4 4)" "$(curl -s -o /dev/null -w '%{http_code}' "$URL/v1/other")"
for page in healthz readyz openapi.json; do is "/$page needs no key" "$(curl -s -o /dev/null -w '%{http_code}' "$URL/$page")" 200; done
like "a 401 says how to come" "$(curl -si "$URL/v1/jobs" | tr -d '\r')" $'WWW-Authenticate: Bearer'
is "a key in the query is no key" "$(curl -s -o /dev/null -w '%{http_code}' "$URL/v1/jobs?key=$KEY&access_token=$KEY")" 401
is "Basic is no credential" "$(curl -s -o /dev/null -w '%{http_code}' -u "admin:$KEY" "$URL/v1/jobs")" 401

# --- problems name the field and the fix
call POST /v1/jobs '{"command":["true"],"gpu_s":1}'
refused "an unknown field is refused with the nearest name" 400 bad_input gpus
is "... and named" "$(field .field)" gpu_s
like "a problem is application/problem+json" "$HEAD" 'application/problem\+json'
is "a problem has its five fields" "$(field '[.type, .title, .status, .detail, .instance] | map(. != null) | all')" true
while IFS='|' read -r name body field; do
    call POST /v1/jobs "$body"
    is "refused: $name" "$STATUS $(field .field 2>/dev/null)" "400 $field"
done <<'EOF'
a number that is a text|{"command":["true"],"priority":"7"}|priority
a word for a number that is none|{"command":["true"],"priority":"tall"}|priority
a word where only numbers are known|{"command":["true"],"count":"high"}|count
a priority beyond 100|{"command":["true"],"priority":101}|priority
an absurd number|{"command":["true"],"count":99999999999999999999999999}|count
a number with a fraction|{"command":["true"],"count":1.5}|count
a count of zero|{"command":["true"],"count":0}|count
too many tasks|{"command":["true"],"count":2000000000}|count
negative GPUs|{"command":["true"],"gpus":-1}|gpus
absurd GPUs|{"command":["true"],"gpus":"99999999999"}|gpus
GPUs that are nothing|{"command":["true"],"gpus":"H200:x"}|gpus
negative memory|{"command":["true"],"memory":-5}|memory
memory of another unit|{"command":["true"],"memory":"5 bananas"}|memory
absurd memory|{"command":["true"],"memory":"99999999999999TB"}|memory
a duration that is none|{"command":["true"],"max_duration":"soon"}|max_duration
a name with a slash|{"command":["true"],"name":"a/b"}|name
a name too long|{"command":["true"],"name":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}|name
an environment without values|{"command":["true"],"env":["A"]}|env[0]
EOF
call POST /v1/jobs '{"command":["true"],"after":[{"job":"job-that-is-not"}]}'
ok "a dependency that is not there is refused" test "$STATUS" -ge 400 -a "$STATUS" -lt 500
for body in '{' '{"command":}' '[]' '"x"' '{"command":["true"]} x' '{"command":["true"],"command":["false"]}' '{"name":"\ud800"}' "$(printf '{"name":"\\u0000"}')" "$(printf '[%.0s' $(seq 5000))"; do
    call POST /v1/jobs "$body"
    is "malformed JSON is refused: $(head -c 30 <<<"$body")" "$STATUS" 400
done
for body in 'command: [true' $'command: &a [*a]\n' $'a: &x [1,2]\nb: [*x,*x]\n' $'\tcommand: x' '%YAML 9' $'command: true\ncommand: false\n' '!!python/object x'; do
    call POST /v1/jobs '' -H 'Content-Type: application/yaml' --data-binary "$body"
    is "malformed YAML is refused: $(head -c 30 <<<"$body" | tr '\n\t' '  ')" "$STATUS" 400
done
bomb='a: &a [x,x,x,x,x,x,x,x,x]'
for p in b c d e f g h i; do bomb+=$'\n'"$p: &$p [*$(tr b-i a-h <<<$p),*$(tr b-i a-h <<<$p),*$(tr b-i a-h <<<$p),*$(tr b-i a-h <<<$p),*$(tr b-i a-h <<<$p),*$(tr b-i a-h <<<$p)]"; done
call POST /v1/jobs '' -H 'Content-Type: application/yaml' --data-binary "$bomb"
is "a YAML bomb is refused" "$STATUS" 400
call POST /v1/jobs '' -H 'Content-Type: text/plain' --data-binary '{}'
refused "another format is refused" 415 unsupported_media_type
head -c 10485760 /dev/zero | tr '\0' ' ' >"$BASE/big"
call POST /v1/jobs '' -H 'Content-Type: application/json' --data-binary "@$BASE/big"
is "a body of 10 MB is refused" "$STATUS" 413
call POST /v1/jobs '' -H 'Content-Type: application/json' -H 'Transfer-Encoding: chunked' --data-binary "@$BASE/big"
is "... also in chunks" "$STATUS" 413
rm "$BASE/big"
call DELETE /v1/jobs
is "another method is refused and told" "$STATUS $(grep -ci '^allow: GET' <<<"$HEAD")" "405 1"
call GET '/v1/jobs?limit=0'
is "a page of nothing is refused" "$STATUS $(field .field)" "400 limit"
call GET '/v1/jobs?limt=1'
refused "an unknown parameter is refused with the nearest name" 400 bad_input limit
call GET '/v1/jobs/%ff'
is "a path that is not UTF-8 is refused" "$STATUS" 400
call GET '/v1/jobs?page=nonsense'
is "a page that is none is refused" "$STATUS $(field .field)" "400 page"
call GET '/v1/jobs/no-such-job'
refused "a job that is not there is not found" 404 not_found
is "after all of that nothing was queued" "$(get '/v1/jobs?all=true' | jq '.items | length')" 0
is "... and no event tells of a job" "$(get '/v1/events?limit=1000' | jq '[.items[] | select(.name | startswith("job."))] | length')" 0

# --- once, and only if it is still the same
held='{"command":["true"],"gpus":1}'
call POST /v1/jobs "$held" -H 'Idempotency-Key: k1'
first=$(field .id)
call POST /v1/jobs "$held" -H 'Idempotency-Key: k1'
is "the same key gives the same job" "$(field .id)" "$first"
like "... and says so" "$HEAD" 'Idempotent-Replayed: true'
call POST /v1/jobs '{"command":["false"]}' -H 'Idempotency-Key: k1'
is "the same key for another wish is refused" "$STATUS $(field .field)" "400 Idempotency-Key"
call POST /v1/jobs "$held" -H 'Idempotency-Key: k2'
ok "another key makes another job" test "$(field .id)" != "$first"
call POST /v1/jobs "$held" -H 'Idempotency-Key: a b'
is "a key with a blank is refused" "$STATUS $(field .field)" "400 Idempotency-Key"
is "there are two jobs" "$(get /v1/jobs | jq '.items | length')" 2

call GET "/v1/jobs/$first"
etag=$(sed -n 's/^ETag: //Ip' <<<"$HEAD")
like "a job has an ETag" "$etag" '^"[0-9]+"$'
call PATCH "/v1/jobs/$first" '{"priority":70}' -H "If-Match: $etag"
is "an update of the version that was read" "$STATUS $(field .priority)" "200 70"
call PATCH "/v1/jobs/$first" '{"priority":10}' -H "If-Match: $etag"
refused "an update of an older version" 412 stale
call PATCH "/v1/jobs/$first" '{"priority":10}' -H 'If-Match: "x"'
is "an ETag that is none" "$STATUS $(field .field)" "400 If-Match"
is "the second update changed nothing" "$(job "$first" .priority)" 70

# --- keyset pages
for i in $(seq 9); do call POST /v1/jobs "{\"name\":\"p$i\",\"command\":[\"true\"]}"; done
seen='' next='' pages=0
while :; do
    call GET "/v1/jobs?limit=4${next:+&page=$next}"
    seen+="$(field '.items[].id') "
    pages=$((pages + 1))
    next=$(field '.next // empty' | jq -sRr 'rtrimstr("\n") | @uri')
    [ -n "$next" ] && [ $pages -lt 9 ] || break
    [ $pages = 1 ] && call POST /v1/jobs '{"name":"late","command":["true"]}'
done
is "three pages of four show eleven jobs once each" "$pages $(tr ' ' '\n' <<<"$seen" | grep -c job-) $(tr ' ' '\n' <<<"$seen" | grep job- | sort -u | wc -l)" "3 11 11"
is "... newest first, without the one that came between" "$(tr ' ' '\n' <<<"$seen" | grep job- | sort -r | head -1)" "$(tr ' ' '\n' <<<"$seen" | grep -m 1 job-)"
is "a list is items and next" "$(get '/v1/jobs?limit=2' | jq -c 'keys')" '["items","next"]'

# --- events as a stream, resumed from a number
last=$(get '/v1/events?limit=1000' | jq '.items[-1].id')
is "events are numbered without gaps" "$(get '/v1/events?limit=1000' | jq '[.items[].id] | . == [range(.[0]; .[0] + length)]')" true
timeout 300 curl -sN -H "Authorization: Bearer $KEY" -H 'Accept: text/event-stream' "$URL/v1/events?since=$((last - 2))" >"$BASE/sse" &
pids+=($!)
until_ok 5 test -s "$BASE/sse"
call POST /v1/jobs '{"name":"seen","command":["true"]}'
until_ok 5 grep -q "^id: $((last + 1))" "$BASE/sse"
is "a follower gets what it missed and what comes, in order" "$(grep -a '^id: ' "$BASE/sse" | head -3 | tr -d '\r' | tr '\n' ' ')" "id: $((last - 1)) id: $last id: $((last + 1)) "
timeout 300 curl -sN -H "Authorization: Bearer $KEY" -H 'Accept: text/event-stream' -H "Last-Event-ID: $((last - 1))" "$URL/v1/events" >"$BASE/sse2" &
pids+=($!)
until_ok 5 grep -q '^id: ' "$BASE/sse2"
is "Last-Event-ID resumes as a browser does" "$(grep -a -m 1 '^id: ' "$BASE/sse2" | tr -d '\r')" "id: $last"

# --- a slow client holds nothing up
exec 4<>"/dev/tcp/127.0.0.1/$PORT"
printf 'POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n' >&4
is "others are served while a client dawdles" "$(curl -s --max-time 30 -o /dev/null -w '%{http_code}' "$URL/healthz")" 200
exec 4>&-
finish
