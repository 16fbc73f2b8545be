"""Policy: how risky a command text is. Pure over parser results; knows programs, not machines."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oikos.policy.classify import Classifier


def default_classifier() -> Classifier:
    """A classifier over the packaged rules and the shfmt that can be found."""
    from oikos.policy.classify import Classifier
    from oikos.policy.knowledge import load
    from oikos.policy.parser import ShfmtParser

    return Classifier(ShfmtParser(), load())


@lru_cache(maxsize=1)
def _shared() -> Classifier:
    return default_classifier()


def label(text: str, target: str = "") -> str:
    """The risk of `text` as one word, for scoring scripts; `target` describes the machine and is not needed."""
    return _shared().classify(text).risk.value
