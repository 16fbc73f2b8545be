"""git: options and verbs whose class depends on more than their name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind
from oikos.policy import hosts, paths, unwrap
from oikos.policy.scene import Flow

if TYPE_CHECKING:
    from oikos.policy.call import Call

# Directories anybody may write to: a repository there can carry its own programs.
_FOREIGN = re.compile(r"^/(?:tmp|var/tmp|dev/shm)(?:/|$)")


def git(this: Call) -> Flow | None:
    """Where the repository lies, and what a read verb is asked for."""
    walker, scene = this.walker, this.scene
    for word in this.values("-C"):
        if any(_FOREIGN.match(paths.normal(text, walker.cwd)) for text in word.spellings()):
            walker.unclear(
                "git.place",
                word.span,
                "A repository in a directory anybody can write to may carry its own programs.",
                scene,
            )
    if _FOREIGN.match(walker.cwd or ""):
        walker.unclear(
            "git.place",
            this.span,
            "A repository in a directory anybody can write to may carry its own programs.",
            scene,
        )
    if this.sub[:1] in (("diff",),) and this.has("--no-index"):
        for word in this.line.args:
            if paths.is_secret(word.text):
                walker.change(
                    "read.secret", word.span, "Shows secret material.", scene, EffectKind.SENSITIVE, thing=word.text
                )
    texts = [word.known for word in this.words]
    if this.sub[:1] == ("checkout",) and "--" in texts[:-1]:
        walker.destroy("git.checkout.files", this.span, "Discards the changes of the files it names.", scene)
    for word in this.values("-c"):
        command = re.match(r"(?i)alias\.\w+=!(.*)", word.text, re.DOTALL)
        if command:
            unwrap.hidden(walker, command.group(1), scene, word.span, "git alias")
    for word in this.line.args:
        if re.match(r"ext::|fd::", word.text):
            walker.unclear("git.transport", word.span, "This transport runs a program.", scene)
    return None


def gitconfig(this: Call) -> Flow | None:
    """`git config`: a name alone reads, a name and a value write."""
    walker, scene = this.walker, this.scene
    writes = this.has(
        "--unset", "--unset-all", "--add", "--replace-all", "--rename-section", "--remove-section", "-e", "--edit"
    )
    words = [word.text for word in this.line.args]
    reads = this.has(
        "--get", "--get-all", "--get-regexp", "-l", "--list", "--get-urlmatch", "--get-color", "--get-colorbool"
    ) or words[:1] in (["get"], ["list"])
    if writes or (not reads and (len(words) > 1 or words[:1] in (["set"], ["unset"], ["edit"]))):
        walker.change("git.config.write", this.span, "Writes git configuration.", scene)
    return None


def push(this: Call) -> Flow | None:
    """`git push`: forced, deleting, or to a stranger."""
    walker, scene = this.walker, this.scene
    for word in this.line.args[:1]:
        if re.match(r"ext::|fd::", word.text):
            walker.unclear("git.transport", word.span, "This transport runs a program.", scene)
    for word in this.line.args[1:]:
        if word.text.startswith((":", "+")):
            walker.destroy("git.push.ref", word.span, "Deletes or overwrites a remote branch.", scene)
    remote = this.line.args[0].text if this.line.args else ""
    if "://" in remote or "@" in remote:
        host = hosts.host_of(remote)
        if hosts.is_third_party(host):
            walker.destroy(
                "egress.bulk",
                this.span,
                f"Sends the repository to {host}; that cannot be taken back.",
                scene,
                EffectKind.EGRESS,
                thing=host,
            )
    return None
