"""Addresses on the page: each tab, step, task and sample has one, which a reload
and the browser's "back" keep."""
import unittest

import webdriver
from pages import Watched
from support import Case, until

PLACE = """
const {state} = window.troupe;
return [state.tab, state.step, state.task && `${state.task.name} ${state.task.step}`,
        state.sample && `${state.sample.step}.${state.sample.sample}`,
        document.getElementById('detail').hidden];
"""


class Links(Watched):
    def place(self, browser):
        return browser.run(PLACE)

    def address(self, browser, *parts):
        """Waits for an address with these parts and returns it."""
        return until(lambda: (hash_ := browser.run("return location.hash"))
                     and all(part in hash_ for part in parts) and hash_,
                     f"an address with {parts}")

    def opened(self, browser, url):
        browser.open(url)
        browser.fit(1280, 900)
        self.loaded(browser, 40)

    def choose(self, browser, tab):
        browser.run(f"document.getElementById('tab-{tab}').click()")

    def test_back_and_reload_lead_to_the_same_place(self):
        self.made_run()
        with self.served("made") as url, self.browser() as browser:
            self.opened(browser, url)
            browser.run("document.getElementById('step-back').click()")
            self.address(browser, "step=39")
            self.choose(browser, "waits")
            self.address(browser, "tab=waits", "step=39")
            self.detail_of(browser, "rew_inf", 12)
            self.address(browser, "task=rew_inf", "step=12", "tab=waits")
            browser.run("window.troupe.state.close()")
            self.address(browser, "tab=waits", "step=39")
            self.choose(browser, "curves")
            self.address(browser, "tab=curves")
            # moving the view is no place of its own
            browser.run("window.troupe.timeline.pan(0.1)")
            self.address(browser, "tab=curves", "from=")
            wanted = [["curves", 39, None, None, True], ["waits", 39, None, None, True],
                      ["waits", 39, "rew_inf 12", None, False],
                      ["waits", 39, None, None, True], ["steps", 39, None, None, True],
                      ["steps", 0, None, None, True]]
            self.assertEqual(self.place(browser), wanted[0])
            for place in wanted[1:]:
                browser.back()
                until(lambda: self.place(browser) == place, f"back at {place}, not "
                      f"{self.place(browser)}", 10)
            self.assertEqual(browser.errors(), [])

    def test_a_link_to_a_step_a_task_and_a_sample_survives_a_reload(self):
        self.made_run()
        with self.served("made") as url, self.browser() as browser:
            for link, place in (
                    ("#step=7", ["steps", 7, None, None, True]),
                    ("#tab=plan&task=actor_train&device=device+1&step=9",
                     ["plan", 0, "actor_train 9", None, False]),
                    ("#tab=samples&sample=31.5", ["samples", 0, None, "31.5", False])):
                browser.open("about:blank")
                browser.open(url + link)
                for _ in range(2):
                    self.loaded(browser, 40)
                    until(lambda: self.place(browser) == place, f"{link}: {place}", 10)
                    self.address(browser, *link[1:].split("&"))
                    browser.reload()
            until(lambda: "sample 5 of step 31" in self.text_of(browser, "detail"),
                  "the sample after a reload")
            self.assertEqual(browser.errors(), [])

    def test_a_link_keeps_what_samples_are_filtered_by(self):
        self.made_run()
        with self.served("made") as url, self.browser() as browser:
            browser.open(url + "#tab=samples&find=guess&end=eos&reward=1.5..3&diff=..")
            self.loaded(browser, 40)
            chosen = until(lambda: self.model(browser, "window.troupe.state.samples"),
                           "the filters")
            self.assertEqual(
                [chosen[name] for name in ("find", "end", "least", "most", "diff")],
                ["guess", "eos", 1.5, 3, True])
            self.assertEqual(browser.run(
                "return document.querySelector('[aria-label=\"lowest reward\"]').value"),
                "1.5")
            self.assertEqual(browser.errors(), [])


class LinksInChromium(Links, Case):
    browser = webdriver.Chromium


class LinksInFirefox(Links, Case):
    browser = webdriver.Firefox


if __name__ == "__main__":
    unittest.main()
