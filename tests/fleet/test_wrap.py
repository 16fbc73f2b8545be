"""The canonical builder: what is sent arrives to the byte, through every shell on the way."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from oikos.adapters.fleet import wrap
from oikos.adapters.fleet.wrap import Endpoint, Way
from oikos.domain.errors import TargetError
from oikos.domain.inventory import AccessPath, Become, Entity, Inventory, Transport

TEXTS = st.text(alphabet=st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=60)
SHELLS = [path for path in (["dash"], ["bash"], ["bash", "--posix"], ["busybox", "ash"]) if
          any((Path(place) / path[0]).exists() for place in ("/bin", "/usr/bin"))]  # fmt: skip
FAR = Endpoint(name="far", address="far", port=22, user="root", key="", host_keys=())

HARD = [
    "it's", '"$HOME" `id` $(id) ${x}', "a\nb\n", "* ? [a-z] ~ {a,b}", "-n", "--", "\u0101\u00e9\u4e2d\u202e",
    "\\ \\\\ \\n",
    "! # % & ; | < > ( )", "\x01\x7f\x81", "'\"'\"'", "",
]  # fmt: skip


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@settings(max_examples=40)
@given(text=TEXTS, depth=st.integers(1, 3))
def test_a_word_passes_nested_shells_unchanged(shell: list[str], text: str, depth: int) -> None:
    words = ["printf", "%s", text]
    for _ in range(depth - 1):
        words = ["sh", "-c", 'exec "$@"', "sh", *words]
    line = Way(endpoint=FAR).text(words)
    done = subprocess.run([*shell, "-c", line], capture_output=True, check=True, env={"HOME": "/", "PATH": wrap.PATH})
    assert done.stdout == text.encode()


@pytest.mark.parametrize("text", HARD)
@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_hard_words_pass_unchanged(shell: list[str], text: str) -> None:
    command = f"printf %s {wrap.shlex.quote(text)}"
    line = Way(endpoint=FAR).text(wrap.announced("mark", wrap.plain(("sh",), command)))
    done = subprocess.run([*shell, "-c", line], capture_output=True, check=True, env={"HOME": "/", "PATH": wrap.PATH})
    first, _, rest = done.stdout.partition(b"\n")
    assert (first[:5], rest) == (b"mark ", text.encode())


@given(TEXTS)
@example("a")
def test_a_command_is_one_word_of_the_program(text: str) -> None:
    assert wrap.plain(wrap.BASH, text) == ["bash", "--noprofile", "--norc", "-c", text]


@pytest.mark.parametrize(
    ("text", "cause"), [("a\0b", "NUL"), ("a\ud800b", "not valid Unicode"), ("x" * 200_000, "longer")]
)
def test_what_no_shell_can_be_given_is_refused(text: str, cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        wrap.plain(wrap.SH, text)


def test_every_machine_on_the_way_gets_the_fixed_environment() -> None:
    way = Way(endpoint=FAR, guests=((Transport.PCT, "101"), (Transport.DOCKER, "db")), sudo=True)
    words = way.words(["id"])
    assert [words[i : i + 2] for i, word in enumerate(words) if word == wrap.ENV] == [[wrap.ENV, "-i"]] * 2
    assert [word for word in words if word.startswith("HOME=")] == ["HOME=/root", "HOME=/root"]
    assert words[:4] == ["sudo", "-n", "-H", "--"]
    start = words.index("pct")
    assert words[start : start + 4] == ["pct", "exec", "101", "--"]
    start = words.index("docker")
    assert words[start : start + 4] == ["docker", "exec", "-i", "db"]
    assert words[-1] == "id"
    assert words.count("PAGER=cat") == 3


def entity(slug: str, transport: Transport, **access: object) -> Entity:
    """A machine with one way in."""
    return Entity(id=slug, kind="host", slug=slug, access=AccessPath(transport=transport, **access))  # type: ignore[arg-type]  # a test's shorthand


@pytest.mark.parametrize(
    ("target", "others", "cause"),
    [
        (entity("a", Transport.SSH, address="-oProxyCommand=x"), (), "no address"),
        (entity("a", Transport.SSH, address="h;id"), (), "no address"),
        (entity("a", Transport.SSH, address="h", user="-l"), (), "no user name"),
        (entity("a", Transport.SSH, address="h", user="r;id"), (), "no user name"),
        (entity("a", Transport.SSH, address="h", port=0), (), "no port"),
        (entity("a", Transport.PCT, guest="1; id", via="n"), (entity("n", Transport.LOCAL),), "no pct guest"),
        (entity("a", Transport.DOCKER, guest="-v", via="n"), (entity("n", Transport.LOCAL),), "no docker guest"),
        (entity("a", Transport.PCT, guest="101"), (), "needs 'via'"),
        (entity("a", Transport.SSH, address="h", via="n"), (entity("n", Transport.LOCAL),), "cannot lie behind"),
        (entity("a", Transport.LOCAL, via="n"), (entity("n", Transport.SSH, address="h"),), "is local"),
    ],
)
def test_words_that_could_become_options_or_commands_are_refused(
    target: Entity, others: tuple[Entity, ...], cause: str
) -> None:
    route = Inventory(entities={e.id: e for e in (target, *others)}).route(target)
    assert route is not None
    with pytest.raises(TargetError, match=cause):
        wrap.follow(route)


def test_a_route_becomes_a_way() -> None:
    jump = entity("j", Transport.SSH, address="10.0.0.1", user="me", become=Become.SUDO)
    node = entity("n", Transport.SSH, address="fe80::1%eth0", port=2222, via="j")
    inside = entity("c", Transport.PCT, guest="101", via="n")
    route = Inventory(entities={e.id: e for e in (jump, node, inside)}).route(inside)
    assert route is not None
    first = Endpoint(name="j", address="10.0.0.1", port=22, user="me", key="", host_keys=())
    second = Endpoint(name="n", address="fe80::1%eth0", port=2222, user="root", key="", host_keys=(), jump=first)
    assert wrap.follow(route) == Way(endpoint=second, guests=((Transport.PCT, "101"),), name="c")
    assert str(second) == "root@[fe80::1%eth0]:2222"
