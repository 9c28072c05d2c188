"""A browser for all tests of the page. No test may leave it with something to complain about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from exporters.server import Address
from tests.page.browser import Browser, running_browser
from tests.page.node import Names, serving_node


@pytest.fixture(scope="session")
def _browser() -> Iterator[Browser]:
    with running_browser() as browser:
        yield browser


@pytest.fixture
def serve() -> Iterator[Callable[[Names], Address]]:
    """Serve nodes of these names until the browser has left them."""
    with ExitStack() as servers:
        yield lambda names: servers.enter_context(serving_node(names))


@pytest.fixture
def browser(_browser: Browser, serve: Callable[[Names], Address]) -> Iterator[Browser]:
    _browser.complaints()
    yield _browser
    _browser.driver.get("about:blank")
    assert _browser.complaints() == []
