"""A fleet's verdict from a real Prometheus server, and from servers that are none or not well."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from tests.rules.fleet import HOUR, Agent, load
from tests.rules.prometheus_server import running_prometheus
from tracer.cli import main

NOW = int(time.time()) // HOUR * HOUR
BEFORE, AFTER = NOW - 6 * HOUR, NOW - 4 * HOUR
RANGES = ["--before", f"{BEFORE}/{BEFORE + HOUR}", "--after", f"{AFTER}/{AFTER + HOUR}"]
VIRTUAL = 'kind="virtual",kernel="6.1.0",cpus="8",numa_nodes="1",version="0.1.0"'
BARE = 'kind="bare metal",kernel="6.1.0",cpus="64",numa_nodes="2",version="0.1.0"'


@pytest.fixture(scope="module")
def agents() -> dict[str, Agent]:
    def agent(fleet: str, machine: str, begin: int, stalls: float, **more: Any) -> Agent:
        rng = np.random.default_rng(begin + len(fleet))
        return Agent(f'cluster="{fleet}",instance="{fleet}"', machine, begin, rng, stalls, **more)

    return {
        "a before": agent("a", VIRTUAL, BEFORE, 0.01),
        "b before": agent("b", VIRTUAL, BEFORE, 0.01),
        "a after": agent("a", BARE, AFTER, 0),
        "b after": agent("b", BARE, AFTER, 0),
        "gaps before": agent("gaps", VIRTUAL, BEFORE, 0.01),
        "gaps after": agent("gaps", BARE, AFTER, 0, silent=(1200, 2400)),
    }


@pytest.fixture(scope="module")
def url(agents: dict[str, Agent], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("fleet")
    load(directory, list(agents.values()))
    with running_prometheus(directory, ("127.0.0.1", 9)) as prometheus:
        yield prometheus.url


@pytest.fixture
def compare(
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., tuple[int, Any, str]]:
    def compared(url: str, *more: str) -> tuple[int, Any, str]:
        """Exit code, the verdict, and what was said."""
        code = main(["compare", "--prometheus", url, *(more or RANGES), "--json"])
        out, err = capsys.readouterr()
        return code, json.loads(out) if out else None, err

    return compared


def figures(verdict: Any) -> dict[str, Any]:
    return {finding["figure"]: finding for finding in verdict["findings"]}


def holds(side: Any, truth: float) -> bool:
    return bool(side["low"] <= truth <= side["high"])


def test_a_fleet_that_got_rid_of_its_stalls_passes(compare, url, agents):
    code, verdict, _ = compare(url, *RANGES, "--selector", 'cluster=~"a|b"')

    assert (code, verdict["outcome"]) == (0, "pass")
    assert verdict["before"]["machine"]["kind"] == "virtual"
    assert verdict["after"]["machine"] == {
        "kind": "bare metal",
        "kernel": "6.1.0",
        "cpu_model": "2 machines",
        "cpus": 128,
        "numa_nodes": 2,
    }
    found = figures(verdict)
    for side in ("before", "after"):
        both = [agents[f"{fleet} {side}"] for fleet in ("a", "b")]
        waits = np.concatenate([each for agent in both for each in agent.deschedules])
        steps = np.concatenate([each for agent in both for each in agent.elapsed])
        assert holds(found["deschedule_p999"][side], np.quantile(waits, 0.999))
        assert holds(found["step_mean"][side], steps.mean())
        assert holds(found["steps_per_second"][side], len(steps) / HOUR)
        tail = np.quantile(steps, 0.999) / np.quantile(steps, 0.5)
        assert holds(found["step_p999_p50"][side], tail)
        assert found["step_mean"][side]["observations"] == pytest.approx(len(steps), rel=0.01)


def test_stages_are_in_their_steps_and_not_judged_by_themselves(compare, url, agents):
    _, verdict, _ = compare(url, *RANGES, "--selector", 'cluster="a"')

    after = agents["a after"]
    steps = np.concatenate(after.elapsed)
    assert {finding["step"] for finding in verdict["findings"]} == {"", "decode"}
    assert verdict["after"]["steps"] == pytest.approx(len(steps), rel=0.01)
    per_step = {cause["name"]: cause["after"] for cause in verdict["causes"] if cause["after"]}
    waits = np.concatenate(after.deschedules)
    assert per_step["running"]["value"] == pytest.approx((steps - waits).mean(), rel=0.01)


def test_a_fleet_with_stalls_compared_with_itself_fails(compare, url):
    ranges = ["--before", RANGES[1], "--after", RANGES[1]]

    code, verdict, _ = compare(url, *ranges, "--selector", 'cluster="a"')

    assert code == 1
    assert figures(verdict)["deschedule_p999"]["outcome"] == "fail"
    assert figures(verdict)["step_mean"]["outcome"] == "pass"


def test_a_time_with_gaps_is_inconclusive_and_says_so(compare, url):
    code, verdict, _ = compare(url, *RANGES, "--selector", '{cluster="gaps"}')

    assert code == 3
    assert (
        "after: nothing is known of 10 of 30 windows; choose a time without gaps"
        in (verdict["objections"])
    )


def test_a_range_that_is_too_short_is_inconclusive_and_says_how_long(compare, url):
    ranges = ["--before", f"{BEFORE}/{BEFORE + 1200}", *RANGES[2:]]

    code, verdict, _ = compare(url, *ranges, "--selector", 'cluster="a"')

    assert code == 3
    assert "before: 10 windows only; record at least 60 minutes" in verdict["objections"]


@pytest.mark.parametrize(
    ("selector", "code", "said"),
    [
        ('cluster="none"', 3, 'cluster="none"}: no agent was scraped twice in 120 s between'),
        ('cluster="a', 2, "unterminated quoted string"),
    ],
)
def test_a_selector_that_selects_nothing_or_is_none_is_named(compare, url, selector, code, said):
    got, verdict, err = compare(url, *RANGES, "--selector", selector)

    assert (got, verdict) == (code, None)
    assert said in err and err.count("\n") == 1


@contextmanager
def server(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as stub:
        threading.Thread(target=stub.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{stub.server_port}"
        stub.shutdown()


def reply(code: int, body: bytes, length: int | None = None) -> Callable[[Any], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        handler.send_header("Content-Length", str(length or len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def drip(handler: BaseHTTPRequestHandler) -> None:
    """A byte now and then, for ever: no single one of them is late."""
    reply(200, b" ", 1 << 20)(handler)
    for _ in range(40):
        time.sleep(0.05)
        try:
            handler.wfile.write(b" ")
        except OSError:
            return


PARTIAL = {
    "status": "success",
    "data": {"resultType": "matrix", "result": []},
    "warnings": ["1 of 2 stores"],
}


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (drip, 3, "no answer within 0.5 s; ask for less, or give --timeout"),
        (lambda handler: time.sleep(1), 3, "no answer within 0.5 s"),
        (reply(200, json.dumps(PARTIAL).encode()), 3, "a part of the data only: 1 of 2 stores"),
        (reply(503, b"busy"), 3, "answers 503 Service Unavailable"),
        (reply(200, b'{"status":', 100), 3, "cannot be reached"),
        (reply(200, b"<html>welcome</html>"), 2, "is no Prometheus"),
        (reply(200, b'{"status": "success", "data": {"result": [7]}}'), 2, "is no Prometheus"),
        (reply(400, b'{"status": "error", "error": "bad\\u001b[31m"}'), 2, r"bad\x1b[31m"),
    ],
)
def test_a_server_that_is_not_well_or_none_gets_one_line(compare, answer, code, said):
    with server(answer) as url:
        got, verdict, err = compare(url, *RANGES, "--timeout", "0.5")

    assert (got, verdict) == (code, None)
    assert err.startswith(f"tailtrace: {url}: ") and err.count("\n") == 1
    assert said in err


def test_a_server_that_is_down_gets_one_line(compare):
    with server(drip) as url:
        pass

    code, _, err = compare(url, *RANGES)

    assert (code, err) == (3, f"tailtrace: {url}: cannot be reached: Connection refused\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--before RANGE and --after RANGE"),
        (["--before", "yesterday", "--after", RANGES[3]], "'yesterday' is no range of time"),
        (["--before", f"{NOW}/{NOW}", "--after", RANGES[3]], "has 0 windows of 120 s"),
        ([*RANGES, "a.db", "b.db"], "alone"),
    ],
)
def test_a_wrong_call_gets_one_line(compare, arguments, said):
    code, _, err = compare("http://127.0.0.1:1", *arguments, "--window", "120")

    assert code == 2
    assert said in err and err.count("\n") == 1


def test_an_address_that_is_none_is_named(compare):
    code, _, err = compare("prometheus:9090")

    assert (code, err) == (
        2,
        "tailtrace: prometheus:9090: is no address of a Prometheus; give http://HOST:PORT\n",
    )


def test_times_are_utc_unless_they_say_otherwise(compare, url):
    times = [time.strftime("%Y-%m-%dT%H:%M", time.gmtime(at)) for at in (BEFORE, BEFORE + HOUR)]

    _, verdict, _ = compare(
        url, "--before", "/".join(times), *RANGES[2:], "--selector", 'cluster="a"'
    )

    assert verdict["before"]["windows"] == 30
