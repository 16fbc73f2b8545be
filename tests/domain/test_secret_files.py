"""Secret files in a command: which are named, what the shell reads, and how a verdict on that is told."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oikos.domain.mask import mask_text
from oikos.domain.secret_files import StandIn, directory, named_in, placed
from oikos.domain.verdict import Action, Effect, EffectKind, Hop, HopKind, NamedObject, Reason, Risk, Verdict

RUN = "0123456789abcdef" * 2


def test_each_secret_is_named_once_and_every_place_gets_its_path() -> None:
    odd = "{{secret:z}} {{secret_file:}} {{secret_file:a b}}"
    command = f"a {{{{secret_file:x-1}}}} '{{{{secret_file:Y_2}}}}'{{{{secret_file:x-1}}}} {odd}"
    assert named_in(command) == ("x-1", "Y_2")
    assert placed(command, RUN) == (f"a /tmp/oikos-{RUN}/x-1 '/tmp/oikos-{RUN}/Y_2'/tmp/oikos-{RUN}/x-1 {odd}")
    assert named_in("ls {{secret:z}}") == ()


@given(st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True))
def test_a_path_holds_no_character_that_a_shell_reads(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9/_-]+", placed(f"{{{{secret_file:{name}}}}}", RUN))


@pytest.mark.parametrize(
    "command",
    [
        "restic --password-file {{secret_file:repo_password}} snapshots", "x --password={{secret_file:token}}",
        "RESTIC_PASSWORD_FILE={{secret_file:p}} restic snapshots", "mysql --defaults-extra-file={{secret_file:key}}",
        "ssh -i '{{secret_file:private_key}}' h", 'curl --key "{{secret_file:tls-key}}" https://h',
        "PGPASSFILE={{secret_file:pg}} psql",
    ],
)  # fmt: skip
def test_a_reference_looks_like_no_secret(command: str) -> None:
    assert mask_text(command) == command


def test_a_verdict_speaks_of_the_references_again() -> None:
    command = "x {{secret_file:a}} -- {{secret_file:bc}}y"
    stand_in = StandIn(command=command, run_id=RUN)
    path, other = f"{directory(RUN)}/a", f"{directory(RUN)}/bc"
    assert stand_in.text == f"x {path} -- {other}y"
    at, last = stand_in.text.index(other), len(stand_in.text)
    hop = Hop(kind=HopKind.SSH, name=f"h{path}")
    verdict = Verdict(
        risk=Risk.DESTRUCTIVE, canonical=stand_in.text, advice=f"not {path}",
        effects=(Effect(kind=EffectKind.SENSITIVE, object=path),),
        reasons=(
            Reason(rule="r", risk=Risk.READ_ONLY, span=(2, at - 4), text=f"Reads {path}.", via=(f"sudo {path}",)),
            Reason(rule="r", risk=Risk.READ_ONLY, span=(at + 3, at + 5), text=f"Moves into {directory(RUN)}.", via=()),
        ),
        actions=(Action(argv=("x", path, None), place=(hop,), risk=Risk.READ_ONLY, span=(0, last)),),
        objects=(NamedObject(kind="file", name=other, place=(hop,)),),
    )  # fmt: skip
    told = stand_in.told(verdict)
    back = Hop(kind=HopKind.SSH, name="h{{secret_file:a}}")
    assert told == Verdict(
        risk=Risk.DESTRUCTIVE, canonical="x {{secret_file:a}} -- {{secret_file:bcy}}", advice="not {{secret_file:a}}",
        effects=(Effect(kind=EffectKind.SENSITIVE, object="{{secret_file:a}}"),),
        reasons=(
            Reason(rule="r", risk=Risk.READ_ONLY, span=(2, 19), text="Reads {{secret_file:a}}.",
                   via=("sudo {{secret_file:a}}",)),
            Reason(rule="r", risk=Risk.READ_ONLY, span=(23, 41), text="Moves into /tmp/oikos-RUN.", via=()),
        ),
        actions=(
            Action(argv=("x", "{{secret_file:a}}", None), place=(back,), risk=Risk.READ_ONLY, span=(0, len(command))),
        ),
        objects=(NamedObject(kind="file", name="{{secret_file:bc}}", place=(back,)),),
    )  # fmt: skip
    assert command[2:19] == "{{secret_file:a}}"
    assert RUN not in repr(told)


PIECES = ["{{secret_file:a}}", "{{secret_file:bcd}}", " ", "word", "é{", "}}"]


@given(st.lists(st.sampled_from(PIECES), max_size=8), st.data())
def test_spans_of_what_is_no_reference_stay_on_it(pieces: list[str], data: st.DataObject) -> None:
    stand_in = StandIn(command="".join(pieces), run_id=RUN)
    plain = [number for number, piece in enumerate(pieces) if not named_in(piece)]
    if not plain or named_in(stand_in.command) != named_in(" ".join(pieces)):
        return
    number = data.draw(st.sampled_from(plain))
    before = placed("".join(pieces[:number]), RUN)
    span = (len(before), len(before) + len(pieces[number]))
    verdict = Verdict(risk=Risk.READ_ONLY, reasons=(Reason(rule="r", risk=Risk.READ_ONLY, span=span, text="t"),))
    first, last = stand_in.told(verdict).reasons[0].span
    assert stand_in.command[first:last] == pieces[number]
