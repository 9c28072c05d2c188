"""The page of the real agent, beside the bundled workload and an engine with hostile names."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from exporters.server import Address
from tests.page.browser import Browser
from tests.programs import WORKLOAD, running, running_agent

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 and os.environ.get("KERNEL_TESTS") != "1", reason="needs root"
)

HOSTILE = """
import time, stepmark
open("/proc/self/comm", "w").write("<b>&'</b>")
tenant = '"><img src=x onerror=alert(1)>'
while True:
    with stepmark.step("<script>document.title=1</script>", tenants=tenant):
        time.sleep(0.003)
"""


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    with (
        running(*WORKLOAD, "--antagonist"),
        running(sys.executable, "-c", HOSTILE),
        running_agent(tmp_path_factory.mktemp("agent")) as address,
    ):
        yield address


def test_the_bundled_workload_and_its_antagonist(browser: Browser, agent: Address):
    browser.open(agent)

    browser.wait(lambda: "policy-a infer" in browser.text("#steps"), seconds=60)
    browser.wait(lambda: "antagonist policy-" in browser.text("#blame"), seconds=60)
    browser.wait(lambda: "policy-a" in browser.text("#slowest"), seconds=60)


def test_hostile_names_out_of_a_mark_page_are_text(browser: Browser, agent: Address):
    browser.open(agent)

    browser.wait(lambda: "<script>document.title=1</script>" in browser.text("#steps"), seconds=60)
    assert '"><img src=x onerror=alert(1)>' in browser.text("#tenant")
    assert browser.run("return document.querySelectorAll('main :is(script, img)').length") == 0
    assert browser.run("return document.title").endswith("- tailtrace")
