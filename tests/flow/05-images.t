#!/usr/bin/env bash
# 05-images.t - images from an OCI layout, a docker archive and a registry; a Debian in which packages install as they do anywhere; and what is no image.
. "$(dirname "$0")/lib.sh"
cloud_up

# --- busybox with umoci: an entrypoint that prepares as root and goes on as somebody else, as public images do
layout=$BASE/layout
umoci init --layout "$layout" && umoci new --image "$layout:app" && umoci unpack --image "$layout:app" "$BASE/bundle" >/dev/null 2>&1
root=$BASE/bundle/rootfs
mkdir -p "$root"/{bin,etc,tmp,data,proc,sys,dev}
cp /bin/busybox "$root/bin/busybox"
for word in sh cat echo id ls stat touch chown su sleep env pwd head mkdir; do ln -s busybox "$root/bin/$word"; done
printf 'root:x:0:0:root:/:/bin/sh\napp:x:1000:1000:app:/data:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\napp:x:1000:\nextra:x:2000:app\n' >"$root/etc/group"
cat >"$root/bin/entry" <<'EOF'
#!/bin/sh
chown app:app /data || exit 9
exec su app -c 'touch /data/mine; stat -c "%U %a" /data; stat -c %U /data/mine; id -u; echo "$GREETING from $0 $1"' "${1:-nobody}"
EOF
chmod 755 "$root/bin/entry"
mkdir "$root/secretive" && chmod 700 "$root/secretive" && echo kept >"$root/secretive/file"
umoci repack --image "$layout:app" "$BASE/bundle" >/dev/null 2>&1
umoci config --image "$layout:app" --config.entrypoint /bin/entry --config.cmd you --config.env GREETING=hello --config.workingdir /data
rm -rf "$BASE/bundle"
tar -C "$layout" -cf "$BASE/app.tar" .
arcus image import "$BASE/app.tar" --name app:1 >/dev/null 2>"$BASE/err.log"
is "an OCI layout is imported" $? 0
is "it is listed" "$(arcus images -o json | jq -r '.items[] | "\(.name) \(.state)"')" "app:1 active"
run_image() { JOB=$(submit "$1"); HOW=$(how "$JOB" 60); OUT=$(logs "$JOB"); }
run_image '{"image":"app:1","cpus":0.2,"memory":"128MB"}'
is "its own entrypoint chowns, drops its user and gets its arguments" "$HOW|$OUT" "done succeeded 0|app 755
app
1000
hello from you "
run_image '{"image":"app:1","command":["sh","-c","pwd; stat -c %u /bin/busybox; cat /secretive/file; touch /new && ls /new; ls /data; id -u"],"cpus":0.2,"memory":"128MB"}'
is "a command instead of it; files are root's own; its root can be written" "$HOW|$OUT" "done succeeded 0|/data
0
kept
/new
0"
run_image '{"image":"app:1","command":["sh","-c","ls / | cat; [ ! -e /new ] && echo clean; cat /etc/shadow"],"cpus":0.2,"memory":"128MB"}'
like "what one task writes the next does not see" "$OUT" 'clean'
run_image '{"image":"app:1","user":"app","command":["id"],"cpus":0.2,"memory":"128MB"}'
is "a user by name, with the groups of the image" "$OUT" "uid=1000(app) gid=1000(app) groups=1000(app),2000(extra)"
run_image '{"image":"app:1","user":"nobody-here","command":["id"],"cpus":0.2,"memory":"128MB"}'
is "a user that the image does not know" "${HOW% *}" "failed start_failed"
run_image '{"image":"app:1","command":["cat","/secretive/file"],"user":"1000","cpus":0.2,"memory":"128MB"}'
is "permissions inside hold" "${HOW% *}" "failed exited"
run_image '{"image":"app:1","command":["sh","-c","head -c 200000000 /dev/zero >/big; echo $?; stat -c %s /big"],"disk_size":"64MB","cpus":0.5,"memory":"128MB"}'
ok "its disk is bounded" test "$(sed -n 1p <<<"$OUT")" != 0 -a "$(sed -n 2p <<<"$OUT")" -lt 80000000
arcus image import "$BASE/app.tar" --name app:1 >/dev/null 2>"$BASE/err.log"
is "a name that is taken is refused with 5" $? 5

# --- a docker archive
skopeo --insecure-policy copy -q "oci:$layout:app" "docker-archive:$BASE/docker.tar:app:2"
arcus images import "$BASE/docker.tar" --name app:2 >/dev/null 2>"$BASE/err.log"
is "a docker archive is imported" $? 0
run_image '{"image":"app:2","cpus":0.2,"memory":"128MB"}'
is "... and runs the same" "$HOW|$(tail -n 1 <<<"$OUT")" "done succeeded 0|hello from you "

# --- what is none
head -c 100000 /dev/urandom >"$BASE/junk"
arcus images import "$BASE/junk" --name junk >/dev/null 2>"$BASE/err.log"
is "bytes that are no archive are refused with 2" $? 2
like "... with a sentence" "$(cat "$BASE/err.log")" 'arcus: .*(archive|image|layout)'
tar -C "$BASE" -cf "$BASE/tar.tar" junk
arcus images import "$BASE/tar.tar" --name junk >/dev/null 2>"$BASE/err.log"
is "an archive that is no image is refused with 2" $? 2
arcus images import "$BASE/nothing-here" --name junk >/dev/null 2>&1
ok "a file that is not there is refused" test $? != 0
call POST /v1/images '{"name":"junk","digest":"sha256:0000000000000000000000000000000000000000000000000000000000000000"}'
ok "an upload that is not there is refused" test "$STATUS" -ge 400 -a "$STATUS" -lt 500
is "nothing of that is listed" "$(arcus images -o json | jq -r '[.items[].name] | sort | join(" ")')" "app:1 app:2"
digest=$(printf x | sha256sum | cut -d' ' -f1)
is "bytes that are not their digest are refused" "$(printf y | curl -s -o /dev/null -w '%{http_code}' -X PUT -H "Authorization: Bearer $KEY" --data-binary @- "$URL/v1/blobs/sha256:$digest")" 400

# --- a registry
port=$(perl -MIO::Socket -e 'print IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1")->sockport')
cat >"$BASE/registry.yml" <<EOF
version: 0.1
log: {level: error}
storage: {filesystem: {rootdirectory: $BASE/registry}}
http: {addr: 127.0.0.1:$port}
EOF
docker-registry serve "$BASE/registry.yml" >"$BASE/registry.out" 2>&1 &
REGISTRY=$!
pids+=($REGISTRY)
until_ok 10 curl -fs "http://127.0.0.1:$port/v2/"
skopeo --insecure-policy copy -q --dest-tls-verify=false "oci:$layout:app" "docker://127.0.0.1:$port/team/app:3"
is "an image is pushed to a registry" $? 0
run_image "{\"image\":\"127.0.0.1:$port/team/app:3\",\"cpus\":0.2,\"memory\":\"128MB\"}"
is "... pulled by the node, and runs" "$HOW|$(tail -n 1 <<<"$OUT")" "done succeeded 0|hello from you "
run_image "{\"image\":\"127.0.0.1:$port/team/app:4\",\"command\":[\"id\"],\"cpus\":0.2,\"memory\":\"128MB\"}"
is "a tag that it does not have" "${HOW% *}" "failed image_not_found"
manifest=$(skopeo inspect --tls-verify=false --format '{{.Digest}}' "docker://127.0.0.1:$port/team/app:3")
run_image "{\"image\":\"127.0.0.1:$port/team/app@$manifest\",\"command\":[\"echo\",\"by digest\"],\"cpus\":0.2,\"memory\":\"128MB\"}"
is "by its digest" "$HOW|$OUT" "done succeeded 0|by digest"
stop $REGISTRY
run_image "{\"image\":\"127.0.0.1:$port/team/app:3\",\"command\":[\"echo\",\"still here\"],\"cpus\":0.2,\"memory\":\"128MB\"}"
is "with the registry gone, what is here still runs" "$HOW|$OUT" "done succeeded 0|still here"

# --- a Debian: packages with users and scripts install inside
debian() { # once per checkout: an OCI archive in the cache
    local at=$CACHE/debian-bookworm.oci.tar work=$BASE/debian
    [ -s "$at" ] && return 0
    mkdir -p "$CACHE" "$work/blobs/sha256"
    debootstrap --variant=minbase bookworm "$work/root" >"$BASE/debootstrap.txt" 2>&1 || return 1
    rm -rf "$work/root"/var/cache/apt/* "$work/root"/var/lib/apt/lists/* "$work/root"/usr/share/{doc,man,locale}/* "$work/root"/dev/*
    tar --numeric-owner -C "$work/root" -cf "$work/layer.tar" . && rm -rf --one-file-system "$work/root"
    local diff
    diff=$(sha256sum "$work/layer.tar" | cut -d' ' -f1)
    gzip -1 -n "$work/layer.tar"
    put() { local d; d=$(sha256sum "$1" | cut -d' ' -f1); mv "$1" "$work/blobs/sha256/$d"; echo "{\"digest\":\"sha256:$d\",\"size\":$(stat -c %s "$work/blobs/sha256/$d")}"; }
    local layer config
    layer=$(put "$work/layer.tar.gz")
    jq -nc --arg d "sha256:$diff" --arg a "$(dpkg --print-architecture)" '{architecture: $a, os: "linux", config: {Cmd: ["bash"]}, rootfs: {type: "layers", diff_ids: [$d]}}' >"$work/c"
    config=$(put "$work/c")
    jq -nc --argjson l "$layer" --argjson c "$config" '{schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json",
        config: ({mediaType: "application/vnd.oci.image.config.v1+json"} + $c), layers: [{mediaType: "application/vnd.oci.image.layer.v1.tar+gzip"} + $l]}' >"$work/m"
    jq -nc --argjson m "$(put "$work/m")" '{schemaVersion: 2, manifests: [{mediaType: "application/vnd.oci.image.manifest.v1+json", annotations: {"org.opencontainers.image.ref.name": "latest"}} + $m]}' >"$work/index.json"
    echo '{"imageLayoutVersion":"1.0.0"}' >"$work/oci-layout"
    tar -C "$work" -cf "$at.$$" oci-layout index.json blobs && mv "$at.$$" "$at"
    rm -rf "$work"
}
if ! debian; then
    skip "a Debian image" "debootstrap failed: $(tail -n 1 "$BASE/debootstrap.txt")"
else
    arcus image import "$CACHE/debian-bookworm.oci.tar" --name debian:12 >/dev/null 2>"$BASE/err.log"
    is "a Debian image is imported" "$? $(cat "$BASE/err.log")" "0 "
    pkg=$BASE/pkg/flowd
    mkdir -p "$pkg/DEBIAN" "$pkg/usr/bin" "$BASE/pkg/out"
    printf 'Package: flowd\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDepends: adduser\nDescription: a package with a user\n' >"$pkg/DEBIAN/control"
    cat >"$pkg/DEBIAN/postinst" <<'EOF'
#!/bin/sh
set -e
adduser --system --group --home /var/lib/flowd flowd
useradd --create-home --shell /bin/sh person
install -d -o flowd -g adm -m 2750 /var/lib/flowd/spool
chown person:flowd /usr/bin/flowd
chmod 4755 /usr/bin/flowd
EOF
    printf '#!/bin/sh\nid -un\n' >"$pkg/usr/bin/flowd"
    chmod 755 "$pkg/DEBIAN/postinst" "$pkg/usr/bin/flowd"
    dpkg-deb --root-owner-group -b "$pkg" "$BASE/pkg/out/flowd.deb" >/dev/null
    arcus run -i debian:12 -c 1 -m 512MB -w "$BASE/pkg/out" -- sh -c 'dpkg -i flowd.deb >/tmp/dpkg.txt 2>&1 || { cat /tmp/dpkg.txt; exit 1; }
        stat -c "%U %G %a" /var/lib/flowd /var/lib/flowd/spool /home/person /usr/bin/flowd; getent passwd flowd person | cut -d: -f1; dpkg -s flowd | grep ^Status; su person -c flowd' >"$BASE/out" 2>"$BASE/err.log"
    is "dpkg -i of a package with users and a post-install script" "$? $(cat "$BASE/out")" "0 flowd flowd 755
flowd adm 2750
person person 755
person flowd 4755
flowd
person
Status: install ok installed
person"
    arcus run -i debian:12 -c 1 -m 512MB -- sh -c 'dpkg -s flowd >/dev/null 2>&1 || echo clean; apt-get --version | head -n 1 | cut -c 1-4; useradd x && su x -c "id -un"; passwd -d x >/dev/null 2>&1 && echo passwd' >"$BASE/out" 2>"$BASE/err.log"
    is "the image itself is as it was, and its own tools work" "$(cat "$BASE/out")" "clean
apt 
x
passwd"
fi
arcus images remove app:2 >/dev/null
is "an image can be removed" "$? $(arcus images -o json | jq -r '[.items[].name] | index("app:2")')" "0 null"
finish
