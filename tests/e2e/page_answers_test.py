"""The page's first screen: four answers in words, from the files of a run that is
known to the last number, and from one that fails."""
import json
import re
import unittest

import made_runs
import webdriver
from pages import Watched
from support import Case, until

KILLED = {"time": "2026-01-31T09:05:00.123Z", "attempt": 1,
          "who": "worker 0 (pid 4384)", "code": "peer_lost",
          "what": "killed by signal 9 (Killed)", "cause": "out of memory",
          "action": "restarted", "lost_steps": 1, "seconds": 0.5}
ANSWERS = """
return Object.fromEntries([...document.querySelectorAll('.answer')].map((a) =>
  [a.querySelector('h2').innerText, a.querySelector('p').innerText]));
"""


class Answers(Watched):
    def answers(self, browser, steps):
        self.loaded(browser, steps)
        return until(lambda: browser.run(ANSWERS), "the answers")

    def test_the_first_screen_answers_four_questions_in_words(self):
        self.made_run()
        with self.served("made") as url, self.browser() as browser:
            browser.open(url)
            browser.fit(1280, 800)
            said = self.answers(browser, 40)
            self.assertEqual(browser.run(
                "return [...document.querySelectorAll('.answer h2')]"
                ".map((h) => h.innerText)"),
                ["Is it fine?", "How fast?", "Why not faster?", "What failed?"])
            self.assertEqual(said["Is it fine?"],
                             "Done. Reward 4, 20 steps before 2.")
            # 0.2 s a step of 1000 tokens, predicted were 0.16 s
            self.assertEqual(said["How fast?"], (
                "18,000 steps/h, 5000 tokens/s. Predicted: 22,500 steps/h, 6250 "
                "tokens/s. 200 ms a step, 160 ms predicted: 25 % slower than "
                "predicted."))
            # device 1 waits 40 ms in each step for the rewards
            self.assertEqual(said["Why not faster?"], (
                "Devices are 90 % busy. actor_train is 49 % of the step, on all "
                "devices. Most idle time: waits for rew_inf (20 ms a step)."))
            self.assertEqual(said["What failed?"], "Nothing failed.")
            bottom = browser.run("return document.getElementById('overview')"
                                 ".getBoundingClientRect().bottom")
            self.assertLess(bottom, 800)
            browser.picture(self.pictures / "answers.png")
            self.assertEqual(browser.errors(), [])

    def test_a_failed_run_says_so_with_its_first_cause(self):
        run = self.made_run(state="running", steps=20, failures=[
            {**KILLED, "action": "stopped"}])
        with self.served("made") as url, self.browser() as browser:
            browser.open(url)
            said = self.answers(browser, 20)
            self.assertEqual(browser.run(
                "return document.getElementById('verdict').className"), "good")
            (run / "status.json").write_text(json.dumps(
                {"state": "failed", "step": 20, "steps": 40, "attempt": 1,
                 "last_failure": "worker 0 (pid 4384): killed by signal 9"}))
            until(lambda: browser.run(ANSWERS)["Is it fine?"].startswith("Failed."),
                  "the page says that it failed")
            said = browser.run(ANSWERS)
            self.assertEqual(said["Is it fine?"], "Failed. It ended in step 21.")
            self.assertRegex(said["What failed?"], (
                r"^worker 0 \(pid 4384\): killed by signal 9 \(Killed\); first cause: "
                r"out of memory \(2026-01-31 \d\d:\d5:00, step 20\)\. The run ended\.$"))
            self.assertEqual(browser.run(
                "return document.getElementById('verdict').className"), "bad")
            browser.picture(self.pictures / "answers_failed.png")
            self.assertEqual(browser.errors(), [])

    def test_a_recovery_says_what_was_done(self):
        run = self.made_run(steps=20, state="done", failures=[KILLED])
        at = made_runs.write_trace(run / "trace", 19)  # attempt 1, anew
        made_runs.write_trace(run / "trace", 21, attempt=2, first=19,
                              begin=at + 3 * 10**9)
        with self.served("made") as url, self.browser() as browser:
            browser.open(url)
            said = self.answers(browser, 40)
            cost = re.search(r"Went on with step 20: 1 step lost, ([\d.]+) s without "
                             r"a task\.$", said["What failed?"])
            self.assertAlmostEqual(float(cost[1]), 3, delta=0.1)
            self.assertEqual(browser.errors(), [])


class AnswersInChromium(Answers, Case):
    browser = webdriver.Chromium


class AnswersInFirefox(Answers, Case):
    browser = webdriver.Firefox


if __name__ == "__main__":
    unittest.main()
