"""Chromium without a window, from Debian's packages, and what it has to complain about."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium.webdriver import ActionChains, Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

AXE = Path(__file__).parents[2] / "exporters/page/node_modules/axe-core/axe.min.js"

_SHIFTS = """
window.shifts = [];
new PerformanceObserver((list) => {
  window.shifts.push(...list.getEntries().map((each) => each.value));
}).observe({type: "layout-shift", buffered: true});
"""


class Browser:
    """One tab."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _SHIFTS})

    def open(self, address: tuple[str, int], width: int = 1280, dark: bool = False) -> None:
        """The agent's page, once it shows the agent's state."""
        self.resize(width, 900)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._cdp("Emulation.setEmulatedMedia", features=[scheme])
        host, port = address
        self.driver.get(f"http://{host}:{port}/")
        self.wait(lambda: self.text("#status").startswith("live"))

    def resize(self, width: int, height: int) -> None:
        self._cdp(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def wait(self, condition: Callable[[], Any], seconds: float = 20) -> None:
        WebDriverWait(self.driver, seconds, 0.1).until(lambda _: condition())

    def text(self, selector: str) -> str:
        """What is read there, runs of white space as one."""
        found = self.run(f"return document.querySelector({json.dumps(selector)}).innerText")
        return " ".join(found.split())

    def run(self, script: str) -> Any:
        return self.driver.execute_script(script)

    def point_at(self, selector: str, right: int, top: int) -> None:
        """With the mouse, so many pixels from the right and upper edges."""
        element = self.driver.find_element(By.CSS_SELECTOR, selector)
        x, y = element.size["width"] // 2 - right, top - element.size["height"] // 2
        ActionChains(self.driver).move_to_element_with_offset(element, x, y).perform()

    def complaints(self, unreachable: bool = False) -> list[str]:
        """
        Since the last call: errors, warnings and what the security policy stopped.

        :param unreachable: the server is gone, and what could not be loaded is no complaint
        """
        expected = "network" if unreachable else None
        log = self.driver.get_log("browser")
        return [entry["message"] for entry in log if entry["source"] != expected]

    def accessibility_problems(self) -> list[str]:
        """Of the page as it is now, by axe-core."""
        self.run(AXE.read_text())
        found = self.driver.execute_async_script(
            "axe.run().then(({violations}) => arguments[0](violations))"
        )
        return [f"{each['id']}: {node['html']}" for each in found for node in each["nodes"]]

    def screenshot(self, file: Path, height: int | None = None) -> None:
        """Of the whole page, or its first ``height`` pixels."""
        width, whole = self.run(
            "const {scrollWidth, scrollHeight} = document.documentElement;"
            "return [scrollWidth, scrollHeight]"
        )
        self.resize(width, height or whole)
        self.driver.save_screenshot(str(file))

    def _cdp(self, command: str, **arguments: Any) -> None:
        self.driver.execute_cdp_cmd(command, arguments)


@contextmanager
def running_browser() -> Iterator[Browser]:
    options = ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    options.add_argument("--headless=new")
    options.add_argument("--hide-scrollbars")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium has none for root
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options, Service("/usr/bin/chromedriver"))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
