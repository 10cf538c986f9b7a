#!/usr/bin/env bash
# disks.t - root inside an instance against the disk that is kept for it: links that it leaves where its node, as root, makes and mounts things at the next start;
# devices and rights on that disk; the file that it is in; and a node that it fills.
# In a mount namespace of its own: what it mounts is copied by every supervisor that begins beside it, and then stays in use for as long as that one lives.
[ -n "${DISKS_ON_THEIR_OWN:-}" ] || exec unshare -m --propagation private env DISKS_ON_THEIR_OWN=1 "$0" "$@"
. "$(dirname "$0")/../lib.sh"
cloud_up --sim-gpus 0
tried() { get "/v1/nodes/$1" | jq -e '.info.runtime != "on trial"' >/dev/null; }
until_ok 60 tried "$NODE"
if ! get "/v1/nodes/$NODE" | jq -e .info.disks >/dev/null; then
    skip "disks that are kept" "this machine has no loop devices"
    finish
fi
inside() { arcus exec "$1" -- sh -c "$2" 2>&1; }
runs_again() { in_state "$1" running && arcus exec "$1" -- sh -c : 2>/dev/null; }
again() { arcus stop "$1" >/dev/null; wait_for "$1" stopped; arcus start "$1" >/dev/null; until_ok 60 runs_again "$1"; }
V=$BASE/victim
mkdir -m 700 "$V" "$V/folder" "$V/empty"
for f in "$V/file" "$V/folder/hosts" "$V/folder/resolv.conf"; do echo secret >"$f"; chmod 600 "$f"; done
victims() { find "$V" -printf '%p %U %G %m %y %l %s %C@\n' | sort; cat "$V/file" "$V/folder/hosts"; }
BEFORE=$(victims)
same() { is "$1" "$(victims)" "$BEFORE"; }

# --- the node's root: its folders are made, and given to the tenant, by the node's root
arcus run -d --type instance --name lab -i host -c 0.5 -m 256MB --disk 256MB --grace 0s >/dev/null 2>&1
wait_for lab running; until_ok 60 runs_again lab
inside lab "exec 2>/dev/null; for d in srv media mnt var/lib var/cache var/log var/spool var/tmp; do rm -rf /\$d; ln -s $V/folder /\$d; done; rm -f /srv /media /var/lib; ln -s $V /srv; ln -s $V/empty /media; ln -s $V/file /var/lib
    chmod 700 /home; mkdir /home/x /own; chown 1000 /home/x; for d in boot lost+found run tmp proc sys dev etc usr outputs workdir; do rmdir /\$d; ln -s $V/empty /\$d; done; ls -ld /srv /var/lib" >"$BASE/out"
is "links are left where folders of the root are made" "$(grep -c "^l.* -> $V" "$BASE/out")" 2
again lab
same "started again: the node's own files are what they were"
is "... its links are its own still, and lead nowhere" "$(inside lab '[ -L /srv ] && [ ! -e /srv/file ] && [ ! -e /var/lib ] && cat /srv/file /var/lib 2>/dev/null; stat -c "%u %a" /home /home/x | tr "\n" " "; [ -d /own ] && echo own')" "0 700 1000 755 own"
is "... and what the node mounts is where it belongs" "$(inside lab 'for d in proc sys dev etc usr; do [ -d /$d ] && [ ! -L /$d ] && printf "$d "; done; [ -r /proc/self/stat ] && [ -c /dev/null ] && (echo x >/etc/x) 2>/dev/null || echo closed')" "proc sys dev etc usr closed"
inside lab "mv /var /var.was; ln -s $V/folder /var; mv /home /home.was; echo file >/home" >/dev/null
again lab
same "the same of a folder with folders in it"
is "... and a file stays a file" "$(inside lab 'cat /home; [ -L /var ] && echo link')" "file
link"
is "refused: rights and devices on the disk" "$(inside lab 'awk "\$5 == \"/\" {print \$6}" /proc/self/mountinfo | grep -o "nosuid,nodev"; for n in "c 1 3" "b 7 0" "c 10 237"; do mknod /own/d $n 2>/dev/null && echo made; done; ls /dev/loop* 2>/dev/null')" "nosuid,nodev"
is "the file that the disk is in is the node's alone" "$(find "$(find "$DATA" -type d -name 'vol-*')" -printf '%U %m %y\n' | sort | tr '\n' ';')" "0 600 f;0 700 d;"
arcus cancel lab >/dev/null; wait_end lab

# --- an image: its writable layer is kept, and the runtime mounts in it
umoci init --layout "$BASE/layout" && umoci new --image "$BASE/layout:app" && umoci unpack --image "$BASE/layout:app" "$BASE/bundle" >/dev/null 2>&1
mkdir -p "$BASE/bundle/rootfs"/{bin,proc,sys,dev}
cp /bin/busybox "$BASE/bundle/rootfs/bin/busybox"
for word in sh cat echo stat sleep rm ls mkdir mv ln mknod awk rmdir; do ln -s busybox "$BASE/bundle/rootfs/bin/$word"; done
umoci repack --image "$BASE/layout:app" "$BASE/bundle" >/dev/null 2>&1
rm -rf "$BASE/bundle"
tar -C "$BASE/layout" -cf "$BASE/app.tar" .
arcus image import "$BASE/app.tar" --name app:1 >/dev/null 2>&1
printf hidden | arcus secrets set token >/dev/null
arcus run -d --type instance --name shop -i app:1 --secret token -c 0.1 -m 64MB --disk 64MB --grace 0s -- sleep 100000 >/dev/null 2>"$BASE/err" || note "$(cat "$BASE/err")"
wait_for shop running; until_ok 60 runs_again shop
is "refused: devices on its layer" "$(inside shop 'awk "\$5 == \"/\" {print \$6}" /proc/self/mountinfo; mknod /null c 1 3 2>/dev/null && echo made' | grep -oE 'nodev|made')" nodev
inside shop "exec 2>/dev/null; for d in etc run var root home; do mv /\$d /\$d.was; ln -s $V/folder /\$d; done; for d in tmp outputs workdir proc sys dev; do rmdir /\$d; ln -s $V/empty /\$d; done; ls -ld /etc /run" >"$BASE/out"
like "an image: its /etc can be moved away, and a link left" "$(cat "$BASE/out")" "/etc -> $V/folder"
arcus stop shop >/dev/null; wait_for shop stopped
arcus start shop >/dev/null
settled() { runs_again shop || [ "$(get /v1/jobs/shop/attempts | jq '[.items[] | select(.outcome == "start_failed")] | length')" -gt 0 ]; }
until_ok 60 settled
same "started again: nothing of it was followed out of its root"
arcus cancel shop >/dev/null; wait_end shop

# --- a node of which it holds too much: it is stopped, whatever it may be tried, and a neighbour is not hurt; more than half of a node is kept for nobody
small=$NODE-small
mkdir "$BASE/$small.data"
truncate -s 400M "$BASE/disk" && mkfs.ext4 -qF "$BASE/disk" && mount -o loop "$BASE/disk" "$BASE/$small.data" || note "no disk of its own"
call POST /v1/nodes/tokens '{}'
agent_start "$small" --sim-gpus 0 --token "$(field .token)"
until_ok 60 node_ready "$small"; until_ok 60 tried "$small"
arcus run -d --type instance --name evil --node "$small" -i host -c 0.1 -m 64MB --disk 128MB --grace 0s --retries 100 >/dev/null 2>&1
wait_for evil running; until_ok 60 runs_again evil
inside evil 'head -c 80000000 /dev/zero >/var/all; sync' >/dev/null
wait_for evil stopped 120
is "who fills a node with its disk is stopped, and not tried again" "$(job evil .reason) $(get /v1/jobs/evil/attempts | jq -r '[.items[].outcome] | join(" ")')" "Stopped out_of_disk"
like "... and told why" "$(get /v1/jobs/evil/attempts | jq -r '.items[0].detail')" "the node's disk is full"
arcus run -d --type instance --name large --node "$small" -i host -c 0.1 -m 64MB --disk 128MB --grace 0s >/dev/null 2>&1
no_room() { [ "$(job large .reason)" = Disk ]; }
until_ok 60 no_room
is "a disk that the node has no room for is waited for" "$(job large) $(find "$BASE/$small.data/volumes" -name 'vol-*' | wc -l)" "queued 1"
like "... and told what helps" "$(arcus queue large -o json)" 'ask for less .--disk., cancel an instance that is stopped'
arcus cancel evil >/dev/null; wait_end evil
wait_for large running 120
is "... until another has gone" "$(job large)" running
arcus cancel large >/dev/null; wait_end large
gone() { [ -z "$(find "$BASE/$small.data/volumes" -name 'vol-*')" ]; }
ok "cancelled, its disk goes" until_ok 60 gone
stop "$AGENT"
ok "the small disk can be let go" until_ok 20 umount "$BASE/$small.data"
finish
