"""The trace page in a real browser: a finished run, a live one, and a worker
that stops. Pictures are kept in the build folder (build/pages/)."""
import os
import re
import signal
import time
import unittest

import webdriver
from support import BUILD, Case, until

PICTURES = BUILD / "pages"
EVERY_TAB = ("dataflow steps messages links mailboxes latency stragglers waits "
             "health curves samples").split()


class Page(Case):
    def serve(self, name):
        """`troupe trace serve`, and the address that it prints."""
        process = self.start("trace", "serve", f"runs/{name}")
        url = process.popen.stdout.readline().strip()
        self.assertRegex(url, r"^http://127\.0\.0\.1:\d+/$")
        return process, url

    def model(self, browser, expression):
        return browser.run(f"const m = window.troupe.model; return {expression};")

    def loaded(self, browser, steps):
        until(lambda: self.model(browser, "m.steps.size") >= steps,
              "the page has every step")
        time.sleep(0.3)  # the last frame

    @unittest.skipIf(webdriver.missing(), webdriver.missing())
    def test_a_finished_run_shows_everything_it_recorded(self):
        self.troupe(*self.ppo("run.steps=4"))
        process, url = self.serve("ppo")
        with webdriver.Browser() as browser:
            browser.open(url)
            self.loaded(browser, 4)
            # I7: every message has both ends
            self.assertEqual(self.model(browser, "m.dropped()"), 0)
            self.assertEqual(self.model(browser, "m.sends.size"), 0)
            self.assertGreater(self.model(browser, "m.arrows.length"), 200)
            self.assertEqual(self.model(browser, "openWaits(m).length"), 0)
            self.assertEqual(self.model(browser, "m.metrics.length"), 4)
            self.assertEqual(self.model(browser, "m.devices().length"), 4)
            path = self.model(browser, "criticalPath(m, 3).map((t) => t.call)")
            self.assertEqual(path[0], "actor_gen")
            self.assertIn(path[-1], ("actor_train", "critic_train"))
            for tab in EVERY_TAB:
                browser.run("[...document.querySelectorAll('#tabs button')]"
                            f".find((b) => b.dataset.tab === '{tab}').click()")
                time.sleep(0.5)
                text = browser.run("return document.getElementById('panel')"
                                   ".innerText")
                self.assertNotRegex(text, r"NaN|undefined|Infinity", tab)
                browser.picture(PICTURES / f"{tab}.png")
            self.assertEqual(browser.errors(), [])
        process.send(signal.SIGTERM)
        self.assertEqual(process.finish().code, 0)

    @unittest.skipIf(webdriver.missing(), webdriver.missing())
    def test_a_live_run_is_seen_while_it_runs_and_a_death_within_a_second(self):
        process = self.start(*self.ppo("run.steps=100000"))
        self.wait_for_step("ppo", 2)
        status = self.troupe("status", "runs/ppo", "--json").stdout
        url = re.search(r'"trace_url": "(http://127[^"]+)"', status).group(1)
        with webdriver.Browser() as browser:
            browser.open(url)
            self.loaded(browser, 3)
            before = self.model(browser, "m.events")
            until(lambda: self.model(browser, "m.events") > before,
                  "new events arrive")
            self.assertTrue(self.model(browser, "m.live()"))
            browser.picture(PICTURES / "live.png")
            os.kill(self.workers()[0], signal.SIGKILL)
            killed = time.monotonic()
            until(lambda: browser.run("return document.getElementById('banner')"
                                      ".innerText"), "the page names the death")
            self.assertLess(time.monotonic() - killed, 2.0)
            browser.picture(PICTURES / "death.png")
        self.assertEqual(process.finish().code, 1)

    def test_a_folder_that_is_no_run_is_one_line(self):
        done = self.troupe("trace", "serve", "nowhere", code=2)
        self.assertRegex(done.stderr, r"^error: nowhere.*run folder")
        self.assertEqual(done.stderr.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
