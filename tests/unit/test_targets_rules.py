"""Rules on processes: what matches, and which tenant comes of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tracer.config import Match, Rule
from tracer.errors import UsageError
from tracer.targets.mark_file import Location, Reason
from tracer.targets.pods import Pod
from tracer.targets.process import Process
from tracer.targets.rules import Rules

ID, UID = "0123456789abcdef" * 4, "1f0c6d27-3e6a-4b5c-9d8e-7a6b5c4d3e2f"
POD = f"/kubepods/burstable/pod{UID}/{ID}"


def process(comm: str = "serve", **parts: object) -> Process:
    """A process of which only the given parts can be read; reading another one is an error."""
    made = Process(20, comm, 0, False, False, Path("/nonexistent"), lambda uid: None)
    vars(made).update(parts)
    return made


CHAT = Pod("team-a", "chat-0", {"app/name": "chat", "tier": "gold"}, {"customer": "acme\n"})
OF_CHAT, OF_NONE = {"pod": CHAT}, {"pod": None}
MARKED = {"mark_page": Location(0, 4096, 1)}
UNMARKED = {"mark_page": Reason.NO_PAGE}


@pytest.mark.parametrize(
    ("match", "parts"),
    [
        ({"comm": "serve"}, {}),
        ({"comm": "s*[ev]"}, {}),
        ({"cmdline": r"--model \S+$"}, {"cmdline": "serve --model m"}),
        ({"cgroup": "kubepods"}, {"cgroup_paths": ["/", POD]}),
        ({"user": "8"}, {"uid": 8}),
        ({"user": "root"}, {"uid": 0}),
        ({"marked": True}, MARKED),
        ({"marked": False}, UNMARKED),
        ({"namespace": "team-*"}, OF_CHAT),
        ({"pod": "chat-?"}, OF_CHAT),
        ({"labels": "app/name=chat,tier!=silver"}, OF_CHAT),
        ({"namespace": "team-a", "labels": "tier", "marked": True}, OF_CHAT | MARKED),
    ],
    ids=str,
)
def test_a_rule_holds(match, parts):
    assert Rules([Rule(name="a", match=Match(**match))]).tenant_of(process(**parts)) == "a"


@pytest.mark.parametrize(
    ("match", "parts"),
    [
        ({"comm": "erve"}, {}),
        ({"comm": "serv"}, {}),
        ({"cmdline": "^x"}, {"cmdline": "serve\nx"}),
        ({"cgroup": "kubepods"}, {"cgroup_paths": ["/"]}),
        ({"user": "8"}, {"uid": 0}),
        ({"marked": True}, UNMARKED),
        ({"marked": True}, {"mark_page": Reason.INHERITED}),
        ({"marked": False}, MARKED),
        ({"comm": "serve", "marked": True}, UNMARKED),
        ({"namespace": "team"}, OF_CHAT),
        ({"pod": "chat"}, OF_CHAT),
        ({"labels": "tier=silver"}, OF_CHAT),
        ({"labels": "tier!=silver"}, OF_NONE),
        ({"namespace": "*"}, OF_NONE),
        ({"pod": "*"}, OF_NONE),
    ],
    ids=str,
)
def test_a_rule_does_not_hold(match, parts):
    assert Rules([Rule(name="a", match=Match(**match))]).tenant_of(process(**parts)) is None


def test_the_first_rule_that_holds_decides():
    rules = [Rule(name=name, match=Match(comm=name[0] + "*")) for name in ("x", "s1", "s2")]

    assert Rules(rules).tenant_of(process()) == "s1"


def test_an_unknown_user_is_a_mistake_in_the_configuration():
    with pytest.raises(UsageError, match=r"rule a: match.user is 'no one', .* the user's number"):
        Rules([Rule(name="a", match=Match(user="no one"))])


def tenant(template: str, **parts: object) -> str | None:
    rule = Rule(name="a", match=Match(comm="*"), tenant=template)
    return Rules([rule]).tenant_of(process(**{"_cgroup": "0::/\n", "_environment": []} | parts))


IN_POD = {"_cgroup": f"0::{POD}\n"}


@pytest.mark.parametrize(
    ("template", "parts", "expected"),
    [
        ("{comm}-x", {}, "serve-x"),
        ("{{{comm}}}", {}, "{serve}"),
        ("{container}", IN_POD, "container:0123456789ab"),
        ("{container}", {}, "unknown"),
        ("{pod}", IN_POD, UID),
        ("{pod}", IN_POD | {"_environment": [b"HOSTNAME=chat-0"]}, "chat-0"),
        ("{pod}", IN_POD | {"_environment": [b"HOSTNAME=h", b"POD_NAME=chat-1"]}, "chat-1"),
        ("{pod}", {"_environment": [b"HOSTNAME=h"]}, "unknown"),
        ("{namespace}", {"_environment": [b"POD_NAMESPACE=team\n"]}, "team\\n"),
        ("{namespace}/{comm}", {}, "unknown/serve"),
        ("{namespace}", {"_environment": [b"POD_NAMESPACE=" + b"x" * 99]}, "x" * 63 + "…"),
        ("{namespace}/{pod}", OF_CHAT, "team-a/chat-0"),
        ("{namespace}", OF_CHAT | {"_environment": [b"POD_NAMESPACE=forged"]}, "team-a"),
        ("{labels[app/name]}-{labels[tier]}", OF_CHAT, "chat-gold"),
        ("{annotations[customer]}", OF_CHAT, "acme\\n"),
        ("{labels[none]}", OF_CHAT, "unknown"),
        ("{labels[tier]}", OF_NONE, "unknown"),
    ],
    ids=str,
)
def test_a_tenant_is_the_template_filled_in(template, parts, expected):
    assert expected == tenant(template, **parts)


def test_our_own_process_is_read():
    ourselves = Process.read(os.getpid())

    assert os.geteuid() == ourselves.uid
    assert "pytest" in ourselves.cmdline
    assert os.environ["PATH"][:63] in ourselves.environment("NOT_SET_ANYWHERE", "PATH")
