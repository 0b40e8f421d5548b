"""The page on a phone held upright, 390 px wide: every answer, tab and control is
within the screen, large enough for a finger, and reached without scrolling to the
side."""
import unittest

import webdriver
from pages import EVERY_TAB, Watched
from support import Case, until

FINGER_PX = 24  # WCAG 2.2, target size (minimum)
# Controls in view that are too small, or leave the screen; in a table that scrolls
# by itself they may.
OUT_OF_REACH = """
return [...document.querySelectorAll('button, select, input')].flatMap((c) => {
  const box = c.getBoundingClientRect();
  if (!box.width || c.closest('table') || c.type === 'range' || c.type === 'file')
    return [];
  const small = box.height < least_ || box.width < least_;
  return small || box.left < -1 || box.right > innerWidth + 1
    ? [`${c.id || c.innerText || c.title}: ${Math.round(box.width)} x `
       + `${Math.round(box.height)} at ${Math.round(box.left)}`] : [];
});
""".replace("least_", str(FINGER_PX))
CUT = """
return [...document.querySelectorAll('.answer p, .cell-head b, #panel p')].filter(
  (e) => e.getClientRects().length && e.scrollWidth > e.clientWidth + 1
         && getComputedStyle(e).overflow !== 'auto').map((e) => e.innerText);
"""


class Phone(Watched):
    def test_everything_is_within_reach_on_390_px(self):
        self.made_run("one")
        self.made_run("two", slower=1.5)
        process = self.start("trace", "serve", "runs/one", "runs/two")
        url = process.wait_for_line(r"\S+").group(0)
        with self.browser(phone=webdriver.UPRIGHT) as browser:
            browser.open(url)
            self.loaded(browser, 40)
            until(lambda: self.model(
                browser, "window.troupe.state.beside[0].loaded"), "both runs")
            self.assertEqual(browser.run("return [innerWidth, innerHeight]"),
                             list(webdriver.UPRIGHT))
            browser.picture(self.pictures / "upright_first.png")
            answers = browser.run(
                "return [...document.querySelectorAll('.answer')].map((a) =>"
                " a.getBoundingClientRect()).map((b) => [b.left, b.right, b.bottom])")
            self.assertEqual(len(answers), 4)
            for left, right, bottom in answers:
                self.assertGreaterEqual(left, 0)
                self.assertLessEqual(right, 390)
                self.assertLess(bottom, 844, "all answers are on the first screen")
            for tab in EVERY_TAB:
                with self.subTest(tab):
                    self.panel(browser, tab)
                    self.assertEqual(*browser.run(
                        "const page = document.documentElement;"
                        "return [page.scrollWidth, page.clientWidth];"))
                    self.assertEqual(browser.run(OUT_OF_REACH), [])
                    self.assertEqual(browser.run(CUT), [])
            # what differs between two steps needs no scrolling either
            browser.open(url + "#tab=samples&diff=..")
            browser.reload()
            self.loaded(browser, 40)
            until(lambda: browser.run(
                "return document.querySelectorAll('#panel .diff').length"), "diffs")
            self.assertLessEqual(browser.run(
                "return Math.max(...[...document.querySelectorAll('#panel table')]"
                ".map((t) => t.getBoundingClientRect().right))"), 390)
            browser.picture(self.pictures / "upright_diff.png")
            browser.run("document.querySelector('#panel td button').click()")
            box = browser.run("const b = document.getElementById('detail')"
                              ".getBoundingClientRect(); return [b.left, b.right]")
            self.assertGreaterEqual(box[0], 0)
            self.assertLessEqual(box[1], 390)
            self.assertEqual(browser.errors(), [])
        process.send(15)
        process.finish()


class PhoneInChromium(Phone, Case):
    browser = webdriver.Chromium


class PhoneInFirefox(Phone, Case):
    browser = webdriver.Firefox


if __name__ == "__main__":
    unittest.main()
