"""Wrappers whose inner command needs more than an option table: shells, xargs, env, su, watch, tmux, parallel."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind
from oikos.policy import arguments, assignments, danger, disclosure, paths, unwrap
from oikos.policy.expand import plain_text
from oikos.policy.scene import EMPTY, Flow
from oikos.policy.words import HOLE, Tag, Tags, Word, WordKind

if TYPE_CHECKING:
    from oikos.policy.call import Call
    from oikos.policy.walk import Walker

_CODE = frozenset(
    "sh bash dash ash zsh ksh mksh fish busybox toybox su sudo doas env eval perl python python3 ruby node php lua awk gawk mawk sed sort find "
    "curl wget git ssh xargs parallel tar rsync scp vim vi ex ed".split()
)
_UNTAME: Tags = frozenset((Tag.FILE, Tag.NETWORK, Tag.DECODED, Tag.SECRET, Tag.BULK, Tag.UNKNOWN))


def shell(this: Call) -> Flow | None:
    """`sh [options] -c TEXT [NAME ARG…]`, `sh FILE`, `… | sh`."""
    walker, scene, line = this.walker, this.scene, this.line
    only_checks = this.has("-n") and not this.has("-c")
    if this.has("-i"):
        walker.unclear(
            "interactive.shell", this.span, f"{this.name} -i reads start-up files and asks for input.", scene
        )
    args = line.args + line.rest
    text_follows = this.has("-c")
    while (
        args
        and re.fullmatch(r"\+[A-Za-z]+|-c", args[0].text)
        and (args[0].text != "-c" or line.args[0].text[:1] == "+")
    ):
        text_follows = text_follows or args[0].text == "-c"
        args = args[1:]
    if text_follows:
        if not args:
            return EMPTY
        text, rest = args[0], tuple(args[1:])
        inside = scene.inside(f"{this.name} -c")
        if not text.literal:
            return unwrap.script(walker, [text], inside, rest or (Word(this.name),))
        return unwrap.script(walker, [text], inside, rest or (Word(this.name),))
    if args and not this.has("-s"):
        file = args[0]
        if any(word.tags & {Tag.NETWORK, Tag.DECODED} for word in args):
            walker.destroy(
                "exec.fetched",
                this.span,
                "Runs text that was fetched or decoded; nobody can review it.",
                scene,
                EffectKind.REMOTE_CODE,
            )
        elif only_checks:
            return EMPTY
        elif file.text == "-" or file.text == "/dev/stdin":
            return _stdin(this)
        else:
            walker.unclear(
                "exec.file",
                file.span,
                f"Runs the script {file.text.replace(HOLE, '…')}, whose contents are not shown here.",
                scene,
            )
            unwrap.written(walker, file, scene)
        return None
    if only_checks:
        return EMPTY
    return _stdin(this)


_DEAF = frozenset(
    "uptime df free du ls stat date hostname uname id who w last lsblk blkid findmnt ip ss ps zpool zfs systemctl journalctl dmesg pvesm pvecm "
    "pveversion lspci lsusb lscpu smartctl mdadm lvs vgs pvs nproc getent ethtool echo printf test [ true false : set cd sleep which readlink "
    "realpath basename dirname seq lsof timedatectl hostnamectl loginctl sensors dpkg-query dpkg apt-cache".split()
)
"""Programs that never read standard input, so that a script given there is read by its shell alone."""
_DEAF_SUBS = frozenset("status list ls config ps images stats info version top df logs get".split())
_DEAF_BY_SUB = frozenset("pct qm docker podman lxc incus kubectl virsh".split())
_FILE_READERS = frozenset("cat head tail wc".split())


def _keeps_stdin(walker: Walker, text: str) -> bool:
    """Whether no command of a script fed on standard input could eat a part of it, so that the rest means something else."""
    tree = walker.parser.parse(text, walker.dialect).tree
    return tree is not None and all(_leaves_stdin(one, False) for one in tree.get("Stmts", ()))


def _leaves_stdin(node: object, own: bool) -> bool:
    """`own`: standard input is a pipe or file of its own, not the script."""
    if isinstance(node, list):
        return all(_leaves_stdin(one, own) for one in node)
    if not isinstance(node, dict):
        return True
    if any(one.get("Op") in ("<", "<<", "<<-", "<<<", "<>", "<&") for one in node.get("Redirs", ())):
        own = True
    match node.get("Type"):
        case "BinaryCmd" if node.get("Op") in ("|", "|&"):
            return _leaves_stdin(node["X"], own) and _leaves_stdin(node["Y"], True)
        case "CallExpr" if node.get("Args") and not own and not _is_deaf([plain_text(one) for one in node["Args"]]):
            return False
        case _:
            return all(_leaves_stdin(value, own) for value in node.values())


def _is_deaf(words: list[str | None]) -> bool:
    while words and words[0] in ("sudo", "command", "nice"):
        words = words[1:]
    if not words or words[0] is None:
        return False
    head = words[0].rsplit("/", 1)[-1]
    if head in _DEAF_BY_SUB:
        return len(words) > 1 and words[1] in _DEAF_SUBS
    if head in _FILE_READERS:
        last = words[-1] if len(words) > 1 else None
        return last is not None and last.startswith("/")
    return head in _DEAF


def _stdin(this: Call) -> Flow | None:
    walker, scene = this.walker, this.scene
    if not scene.stdin.piped:
        walker.change(
            "interactive.shell",
            this.span,
            f"{this.name} without a command is interactive.",
            scene,
            EffectKind.INTERACTIVE,
        )
        walker.report.advice.append(f"give the command: {this.name} -c 'COMMAND'")
        return EMPTY
    text = scene.stdin.text
    if text is None or not scene.stdin.here or scene.stdin.tags or not _keeps_stdin(walker, text):
        unwrap.fed(walker, this.span, scene, this.name)
    if text is not None:
        given = (Word(this.name, span=this.span), *this.line.args, *this.line.rest) if this.has("-s") else None
        return walker.script(text, replace(scene.inside(this.name), stdin=EMPTY, positional=given), this.span, None)
    return EMPTY


def xargs(this: Call) -> Flow | None:
    """`xargs [options] PROGRAM ARG…`: words read from standard input are added or filled in."""
    walker, scene, line = this.walker, this.scene, this.line
    rest = line.rest
    given: Tags = (
        scene.stdin.tags if scene.stdin.piped and not this.has("-a", "--arg-file") else frozenset((Tag.UNKNOWN,))
    )
    if not rest:
        rest = [Word("echo", span=this.span)]
    inputs = _inputs(this)
    token = next(
        (value.text for value in this.values("-I", "--replace", "-i")), "{}" if this.has("--replace", "-i") else ""
    )
    head = rest[0]
    if inputs is not None:
        return _each_input(this, rest, token, inputs)
    if scene.stdin.text is not None:
        given |= {Tag.UNKNOWN}
        disclosure.secrets(walker, [Word(one, span=this.span) for one in scene.stdin.text.split()], scene)
    program = walker.knowledge.program(head.text.rsplit("/", 1)[-1]) if head.literal else None
    if token:
        words = [_fill(word, token, given) for word in rest]
    else:
        words = [*rest, Word(HOLE, WordKind.DYNAMIC, this.span, True, given)]
    inside = replace(scene.inside("xargs"), stdin=EMPTY, inserted=given)
    if head.literal and head.text.rsplit("/", 1)[-1] in _CODE and given & _UNTAME:
        walker.unclear(
            "xargs.code",
            head.span,
            f"Words that only the shell will know reach {head.text}, which can run them.",
            scene,
        )
    if program is None and head.literal and head.text not in ("echo", "printf", "test", "["):
        return walker.command(words, inside)
    return walker.command(words, inside)


_MOST_INPUTS = 64
"""Lines or words on standard input that are looked at one by one."""


def _inputs(this: Call) -> list[list[str]] | None:
    """The words that xargs adds to each of its commands; None when only the shell will know, or they are too many."""
    text = this.scene.stdin.text
    if text is None or HOLE in text or this.has("-a", "--arg-file", "-e", "-E", "--eof"):
        return None
    cut = "\0" if this.has("-0", "--null") else next((one.text for one in this.values("-d", "--delimiter")), "")
    lines = [line for line in text.split("\n") if line.strip()]
    if "\\" in text and re.search("['\"]", text) and not cut:  # not read as a shell reads it
        return None
    try:
        if cut:
            words = [[one] for one in text.removesuffix(cut).split("\n" if cut == "\\n" else cut)]
        elif this.has("-I", "--replace", "-i"):  # the whole line is one word
            words = [[line.strip()] for line in lines]
        elif this.has("-L", "--max-lines", "-l"):
            words = [shlex.split(line) for line in lines]
        else:
            words = [[one] for one in shlex.split(text)]
    except ValueError:
        return None
    return words if sum(map(len, words)) <= _MOST_INPUTS else None


def _each_input(this: Call, rest: list[Word], token: str, inputs: list[list[str]]) -> Flow:
    """Every command that xargs makes of known words; together they are judged at least as its one command is."""
    walker, flow = this.walker, EMPTY
    inside = replace(this.scene.inside("xargs"), stdin=EMPTY)
    made: list[list[Word]] = []
    if token:
        for line in inputs[:16]:
            filled = [
                replace(word, text=word.text.replace(token, line[0]), body=None) if token in word.text else word
                for word in rest
            ]
            made.append(filled)
        if len(inputs) > 16:
            made.append([_fill(word, token, frozenset((Tag.UNKNOWN,))) for word in rest])
    else:
        said = [Word(one, span=this.span) for line in inputs for one in line]
        count = next((one.text for one in this.values("-n", "--max-args")), "")
        if this.has("-L", "--max-lines", "-l"):
            made.extend([*rest, *(Word(one, span=this.span) for one in line)] for line in inputs)
        elif count.isdigit() and int(count):
            made.extend([*rest, *said[at : at + int(count)]] for at in range(0, len(said), int(count)))
        made.append([*rest, *said])
    for words in made or [rest]:
        flow = walker.command(words, inside)
    return flow


def _fill(word: Word, token: str, tags: Tags) -> Word:
    if not token or token not in word.text:
        return word
    return Word(word.text.replace(token, HOLE), WordKind.DYNAMIC, word.span, False, word.tags | tags)


def parallel(this: Call) -> Flow | None:
    """GNU parallel: the words are joined and run by a shell, once per input."""
    walker, scene, line = this.walker, this.scene, this.line
    words = line.rest
    inputs: list[Word] = []
    for index, word in enumerate(words):
        if word.text in (":::", ":::+", "::::"):
            words, inputs = words[:index], words[index + 1 :]
            break
    if not words:
        walker.unclear("exec.stdin", this.span, "parallel runs each input line as a command.", scene)
        for word in inputs:
            found = danger.in_text(word.text)
            if found:
                walker.destroy("danger.argument", word.span, f"{danger.NOTE}: {found}.", scene)
        return EMPTY
    plain = not any(re.search(r"\{[^}]", word.text) for word in words)
    if plain and 0 < len(inputs) <= 16 and all(one.literal and not one.text.startswith("::") for one in inputs):
        return _each(this, words, inputs)
    given: Tags = frozenset() if inputs and all(word.literal for word in inputs) else scene.stdin.tags | {Tag.UNKNOWN}
    filled = [_fill(word, "{}", given) for word in words]
    return unwrap.script(walker, filled, scene.inside("parallel"))


def _each(this: Call, words: list[Word], inputs: list[Word]) -> Flow:
    """The text once for every literal input, quoted as parallel quotes it."""
    flow = EMPTY
    if not any("{}" in word.text for word in words):
        words = [*words, Word("{}", span=this.span)]
    for one in inputs:
        filled = [replace(word, text=word.text.replace("{}", shlex.quote(one.text)), body=None) for word in words]
        flow = unwrap.script(this.walker, filled, this.scene.inside("parallel"))
    return flow


def env(this: Call) -> Flow | None:
    """`env [options] [NAME=VALUE…] [COMMAND…]`."""
    walker, scene = this.walker, this.scene
    rest = this.line.rest
    for word in this.values("-S", "--split-string"):
        walker.unclear("env.split", word.span, "env -S splits a text into a command.", scene)
        unwrap.script(walker, [word], scene.inside("env -S"))
    while rest and re.match(r"[A-Za-z_]\w*=", rest[0].text):
        name, _, value = rest[0].text.partition("=")
        assignments.judge_name(walker, name, value if rest[0].literal else None, "prefix", rest[0].span, scene)
        walker.wake(rest[0], scene)
        rest = rest[1:]
    if not rest:
        if not this.has("-S", "--split-string"):
            walker.change(
                "env.dump", this.span, "Prints the environment, passwords among it.", scene, EffectKind.SENSITIVE
            )
        return Flow(frozenset((Tag.SECRET,)), None, True)
    return walker.command(rest, scene.inside("env"))


def sudo(this: Call) -> Flow | None:
    """sudo, doas and run0 without a command, and with assignments before it."""
    walker, scene = this.walker, this.scene
    rest = this.line.rest
    while rest and re.match(r"[A-Za-z_]\w*=", rest[0].text):
        name, _, value = rest[0].text.partition("=")
        assignments.judge_name(walker, name, value if rest[0].literal else None, "prefix", rest[0].span, scene)
        rest = rest[1:]
    if this.has("-l", "--list", "-v", "-V", "--validate", "-k", "-K") and not (rest and this.has("-k", "-v")):
        return EMPTY
    if this.has("-e", "--edit"):
        for word in rest:
            arguments.value(this, "out", word, "sudo.edit", "edit")
        return EMPTY
    if not rest:
        walker.change(
            "interactive.shell",
            this.span,
            f"{this.name} without a command opens a shell.",
            scene,
            EffectKind.INTERACTIVE,
        )
        walker.report.advice.append(f"give the command: {this.name} COMMAND")
        return EMPTY
    return walker.command(rest, scene.inside(this.name))


def su(this: Call) -> Flow | None:
    """`su [options] [-] [USER] [-c TEXT]`."""
    walker, scene = this.walker, this.scene
    text = this.value("-c", "--command", "--session-command")
    shell = this.value("-s", "--shell")
    if shell is not None and not (shell.literal and (paths.in_system_bin(shell.text) or "/" not in shell.text)):
        walker.unclear("su.shell", shell.span, "The shell is a program that is not known.", scene)
    if this.name == "runuser" and not this.has("-u", "--user"):  # then it reads its words as su does
        words = [word for word in this.line.rest if word.text != "-"][1:]
        if text is None and len(words) == 2 and words[0].text in ("-c", "--command"):
            text = words[1]
    elif text is None and this.name != "su" and this.line.rest:
        return walker.command(this.line.rest, scene.inside(this.name))
    if text is not None:
        return unwrap.script(walker, [text], scene.inside(this.name))
    walker.change(
        "interactive.shell", this.span, f"{this.name} without -c opens a shell.", scene, EffectKind.INTERACTIVE
    )
    walker.report.advice.append(f"give the command: {this.name} -c 'COMMAND' USER")
    return EMPTY


def watch(this: Call) -> Flow | None:
    """`watch [options] COMMAND…`: joined and run by sh, unless -x."""
    walker, scene = this.walker, this.scene
    rest = this.line.rest
    if not rest:
        return EMPTY
    if this.has("-x", "--exec"):
        return walker.command(rest, scene.inside("watch"))
    return unwrap.script(walker, rest, scene.inside("watch"))


def flock(this: Call) -> Flow | None:
    """`flock [options] FILE COMMAND…` or `flock FILE -c TEXT`."""
    walker, scene = this.walker, this.scene
    walker.change("flock", this.span, "Takes a lock, and makes its file when there is none.", scene)
    text = this.value("-c", "--command")
    rest = this.line.rest
    if text is None and len(rest) > 1 and rest[0].text in ("-c", "--command"):
        text = rest[1]
    if text is not None:
        return unwrap.script(walker, [text], scene.inside("flock"))
    return walker.command(rest, scene.inside("flock")) if rest else EMPTY


def ssh(this: Call) -> Flow | None:
    """Options of ssh that run programs or open tunnels."""
    walker, scene = this.walker, this.scene
    for word in this.values("-o"):
        name, _, value = re.sub(r"\s*=\s*|\s+", "=", word.text, count=1).partition("=")
        if not word.literal or not ssh_option_is_plain(name, value):
            walker.unclear(
                f"ssh.option.{name.lower()[:30]}",
                word.span,
                f"The ssh setting {name} may run a program or weaken trust.",
                scene,
            )
            found = danger.in_text(value)
            if found:
                walker.destroy("danger.argument", word.span, f"{danger.NOTE}: {found}.", scene)
    host = this.line.args[0].text if this.line.args else ""
    for word in [*this.line.args[:1], *this.values("-J", "-l")]:
        if word.literal and not re.fullmatch(r"(?:ssh://)?[\w.@:,\[\]%/+][\w.@:,\[\]%/+-]*", word.text):
            walker.unclear("ssh.host", word.span, "This is no plain name of a machine or user.", scene)
    from oikos.policy import hosts

    if scene.stdin.tags & {Tag.SECRET} or (scene.stdin.tags & {Tag.BULK} and hosts.is_third_party(hosts.host_of(host))):
        walker.destroy(
            "egress.secret",
            this.span,
            f"Data flows to {host}; that cannot be taken back.",
            scene,
            EffectKind.EGRESS,
            thing=host,
        )
    if this.has("-R") and hosts.is_third_party(hosts.host_of(host)):
        walker.destroy(
            "ssh.tunnel",
            this.span,
            f"Opens a way into this host from {host}.",
            scene,
            EffectKind.CONNECTIVITY,
            EffectKind.EGRESS,
            thing=host,
        )
    return None


_PLAIN_SSH = {
    "batchmode": None, "connecttimeout": None, "connectionattempts": None, "loglevel": None, "serveraliveinterval": None,
    "serveralivecountmax": None, "port": None, "user": None, "identityfile": None, "identitiesonly": None, "compression": None,
    "addressfamily": None, "requesttty": ("no", "false"), "stricthostkeychecking": ("yes", "accept-new", "ask"), "numberofpasswordprompts": None,
    "preferredauthentications": None, "passwordauthentication": None, "pubkeyauthentication": None, "kbdinteractiveauthentication": None,
    "hostkeyalgorithms": None, "kexalgorithms": None, "ciphers": None, "macs": None, "proxyjump": None, "controlmaster": ("no", "auto"),
    "controlpath": ("none",), "controlpersist": None, "forwardagent": ("no",), "forwardx11": ("no",), "clearallforwardings": ("yes",),
    "exitonforwardfailure": ("yes",), "tcpkeepalive": None, "hostname": None, "checkhostip": ("yes",), "gssapiauthentication": None,
    "updatehostkeys": ("no",), "visualhostkey": None, "bindaddress": None, "ipqos": None, "hostkeyalias": None, "userknownhostsfile": ("/dev/null",),
}  # fmt: skip


def ssh_option_is_plain(name: str, value: str) -> bool:
    """Whether an ssh setting neither runs a program nor weakens trust."""
    allowed = _PLAIN_SSH.get(name.lower(), ())
    return allowed is None or value.lower() in (allowed or ())


def tmux(this: Call) -> Flow | None:
    """tmux and screen: whatever they start or type runs unseen."""
    walker, scene = this.walker, this.scene
    words = this.words[1:]
    for index, word in enumerate(words):
        if "#(" in word.text:
            walker.unclear("tmux.format", word.span, "A format of tmux runs a command.", scene)
        if word.text in ("kill-server", "kill-session"):
            walker.destroy("tmux.kill", word.span, "Ends sessions and every program in them.", scene, EffectKind.OUTAGE)
        found = danger.in_text(re.sub(r"\\n|\\015", "", word.text)) or danger.phrase_at(
            [one.text for one in words], index
        )
        if found:
            walker.destroy("danger.argument", word.span, f"{danger.NOTE}: {found}.", scene)
            break
    return EMPTY


def expect(this: Call) -> Flow | None:
    """expect scripts drive other programs."""
    for word in this.words[1:]:
        found = danger.in_text(re.sub(r"\bspawn\b|\bsystem\b|\bexec\b", "", word.text))
        if found:
            this.walker.destroy("danger.argument", word.span, f"{danger.NOTE}: {found}.", this.scene)
    return EMPTY


def busybox(this: Call) -> Flow | None:
    """`busybox APPLET ARG…` is the applet."""
    rest = this.line.rest
    if this.sub:  # `k3s kubectl …`: the subcommand is the program
        rest = [Word(this.sub[-1], span=this.words[0].span), *rest]
    if not rest:
        return EMPTY
    return this.walker.command(rest, this.scene.inside(this.name))
