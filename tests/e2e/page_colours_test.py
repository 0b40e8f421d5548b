"""Colours of the page for readers who see no red, no green or no blue: what only a
colour tells apart must stay apart for them, computed from the colours as the
browser paints them. Simulation: Machado, Oliveira and Fernandes 2009, severity 1;
distance: Euclidean in OKLab, where 0.02 is just noticeable."""
import itertools
import math
import unittest

import webdriver
from pages import Watched
from support import Case

SIMULATED = {
    "no red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
               (-0.003882, -0.048116, 1.051998)),
    "no green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
                 (-0.011820, 0.042940, 0.968881)),
    "no blue": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602),
                (0.004733, 0.691367, 0.303900)),
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
}
APART = 0.06      # areas beside each other: three times what is noticeable
LINES_APART = 0.06
LINE_CONTRAST = 3  # WCAG 2.2, non-text contrast
COLOURS = """
const brush = document.createElement('canvas').getContext('2d',
                                                {willReadFrequently: true});
const painted = (colour) => {
  brush.fillStyle = colour;
  brush.fillRect(0, 0, 1, 1);
  return [...brush.getImageData(0, 0, 1, 1).data].slice(0, 3);
};
const style = getComputedStyle(document.documentElement);
const kinds = Object.fromEntries([...document.querySelectorAll('#legend span')]
  .filter((s) => !s.innerText.startsWith('idle')).map((s) =>
    [s.innerText, painted(s.querySelector('i').style.background)]));
const lines = Object.fromEntries([0, 1, 2, 3].map((i) =>
  [`line ${i}`, painted(style.getPropertyValue(`--line-${i}`).trim())]));
return [kinds, lines, painted(style.getPropertyValue('--back').trim())];
"""


def linear(colour):
    return [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4
            for c in colour]


def seen(colour, by):
    return [min(1, max(0, sum(m * c for m, c in zip(row, linear(colour)))))
            for row in SIMULATED[by]]


def oklab(rgb):
    lms = [math.cbrt(sum(m * c for m, c in zip(row, rgb))) for row in (
        (0.4122214708, 0.5363325363, 0.0514459929),
        (0.2119034982, 0.6806995451, 0.1073969566),
        (0.0883024619, 0.2817188376, 0.6299787005))]
    return [sum(m * c for m, c in zip(row, lms)) for row in (
        (0.2104542553, 0.7936177850, -0.0040720468),
        (1.9779984951, -2.4285922050, 0.4505937099),
        (0.0259040371, 0.7827717662, -0.8086757660))]


def distance(a, b, by):
    return math.dist(oklab(seen(a, by)), oklab(seen(b, by)))


def contrast(a, b):
    low, high = sorted(sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear(x)))
                       for x in (a, b))
    return (high + 0.05) / (low + 0.05)


class Colours(Watched):
    def apart(self, colours, least, what):
        near = {(by, *pair): round(distance(*(colours[name] for name in pair), by), 3)
                for by in SIMULATED
                for pair in itertools.combinations(colours, 2)}
        self.assertEqual({pair: far for pair, far in near.items() if far < least}, {},
                         what)

    def test_readers_who_miss_a_colour_tell_calls_and_curves_apart(self):
        self.assertLess(distance((205, 80, 60), (130, 130, 40), "no green"), 0.05,
                        "red and olive, which the simulation must join")
        self.made_run()
        with self.served("made") as url:
            for dark in (False, True):
                with self.browser(dark=dark) as browser:
                    browser.open(url)
                    self.loaded(browser, 40)
                    kinds, lines, back = browser.run(COLOURS)
                    self.assertEqual(len(kinds), 6)
                    self.apart(kinds, APART, f"kinds of calls, dark: {dark}")
                    self.apart(lines, LINES_APART, f"lines of curves, dark: {dark}")
                    for name, colour in lines.items():
                        self.assertGreater(contrast(colour, back), LINE_CONTRAST, name)
                    self.panel(browser, "curves")
                    browser.picture(self.pictures /
                                    f"colours{'_dark' if dark else ''}.png")
                    self.assertEqual(browser.errors(), [])

    def test_curves_differ_in_more_than_their_colour(self):
        self.made_run("one")
        self.made_run("two", slower=1.5)
        process = self.start("trace", "serve", "runs/one", "runs/two")
        url = process.wait_for_line(r"\S+").group(0)
        with self.browser() as browser:
            browser.open(url)
            self.loaded(browser, 40)
            self.panel(browser, "compare")
            dashes = browser.run("""
                return [...document.querySelectorAll('#panel .card svg')].map((card) =>
                  [...card.querySelectorAll('polyline')].map(
                    (line) => getComputedStyle(line).strokeDasharray));""")
            self.assertGreater(len(dashes), 2)
            for card in dashes:
                self.assertEqual(len(card), len(set(card)), "each has its own dashes")
        process.send(15)
        process.finish()


class ColoursInChromium(Colours, Case):
    browser = webdriver.Chromium


if __name__ == "__main__":
    unittest.main()
