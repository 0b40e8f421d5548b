"""Helpers of tests of the trace page: a run that `troupe trace serve` shows to a
browser, and what stands on the page. Pictures are kept in the build folder
(build/pages/)."""
import contextlib
import json
import signal
import time
import unittest

import made_runs
import webdriver
from support import BUILD, until

EVERY_TAB = ("steps messages links mailboxes latency waits stragglers failures "
             "health curves samples plan compare").split()


class Watched:
    """A test case with its own browser."""

    browser = webdriver.Browser

    @classmethod
    def setUpClass(cls):
        if cls.browser.missing():
            raise unittest.SkipTest(cls.browser.missing())
        super().setUpClass()

    @property
    def pictures(self):
        return BUILD / "pages" / self.browser.__name__.lower()

    def serve(self, name):
        """`troupe trace serve`, and the address that it prints."""
        process = self.start("trace", "serve", f"runs/{name}")
        url = process.wait_for_line(r"\S+").group(0)
        self.assertRegex(url, r"^http://127\.0\.0\.1:\d+/\?token=[0-9a-f]{64}$")
        return process, url

    @contextlib.contextmanager
    def served(self, name):
        process, url = self.serve(name)
        try:
            yield url
        finally:
            process.send(signal.SIGTERM)
            process.finish()

    def model(self, browser, expression):
        return browser.run("const {model: m, criticalPath, openWaits, travelling}"
                           f" = window.troupe; return {expression};")

    def step_shown(self, browser):
        """What the first screen says of the step's dataflow."""
        return browser.run("return document.getElementById('dataflow').innerText")

    def loaded(self, browser, steps):
        until(lambda: self.model(browser, "m.loaded && m.steps.size") >= steps,
              "the page has every step")
        time.sleep(0.3)  # the last frame

    def detail_of(self, browser, call, step):
        """Returns the text after a click on a task of the call."""
        return browser.run(
            "window.troupe.state.pick(window.troupe.model.steps"
            f".get({step}).get('{call}')[0]);"
            "return document.getElementById('detail').innerText")

    def banner(self, browser):
        return browser.run("return document.getElementById('banner').innerText")

    def trace_folder(self, name, state):
        folder = self.run_folder(name)
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text("workflow: ppo\n")
        (folder / "status.json").write_text(json.dumps(
            {"state": state, "step": 0, "steps": 9, "attempt": 1}))
        return folder / "trace"

    def text_of(self, browser, what):
        return browser.run(f"return document.getElementById('{what}').innerText")

    def made_run(self, name="made", **how):
        """A run folder of tests/e2e/made_runs.py."""
        return made_runs.make_run(self.folder, name, **how)

    def panel(self, browser, tab):
        browser.run("[...document.querySelectorAll('#tabs button')]"
                    f".find((b) => b.dataset.tab === '{tab}').click()")
        time.sleep(0.5)
        return browser.run("return document.getElementById('panel').innerText")
