"""A real Chromium for the tests: pages are opened from files, and what they do is observed.

Debian's packages `chromium` and `chromium-driver` and the extra `browser` are needed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

SIZE = (1440, 900)


def start_chromium(*arguments: str) -> Chrome:
    """A Chromium without a window. Raises RuntimeError if it is not installed."""
    from selenium import webdriver

    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        raise RuntimeError("these tests need Debian's packages chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    # Chromium's sandbox does not run as root; a small /dev/shm, as in containers, would end it.
    switches = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--force-device-scale-factor=1")
    for switch in (*switches, f"--window-size={SIZE[0]},{SIZE[1]}", *arguments):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))


class Opened:
    """A page in the browser."""

    def __init__(self, driver: Chrome, path: Path, media: dict[str, str] | None = None) -> None:
        features = [{"name": name, "value": value} for name, value in (media or {}).items()]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        driver.get_log("browser"), driver.get_log("performance")
        self.driver = driver
        self.address = path.as_uri()
        driver.get(self.address)
        # A script that fails never says so in the document.
        self.wait(lambda: self.run("return document.documentElement.dataset.ready") == "true" or self._failed())

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script in the page returns."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, holds: Callable[[], Any]) -> Any:
        """Wait until something holds; what it was."""
        from selenium.webdriver.support.wait import WebDriverWait

        return WebDriverWait(self.driver, 20).until(lambda _: holds())

    def all(self, selector: str) -> list[WebElement]:
        """Every element, in the order of the document."""
        return list(self.driver.find_elements("css selector", selector))

    def one(self, selector: str) -> WebElement:
        """The first element."""
        return self.driver.find_element("css selector", selector)

    def texts(self, selector: str) -> list[str]:
        """The text of every element."""
        script = "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)"
        return list(self.run(script, selector))

    def press(self, *keys: str) -> None:
        """Press keys one after the other, as a person does."""
        from selenium.webdriver.common.action_chains import ActionChains

        chain = ActionChains(self.driver)
        for key in keys:
            chain.send_keys(key)
        chain.perform()

    def visible(self, selector: str) -> bool:
        """True if the middle of an element is inside the drawing."""
        script = """
        const place = (each) => document.querySelector(each).getBoundingClientRect();
        const [inner, outer] = [place(arguments[0]), place("#drawing")];
        const [x, y] = [(inner.left + inner.right) / 2, (inner.top + inner.bottom) / 2];
        return outer.left <= x && x <= outer.right && outer.top <= y && y <= outer.bottom;
        """
        return bool(self.run(script, selector))

    @contextmanager
    def narrow(self, width: int = 390) -> Iterator[None]:
        """Inside the block, the page is opened as wide as a phone, or another width."""
        self.resize(width)
        self.driver.get(self.address)
        self.wait(lambda: self.run("return document.documentElement.dataset.ready") == "true")
        try:
            yield
        finally:
            self.resize(None)

    def resize(self, width: int | None) -> None:
        """Give the page another width while it is open; None: that of the window."""
        if width is None:
            self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        else:
            size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
            self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def _failed(self) -> bool:
        found = self.console()
        assert found == []
        return False

    def console(self) -> list[str]:
        """What the browser has to say, violations of the policy included."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requested(self) -> list[str]:
        """The address of everything that was requested since the page was opened."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"]
        return [address for address in sent if not address.startswith("data:")]

    def assert_quiet(self) -> None:
        """Nothing in the console, and no request but for the page itself."""
        assert self.console() == []
        assert set(self.requested()) <= {self.address}


Open = Callable[..., Opened]
Keys = Sequence[str]
