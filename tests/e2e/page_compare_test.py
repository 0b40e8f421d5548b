"""Two runs beside each other on the page: opened together, by the address of the
other run's page, or from its report."""
import re
import signal
import unittest

import webdriver
from pages import Watched
from support import Case, until


class Compare(Watched):
    def setUp(self):
        super().setUp()
        self.made_run("one")
        self.made_run("two", slower=1.5, lr="2.0e-4", steps=30)

    def add(self, browser, address):
        browser.run("const field = document.querySelector('#panel form input');"
                    f"field.value = {address!r};"
                    "field.form.requestSubmit();")

    def compared(self, browser):
        """The tab once the other run is read."""
        until(lambda: self.model(browser, "window.troupe.state.beside.length === 1 && "
                                 "window.troupe.state.beside[0].loaded"),
              "the other run is read")
        return self.panel(browser, "compare")

    def check(self, told):
        self.assertRegex(told, r"two is slower: 300 ms a step, one 200 ms\. Most of "
                               r"it: actor_train is 147 ms of the critical path, "
                               r"98 ms in one\.")
        self.assertRegex(told, r"models\.actor\.optimizer\.lr\s+1\.0e-4\s+2\.0e-4")
        self.assertRegex(told, r"run\.name\s+one\s+two")
        self.assertNotIn("rollout.n", told, "it does not differ")
        for call, a, b in (("actor_gen", 60, 90), ("rew_inf", 40, 60),
                           ("actor_train", 98, 147)):
            self.assertRegex(told, rf"{call}\s+{a}(\.00)? ms\s+{b}(\.00)? ms\s+1\.50")

    def lines(self, browser):
        """The last x of each line of the reward's curve, and its dashes."""
        return browser.run("""
            const card = [...document.querySelectorAll('#panel .card')].find(
              (c) => c.innerText.startsWith('reward'));
            return [...card.querySelectorAll('polyline')].map((l) => [
              l.getAttribute('points').split(' ').length,
              getComputedStyle(l).strokeDasharray !== 'none']);""")

    def test_a_run_is_compared_by_the_address_of_its_page(self):
        with self.served("one") as url, self.served("two") as other, \
                self.browser() as browser:
            browser.open(url)
            self.loaded(browser, 40)
            self.assertIn("troupe trace serve RUN OTHER", self.panel(browser, "compare"))
            for wrong, words in (("nonsense", "expected an address like"),
                                 (re.sub("token=..", "token=00", other),
                                  "is the token right?")):
                self.add(browser, wrong)
                until(lambda: words in self.text_of(browser, "panel"), words)
            self.assertNotIn("token", browser.run("return location.hash"))
            self.add(browser, other)
            self.check(self.compared(browser))
            self.assertEqual(self.lines(browser), [[40, False], [30, True]])
            browser.run("window.scrollTo(0, document.getElementById('tabs').offsetTop)")
            browser.picture(self.pictures / "compare_two_pages.png")

    def test_a_run_is_compared_from_its_report(self):
        self.troupe("trace", "report", "runs/two", "--html", "two.html")
        text = (self.folder / "two.html").read_text()
        with self.served("one") as url, self.browser() as browser:
            browser.open(url)
            self.loaded(browser, 40)
            self.panel(browser, "compare")
            self.give(browser, "<html>no report</html>")
            until(lambda: "this file is no report" in self.text_of(browser, "panel"),
                  "the page says so")
            self.give(browser, text)
            self.check(self.compared(browser))
            self.assertEqual(browser.errors(), [])

    def give(self, browser, text):
        """Chooses a file with this text, in portions: one script has a limit."""
        browser.run("window.given = []")
        for at in range(0, len(text), 500_000):
            browser.run(f"window.given.push({text[at:at + 500_000]!r})")
        browser.run("""
            const field = document.querySelector('#panel input[type=file]');
            const chosen = new DataTransfer();
            chosen.items.add(new File([window.given.join('')], 'two.html'));
            field.files = chosen.files;
            field.dispatchEvent(new Event('change'));""")

    def test_runs_that_were_opened_together_are_compared(self):
        process = self.start("trace", "serve", "runs/one", "runs/two")
        url = process.wait_for_line(r"\S+").group(0)
        with self.browser() as browser:
            browser.open(url)
            self.loaded(browser, 40)
            self.check(self.compared(browser))
            browser.picture(self.pictures / "compare_opened.png")
            self.assertEqual(browser.errors(), [])
        process.send(signal.SIGTERM)
        process.finish()


class CompareInChromium(Compare, Case):
    browser = webdriver.Chromium


class CompareInFirefox(Compare, Case):
    browser = webdriver.Firefox


if __name__ == "__main__":
    unittest.main()
