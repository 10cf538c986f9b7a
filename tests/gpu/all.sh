#!/usr/bin/env bash
# all.sh - the scripts of this folder one after the other, as much as fits into LIMIT seconds (540: a call on a lent host may take ten minutes). Says what each took; everything that
# they print is in OUT/PART.log (OUT: build/gpu), here are results and tables alone.
#   tests/gpu/all.sh PART...        shares suspend hostile faults network inject probe; none: all, most important first
# The program is the bundle's: ARCUS, or build/arcus-bundle.tar.gz, which is unpacked to /opt/arcus-bundle.
set -uo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
: "${LIMIT:=540}" "${OUT:=$HERE/../../build/gpu}"
mkdir -p "$OUT" || exit 1
if [ -z "${ARCUS:-}" ]; then
    tar -xzf "$HERE/../../build/arcus-bundle.tar.gz" -C /opt || { echo "Bail out! no bundle: ./dev bundle"; exit 1; }
    ARCUS=/opt/arcus-bundle/arcus
fi
export ARCUS
declare -A what=([shares]=mps.sh [suspend]=suspend.sh [hostile]=hostile.sh [faults]=mps_facts.py [network]=network.sh [inject]=inject.sh [probe]=probe.sh)
declare -A least=([shares]=200 [suspend]=200 [hostile]=100 [faults]=60 [network]=40 [inject]=60 [probe]=60)      # with less there is no use in beginning
[ $# -gt 0 ] || set -- shares suspend hostile faults network inject probe
failed=0
left() { echo $((LIMIT - SECONDS)); }
took=()
for part in "$@"; do
    [ -n "${what[$part]:-}" ] || { echo "Bail out! there is no part $part"; exit 2; }
    if [ "$(left)" -lt "${least[$part]}" ]; then
        took+=("$part: not begun, $(left) s left")
        continue
    fi
    at=$SECONDS
    echo "== $part: ${what[$part]}, $(left) s left"
    if [ "${what[$part]}" = mps_facts.py ]; then
        py=${PY:-/opt/torch/.venv/bin/python3}
        [ -x "$py" ] || py=$(command -v python3)
        timeout -k 5 "$(left)" "$py" "$HERE/mps_facts.py" >"$OUT/$part.log" 2>&1
        rc=$?
        tail -c 5000 "$OUT/$part.log"
    else
        LIMIT=$(($(left) - 10)) timeout -k 20 "$(left)" "$HERE/${what[$part]}" >"$OUT/$part.log" 2>&1
        rc=$?
        grep -E '^(ok|not ok|Bail|1\.\.|# \||#   (got|wanted))' "$OUT/$part.log" | cut -c1-300
    fi
    [ $rc = 0 ] || failed=$((failed + 1))
    took+=("$part: $((SECONDS - at)) s, exit code $rc, $(grep -c '^ok' "$OUT/$part.log") well, $(grep -c '^not ok' "$OUT/$part.log") not")
done
echo "== in all $SECONDS s of $LIMIT"
printf '%s\n' "${took[@]}"
exit $((failed > 0))
