"""What further words and values do to a rule that only looks."""

from __future__ import annotations

import pytest

from oikos.domain.verdict import Risk
from oikos.policy.classify import Classifier


@pytest.mark.parametrize(
    "text",
    [
        "ha addons rebuild core_ssh",
        "tea issues close 4",
        "mullvad account login 1234",
        "stratis blockdev extend-data p",
        "devlink port split pci/0000:01:00.0/1 count 4",
    ],
)
def test_a_noun_and_a_word_that_acts_is_no_look(classifier: Classifier, text: str) -> None:
    assert classifier.classify(text).risk is Risk.CONFIG_MUTATION


def test_a_noun_and_a_word_that_destroys_destroys(classifier: Classifier) -> None:
    assert classifier.classify("ha store delete x").risk is Risk.DESTRUCTIVE


def test_behind_a_word_that_asks_any_word_is_a_name(classifier: Classifier) -> None:
    for text in (
        "kubectl auth can-i delete pods",
        "helm search repo restore",
        "gh search issues delete",
        "git show restore",
        "docker logs update",
    ):
        assert classifier.classify(text).risk is Risk.READ_ONLY, text


def test_a_switch_may_be_given_its_own_value(classifier: Classifier) -> None:
    assert classifier.classify("kubectl logs web --previous=false").risk is Risk.READ_ONLY
    assert classifier.classify("kubectl logs web --previous=x").risk is Risk.CONFIG_MUTATION
    assert classifier.classify("kubectl apply -f x --dry-run=false").risk is Risk.CONFIG_MUTATION


def test_more_words_turn_some_looks_into_changes(classifier: Classifier) -> None:
    for text in ("virsh vcpupin web", "hg bookmarks", "bundle config path", "talosctl service kubelet"):
        assert classifier.classify(text).risk is Risk.READ_ONLY, text
    for text in (
        "virsh vcpupin web 0 2",
        "hg bookmarks x",
        "bundle config path vendor",
        "talosctl service kubelet restart",
        "etcdctl watch x -- touch /srv/y",
    ):
        assert classifier.classify(text).risk is Risk.CONFIG_MUTATION, text


def test_a_server_called_by_its_name_starts(classifier: Classifier) -> None:
    for text in ("unbound", "dnsmasq", "rsyslogd -n", "monit", "frpc -c /etc/frpc.toml", "named -c /etc/x"):
        assert classifier.classify(text).risk is Risk.CONFIG_MUTATION, text
    for text in ("unbound -V", "dnsmasq --test", "rsyslogd -N1", "monit status", "named -v"):
        assert classifier.classify(text).risk is Risk.READ_ONLY, text
    assert classifier.classify("borgmatic").risk is Risk.DESTRUCTIVE


def test_a_switch_that_is_off_makes_nothing_a_look(classifier: Classifier) -> None:
    for text in ("terraform fmt -check=false", "cargo install --list=false x", "taplo fmt --check=false x.toml"):
        assert classifier.classify(text).risk is Risk.CONFIG_MUTATION, text
    for text in ("terraform fmt -check", "cargo install --list", "taplo fmt --check x.toml"):
        assert classifier.classify(text).risk is Risk.READ_ONLY, text


def test_a_letter_asks_for_the_version_only_where_it_does(classifier: Classifier) -> None:
    for text in ("mysql -V", "redis-server -v", "terraform -v", "javac -version", "make -v", "npm -v"):
        assert classifier.classify(text).risk is Risk.READ_ONLY, text
    for text in ("mysql -v", "redis-server -v x", "ninja -v", "make -v x", "unbound -v", "npm -v install"):
        assert classifier.classify(text).risk is Risk.CONFIG_MUTATION, text
