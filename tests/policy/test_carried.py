"""What reaches a command by its standard input, by an option, or by a table of later jobs."""

from __future__ import annotations

import pytest

from oikos.domain.verdict import Risk
from oikos.policy.classify import Classifier


@pytest.mark.parametrize(
    ("text", "risk"),
    [
        ("echo 'list --all' | virsh", Risk.READ_ONLY),
        ("echo 'destroy web' | virsh", Risk.CONFIG_MUTATION),
        ("echo 'list; undefine web' | virsh", Risk.DESTRUCTIVE),
        ("virsh <<E\nlist\nundefine web\nquit\nE", Risk.DESTRUCTIVE),
        ("chronyc <<< tracking", Risk.READ_ONLY),
        ("chronyc <<< makestep", Risk.CONFIG_MUTATION),
        ("lvm <<< 'lvremove -f vg0/x'", Risk.DESTRUCTIVE),
    ],
)
def test_a_line_a_console_reads_is_judged_as_its_command(classifier: Classifier, text: str, risk: Risk) -> None:
    assert classifier.classify(text).risk is risk


def test_what_a_console_reads_from_elsewhere_is_not_known(classifier: Classifier) -> None:
    for text in ("virsh < jobs.txt", "cat jobs.txt | supervisorctl", "crm < x", "dc < x", "ls | lvm", "influx < x"):
        assert classifier.classify(text).risk is Risk.CONFIG_MUTATION, text
    for text in ("virsh", "virsh < /dev/null", "virsh list < jobs.txt", "lvm lvs < jobs.txt"):
        assert classifier.classify(text).risk is Risk.READ_ONLY, text


def test_an_editor_and_a_builder_run_what_they_are_fed(classifier: Classifier) -> None:
    for text in (
        "ed -s f <<< '!rm -rf /srv/a'",
        "make -f - <<< 'x:;rm -rf /srv/a'",
        "tclsh <<< 'file delete -force /srv/a'",
        "gdb -batch -ex '!rm -rf /srv/a'",
        "emacs --batch --eval '(delete-directory \"/srv/a\" t)'",
        "tar cf /dev/null --checkpoint-action=exec='rm -rf /srv/a' f",
        "git -c alias.s='!rm -rf /srv/a' s",
    ):
        assert classifier.classify(text).risk is Risk.DESTRUCTIVE, text
    assert classifier.classify("ed -s f <<< 1d").risk is Risk.CONFIG_MUTATION


def test_a_job_for_later_is_read_like_one_for_now(classifier: Classifier) -> None:
    for text in (
        "(crontab -l; echo '@reboot rm -rf /srv/a') | crontab -",
        "echo '0 3 * * * root rm -rf /srv/a' > /etc/cron.d/x",
        "printf '0 3 * * * rm -rf /srv/a' >> /var/spool/cron/crontabs/root",
    ):
        assert classifier.classify(text).risk is Risk.DESTRUCTIVE, text
    for text in (
        "(crontab -l; echo '0 3 * * * /opt/backup.sh') | crontab -",
        "echo '0 3 * * * root /opt/backup.sh' > /etc/cron.d/x",
        "echo '0 3 * * * root rm -rf /srv/a' > /srv/note",
    ):
        assert classifier.classify(text).risk is Risk.CONFIG_MUTATION, text


def test_a_small_protocol_is_a_look_when_every_line_only_asks(classifier: Classifier) -> None:
    for text in (
        "echo 'show stat' | socat stdio /run/haproxy.sock",
        "echo 'show info;show servers state' | socat - UNIX-CONNECT:/run/haproxy.sock",
        "echo stats | nc -w1 localhost 11211",
        "printf 'GET /health HTTP/1.0\\r\\n\\r\\n' | nc -w2 192.0.2.80 80",
    ):
        assert classifier.classify(text).risk is Risk.READ_ONLY, text
    for text in (
        "echo 'show stat;disable server a/b' | socat stdio /run/haproxy.sock",
        "echo 'show stat' | socat stdio TCP:192.0.2.80:80",
        "echo 'stats reset' | nc -w1 localhost 11211",
        "printf 'GET /reboot HTTP/1.0\\r\\n\\r\\n' | nc -w2 192.0.2.80 80",
        "cat notes | nc -w1 localhost 11211",
    ):
        assert classifier.classify(text).risk is Risk.CONFIG_MUTATION, text
