"""How the trace page looks: its text can be read in the light and in the dark,
and a phone in landscape has room for all of it."""
import unittest

import trace_files
import webdriver
from pages import EVERY_TAB, Watched
from support import Case, until

READABLE = 4.5  # WCAG 2.2, contrast (minimum), of text and its background
# Contrast between each visible text and the background painted below it.
CONTRASTS = """
const brush = document.createElement('canvas').getContext('2d',
                                                {willReadFrequently: true});
const painted = (colours) => {  // one over the other
  brush.clearRect(0, 0, 1, 1);
  for (const [colour, opacity] of colours) {
    brush.globalAlpha = opacity;
    brush.fillStyle = colour;
    brush.fillRect(0, 0, 1, 1);
  }
  return brush.getImageData(0, 0, 1, 1).data;
};
const linear = (c) => (c <= 10 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4);
const bright = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g)
                              + 0.0722 * linear(b);
const contrast = (text, back) => {
  const [low, high] = [bright(painted([...back, [text, 1]])),
                       bright(painted(back))].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};
const behind = (node) => {
  const colours = [];
  for (let at = node; at instanceof Element; at = at.parentNode) {
    const box = at.localName === 'g' && at.querySelector('rect');
    if (box) {
      const style = getComputedStyle(box);
      colours.unshift([style.fill, Number(style.fillOpacity)]);
    }
    colours.unshift([getComputedStyle(at).backgroundColor, 1]);
  }
  return colours;
};
const found = [];
const judge = (what, text, back) =>
  found.push([Math.round(100 * contrast(text, back)) / 100, what]);
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const node = walk.currentNode.parentElement;
  const text = walk.currentNode.data.trim();
  if (!text || !node.getClientRects().length
      || /^(script|style|title)$/.test(node.localName)) continue;
  const style = getComputedStyle(node);
  judge(text.slice(0, 30), node.closest('svg') ? style.fill : style.color,
        behind(node));
}
const { ink } = window.troupe.timeline;  // the canvas
judge('lane', ink.quiet, [[ink.back, 1]]);
judge('process', ink.fore, [[ink.soft, 1]]);
const step = document.getElementById('filter-step');
judge('placeholder', getComputedStyle(step, '::placeholder').color, behind(step));
judge('actor', ink.quiet, [[ink.back, 1]]);  // on the map
judge('bundle', ink.accent, [[ink.back, 1]]);
const {colour, model} = window.troupe;
for (const call of model.graph.calls)  // a task and its phases
  for (const name of [call.name, ...[...Array(20).keys()].map((i) => `phase ${i}`)])
    judge(`${name} of ${call.name}`, ink.fore,
          [[ink.back, 1], [colour(model, name, ink.dark, call.name), 1]]);
for (let i = 0; i < 40; ++i)  // what is no call
  judge(`task ${i}`, ink.fore,
        [[ink.back, 1], [colour(model, `task ${i}`, ink.dark), 1]]);
return found;
"""
# What a finger would have to scroll the page for.
WIDER_THAN_THE_PAGE = """
return [...document.body.children].filter((box) => !box.hidden
    && box.getBoundingClientRect().right > innerWidth + 1)
  .map((box) => box.id || box.localName);
"""


class Look(Watched):
    def contrasts(self, browser, what):
        found = browser.run(CONTRASTS)
        self.assertGreater(len(found), 20, what)
        poor = sorted(entry for entry in found if entry[0] < READABLE)
        self.assertEqual(poor, [], what)

    def test_text_is_readable_in_the_light_and_in_the_dark(self):
        self.troupe(*self.ppo())
        with self.served("ppo") as url:
            for dark in (False, True):
                with self.browser(dark=dark) as browser:
                    browser.open(url)
                    self.loaded(browser, 3)
                    self.assertEqual(dark, browser.run(
                        "return document.documentElement.classList"
                        ".contains('dark')"), "as the reader's system is")
                    for tab in EVERY_TAB:
                        self.panel(browser, tab)
                        self.contrasts(browser, f"{tab}, dark: {dark}")
                        browser.picture(self.pictures / (
                            f"look_{tab}{'_dark' if dark else ''}.png"))
                    self.detail_of(browser, "actor_train", 3)
                    self.contrasts(browser, f"a task, dark: {dark}")
                    browser.picture(self.pictures / (
                        f"look_task{'_dark' if dark else ''}.png"))

    def test_warnings_are_readable_in_the_light_and_in_the_dark(self):
        file = trace_files.TraceFile(self.trace_folder("cut", "failed"),
                                     "master", 0)
        (self.run_folder("cut") / "status.json").write_text(
            '{"state": "failed", "step": 1, "steps": 9, "attempt": 1,'
            ' "last_failure": "worker 1 was killed"}')
        name, a, b = file.name("run"), file.track("a"), file.track("b")
        file.events([file.event(trace_files.SEND, 1000, a, name, 1, 1),
                     file.event(trace_files.RECEIVE, 2000, b, name, 1, 1),
                     file.event(trace_files.SEND, 3000, a, name, 1, 2)])
        file.record(5, (7).to_bytes(8, "little"))  # events that were dropped
        file.file.close()
        with self.served("cut") as url:
            for dark in (False, True):
                with self.browser(dark=dark) as browser:
                    browser.open(url)
                    until(lambda: "killed" in self.banner(browser), "a banner")
                    for tab, words in (("messages", "run (on its way)"),
                                       ("health", "0 us ago\tthe same\t7")):
                        self.assertIn(words, self.panel(browser, tab))
                        self.contrasts(browser, f"{tab}, dark: {dark}")
                        browser.picture(self.pictures / (
                            f"look_cut_{tab}{'_dark' if dark else ''}.png"))

    def test_a_phone_in_landscape_has_room_for_all_of_it(self):
        self.troupe(*self.ppo())
        with self.served("ppo") as url, self.browser(phone=webdriver.PHONE) as browser:
            browser.open(url)
            self.loaded(browser, 3)
            self.assertEqual(browser.run("return [innerWidth, innerHeight]"),
                             list(webdriver.PHONE))
            browser.picture(self.pictures / "phone.png")
            browser.run("document.getElementById('timeline').scrollIntoView()")
            self.assertGreater(
                browser.run("const box = document.getElementById('timeline')"
                            ".getBoundingClientRect(); return Math.min("
                            "innerHeight, box.bottom) - box.top"), 160)
            for tab in EVERY_TAB:
                self.panel(browser, tab)
                self.assertLessEqual(
                    browser.run("return document.documentElement.scrollWidth"),
                    webdriver.PHONE[0], tab)
                self.assertLess(
                    browser.run("return document.getElementById('panel')"
                                ".getBoundingClientRect().top"),
                    webdriver.PHONE[1] / 2, f"{tab} is in view once chosen")
                browser.picture(self.pictures / f"phone_{tab}.png")
            self.assertEqual(browser.errors(), [])
            self.assertEqual(self.hidden_buttons(browser), [])

    def test_a_phone_held_upright_needs_no_scrolling_to_the_side(self):
        self.troupe(*self.ppo())
        with self.served("ppo") as url, \
                self.browser(phone=webdriver.UPRIGHT) as browser:
            browser.open(url)
            self.loaded(browser, 3)
            self.assertEqual(browser.run("return [innerWidth, innerHeight]"),
                             list(webdriver.UPRIGHT))
            for tab in EVERY_TAB:
                self.panel(browser, tab)
                self.assertEqual(*browser.run(
                    "const page = document.documentElement;"
                    "return [page.scrollWidth, page.clientWidth];"), tab)
                browser.picture(self.pictures / f"upright_{tab}.png")
            self.detail_of(browser, "actor_train", 3)
            self.assertEqual(browser.run(WIDER_THAN_THE_PAGE), [])
            browser.picture(self.pictures / "upright_task.png")
            browser.run("window.troupe.state.close()")
            self.assertEqual(browser.errors(), [])
            self.assertEqual(self.hidden_buttons(browser), [])

    def hidden_buttons(self, browser):
        """Tabs that no finger gets at."""
        return browser.run("""
            return [...document.querySelectorAll('#tabs button')].filter((b) => {
              b.scrollIntoView();
              const box = b.getBoundingClientRect();
              return document.elementFromPoint((box.left + box.right) / 2,
                                               (box.top + box.bottom) / 2) !== b;
            }).map((b) => b.innerText);""")


class LookInChromium(Look, Case):
    browser = webdriver.Chromium


class LookInFirefox(Look, Case):
    browser = webdriver.Firefox


if __name__ == "__main__":
    unittest.main()
