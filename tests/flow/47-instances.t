#!/usr/bin/env bash
# 47-instances.t - machines to work on: SSH into a task through the cloud, by `arcus ssh` and as OpenSSH's ProxyCommand; who may not.
. "$(dirname "$0")/lib.sh"
cloud_up
export HOME=$BASE/home
mkdir -p -m 700 "$HOME/.ssh"
if ! command -v dropbear >/dev/null || ! command -v ssh >/dev/null; then
    skip "SSH into a task" "dropbear or ssh is not installed"
    finish
fi
arcus run -d --name lab -c 1 -m 512MB -e GREETING=hello -- sh -c 'trap "exit 0" TERM; while :; do sleep 0.2; done' >/dev/null 2>&1
wait_for lab running
arcus ssh lab -- id >/dev/null 2>"$BASE/err"
is "without a key of one's own it is said what to do" "$? $(grep -c 'ssh-keygen -t ed25519' "$BASE/err")" "2 1"
ssh-keygen -q -t ed25519 -N '' -C 'ada at her desk' -f "$HOME/.ssh/id_ed25519"
echo 'ssh-rsa nonsense' >"$HOME/.ssh/other.pub"
# OpenSSH takes the home of passwd for its own files, not $HOME
SSH=(-F none -i "$HOME/.ssh/id_ed25519" -o StrictHostKeyChecking=no -o UserKnownHostsFile="$BASE/known" -o LogLevel=ERROR -o BatchMode=yes -o ProxyCommand="$ARCUS ssh --stdio lab")
lab() { timeout 60 ssh "${SSH[@]}" root@lab "$@"; }
is "as a ProxyCommand of OpenSSH: a command, and its exit code" "$(lab 'echo in $ARCUS_JOB_NAME, $GREETING; exit 7' 2>"$BASE/err"; echo "$? $(cat "$BASE/err")")" "in lab, hello
7 "
is "arcus ssh is the same by itself" "$(timeout 60 "$ARCUS" ssh -i "$HOME/.ssh/id_ed25519" lab -- 'echo $ARCUS_JOB_NAME; id -u; exit 3' 2>"$BASE/err" </dev/null; echo "$? $(cat "$BASE/err")")" "lab
0
3 "
is "as its help writes it for ~/.ssh/config: the name of a host, which no shell takes apart" "$(timeout 60 ssh "${SSH[@]/--stdio lab/--stdio \'%n\'}" root@lab.arcus 'echo $ARCUS_JOB_NAME') $("$ARCUS" ssh --help | grep -c "ProxyCommand arcus ssh --stdio '%n'\$")" "lab 1"
head -c 1000000 /dev/urandom >"$BASE/bytes"
is "a million bytes go in and come back" "$(lab cat <"$BASE/bytes" | sha256sum)" "$(sha256sum <"$BASE/bytes")"
timeout 60 scp -O "${SSH[@]}" "$BASE/bytes" root@lab:/tmp/copied 2>"$BASE/err"
is "scp -O copies" "$? $(lab sha256sum </dev/null /tmp/copied | cut -d' ' -f1)" "0 $(sha256sum <"$BASE/bytes" | cut -d' ' -f1)"
is "it is the task's own world: its pids, its rights" "$(lab 'cat /proc/1/cmdline | tr "\0" " " | cut -c 1-5; grep ^CapBnd /proc/self/status | cut -f2')" "sh -c
00000000200405fb"
is "nothing of it listens, inside or on the node" "$(lab 'cat /proc/net/tcp /proc/net/tcp6' | awk '$4 == "0A"' | wc -l) $(ss -ltnp 2>/dev/null | grep -c dropbear)" "0 0"
first=$(ssh-keygen -F lab -f "$BASE/known" | tail -n 1 | cut -d' ' -f2-)
: >"$BASE/known"
lab true
is "the host key stays the task's" "$(ssh-keygen -F lab -f "$BASE/known" | tail -n 1 | cut -d' ' -f2-)" "$first"
is "a key is written once" "$(lab 'grep -c . /root/.ssh/authorized_keys; stat -c %a /root/.ssh/authorized_keys')" "1
600"
timeout 60 ssh "${SSH[@]}" -tt root@lab 'tty; stty size' </dev/null >"$BASE/out" 2>&1
like "with a terminal" "$(cat "$BASE/out")" '/dev/pts/'

# --- keys of the profile
ssh-keygen -q -t ed25519 -N '' -C 'ada@token' -f "$BASE/token"
mv "$BASE/token.pub" "$BASE/of-token.pub"
token() { timeout 60 ssh "${SSH[@]/$HOME\/.ssh\/id_ed25519/$BASE/token}" -o IdentitiesOnly=yes -o IdentityAgent=none root@lab "$@"; }
token id >"$BASE/out" 2>&1
is "a key that is nowhere is not let in" "$? $(grep -c uid= "$BASE/out")" "255 0"
arcus ssh-keys add "$BASE/token" >/dev/null 2>"$BASE/err"
is "a private key is not sent" "$? $(grep -c 'private key' "$BASE/err")" "2 1"
arcus ssh-keys add "$HOME/.ssh/other.pub" >/dev/null 2>"$BASE/err"
is "... nor is what is none" "$? $(grep -c 'other.pub' "$BASE/err")" "2 1"
is "a key goes into the profile, once" "$(arcus ssh-keys add "$BASE/of-token.pub" -o json | jq -r .name) $(arcus ssh-keys add - -o json <"$BASE/of-token.pub" | jq -r .name) $(get /v1/ssh-keys | jq -r '.items | length')" "ada-token ada-token 1"
is "its fingerprint is ssh-keygen's" "$(arcus ssh-keys -o json | jq -r '.items[0].fingerprint')" "$(ssh-keygen -lf "$BASE/of-token.pub" | cut -d' ' -f2)"
is "it lets in, though no client brings it" "$(token 'echo $ARCUS_JOB_NAME')" lab
mkdir -m 700 "$BASE/bare"
is "... even where there is no .pub file at all" "$(HOME=$BASE/bare token 'echo $ARCUS_JOB_NAME')" lab
mkfifo "$BASE/held"
token 'echo in; cat >/dev/null' <"$BASE/held" >"$BASE/open" 2>&1 &
HELD=$!
pids+=($HELD)
exec 7>"$BASE/held"
until_ok 60 grep -q in "$BASE/open"
is "removed, by its name" "$(arcus ssh-keys remove ada-token -o json | jq -r .state)" removed
token id >"$BASE/out" 2>&1
is "... it lets no new session in, while one is open that came with it" "$? $(grep -c uid= "$BASE/out") $(kill -0 $HELD && echo open)" "255 0 open"
exec 7>&-
wait $HELD
is "... which comes to its own end" "$?" 0
cp "$BASE/of-token.pub" "$HOME/.ssh/token.pub"
token id >"$BASE/out" 2>&1
is "... nor when a client brings it" "$? $(grep -c uid= "$BASE/out")" "255 0"
rm "$HOME/.ssh/token.pub"
lab 'grep -v " arcus-" /root/.ssh/authorized_keys; cat >>/root/.ssh/authorized_keys' <"$BASE/of-token.pub"
is "what the task's owner puts there himself is his" "$(token 'echo in; grep -c " arcus-" /root/.ssh/authorized_keys')" "in
1"
lab 'sed -i /ada@token/d /root/.ssh/authorized_keys'

# --- ports through ssh, as VS Code does it
arcus exec lab -- sh -c 'perl -MIO::Socket::INET -e "\$l = IO::Socket::INET->new(Listen => 5, LocalAddr => q(127.0.0.1:7005)); while (\$c = \$l->accept) { print \$c qq(through ssh\n) }" >/dev/null 2>&1 &' 2>/dev/null
listens() { arcus exec lab -- sh -c 'grep -q :1B5D /proc/net/tcp'; }
until_ok 60 listens
is "direct-tcpip reaches the task's loopback" "$(timeout 60 ssh "${SSH[@]}" -W 127.0.0.1:7005 root@lab </dev/null 2>/dev/null)" "through ssh"

# --- an instance: no command, started again when it fails
arcus run -d --type instance --name box -c 0.2 -m 128MB --disk 256MB --retry-delay 0s >/dev/null 2>&1
wait_for box running
is "an instance waits without a command, and SSH reaches it" "$(timeout 60 ssh "${SSH[@]/--stdio lab/--stdio box}" root@box 'echo $ARCUS_JOB_NAME')" box
first=$(get /v1/jobs/box/attempts | jq -r '.items | length')
PID=$(first_pid "$(get /v1/jobs/box/attempts | jq -r '.items[0].id')")
kill -9 "$PID"
again() { [ "$(get /v1/jobs/box/attempts | jq -r '.items | length')" -gt "$first" ] && in_state box running; }
until_ok 60 again
is "when it fails it is started again" "$(job box)" running
arcus run -d --type instance -n 2 >/dev/null 2>"$BASE/err"
is "an instance is one machine" "$? $(grep -c 'one machine' "$BASE/err")" "2 1"

# --- a notebook, of straw
mkdir "$BASE/straw"
cat >"$BASE/straw/jupyter" <<'EOF2'
#!/usr/bin/perl
use IO::Socket::INET; my $l = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1:8888'); $SIG{TERM} = sub { exit 0 };
while (my $c = $l->accept) { my $r = <$c>; print $c "HTTP/1.0 200 OK\r\n\r\n", $r =~ /token=\Q$ENV{JUPYTER_TOKEN}\E / ? "notebook @ARGV" : 'no' }
EOF2
chmod 755 "$BASE/straw/jupyter"
arcus run -d --jupyter --name notes -c 0.2 -m 128MB --disk 256MB -w "$BASE/straw" -e PATH=/workdir:/usr/bin:/bin >/dev/null 2>"$BASE/err"
wait_for notes running
cat "$BASE/err" | head -c 300
has_token() { arcus exec notes -- sh -c 'grep -q :22B8 /proc/net/tcp'; }
until_ok 60 has_token
"$ARCUS" jupyter notes >"$BASE/notes" 2>"$BASE/err" &
pids+=($!)
until_ok 60 test -s "$BASE/notes"
like "arcus jupyter prints the address with its token" "$(cat "$BASE/notes")" '^http://127.0.0.1:[0-9]+/lab\?token=[0-9a-f]{48}$'
like "... and it leads to the notebook" "$(curl -s --max-time 20 "$(cat "$BASE/notes")")" '^notebook lab --no-browser'
stop "${pids[-1]}"
is "it leaves with 0" $? 0
arcus jupyter lab >/dev/null 2>"$BASE/err"
is "a task without one says so" "$? $(grep -c 'has no notebook' "$BASE/err")" "5 1"

# --- who may not
ssh-keygen -q -t ed25519 -N '' -f "$BASE/stranger"
timeout 60 ssh "${SSH[@]/$HOME\/.ssh\/id_ed25519/$BASE/stranger}" -o IdentitiesOnly=yes -o IdentityAgent=none root@lab id >"$BASE/out" 2>&1
is "a key that was not brought is not let in" "$? $(grep -c uid= "$BASE/out")" "255 0"
arcus orgs create far >/dev/null; arcus projects create foreign --org far >/dev/null
for u in eve vic; do printf 'password-of-%s' $u | arcus users create $u --password-stdin >/dev/null; done
arcus members set eve admin --project foreign >/dev/null; arcus members set vic viewer >/dev/null
for who in "eve foreign" "vic default"; do printf 'password-of-%s' "${who% *}" | ARCUS_CONFIG=$BASE/${who% *}.config "$ARCUS" login --server "$URL" --user "${who% *}" --project "${who#* }" >/dev/null 2>&1; done
ARCUS_CONFIG=$BASE/eve.config "$ARCUS" ssh --stdio lab </dev/null >"$BASE/out" 2>&1
is "another project cannot" "$? $(grep -c SSH-2.0 "$BASE/out")" "4 0"
ARCUS_CONFIG=$BASE/vic.config "$ARCUS" ssh --stdio lab </dev/null >"$BASE/out" 2>&1
is "a viewer may not" "$? $(grep -c SSH-2.0 "$BASE/out")" "3 0"
with_key() { curl -sk -G -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $KEY" -H 'Connection: Upgrade' -H 'Upgrade: websocket' -H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' --max-time 10 --data-urlencode "keys=$1" "$URL/v1/jobs/lab/ssh"; }
is "a key with options, two in one, or half of one is refused" "$(with_key "command=\"id\" $(cat "$HOME/.ssh/id_ed25519.pub")") $(with_key "$(cat "$HOME/.ssh/id_ed25519.pub" "$HOME/.ssh/id_ed25519.pub")") $(with_key "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5") $(with_key '')" "400 400 400 400"

is "nobody sees the profile of another" "$(ARCUS_CONFIG=$BASE/eve.config "$ARCUS" ssh-keys -o json | jq '.items | length') $(ARCUS_CONFIG=$BASE/eve.config "$ARCUS" ssh-keys remove "$(arcus ssh-keys add "$BASE/of-token.pub" -o json | jq -r .id)" 2>&1 | grep -c 'there is no public key') $(get /v1/ssh-keys | jq '.items | length')" "0 1 1"
printf 'password-of-dan' | arcus users create dan --password-stdin >/dev/null; arcus members set dan developer >/dev/null
printf 'password-of-dan' | ARCUS_CONFIG=$BASE/dan.config "$ARCUS" login --server "$URL" --user dan --project default >/dev/null 2>&1
as_dan() { HOME=$BASE/bare ARCUS_CONFIG=$BASE/dan.config timeout 60 ssh "${SSH[@]/$HOME\/.ssh\/id_ed25519/$BASE/stranger}" -o IdentitiesOnly=yes -o IdentityAgent=none root@lab "$@"; }
as_dan id >"$BASE/out" 2>&1
is "a developer of the project without a key is told" "$? $(grep -c 'none in your profile' "$BASE/out")" "255 1"
ARCUS_CONFIG=$BASE/dan.config "$ARCUS" ssh-keys add "$BASE/stranger.pub" --name dan >/dev/null
is "... and comes in with his own" "$(as_dan 'echo $ARCUS_JOB_NAME')" lab

for i in 1 2 3 4 5 6 7 8; do mkdir -p -m 700 "$BASE/h$i/.ssh" && ssh-keygen -q -t ed25519 -N '' -f "$BASE/h$i/.ssh/id_ed25519"; done
guest() { local words=("${SSH[@]/$HOME/$BASE/h$1}"); timeout 60 ssh "${words[@]/ProxyCommand=/ProxyCommand=env HOME=$BASE/h$1 }" root@lab "echo in $1"; }
for i in 1 2 3 4 5 6 7 8; do guest $i >"$BASE/came.$i" 2>&1 & many[i]=$!; done
for i in 1 2 3 4 5 6 7 8; do wait "${many[i]}"; done
is "all who come at once for the first time are let in" "$(cat "$BASE"/came.* | tr '\n' ' ')" "in 1 in 2 in 3 in 4 in 5 in 6 in 7 in 8 "

# --- what stands in the way
arcus exec lab -- sh -c 'rm -rf /run/arcus-ssh; mkdir -m 777 /run/arcus-ssh' 2>/dev/null
arcus ssh --stdio lab </dev/null >"$BASE/out" 2>"$BASE/err"
is "a folder that others may write is not trusted" "$? $(grep -c "not its root's alone" "$BASE/err")" "125 1"
arcus exec lab -- sh -c 'rm -rf /run/arcus-ssh; ln -s /root /run/arcus-ssh' 2>/dev/null
arcus ssh --stdio lab </dev/null >"$BASE/out" 2>"$BASE/err"
is "... nor is a link followed" "$? $(arcus exec lab -- sh -c 'ls /root | grep -c dropbear' 2>/dev/null)" "125 0"
arcus exec lab -- sh -c 'rm -f /run/arcus-ssh; rm -f /root/.ssh/authorized_keys; mkfifo /root/.ssh/authorized_keys' 2>/dev/null
is "a FIFO in place of the keys holds nobody up" "$(lab echo through)" through
finish
