"""Files that are emptied without a command that says so."""

from __future__ import annotations

from oikos.domain.verdict import Risk
from oikos.policy.classify import Classifier


def test_a_descriptor_nobody_writes_to_empties_its_file(classifier: Classifier) -> None:
    assert classifier.classify("exec 3> /etc/fstab").risk is Risk.DESTRUCTIVE
    assert classifier.classify("exec 3> /srv/log; echo hi >&3").risk is Risk.CONFIG_MUTATION
    assert classifier.classify("exec > /srv/log; ls").risk is Risk.CONFIG_MUTATION
    assert classifier.classify("exec 2> /srv/log; ls").risk is Risk.CONFIG_MUTATION


def test_a_copy_of_nothing_empties_its_file(classifier: Classifier) -> None:
    assert classifier.classify("cat < /dev/null > /srv/app.db").risk is Risk.DESTRUCTIVE
    assert classifier.classify("cat < /etc/hosts > /srv/x").risk is Risk.CONFIG_MUTATION


def test_tee_onto_what_another_stage_reads_empties_it(classifier: Classifier) -> None:
    assert classifier.classify("grep a /etc/hosts | tee /etc/hosts").risk is Risk.DESTRUCTIVE
    assert classifier.classify("grep a /etc/hosts | tee -a /etc/hosts").risk is Risk.CONFIG_MUTATION
    assert classifier.classify("grep a /etc/hosts | tee /srv/x").risk is Risk.CONFIG_MUTATION
    assert classifier.classify("echo a | tee /etc/hosts").risk is Risk.CONFIG_MUTATION


def test_a_detour_does_not_hide_a_program(classifier: Classifier) -> None:
    assert classifier.classify("/usr/bin/../bin/rm -rf /srv/a").risk is Risk.DESTRUCTIVE
    assert classifier.classify("/usr/bin/../bin/ls").risk is Risk.CONFIG_MUTATION


def test_a_variable_that_is_run_is_looked_into(classifier: Classifier) -> None:
    assert classifier.classify("PROMPT_COMMAND='rm -rf /srv/a'").risk is Risk.DESTRUCTIVE
    assert classifier.classify("x='rm -rf /srv/a'").risk is Risk.READ_ONLY
