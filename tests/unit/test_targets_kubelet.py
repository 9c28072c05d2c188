"""The kubelet as a server that we ask over TLS: who it may be, and what it may do to us."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from tests.kubelet.answers import CHAT, CHAT_UID, pod_list
from tests.kubelet.server import running_kubelet
from tracer.config import Kubelet as Settings
from tracer.errors import UsageError
from tracer.targets.kubelet import Kubelet, Reason, Refused


@pytest.fixture
def server(tmp_path):
    with running_kubelet(tmp_path) as server:
        server.body = pod_list(CHAT)
        yield server


def refusal(settings: Settings, **more: object) -> tuple[Reason, str]:
    with pytest.raises(Refused) as refused:
        Kubelet(settings, **more).pods()
    assert "\n" not in str(refused.value)
    return refused.value.reason, str(refused.value)


def test_pods_are_told_to_who_has_the_token(server):
    pods = Kubelet(server.settings()).pods()

    assert "team-a/chat-0" == pods[CHAT_UID].full_name
    assert ["/pods"] == server.requests


def test_host_and_name_may_come_from_the_environment(tmp_path):
    with running_kubelet(tmp_path, name="node-1") as server:
        server.body = pod_list(CHAT)
        settings = server.settings(host="$NODE_IP", server_name="$NODE_NAME")

        assert Kubelet(settings, {"NODE_IP": "127.0.0.1", "NODE_NAME": "node-1"}).pods()


def test_a_variable_that_is_not_set_is_a_mistake_in_the_configuration():
    with pytest.raises(UsageError, match=r"kubelet.host is '\$NODE_IP', which .*status.hostIP"):
        Kubelet(Settings(host="$NODE_IP"), {})


def test_a_token_is_read_again_for_every_request(server, tmp_path):
    kubelet = Kubelet(server.settings())
    (tmp_path / "token").write_text("old")
    with pytest.raises(Refused, match="status 401: Unauthorized"):
        kubelet.pods()

    (tmp_path / "token").write_text("eyJhbGciOi.test.token")
    assert kubelet.pods()


def test_an_account_without_the_right_is_told_what_the_kubelet_says(server):
    server.status = 403
    server.body = b"Forbidden (user=a, verb=get, resource=nodes, subresource(s)=[pods proxy])\n"

    reason, line = refusal(server.settings())
    assert reason is Reason.REFUSES
    said = server.body.decode().strip()
    assert line.endswith(f"refuses, status 403: {said}; let the service account get nodes/pods")


def test_nobody_is_followed_elsewhere(server):
    server.status, server.headers = 307, {"Location": "https://127.0.0.1:1/pods"}

    reason, line = refusal(server.settings())
    assert (reason, "status 307" in line) == (Reason.REFUSES, True)


@pytest.mark.parametrize("body", [b"{}", b"<html>", b"\xff\x00", pod_list(CHAT, CHAT)])
def test_what_is_no_list_of_pods_is_not_believed(server, body):
    server.body = body

    reason, line = refusal(server.settings())
    assert reason is Reason.IMPLAUSIBLE
    assert line.startswith(f"the kubelet at 127.0.0.1 port {server.server_address[1]} told no list")


def test_an_answer_without_end_is_not_read(server):
    server.body = b" " * ((16 << 20) + 1)

    assert Reason.IMPLAUSIBLE is refusal(server.settings())[0]


@pytest.mark.parametrize(
    "chunks",
    [
        [],
        [b"HTTP/1.1 200 OK\r\nX: ", b"x"],
        [b"HTTP/1.1 200 OK\r\n\r\n", b" "],
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"],
    ],
    ids=["silence", "a header without end", "a body without end", "chunks without end"],
)
def test_a_kubelet_that_hangs_or_trickles_is_cut_off(server, chunks):
    server.chunks = chunks

    # It would go on for ever: that this ends is the proof.
    assert refusal(server.settings(), deadline_seconds=0.3)[0] in {
        Reason.UNREACHABLE,
        Reason.IMPLAUSIBLE,
    }


def test_what_speaks_no_http_is_not_believed(server):
    server.chunks = [b"SSH-2.0-OpenSSH_9.2\r\n"]

    assert Reason.UNREACHABLE is refusal(server.settings(), deadline_seconds=0.3)[0]


def test_who_listens_and_says_nothing_is_cut_off(tmp_path):
    with running_kubelet(tmp_path) as kubelet, socket.create_server(("127.0.0.1", 0)) as silent:
        settings = kubelet.settings(port=silent.getsockname()[1])

        assert Reason.UNREACHABLE is refusal(settings, deadline_seconds=0.3)[0]


def test_where_nobody_listens_one_line_says_so(tmp_path):
    with running_kubelet(tmp_path) as server:
        settings = server.settings()

    reason, line = refusal(settings)
    assert reason is Reason.UNREACHABLE
    assert line.endswith("does not answer: Connection refused")


@pytest.mark.parametrize("host", ["a..b", "." * 70, "ü" * 64])
def test_a_host_that_is_none_is_an_answer_that_does_not_come(tmp_path, host):
    with running_kubelet(tmp_path) as server:
        settings = server.settings(host="$NODE_IP")

    assert Reason.UNREACHABLE is refusal(settings, environment={"NODE_IP": host})[0]


def test_the_token_is_not_given_to_a_stranger(server, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    with running_kubelet(other) as stranger:
        settings = server.settings(port=stranger.server_address[1])

        reason, line = refusal(settings)

    assert reason is Reason.UNTRUSTED
    assert "is not who it should be: " in line
    assert [] == stranger.requests


def test_the_token_is_not_given_to_another_node(server):
    reason, line = refusal(server.settings(server_name="node-2"))

    assert reason is Reason.UNTRUSTED
    assert re.search("[Hh]ostname mismatch", line)
    assert [] == server.requests


@pytest.mark.parametrize("text", ["", "two\nlines", "ünï", None], ids=repr)
def test_without_a_token_nobody_is_asked(server, tmp_path, text):
    token = tmp_path / "token"
    token.unlink()
    if text is not None:
        token.write_text(text)

    reason, line = refusal(server.settings())
    assert (reason, line.startswith(f"{token}: ")) == (Reason.CREDENTIALS, True)
    assert [] == server.requests


@pytest.mark.parametrize("text", ["", "no certificate", None], ids=repr)
def test_without_certificates_nobody_is_asked(server, tmp_path, text):
    authorities = tmp_path / "ca.crt"
    authorities.unlink()
    if text is not None:
        authorities.write_text(text)

    reason, line = refusal(server.settings())
    assert (reason, line.startswith(f"{authorities}: ")) == (Reason.CREDENTIALS, True)
    assert [] == server.requests


def test_the_files_of_a_service_account_are_the_defaults():
    account = Path("/var/run/secrets/kubernetes.io/serviceaccount")

    assert (str(account / "token"), str(account / "ca.crt")) == (
        Settings().token_file,
        Settings().ca_file,
    )
