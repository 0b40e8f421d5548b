"""Pictures that the page saves: the timeline, the dataflow, the map and the curves,
as SVG and PNG. Each must show what the page shows without the page's style sheet."""
import base64
import re
import struct
import unittest
import xml.etree.ElementTree as ElementTree

import webdriver
from pages import Watched
from support import Case, until

SVG = "{http://www.w3.org/2000/svg}"
# Files that the page saves, in place of the browser's folder for them.
CATCH = """
window.saved = [];
URL.createObjectURL = ((was) => (blob) => {
  const reader = new FileReader();
  reader.onload = () => window.saved.push([blob.type, reader.result.split(',')[1]]);
  reader.readAsDataURL(blob);
  return was.call(URL, blob);
})(URL.createObjectURL);
HTMLAnchorElement.prototype.click = function () { window.savedName = this.download; };
"""


class Picture(Watched):
    def saved(self, browser, press, kind):
        """The bytes and the name of what a button saves."""
        browser.run(f"window.saved = []; window.savedName = ''; {press}")
        until(lambda: browser.run("return window.savedName && window.saved.some("
                                  f"([type]) => type === '{kind}')"), press)
        return browser.run(f"return [window.saved.find(([t]) => t === '{kind}')[1],"
                           " window.savedName]")

    def svg(self, browser, press):
        """The drawing that a button saves; nothing in it needs a style sheet."""
        text, name = self.saved(browser, press, "image/svg+xml")
        text = base64.b64decode(text).decode()
        self.assertNotIn("var(--", text)
        self.assertNotRegex(text, r"href=|<script")
        return ElementTree.fromstring(text), name

    def png(self, browser, press):
        """The width and height of the PNG that a button saves."""
        data, name = self.saved(browser, press, "image/png")
        data = base64.b64decode(data)
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        return struct.unpack(">II", data[16:24]), name

    def texts(self, drawing):
        return [text.text for text in drawing.iter(f"{SVG}text")]

    def button(self, what):
        return f"document.querySelector('[data-save={what}]').click();"

    def test_what_is_seen_is_saved_as_a_picture(self):
        self.made_run()
        with self.served("made") as url, self.browser() as browser:
            browser.open(url)
            browser.fit(1280, 900)
            self.loaded(browser, 40)
            until(lambda: browser.run("return window.troupe.timeline.frameMs.length"),
                  "a frame")
            browser.run(CATCH)
            drawing, name = self.svg(browser, self.button("timeline"))
            self.assertEqual(name, "made_timeline.svg")
            for text in ("device 0", "device 1", "actor_gen 40", "rew_inf 40",
                         "actor_train 40"):
                self.assertIn(text, self.texts(drawing))
            drawing, name = self.svg(browser, self.button("dataflow"))
            self.assertEqual(name, "made_dataflow.svg")
            self.assertIn("98.00 ms", self.texts(drawing))
            for what, canvas in (("picture", "timeline"), ("map", "map")):
                size, name = self.png(browser, self.button(what))
                self.assertRegex(name, rf"^made_{canvas}\.png$")
                self.assertEqual(list(size), browser.run(
                    f"const c = document.getElementById('{canvas}');"
                    "return [c.width, c.height]"))
            self.assertEqual(browser.errors(), [])

    def test_curves_are_saved_with_their_colours_and_numbers(self):
        self.made_run()
        with self.served("made") as url, self.browser() as browser:
            browser.open(url)
            browser.fit(1280, 900)
            self.loaded(browser, 40)
            self.panel(browser, "curves")
            browser.run(CATCH)
            bar = ("[...document.querySelectorAll('#panel .bar button')].find("
                   "(b) => b.innerText === '{}').click()")
            drawing, name = self.svg(browser, bar.format("SVG"))
            self.assertEqual(name, "made_curves.svg")
            cards = browser.run("return [...document.querySelectorAll('#panel .card h3 "
                                "span')].map((h) => h.textContent)")
            self.assertGreater(len(cards), 2)
            for title in (*cards, "made"):
                self.assertIn(title, self.texts(drawing))
            lines = list(drawing.iter(f"{SVG}polyline"))
            self.assertEqual(len(lines), browser.run(
                "return document.querySelectorAll('#panel polyline').length"))
            for line in lines:
                self.assertRegex(line.get("stroke"), r"^rgb\(\d+, \d+, \d+\)$")
                self.assertEqual(line.get("fill"), "none")
            (width, height), name = self.png(browser, bar.format("PNG"))
            self.assertEqual(name, "made_curves.png")
            box = [float(n) for n in re.split(r"\s+", drawing.get("viewBox"))]
            self.assertEqual([width, height], [2 * box[2], 2 * box[3]])
            drawing, name = self.svg(
                browser, "document.querySelector('#panel .card .save').click()")
            self.assertEqual(name, "reward.svg")
            self.assertEqual(len(list(drawing.iter(f"{SVG}polyline"))), 1)
            self.assertIn("reward: 4", self.texts(drawing))
            self.assertEqual(browser.errors(), [])


class PictureInChromium(Picture, Case):
    browser = webdriver.Chromium


class PictureInFirefox(Picture, Case):
    browser = webdriver.Firefox


if __name__ == "__main__":
    unittest.main()
