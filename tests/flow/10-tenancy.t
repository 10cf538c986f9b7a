#!/usr/bin/env bash
# 10-tenancy.t - two projects that distrust each other, people with roles, passwords, keys that are scoped, expire and are switched off; and every try to
# reach across, through the command line, which must not even learn that the thing exists.
# also on PostgreSQL
. "$(dirname "$0")/lib.sh"
cloud_up
cd "$BASE" || exit 1
as() { local who=$1; shift; ARCUS_CONFIG=$BASE/$who.config "$ARCUS" "$@"; }          # as WHO WORD...: each has a config of their own
code() { "$@" >out 2>err; echo $?; }

# --- the operator makes two tenants
arcus orgs create physics >/dev/null
for p in red blue; do arcus projects create $p --org physics >/dev/null; done
is "two projects" "$(arcus projects -o json | jq -r '[.items[].name] | sort | join(" ")')" "blue default red"
for u in ada bob eve vic; do printf 'password-of-%s' $u | arcus users create $u --password-stdin >/dev/null 2>err || cat err; done
is "four users" "$(arcus users -o json | jq -r '[.items[].name] | sort | join(" ")')" "ada admin bob eve vic"
is "a password too short is refused" "$(printf short | code arcus users create tom --password-stdin)" 2
is "a name that is taken is refused" "$(printf password-of-ada | code arcus users create ada --password-stdin)" 5
arcus members set ada admin --project red >/dev/null
arcus members set bob developer --project red >/dev/null
arcus members set vic viewer --project red >/dev/null
arcus members set eve admin --project blue >/dev/null
is "members have their roles" "$(arcus members --project red -o json | jq -rc '[.items[] | select(.name != "admin") | .name + ":" + .roles] | sort | join(" ")')" "ada:admin bob:developer vic:viewer"

# --- login
for who in "ada red" "bob red" "vic red" "eve blue"; do
    printf 'password-of-%s' ${who% *} | as ${who% *} login --server "$URL" --user ${who% *} --project ${who#* } >/dev/null 2>err || cat err
done
is "login with a password keeps a key" "$(as ada whoami -o json | jq -r .name) $(stat -c %a ada.config)" "ada 600"
unlike "... and never the password" "$(cat ada.config)" password-of-ada
is "a wrong password is refused with 3" "$(printf wrong-password | code as mal login --server "$URL" --user ada)" 3
wrong=$(cat err)
is "an unknown user is refused the same way" "$(printf wrong-password | code as mal login --server "$URL" --user nobody-here | tr -d '\n') $(sed 's/nobody-here/ada/' err)" "3 $wrong"
is "each speaks for one project" "$(as bob whoami -o json | jq -r '.project + " " + .roles') $(as eve whoami -o json | jq -r '.project + " " + .roles')" "red developer blue admin"

# --- what each may
SECRET=$(printf hush | code as bob secrets set token)
is "a developer stores secrets" "$SECRET" 0
is "a developer makes volumes" "$(code as bob volumes create data)" 0
JOB=$(as bob submit --name work -c 0.2 -m 128MB --secret token -v data:/data -- sh -c 'echo word of red; echo result >/outputs/file; while [ ! -e /tmp/stop ]; do sleep 0.2; done')
until_ok 20 eval '[ "$(as bob ps -o json 2>/dev/null | jq -r ".items[0].state")" = running ]'
until_ok 20 eval 'as bob logs work | grep -q "word of red"'
is "a developer runs jobs" "$(as bob ps -o json | jq -r '.items[] | .name + " " + .owner')" "work bob"
is "a viewer sees them" "$(as vic ps -o json | jq -r '.items[].name') $(as vic logs work)" "work word of red"
is "... and may not submit, cancel, exec, copy, set secrets" "$(code as vic submit -- true) $(code as vic cancel work) $(code as vic exec work -- id) $(code as vic cp work:/outputs/file x) $(printf x | code as vic secrets set other)" "3 3 3 3 3"
is "a developer is no admin" "$(code as bob members set eve admin) $(code as bob accounts create robot)" "3 3"
is "an admin of a project is no operator" "$(code as ada projects create other) $(code as ada users list) $(code as ada nodes) $(printf 12345678 | code as ada users create zed --password-stdin) $(code as ada nodes token)" "3 3 3 3 3"
is "an admin gives roles in her own project" "$(code as ada members set vic developer) $(code as vic submit --name viced -c 0.1 -m 64MB -- true)" "0 0"
is "... and takes them" "$(code as ada members remove vic) $(code as vic ps)" "0 4"

# --- across
across() { # across WORD...: eve tries it on red's things; it must fail as it does for what does not exist
    as eve "$@" >out 2>err </dev/null
    local got="$? $(sed "s/$JOB/X/g; s/\bwork\b/X/g; s/\bdata\b/X/g; s/\btoken\b/X/g" err)"
    local other=("$@") i
    for i in "${!other[@]}"; do other[i]=$(sed "s/$JOB/job-0000000000000/; s/\bwork\b/nothing/; s/^data\b/nothing/; s/^token$/nothing/; s/^vol:data/vol:nothing/" <<<"${other[i]}"); done
    as eve "${other[@]}" >out2 2>err2 </dev/null
    local want="$? $(sed 's/job-0000000000000/X/g; s/\bnothing\b/X/g' err2)"
    if [ "${got%% *}" != 0 ] && [ "$got" = "$want" ] && ! grep -q 'word of red\|result\|hush' out err; then pass "across: $*"; else fail "across: $*" "$got $(cat out)" "$want, and nothing told"; fi
}
for name in "$JOB" work; do
    across describe $name
    across logs $name
    across cancel $name
    across exec $name -- cat /outputs/file
    across cp "$name:/outputs/file" stolen
    across tasks $name
    across attempts $name
    across update $name --priority 90
    across submit --after ok:$name -- true
done
across volumes remove data
across cp vol:data/ stolen
across secrets remove token
across submit -v data:/data -- true
across submit --secret token -- cat /run/secrets/token
is "eve's lists are empty" "$(for w in 'ps --all' volumes secrets images accounts; do as eve $w -o json | jq -c '.items | length'; done | tr '\n' ' ')" "0 0 0 0 0 "
unlike "eve's events and usage tell nothing of red" "$(as eve events -o json; as eve usage -o json)" "$JOB|\\bwork|bob"
is "she cannot speak for red" "$(code as eve ps --project red) $(code as eve submit --project red -- true) $(code as eve members list --project red)" "4 4 4"
not_there=$(as eve ps --project red 2>&1 | sed 's/red/X/')
is "... nor learn that it is there" "$(as eve ps --project green 2>&1 | sed 's/green/X/')" "$not_there"
is "... nor by its id" "$(as eve projects get "$(arcus projects get red -o json | jq -r .id)" >/dev/null 2>err; echo $?) $(sed -E 's/prj-[0-9a-z]+/X/' err)" "4 $(as eve projects get prj-0000000000000 2>&1 >/dev/null | sed -E 's/prj-[0-9a-z]+/X/')"
is "after all of that red's job runs as before" "$(AS=$KEY arcus describe "$JOB" --project red -o json | jq -r '"\(.state) \(.priority)"')" "running 50"
is "the same names are free in blue" "$(code as eve volumes create data) $(printf other | code as eve secrets set token)" "0 0"
is "... and are other things" "$(as eve run -c 0.1 -m 64MB --secret token -v data:/data -- sh -c 'cat /run/secrets/token; ls -A /data' 2>/dev/null)" other

# --- keys
KEY_V=$(as bob keys create reader --roles viewer -o json | jq -r .key)
like "a key is shown once" "$KEY_V" '^ak_'
unlike "... and never again" "$(as bob keys -o json)" "$KEY_V"
is "... nor stored" "$(grep -rlF "$KEY_V" "$DATA" 2>/dev/null)" ""
with() { local key=$1; shift; ARCUS_CONFIG=$BASE/none.config "$ARCUS" --server "$URL" --key "$key" --project red "$@"; }
is "a key of fewer roles can do less" "$(code with "$KEY_V" ps) $(code with "$KEY_V" submit -- true)" "0 3"
is "nobody gives a key more than he has" "$(code as bob keys create root --roles admin)" 2
is "... nor platform roles" "$(code as bob keys create root --roles operator)" 2
is "a key can be switched off" "$(code as bob keys disable reader) $(code with "$KEY_V" ps)" "0 3"
as ada accounts create robot --roles developer >/dev/null
KEY_R=$(as ada keys create robot-key --account robot -o json | jq -r .key)
is "a service account has keys of its own" "$(with "$KEY_R" whoami -o json | jq -r '.kind + " " + .name + " " + .roles')" "account robot developer"
is "... for its own project only" "$(ARCUS_CONFIG=$BASE/none.config code arcus --server "$URL" --key "$KEY_R" --project blue ps)" 4
is "... and is switched off with all its keys" "$(code as ada accounts disable robot) $(code with "$KEY_R" ps)" "0 3"
call POST /v1/keys '{"name":"brief","expires_in":"60s"}'
KEY_E=$(field .key)
is "a key that expires works before" "$(AS=$KEY_E get /v1/whoami | jq -r .name)" admin
ok "... and says when it does" test "$(AS=$KEY_E get /v1/whoami | jq -r .key_expires)" != null
is "eve's keys are not ada's to switch off" "$(code as ada keys disable "$(as eve keys -o json | jq -r '.items[0].id')")" 4
timeout 30 "$ARCUS" --server "$URL" --key "$KEY_R" --project red events -f >out 2>&1
ok "a stream with a dead key does not begin" test $? != 124

# --- switched off at once, also in the middle
ARCUS_CONFIG=$BASE/bob.config "$ARCUS" events -f >streamed 2>&1 &
STREAM=$!
pids+=($STREAM)
until_ok 10 test -s streamed
is "a user is switched off" "$(code arcus users disable bob)" 0
is "... and no key of his works" "$(code as bob ps) $(printf password-of-bob | code as bob login --server "$URL" --user bob)" "3 3"
until_ok 10 eval '! kill -0 $STREAM'
ok "... also not the stream that was open" eval '! kill -0 $STREAM 2>/dev/null'
is "... until he is let in again" "$(code arcus users enable bob) $(code as bob ps)" "0 0"
is "a password is changed by its owner" "$(printf 'password-of-ada\nnew-password-of-ada\n' | code as ada users passwd) $(printf password-of-ada | code as ada2 login --server "$URL" --user ada) $(printf new-password-of-ada | code as ada2 login --server "$URL" --user ada)" "0 3 0"
unlike "no password is in our files" "$(grep -rl 'password-of-' "$DATA" 2>/dev/null)" .

# --- the auditor
printf password-of-aud | arcus users create aud --roles auditor --password-stdin >/dev/null 2>&1
printf password-of-aud | as aud login --server "$URL" --user aud >/dev/null 2>&1
is "an auditor reads events and usage of all, and changes nothing" "$(code as aud events) $(code as aud usage) $(code as aud nodes) $(code as aud submit --project red -- true) $(code as aud nodes token) $(printf 12345678 | code as aud users create x --password-stdin)" "0 0 0 3 3 3"
arcus exec "$JOB" --project red -- touch /tmp/stop </dev/null >/dev/null 2>&1
arcus projects quota blue --jobs 1 >/dev/null
first=$(as eve submit -c 0.1 -m 64MB -- sleep 600)
is "a quota of jobs is refused with 6 when it is full" "$(code as eve submit -- true)" 6
as eve cancel "$first" --grace 0s >/dev/null
arcus quota set blue --user eve --model H200 --gpus 2 --gpu-hours-day 10 >/dev/null
like "limits are shown in columns" "$(as eve quota)" "LIMIT .*USER +MODEL +MOST +USED.*gpus +eve +h200 +2 +0"
is "only operators set them" "$(code as eve quota set blue --gpus 100)" 3
is "what could never run is refused with 6" "$(code as eve submit -g H200:3 -t 1h -- true)" 6
arcus quota set blue --user eve --model H200 --gpus -1 --gpu-hours-day -1 >/dev/null
for j in "$JOB" "$first"; do until_ok 20 eval '[[ "$(arcus describe $j --project red -o json 2>/dev/null || arcus describe $j --project blue -o json)" == *ended* ]]'; done
cd / || exit 1
finish
