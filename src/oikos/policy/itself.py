"""The controller itself: commands that would steer it or name what is its own (SPEC R3.13)."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind
from oikos.policy import paths
from oikos.policy.call import span_of
from oikos.policy.scene import Scene
from oikos.policy.words import Word

if TYPE_CHECKING:
    from oikos.policy.walk import Walker


def look(walker: Walker, words: list[Word], scene: Scene) -> None:
    """SPEC R3.13: commands that name the controller itself."""
    if posixpath.basename(words[0].text) == "oikos":
        if len(words) > 1 and words[1].known in ("classify", "version", "--version", "--help"):
            return
        walker.destroy(
            "self.command", span_of(words), "This would steer Oikos itself.", scene, EffectKind.SELF, thing="oikos"
        )
        return
    for word in words[1:]:
        for text in word.spellings():
            name = _named_in(text, walker.self_names)
            if name:
                walker.destroy(
                    "self.named", word.span, f"This names Oikos itself ({name}).", scene, EffectKind.SELF, thing=name
                )
                return


def _named_in(text: str, names: frozenset[str]) -> str:
    """The name of the controller that stands in a word, or the empty string."""
    for name in names:
        if name.startswith(":"):  # the port of its faces, on this machine
            here = r"(?:^|\blocalhost|\b127(?:\.\d+){3}|\[::1\]|\b0\.0\.0\.0)"
            if re.search(here + re.escape(name) + r"(?!\d)", text):
                return name
        elif name.startswith(("/", "~")):
            path, where = paths.normal(text), paths.normal(name)
            if (
                path == where
                or path.startswith(where.rstrip("/") + "/")
                or re.search(re.escape(where) + r"(?![\w.-])", text)
            ):
                return name
        elif re.search(
            rf"(?:(?<![\w.-])|(?<=/)\.){re.escape(name)}(?:\.(?:service|socket|timer|toml|db))?(?![\w-])", text
        ):
            return name
    return ""
