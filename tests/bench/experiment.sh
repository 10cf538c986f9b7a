#!/usr/bin/env bash
# experiment.sh DIR [NAME..] - arcus against fgd on the openb traces in DIR, and on variants made of them: other mixes, resampled ones, other fleets.
#
# Prints GPU in use when 95, 100 and 130 % were asked for, mean of ten seeds, and how far arcus is above fgd; exits with 1 where it is below.
# FROM=11 takes the seeds from 11 on, SEEDS=3 so many of them, DRAW=2 draws other variants; NAMEs are patterns of scenarios.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
ARCUS=${ARCUS:-build/arcus} DATA=${1:?folder of the openb files} from=${FROM:-1} seeds=${SEEDS:-10} draw=${DRAW:-1}
shift
KEEP=${KEEP:-} TMP=${KEEP:-$(mktemp -d /tmp/arcus-experiment.XXXXXX)}
[ -n "$KEEP" ] || trap 'rm -rf "$TMP"' EXIT
mkdir -p "$TMP"

# Rows of tasks by kind: 0 CPU alone, 1 a share, 2 one GPU, 3 several. `draw(n)` is a number below n.
LIB='BEGIN { FS = OFS = ","; x = seed * 7919 + 12345; for (i = 0; i < 20; i++) draw(2) }
function draw(n) { x = x * 16807 % 2147483647; return int(x / 2147483647 * n) }
function kind() { return $4 == 0 ? 0 : $4 > 1 ? 3 : $5 < 1000 ? 1 : 2 }
function asks() { return $4 > 1 ? $4 * 1000 : $4 * $5 }
NR == 1 { print $1, $2, $3, $4, $5, "gpu_spec"; next }
{ $0 = $1 "," $2 "," $3 "," $4 "," $5 "," $6; k = kind(); row[k, n[k]++] = $0; gpu[k] += asks(); all[rows++] = $0 }'

make_tasks() { # RECIPE ARG -> stdout
    local default="$DATA/openb_pod_list_default.csv" spec="$DATA/openb_pod_list_gpuspec10.csv"
    case $1 in
    file) awk "$LIB"'END { for (i = 0; i < rows; i++) print all[i] }' seed=1 "$DATA/openb_pod_list_$2.csv" ;;
    resample) awk -v seed="$2" "$LIB"'END { for (i = 0; i < rows; i++) print all[draw(rows)] }' "$default" ;;
    spec-resample) awk -v seed="$2" "$LIB"'END { for (i = 0; i < rows; i++) print all[draw(rows)] }' "$spec" ;;
    share) # that part of all GPU is asked for in shares
        awk -v seed="$draw" -v part="$2" "$LIB"'END {
            for (i = 0; i < n[0]; i++) print row[0, i]
            all_gpu = gpu[1] + gpu[2] + gpu[3]
            for (sum = 0; sum < all_gpu * part / 100;) { r = row[1, draw(n[1])]; split(r, f, ","); sum += f[5]; print r }
            for (; sum < all_gpu;) { i = draw(n[2] + n[3]); r = i < n[2] ? row[2, i] : row[3, i - n[2]]; split(r, f, ","); sum += f[4] * 1000; print r }
        }' "$default" ;;
    multi) # of all GPU that part is asked for in several at once, by more of these tasks
        awk -v seed="$draw" -v part="$2" "$LIB"'END {
            for (i = 0; i < rows; i++) print all[i]
            for (sum = gpu[3]; sum < (gpu[1] + gpu[2] + sum) * part / 100;) { r = row[3, draw(n[3])]; split(r, f, ","); sum += f[4] * 1000; print r }
        }' "$default" ;;
    spec) # that part of the tasks names models, as those that do
        awk -v seed="$draw" -v part="$2" "$LIB"'END {
            for (i = 0; i < rows; i++) { split(all[i], f, ","); if (f[6] != "") named[a++] = all[i]; else any[b++] = all[i] }
            for (i = 0; i < rows; i++) print draw(100) < part ? named[draw(a)] : any[draw(b)]
        }' "$spec" ;;
    named) # that part of the GPU tasks names models, whatever else they ask for
        awk -v seed="$draw" -v part="$2" "$LIB"'END {
            for (i = 0; i < rows; i++) { split(all[i], f, ","); if (f[6] != "") names[a++] = f[6] }
            for (i = 0; i < rows; i++) { split(all[i], f, ","); print f[1], f[2], f[3], f[4], f[5], f[4] && draw(100) < part ? names[draw(a)] : "" }
        }' "$spec" ;;
    cpu) # so many percent of the tasks without GPUs
        awk -v seed="$draw" -v part="$2" "$LIB"'END {
            for (i = 0; i < n[0] * part / 100; i++) print row[0, i % n[0]]
            for (k = 1; k <= 3; k++) for (i = 0; i < n[k]; i++) print row[k, i]
        }' "$default" ;;
    hungry) # so many percent of the CPUs for each task
        awk -v part="$2" "$LIB"'END { for (i = 0; i < rows; i++) { split(all[i], f, ","); print f[1], int(f[2] * part / 100), f[3], f[4], f[5], f[6] } }' "$default" ;;
    cpu-part) # that part of all CPUs is asked for by tasks without GPUs
        awk -v seed="$draw" -v part="$2" "$LIB"'END {
            for (k = 1; k <= 3; k++) for (i = 0; i < n[k]; i++) { print row[k, i]; split(row[k, i], f, ","); sum += f[2] }
            for (more = 0; more < (sum + more) * part / 100;) { r = row[0, draw(n[0])]; split(r, f, ","); more += f[2]; print r }
        }' "$default" ;;
    few) # the commonest shapes alone
        awk -v few="$2" "$LIB"'END {
            for (i = 0; i < rows; i++) { split(all[i], f, ","); shape[i] = f[2] "," f[3] "," f[4] "," f[5]; seen[shape[i]]++ }
            for (; few; few--) { best = ""; for (s in seen) if (!(s in in_it) && (best == "" || seen[s] > seen[best] || (seen[s] == seen[best] && s < best))) best = s; in_it[best] = 1 }
            for (i = 0; i < rows; i++) if (shape[i] in in_it) print all[i]
        }' "$spec" ;;
    many) # no two alike: CPUs and shares are anything within so many percent
        awk -v seed="$draw" -v part="$2" "$LIB"'function near(v) { return int(v * (100 - part + draw(2 * part + 1)) / 100) }
        END {
            for (i = 0; i < rows; i++) {
                split(all[i], f, ",")
                milli = f[5] > 0 && f[5] < 1000 ? near(f[5]) : f[5]
                print f[1], near(f[2]), f[3], f[4], (milli > 990 && f[5] < 1000 ? 990 : milli), f[6]
            }
        }' "$spec" ;;
    even) # shares of one, two, four or eight to a GPU, and the other tasks as they are
        awk -v seed="$draw" -v part="$2" "$LIB"'END {
            split("125,250,500", size, ",")
            for (i = 0; i < rows; i++) { split(all[i], f, ","); print f[1], f[2], f[3], f[4], (f[5] > 0 && f[5] < 1000 ? size[1 + draw(3)] : f[5]), f[6] }
        }' "$default" ;;
    tail) # heavy: half ask for the least, a fourth for twice as much, and so on; CPUs go with the GPUs
        awk -v seed="$draw" -v part="$2" "$LIB"'END {
            split("100,200,400,800,1000,2000,4000,8000", size, ",")
            for (i = 0; i < rows; i++) {
                for (k = 1; k < 8 && draw(100) < part;) k++
                print "t" i, int(size[k] * (4 + draw(10))), int(size[k] * 16), (size[k] > 1000 ? size[k] / 1000 : 1), (size[k] > 1000 ? 1000 : size[k]), ""
            }
        }' "$default" ;;
    any-share) # shares of any size in steps, uniformly, and that part of the tasks whole GPUs
        awk -v seed="$draw" -v part="$2" "$LIB"'END {
            for (i = 0; i < rows; i++) { milli = draw(100) < part ? 1000 : 50 * (1 + draw(19)); print "t" i, 1000 * (1 + draw(12)), 4096 * (1 + draw(8)), 1, milli, "" }
        }' "$default" ;;
    flavor) # as clouds sell it: one to eight GPUs with CPUs and memory to match
        awk -v seed="$draw" -v part="$2" "$LIB"'END {
            split("1,1,1,1,2,2,4,8", size, ",")
            for (i = 0; i < rows; i++) { g = size[1 + draw(8)]; print "t" i, g * part * 100, g * 16384, g, 1000, "" }
        }' "$default" ;;
    hot) # that part of the tasks names the one model
        awk -v seed="$draw" -v part="$2" "$LIB"'END { for (i = 0; i < rows; i++) { split(all[i], f, ","); print f[1], f[2], f[3], f[4], f[5], f[4] && draw(100) < part ? "T4" : "" } }' "$default" ;;
    whole) awk "$LIB"'END { for (i = 0; i < rows; i++) { split(all[i], f, ","); if (f[4] && f[5] == 1000 || !f[4]) print all[i] } }' "$default" ;;
    esac
}

make_nodes() { # RECIPE ARG -> stdout
    local nodes="$DATA/openb_node_list_gpu_node.csv"
    case $1 in
    all) cat "$nodes" ;;
    every) awk -F, -v n="$2" 'NR == 1 || NR % n == 0' "$nodes" ;;
    only) awk -F, -v m="$2" 'NR == 1 || $5 == m' "$nodes" ;;
    no) awk -F, -v m="$2" 'NR == 1 || $5 != m' "$nodes" ;;
    cpus) awk -F, -v OFS=, -v p="$2" 'NR > 1 { $2 = int($2 * p / 100) } 1' "$nodes" ;;
    flat) awk -F, -v OFS=, -v g="$2" 'NR > 1 { $4 = g; $2 = 12000 * g; $3 = 49152 * g; $5 = "G2" } 1' "$nodes" ;; # all alike
    sizes) # one to eight GPUs, some with many CPUs and some with few, of three models
        awk -F, -v OFS=, -v seed="$2" 'BEGIN { split("G2,T4,P100", m, ","); split("1,2,4,8", g, ","); x = seed * 7919 + 12345; for (i = 0; i < 20; i++) draw(2) }
            function draw(n) { x = x * 16807 % 2147483647; return int(x / 2147483647 * n) }
            NR > 1 { $4 = g[1 + draw(4)]; $2 = $4 * (8000 + 4000 * draw(6)); $3 = $4 * 49152; $5 = m[1 + draw(3)] } 1' "$nodes" ;;
    mixed) # the models are dealt out anew: scarce ones are common, and the other way round
        awk -F, -v OFS=, -v seed="$2" 'BEGIN { split("G2,T4,P100,G3,V100M16,V100M32,A10", m, ","); x = seed * 7919 + 12345; for (i = 0; i < 20; i++) x = x * 16807 % 2147483647 }
            NR > 1 { x = x * 16807 % 2147483647; $5 = m[1 + int(x / 2147483647 * 7)] } 1' "$nodes" ;;
    esac
}

# name, recipe of tasks, recipe of nodes
SCENARIOS='
default file default all -
gpuspec10 file gpuspec10 all -
multigpu20 file multigpu20 all -
gpushare40 file gpushare40 all -
share-60 share 60 all -
share-80 share 80 all -
share-100 share 100 all -
share-10 share 10 all -
multi-30 multi 30 all -
multi-40 multi 40 all -
multi-50 multi 50 all -
spec-05 spec 5 all -
spec-20 spec 20 all -
spec-25 spec 25 all -
spec-33 spec 33 all -
named-20 named 20 all -
named-33 named 33 all -
cpu-0 cpu 0 all -
cpu-50 cpu 50 all -
cpu-200 cpu 200 all -
cpu-300 cpu 300 all -
hungry-150 hungry 150 all -
hungry-60 hungry 60 all -
whole whole - all -
resample-1 resample 1 all -
resample-2 resample 2 all -
resample-3 resample 3 all -
resample-4 resample 4 all -
spec-resample-1 spec-resample 1 all -
spec-resample-2 spec-resample 2 all -
half-default file default every 2
half-gpuspec10 file gpuspec10 every 2
half-multigpu20 file multigpu20 every 2
half-gpushare40 file gpushare40 every 2
half-spec-33 spec 33 every 2
tenth-default file default every 10
tenth-gpuspec10 file gpuspec10 every 10
only-G2-default file default only G2
only-G2-gpuspec10 file gpuspec10 only G2
only-G2-multigpu20 file multigpu20 only G2
only-G2-gpushare40 file gpushare40 only G2
only-G2-spec-33 spec 33 only G2
no-G2-default file default no G2
no-G2-gpuspec10 file gpuspec10 no G2
no-G2-multigpu20 file multigpu20 no G2
no-G2-gpushare40 file gpushare40 no G2
no-G2-spec-20 spec 20 no G2
no-G2-spec-33 spec 33 no G2
only-T4-default file default only T4
only-T4-gpuspec10 file gpuspec10 only T4
no-T4-default file default no T4
no-T4-gpuspec10 file gpuspec10 no T4
no-T4-spec-33 spec 33 no T4
fewer-cpus-default file default cpus 70
fewer-cpus-gpuspec10 file gpuspec10 cpus 70
more-cpus-gpuspec10 file gpuspec10 cpus 150
mixed-1-gpuspec10 file gpuspec10 mixed 1
mixed-2-spec-33 spec 33 mixed 2
cpu-part-5 cpu-part 5 all -
cpu-part-10 cpu-part 10 all -
cpu-part-20 cpu-part 20 all -
cpu-part-25 cpu-part 25 all -
few-8 few 8 all -
few-20 few 20 all -
many-20 many 20 all -
many-60 many 60 all -
even even - all -
tail-50 tail 50 all -
tail-70 tail 70 all -
any-share-0 any-share 0 all -
any-share-50 any-share 50 all -
flavor-80 flavor 80 all -
flavor-120 flavor 120 all -
hot-10 hot 10 all -
hot-30 hot 30 all -
tenth-multigpu20 file multigpu20 every 10
tenth-gpushare40 file gpushare40 every 10
tenth-spec-33 spec 33 every 10
tenth-multi-50 multi 50 every 10
tenth-tail-70 tail 70 every 10
tenth-flavor-80 flavor 80 every 10
fortieth-default file default every 40
flat-8-default file default flat 8
flat-8-multi-40 multi 40 flat 8
flat-8-gpushare40 file gpushare40 flat 8
flat-8-tail-70 tail 70 flat 8
flat-8-many-60 many 60 flat 8
flat-4-default file default flat 4
flat-2-default file default flat 2
flat-2-gpushare40 file gpushare40 flat 2
flat-2-flavor-80 flavor 80 flat 2
flat-1-default file default flat 1
sizes-default file default sizes 1
sizes-gpuspec10 file gpuspec10 sizes 1
sizes-multigpu20 file multigpu20 sizes 2
sizes-gpushare40 file gpushare40 sizes 2
sizes-spec-33 spec 33 sizes 3
sizes-multi-50 multi 50 sizes 3
sizes-tail-70 tail 70 sizes 4
sizes-flavor-80 flavor 80 sizes 4
sizes-hot-30 hot 30 sizes 5
sizes-many-60 many 60 sizes 5
'

wanted() { # NAME: is it asked for?
    local name=$1 p
    shift
    [ $# -gt 0 ] || return 0
    for p in "$@"; do
        # shellcheck disable=SC2053 # a pattern
        [[ $name == $p ]] && return 0
    done
    return 1
}

printf '%-22s %-24s %-24s %s\n' "seeds $from to $((from + seeds - 1))" 'arcus at 95 / 100 / 130' fgd above
below=0
while read -r name tasks targ nodes narg; do
    [ -n "$name" ] && wanted "$name" "$@" || continue
    [ -s "$TMP/$name.tasks" ] || make_tasks "$tasks" "$targ" >"$TMP/$name.tasks"
    [ -s "$TMP/$name.nodes" ] || make_nodes "$nodes" "$narg" >"$TMP/$name.nodes"
    for policy in arcus fgd; do
        "$ARCUS" sim --nodes "$TMP/$name.nodes" --tasks "$TMP/$name.tasks" --policy "$policy" --seed "$from" --seeds "$seeds" --inflate 1.3 -q -o json
    done >"$TMP/out"
    awk -v name="$name" '
        function spread(i,   n, k, d, sum, square) { # of the difference, from the pairs of runs with one seed
            for (k = 1; k <= count; k++) { d = each["a", k, i] - each["f", k, i]; sum += d; square += d * d; n++ }
            return n > 1 ? sqrt((square - sum * sum / n > 0 ? square - sum * sum / n : 0) / (n - 1) / n) : 0
        }
        function at(key) { match($0, "\"" key "\":[0-9.]+"); return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) }
        { p = /"policy":"arcus"/ ? "a" : "f"; for (i = 0; i < 3; i++) in_use[p, i] = at(k[i]); bad += at("refused_feasible") + at("wrong") }
        {
            count = 0
            for (rest = $0; match(rest, /"allocation":[{][^}]*/); rest = substr(rest, RSTART + RLENGTH)) {
                keep = RSTART
                len = RLENGTH
                $0 = substr(rest, keep, len)
                for (i = 0; i < 3; i++) each[p, count, i] = at(k[i])
                count++
                RSTART = keep
                RLENGTH = len
            }
            count-- # the first is the mean of all
        }
        BEGIN { split("95 100 130", t, " "); for (i = 0; i < 3; i++) k[i] = t[i + 1] }
        END {
            for (i = 0; i < 3; i++) {
                a = in_use["a", i]; f = in_use["f", i]
                as = as sprintf("%7.2f", a); fs = fs sprintf("%7.2f", f); ds = ds sprintf("%7.2f +-%.2f", a - f, spread(i)); less = less || a < f
            }
            printf "%-22s %-24s %-24s %s%s%s\n", name, as, fs, ds, less ? "  BELOW" : "", bad ? "  WRONG" : ""
            exit less || bad
        }' "$TMP/out" || below=$((below + 1))
done <<<"$SCENARIOS"
echo "$below below"
[ "$below" = 0 ]
