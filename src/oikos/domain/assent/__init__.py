"""Whether the operator's own words assent, refuse, halt, or do neither: the closed grammar of SPEC R3.7."""

from __future__ import annotations

from oikos.domain.assent.grammar import EXAMPLE, Answer, Pending, Reading, explain, is_halt, jsonl, read

__all__ = ["EXAMPLE", "Answer", "Pending", "Reading", "explain", "is_halt", "jsonl", "read"]
