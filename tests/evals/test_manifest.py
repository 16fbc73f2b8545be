"""Manifests: what a good one means, and the one line that is said of each bad one."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
import yaml

from oikos import data
from oikos.domain.errors import ConfigError
from oikos.domain.inventory import Mode
from oikos.evals.expect import Assertion
from oikos.evals.manifest import Crash, Followup, Injected, Known, Manifest, OperatorRule, find, load

GOOD = "name: x\nprompt: y\nexpect: [completes]\n"
BAD = cast("list[dict[str, str]]", yaml.safe_load((Path(__file__).parent / "malformed_manifests.yaml").read_text()))
WHOLE = """
name: everything
about: what a manifest can say
prompt: look at {host}
followups: [and now, {new_session: somebody else asks}]
model: {scripted: script.yaml}
world: bare
seed: 7
files: {/srv/a: "one\\n"}
faults: [{fault: wrap_command, host: box, words: [cp, 0, 1]}]
operator:
  - {when: plan, do: approve, generation: 2, phrases: [destroy 131]}
  - {when: question, do: answer, text: blue, times: 3}
  - {when: run, shows: iptables, do: reject, text: keep out}
  - {when: run.started, do: say, text: stop, after_ms: 250, optional: true}
entities: [{name: vault, mode: locked, facts: {note: keep out}}, {name: tv, kind: device, parent: box}]
secrets: {door: s3cret}
limits: {iterations: 5}
crash: [assistant.said, {at: run.started, after_ms: 250}]
look: true
timeout_s: 60
pace: 0.25
expect:
  - no_run
  - recovers_from
  - completes: failed
  - proposes_plan: 2
  - answer_contains: [a, "{b}"]
  - target_state: {host: box, command: ls}
  - target_state: after
"""


def test_a_manifest_is_read_as_it_is_meant(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text("- text: hello\n")
    file = tmp_path / "m.yaml"
    file.write_text(WHOLE)
    assert load(file) == Manifest(
        name="everything",
        about="what a manifest can say",
        file=file,
        prompt="look at {host}",
        followups=(Followup(text="and now"), Followup(text="somebody else asks", fresh=True)),
        model="scripted",
        script=tmp_path / "script.yaml",
        world="bare",
        seed=7,
        files=(("/srv/a", "one\n"),),
        faults=(Injected(fault="wrap_command", host="box", words=("cp", "0", "1")),),
        operator=(
            OperatorRule(when="plan", do="approve", generation=2, phrases=("destroy 131",)),
            OperatorRule(when="question", do="answer", text="blue", times=3),
            OperatorRule(when="run", do="reject", shows="iptables", text="keep out"),
            OperatorRule(when="run.started", do="say", text="stop", after_s=0.25, optional=True),
        ),
        entities=(
            Known(name="vault", mode=Mode.LOCKED, facts=(("note", "keep out"),)),
            Known(name="tv", kind="device", parent="box"),
        ),
        secrets=(("door", "s3cret"),),
        limits=(("iterations", 5),),
        crash=(Crash(at="assistant.said"), Crash(at="run.started", after_s=0.25)),
        look=True,
        timeout_s=60,
        pace=0.25,
        expect=(
            Assertion(kind="no_run", line=24),
            Assertion(kind="recovers_from", line=25),
            Assertion(kind="completes", line=26, texts=("failed",)),
            Assertion(kind="proposes_plan", line=27, count=2),
            Assertion(kind="answer_contains", line=28, texts=("a", "{b}")),
            Assertion(kind="target_state", line=29, pairs=(("host", "box"), ("command", "ls"))),
            Assertion(kind="target_state", line=30, texts=("after",)),
        ),
    )


def test_a_scalar_followup_is_one_followup(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(GOOD + "followup: and now\n")
    assert load(file).followups == (Followup(text="and now"),)


@pytest.mark.parametrize("row", BAD, ids=[row["expected"][:70] for row in BAD])
def test_what_is_wrong_is_said_with_its_line(row: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("text: no list\n")
    file = tmp_path / "m.yaml"
    file.write_text(row["manifest"].replace("…", GOOD))
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert str(caught.value) == f"{tmp_path}/{row['expected']}"


def test_a_directory_gives_all_its_manifests_and_scripts_below_it_are_none(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "s.yaml").write_text("- text: hello\n")
    (tmp_path / "b.yaml").write_text(GOOD.replace("name: x", "name: b"))
    (tmp_path / "a.yaml").write_text(GOOD.replace("name: x", "name: a"))
    assert [manifest.name for manifest in find((tmp_path,))] == ["a", "b"]


def test_nothing_to_play_is_an_error_that_names_the_path(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"^{tmp_path} holds no manifest"):
        find((tmp_path,))
    with pytest.raises(ConfigError, match=f"^there is no manifest {tmp_path}/gone.yaml"):
        find((tmp_path / "gone.yaml",))


def test_two_manifests_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(GOOD)
    with pytest.raises(ConfigError, match=r"^two manifests are called x: rename one"):
        find((tmp_path,))


def test_every_shipped_manifest_is_sound_and_called_like_its_file() -> None:
    shipped = find((data.path("evals"),))
    assert [manifest.file.stem for manifest in shipped] == [manifest.name for manifest in shipped]
    assert all(manifest.about for manifest in shipped)
