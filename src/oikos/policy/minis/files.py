"""File tools whose class depends on what they are pointed at: dd, cp, mv, chmod, chown, rm, date, ps, tee."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind, Risk
from oikos.policy import environment, paths
from oikos.policy.scene import Flow
from oikos.policy.words import HOLE, NOTHING, Tag

if TYPE_CHECKING:
    from oikos.policy.call import Call

_INTERPRETER = re.compile(
    r"(?:^|/)(?:python[\d.]*|perl[\d.]*|bash|sh|dash|zsh|ruby|node|php[\d.]*|lua[\d.]*|gdb|vim?|find|awk|tar|env)$"
)


def dd(this: Call) -> Flow | None:
    """`dd if=… of=…`."""
    walker, scene = this.walker, this.scene
    tags = set(scene.stdin.tags)
    wrote = False
    source = ""
    for word in this.words[1:]:
        name, equals, value = word.text.partition("=")
        if not equals or name not in (
            "if",
            "of",
            "bs",
            "ibs",
            "obs",
            "count",
            "skip",
            "seek",
            "conv",
            "status",
            "iflag",
            "oflag",
            "cbs",
            "iseek",
            "oseek",
        ):
            walker.unclear(
                "dd.operand", word.span, f"The dd operand {word.text.replace(HOLE, '…')} is not known.", scene
            )
        elif name == "if":
            source = value
            if paths.is_block_device(value):
                tags |= {Tag.BULK, Tag.SECRET}
                walker.change(
                    "read.secret", word.span, f"Reads the raw disk {value}.", scene, EffectKind.SENSITIVE, thing=value
                )
            elif not value.startswith(("/dev/zero", "/dev/urandom")):
                tags |= {Tag.FILE}
        elif name == "of":
            if word.literal and paths.is_sink(value):
                continue
            wrote = True
            path = paths.normal(value, walker.cwd)
            if any(paths.is_critical(paths.normal(one.partition("=")[2], walker.cwd)) for one in word.spellings()):
                walker.destroy(
                    "dd.device", word.span, f"Overwrites {value}.", scene, *paths.write_effects(path), thing=value
                )
                walker.report.name("device", value, scene.place, Risk.DESTRUCTIVE, "overwrite")
            else:
                walker.change("dd.write", word.span, f"Writes the file {value.replace(HOLE, '…')}.", scene, thing=value)
    if wrote and source == "/dev/null":
        walker.destroy("dd.truncate", this.span, "Empties a file; what it held is lost.", scene)
    if not wrote and Tag.SECRET in tags and all(word.text.partition("=")[0] != "of" for word in this.words[1:]):
        return Flow(frozenset(tags), None, True)
    return Flow(NOTHING if wrote else frozenset(tags), None, True)


def copy(this: Call) -> Flow | None:
    """cp, mv, install, ln: where they write, and what they leave behind."""
    walker, scene, args = this.walker, this.scene, list(this.line.args)
    target = this.value("-t", "--target-directory")
    if target is None and len(args) > 1:
        target = args.pop()
    if target is None:
        return None
    path = paths.normal(target.text, walker.cwd)
    if this.name == "mv" and path == "/dev/null":
        walker.destroy("mv.null", target.span, "Moving something to /dev/null loses it.", scene)
    if any(word.text == "/dev/null" for word in args) and this.name in ("cp", "install"):
        walker.destroy(
            "cp.truncate", target.span, f"Empties {target.text}; what it held is lost.", scene, thing=target.text
        )
    for text in target.spellings():
        where = paths.normal(text, walker.cwd)
        if (
            paths.is_critical(where) and ("/EFI/" in where or not where.startswith(("/boot/", "/lib/modules", "/efi")))
        ) or paths.is_block_device(where):
            walker.destroy(
                "write.critical",
                target.span,
                f"Replaces {where.replace(HOLE, '…')}: a mistake there locks people out or loses a disk.",
                scene,
                *paths.write_effects(where),
                thing=where,
            )
            return None
    effects = paths.write_effects(path)
    if effects:
        walker.find("write.place", Risk.CONFIG_MUTATION, target.span, f"Changes {path}.", scene, effects, path)
    if this.name == "mv":
        for word in args:
            if (
                paths.is_critical(paths.normal(word.text, walker.cwd))
                or paths.is_system_tree(word.text)
                or re.match(
                    r"(?:/usr)?/(?:s?bin/|lib\w*/(?:[\w-]+-linux-\w+/)?(?:lib[\w+.-]+\.so|ld-linux))", word.text
                )
            ):
                walker.destroy(
                    "mv.critical", word.span, f"Takes away {word.text}, which the system needs.", scene, thing=word.text
                )
    return None


def remove(this: Call) -> Flow | None:
    """rm and its kin name what they delete."""
    for word in this.line.args:
        if HOLE not in word.text:
            this.walker.report.name("file", word.text, this.scene.place, Risk.DESTRUCTIVE, "delete")
    return None


def chmod(this: Call) -> Flow | None:
    """`chmod [-R] MODE FILE…`."""
    walker, scene = this.walker, this.scene
    args = list(this.line.args)
    mode = this.line.args[0].text if args else ""
    # `chmod -x FILE` and `chmod -w FILE`: the mode looks like an option.
    dashed = [used.name for used in this.line.used if re.fullmatch(r"-[rwxXst]", used.name)]
    files = args if dashed or this.has("--reference") else args[1:]
    recursive = this.has("-R", "--recursive")
    opens = bool(
        re.search(r"[0-7]*[2367]$", mode) if mode.isdigit() else re.search(r"(?:^|,)[ugo]*[oa]\w*[+=]\w*w|^\+w", mode)
    )
    closes = mode in ("000", "0", "0000", "a-rwx", "a-x", "-x") or (bool(dashed) and "-x" in dashed)
    if re.search(r"(?:^|,)u?g?\+s|\+s\b", mode) or re.fullmatch(r"[2467][0-7]{3}", mode):
        walker.find(
            "chmod.setuid",
            Risk.DESTRUCTIVE if any(_INTERPRETER.search(word.text) for word in files) else Risk.CONFIG_MUTATION,
            this.span,
            "Lets whoever runs the file act as its owner.",
            scene,
            (EffectKind.PRIVILEGE,),
        )
    for word in files:
        path = paths.normal(word.text, walker.cwd)
        system = (
            paths.is_system_tree(path) or re.match(r"/(?:etc|usr|bin|sbin|lib\w*|boot|var)(?:/|$)", path) is not None
        )
        secret = paths.is_secret(path) or paths.is_critical(path)
        if recursive and (
            mode in ("777", "0777", "a+rwx", "ugo+rwx") or (system and (opens or closes or paths.is_system_tree(path)))
        ):
            walker.destroy(
                "chmod.tree",
                word.span,
                f"Changes the modes of everything under {path}; what they were is lost.",
                scene,
                EffectKind.PRIVILEGE,
                EffectKind.IRREVERSIBLE,
                thing=path,
            )
        elif secret and (opens or re.search(r"[4567]$", mode)):
            walker.destroy(
                "chmod.secret", word.span, f"Opens {path} to everyone.", scene, EffectKind.PRIVILEGE, thing=path
            )
        elif closes and (paths.is_system_tree(path) or re.match(r"/etc/(?:ssh|pam\.d|systemd)(?:/|$)", path)):
            walker.destroy(
                "chmod.place", word.span, f"Nobody gets into {path} any more.", scene, EffectKind.OUTAGE, thing=path
            )
        elif closes and (path.startswith(("/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/", "/lib"))):
            walker.destroy(
                "chmod.program", word.span, f"Nobody can run {path} any more.", scene, EffectKind.OUTAGE, thing=path
            )
    return None


def chown(this: Call) -> Flow | None:
    """`chown [-R] OWNER FILE…`."""
    walker, scene = this.walker, this.scene
    files = this.line.args if this.has("--reference") else this.line.args[1:]
    for word in files:
        path = paths.normal(word.text, walker.cwd)
        if this.has("-R", "--recursive") and (
            path in ("/", "/*")
            or re.match(r"/(?:etc|usr|bin|sbin|lib\w*|boot|var|root|dev|usr/(?:s?bin|lib\w*|local|share))/?\*?$", path)
        ):
            walker.destroy(
                "chown.tree",
                word.span,
                f"Changes the owner of everything under {path}; who owned what is lost.",
                scene,
                EffectKind.PRIVILEGE,
                EffectKind.IRREVERSIBLE,
                thing=path,
            )
        elif paths.is_critical(path) or paths.is_secret(path):
            walker.destroy(
                "chown.critical", word.span, f"Changes the owner of {path}.", scene, EffectKind.PRIVILEGE, thing=path
            )
    return None


def setcap(this: Call) -> Flow | None:
    """Capabilities on an interpreter give them to whoever can start it."""
    for word in this.line.args[1:] if len(this.line.args) > 1 else this.line.args:
        if _INTERPRETER.search(word.text) and "-r" not in [used.name for used in this.line.used]:
            this.walker.destroy(
                "setcap.interpreter",
                word.span,
                f"Whoever can start {word.text} gets the capability.",
                this.scene,
                EffectKind.PRIVILEGE,
                thing=word.text,
            )
    return None


_NETWORK_MODULES = re.compile(
    r"e1000e?|igb|igbvf|igc|ixgbe(?:vf)?|i40e|iavf|ice|r81(?:25|68|69)|tg3|bnx2x?|bnxt_en|mlx[45]_(?:core|en)|virtio_net|vmxnet3|"
    r"atlantic|sky2|alx|be2net|cxgb4|qede|nfp|ena|gve|hv_netvsc|xen[-_]netfront|dwmac\w*|stmmac|bcmgenet|lan78xx|smsc95xx|ax88179_178a|"
    r"cdc_ether|iwlwifi|iwlmvm|ath\d+k\w*|brcmfmac|mt76\w*|bonding|team|bridge|8021q|wireguard"
)
"""Modules that may carry the way in."""


def modprobe(this: Call) -> Flow | None:
    """Unloading modules only the shell can name may take away the network driver."""
    if (this.has("-r", "--remove") or this.name == "rmmod") and any(not word.literal for word in this.line.args):
        this.walker.destroy(
            "modprobe.unbounded",
            this.span,
            "Unloads modules nobody listed; the network driver may be among them.",
            this.scene,
            EffectKind.CONNECTIVITY,
        )
    elif this.has("-r", "--remove") or this.name == "rmmod":
        for word in this.line.args:
            if _NETWORK_MODULES.fullmatch(word.text.replace("-", "_")) and not this.dry:
                why = f"Takes {word.text} away, and with it perhaps the way in."
                this.walker.destroy("modprobe.network", word.span, why, this.scene, EffectKind.CONNECTIVITY)
    return None


def printenv(this: Call) -> Flow | None:
    """`printenv NAME` shows one variable; without a name all, passwords among them."""
    for word in this.line.args:
        if not word.literal or environment.is_secretive(word.text):
            this.walker.change(
                "printenv.secret",
                word.span,
                f"Prints the variable {word.text.replace(HOLE, '…')}, which may be a password.",
                this.scene,
                EffectKind.SENSITIVE,
            )
    if not this.line.args:
        this.walker.change(
            "env.dump", this.span, "Prints the environment, passwords among it.", this.scene, EffectKind.SENSITIVE
        )
    return None


def ps(this: Call) -> Flow | None:
    """`ps e` shows the environment of processes."""
    for word in this.words[1:]:
        if word.literal and re.fullmatch(r"[a-zA-Z]*e[a-zA-Z]*", word.text) and not word.text.startswith("-"):
            value_of = [used.value for used in this.line.used]
            if word not in value_of:
                this.walker.change(
                    "ps.environment",
                    word.span,
                    "Shows the environment of processes, passwords among it.",
                    this.scene,
                    EffectKind.SENSITIVE,
                )
    return None


def date(this: Call) -> Flow | None:
    """`date [+FORMAT]`; anything else sets the clock."""
    for word in this.line.args:
        texts = word.values or (word.text,)
        if not all(text.startswith("+") for text in texts):
            this.walker.change("date.set", word.span, "Sets the clock.", this.scene, EffectKind.OUTAGE, thing="clock")
    return None


def tee(this: Call) -> Flow | None:
    """`tee [-a] FILE…`."""
    walker, scene = this.walker, this.scene
    from oikos.policy import redirects

    producer = "nothing" if scene.stdin.piped and scene.stdin.text == "" else "data"
    for word in this.line.args:
        redirects.write_to(walker, word, ">>" if this.has("-a", "--append") else ">", scene, producer, scene.reads)
        if word.literal and (scene.stdin.text or Tag.NETWORK in scene.stdin.tags):
            walker.remember(word, scene.stdin)
    return Flow(scene.stdin.tags, scene.stdin.text, True)


_SECRET_PATTERN = re.compile(
    r"(?i)\W*(?:password|passwd|passphrase|secret|token|api[_-]?key|private[_ -]key|credentials?|begin.*private.*)\W*[=:]?\W*(?:\S{0,4})?"
)


def grep(this: Call) -> Flow | None:
    """A recursive search for passwords shows passwords."""
    recursive = this.has("-r", "-R", "--recursive", "--dereference-recursive") or this.name in (
        "rg",
        "rgrep",
        "ag",
        "ack",
    )
    patterns = this.values("-e", "--regexp") or this.line.args[:1]
    quiet = this.has(
        "-l", "-L", "-c", "-q", "--count", "--quiet", "--files-with-matches", "--files-without-match", "--silent"
    )
    if not recursive or quiet:
        return None
    wide = any(
        paths.is_system_tree(word.text) and word.text.rstrip("/") in ("", "/etc", "/root", "/home")
        for word in this.line.args[1:]
    )
    for word in patterns:
        if word.literal and (_SECRET_PATTERN.fullmatch(word.text) or (wide and word.text in ("", ".", ".*", "^"))):
            this.walker.change(
                "grep.secret", word.span, "Shows passwords it finds in any file.", this.scene, EffectKind.SENSITIVE
            )
    return None
