#!/usr/bin/env bash
# 11-tls.t - nothing but loopback is served without TLS: a certificate of the cloud's own authority, which agents and command lines pin, or one that was given.
# also on PostgreSQL
. "$(dirname "$0")/lib.sh"

# --- our own
server_start server --listen 0.0.0.0:0 --host cloud.test --default-image host
PORT=${URL##*:}
like "anything but loopback is https" "$URL" '^https://'
URL=https://127.0.0.1:$PORT
PIN=$(cat "$DATA/tls/pin")
like "the certificate's hash is kept and told" "$PIN $(grep -c "$PIN" "$BASE/server.log")" '^[0-9a-f]{64} 1$'
is "keys are for their owner alone" "$(stat -c %a "$DATA/tls/key.pem" "$DATA/tls" "$DATA/keys/ca.key" "$DATA/keys" | tr '\n' ' ')" "600 700 600 700 "
is "the pin is that of the cloud's own authority" "$(openssl x509 -in "$DATA/keys/ca.pem" -outform DER | sha256sum | cut -d' ' -f1)" "$PIN"
ok "... which signed the certificate" openssl verify -CAfile "$DATA/keys/ca.pem" -purpose sslserver "$DATA/tls/cert.pem"
like "it names the host" "$(openssl x509 -in "$DATA/tls/cert.pem" -noout -ext subjectAltName 2>/dev/null)" 'cloud\.test'
shown() { openssl s_client -connect "127.0.0.1:$PORT" </dev/null 2>/dev/null | openssl x509 -outform DER | sha256sum | cut -d' ' -f1; }
of_cert() { openssl x509 -in "$DATA/tls/cert.pem" -outform DER | sha256sum | cut -d' ' -f1; }
is "it is what is shown" "$(shown)" "$(of_cert)"
plain=$(curl -s --max-time 30 -o "$BASE/plain" -w '%{http_code}' -H "Authorization: Bearer $KEY" "http://127.0.0.1:$PORT/v1/whoami"; true)
touch "$BASE/plain"
like "plain HTTP is not served" "$plain" '^(000|400|426)$'
unlike "... and tells nothing" "$(tr -d '\0' <"$BASE/plain" 2>/dev/null)" admin
is "a client that trusts nobody does not come in" "$(curl -s --max-time 30 -o /dev/null -w '%{http_code}' "$URL/healthz")" 000
is "... one that knows the authority does" "$(curl -s --max-time 30 --cacert "$DATA/keys/ca.pem" --resolve "cloud.test:$PORT:127.0.0.1" -o /dev/null -w '%{http_code}' "https://cloud.test:$PORT/healthz")" 200
for version in tls1 tls1_1; do
    ok "$version is refused" eval "! openssl s_client -$version -cipher ALL:@SECLEVEL=0 -connect 127.0.0.1:$PORT </dev/null 2>/dev/null | grep -q 'Cipher is [A-Z]'"
done
ok "TLS 1.3 is spoken: the check can fail" eval "openssl s_client -tls1_3 -connect 127.0.0.1:$PORT </dev/null 2>/dev/null | grep -q 'Cipher is [A-Z]'"

# --- the command line
arcus config set pinned --server "$URL" --key-file "$DATA/admin.key" --pin "$PIN" >/dev/null
is "with the right pin" "$(arcus whoami -o json | jq -r .name)" admin
WRONG=${PIN:1}0
arcus config set wrong --server "$URL" --key-file "$DATA/admin.key" --pin "$WRONG" >/dev/null
arcus whoami >"$BASE/out" 2>"$BASE/err"
code=$?
ok "with a wrong pin it stops ($code) and says why" test $code != 0 -a -s "$BASE/err"
arcus config set none --server "$URL" --key-file "$DATA/admin.key" >/dev/null
arcus whoami >"$BASE/out" 2>"$BASE/err"
code=$?
ok "without one it stops too ($code)" test $code != 0 -a -s "$BASE/err"
arcus config use pinned >/dev/null

for where in http://10.255.255.1:6640 http://cloud.test:6640 http://127.evil.test:6640; do
    arcus --server "$where" whoami >"$BASE/out" 2>"$BASE/err"
    is "$where is not spoken to in the open" "$? $(grep -c https "$BASE/err")" "2 1"
    timeout 60 "$ARCUS" agent --server "$where" --token x --data "$BASE/none.data" --run "$BASE/none.run" >"$BASE/out" 2>&1
    is "... nor by an agent" "$? $(grep -c https "$BASE/out")" "2 1"
done

# --- an agent
TOKEN=$(arcus nodes token -o json | jq -r .token)
like "the join token carries the authority's hash" "$TOKEN" "^jt_[A-Za-z0-9_-]+\\.$PIN\$"
agent_start "$NODE-w" --pin "$WRONG" --token "$TOKEN"
WRONG_AGENT=$AGENT
until_ok 10 grep -qiE 'certificate|pin' "$BASE/$NODE-w.log"
like "an agent with a wrong pin does not join, and says why" "$(cat "$BASE/$NODE-w.log")" '[Cc]ertificate|[Pp]in'
kill "$WRONG_AGENT" 2>/dev/null
wait "$WRONG_AGENT" 2>/dev/null
is "... nor did it spend its token" "$(arcus nodes -o json | jq '.items | length')" 0
agent_start "$NODE" --token "$TOKEN" --sim-gpus 1
until_ok 20 node_ready
ok "an agent needs the token alone" node_ready
RUN=$BASE/$NODE.run
is "a job runs, its log and a shell come through TLS" "$(arcus run -c 0.2 -m 128MB -- echo through tls 2>/dev/null) $(arcus run -d --name box -c 0.2 -m 128MB -- sleep 600 >/dev/null 2>&1; wait_for box running; arcus exec box -- echo and back </dev/null)" "through tls and back"
head -c 3000000 /dev/urandom >"$BASE/bytes"
arcus cp "$BASE/bytes" box:/tmp/bytes >/dev/null 2>&1 && arcus cp box:/tmp/bytes "$BASE/back" >/dev/null 2>&1
is "... and three million bytes" "$(sha256sum <"$BASE/back")" "$(sha256sum <"$BASE/bytes")"
arcus cancel box --grace 0s >/dev/null

# --- it stays the same
CERT=$(of_cert)
stop "$UP"
server_start server --listen "0.0.0.0:$PORT" --host cloud.test --default-image host
URL=https://127.0.0.1:$PORT
is "after a restart authority and certificate are the same" "$(cat "$DATA/tls/pin") $(shown)" "$PIN $CERT"
until_ok 20 node_ready
ok "... and the agent comes back by itself" node_ready
wait_end box
stop "$UP"
server_start server --listen "0.0.0.0:$PORT" --host other.test --default-image host
URL=https://127.0.0.1:$PORT
is "with another name the certificate is made anew, by the same authority" "$(cat "$DATA/tls/pin") $([ "$(shown)" != "$CERT" ] && openssl x509 -in "$DATA/tls/cert.pem" -noout -ext subjectAltName 2>/dev/null | grep -o other.test)" "$PIN other.test"
until_ok 20 node_ready
ok "... and whoever knows that does not notice" node_ready
is "... on the command line too" "$(arcus whoami -o json | jq -r .name)" admin
stop "$AGENT"
connected=$(grep -c "is connected" "$BASE/server.log")
agent_start "$NODE" --sim-gpus 1
ok "an agent keeps the hash that came with its token" until_ok 20 eval '[ "$(grep -c "is connected" "$BASE/server.log")" -gt $connected ]'
stop "$UP"

# --- one that was given
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout "$BASE/key.pem" -out "$BASE/cert.pem" 2>/dev/null
server_start server --listen "127.0.0.1:$PORT" --tls-cert "$BASE/cert.pem" --tls-key "$BASE/key.pem" --default-image host
like "with a certificate also loopback is https" "$URL" '^https://'
is "it is the one that was given" "$(curl -s --cacert "$BASE/cert.pem" -o /dev/null -w '%{http_code}' "https://127.0.0.1:$PORT/healthz")" 200
arcus config set given --server "https://127.0.0.1:$PORT" --key-file "$DATA/admin.key" --ca "$BASE/cert.pem" >/dev/null
is "the command line takes an authority instead of a pin" "$(arcus whoami -o json | jq -r .name)" admin
arcus config set wronghost --server "https://127.0.0.2:$PORT" --key-file "$DATA/admin.key" --ca "$BASE/cert.pem" >/dev/null
arcus whoami >/dev/null 2>"$BASE/err"
ok "... which must vouch for that very name" test $? != 0
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=other -keyout "$BASE/other.pem" -out "$BASE/othercert.pem" 2>/dev/null
"$ARCUS" server --data "$BASE/other" --listen 127.0.0.1:0 --tls-cert "$BASE/cert.pem" --tls-key "$BASE/other.pem" >"$BASE/out" 2>&1 &
pids+=($!)
wait $!
ok "a key of another certificate stops the server with a sentence" test $? != 0 -a -s "$BASE/out"
"$ARCUS" server --data "$BASE/other" --listen 127.0.0.1:0 --tls-cert "$BASE/cert.pem" >"$BASE/out" 2>&1 &
pids+=($!)
wait $!
is "a certificate without its key is refused with 2" $? 2
finish
