"""What a session has learned so far: slots and tables, each with the run that showed it, and how they are taken."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from oikos.adapters.model.template import Hole, fill, fill_pattern

Row = dict[str, str]
TAKEN_ROWS: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """One rule that takes something out of an output, or out of a table taken before.

    Exactly one source: `match` (a regular expression over the text), `json` (a list, or one object a line), or
    `of` (a table). Exactly one goal: `rows` (a table), `slots` (names with the column or group they come from).
    """

    rows: str = ""
    slots: Mapping[str, str] = field(default_factory=dict)
    match: str = ""
    inside: str = ""
    """Slot whose value is searched instead of the output."""
    json: str = ""
    """`list` or `lines`."""
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For JSON: the column's name, and the keys different programs use for it."""
    of: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    without: Mapping[str, str] = field(default_factory=dict)
    prefer: tuple[str, ...] = ()
    """Texts; a row that contains the first of them that any row contains wins over the others."""
    last_by: str = ""
    """Keep the last row for each value of this column."""
    join: str = ""
    """Table whose columns are added under `join_`, matched by the column `on`."""
    on: str = ""
    pick: str = "first"
    """Which row gives the slots: first, last, only (none unless there is exactly one), min:COL, max:COL, all, count."""


@dataclass(slots=True)
class Learned:
    """Slots and tables. `origin` is the id of the run that showed a slot; empty: the operator or the inventory."""

    slots: dict[str, str] = field(default_factory=dict)
    origin: dict[str, str] = field(default_factory=dict)
    tables: dict[str, list[Row]] = field(default_factory=dict)
    table_origin: dict[str, str] = field(default_factory=dict)

    def copy(self) -> Learned:
        """An independent copy."""
        return Learned(
            slots=dict(self.slots),
            origin=dict(self.origin),
            tables={name: list(rows) for name, rows in self.tables.items()},
            table_origin=dict(self.table_origin),
        )

    def put(self, name: str, value: str, run: str = "") -> None:
        """Remember a slot."""
        self.slots[name] = value
        self.origin[name] = run

    def forget(self, names: Sequence[str]) -> None:
        """Slots that are about to be looked up anew."""
        for name in names:
            self.slots.pop(name, None)
            self.origin.pop(name, None)

    def take(self, rules: Sequence[Take], output: str, run: str) -> None:
        """Apply rules to the output of a run; what does not match changes nothing."""
        for rule in rules:
            try:
                self._take(rule, output, run)
            except Hole:
                continue

    def _take(self, rule: Take, output: str, run: str) -> None:
        origin = run
        if rule.of:
            found = [dict(row) for row in self.tables.get(rule.of, [])]
            origin = self.table_origin.get(rule.of, run)
        elif rule.json:
            found = list(_json_rows(output, rule))
        else:
            text = self.slots.get(rule.inside) if rule.inside else output
            if text is None:
                return
            origin = self.origin.get(rule.inside, run) if rule.inside else run
            found = list(_matches(fill_pattern(rule.match, self.slots), text))
        found = self._filtered(rule, found)
        if rule.rows:
            self.tables[rule.rows] = found[:TAKEN_ROWS]
            self.table_origin[rule.rows] = origin
        else:
            self._put_slots(rule, found, origin)

    def _filtered(self, rule: Take, rows: list[Row]) -> list[Row]:
        where = {column: re.compile(fill_pattern(text, self.slots)) for column, text in rule.where.items()}
        without = {column: re.compile(fill_pattern(text, self.slots)) for column, text in rule.without.items()}
        rows = [
            row
            for row in rows
            if all(pattern.search(row.get(column, "")) for column, pattern in where.items())
            and not any(pattern.search(row.get(column, "")) for column, pattern in without.items())
        ]
        if rule.last_by:
            rows = list({row.get(rule.last_by, ""): row for row in rows}.values())
        if rule.join:
            other = {row.get(rule.on, ""): row for row in self.tables.get(rule.join, [])}
            for row in rows:
                for column, value in other.get(row.get(rule.on, ""), {}).items():
                    row[f"{rule.join}_{column}"] = value
        for text in rule.prefer:
            try:
                wanted = fill(text, self.slots).lower()
            except Hole:
                continue
            if preferred := [row for row in rows if any(wanted in value.lower() for value in row.values())]:
                return preferred
        return rows

    def _put_slots(self, rule: Take, rows: list[Row], run: str) -> None:
        how, _, column = rule.pick.partition(":")
        if how == "count":
            for name in rule.slots:
                self.put(name, str(len(rows)), run)
            return
        if how == "all":
            for name, source in rule.slots.items():
                values = dict.fromkeys(row[source] for row in rows if row.get(source))
                self.put(name, ", ".join(values) or "none", run)
            return
        if not rows or (how == "only" and len(rows) != 1):
            return
        row = rows[-1] if how == "last" else rows[0]
        if how in ("min", "max"):
            row = (min if how == "min" else max)(rows, key=lambda candidate: candidate.get(column, ""))
        for name, source in rule.slots.items():
            if value := row.get(source):
                self.put(name, value, run)


def _matches(pattern: str, text: str) -> Iterator[Row]:
    for found in re.finditer(pattern, text, re.MULTILINE):
        row = {name: value for name, value in found.groupdict().items() if value is not None}
        row["_"] = (found[1] if found.re.groups else found[0]) or ""
        yield row


def _json_rows(output: str, rule: Take) -> Iterator[Row]:
    if rule.json == "list":
        try:
            values = json.loads(output)
        except ValueError:
            return
        values = values if isinstance(values, list) else [values]
    else:
        values = [value for line in output.splitlines() if (value := _object(line)) is not None]
    for value in values:
        if isinstance(value, dict):
            row = {key: _word(item) for key, item in value.items() if isinstance(item, str | int | float)}
            for column, names in rule.columns.items():
                if name := next((name for name in names if row.get(name)), ""):
                    row[column] = row[name]
            yield row


def _object(line: str) -> object:
    try:
        return json.loads(line) if line.startswith("{") else None
    except ValueError:
        return None


def _word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
