"""Search and the keyboard on the page: what a person without a mouse reaches, what
is said to one who cannot see it, and what a search marks."""
import unittest

import webdriver
from pages import Watched
from support import Case, until

FOCUS = """
const at = document.activeElement, style = getComputedStyle(at);
return [at.id || at.className || at.localName, style.outlineStyle !== 'none',
        parseFloat(style.outlineWidth)];
"""


class Keys(Watched):
    def opened(self, browser, url):
        browser.open(url)
        browser.fit(1280, 900)
        self.loaded(browser, 40)
        until(lambda: browser.run("return window.troupe.timeline.frameMs.length"),
              "a frame")

    def found(self, browser):
        return browser.run("return [...document.querySelectorAll('#hits button')]"
                           ".map((b) => [...b.children].slice(0, 2)"
                           ".map((c) => c.innerText).join(' '))")

    def search(self, browser, text):
        browser.run("document.getElementById('search').value = '';"
                    "document.body.focus(); document.activeElement.blur();")
        browser.press("/", *text)

    def test_search_finds_calls_tasks_actors_and_devices_and_marks_tasks(self):
        self.made_run()
        with self.served("made") as url, self.browser() as browser:
            self.opened(browser, url)
            for text, hit, marked in (
                    ("rew", "call rew_inf", 40),
                    ("actor_train 7", "task actor_train of step 7", 2),
                    ("shard", "actor shard actor/0", 0),
                    ("device 1", "device device 1", 80)):
                with self.subTest(text):
                    self.search(browser, text)
                    self.assertIn(hit, self.found(browser))
                    said = self.text_of(browser, "matches")
                    self.assertEqual(said, f"{marked} tasks marked: n, N"
                                     if marked else "")
                    browser.press("Escape")
            # what is meant is drawn as ever, the rest is faint
            self.search(browser, "rew_inf")
            alphas = browser.run("""
                const {timeline} = window.troupe;
                const drawn = {}, g = timeline.canvas.getContext('2d');
                const was = g.fillRect;
                let alpha = 0, own;
                g.fillRect = function (...box) {
                  if (box[3] === 18) alpha = g.globalAlpha;
                  was.call(this, ...box);
                };
                const text = g.fillText;
                g.fillText = function (t, ...rest) {
                  const name = /^(actor_gen|rew_inf|actor_train)/.exec(t);
                  if (name) (drawn[name[1]] ||= new Set()).add(alpha);
                  text.call(this, t, ...rest);
                };
                document.getElementById('last-step').click();
                timeline.draw();
                delete g.fillRect; delete g.fillText;
                return Object.fromEntries(Object.entries(drawn)
                  .map(([name, set]) => [name, [...set]]));""")
            self.assertEqual(alphas["rew_inf"], [1])
            for other in ("actor_gen", "actor_train"):
                self.assertLess(alphas[other][0], 0.5)
            browser.picture(self.pictures / "search.png")
            self.assertEqual(browser.errors(), [])

    def picked(self, browser):
        return browser.run("const {picked: p} = window.troupe.timeline;"
                           "return p && [p.track.name, p.name, p.step]")

    def test_the_timeline_is_walked_by_keys_and_each_task_is_said(self):
        self.made_run()
        with self.served("made") as url, self.browser() as browser:
            self.opened(browser, url)
            browser.run("const {timeline, model} = window.troupe;"
                        "const span = model.stepSpan(30);"
                        "timeline.show(span.b, span.e);"
                        "timeline.canvas.focus()")
            steps = []
            for key in ("Right", "Right", "Right", "Down", "Left", "Up"):
                browser.press(key, hold=["Shift"])
                steps.append(self.picked(browser))
            self.assertEqual(steps[0][0], "device 0")
            order = ["actor_gen", "rew_inf", "actor_train"]
            for before, after in zip(steps[:3], steps[1:3]):
                self.assertEqual(order.index(after[1]),
                                 (order.index(before[1]) + 1) % 3)
            self.assertEqual(steps[3][0], "device 1")
            self.assertEqual(steps[5][0], "device 0")
            device, name, step = self.picked(browser)
            self.assertRegex(self.text_of(browser, "spoken"),
                             rf"^{device}: {name} of step {step}, [\d.]+ ms;")
            browser.press("Enter")
            self.assertIn(f"{name} of step {step}", self.text_of(browser, "detail"))
            self.assertEqual(browser.run(FOCUS)[0], "detail")
            browser.press("Escape")
            self.assertEqual(browser.run("return document.getElementById('detail')"
                                         ".hidden"), True)
            self.assertEqual(browser.run(FOCUS)[0], "timeline",
                             "the focus is where it was")
            spans = [browser.run("const t = window.troupe.timeline;"
                                 "return [t.from, t.to]")]
            for key in ("Left", "+", "-", "Right"):
                browser.press(key)
                spans.append(browser.run("const t = window.troupe.timeline;"
                                         "return [t.from, t.to]"))
            wide = [b - a for a, b in spans]
            self.assertLess(spans[1][0], spans[0][0])
            self.assertLess(wide[2], wide[1])
            self.assertGreater(wide[3], wide[2])
            self.assertGreater(spans[4][0], spans[3][0])
            self.assertEqual(browser.errors(), [])

    def test_n_goes_through_what_the_search_means(self):
        self.made_run()
        with self.served("made") as url, self.browser() as browser:
            self.opened(browser, url)
            self.search(browser, "rew_inf")
            browser.press("Enter")  # the call: its last task before the view's end
            seen = [self.picked(browser)]
            for key, hold in (("n", ()), ("N", ["Shift"]), ("N", ["Shift"])):
                browser.press(key, hold=hold)
                seen.append(self.picked(browser))
            self.assertEqual({tuple(s[:2]) for s in seen}, {("device 0", "rew_inf")})
            steps = [s[2] for s in seen]
            self.assertEqual([steps[1] - steps[0], steps[2] - steps[1],
                              steps[3] - steps[2]],
                             [1 if steps[0] < 40 else -39,
                              -1 if steps[0] < 40 else 39, -1])
            self.assertIn("search=rew_inf", until(lambda: browser.run(
                "return location.hash.includes('search') && location.hash"),
                "the address has the search"))
            browser.press("Escape")
            browser.press("Escape")
            self.assertEqual(self.text_of(browser, "matches"), "")
            self.assertEqual(browser.errors(), [])

    def test_every_control_is_reached_by_tab_is_seen_and_has_a_name(self):
        self.made_run()
        with self.served("made") as url, self.browser() as browser:
            self.opened(browser, url)
            seen = []
            for _ in range(80):
                browser.press("Tab")
                name, outlined, width = browser.run(FOCUS)
                if name in ("body", "") or (seen and name == seen[0]):
                    break
                self.assertTrue(outlined and width >= 1, f"{name} shows the focus")
                seen.append(name)
            for name in ("search", "help", "follow", "filter-kind", "timeline",
                         "tab-steps", "spark-row"):
                self.assertIn(name, seen)
            self.assertNotIn("tab-curves", seen, "one tab is in the order of tab")
            nameless = browser.run("""
                return [...document.querySelectorAll(
                    'button, input, select, canvas, [role=tabpanel], [role=dialog]')]
                  .filter((e) => !(e.innerText || '').trim() && !e.title
                    && !e.getAttribute('aria-label') && !e.closest('label')
                    && !e.getAttribute('aria-labelledby'))
                  .map((e) => e.outerHTML.slice(0, 90));""")
            self.assertEqual(nameless, [])
            # arrows go from tab to tab
            browser.run("document.getElementById('tab-steps').focus()")
            browser.press("Right", "Right")
            self.assertEqual(browser.run(
                "return [document.activeElement.id,"
                " document.activeElement.getAttribute('aria-selected'),"
                " document.getElementById('panel').getAttribute('aria-labelledby')]"),
                ["tab-links", "true", "tab-links"])
            browser.press("?")
            self.assertIn("from task to task", self.text_of(browser, "detail"))
            # the search says which hit is chosen
            self.search(browser, "actor_gen")
            browser.press("Down")
            state = browser.run("""
                const input = document.getElementById('search');
                const chosen = document.getElementById(
                  input.getAttribute('aria-activedescendant'));
                return [input.getAttribute('aria-expanded'), chosen.role
                        || chosen.getAttribute('role'),
                        chosen.getAttribute('aria-selected')];""")
            self.assertEqual(state, ["true", "option", "true"])
            self.assertEqual(browser.errors(), [])


class KeysInChromium(Keys, Case):
    browser = webdriver.Chromium


class KeysInFirefox(Keys, Case):
    browser = webdriver.Firefox


if __name__ == "__main__":
    unittest.main()
