"""make mutants: how many of mutmut's mutants of the consent rules the tests kill; writes docs/mutation.md.

Modules as arguments (`domain/plan.py`, `domain/assent`) run only those, against the tests that are named beside them
(`tests/domain/test_plan.py`) or all, and change only their rows. The mutants are mutmut's own; they are played in forks
of one process that has imported the tests once, each only against the tests that reach its function, quickest first.
Nothing else is written into the tree: an importer hands the mutants out.
"""

from __future__ import annotations

import contextlib
import datetime
import difflib
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import io
import os
import resource
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "oikos"
EQUIVALENT = ROOT / "tools" / "equivalent.toml"
REPORT = ROOT / "docs" / "mutation.md"
GOAL = 95.0
"""Per cent of the mutants that have to be killed, the equivalent ones counted as alive."""

MODULES = (
    *("domain/assent/grammar.py", "domain/assent/text.py", "domain/plan.py", "domain/session.py"),
    *("domain/operator_rules.py", "domain/agent_rules.py", "domain/state.py", "domain/admission.py", "domain/gate.py"),
    *("domain/reach.py", "domain/creation.py", "domain/snapshot.py"),
)
"""What the promise rests on: the assent grammar, the plan, the session's door and rules, the gate, its token, and
what they ask about machines, created guests and snapshots."""
TESTS = ("tests/domain",)
WITHOUT = ("tests/domain/test_machine.py",)
"""Random lives: slow, and their finds differ from run to run."""
LONGEST_S = 0.25
"""A test that takes longer is not played: what it alone would notice counts as alive."""
MEMORY_BYTES = 2 << 30
TRAMPOLINE = "from mutmut.mutation.trampoline import wrap_in_trampoline as _mutmut_mutated, MutantDict"


class Mutant(NamedTuple):
    """One change to one function."""

    module: str
    """The file, under src/oikos."""
    name: str
    function: str
    diff: tuple[str, ...]
    """The lines that differ, `-` and `+` in front."""


def dotted(module: str) -> str:
    """`domain/plan.py` as it is imported."""
    return f"oikos.{module.removesuffix('.py').replace('/', '.')}"


def mutants_of(module: str) -> tuple[str, list[Mutant]]:
    """A module's source with all mutants inside, and their names."""
    from mutmut.mutation.file_mutation import mutate_file_contents

    text = (SOURCE / module).read_text(encoding="utf-8")
    mutated = mutate_file_contents(module, text)
    lines = mutated.code.split("\n")

    def body(name: str, function: str) -> list[str]:
        span = mutated.line_span_by_function_name[name]
        found = lines[span.start - 1 : span.end]
        return [line.replace(name, function) for line in found]

    mutants = []
    for name in mutated.mutant_names:
        mangled = name.partition("__mutmut_")[0]
        function = mangled.removeprefix("x_").replace("ǁ", ".").removeprefix("x.")
        before, after = body(f"{mangled}__mutmut_orig", function), body(name, function)
        changed = [line for line in difflib.ndiff(before, after) if line[:2] in ("- ", "+ ")]
        diff = tuple(f"{line[0]} {line[2:].strip()}" for line in changed)
        mutants.append(Mutant(module, f"{dotted(module)}.{name}", function, diff))
    return mutated.code, mutants


class Importer(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Hands out the modules with mutants inside instead of the files, and keeps what each function can become."""

    def __init__(self, sources: dict[str, tuple[Path, str]]) -> None:
        self.sources = sources
        self.functions: dict[str, tuple[FunctionType, dict[str, FunctionType]]] = {}
        """A function, by module and mangled name, and its mutants."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self.sources:
            return None
        return importlib.util.spec_from_file_location(fullname, self.sources[fullname][0], loader=self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Run the module; mutmut's trampoline is not called, so that a function costs what it always does."""
        path, code = self.sources[module.__name__]
        wrapped: list[tuple[FunctionType, dict[str, FunctionType]]] = []

        def trampoline(mutants: dict[str, FunctionType], **_: bool) -> Callable[[FunctionType], FunctionType]:
            def keep(function: FunctionType) -> FunctionType:
                wrapped.append((function, mutants))
                return function

            return keep

        vars(module).update(_mutmut_mutated=trampoline, MutantDict=dict)
        exec(compile(code.replace(TRAMPOLINE, ""), f"<mutants of {path.name}>", "exec"), vars(module))
        for function, mutants in wrapped:
            mangled = mutants["_mutmut_orig"].__name__.partition("__mutmut_")[0]
            self.functions[f"{module.__name__}.{mangled}"] = (function, mutants)

    def probe(self, hit: Callable[[str], None]) -> None:
        """Make each function say once that it is called."""

        def called(name: str) -> None:
            self.become(name, "_mutmut_orig")
            hit(name)

        for name, (function, _) in self.functions.items():
            function.__globals__["_probe"] = called
            function.__globals__.setdefault("_probed", {})[name] = function
            text = f"lambda *words, **more: (_probe({name!r}), _probed[{name!r}](*words, **more))[1]"
            function.__code__ = eval(text, function.__globals__).__code__

    def become(self, name: str, mutant: str) -> None:
        """Give a function the body of one of its mutants."""
        function, mutants = self.functions[name]
        other = getattr(mutants[mutant], "__func__", mutants[mutant])
        function.__code__ = other.__code__
        function.__defaults__, function.__kwdefaults__ = other.__defaults__, other.__kwdefaults__


def own_loop(item: pytest.Item) -> bool:
    """Whether something stands around the test: an event loop, a skip."""
    return any(mark.name in ("anyio", "skipif", "skip", "usefixtures") for mark in item.iter_markers())


@dataclass(eq=False)
class Player:
    """A pytest plugin that, instead of running the tests once, runs them against each mutant."""

    mutants: list[Mutant]
    importer: Importer
    survivors: list[Mutant] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """Tests that fail without any mutant."""
    failed: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    reached: defaultdict[str, list[pytest.Item]] = field(default_factory=lambda: defaultdict(list))
    """The tests that call a function of these modules."""
    killers: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        from hypothesis import Phase, settings

        once = settings(settings.get_profile("repeatable"), phases=(Phase.explicit, Phase.generate), database=None)
        settings.register_profile("mutants", once)
        settings.load_profile("mutants")
        self.caches = [
            held.cache_clear
            for mutant in {mutant.module for mutant in self.mutants}
            for held in vars(sys.modules[dotted(mutant)]).values()
            if hasattr(held, "cache_clear")
        ]
        self.rehearse(session.items)
        if self.broken:
            return True
        gc.collect()
        gc.freeze()
        for number, mutant in enumerate(self.mutants):
            if not self.kills(mutant):
                self.survivors.append(mutant)
                print(mutant.module, mutant.function, *mutant.diff, sep="\n  ", file=sys.stderr)
            if number % 50 == 0:
                print(f"{number}/{len(self.mutants)}, {len(self.survivors)} alive", file=sys.stderr, flush=True)
        return True

    def play(self, item: pytest.Item) -> bool:
        """Run one test; whether it failed. A test without fixtures is called past pytest, in a tenth of the time."""
        self.failed = False
        params = item.callspec.params if hasattr(item, "callspec") else {}
        if isinstance(item, pytest.Function) and set(item._fixtureinfo.argnames) <= set(params) and not own_loop(item):
            try:
                item.obj(**{name: params[name] for name in item._fixtureinfo.argnames})
            except (Exception, pytest.fail.Exception):  # that a test fails is what is asked
                return True
            return False
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return self.failed

    def rehearse(self, items: list[pytest.Item]) -> None:
        """Run every test without a mutant, to learn its seconds and what it reaches."""
        for item in items:
            for clear in self.caches:
                clear()
            called: set[str] = set()
            self.importer.probe(called.add)
            begun = time.process_time()
            if self.play(item):
                self.broken.append(item.nodeid)
            self.seconds[item.nodeid] = time.process_time() - begun
            for function in called if self.seconds[item.nodeid] < LONGEST_S else ():
                self.reached[function].append(item)
        for function in self.importer.functions:
            self.importer.become(function, "_mutmut_orig")

    def kills(self, mutant: Mutant) -> bool:
        """Whether a test fails, or runs far too long or large, with the mutant in place."""
        function = mutant.name.partition("__mutmut_")[0]
        known = self.killers[function]
        tests = sorted(self.reached[function], key=lambda item: (-known[item.nodeid], self.seconds[item.nodeid]))
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            self.try_out(mutant, tests, writer)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            killer = pipe.read().decode()
        _, status = os.waitpid(child, 0)
        if killer:
            known[killer] += 1
        return status != 0

    def try_out(self, mutant: Mutant, tests: list[pytest.Item], writer: int) -> None:
        """In the fork: exits with 1 at the first test that fails, 0 when none does."""
        allowed_s = 10 + int(5 * sum(self.seconds[item.nodeid] for item in tests))
        resource.setrlimit(resource.RLIMIT_CPU, (allowed_s, allowed_s + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        try:
            for clear in self.caches:
                clear()
            self.importer.become(mutant.name.partition("__mutmut_")[0], mutant.name.rpartition(".")[2])
            for item in tests:
                if self.play(item):
                    os.write(writer, item.nodeid.encode())
                    os._exit(1)
        except BaseException:  # whatever leaves pytest's own handling is a mutant that was noticed
            os._exit(1)
        os._exit(0)


def play(modules: Sequence[str], tests: Sequence[str]) -> Player:
    """All mutants of some modules against the tests."""
    sources, mutants = {}, []
    for module in modules:
        code, found = mutants_of(module)
        sources[dotted(module)] = (SOURCE / module, code)
        mutants += found
    importer = Importer(sources)
    sys.meta_path.insert(0, importer)
    player = Player(mutants, importer)
    ignored = [f"--ignore={path}" for path in WITHOUT]
    plain = ["-q", "-s", "-p", "no:cacheprovider", "-m", "not slow", "--inline-snapshot=disable", "--color=no"]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        pytest.main([*plain, *ignored, *tests], plugins=[player])
    if player.broken or not player.seconds:
        print(said.getvalue())
    return player


# ---- the report ------------------------------------------------------------------------------------------------------


def equivalents() -> dict[tuple[str, str, str], str]:
    """Why a mutant behaves as the original, by module, function and changed lines."""
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["mutant"] if EQUIVALENT.exists() else []
    return {(entry["module"], entry["function"], entry["diff"].strip()): entry["why"] for entry in entries}


def key(mutant: Mutant) -> tuple[str, str, str]:
    return mutant.module, mutant.function, "\n".join(mutant.diff)


def rows(player: Player, known: dict[tuple[str, str, str], str]) -> Iterator[tuple[str, int, int, int, int, float]]:
    """A module, its mutants, those killed, alive, of them equivalent, per cent killed."""
    for module in dict.fromkeys(mutant.module for mutant in player.mutants):
        every = sum(mutant.module == module for mutant in player.mutants)
        alive = [mutant for mutant in player.survivors if mutant.module == module]
        same = sum(key(mutant) in known for mutant in alive)
        yield module, every, every - len(alive), len(alive), same, 100 * (every - len(alive)) / every


HEAD = """# Mutants

    make mutants                                      # all modules, about a quarter of an hour
    python tools/mutate.py domain/plan.py             # one of them, and what is alive in it

How many of mutmut's mutants of the consent rules the tests of the domain kill. A mutant is one small change to one
function; it is killed when a test fails, or runs far too long, with it in place. Not played are tests that take
{longest} s or more, and the random lives of `tests/domain/test_machine.py`. What mutmut does not change: decorated
functions, annotations, what stands outside of functions (the tables of `assent/words.py`, of which
`tests/domain/test_assent.py` shows that each entry is needed).

| module | day | mutants | killed | alive | of them equivalent | killed | killed of those that are none |
|---|---|---|---|---|---|---|---|
"""


def write(table: Sequence[tuple[str, int, int, int, int, float]], known: dict[tuple[str, str, str], str]) -> None:
    """Puts what was measured in the place of what stood there, and leaves the other modules' rows."""
    old = REPORT.read_text(encoding="utf-8").splitlines() if REPORT.exists() else []
    kept = {line.split("`")[1]: line for line in old if line.startswith("| `domain/")}
    for module, every, killed, alive, same, percent in table:
        counted = f"{every} | {killed} | {alive} | {same} | {percent:.1f} % | {100 * killed / (every - same):.1f} %"
        kept[module] = f"| `{module}` | {datetime.date.today():%Y-%m-%d} | {counted} |"
    lines = [kept[module] for module in MODULES if module in kept]
    text = HEAD.format(longest=LONGEST_S) + "\n".join(lines) + "\n\n## Equivalent mutants\n"
    for (module, function, diff), why in sorted(known.items()):
        text += f"\n`{module}`, `{function}`: {why}\n\n```diff\n{diff}\n```\n"
    REPORT.write_text(text, encoding="utf-8")


def main(words: Sequence[str]) -> int:
    """Plays the mutants; 1 when a module misses the goal or the list of equivalents is wrong."""
    os.chdir(ROOT)
    os.environ["CI"] = "1"  # repeatable hypothesis
    sys.dont_write_bytecode = True
    tests = [word for word in words if word.startswith("tests/")]
    words = [word for word in words if word not in tests]
    modules = [module for module in MODULES if not words or any(module.startswith(word) for word in words)]
    if not modules:
        print(f"mutate: no module begins with {' or '.join(words)}; there are: {', '.join(MODULES)}")
        return 1
    begun = time.monotonic()
    player = play(modules, tests or TESTS)
    if player.broken or not player.seconds:
        print(f"mutate: without a mutant {len(player.broken)} of {len(player.seconds)} tests fail: {player.broken[:3]}")
        return 1
    known = equivalents()
    table = list(rows(player, known))
    for module, every, killed, alive, same, percent in table:
        print(
            f"{module:<28} {every:>5} mutants {killed:>5} killed {alive:>3} alive ({same} equivalent) {percent:5.1f} %"
        )
    for mutant in player.survivors:
        if key(mutant) not in known:
            print(f"\n{mutant.module} {mutant.function} ({mutant.name.rpartition('_')[2]})", *mutant.diff, sep="\n  ")
    listed = {entry for entry in known if entry[0] in modules}
    stale = listed - {key(mutant) for mutant in player.survivors}
    for module, function, diff in sorted(stale):
        print(f"\nmutate: {module} {function} is listed as equivalent and is none:\n{diff}")
    write(table, known)
    print(f"\n{len(player.seconds)} tests, {time.monotonic() - begun:.0f} s")
    return int(bool(stale) or any(percent < GOAL for *_, percent in table))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
