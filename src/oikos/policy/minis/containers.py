"""Containers: what `run` mounts, what `inspect` and `get` show, what `compose down` removes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind, Hop, HopKind
from oikos.policy import paths, unwrap
from oikos.policy.scene import Flow
from oikos.policy.words import Tag

if TYPE_CHECKING:
    from oikos.policy.call import Call


def dockerrun(this: Call) -> Flow | None:
    """`docker run IMAGE COMMAND`: mounts of the host, privileges, and the command itself."""
    walker, scene = this.walker, this.scene
    for used in this.line.used:
        text = used.value.text if used.value else ""
        if used.name in ("-v", "--volume", "--mount"):
            source = re.search(r"(?:src|source)=([^,]+)", text)
            path = source.group(1) if source else text.split(":", 1)[0]
            if path.startswith(("/", "~")) and (
                paths.is_system_tree(path)
                or paths.is_critical(path)
                or "docker.sock" in path
                or path.startswith("/etc")
            ):
                walker.change(
                    "docker.mount",
                    used.word.span,
                    f"Gives the container {path} of the host.",
                    scene,
                    EffectKind.TARGET_ESCAPE,
                    EffectKind.PRIVILEGE,
                    thing=path,
                )
        elif used.name == "--privileged" or (
            used.name in ("--pid", "--network", "--net", "--ipc", "--userns", "--cap-add")
            and text in ("host", "ALL", "SYS_ADMIN")
        ):
            walker.change(
                "docker.privileged",
                used.word.span,
                "Gives the container power over the host.",
                scene,
                EffectKind.PRIVILEGE,
                EffectKind.TARGET_ESCAPE,
            )
    command = this.line.args[1:] if len(this.line.args) > 1 else []
    entry = this.value("--entrypoint")
    if entry is not None and entry.literal and entry.text:
        command = [entry, *command]
    if command:
        inside = scene.inside(
            f"{this.name} run",
            Hop(kind=HopKind.DOCKER, name=this.line.args[0].text if this.line.args[0].literal else ""),
        )
        walker.command(command, inside)
    return None


def inspect(this: Call) -> Flow | None:
    """A whole `docker inspect` is borderline; formats that print the environment are not."""
    for word in this.values("-f", "--format"):
        for text in word.spellings():
            if re.search(r"(?i)\.Env\b|Config\b\s*\}|json\s+\.\s*\}|Secret|password", text):
                this.walker.change(
                    "inspect.environment",
                    word.span,
                    "Prints the environment of the container, passwords among it.",
                    this.scene,
                    EffectKind.SENSITIVE,
                )
    return None


def kubeget(this: Call) -> Flow | None:
    """`kubectl get secret -o yaml`, raw reads and their like."""
    walker, scene = this.walker, this.scene
    shows = this.has("-o", "--output", "--template") or "describe" in this.sub
    output = this.value("-o", "--output")
    full = output is not None and not re.fullmatch(r"name|wide", output.text)
    if output is not None and re.match(r"[\w-]+-file(?:=|$)", output.text):
        walker.unclear("kubectl.template", output.span, "The template stands in a file that is not shown here.", scene)
    unseen = this.has("-f", "--filename") or any(word.text == unwrap.PLACEHOLDER for word in this.line.args)
    if unseen and full and output is not None and output.text in ("json", "yaml"):
        walker.change(
            "kubectl.secret", this.span, "What is printed in full may be a secret.", scene, EffectKind.SENSITIVE
        )
    for word in this.line.args:
        for text in word.spellings():
            if re.search(r"(?i)(?:^|,)secrets?(?:[./,]|$)|sealedsecret|^all,secret", text) and (
                full or (shows and output is None and "describe" not in this.sub)
            ):
                walker.change(
                    "kubectl.secret",
                    word.span,
                    "Shows secrets of the cluster.",
                    scene,
                    EffectKind.SENSITIVE,
                    thing="secrets",
                )
    for word in this.values("--raw"):
        if re.search(r"(?i)/secrets?(?:/|$|\?)", word.text):
            walker.change(
                "kubectl.secret",
                word.span,
                "Shows secrets of the cluster.",
                scene,
                EffectKind.SENSITIVE,
                thing="secrets",
            )
        elif re.search(r"/proxy/", word.text):
            walker.unclear(
                "kubectl.proxy", word.span, "A request through the API to a workload may start an action.", scene
            )
        elif not word.literal:
            walker.unclear("kubectl.raw", word.span, "The address is only known when the shell runs.", scene)
    return None


def compose(this: Call) -> Flow | None:
    """`docker compose config` shows values of variables; --services and -q do not."""
    if not this.has(
        "--services", "-q", "--quiet", "--volumes", "--images", "--profiles", "--hash", "--networks", "--no-interpolate"
    ):
        this.walker.change(
            "compose.config",
            this.span,
            "Prints the configuration with passwords filled in.",
            this.scene,
            EffectKind.SENSITIVE,
        )
    return None


def apiwrite(this: Call) -> Flow | None:
    """`kubectl apply -f -` with text from the network."""
    walker, scene = this.walker, this.scene
    for word in this.words:
        if word.text.endswith(":NoExecute"):
            walker.destroy(
                "kubectl.taint.evict", word.span, "Evicts the workloads of the node.", scene, EffectKind.OUTAGE
            )
    files = this.values("-f", "--filename", "-k", "--kustomize")
    if any(word.text in ("-", "/dev/stdin") for word in files) and Tag.NETWORK in scene.stdin.tags:
        walker.destroy(
            "exec.fetched",
            this.span,
            "Applies text straight from the network; nobody can review it.",
            scene,
            EffectKind.REMOTE_CODE,
        )
    for word in files:
        if re.match(r"https?://", word.text):
            walker.destroy(
                "exec.fetched",
                word.span,
                f"Applies {word.text}, which is fetched when it runs; nobody can review it.",
                scene,
                EffectKind.REMOTE_CODE,
            )
        elif Tag.NETWORK in word.tags:
            walker.destroy(
                "exec.fetched",
                word.span,
                "Applies text straight from the network; nobody can review it.",
                scene,
                EffectKind.REMOTE_CODE,
            )
    return None
