"""The house rules that no common linter knows (DESIGN 6.5, T33): read from the syntax tree, one finding a line.

A finding is allowed by a comment on its line: `# allow: RULE - reason`. An allowance without a reason, or one that
nothing needs, is a finding itself.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]

RULES = {
    "bare-task": "tasks belong to a TaskGroup: a task nobody awaits loses its errors",
    "clock": "time comes from the Clock port, so that a test or a jump of the clock can be played",
    "shell": "commands start from a list of words, never through a shell of this machine (T33)",
    "mock-patch": "no patched modules: hand in a fake that passes the port's contract tests",
    "test-sleep": "no sleeps in tests: wait for the event, bounded (tests/wait.py)",
    "print": "only the faces (cli, lab, the evals' report) print; product code returns or logs",
    "pure": "domain is pure: standard library only, no input or output, no clock, no chance",
    "gate-only": "only domain/gate.py makes an Admission; everyone else asks it",
    "library-room": "this library is wrapped by one room; use that room's port",
    "excuse": "what is switched off or caught whole needs its reason in a comment beside it",
    "address": "no registry's host name and no path of one machine in the project's files",
    "allow": "an allowance names a rule, gives a reason, and is needed",
}

PRODUCT_EXEMPT = ("lab",)
"""Rooms under src/oikos that are not product: nothing in the product imports them."""
PRINTING = ("cli", "lab", "evals/report.py", "evals/report")
CLOCK_HOME = "src/oikos/adapters/clock.py"

TIME_SOURCES = {
    *(f"time.{name}" for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time", "clock_gettime")),
    *(f"time.{name}_ns" for name in ("time", "monotonic", "perf_counter", "process_time", "clock_gettime")),
    "time.sleep",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.datetime.today",
    "datetime.date.today",
}
SHELLS = {
    "os.system",
    "os.popen",
    "subprocess.getoutput",
    "subprocess.getstatusoutput",
    "asyncio.create_subprocess_shell",
}
LOOSE_TASKS = {"asyncio.create_task", "asyncio.ensure_future", "asyncio.tasks.create_task"}
GROUP = re.compile(r"(?:^|_)(?:tg|group|tasks|nursery)$")
SLEEPS = {"time.sleep", "asyncio.sleep", "anyio.sleep", "trio.sleep"}
IMPURE = {
    *("asyncio", "threading", "multiprocessing", "concurrent", "queue", "selectors", "signal", "sched", "contextvars"),
    *("os", "io", "pathlib", "shutil", "tempfile", "glob", "fileinput", "mmap", "fcntl", "pty", "tty", "resource"),
    *("socket", "ssl", "http", "urllib", "ftplib", "smtplib", "socketserver", "xmlrpc", "subprocess", "sqlite3"),
    *("time", "random", "secrets", "uuid", "logging", "sys", "platform", "getpass", "ctypes", "importlib", "locale"),
}
PURE_EXCEPT = {("src/oikos/domain/admission.py", "secrets"), ("src/oikos/domain/mask.py", "urllib.parse")}
"""The key of this process that seals Admissions decides nothing; urllib.parse is text in, text out."""
GATE = ("src/oikos/domain/gate.py", "src/oikos/domain/admission.py")
LIBRARY_ROOMS = {
    "sqlalchemy": ("adapters/store",),
    "alembic": ("adapters/store",),
    "sqlite3": ("adapters/store",),
    "asyncssh": ("adapters/fleet",),
    "h11": ("adapters/model",),
    "click": ("cli",),
    "starlette": ("web",),
    "uvicorn": ("web",),
    "tree_sitter": ("policy",),
    "tree_sitter_bash": ("policy",),
}
"""Which room wraps a library; rooms that are not product may use any."""

# Written in parts, so that this file passes its own rule.
ADDRESSES = re.compile(
    "|".join(
        [
            r"(?<![\w./-])/{}/(?:main|shared)\b".format("work"),
            r"/root/\.{}".format("pyenv"),
            r"/opt/{}".format("(?:wheels|pypi)"),
            *(
                re.escape(".".join(words))
                for words in (
                    ("pypi", "org"),
                    ("pythonhosted", "org"),
                    ("registry", "npmjs", "org"),
                    ("npmjs", "com"),
                    ("deb", "debian", "org"),
                    ("security", "debian", "org"),
                    ("archive", "ubuntu", "com"),
                    ("proxy", "golang", "org"),
                    ("static", "crates", "io"),
                )
            ),
        ]
    )
)
LOOKED_AT = (ast.Import, ast.ImportFrom, ast.Attribute, ast.Call, ast.Name, ast.ExceptHandler)
"""The kinds of nodes that some rule looks at; the rest of a tree is skipped."""
ALLOW = re.compile(r"#\s*allow:\s*([\w-]*)\s*(?:-\s*(.*))?$")
EXCUSED = re.compile(
    r"#\s*(?:type:\s*ignore(?:\[[^\]]*\])?|noqa(?::\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*)?|pragma:\s*no\s+(?:cover|mutate))(.*)$"
)
UNFINISHED = re.compile(r"#.*\b(?:{}|{}|{})\b(.*)$".format("TO" + "DO", "FIX" + "ME", "X" + "XX"))


class Finding(NamedTuple):
    """One broken rule at one place."""

    path: str
    line: int
    rule: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.what} ({RULES[self.rule]})"


class Place(NamedTuple):
    """What a file is, judged by its path under the root."""

    path: str

    @property
    def room(self) -> str:
        """The path under src/oikos, or an empty string outside of it."""
        return self.path.removeprefix("src/oikos/") if self.path.startswith("src/oikos/") else ""

    @property
    def product(self) -> bool:
        return bool(self.room) and not self.within(PRODUCT_EXEMPT)

    @property
    def tests(self) -> bool:
        return self.path.startswith("tests/")

    def within(self, rooms: tuple[str, ...]) -> bool:
        return any(self.room == room or self.room.startswith((f"{room}/", f"{room}.py")) for room in rooms)


def names_of(nodes: Sequence[ast.AST]) -> dict[str, str]:
    """Local name -> dotted name, for every import of the file, wherever it stands."""
    names: dict[str, str] = {}
    for node in nodes:
        match node:
            case ast.Import():
                for alias in node.names:
                    names[alias.asname or alias.name.partition(".")[0]] = (
                        alias.name if alias.asname else alias.name.partition(".")[0]
                    )
            case ast.ImportFrom(module=str(module), level=0):
                for alias in node.names:
                    names[alias.asname or alias.name] = f"{module}.{alias.name}"
            case _:
                pass
    return names


def dotted(node: ast.expr, names: dict[str, str]) -> str:
    """The dotted name an expression refers to through the file's imports; empty when it is none."""
    match node:
        case ast.Name(id=name):
            return names.get(name, "")
        case ast.Attribute(value=value, attr=attr):
            head = dotted(value, names)
            return f"{head}.{attr}" if head else ""
        case _:
            return ""


def imported(node: ast.AST) -> list[str]:
    """The modules an import statement names."""
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom(module=str(module), level=0):
            return [module]
        case _:
            return []


def syntax(place: Place, nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str, str]]:
    """Findings of the rules that look at the tree: line, rule, what."""
    names = names_of(nodes)
    for node in nodes:
        line = getattr(node, "lineno", 1)
        for module in imported(node):
            yield from ((line, rule, what) for rule, what in imports(place, module))
        match node:
            case ast.ImportFrom(module=str(module), level=0):
                for alias in node.names:
                    yield from references(place, line, f"{module}.{alias.name}")
            case ast.Attribute():
                yield from references(place, line, dotted(node, names))
            case _:
                pass
        if isinstance(node, ast.Call):
            yield from calls(place, node, names)


def imports(place: Place, module: str) -> Iterator[tuple[str, str]]:
    """What a file may not import."""
    top = module.partition(".")[0]
    if place.room.startswith("domain/"):
        if top == "oikos":
            pass  # the layers contract judges it
        elif (place.path, module) in PURE_EXCEPT:
            pass
        elif top in IMPURE or (top not in sys.stdlib_module_names and top != "__future__"):
            yield "pure", f"imports {module}"
    elif place.product and top in LIBRARY_ROOMS and not place.within(LIBRARY_ROOMS[top]):
        yield "library-room", f"imports {module}, which belongs to {', '.join(LIBRARY_ROOMS[top])}"
    if module == "unittest.mock" or top == "mock":
        yield "mock-patch", f"imports {module}"


def references(place: Place, line: int, name: str) -> Iterator[tuple[int, str, str]]:
    """What a file may not refer to, called or not: a clock handed on as a default is a clock."""
    if place.product and place.path != CLOCK_HOME and name in TIME_SOURCES:
        yield line, "clock", name
    if name in SHELLS:
        yield line, "shell", name
    if place.product and name in LOOSE_TASKS:
        yield line, "bare-task", name
    if name == "unittest.mock":
        yield line, "mock-patch", name
    if place.room and place.path not in GATE and re.fullmatch(r"oikos\.domain\.admission\.(?!Admission\b).+", name):
        yield line, "gate-only", name


def calls(place: Place, node: ast.Call, names: dict[str, str]) -> Iterator[tuple[int, str, str]]:
    """What a file may not call."""
    line, function = node.lineno, dotted(node.func, names)
    for keyword in node.keywords:
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else ...
        if keyword.arg == "shell" and (value is True or (function.startswith("subprocess.") and value is not False)):
            yield line, "shell", "a call with shell="
    if place.product and isinstance(node.func, ast.Attribute) and not function:
        owner = node.func.value
        last = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
        if node.func.attr == "ensure_future" or (node.func.attr == "create_task" and not GROUP.search(last)):
            yield line, "bare-task", f"{ast.unparse(node.func)}; a TaskGroup is called tg, group or tasks"
    if place.tests and function in SLEEPS:
        zero = node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
        if not zero:
            yield line, "test-sleep", function
    if place.tests and ast.unparse(node.func).startswith("mocker."):
        yield line, "mock-patch", ast.unparse(node.func)
    if place.product and not place.within(PRINTING) and isinstance(node.func, ast.Name) and node.func.id == "print":
        yield line, "print", "print"


def excuses(place: Place, nodes: Sequence[ast.AST], comments: dict[int, str]) -> Iterator[tuple[int, str, str]]:
    """Things switched off, left open or caught whole, without a reason."""
    for line, comment in comments.items():
        for pattern, what in ((EXCUSED, "a rule is switched off"), (UNFINISHED, "something is unfinished")):
            if (found := pattern.search(comment)) and len(found[1].strip(" #:-,.")) < 8:
                yield line, "excuse", what
    for node in nodes:
        match node:
            case ast.ExceptHandler(type=caught):
                whole = caught is None or ast.unparse(caught) in {"Exception", "BaseException"}
                passed_on = isinstance(node.body[-1], ast.Raise)
                near = (node.lineno - 1, node.lineno, node.body[0].lineno, node.body[0].lineno - 1)
                if whole and not passed_on and not place.tests and not any(line in comments for line in near):
                    yield node.lineno, "excuse", "every exception is caught"
            case ast.Name(id="NotImplementedError") | ast.Call(func=ast.Name(id="NotImplementedError")):
                if node.lineno not in comments:
                    yield node.lineno, "excuse", "something is not implemented"
            case ast.Call(func=ast.Attribute(attr="skip" | "skipif" | "xfail")) if place.tests:
                if not any(keyword.arg == "reason" for keyword in node.keywords) and not node.args:
                    yield node.lineno, "excuse", "a test is skipped"
            case _:
                pass


def comments_of(source: str) -> dict[int, str]:
    """Line -> its comment."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}


def addresses(path: str, source: str) -> Iterator[Finding]:
    """Host names of registries and paths of one machine, in any text file."""
    for found in ADDRESSES.finditer(source):
        yield Finding(path, source.count("\n", 0, found.start()) + 1, "address", found[0])


def lint(path: str, source: str) -> list[Finding]:
    """Every finding in one file; `path` is relative to the root, with slashes."""
    found = list(addresses(path, source))
    if not path.endswith(".py"):
        return found
    place, comments = Place(path), comments_of(source)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, LOOKED_AT)]
    raw = {*syntax(place, nodes), *excuses(place, nodes, comments)}
    found += [Finding(path, *row) for row in raw]
    allowed = {line: match for line, comment in comments.items() if (match := ALLOW.search(comment))}
    kept = [one for one in found if one.line not in allowed or allowed[one.line][1] != one.rule]
    for line, match in allowed.items():
        if match[1] not in RULES or len((match[2] or "").strip()) < 8:
            kept.append(Finding(path, line, "allow", f"'{match[0]}' does not read '# allow: RULE - reason'"))
        elif not any(one.line == line and one.rule == match[1] for one in found):
            kept.append(Finding(path, line, "allow", f"nothing here breaks {match[1]}"))
    return sorted(kept)


def files(root: Path) -> list[str]:
    """The project's own files: what git tracks or would, or, in a plain copy, what lies there."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if (root / ".git").exists() and listed.returncode == 0:
        return sorted(path for path in listed.stdout.split("\0") if path and (root / path).is_file())
    skipped = {".git", ".venv", ".cache", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", "__pycache__"}
    found = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in found if not skipped & set(path.parts))


def main(root: Path = ROOT) -> int:
    """Prints every finding; 1 when there is one."""
    broken = 0
    for path in files(root):
        try:
            source = (root / path).read_text("utf-8")
        except UnicodeDecodeError:
            continue  # not text: nobody reads an address in it
        for finding in lint(path, source):
            print(finding)
            broken += 1
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT))
