#!/usr/bin/env bash
# 06-data.t - code and data get in and out: work folders by their content, copies both ways, volumes that outlive jobs, outputs kept after the end.
# And nothing that a task leaves behind (a link, a pipe) makes us read or write what is not its own.
# also on PostgreSQL
. "$(dirname "$0")/lib.sh"
cloud_up
cd "$BASE" || exit 1

content() { [ -L "$1" ] || cat "$1" 2>/dev/null; }      # a link that came out is only a name: here it would lead to our own files

# --- a work folder
mkdir -p code/sub code/empty
echo 'echo main' >code/main.sh
chmod 755 code/main.sh
head -c 3000000 /dev/urandom >code/sub/blob
ln -s main.sh code/link
printf 'x' >"code/a name with blanks and ünïcode"
out=$(arcus run -w code -c 0.2 -m 128MB -- sh -c 'pwd; ls -A; sha256sum <sub/blob; readlink link; stat -c %a main.sh; touch new && echo writable' 2>err.log)
is "a folder is mounted as the working folder, as it was" "$out" "/workdir
a name with blanks and ünïcode
empty
link
main.sh
sub
$(sha256sum <code/sub/blob)
main.sh
755
writable"
is "what the task writes there stays there" "$(ls code/new 2>/dev/null)" ""
blobs() { find "$DATA/blobs" -type f | wc -l; }
before=$(blobs)
arcus run -w code -c 0.2 -m 128MB -- true >/dev/null 2>&1
is "the same content is not stored again" "$(blobs)" "$before"
echo more >>code/main.sh
arcus run -w code -c 0.2 -m 128MB -- sh -c 'tail -n 1 main.sh' >out 2>/dev/null
is "a change is a new upload" "$(cat out) $(blobs)" "more $((before + 1))"
arcus run -w nothing-here -- true >/dev/null 2>err.log
is "a folder that is not there is refused with a sentence" "$? $(grep -c '^arcus: ' err.log)" "4 1"
arcus submit -w code --name inyaml -f - >id 2>err.log <<'EOF'
run: cat sub/blob | wc -c
cpus: 0.2
memory: 128MB
EOF
is "a file and a folder together" "$(how "$(cat id)") $(logs "$(cat id)")" "done succeeded 0 3000000"

# --- copies into and out of a running task
arcus run -d --name box -c 0.2 -m 256MB -- sleep 600 >/dev/null 2>&1
wait_for box running
arcus cp code box:/tmp/ 2>err.log
is "a folder goes in" "$? $(arcus exec box -- sh -c 'ls /tmp/code | tr "\n" " "; sha256sum </tmp/code/sub/blob' </dev/null)" "0 a name with blanks and ünïcode empty link main.sh sub $(sha256sum <code/sub/blob)"
arcus cp code/main.sh box:/tmp/other.sh 2>err.log
is "a file goes in under another name, with its mode" "$? $(arcus exec box -- stat -c %a /tmp/other.sh </dev/null)" "0 755"
arcus cp box:/tmp/code back 2>err.log
is "a folder comes out as it went in" "$? $(diff -r --no-dereference code back && echo same)" "0 same"
arcus exec box -- sh -c 'head -c 20000000 /dev/urandom >/tmp/big' </dev/null
arcus cp box:/tmp/big . 2>err.log
is "20 MB come out whole" "$(sha256sum <big)" "$(arcus exec box -- sh -c 'sha256sum </tmp/big' </dev/null)"
arcus cp big box:/tmp/big2 2>err.log
is "... and go in whole" "$(sha256sum <big)" "$(arcus exec box -- sh -c 'sha256sum </tmp/big2' </dev/null)"
arcus cp box:/tmp/nothing . >/dev/null 2>err.log
is "what is not there: exit code 4, a sentence" "$? $(grep -c '^arcus: ' err.log)" "4 1"
arcus cp box:/etc/hostname . >/dev/null 2>err.log
ok "a file of its own root comes out" test -e hostname
arcus cp code box:/usr/ >/dev/null 2>err.log
ok "where a task cannot write, a copy cannot" test $? != 0
is "... nor did it on the host" "$(ls -d /usr/code 2>/dev/null)" ""

# --- links set as traps
echo "secret of the host" >"$BASE/host-secret"
arcus exec box -- sh -c "ln -s $BASE/host-secret /outputs/link; ln -s / /outputs/rootlink; ln -s /etc /tmp/etclink; mkfifo /outputs/pipe; echo fine >/outputs/fine" </dev/null
timeout 60 arcus cp box:/outputs/link stolen >/dev/null 2>&1
unlike "a link does not lead out" "$(content stolen)" "secret of the host"
timeout 60 "$ARCUS" cp box:/outputs/rootlink/opt stolen2 >/dev/null 2>&1
ok "... also in the middle of a path: it is the task's own root that is read" test ! -e stolen2/arcus
arcus cp code/main.sh box:/tmp/etclink/flow-written >/dev/null 2>&1
is "... nor in" "$(ls /etc/flow-written 2>/dev/null)" ""
call POST "/v1/jobs/box/cancel" '{"grace":"0s"}'
wait_end box

# --- outputs are kept
timeout 60 "$ARCUS" cp box:/outputs outputs >/dev/null 2>err.log
is "outputs are kept after the end; a pipe does not hang anybody" "$(cat outputs/fine 2>/dev/null)" fine
unlike "... and a link in them is no file of the host" "$(content outputs/link)" "secret of the host"
ok "... it is copied as a link, or not at all" test -L outputs/link -o ! -e outputs/link
timeout 60 "$ARCUS" cp "box:/outputs/rootlink/etc/shadow" shadow >/dev/null 2>&1
ok "a link in kept outputs does not lead into the node's files" test ! -s shadow
timeout 60 "$ARCUS" cp box:/outputs/../../keys/seal.key sealkey >/dev/null 2>&1
ok "... nor do dots" test ! -s sealkey
arcus cp code/main.sh box:/outputs/ >/dev/null 2>err.log
ok "into what has ended nothing is copied" test $? != 0
arcus cp box:/tmp/big late >/dev/null 2>err.log
ok "what was not an output is gone" test $? != 0 -a ! -e late
is "an array keeps them apart" "$(j=$(arcus submit -n 2 -c 0.1 -m 64MB -- sh -c 'echo $ARCUS_ARRAY_INDEX >/outputs/n'); wait_end "$j"; for n in 0 1; do arcus cp --task $n "$j:/outputs/n" "n$n" >/dev/null 2>&1; done; cat n0 n1)" "0
1"

# --- volumes
arcus volumes create data >/dev/null
arcus volumes create data >/dev/null 2>err.log
is "a name that is taken: exit code 5" $? 5
arcus run -v data:/data -c 0.1 -m 64MB -- sh -c 'echo kept >/data/file; chown 1000 /data/file; mkdir /data/sub' >/dev/null 2>&1
is "a volume outlives its job, with its owners" "$(arcus run -v data:/mnt/d -c 0.1 -m 64MB -- sh -c 'cat /mnt/d/file; stat -c %u /mnt/d/file' 2>/dev/null)" "kept
1000"
is "read-only is read-only" "$(arcus run -v data:/data:ro -c 0.1 -m 64MB -- sh -c 'touch /data/x 2>/dev/null || echo refused' 2>/dev/null)" refused
is "its node is told" "$(arcus volumes -o json | jq -r '.items[0].node')" "$NODE"
arcus cp code vol:data/ 2>err.log
arcus cp vol:data/code/sub/blob fromvol 2>>err.log
is "cp into and out of a volume, without a job" "$(sha256sum <fromvol 2>/dev/null) $(cat err.log)" "$(sha256sum <code/sub/blob) "
arcus run -v data:/data -c 0.1 -m 64MB -- sh -c "ln -s $DATA/admin.key /data/keylink; ln -s / /data/rootlink" >/dev/null 2>&1
timeout 60 "$ARCUS" cp vol:data/keylink stolenkey >/dev/null 2>&1
timeout 60 "$ARCUS" cp "vol:data/rootlink$DATA/admin.key" stolenkey2 >/dev/null 2>&1
unlike "a link in a volume does not lead out" "$(content stolenkey; content stolenkey2)" "$KEY"
arcus run -v nothing:/data -- true >/dev/null 2>err.log
ok "a volume that is not there is refused by name" grep -q nothing err.log
holder=$(arcus submit -v data:/data -c 0.1 -m 64MB -- sleep 600)
wait_for "$holder" running
arcus volumes remove data >/dev/null 2>err.log
is "a volume in use is not removed" $? 5
arcus cancel "$holder" --grace 0s >/dev/null
wait_end "$holder"
place=$(find "$DATA/agent/volumes" -mindepth 1 -maxdepth 1 | head -n 1)
ok "it is a folder of the node" test -d "$place"
arcus volumes remove data >/dev/null 2>err.log
is "afterwards it is" "$? $(cat err.log)" "0 "
until_ok 10 test ! -e "$place"
ok "... with what was in it" test ! -e "$place"
cd / || exit 1
finish
