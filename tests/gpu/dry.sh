#!/usr/bin/env bash
# dry.sh - the scripts of this folder on a machine without a GPU, with all of a driver made up (tests/fake, dry/): shows that quoting, paths, commands, fields, waiting and
# cleaning up are right, so that a host that is lent by the minute is not needed for that. Figures mean nothing here. In a mount namespace of its own, over /usr.
#   ./dev bundle; make test-bin as ./dev test does (build/test/fake); tests/gpu/dry.sh mps.sh
# What Debian has and a bare host has not (runtime, dropbear, skopeo, our libraries) is hidden, so that the bundle shows that it has all it needs.
set -uo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
if [ -z "${DRY_INSIDE:-}" ]; then exec env DRY_INSIDE=1 unshare --mount --propagation private "$0" "$@"; fi
: "${BUNDLE:=$HERE/../../build/arcus-bundle}"
FAKE=$(cd "$(dirname "${FAKES:-$HERE/../../build/test/fake/x}")" && pwd)
W=$(mktemp -d /opt/arcus-dry.XXXXXX) && chmod 755 "$W" || exit 1
gone() { kill "$DRIVER" 2>/dev/null; cd /; umount -l "$W/over" 2>/dev/null; rm -rf --one-file-system "$W"; }
trap gone EXIT
trap 'exit 1' INT TERM HUP
mkdir "$W/over" && mount -t tmpfs over "$W/over" && mkdir -p "$W/over/up/bin" "$W/over/up/lib/python3/dist-packages" "$W/over/work" && chmod -R 755 "$W/over"
gcc -shared -fPIC -O1 -D_GNU_SOURCE -DDRY_SOCKET="\"$W/socket\"" -o "$W/over/up/lib/libcuda.so.1" "$HERE/dry/cuda.c" || exit 1
cp -r "$HERE/dry/torch" "$W/over/up/lib/python3/dist-packages/"
sed "s|@FOLDER@|$W|" "$HERE/dry/nvidia-smi" >"$W/over/up/bin/nvidia-smi" && cp "$FAKE/nvidia-cuda-mps-control" "$W/over/up/bin/" && chmod 755 "$W"/over/up/bin/*
cp -r "$BUNDLE" "$W/bundle" || exit 1
for f in bin/crun bin/runc bin/skopeo bin/umoci bin/dropbearkey sbin/dropbear sbin/nft; do [ -e "/usr/$f" ] && mkdir -p "$W/over/up/${f%/*}" && mknod "$W/over/up/$f" c 0 0; done
for f in /usr/lib/*-linux-gnu/lib{sodium,yaml,wslay,http_parser,sqlite3,pq,hwloc,nftables,nftnl,mnl,seccomp,yajl,tomcrypt,tommath}[.-]*so*; do
    [ -e "$f" ] && mkdir -p "$W/over/up/$(dirname "${f#/usr/}")" && mknod "$W/over/up/${f#/usr/}" c 0 0
done
cp "$FAKE"/lib{nvidia-ml,cuda-both}.so.1 "$W/"
printf '{"cdiVersion":"0.6.0","kind":"nvidia.com/gpu","devices":[{"name":"GPU-fa4e0000-0000-0000-0000-000000000000","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia0","hostPath":"%s"}]}}]}\n' "${DEVICE:-/dev/fuse}" >"$W/gpu.json"
mkdir -m 755 "$W/cdi" && mv "$W/gpu.json" "$W/cdi/"
/usr/bin/python3 "$HERE/dry/driver.py" "$W" &
DRIVER=$!
for _ in $(seq 100); do [ -S "$W/socket" ] && break; sleep 0.1; done
mount -t overlay over -o "lowerdir=/usr,upperdir=$W/over/up,workdir=$W/over/work" /usr || exit 1
script=$1
shift
DRY_BARE=1 MEMORY=${MEMORY:-512MB} ARCUS=$W/bundle/arcus PY=/usr/bin/python3 UVM=/dev/zero CHECK="--cuda $W/libcuda-both.so.1" \
    UP="--nvml $W/libnvidia-ml.so.1 --cuda $W/libcuda-both.so.1 --uvm /dev/zero --cdi $W/cdi --mps /usr/bin/nvidia-cuda-mps-control" "$HERE/$script" "$@"
