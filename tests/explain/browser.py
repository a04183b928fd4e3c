"""A headless Chromium for tests of pages, by Selenium and Debian's own packages."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

ERRORS = ("SEVERE", "WARNING")
# The lines that are lit, by pane.
LIT = """Object.fromEntries([...page.panes.panes].map(([key, { list }]) =>
    [key, list ? [...list.lit].sort((a, b) => a - b) : []]))"""


class Browser:
    """One browser for many pages: `open` waits until the page is drawn, `complaints` are its console's."""

    def __init__(self) -> None:
        webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium: pip install '.[dev]'")
        chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
        if chromium is None or driver is None:
            pytest.skip("needs Debian's packages chromium and chromium-driver")
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for each in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
            options.add_argument(each)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
        self.size()

    def size(self, width: int = 1500, height: int = 900) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def colours(self, scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def open(self, page: Path | str) -> None:
        self.driver.get(page.as_uri() if isinstance(page, Path) else page)
        self.until("document.documentElement.dataset.ready === 'yes'")
        self.frame()

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(f"return {script}", *arguments)

    def until(self, condition: str, seconds: float = 20) -> None:
        end = time.monotonic() + seconds
        while not self.run(condition):
            assert time.monotonic() < end, f"never came true: {condition}"
            time.sleep(0.02)

    def frame(self) -> None:
        """Let the page draw what it has put off."""
        self.driver.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))"
        )

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def hover(self, selector: str) -> None:
        """Point near the left end of an element: its middle may be scrolled out of sight."""
        from selenium.webdriver.common.action_chains import ActionBuilder

        box = self.find(selector).rect
        x, y = box["x"] + min(70, box["width"] / 2), box["y"] + box["height"] / 2
        actions = ActionBuilder(self.driver, duration=0)
        actions.pointer_action.move_to_location(int(x), int(y))
        actions.perform()
        self.frame()

    def click(self, selector: str) -> None:
        """Click where `hover` points."""
        from selenium.webdriver import ActionChains

        self.hover(selector)
        ActionChains(self.driver, duration=0).click().perform()
        self.frame()

    def drag(self, selector: str, right: int) -> None:
        """Press on an element, move some pixels to the right, and let go."""
        from selenium.webdriver import ActionChains

        self.hover(selector)
        ActionChains(self.driver, duration=0).click_and_hold().move_by_offset(right, 0).release().perform()
        self.frame()

    def press(self, *keys: str) -> None:
        from selenium.webdriver import ActionChains

        ActionChains(self.driver, duration=0).send_keys(*keys).perform()
        self.frame()

    def computed(self) -> float:
        """The processor time of the page's main thread, in seconds: a busy machine does not change it."""
        self.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        metrics = self.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return next(each["value"] for each in metrics if each["name"] == "TaskDuration")

    @property
    def complaints(self) -> list[str]:
        return [each["message"] for each in self.driver.get_log("browser") if each["level"] in ERRORS]
