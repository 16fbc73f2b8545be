# Oikos: the remote half of a supervised run (SPEC R5.3). Sent on standard input to `sh -s -- CANARY`; nothing is
# installed on the target. POSIX sh with ls, dd, head, tail, mkfifo, ln, mv, cat, df, date, sleep and, if there, setsid.
# The words between @ are filled in by spool.py; all is one function, so that a cut payload does nothing at all.
#
# A run lives in ~/.local/state/oikos/spool/RUN_ID (mkdir of it = the claim):
#   cmd stdin boot | decision (run or void, by hard link: compare-and-set) | pid out err sig why | rc | alive (fifo)
#   files: it has secret files, which lie in /tmp/oikos-RUN_ID as long as the command runs
oikos() {
umask 077; have7=
OP=@OP@ ID=@ID@ NONCE=@NONCE@ OOFF=@OOFF@ EOFF=@EOFF@ CHUNK=@CHUNK@
LIMIT=@LIMIT@ IDLE=@IDLE@ CAP=@CAP@ NOT_AFTER=@NOT_AFTER@ STDIN=@STDIN@ FLOOR_KB=@FLOOR_KB@
S=$HOME/.local/state/oikos/spool
RUNSH=sh SUPSH=sh
if command -v bash >/dev/null 2>&1; then
 RUNSH='bash --noprofile --norc'
 # bash in its posix mode does not say which signal ended a child
 if [ -n "${BASH_VERSION:-}" ]; then SUPSH=$RUNSH; fi
fi
quote=bad; [ "$1" = @CANARY@ ] && quote=ok
BOOT=none; { read -r BOOT </proc/sys/kernel/random/boot_id; } 2>/dev/null
now=0; [ $OP = hello ] && now=$(date +%s)
hello() { printf '%s H %s %s %s %s %s\n' "$NONCE" "$BOOT" "$1" "${RUNSH%% *}" "$quote" $now; }
refuse() { hello -; printf 'X %s\n' "$1"; exit 3; }
[ -d "$S" ] || mkdir -p "$S" 2>/dev/null
[ -d "$S" ] && [ ! -h "$S" ] || refuse 'no-directory'
[ -O "$S" ] || refuse 'not-ours'
if [ ! -s "$S/epoch" ]; then
 { printf '%s\n' "$NONCE" >"$S/.e.$$" && ln "$S/.e.$$" "$S/epoch"; } 2>/dev/null; rm -f "$S/.e.$$"
fi
EPOCH=; { read -r EPOCH <"$S/epoch"; } 2>/dev/null
[ -n "$EPOCH" ] || refuse 'no-hard-links-or-full'
hello "$EPOCH"
D=$S/$ID F=/tmp/oikos-$ID
decide() { printf '%s\n' "$1" >"$D/.d.$$"; ln "$D/.d.$$" "$D/decision" 2>/dev/null; rm -f "$D/.d.$$"; read -r dec <"$D/decision"; }
# start time in ticks since boot: with it a pid means one process only
st() { { read -r l </proc/$1/stat; } 2>/dev/null || return 1; l=${l##*) }; set -- $l; shift 19; echo "$1"; }
same_boot() { b=; { read -r b <"$D/boot"; } 2>/dev/null; [ "$b" = "$BOOT" ]; }
alive() { [ -n "$2" ] && same_boot && [ "$(st $1)" = "$2" ]; }
# the headline of df -P has seven words, the line below it has the free space as its fourth
free_kb() { set -- $(LC_ALL=C df -Pk "$1" 2>/dev/null); case ${11:-x} in *[!0-9]*) ;; *) echo ${11};; esac; }
nap() { sleep $1 2>/dev/null || sleep 1; }
# one secret file, to the byte
put() { [ -n "$bad" ] || head -c $2 >"$F/$1" || bad=unwritten; }
# what the supervisor cannot remove any more; nothing that was put there by somebody else
drop() {
 [ -e "$D/files" ] || return 0
 s= ss=; { read -r c cs s ss <"$D/pid"; } 2>/dev/null
 alive "$s" "$ss" && return 0
 [ -O "$F" ] && [ ! -h "$F" ] && rm -rf "$F"
}
case $OP in
 hello)
  # what was acknowledged a week ago, or finished a month ago and was never asked for, is forgotten
  ( { find "$S" -type f '(' -name gone -o -name files ')' -mtime +7; find "$S" -type f -name rc -mtime +30; } 2>/dev/null |
    while read -r f; do
     D=${f%/*} F=/tmp/oikos-${D##*/}
     case $f in "$S"/*/files) drop;; "$S"/*/*) rm -rf "$D";; esac
    done ) </dev/null >/dev/null 2>&1 &
  exit 0;;
 start)
  if [ ! -d "$D" ]; then
   free=$(free_kb "$S")
   if [ -n "$free" ] && [ "$free" -lt $FLOOR_KB ]; then printf 'X full %s\n' "$free"; exit 3; fi
  fi
  if mkdir "$D" 2>/dev/null; then
   bad=
   if [ @FILES@ -gt 0 ]; then
    # made by this run and nobody else, in a place where nobody else can move it away (security/THREATS T34)
    if [ -k /tmp ] && mkdir -m 700 "$F" 2>/dev/null; then echo >"$D/files" || { bad=unwritten; rmdir "$F"; }
    elif [ -e "$F" ] || [ -h "$F" ]; then bad=taken
    else bad=refused; fi
@PUTS@
    if [ -n "$bad" ]; then echo $bad >"$D/why"; decide void; drop; printf 'U void %s\n' $bad; exit 0; fi
   fi
   cat >"$D/cmd" <<'@NONCE@_CMD'
@CMD@
@NONCE@_CMD
   if [ $STDIN -ge 0 ]; then
    cat >"$D/stdin.t" <<'@NONCE@_IN'
@STDIN_TEXT@
@NONCE@_IN
    head -c $STDIN "$D/stdin.t" >"$D/stdin"; rm -f "$D/stdin.t"
   fi
   printf '%s\n' "$BOOT" >"$D/boot"
   # its block is there before the command can fill the disk
   printf '                \n' >"$D/rc.t"
   mkfifo "$D/alive" 2>/dev/null
   cat >"$D/sup" <<'@NONCE@_SUP'
# DIR LIMIT IDLE CAP NOT_AFTER FLOOR_KB SETSID SHELL... ; fd 9 = writing end of the alive fifo
D=$1 lim=$2 idle=$3 cap=$4 na=$5 floor=$6 ss=$7; shift 7
[ -n "$ss" ] || trap '' HUP
say=run F=
[ ! -e "$D/files" ] || F=/tmp/oikos-${D##*/}
drop() { [ -n "$F" ] && [ -O "$F" ] && [ ! -h "$F" ] && rm -rf "$F"; }
if [ "$na" -gt 0 ] && [ "$(date +%s)" -gt "$na" ]; then say=void; echo late >"$D/why"; drop; fi
printf '%s\n' $say >"$D/.s"; ln "$D/.s" "$D/decision" 2>/dev/null || { say=void; drop; }
if [ $say = void ]; then rm -f "$D/stdin"; exit 0; fi
: >"$D/out"; : >"$D/err"
cd "$HOME" 2>/dev/null || cd /
if [ -f "$D/stdin" ]; then exec 5<"$D/stdin"; rm -f "$D/stdin"; else exec 5</dev/null; fi
unset OLDPWD
# the shell names the signal that ended a child on its own standard error; nothing else is said there
exec 2>"$D/sig"
$ss "$@" "$D/cmd" <&5 >>"$D/out" 2>>"$D/err" 5<&- 9>&- &
c=$!
# From here to `wait` nothing else is waited for: a child that was reaped on the side is not named with its signal.
( exec 5<&-
  st() { { read -r l </proc/$1/stat; } 2>/dev/null || return 1; l=${l##*) }; set -- $l; shift 19; echo "$1"; }
  cs=$(st $c); ss=$(st $$)
  printf '%s\n' "$c $cs $$ $ss" >"$D/pid"
  ms=0 d=0.1 k=100 last=0 moved=0 seen=0
  while [ ! -e "$D/rc" ]; do
   if sleep $d; then ms=$((ms+k)); else sleep 1; ms=$((ms+1000)); fi 2>/dev/null
   why=
   set -- $(LC_ALL=C TIME_STYLE=locale ls -ln "$D/err" "$D/out" 2>/dev/null) 0 0 0 0 0 0 0 0 0 0 0 0 0 0; n=$(($5+${14}))
   if [ $n -gt $last ]; then moved=$ms; fi
   if [ "$idle" -gt 0 ] && [ $((ms-moved)) -ge $((idle*1000)) ]; then why=idle; fi
   if [ "$lim" -gt 0 ] && [ $ms -ge $((lim*1000)) ]; then why=timeout; fi
   if [ "$cap" -gt 0 ] && [ $n -gt "$cap" ]; then why=output_limit; fi
   if [ $((n-seen)) -gt 16000000 ]; then
    seen=$n; set -- $(LC_ALL=C df -Pk "$D" 2>/dev/null)
    case ${11:-x} in *[!0-9]*) ;; *) if [ ${11} -lt $((floor/2)) ]; then why=disk_full; fi;; esac
   fi
   if [ -n "$why" ]; then
    [ -e "$D/rc" ] && exit 0
    [ -s "$D/why" ] || echo $why >"$D/why"
    [ "$(st $c)" = "$cs" ] || exit 0
    kill -TERM -$c 2>/dev/null || kill -TERM $c
    case $why in output_limit|disk_full) sleep 0.2 2>/dev/null || sleep 1;; *) sleep 3;; esac
    # the group outlives its leader while a member ignores TERM; its number is not given anew as long
    kill -KILL -$c 2>/dev/null || { [ "$(st $c)" = "$cs" ] && kill -KILL $c; }
    exit 0
   fi
   if [ $((n-last)) -gt 1000000 ] || [ $ms -lt 2000 ]; then d=0.1 k=100; else d=1 k=1000; fi; last=$n
  done ) </dev/null >/dev/null 2>&1 9>&- &
w=$!
wait $c; rc=$?
s=0; if [ $rc -gt 128 ] && [ -s "$D/sig" ]; then s=1; fi
drop
printf '%s %s\n' $rc $s 1<>"$D/rc.t"; mv "$D/rc.t" "$D/rc"
[ -s "$D/why" ] || kill $w
exit 0
@NONCE@_SUP
   SETSID=; if command -v setsid >/dev/null 2>&1; then SETSID=setsid; fi
   exec 9<>"$D/alive"
   $SETSID $SUPSH "$D/sup" "$D" $LIMIT $IDLE $CAP $NOT_AFTER $FLOOR_KB "$SETSID" $RUNSH </dev/null >/dev/null 2>&1 &
   exec 7<"$D/alive" 9>&-; have7=1
   printf 'S new\n'
  else
   printf 'S exists\n'
  fi;;
 void)
  # decides, atomically, that a run that was not claimed, or claimed and not begun, never begins
  mkdir "$D" 2>/dev/null
  decide void
  if [ "$dec" != run ]; then rm -f "$D/stdin"; drop; fi
  printf 'V %s\n' "$dec"; exit 0;;
 attach)
  [ -d "$D" ] || { printf 'U absent\n'; exit 0; };;
 kill)
  mkdir "$D" 2>/dev/null
  decide void
  if [ "$dec" != run ]; then rm -f "$D/stdin"; drop; printf 'K void\n'; exit 0; fi
  n=0; while [ ! -s "$D/pid" ] && [ ! -s "$D/rc" ] && [ $n -lt 50 ]; do n=$((n+1)); nap 0.02; done
  [ -s "$D/rc" ] && { printf 'K ended\n'; exit 0; }
  c= cs=; { read -r c cs s ss <"$D/pid"; } 2>/dev/null
  if ! alive "$c" "$cs"; then printf 'K gone\n'; exit 0; fi
  [ -s "$D/why" ] || echo cancelled >"$D/why"
  kill -TERM -$c 2>/dev/null || kill -TERM $c
  n=0; while [ $n -lt 30 ] && alive "$c" "$cs" && [ ! -s "$D/rc" ]; do n=$((n+1)); nap 0.1; done
  kill -KILL -$c 2>/dev/null || { alive "$c" "$cs" && kill -KILL $c; }
  n=0; while [ $n -lt 20 ] && alive "$c" "$cs" && [ ! -s "$D/rc" ]; do n=$((n+1)); nap 0.1; done
  if [ -s "$D/rc" ] || ! alive "$c" "$cs"; then printf 'K killed\n'; else printf 'K running\n'; fi
  exit 0;;
 ack)
  # the directory stays as a tombstone: a start message that arrives late must still find the run id taken
  if [ -d "$D" ]; then
   : >"$D/gone"; decide void; drop
   ( cd "$D" && rm -f cmd stdin stdin.t files sup out err pid rc rc.t sig why alive boot .s )
  fi
  printf 'A\n'; exit 0;;
esac
# ---- follow: frames from the asked offsets on, until the outcome or the proof that there is none ----
[ -e "$D/gone" ] && { printf 'U acknowledged\n'; exit 0; }
n=0; while [ ! -s "$D/decision" ]; do n=$((n+1)); [ $n -gt 100 ] && { printf 'U undecided\n'; exit 0; }; nap 0.02; done
read -r dec <"$D/decision"
if [ "$dec" != run ]; then why=-; [ -s "$D/why" ] && read -r why <"$D/why"; printf 'U void %s\n' "$why"; exit 0; fi
n=0; while [ ! -s "$D/pid" ] && [ ! -s "$D/rc" ] && [ $n -lt 100 ]; do n=$((n+1)); nap 0.01; done
cd "$D" || exit 3
# slice FILE OFFSET COUNT: exactly COUNT bytes; reads at most 64 KiB too much (busybox tail -c +N reads from 0)
slice() { dd if=$1 bs=65536 skip=$(($2/65536)) count=$((($2%65536+$3+65535)/65536)) 2>/dev/null | { [ $(($2%65536)) -eq 0 ] && head -c $3 || tail -c +$(($2%65536+1)) | head -c $3; }; }
gone=
if [ ! -p alive ]; then gone=poll; elif [ -z "$have7" ]; then exec 8<>alive; exec 7<alive 8>&-; fi
# left: ticks, and "done" the instant the supervisor is gone; right: the only writer to the channel
{ trap '' PIPE
  r=; if [ -z "$gone" ]; then { read -r x <&7; echo done; } & r=$!; fi
  exec 7</dev/null
  ( tick() { if echo t; then return; fi; [ -n "$r" ] && kill $r; exit 0; }
    for d in 0.02 0.03 0.05 0.1 0.2; do nap $d; tick; done
    i=0; while :; do if [ $i -lt 240 ]; then nap 0.25; else sleep 1; fi; i=$((i+1)); tick; done ) </dev/null 2>/dev/null &
  if [ -n "$r" ]; then wait $r; else wait; fi
} 2>/dev/null | {
exec 7<&-
hb=0; ev=t
while :; do
  [ "$ev" = done ] && gone=1
  while :; do
    fin=; [ -s rc ] && fin=1
    set -- $(LC_ALL=C TIME_STYLE=locale ls -ln err out 2>/dev/null) 0 0 0 0 0 0 0 0 0 0 0 0 0 0
    en=$(($5-EOFF)); on=$((${14}-OOFF))
    [ $on -le 0 ] && [ $en -le 0 ] && break
    hb=0
    if [ $on -gt 0 ]; then [ $on -gt $CHUNK ] && on=$CHUNK; printf 'O %d\n' $on; slice out $OOFF $on; OOFF=$((OOFF+on)); fi
    if [ $en -gt 0 ]; then [ $en -gt $CHUNK ] && en=$CHUNK; printf 'E %d\n' $en; slice err $EOFF $en; EOFF=$((EOFF+en)); fi
  done
  if [ -n "$fin" ]; then why=-; [ -s why ] && read -r why <why; read -r r s <rc; printf 'R %s %s %s\n' "$r" "$s" "$why"; exit 0; fi
  if [ -n "$gone" ] && [ ! -s rc ]; then
    c= cs= s= ss=; { read -r c cs s ss <pid; } 2>/dev/null
    if ! alive "$s" "$ss" && ! alive "$c" "$cs" && [ ! -s rc ]; then
      [ -e gone ] && { printf 'U acknowledged\n'; exit 0; }
      set -- $(LC_ALL=C TIME_STYLE=locale ls -ln err out 2>/dev/null) 0 0 0 0 0 0 0 0 0 0 0 0 0 0
      if [ $(($5-EOFF)) -le 0 ] && [ $((${14}-OOFF)) -le 0 ]; then drop; if same_boot; then printf 'U supervisor-killed\n'; else printf 'U rebooted\n'; fi; exit 0; fi
      ev=t; continue
    fi
  fi
  hb=$((hb+1)); [ $hb -ge 12 ] && { printf 'B\n' || exit 1; hb=0; }
  read -r ev || { [ -n "$gone" ] || gone=1; nap 1; ev=t; }
done
}
}
oikos "$1"
