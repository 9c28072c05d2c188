"""The page in a browser: what it shows of a known node, and that nothing gets out of its frame."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import bcrypt
import pytest
import yaml

from exporters.access import Access
from exporters.server import Address
from tests.page.browser import Browser
from tests.page.node import Names, serving_node

RIGHT_TO_LEFT = "\u202e"  # shows all that follows backwards
Serve = Callable[[Names], Address]

HOSTILE = Names(
    victim='<img src=x onerror="document.title=1">',
    quiet='"><script>document.title=1</script>',
    step="</option><b>'`${document.title=1}",
    aggressor=f"__proto__ {RIGHT_TO_LEFT}&lt;svg/onload=alert(1)&gt;",
    node="<style>body{display:none}</style>",
    segment="<img src=/x onerror=alert(1)>",
    process=f"<b>{RIGHT_TO_LEFT}",
    reason="<a href='javascript:alert(1)'>constructor</a>",
)


@pytest.fixture(scope="module")
def node() -> Iterator[Address]:
    with serving_node(Names()) as address:
        yield address


def test_it_says_first_what_is_wrong_who_does_it_and_since_when(browser: Browser, node: Address):
    browser.open(node)

    (line,) = browser.text("#verdict").split("\n")
    assert line.startswith("chat waits for CPUs 12 % of its time, preempted. antagonist took ")
    assert "since the agent began" in line
    assert line.endswith("decode p999 62.0 ms, 6.2 times the median.")


def test_steps_and_their_ledgers(browser: Browser, node: Address):
    browser.open(node)

    row = browser.text("#steps tbody tr:first-child")
    assert row.startswith(
        "chat decode 4,000 10.0 ms 30.0 ms 62.0 ms 6.2 88 % running, 12 % preempted"
    )
    widths = browser.run(
        "return [...document.querySelectorAll('#steps tr:first-child .slice')]"
        ".map((slice) => slice.className + ' ' + slice.style.width)"
    )
    assert widths[0] == "slice cause-running 87.9121%"
    assert [each.split()[1] for each in widths] == [
        "cause-running",
        "cause-preempted",
        "cause-runqueue",
    ]


def test_slowest_steps_are_explained(browser: Browser, node: Address):
    browser.open(node)

    assert "took 62.0 ms, 52.0 ms longer than the median" in browser.text("#slowest li")
    assert browser.run("return document.querySelectorAll('#slowest .pair .bar').length") == 2


def test_aggressors_with_the_time_they_took(browser: Browser, node: Address):
    browser.open(node)

    assert browser.text("#blame tbody tr").startswith("antagonist chat ")
    assert browser.text("#blame td.since").startswith("the start")


def test_the_cursor_reads_the_heat_map(browser: Browser, node: Address):
    browser.open(node)
    browser.point_at("#heat .u-over", right=2, top=3)

    browser.wait(lambda: "waits of 8.39 ms to 12.6 ms" in browser.text("#heat-reading"))


@pytest.mark.parametrize("place", ["heat", "why", "steal"])
def test_plots_are_painted(browser: Browser, node: Address, place: str):
    browser.open(node)

    colours = browser.run(
        f"const canvas = document.querySelector('#{place} canvas');"
        "const data = new Uint32Array(canvas.getContext('2d')"
        "  .getImageData(0, 0, canvas.width, canvas.height).data.buffer);"
        "return new Set(data).size"
    )
    assert colours > 4


def test_what_is_not_told_has_its_reason(browser: Browser, node: Address):
    browser.open(node)

    assert "fault: this kernel does not tell" in browser.text("#unknown")
    assert "gpu: this kernel does not tell" in browser.text("#unknown")
    assert "Lost 7: page_bad_magic." in browser.text("#unknown")


def test_stalls_with_the_steps_that_they_hit(browser: Browser, node: Address):
    browser.open(node)

    assert browser.text("#stall").startswith("CPUs stood still: 1 x the whole machine, 400 ms")
    assert "400 ms ±2.00 ms: CPU 0-1" in browser.text("#stall")
    assert "hit chat step 9" in browser.text("#stall")


def test_placement(browser: Browser, node: Address):
    browser.open(node)

    text = browser.text("#placement")
    assert text.startswith(
        "/dev/shm/queue is 90 % on node 0, 10 % on node 1, but expected on node 1"
    )
    assert (
        "/dev/shm/queue 4.0 MiB 90 % node 0, 10 % node 1 100 % node 1 on node 1 misplaced" in text
    )
    assert "90 % engine 70 on node 0, 10 % main 70 on node 1 of 1,000 pages seen" in text
    assert "engine 70 chat 90 % node 0, 10 % node 1 100 % node 1 0.90" in text
    assert "node 0 10,000 pages 10 % 4.0 % 6.0 %" in text


def test_one_tenant_only(browser: Browser, node: Address):
    browser.open(node)
    browser.run(
        "const choice = document.querySelector('#tenant'); choice.value = 'batch';"
        "choice.dispatchEvent(new Event('change'))"
    )

    assert browser.text("#verdict").startswith("Steps get their CPUs.")
    assert "chat" not in browser.text("#steps")
    assert browser.text("#blame").startswith("Nobody")


def test_behind_a_password(browser: Browser, tmp_path: Path):
    web = tmp_path / "web.yaml"
    secret = bcrypt.hashpw(b"s3cret", bcrypt.gensalt(4)).decode()
    web.write_text(yaml.safe_dump({"basic_auth_users": {"alice": secret}}))
    with serving_node(Names(), Access(web)) as (host, port):
        browser.open((f"alice:s3cret@{host}", port))

        assert "chat" in browser.text("#steps")
        browser.driver.get("about:blank")


def test_it_says_when_the_agent_is_gone(browser: Browser):
    with serving_node(Names()) as address:
        browser.open(address)
        browser.run("document.querySelector('#pause').click()")
        assert browser.text("#status").startswith("paused at")

        browser.run("const now = Date.now; Date.now = () => now() + 20_000")
        browser.run("document.querySelector('#pause').setAttribute('aria-pressed', 'false')")
        browser.wait(lambda: browser.text("#status").startswith("live, traced"))
    browser.run("const now = Date.now; Date.now = () => now() + 20_000")
    browser.wait(lambda: browser.text("#status").startswith("no answer since"))
    browser.driver.get("about:blank")
    assert browser.complaints(unreachable=True) == []


@pytest.mark.parametrize("width", [320, 390, 1280, 2560])
def test_nothing_is_wider_than_the_screen(browser: Browser, node: Address, width: int):
    browser.open(node, width)

    assert browser.run("return document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1280])
def test_everybody_can_use_it(browser: Browser, node: Address, width: int, dark: bool):
    browser.open(node, width, dark)

    assert browser.accessibility_problems() == []


def test_nothing_jumps_when_the_state_changes(browser: Browser, node: Address):
    browser.open(node)
    browser.run("window.shifts.length = 0; window.shown = 0")
    before = browser.text("#blame")

    browser.wait(lambda: browser.text("#blame") != before)

    assert sum(browser.run("return window.shifts")) == 0


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Names)])
def test_hostile_names_are_text(serve: Serve, browser: Browser, field: str):
    name = getattr(HOSTILE, field)
    browser.open(serve(dataclasses.replace(Names(), **{field: name})))

    begin, _, _ = name.partition(RIGHT_TO_LEFT)
    assert begin.strip() in browser.text("body")
    assert RIGHT_TO_LEFT not in browser.text("body")
    assert (
        browser.run("return document.querySelectorAll('main :is(script, img), style').length") == 0
    )
    assert browser.run("return document.title").endswith("- tailtrace")


def test_long_names_do_not_break_the_page(serve: Serve, browser: Browser):
    names = Names(
        victim="v" * 128, quiet="q" * 128, step="s" * 64, aggressor="a" * 128, node="n" * 253
    )
    browser.open(serve(names), width=390)

    assert browser.run("return document.documentElement.scrollWidth") == 390
