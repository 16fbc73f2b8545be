"""What an adversary found: commands in numbers and on standard input, other runs' secret files, unseen letters."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from oikos.bootstrap import make_classify
from oikos.domain.secret_files import StandIn, given_to
from oikos.domain.teaching import TaughtRule, apply
from oikos.domain.verdict import EffectKind, Risk, Verdict
from oikos.domain.view import text_for_people
from oikos.policy import paths
from oikos.policy.classify import Classifier
from oikos.policy.knowledge import Knowledge
from oikos.policy.text import deceptive

RUN = "0123456789abcdef0123456789abcdef"
HARMLESS = Path(__file__).parent / "harmless_bare.txt"

# ---- numbers --------------------------------------------------------------------------------------------------------

# Each reads the file F, which holds a subscript that runs a command; bash runs it in every one of these.
RECKONED = [
    "read a <F; echo $((a))",
    "read -r a <F; echo $((a + 1))",
    "read a <F; echo $((10 + a))",
    "a=$(cat F); ((a)); echo hi",
    "a=$(cat F); if ((a > 3)); then echo hi; fi",
    "a=$(cat F); [[ $a -gt 1 ]]",
    "a=$(cat F); [[ 1 -ne a ]]",
    "a=$(cat F); y=abc; echo ${y:a}",
    "a=$(cat F); y=abc; echo ${y:0:$a}",
    "a=$(cat F); y=(1 2 3); echo ${y[a]}",
    "a=$(cat F); y=(1 2 3); echo ${#y[$a]}",
    "a=$(cat F); y[a]=1",
    "a=$(cat F); y=([a]=1)",
    "a=$(cat F); for ((i = a; i < 1; i++)); do :; done",
    "a=$(cat F); declare -i b; b=$a",
    "a=$(cat F); declare -i b=a",
    "a=$(cat F); OPTIND=$a",
    "a=$(cat F); RANDOM=$a",
    "declare -i c; a=$(cat F); c+=a",
    'a=$(cat F); [[ -v "$a" ]]',
    'a=$(cat F); test -v "$a"',
    'a=$(cat F); printf -v "$a" x',
    'a=$(cat F); read "$a" <<<1',
    'x=(1); a=$(cat F); unset "$a"',
    'a=$(cat F); true & wait -p "$a" $!',
    "a=$(cat F); cat {y[a]}<F",
    'a="-v $(cat F)"; [ $a ]',
    'a="-v $(cat F)"; [ $a -gt 5 ]',
    'a=-v; b=$(cat F); [ "$a" "$b" ]',
    "set -- 1; a=$(cat F); echo ${@:a:1}",
    "a=$(cat F); f() { local -i q=$a; }; f",
    'a=-v$(cat F); printf "$a" y',
    "echo $(( $(cat F) ))",
    "echo $[ $(cat F) ]",
    "set -- $(cat F); echo $(($1))",
    "f() { echo $(($1)); }; f $(cat F)",
    "for i in $(cat F); do echo $((i)); done",
    "while read -r n; do s=$((s + n)); done <F",
    "mapfile -t l <F; echo $((l[0]))",
    "read -ra l <F; echo $((l))",
    "read -aarr <F; echo $((arr))",
    "read a <F; b=a; echo $((b))",
    "fo=1; read foo <F; a=fo; a+=o; echo $((a))",
    "fo=1; fo0=1; n=1; read fo1 <F; echo $((fo$n))",
    "command read a <F; echo $((a))",
    "a=${a:-$(cat F)}; echo $((a))",
]
UNNOTICED = [
    # Not run here by every bash, or only with other words; none of them is a look.
    "read a <F; [ $a -gt 5 ]",
    'read a b <F; [ "$a" "$b" ]',
    "read a <F; mapfile $a l",
    "a=$(cat F); SECONDS=$a",
    'a=-v; b=$(cat F); printf "$a" "$b" x',
    "a=-C; mapfile $a eval l <F",
    "a=-C; compgen $a reboot",
    "compgen $a",
    "declare -A m; read -r k <F; echo $((m[$k]))",
    "declare -A m; read -r k <F; [[ -v m[$k] ]]",
    "false && declare -A m; read -r k <F; echo ${m[$k]}",
    "declare -A m >/no/such/file; read -r k <F; echo ${m[$k]}",
    "declare -A m; unset m; read -r k <F; echo ${m[$k]}",
    "declare -A m; read -r k <F; export k; bash -c 'echo ${m[$k]}'",
    "df | while read -r a b c; do echo $((b / 1024)); done",
    "echo $((inherited))",
    "echo $((10#$inherited))",
    "read a <F; let b=a",
    "cat {x[$a]}<F",
    "a=$(hostname); echo $((a + 1))",
    "i=$(ls | head -1); echo $((i))",
    "c=$(grep -c x F G); echo $((c))",
    "c=$(grep -c x *); echo $((c))",
    "c=$(grep -c x* F); echo $((c))",
    "c=$(grep -c x* <F); echo $((c))",
    "c=$(grep -c /x* <F); echo $((c))",
    "c=$(stat -c %s *); echo $((c))",
    "c=$(grep -rc x F); echo $((c))",
    'c=$(grep -c "$a" "$b"); echo $((c))',
    "c=$(cat /sys/class/net/eth0/ifalias); echo $((c))",
    "c=$(awk '/x/{print $1}' /proc/meminfo); echo $((c))",
    "c=$(wc -l F); echo $((c))",
    "seq() { cat F; }; echo $(($(seq 3)))",
]
LOOKS = [
    "for i in 1 2 3; do echo $((i + 1)); done",
    "for i in {1..5}; do echo $((i * 2)); done",
    "for ((i = 0; i < 3; i++)); do uptime; done",
    "i=0; while [ $i -lt 3 ]; do uptime; i=$((i + 1)); sleep 2; done",
    "for i in $(seq 1 3); do echo $((i)); done",
    "n=0; for f in a b; do ((n++)); done; echo $n",
    "echo $(($# + $?))",
    "a=(1 2 3); echo ${a[1]} ${#a[@]} ${a[@]:1:2}",
    'a=(x y); for i in "${!a[@]}"; do echo "$i ${a[i]}"; done',
    "x=abc; echo ${x:0:2} $((${#x} - 1))",
    "echo $(($(date +%s) - $(stat -c %Y /etc/hosts)))",
    "echo $(($(nproc) * 2))",
    "c=$(grep -c '^processor.*' /proc/cpuinfo); echo $((c * 2))",
    "mem=$(awk '/MemTotal/{print $2}' /proc/meminfo); echo $((mem / 1024))",
    "t=$(cat /sys/class/thermal/thermal_zone0/temp); echo $((t / 1000))",
    "up=$(cut -d. -f1 /proc/uptime); echo $((up / 86400))",
    "if (($(wc -l </etc/hosts) > 3)); then echo many; fi",
    "[[ $(pgrep -x nginx | wc -l) -gt 0 ]] && echo runs",
    "read -r a </proc/uptime; echo $((${a//[^0-9]/} / 100))",
    "total=$(free -m | awk '/Mem/{print $2}'); echo $((total / 2))",
    "declare -A seen; for x in a b a; do seen[$x]=1; done; echo ${#seen[@]}",
    'declare -A m=([a]=1 [b]=2); for k in "${!m[@]}"; do echo "$k ${m[$k]}"; done',
    "read a; printf '%d' \"$a\"",
    'read -r a; [ "$a" -eq 1 ] && echo one',
]


@pytest.mark.parametrize("text", RECKONED)
def test_bash_runs_what_a_number_holds_and_that_is_no_look(classifier: Classifier, tmp_path: Path, text: str) -> None:
    (tmp_path / "F").write_text("x[$(touch${IFS}ran)]\n")
    subprocess.run(["bash", "-c", text], cwd=tmp_path, capture_output=True, check=False, timeout=20)
    assert (tmp_path / "ran").exists(), "bash does not do so: the row proves nothing"
    verdict = classifier.classify(text)
    assert verdict.risk is Risk.CONFIG_MUTATION
    assert verdict.has(EffectKind.UNCLASSIFIED)


@pytest.mark.parametrize("text", UNNOTICED)
def test_a_value_that_is_not_known_is_not_reckoned_with(classifier: Classifier, text: str) -> None:
    assert classifier.classify(text).has(EffectKind.UNCLASSIFIED)


@pytest.mark.parametrize("text", LOOKS)
def test_reckoning_with_numbers_is_a_look(classifier: Classifier, text: str) -> None:
    assert classifier.classify(text).risk is Risk.READ_ONLY


@pytest.mark.parametrize(
    ("files", "text"),
    [
        (("a -o -v x[$(touch${IFS}ran)]",), "for f in *; do [ -f $f ]; done"),
        (("a -o -v x[$(touch${IFS}ran)]",), "l=(*); [ -f ${l[0]} ]"),
        (("a -o -v x[$(touch${IFS}ran)]",), 'for f in "$(ls)"; do [ -f $f ]; done'),
        (("-v", "x[$(touch${IFS}ran)]"), "[ * ]"),
        (("x -fprint ran",), "for f in *; do find $f; done"),
        (("x -o ran", "x"), "for f in *; do sort $f; done"),
    ],
)
def test_a_file_name_with_blanks_becomes_several_words(
    classifier: Classifier, tmp_path: Path, files: tuple[str, ...], text: str
) -> None:
    for file in files:
        (tmp_path / file).write_text("1\n")
    subprocess.run(["bash", "-c", text], cwd=tmp_path, capture_output=True, check=False, timeout=20)
    assert (tmp_path / "ran").exists(), "bash does not do so: the row proves nothing"
    assert classifier.classify(text).risk is Risk.CONFIG_MUTATION


def test_a_file_name_in_quotes_stays_one_word(classifier: Classifier) -> None:
    for text in (
        'for f in /etc/cron.d/*; do [ -f "$f" ] && cat "$f"; done',
        "for d in /dev/sd[a-d]; do smartctl -H $d; done",
        "for f in /etc/cron.d/*; do cat $f; done",
        "for i in $(ls /srv); do [ -f $i ] && echo $i; done",
    ):
        assert classifier.classify(text).risk is Risk.READ_ONLY, text


def test_a_chain_of_variables_is_followed_once(classifier: Classifier) -> None:
    chain = "; ".join(f"a{n + 1}=$a{n}$a{n}" for n in range(60))
    assert classifier.classify(f"a0=1; {chain}; echo $((a60))").risk is Risk.READ_ONLY
    assert classifier.classify("a=$b; b=$a; echo $((a))").has(EffectKind.UNCLASSIFIED)


# ---- standard input ------------------------------------------------------------------------------------------------


def test_only_reviewed_programs_may_be_fed_anything(classifier: Classifier, knowledge: Knowledge) -> None:
    lines = HARMLESS.read_text("utf-8").splitlines()
    reviewed = {name for line in lines if not line.startswith("#") for name in line.split()}
    looks = {name for name in knowledge if classifier.classify(f"cat /srv/x | {name}").risk is Risk.READ_ONLY}
    assert looks - reviewed == set(), "does it take what it reads for commands or keys? is it a server?"
    assert reviewed - looks == set()


CONSOLES = (
    "lvm virsh ceph gluster chronyc bconsole crm osqueryi bluetoothctl wpa_cli iwctl dc ntpq pvesh racadm openstack"
)


@pytest.mark.parametrize("name", CONSOLES.split())
def test_a_console_does_what_it_is_fed(classifier: Classifier, name: str) -> None:
    for text in (f"cat /srv/x | {name}", f"{name} </srv/x", f'{name} <<< "$x"', f"{name} <<E\n$(cat /srv/x)\nE"):
        assert classifier.classify(text).risk > Risk.READ_ONLY, text


@pytest.mark.parametrize("name", "dnsmasq named unbound rsyslogd syslog-ng coredns nebula openvpn wall".split())
def test_a_server_that_starts_when_it_is_called_is_no_look(classifier: Classifier, name: str) -> None:
    assert classifier.classify(name).risk > Risk.READ_ONLY


@pytest.mark.parametrize(
    ("text", "risk"),
    [
        ("echo status | ceph", Risk.READ_ONLY),
        ("echo 'osd purge 1' | ceph", Risk.DESTRUCTIVE),
        ("echo 'volume delete v' | gluster", Risk.DESTRUCTIVE),
        ("echo 'server delete x' | openstack", Risk.DESTRUCTIVE),
        ("echo 'rm -rf /srv/a' | fakeroot", Risk.DESTRUCTIVE),
        ("cat /srv/x | fakeroot", Risk.CONFIG_MUTATION),
        ("cat /srv/x | fakeroot ls", Risk.READ_ONLY),
        ("cat /srv/x | xfs_spaceman /srv", Risk.CONFIG_MUTATION),
        ("cat /srv/x | aptitude", Risk.CONFIG_MUTATION),
    ],
)
def test_what_is_fed_is_judged_as_commands(classifier: Classifier, text: str, risk: Risk) -> None:
    assert classifier.classify(text).risk is risk


GIVEN = [
    ("ex -s", "!rm -rf /srv/a\nq!\n", Risk.DESTRUCTIVE),
    ("vim -es", "!rm -rf /srv/a\n", Risk.DESTRUCTIVE),
    ("crontab -", "0 3 * * * rm -rf /srv/a\n", Risk.DESTRUCTIVE),
    ("crontab -", "0 3 * * * true\n", Risk.CONFIG_MUTATION),
    ("patch -p1", "--- a\n+++ b\n", Risk.CONFIG_MUTATION),
    ("bpftool batch file -", "map delete id 3\n", Risk.CONFIG_MUTATION),
    ("bash", "rm -rf /srv/a\n", Risk.DESTRUCTIVE),
    ("bash", "uptime\n", Risk.READ_ONLY),
    ("sh -s x", "reboot\n", Risk.DESTRUCTIVE),
    ("timeout 5 sh", "reboot\n", Risk.DESTRUCTIVE),
    ("psql", "DROP TABLE a;", Risk.DESTRUCTIVE),
    ("psql", "select 1;", Risk.READ_ONLY),
    ("mysql", "drop database a;", Risk.DESTRUCTIVE),
    ("lvm", "lvremove -f vg/a\n", Risk.DESTRUCTIVE),
    ("lvm", "lvs\n", Risk.READ_ONLY),
    ("read -r a; echo $((a))", "x[$(reboot)]\n", Risk.DESTRUCTIVE),
    ("read -r a; echo $((a))", "1\n", Risk.CONFIG_MUTATION),
    ("xargs rev", "/etc/shadow", Risk.CONFIG_MUTATION),
    ("xargs rev", "/etc/hosts", Risk.READ_ONLY),
    ("xargs find", "/srv -delete", Risk.DESTRUCTIVE),
    ("xargs -I% sh -c %", "reboot\n", Risk.DESTRUCTIVE),
    ("xargs -n2 pct", "status 101 destroy 102", Risk.DESTRUCTIVE),
    ("xargs -L1 pct", "status 101\ndestroy 102\n", Risk.DESTRUCTIVE),
    ("tar -cf - -T -", "/etc/shadow\n", Risk.CONFIG_MUTATION),
    ("wc --files0-from=-", "/etc/hosts\0/etc/shadow\0", Risk.CONFIG_MUTATION),
    ("cat $(cat)", "/etc/hosts\n/etc/shadow\n", Risk.CONFIG_MUTATION),
    ("while read -r f; do cat $f; done", "/etc/shadow", Risk.CONFIG_MUTATION),
    ("jq .", '{"a": "rm -rf /"}', Risk.READ_ONLY),
    ("sort", "rm -rf /\n", Risk.READ_ONLY),
]


@pytest.mark.parametrize(("text", "stdin", "risk"), GIVEN)
def test_a_command_is_judged_with_what_it_is_given(classifier: Classifier, text: str, stdin: str, risk: Risk) -> None:
    assert classifier.classify(text, stdin).risk is risk


@pytest.mark.parametrize(("text", "stdin"), [row[:2] for row in GIVEN if row[1].endswith("\n") and "\0" not in row[1]])
def test_what_is_given_counts_as_a_here_document(classifier: Classifier, text: str, stdin: str) -> None:
    written = classifier.classify("{ " + text + "\n} <<'THE END'\n" + stdin + "THE END")
    given = classifier.classify(text, stdin)
    assert (given.risk, given.effects) == (written.risk, written.effects)


def test_the_same_text_with_other_input_is_judged_anew(classifier: Classifier) -> None:
    risks = [classifier.classify("bash", stdin).risk for stdin in ("uptime", "reboot", "uptime")]
    assert risks == [Risk.READ_ONLY, Risk.DESTRUCTIVE, Risk.READ_ONLY]
    assert classifier.quick("bash", "reboot") is not None
    assert classifier.quick("bash", "halt") is None
    assert classifier.classify("bash").has(EffectKind.INTERACTIVE)
    assert not classifier.classify("bash", "").has(EffectKind.INTERACTIVE)


def test_a_secret_that_is_given_is_one_word(classifier: Classifier) -> None:
    assert classifier.classify("sudo -S ls", "{{secret:pw}}\n").risk is Risk.READ_ONLY
    assert classifier.classify("bash", "echo {{secret:pw}}\n").risk is Risk.READ_ONLY
    assert classifier.classify("bash", "{{secret:pw}}\n").has(EffectKind.UNCLASSIFIED)


def test_more_than_can_be_read_is_not_known(classifier: Classifier) -> None:
    assert classifier.classify("sort", "a\n" * 40_000).risk is Risk.READ_ONLY
    assert classifier.classify("bash", "uptime\n" * 10_000).risk is Risk.DESTRUCTIVE


def test_what_a_taught_command_reads_was_not_taught(classifier: Classifier) -> None:
    rule = TaughtRule(id="1" * 32, argv=("mytool",), targets=("t",), risk=Risk.READ_ONLY, by="a", at_s=0.0)
    assert apply(classifier.classify("mytool"), [rule], "t").risk is Risk.READ_ONLY
    for verdict in (classifier.classify("mytool", "delete all"), classifier.classify("cat /srv/x | mytool")):
        assert apply(verdict, [rule], "t").risk is Risk.CONFIG_MUTATION


# ---- files of other runs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f"cat /tmp/oikos-{RUN}/api",
        f"rev </tmp/oikos-{RUN}/api",
        f"cd /tmp; od -c oikos-{RUN}/api",
        "rev /tmp/oikos-*/api",
        "cat /tmp/*/*",
        "strings /t*/o*/a?i",
        "cat /tmp/oikos-[0-9a-f]*/api",
        "cd /tmp && cat */api",
        "cd /tmp/oikos-*; cat api",
        'while read -r f; do cat "/tmp/oikos-$f/api"; done',
        "grep -r x /tmp",
        "grep -R x /",
        "rg x /tmp",
        "cd /tmp; grep -r x .",
        "find /tmp -type f -exec cat {} +",
        "find / -name api -exec rev {} ';'",
        "find /tmp -type f -o -type d | xargs cat",
        "tar c /tmp",
        "tar -C / -cf - tmp",
        "tar czf /srv/a.tgz /tmp",
        "cp -r /tmp /srv/a",
        "diff -r /tmp /srv",
        f"cat /srv/../tmp/oikos-{RUN}/api",
    ],
)
def test_the_secret_files_of_another_run_are_sensitive(classifier: Classifier, text: str) -> None:
    assert classifier.classify(text).has(EffectKind.SENSITIVE)


@pytest.mark.parametrize(
    "text",
    [
        "ls -lR /tmp",
        "du -sh /tmp",
        "cat /tmp/a.log",
        "cat /tmp/*.log",
        "head /tmp/*/a.log",
        "cat /tmp/systemd-private-*/a",
        "cat /proc/*/status",
        "find /tmp -type f -mtime +7",
        "find / -xdev -type f -size +100M | xargs du -h",
        "find / -name '*.conf' -exec grep -l x {} +",
        "find /tmp -maxdepth 1 -type f -exec head {} +",
        "grep -r --include='*.log' x /tmp",
        "grep -r x /var/log",
        "tar tf /srv/a.tar",
    ],
)
def test_what_cannot_reach_them_stays_a_look(classifier: Classifier, text: str) -> None:
    assert classifier.classify(text).risk is Risk.READ_ONLY


def test_a_pattern_meets_only_what_such_a_file_can_be_called() -> None:
    assert paths.lies_in_a_run(f"/tmp/oikos-{RUN}/a-b_C")
    assert not paths.lies_in_a_run(f"/tmp/oikos-{RUN}/a.b")
    assert not paths.lies_in_a_run(f"/tmp/oikos-{RUN}/a/b")
    assert not paths.lies_in_a_run("/tmp/oikos-eval-1/a")
    assert paths.reaches_runs("/")
    assert not paths.reaches_runs("/", levels=2)
    assert not paths.reaches_runs("/var")


class NothingTaught:
    """No rule is taught."""

    async def judge(self, verdict: Verdict, target_id: str, rules: tuple[TaughtRule, ...] = ()) -> Verdict:
        return verdict


@pytest.mark.anyio
async def test_the_secret_file_of_the_run_itself_is_named_once(classifier: Classifier) -> None:
    classify = make_classify(lambda: classifier, NothingTaught())  # type: ignore[arg-type]  # has the one method used
    command = "cat {{secret_file:api}}"
    verdict = given_to(await classify(command, "t", None), command, None)
    assert verdict.risk is Risk.READ_ONLY
    assert [(effect.kind, effect.object) for effect in verdict.effects] == [(EffectKind.SENSITIVE, "secret api")]
    aside = await classify("cat {{secret_file:api}}/../../oikos-*/api", "t")
    assert aside.has(EffectKind.SENSITIVE)
    given = await classify("bash", "t", "reboot")
    assert given.risk is Risk.DESTRUCTIVE


def test_a_guess_at_the_stand_in_is_no_secret_file_either(classifier: Classifier) -> None:
    stand_in = StandIn(command="cat {{secret_file:api}}", run_id=f"own{RUN}")
    assert classifier.classify(stand_in.text).risk is Risk.READ_ONLY


# ---- unseen letters ------------------------------------------------------------------------------------------------


def test_no_command_holds_what_people_are_shown_in_another_way() -> None:
    shown = [chr(code) for code in range(0x110000) if text_for_people(chr(code)) != chr(code)]
    assert len(shown) > 4000
    assert "\N{HANGUL FILLER}" in shown
    for char in shown:
        assert deceptive(f"a{char}b", [(0, 3)]) is not None, hex(ord(char))


def test_marks_that_are_seen_may_stand_in_quotes() -> None:
    for char in "é\u0301ñ漢🙂—…":
        assert deceptive(f"'{char}'", [(0, 3)]) is None
