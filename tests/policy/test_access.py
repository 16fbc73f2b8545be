"""What may cut the only way in is destructive, however it is spelled."""

from __future__ import annotations

import pytest

from oikos.domain.verdict import Risk
from oikos.policy.classify import Classifier


@pytest.mark.parametrize(
    ("closes", "narrow"),
    [
        ("iptables -A INPUT -j DROP", "iptables -A INPUT -s 198.51.100.9 -j DROP"),
        ("iptables -I INPUT -p tcp --dport 22 -j DROP", "iptables -I INPUT -p tcp --dport 8080 -j DROP"),
        ("iptables -D INPUT -p tcp --dport 22 -j ACCEPT", "iptables -D INPUT -p tcp --dport 8080 -j ACCEPT"),
        ("nft add rule inet f i tcp dport 22 drop", "nft add rule inet f i ip saddr 198.51.100.9 tcp dport 22 drop"),
        ("ufw reject 22", "ufw reject 8080"),
        ("firewall-cmd --set-default-zone=drop", "firewall-cmd --set-default-zone=public"),
        ("firewall-cmd --zone=public --set-target=DROP", "firewall-cmd --zone=public --set-target=ACCEPT"),
        ("firewall-cmd --remove-service=ssh", "firewall-cmd --remove-service=http"),
        ("/etc/init.d/ssh stop", "/etc/init.d/nginx stop"),
        ("chkconfig sshd off", "chkconfig nginx off"),
        ("sv down sshd", "sv down nginx"),
        ("rmmod igb", "rmmod pcspkr"),
        ("modprobe -r virtio-net", "modprobe -r dummy"),
        ("ifconfig eth0 0", "ifconfig eth0 mtu 1400"),
        ("rfkill block all", "rfkill block bluetooth"),
        ("networkctl delete vmbr0", "networkctl reload"),
    ],
)
def test_what_closes_the_way_in_is_told_from_a_narrow_change(classifier: Classifier, closes: str, narrow: str) -> None:
    assert classifier.classify(closes).risk is Risk.DESTRUCTIVE
    assert classifier.classify(narrow).risk is Risk.CONFIG_MUTATION
