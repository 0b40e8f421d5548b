"""The sample browser: text, reward, end and step choose samples; the answers of two
steps to one prompt are shown as what differs; samples of steps that are older than
what the page was sent come when they are asked for."""
import re
import unittest

import made_runs
import webdriver
from pages import Watched
from support import Case, until, write_rows


class Samples(Watched):
    def opened(self, browser, url, steps=40):
        browser.open(url)
        browser.fit(1280, 900)
        self.loaded(browser, steps)
        self.panel(browser, "samples")

    def fill(self, browser, label, value):
        browser.run(f"const field = document.querySelector('[aria-label=\"{label}\"]');"
                    f"field.value = '{value}';"
                    "field.dispatchEvent(new Event(field.localName === 'select'"
                    " ? 'change' : 'input'));")

    def shown(self, browser):
        """The names of the samples in the list."""
        return set(browser.run("return [...document.querySelectorAll("
                               "'#panel td button')].map((b) => b.innerText)"))

    def wanted(self, rows, holds):
        return {f"{r['step']}.{r['sample']}" for r in rows if holds(r)}

    def counted(self, browser):
        said = re.search(r"with ([\d,]+) answers? of ([\d,]+) here",
                         self.text_of(browser, "panel"))
        return [int(n.replace(",", "")) for n in said.groups()]

    def test_samples_are_chosen_by_text_reward_end_and_step(self):
        self.made_run()
        rows = made_runs.samples(40)
        with self.served("made") as url, self.browser() as browser:
            self.opened(browser, url)
            self.assertEqual(self.counted(browser), [320, 320])
            for label, value, holds in (
                    ("text in prompt or answer", "it is 4, step 3.",
                     lambda r: "it is 4, step 3." in r["response"]),
                    ("lowest reward", "4.3", lambda r: r["score"] >= 4.3),
                    ("highest reward", "0.2", lambda r: r["score"] <= 0.2),
                    ("step", "12", lambda r: r["step"] == 12)):
                with self.subTest(label):
                    wanted = self.wanted(rows, holds)
                    self.assertGreater(len(wanted), 1)
                    self.fill(browser, label, value)
                    until(lambda: self.shown(browser) == wanted, wanted, 10)
                    self.assertEqual(self.counted(browser), [len(wanted), 320])
                    self.fill(browser, label, "")
            self.fill(browser, "end", "length")
            cut = [r for r in rows if r["finish_reason"] == "length"]
            until(lambda: self.counted(browser) == [len(cut), 320], "those cut off", 10)
            self.assertIn(f"length ({len(cut)})", browser.run(
                "return document.querySelector('[aria-label=end]').textContent"))
            # several at once
            self.fill(browser, "lowest reward", "4.5")
            until(lambda: self.shown(browser) == self.wanted(
                cut, lambda r: r["score"] >= 4.5), "both", 10)
            self.assertEqual(browser.errors(), [])

    def test_what_differs_between_the_answers_of_two_steps_is_shown(self):
        self.made_run()
        with self.served("made") as url, self.browser() as browser:
            self.opened(browser, url)
            browser.run("[...document.querySelectorAll('#panel .bar button')].find("
                        "(b) => b.innerText === 'diff of steps').click()")
            self.fill(browser, "step", "10")
            self.fill(browser, "later step", "30")
            said = until(lambda: (text := self.text_of(browser, "panel"))
                         and "answered in step 10 and step 30" in text and text, "both")
            self.assertIn("4 prompts answered in step 10 and step 30", said)
            self.assertIn("changed by +2.000 on average", said)
            pairs = browser.run("""
                return [...document.querySelectorAll('#panel tbody tr')].map((row) => [
                  ...[...row.querySelectorAll('td button')].map((b) => b.innerText),
                  [...row.querySelectorAll('del')].map((d) => d.innerText).join('|'),
                  [...row.querySelectorAll('ins')].map((d) => d.innerText).join('|'),
                  row.querySelector('.diff').textContent]);""")
            self.assertEqual(len(pairs), 8, "two answers to each of four prompts")
            for before, after, gone, new, text in pairs:
                self.assertEqual(before.split(".")[1], after.split(".")[1])
                prompt = int(before.split(".")[1]) // 2
                self.assertEqual([gone, new], ["guess|10.", "know|30."])
                self.assertTrue(text.startswith(
                    f"I guess know it is {2 * prompt}, step 10. 30."), text)
            # without steps: each prompt's oldest and newest
            self.fill(browser, "step", "")
            self.fill(browser, "later step", "")
            until(lambda: self.shown(browser) == {
                f"{step}.{i}" for step in (1, 40) for i in range(8)},
                "the oldest and the newest", 10)
            browser.picture(self.pictures / "samples_diff.png")
            # a sample's own view
            browser.run("document.querySelector('#panel td button').click()")
            detail = self.text_of(browser, "detail")
            self.assertRegex(detail, r"^close\s+sample \d of step 1\s")
            self.assertIn("other answers to this prompt", detail)
            browser.picture(self.pictures / "sample.png")
            self.assertEqual(browser.errors(), [])

    def test_steps_without_a_prompt_in_common_are_said(self):
        run = self.made_run(steps=8)
        rows = [{**row, "prompt": f"{row['prompt']} {row['step'] % 4}"}
                for row in made_runs.samples(8)]
        write_rows(run / "samples.jsonl", rows)
        with self.served("made") as url, self.browser() as browser:
            browser.open(url + "#tab=samples&diff=2..7")
            self.loaded(browser, 8)
            until(lambda: "no prompt of step 2 was answered in step 7; it has prompts "
                          "in common with step 6 (4)" in self.text_of(browser, "panel"),
                  "the page says which step has them")
            self.assertEqual(browser.errors(), [])

    def test_samples_of_a_step_long_ago_are_fetched(self):
        run = self.made_run()
        rows = made_runs.samples(40)
        for row in rows:  # 12 MB, of which the page is sent 4 MB
            row["response"] += " x" * 19_000
        write_rows(run / "samples.jsonl", rows)
        with self.served("made") as url, self.browser() as browser:
            browser.open(url + "#tab=samples&sample=2.3")
            browser.fit(1280, 900)
            self.loaded(browser, 40)
            self.assertGreater(self.model(browser, "m.samples[0].step"), 20)
            until(lambda: "sample 3 of step 2" in self.text_of(browser, "detail"),
                  "the sample of the address")
            self.assertIn("I guess it is 2, step 2.", self.text_of(browser, "detail"))
            browser.run("window.troupe.state.close()")
            self.fill(browser, "step", "5")
            until(lambda: self.shown(browser) == {f"5.{i}" for i in range(8)},
                  "samples of step 5")
            self.fill(browser, "step", "99")
            until(lambda: (text := self.text_of(browser, "panel"))
                  and "0 prompts with 0 answers" in text and "loading" not in text,
                  "there is no such step")
            self.assertEqual(browser.errors(), [])


class SamplesInChromium(Samples, Case):
    browser = webdriver.Chromium


class SamplesInFirefox(Samples, Case):
    browser = webdriver.Firefox


if __name__ == "__main__":
    unittest.main()
