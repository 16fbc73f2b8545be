"""jq and yq filters: pure, except for what their options load."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind
from oikos.policy import paths
from oikos.policy.scene import Flow

if TYPE_CHECKING:
    from oikos.policy.call import Call


# Members that hold variables with their values, or a password.
_HOLDS = re.compile(
    r"(?i)\.(?:env|envs|environment|\w*(?:password|passwd|passphrase|secret|apikey|api_key|private_?key))\b(?!\s*\|\s*(?:length|keys))"
)


def jq(this: Call) -> Flow | None:
    """`jq [options] FILTER [FILE…]`: the filter may print the environment."""
    walker, scene = this.walker, this.scene
    for word in this.line.args[:1]:
        for text in word.spellings():
            if this.name == "yq" and re.search(r"\b(?:str)?env\(|\benvsubst\b", text):
                walker.change(
                    "jq.env", word.span, "The filter shows variables of the environment.", scene, EffectKind.SENSITIVE
                )
            for loaded in re.findall(r"\bload\w*\(\s*['\"]([^'\"]+)", text):
                if paths.is_secret(loaded, walker.cwd):
                    walker.change(
                        "read.secret",
                        word.span,
                        f"Shows {loaded}, which is secret material.",
                        scene,
                        EffectKind.SENSITIVE,
                    )
            if scene.stdin.piped and _HOLDS.search(text):
                walker.change(
                    "jq.secret", word.span, "The filter shows environment variables or passwords.", scene, EffectKind.SENSITIVE
                )  # fmt: skip
            if "$ENV" in text or "env." in text.replace(".env.", "") or text.strip() in ("env", "$ENV"):
                walker.change(
                    "jq.env",
                    word.span,
                    "The filter prints the environment, passwords among it.",
                    scene,
                    EffectKind.SENSITIVE,
                )
    for word in [
        *(word for index, word in enumerate(this.line.args) if index or word.text[:1] in ("/", "~")),
        *(used.value for used in this.line.used if used.value),
    ]:
        if paths.is_secret(word.text, walker.cwd):
            walker.change(
                "read.secret",
                word.span,
                f"Shows {word.text}, which is secret material.",
                scene,
                EffectKind.SENSITIVE,
                thing=word.text,
            )
    for word in this.line.loose:
        if word.splits and word.could_be_option() and word.kind.value == "dynamic" and word.tags:
            walker.unclear(
                "dynamic.jq",
                word.span,
                "This word is only known when the shell runs; it could be an option of jq.",
                scene,
            )
    return None
