"""The second pass: an independent look for destructive phrases that can only raise a class to destructive.

It knows no options and trusts no rule file. It looks at literal words: behind wrappers nobody described, in
command words that hide what they are, and in text no parser could read.
"""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind
from oikos.policy.findings import Span
from oikos.policy.scene import Scene
from oikos.policy.words import HOLE, Word

if TYPE_CHECKING:
    from oikos.policy.walk import Walker

# A phrase is a program and words that must follow it, options between them skipped. `*` matches within one word.
_PHRASES = tuple(
    tuple(line.split())
    for line in """
rm -*
rm /*
rm ~*
rm .*
rm *.*
rm *_*
rmdir
unlink
shred
wipefs -*
mkfs
mkfs.*
mke2fs
blkdiscard
dd of=/dev/*
truncate -*
srm
sgdisk -*
reboot
poweroff
halt
shutdown
kexec -*
init 0
init 6
telinit 0
telinit 6
systemctl reboot
systemctl poweroff
systemctl halt
systemctl kexec
systemctl rescue
systemctl isolate *
systemctl emergency
zfs destroy
zfs rollback
zpool destroy
zpool labelclear
lvremove
vgremove
pvremove
lvreduce
cryptsetup luksFormat
cryptsetup luksErase
cryptsetup erase
mdadm --zero-superblock
iptables -F
iptables --flush
nft flush
docker rm
docker rmi
docker volume rm
docker system prune
docker volume prune
podman rm
podman rmi
podman volume rm
podman system reset
pct destroy
pct rollback
pct delsnapshot
qm destroy
qm rollback
qm delsnapshot
kubectl delete
helm uninstall
helm delete
terraform destroy
restic forget
restic prune
borg delete
borg prune
rclone sync
rclone delete
rclone purge
git reset --hard
git clean -*
dropdb
userdel
deluser
crontab -r
chmod -R 777 /*
chown -R * /
virsh undefine
lxc delete
incus delete
wg-quick down
ifdown
redis-cli flushall
redis-cli flushdb
journalctl --vacuum-*
find * -delete
cmd /c del
Remove-Item
del /*
format *:
passwd -l
passwd -d
setcap * */python*
shred -*
""".strip().splitlines()
)
_HEADS = frozenset(phrase[0] for phrase in _PHRASES) - {"mkfs.*"}
_BARE = frozenset(phrase[0] for phrase in _PHRASES if len(phrase) == 1)
_SQL = re.compile(r"(?i)\b(?:drop\s+(?:table|database|schema|role|user|index|view)|truncate\s+table|delete\s+from)\b")
_FORCE = re.compile(r"-[a-zA-Z]*(?:r[a-zA-Z]*f|f[a-zA-Z]*r)[a-zA-Z]*|--no-preserve-root")
_CUT = re.compile(r"[;&|!\n(){}`]+|\$\(")
_SKIP = frozenset(
    "sudo doas env nohup exec command builtin time nice ionice timeout setsid stdbuf xargs then do else if while until ! watch eval sh bash -c"
    " parallel busybox toybox chroot su ssh pct lxc-attach docker kubectl exec run0".split()
)
NOTE = "Whatever it is wrapped in, this text contains a destructive command"


def phrase_at(words: Sequence[str], at: int) -> str:
    """The destructive phrase that begins at `words[at]`, or the empty string."""
    head = words[at].rsplit("/", 1)[-1]
    if head not in _HEADS and not head.startswith("mkfs."):
        return ""
    for phrase in _PHRASES:
        if not fnmatch.fnmatchcase(head, phrase[0]):
            continue
        index = at + 1
        for wanted in phrase[1:]:
            while index < len(words) and not fnmatch.fnmatchcase(words[index], wanted) and words[index].startswith("-"):
                index += 1
            if index >= len(words) or not fnmatch.fnmatchcase(words[index], wanted):
                break
            index += 1
        else:
            return " ".join((head, *words[at + 1 : index]))
    return ""


def in_arguments(words: Sequence[Word]) -> str:
    """A destructive phrase among the arguments of a command nobody described."""
    texts = [word.text for word in words]
    for at in range(len(texts)):
        found = phrase_at(texts, at)
        if found:
            return found
        if " " in texts[at] or "\n" in texts[at]:
            inner = in_text(texts[at])
            if inner:
                return inner
    return ""


def in_text(text: str) -> str:
    """A destructive phrase at the beginning of any command of a text, found without parsing it."""
    for piece in _CUT.split(text):
        words = re.sub(r"[\\'\"]", "", piece).split()
        at = 0
        while at < len(words) and (
            words[at] in _SKIP or words[at].startswith("-") or re.match(r"\w+=|\d+$", words[at])
        ):
            at += 1
        if at < len(words):
            found = phrase_at(words, at) or (
                "" if at + 1 >= len(words) else phrase_at(words, at + 1) * (words[at - 1 : at] != [])
            )
            if found:
                return found
    found_sql = _SQL.search(text)
    return found_sql.group() if found_sql else ""


_ENTRY = re.compile(
    r"(?:@(?:reboot|hourly|daily|midnight|weekly|monthly|yearly|annually)|(?:[\d*,/-]+[ \t]+){3}[\dA-Za-z*,/-]+[ \t]+[\dA-Za-z*,/-]+)"
    r"[ \t]+([^'\"\n]+)"
)


def scheduled(text: str) -> str:
    """A destructive phrase in a line of a crontab that stands somewhere in a text."""
    for entry in _ENTRY.finditer(text):
        command = entry.group(1)
        found = in_text(command) or in_text(command.partition(" ")[2])  # the system's tables name a user first
        if found:
            return found
    return ""


_VERB = re.compile(
    r"(?!ctrl-)(?:[\w-]+[./:-])?(?:destroy|delete|purge|wipe|erase|terminate|factory-?reset|obliterate|unpublish)(?:-[a-z-]+)?|"
    r"system\.(?:reboot|shutdown|halt|poweroff)|(?:db|migrate|database|cache|queue|sql)[:-](?:drop|reset|wipe|fresh|flush|clean)|sql-drop"
)


def destroying_verb(words: Sequence[Word]) -> str:
    """A verb of destruction among the first plain arguments of a command whose rules do not know it."""
    plain = [word.text for word in words if word.literal and not word.text.startswith("-")]
    return next((text for text in plain[:4] if _VERB.fullmatch(text)), "")


def scan_text(walker: Walker, text: str, scene: Scene, span: Span) -> None:
    """Judge a text that could not be parsed."""
    found = in_text(text[:65_536])
    if not found and re.search(r">\s*/dev/(?:sd|nvme|vd|md|mapper/)|>\s*/etc/(?:passwd|shadow|sudoers)\b", text):
        found = "a write to a disk or an account file"
    if found:
        walker.destroy("danger.text", span, f"{NOTE}: {found}.", scene)


def hidden_head(head: Word, rest: Sequence[Word]) -> str:
    """What a dynamic or globbed command word probably is, when that is destructive."""
    for text in head.spellings():
        words = [*re.split(r"[\s\0]+", text), *(word.text for word in rest)] if HOLE in text or " " in text else [
            text, *(word.text for word in rest)
        ]  # fmt: skip
        for at in range(min(len(words), 4)):
            found = phrase_at(words, at)
            if found:
                return found
        last = text.rsplit("/", 1)[-1]
        if re.search(r"[*?\[]", last) and re.sub(r"[*?\[\]]", "", last):
            for known in sorted(_BARE | {"rm", "dd"}):
                if fnmatch.fnmatchcase(known, last):
                    return f"{known} (spelled {last})"
        tail = re.split(r"[/\0]", text)[-1]
        if tail in _BARE or (tail == "rm" and rest):
            return tail
    for word in rest:
        if _FORCE.fullmatch(word.text):
            return f"a hidden command with {word.text}"
    found = in_arguments(rest)
    if found:
        return found
    return ""


def hidden(walker: Walker, words: Sequence[Word], scene: Scene) -> bool:
    """Judge a command whose word hides what runs; True when it was found destructive."""
    found = hidden_head(words[0], words[1:])
    if found:
        walker.destroy(
            "danger.hidden", words[0].span, f"The command word hides what runs, and it looks destructive: {found}.", scene,
            EffectKind.IRREVERSIBLE,
        )  # fmt: skip
    return bool(found)
