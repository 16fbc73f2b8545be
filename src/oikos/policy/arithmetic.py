"""Arithmetic: the shell runs commands that stand in the value of a variable it reckons with.

`a='x[$(reboot)]'; echo $((a))` reboots: where a number is wanted, text is an expression, a name in it stands for its
value, which is an expression again, and a subscript in it is expanded. So a look may reckon only with what is a number
whatever happens: digits, `$#`, `$?`, lengths, results of arithmetic, variables that this text sets to nothing else, and
what a few programs print that print nothing but numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oikos.policy.expand import is_bare, plain_text
from oikos.policy.parser import Node
from oikos.policy.scene import Scene
from oikos.policy.words import HOLE, has_glob

if TYPE_CHECKING:
    from oikos.policy.walk import Walker

COMPARES = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
"""Operators of `[[ … ]]` that reckon; those of `[ … ]` take numbers only."""
_BY_SHELL = frozenset(
    "# ? $ ! UID EUID PPID RANDOM SRANDOM SECONDS LINENO BASHPID EPOCHSECONDS SHLVL OPTIND PIPESTATUS BASH_SUBSHELL "
    "HISTCMD".split()
)
"""What the shell itself sets to numbers."""
_RECKONED = frozenset("RANDOM SRANDOM SECONDS LINENO HISTCMD EPOCHSECONDS OPTIND".split())
"""Variables of whose new value the shell makes a number."""
_NUMBER = re.compile(r"\s*[-+]?(?:\d+|0[xX][0-9A-Fa-f]+|\d+#\w+)?\s*")
_RANGE = re.compile(r"\{[-+]?\d+\.\.[-+]?\d+(?:\.\.[-+]?\d+)?\}|\{[-+]?\d+(?:,[-+]?\d+)*\}")
_HARMLESS = re.compile(r"[\w\s+\-*/%()<>=!&|^~?:,#@.\0]*")
"""An expression without subscripts, quotes and expansions; its names are looked at one by one."""
_GROWN = re.compile(r"[A-Za-z_]\w*\0")
"""A name that a piece behind it makes into another one."""
_NAME = re.compile(r"(?<![\w#])[A-Za-z_]\w*")
_SETS = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"))
_STORES = frozenset("read mapfile readarray getopts printf wait declare typeset local export readonly coproc".split())
"""Built-ins that store a value under a name they are given."""
_ONLY_DIGITS = frozenset(("[^0-9]", "[!0-9]", "[^[:digit:]]", "[![:digit:]]"))
_DELETE_OTHERS = re.compile(r"-(?:cd|dc)")
_DATE = re.compile(r"\+(?:%-?[sNYmdHMSjuVU])+")
_STAT = re.compile(r"%[sYXZWhibBaugd]")


class Numbers:
    """What a text sets each of its variables to."""

    def __init__(self) -> None:
        self._set: dict[str, list[Node | str | None]] = {}
        self._known: dict[str, bool] = {}
        self._integers: set[str] = set()
        self._keyed: set[str] = set()
        """Arrays whose subscripts may be texts."""
        self._first: set[str] = set()
        """Those that `declare -A NAME` makes at the very beginning."""
        self._declarations: Counter[str] = Counter()

    def sets(self, name: str, value: Node | str | None) -> None:
        """Note a value: a word, a literal text, or None for what only the shell will know."""
        self._set.setdefault(name, []).append(value)
        self._known.clear()

    def is_integer(self, name: str) -> bool:
        """Whether the shell reckons out what is assigned to it."""
        return name in self._integers or name in _RECKONED

    def is_keyed(self, name: str, scene: Scene) -> bool:
        """Whether subscripts of an array are texts, whatever happens."""
        return name in self._first and self._declarations[name] == 1 and not scene.via

    def collect(self, tree: Node) -> None:
        """Note everything that a tree sets."""
        outermost = not self._set and not self._declarations
        for statement in tree.get("Stmts", ()) if outermost else ():
            command = statement.get("Cmd") or {}
            if command.get("Type") != "DeclClause" or statement.get("Background") or statement.get("Redirs"):
                break
            args = command.get("Args", ())
            if [plain_text(arg["Value"]) for arg in args if not arg.get("Name") and arg.get("Value")] == ["-A"]:
                self._first |= {arg["Name"]["Value"] for arg in args if arg.get("Name")}
        todo: list[Any] = [tree]
        while todo:
            node = todo.pop()
            if isinstance(node, list):
                todo.extend(node)
                continue
            if not isinstance(node, dict):
                continue
            self._node(node)
            todo.extend(node.values())

    def _node(self, node: Node) -> None:
        kind = node.get("Type")
        match kind:
            case "ForClause" if "Name" in node["Loop"]:
                self._loop(node["Loop"])
            case "CallExpr":
                self._call([plain_text(word) for word in node.get("Args", ())])
            case "DeclClause":
                self._declared(node)
            case "BinaryArithm" | "UnaryArithm" if node.get("Op") in _SETS:
                name = _name_of(node["X"])
                if name:
                    self.sets(name, "0")  # whatever it is, it has been reckoned out
            case "ParamExp" if (node.get("Exp") or {}).get("Op") in ("=", ":="):
                self.sets(node.get("Param", {}).get("Value", ""), node["Exp"].get("Word") or "")
            case _:
                pass
        called = node.get("Name")
        if kind is None and isinstance(called, dict) and ("Value" in node or "Array" in node or "Append" in node):
            self._assigned(called["Value"], node)

    def _assigned(self, name: str, node: Node) -> None:
        if "Array" in node:
            for element in node["Array"].get("Elems", ()):
                self._item(name, element.get("Value") or {})
        else:
            self.sets(name, node.get("Value") or "")

    def _item(self, name: str, word: Node) -> None:
        """A word that may also be a file pattern, or several words."""
        text = plain_text(word)
        if any(part.get("Type") == "Lit" and has_glob(part["Value"]) for part in word.get("Parts", ())):
            self.sets(name, None)
        elif text is None:
            self.sets(name, word)
        else:
            self.sets(name, "0" if _RANGE.fullmatch(text) else text)

    def _loop(self, loop: Node) -> None:
        name = loop["Name"]["Value"]
        for item in loop.get("Items", ()):
            self._item(name, item)
        if "Items" not in loop:
            self.sets(name, None)

    def _call(self, words: list[str | None]) -> None:
        while words and words[0] in ("command", "builtin", "--", "-p"):
            words = words[1:]
        if words and words[0] == "unset":
            for word in words[1:]:
                self._declarations[word or ""] += 1
        if words and words[0] in _STORES:
            for word in (*words[1:], "REPLY", "MAPFILE", "OPTARG"):
                name = (word or "").partition("=")[0].partition("[")[0].removesuffix("+")
                self.sets(name, None)
                for at in range(1, len(name) if name[:1] == "-" else 0):  # `read -raNAME`, `printf -vNAME`
                    self.sets(name[at:], None)

    def _declared(self, node: Node) -> None:
        args = node.get("Args", ())
        flags = "".join((plain_text(arg["Value"]) or "") for arg in args if not arg.get("Name") and arg.get("Value"))
        for arg in args:
            name = (arg.get("Name") or {}).get("Value", "")
            text = None if name or not arg.get("Value") else plain_text(arg["Value"])
            if text is not None and not text.startswith("-"):  # written in quotes it is an assignment all the same
                name, equals, value = text.partition("=")
                name = name.partition("[")[0].removesuffix("+")
                if equals:
                    self.sets(name, value)
            self._declarations[name] += 1
            if name and "i" in flags:
                self._integers.add(name)
            if name and "A" in flags:
                self._keyed.add(name)

    # --- what is a number ---------------------------------------------------------------------------

    def number(self, walker: Walker, name: str, seen: frozenset[str] = frozenset()) -> bool:
        """Whether a variable holds a number, or nothing, whatever happens."""
        values = self._set.get(name)
        if values is None:
            return name in _BY_SHELL
        if name in seen:
            return False
        known = self._known.get(name)
        if known is None:
            known = all(value is not None and self.value(walker, value, seen | {name}) for value in values)
            self._known[name] = known
        return known

    def value(self, walker: Walker, value: Node | str, seen: frozenset[str]) -> bool:
        """Whether a text that a variable is set to is a number, or nothing."""
        text = value if isinstance(value, str) else self._text(walker, value.get("Parts", ()), seen)
        return text is not None and _NUMBER.fullmatch(text.replace(HOLE, "0")) is not None

    def expression(self, walker: Walker, word: Node) -> bool:
        """Whether reckoning out a word runs nothing."""
        text = self._text(walker, word.get("Parts", ()), frozenset())
        if text is None or not _HARMLESS.fullmatch(text) or _GROWN.search(text):
            return False
        names = _NAME.findall(re.sub(r"\b0[xX][0-9A-Fa-f]+", "0", text))
        return all(self.number(walker, name) for name in names)

    def _text(self, walker: Walker, parts: Sequence[Node], seen: frozenset[str]) -> str | None:
        """The word with a hole for each piece that is a number; None when a piece may be something else."""
        out: list[str] = []
        for part in parts:
            match part.get("Type"):
                case "Lit" | "SglQuoted":
                    text = plain_text({"Parts": [part]})
                    if text is None:
                        return None
                    out.append(text)
                case "DblQuoted":
                    text = self._text(walker, part.get("Parts", ()), seen)
                    if text is None:
                        return None
                    out.append(text)
                case "ArithmExp":
                    out.append(HOLE)
                case "ParamExp" if self._expands_to_number(walker, part, seen):
                    out.append(HOLE)
                case "CmdSubst" if _prints_number(walker, part.get("Stmts", ())):
                    out.append(HOLE)
                case _:
                    return None
        return "".join(out)

    def _expands_to_number(self, walker: Walker, part: Node, seen: frozenset[str]) -> bool:
        if part.get("Length"):
            return True
        if part.get("Excl") and plain_text(part.get("Index") or {}) in ("@", "*"):  # the subscripts of an array
            name = part.get("Param", {}).get("Value", "")
            return name in self._set and name not in self._keyed
        if part.get("Excl") or part.get("Slice") or part.get("Width") or part.get("Names"):
            return False
        repl = part.get("Repl")
        if repl:
            kept = plain_text(repl.get("Orig") or {}) in _ONLY_DIGITS
            return kept and bool(repl.get("All")) and not plain_text(repl.get("With") or {})
        name = part.get("Param", {}).get("Value", "")
        expansion = part.get("Exp") or {}
        if not expansion:
            return self.number(walker, name, seen)
        if expansion.get("Op") not in ("-", ":-", "=", ":=", "+", ":+", "?", ":?"):
            return False
        other = expansion.get("Word")
        with_number = expansion["Op"] in ("?", ":?") or other is None or self.value(walker, other, seen)
        return with_number and (expansion["Op"] in ("+", ":+") or self.number(walker, name, seen))


def _name_of(node: Node) -> str:
    parts = node.get("Parts", ())
    if len(parts) != 1:
        return ""
    if parts[0].get("Type") == "ParamExp":
        value: str = parts[0].get("Param", {}).get("Value", "")
        return value
    text = parts[0].get("Value", "") if parts[0].get("Type") == "Lit" else ""
    return text if re.fullmatch(r"[A-Za-z_]\w*", text) else ""


def _prints_number(walker: Walker, statements: Sequence[Node]) -> bool:
    return len(statements) == 1 and _numeric(walker, statements[0], False)


def _numeric(walker: Walker, statement: Node, piped: bool) -> bool:
    """Whether a statement prints nothing but a number; `piped`: it reads another command."""
    for one in statement.get("Redirs", ()):
        if one["Op"] in ("<", "<<", "<<<", "<<-"):
            piped = True
        elif one.get("N", {}).get("Value") != "2" or one["Op"] == ">&":  # complaints would be read as a number
            return False
    command = statement.get("Cmd") or {}
    match command.get("Type"):
        case "BinaryCmd" if command["Op"] == "|":
            return _numeric(walker, command["Y"], True) or _passes(walker, command["X"], command["Y"])
        case "BinaryCmd" if command["Op"] == "||":
            return _numeric(walker, command["X"], piped) and _numeric(walker, command["Y"], piped)
        case "CallExpr" if not command.get("Assigns"):
            words = [_one_word(word) for word in command.get("Args", ())]
            if not words or words[0] in walker.functions:
                return False
            return _counts(words, piped) or _KERNEL.fullmatch(_literally(statement)) is not None
        case _:
            return False


_TABLES = (
    (re.compile(r"free(?: -\w+)?"), re.compile(r"awk \s*(?:/[\w:^]+/|NR==\d+)\s*\{\s*print \$[2-7]\s*;?\s*\}\s*")),
    (
        re.compile(r"df(?: -\w+)? --output=(?:avail|used|size|iavail|iused|itotal) /[\w/.-]*"),
        re.compile(r"tail (?:-1|-n 1|-n1)"),
    ),
)
"""Programs whose tables hold nothing but numbers and words of their own, and what takes a number out."""


_KERNEL = re.compile(
    r"cat /sys/class/(?:thermal/thermal_zone\d+/temp|hwmon/hwmon\d+/\w+_input|net/[\w.-]+/statistics/\w+)"
    r"|awk \s*/\^?\w+:?/\s*\{\s*print \$2\s*;?\s*\} /proc/meminfo"
    r"|cut -d ?[. ] -f ?1 /proc/(?:uptime|loadavg)"
)
"""Numbers that the kernel itself tells."""


def _passes(walker: Walker, before: Node, last: Node) -> bool:
    """Whether the last stage takes one of the numbers that the stage before it prints."""
    first, then = _literally(before), _literally(last)
    if {text.split()[0] for text in (first, then) if text} & walker.functions:
        return False
    if any(table.fullmatch(first) and taken.fullmatch(then) for table, taken in _TABLES):
        return True
    filters = re.fullmatch(r"(?:sort|head|tail|uniq)(?: -[nru]+| -?\d+| -n ?\d+)*", then)
    return filters is not None and _numeric(walker, before, False)


def _literally(statement: Node) -> str:
    """A simple command of literal words, joined with blanks; else empty."""
    command = statement.get("Cmd") or {}
    if command.get("Type") != "CallExpr" or command.get("Assigns"):
        return ""
    if any(one.get("N", {}).get("Value") != "2" or one["Op"] == ">&" for one in statement.get("Redirs", ())):
        return ""
    words = [plain_text(word) for word in command.get("Args", ())]
    return " ".join(word for word in words if word is not None) if None not in words else ""


def _one_word(word: Node) -> str | None:
    """The text of a word that stays one word; a pattern from the root may become several, none an option."""
    text = plain_text(word)
    return None if text is None or (is_bare(word) and has_glob(text) and text[:1] != "/") else text


def _counts(words: list[str | None], piped: bool) -> bool:
    """Whether a program prints nothing but a number: `wc -l <FILE`, `nproc`, `date +%s`, `… | grep -c x`."""
    rest = words[1:]
    known = [word for word in rest if word is not None]
    match words[0]:
        case "wc":
            return piped and len(rest) == len(known) == 1 and re.fullmatch(r"-[lwcm]", known[0]) is not None
        case "grep" if None not in rest:
            options = [word for word in known if word.startswith("-")]
            operands = [word for word in known if not word.startswith("-")]
            counts = any(re.fullmatch(r"-[ciEFvwx]*c[ciEFvwx]*", word) for word in options)
            plain = all(re.fullmatch(r"-[cqsiEFvwx]+", word) for word in options)
            alone = len(operands) == 1 + (not piped) and not any(has_glob(word) for word in operands if word[:1] == "/")
            return counts and plain and alone
        case "tr":
            return (
                len(rest) == len(known) == 2
                and bool(_DELETE_OTHERS.fullmatch(known[0]))
                and known[1] in ("0-9", "[:digit:]")
            )
        case "date":
            return None not in rest and bool(known) and bool(_DATE.fullmatch(known[-1])) and known[:-1] in ([], ["-u"])
        case "seq":
            return bool(known) and None not in rest and all(re.fullmatch(r"-?\d+", word) for word in known)
        case "id":
            return rest in (["-u"], ["-g"])
        case "nproc":
            return rest in ([], ["--all"])
        case "stat":
            files = rest[2:]
            plain = bool(files) and all(word is not None and word[:1] == "/" for word in files)
            return plain and rest[0] in ("-c", "-Lc") and bool(_STAT.fullmatch(rest[1] or ""))
        case "echo" | "printf":
            return len(rest) == len(known) == 1 and re.fullmatch(r"\d+", known[0]) is not None
        case _:
            return False


# --- where the shell reckons --------------------------------------------------------------------


def judge(walker: Walker, node: Any, scene: Scene) -> None:
    """Judge an arithmetic expression, or the word that is one; what is substituted in it was judged by itself."""
    todo: list[Any] = [node]
    while todo:
        one = todo.pop()
        if not isinstance(one, dict):
            continue
        if "Parts" in one:
            if not walker.numbers.expression(walker, one):
                why = (
                    "The shell reckons with a value that is not known; a subscript in it would run a command. "
                    "${NAME//[^0-9]/} leaves only digits."
                )
                walker.unclear("arithmetic.value", scene.source.span(one), why, scene)
                return
        else:
            todo.extend(one.get(key) for key in ("X", "Y", "Init", "Cond", "Post", "Offset", "Length"))


def compared(walker: Walker, node: Any, scene: Scene) -> None:
    """Judge the comparisons of `[[ … ]]` that reckon, and `-v`, which evaluates a subscript."""
    todo: list[Any] = [node]
    while todo:
        one = todo.pop()
        if not isinstance(one, dict) or "Parts" in one:
            continue
        operator = one.get("Op")
        if one.get("Type") == "BinaryTest" and operator in COMPARES:
            judge(walker, one.get("X"), scene)
            judge(walker, one.get("Y"), scene)
            continue
        if one.get("Type") == "UnaryTest" and operator in ("-v", "-R"):
            text = plain_text(one.get("X") or {})
            if text is None or not re.fullmatch(r"[A-Za-z_]\w*(?:\[\d+\])?", text):
                why = "-v evaluates what stands in a subscript."
                walker.unclear("shell.test.v", scene.source.span(one), why, scene)
            continue
        todo.extend((one.get("X"), one.get("Y")))


def assigned(walker: Walker, name: str, node: Node, scene: Scene) -> None:
    """Judge an assignment to a variable of whose value the shell makes a number, and subscripts it is made at."""
    if node.get("Index") and not walker.numbers.is_keyed(name, scene):
        judge(walker, node["Index"], scene)
    if walker.numbers.is_integer(name):
        judge(walker, node.get("Value"), scene)
        for element in (node.get("Array") or {}).get("Elems", ()):
            judge(walker, element.get("Value"), scene)
