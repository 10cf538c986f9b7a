#!/usr/bin/env bash
# 51-stopped.t - instances that are stopped and started again: what they wrote is there, they hold nothing meanwhile, through restarts of server and agent; who may
# not; and nothing is left of the disk when the instance goes.
. "$(dirname "$0")/lib.sh"
PORT=0
server() { server_start server --listen "127.0.0.1:$PORT" --default-image host; PORT=${URL##*:}; arcus config set flow --server "$URL" --key-file "$DATA/admin.key" >/dev/null; }
agent() { agent_start "$NODE" --sim-gpus 2 --beat-ms 500 "$@"; }
RUN=$BASE/$NODE.run
VOLUMES=$BASE/$NODE.data/volumes
server
call POST /v1/nodes/tokens '{}'
agent --token "$(field .token)"
until_ok 60 node_ready || give_up "the node does not come: $(tail -n 3 "$BASE/$NODE.log")"
tried() { get "/v1/nodes/$NODE" | jq -e '.info.runtime != "on trial"' >/dev/null; }
until_ok 60 tried
if ! get "/v1/nodes/$NODE" | jq -e .info.disks >/dev/null; then
    skip "instances that are stopped" "this machine has no loop devices"
    finish
fi
inside() { arcus exec "$1" -- sh -c "$2" 2>&1; }
disks() { find "$VOLUMES" -mindepth 1 -maxdepth 1 -name 'vol-*' | wc -l; }
free() { get "/v1/nodes/$NODE" | jq -r '"\(.gpus_free) \(.tasks)"'; }
runs_again() { in_state "$1" running && arcus exec "$1" -- sh -c : 2>/dev/null; }
state() { arcus ps -o json | jq -r --arg n "$1" '.items[] | select(.name == $n) | .state'; }

arcus run -d --type instance --name lab -g 1 -c 0.5 -m 256MB --disk 256MB --grace 1s >/dev/null 2>&1
wait_for lab running
inside lab 'echo precious >/root/notes; mkdir -p /home/ada; echo mine >/home/ada/file; chown -R 1000:1000 /home/ada; chmod 640 /home/ada/file; ln -s notes /root/link; head -c 3000000 /dev/urandom >/var/blob; sha256sum /var/blob' >"$BASE/sum"
is "an instance has a disk on its node" "$(disks) $(arcus volumes -o json | jq '.items | length')" "1 0"
is "it is stopped" "$(arcus stop lab -o json | jq -r .state) $(arcus stop lab -o json | jq -r .name)" "stopping lab"
wait_for lab stopped
is "stopped, it holds nothing" "$(free) $(job lab .reason) $(state lab)" "2 0 Stopped stopped"
is "it is listed as stopped, without GPUs" "$(arcus ps -s stopped | grep -c lab) $(arcus ps -s queued | grep -c lab) $(arcus ps -s stopped | grep -c simulated)" "1 0 0"
is "nothing is promised to it" "$(arcus queue lab -o json | jq -r '"\(.state) \(.first_at)"') $(arcus describe lab | grep -c 'goes before')" "stopped null 0"
like "arcus queue says what to do" "$(arcus queue lab -o json 2>&1)" 'until somebody starts it'
arcus exec lab -- true >/dev/null 2>&1
is "nothing can be executed in it" "$(( $? != 0 ))" 1
is "its disk is kept" "$(disks)" 1
USED=$(get /v1/usage | jq -r '[.items[].seconds] | add')
stop "$UP" KILL
server
stop "$AGENT" KILL
agent
until_ok 60 node_ready
is "stopped is what it is after server and agent were killed" "$(job lab) $(disks)" "stopped 1"
arcus stop lab >/dev/null
is "... and stopping it again changes nothing" "$? $(get '/v1/events?limit=1000' | jq '[.items[] | select(.name == "job.stop")] | length')" "0 1"
is "nothing was metered meanwhile" "$(get /v1/usage | jq -r '[.items[].seconds] | add')" "$USED"
arcus start lab >/dev/null
until_ok 60 runs_again lab
is "started, all of it is there, with its owners and modes" "$(inside lab 'cat /root/link; stat -c "%u %g %a" /home/ada/file; sha256sum /var/blob')" "precious
1000 1000 640
$(cat "$BASE/sum")"
is "it has its GPU again" "$(free)" "1 1"
is "another attempt, that counts as no try" "$(get /v1/jobs/lab/attempts | jq -r '[.items[] | "\(.state)/\(.outcome)"] | join(" ")')" "failed/preempted running/"

# --- stopped and started in one breath, and again when it fails
inside lab 'echo more >>/root/notes' >/dev/null
arcus stop lab >/dev/null; arcus start lab >/dev/null
again() { [ "$(get /v1/jobs/lab/attempts | jq -r '.items | length')" = "$1" ] && runs_again lab; }
until_ok 90 again 3
is "stopped and started at once: it comes back" "$(inside lab 'wc -l </root/notes')" 2
kill -9 "$(first_pid "$(get /v1/jobs/lab/attempts | jq -r '.items | sort_by(.id) | .[-1].id')")"
until_ok 90 again 4
is "after it failed it has its disk too" "$(inside lab 'cat /root/notes')" "precious
more"
is "... which is as large as it was asked to be" "$(inside lab 'dd if=/dev/zero of=/root/fill bs=1M count=400 2>&1 | grep -c "No space left"; rm -f /root/fill')" 1

# --- who may not, and what cannot be
arcus run -d --name plain -c 0.1 -m 64MB -- sleep 1000 >/dev/null 2>&1
arcus stop plain >/dev/null 2>"$BASE/err"
is "a job is not stopped" "$? $(grep -c 'only instances' "$BASE/err")" "5 1"
arcus cancel plain >/dev/null
arcus orgs create far >/dev/null; arcus projects create foreign --org far >/dev/null
for u in eve vic; do printf 'password-of-%s' $u | arcus users create $u --password-stdin >/dev/null; done
arcus members set eve admin --project foreign >/dev/null; arcus members set vic viewer >/dev/null
for who in "eve foreign" "vic default"; do printf 'password-of-%s' "${who% *}" | ARCUS_CONFIG=$BASE/${who% *}.config "$ARCUS" login --server "$URL" --user "${who% *}" --project "${who#* }" >/dev/null 2>&1; done
for who in eve vic; do ARCUS_CONFIG=$BASE/$who.config "$ARCUS" stop lab >/dev/null 2>&1; printf '%s ' $?; done >"$BASE/codes"
is "another project and a viewer cannot" "$(cat "$BASE/codes")$(job lab)" "4 3 running"
DISK=$(basename "$(find "$VOLUMES" -name 'vol-*')")
call POST /v1/jobs "$(sh_job true "{\"volumes\":[\"$DISK:/d\"]}")"
is "nobody mounts a disk" "$STATUS $(field .detail | grep -c "there is no volume")" "400 1"
arcus volumes remove "$DISK" >/dev/null 2>&1
is "... or removes it" "$? $(disks)" "4 1"
arcus cp "vol:$DISK/disk" "$BASE/stolen" >/dev/null 2>&1
is "... or copies it" "$(( $? != 0 )) $(ls "$BASE/stolen" 2>/dev/null | wc -l)" "1 0"
call DELETE "/v1/nodes/$NODE"
refused "a node that keeps a disk is not removed" 409 conflict 'keeps its disk'

# --- one that waits for its node
arcus stop lab >/dev/null; wait_for lab stopped
arcus nodes cordon "$NODE" >/dev/null
arcus start lab >/dev/null
waits() { [ "$(job lab .reason)" = VolumeNode ]; }
until_ok 60 waits
is "its node takes nothing: it waits for it, and says so" "$(job lab) $(job lab .reason)" "queued VolumeNode"
arcus nodes uncordon "$NODE" >/dev/null
until_ok 60 runs_again lab
is "... until it can" "$(inside lab 'head -n 1 /root/notes')" precious

# --- the same of an image: its writable layer
umoci init --layout "$BASE/layout" && umoci new --image "$BASE/layout:app" && umoci unpack --image "$BASE/layout:app" "$BASE/bundle" >/dev/null 2>&1
mkdir -p "$BASE/bundle/rootfs"/{bin,etc,tmp,data,proc,sys,dev}
cp /bin/busybox "$BASE/bundle/rootfs/bin/busybox"
for word in sh cat echo stat chown sleep rm ls mkdir; do ln -s busybox "$BASE/bundle/rootfs/bin/$word"; done
echo shipped >"$BASE/bundle/rootfs/etc/shipped"
printf 'root:x:0:0:root:/:/bin/sh\n' >"$BASE/bundle/rootfs/etc/passwd"
umoci repack --image "$BASE/layout:app" "$BASE/bundle" >/dev/null 2>&1
rm -rf "$BASE/bundle"
tar -C "$BASE/layout" -cf "$BASE/app.tar" .
arcus image import "$BASE/app.tar" --name app:1 >/dev/null 2>"$BASE/err"
arcus run -d --type instance --name shop -i app:1 -c 0.1 -m 64MB --disk 64MB --grace 0s -- sleep 100000 >/dev/null 2>&1
wait_for shop running
inside shop 'echo made >/data/file; chown 1000:1000 /data/file; rm /etc/shipped; echo changed >>/etc/passwd' >/dev/null
arcus stop shop >/dev/null; wait_for shop stopped
arcus start shop >/dev/null; until_ok 60 runs_again shop
is "of an image: what was made, changed and removed is so" "$(inside shop 'cat /data/file; stat -c "%u %g" /data/file; ls /etc/shipped 2>/dev/null; cat /etc/passwd')" "made
1000 1000
root:x:0:0:root:/:/bin/sh
changed"
arcus stop shop >/dev/null; wait_for shop stopped
arcus image remove app:1 >/dev/null 2>"$BASE/err"
is "... and the image that its disk lies on is not removed" "$? $(grep -c 'instance shop' "$BASE/err")" "5 1"

# --- what its node finds when it is started again. Held: somebody has a folder of its disk open, which takes its start a while to believe
last() { get "/v1/jobs/$1/attempts" | jq -r '.items | sort_by(.id) | .[-1] | "\(.outcome) \(.detail)"'; }
tries() { get "/v1/jobs/$1/attempts" | jq '.items | length'; }
add() { # add NAME: an instance, and where its disk is
    find "$VOLUMES" -maxdepth 1 -name 'vol-*' | sort >"$BASE/before"
    arcus run -d --type instance --name "$1" -c 0.1 -m 64MB --disk 64MB --grace 0s --retry-delay 0s >/dev/null 2>&1
    wait_for "$1" running; until_ok 60 runs_again "$1"
    find "$VOLUMES" -maxdepth 1 -name 'vol-*' | sort | comm -13 "$BASE/before" - >"$BASE/disk.$1"
}
add held
inside held 'head -c 20000000 /dev/urandom >/home/big; sync' >/dev/null
exec 9<"/proc/$(first_pid "$(get /v1/jobs/held/attempts | jq -r '.items[0].id')")/root/home" 8<"$(cat "$BASE/disk.held")/disk"
arcus stop held >/dev/null; wait_for held stopped
touch "/proc/$$/fd/9/late" 2>/dev/null
is "stopped, nothing is written to its disk through what was left open" $? 1
arcus start held >/dev/null
add lost
arcus stop lost >/dev/null; wait_for lost stopped
rm -r "$(cat "$BASE/disk.lost")"
arcus start lost >/dev/null
tried_again() { [ "$(tries "$1")" = 2 ] && in_state "$1" stopped; }
until_ok 90 tried_again lost
like "a disk that has vanished is told, and none is made in its place" "$(last lost) $(find "$(cat "$BASE/disk.lost")" -type f | wc -l)" '^start_failed its disk is not on its node any more.* 0$'
arcus cancel lost >/dev/null; wait_end lost
add full
inside full 'rmdir /srv /media /mnt /var/spool; for i in 1 2 3; do cat /dev/zero >/root/fill$i; sync; done 2>/dev/null; i=0; while mkdir /home/d$i 2>/dev/null; do i=$((i + 1)); done; echo full' >"$BASE/out" 2>&1
is "a disk is filled" "$(cat "$BASE/out")" full
arcus stop full >/dev/null; wait_for full stopped
arcus start full >/dev/null; until_ok 60 runs_again full
is "a full disk keeps nobody out: without what there is no room for" "$(tries full) $(inside full 'ls -d /srv 2>/dev/null; rm /root/fill*; mkdir /srv && echo room')" "2 room"
inside full 'kill -TERM 1' >/dev/null
wait_for full stopped
is "shut down from inside it is stopped, and keeps its disk" "$(last full) $(ls "$(cat "$BASE/disk.full")")" "succeeded  disk"
arcus cancel full >/dev/null; wait_end full
NOTE=$(find "$VOLUMES" -name image)
is "a disk knows the image that it was made of" "$(cat "$NOTE")" "archive-$(sha256sum <"$BASE/app.tar" | cut -d' ' -f1)"
cp "$NOTE" "$BASE/note"; printf 'archive-%064d' 1 >"$NOTE"
tries=$(tries shop)
arcus start shop >/dev/null
refused_once() { [ "$(tries shop)" = $((tries + 1)) ] && in_state shop stopped; }
until_ok 90 refused_once
like "... and is put over no other" "$(last shop)" '^start_failed its disk lies on the image sha256:0*1, which cannot be had any more'
cp "$BASE/note" "$NOTE"
arcus start shop >/dev/null; until_ok 60 runs_again shop
is "... but over that one" "$(inside shop 'cat /data/file')" made
arcus cancel shop >/dev/null; wait_end shop
until_ok 120 tried_again held
like "one whose disk is held open is told so, once" "$(last held)" '^start_failed its disk is still in use: another task'
arcus cancel held >/dev/null; wait_end held
let_go() { [ ! -e "$(cat "$BASE/disk.held")" ] && [ "$(stat -L -c %b /proc/self/fd/8)" = 0 ]; }
ok "cancelled, its space is the node's at once, whoever holds it" until_ok 60 let_go
exec 8<&- 9<&-

# --- the end
arcus stop lab >/dev/null; wait_for lab stopped
arcus cancel lab >/dev/null
wait_end lab
gone() { [ "$(disks)" = 0 ]; }
until_ok 60 gone
is "cancelled while it is stopped, its disk goes" "$(job lab) $(disks) $(sql 'SELECT count(*) FROM volume')" "cancelled 0 0"
arcus run -d --type instance --name other -c 0.1 -m 64MB --disk 64MB --grace 0s >/dev/null 2>&1
wait_for other running
arcus cancel other >/dev/null; wait_end other
until_ok 60 gone
is "... and cancelled while it runs" "$(disks) $(find "$VOLUMES" -mindepth 1 | wc -l)" "0 0"
finish
