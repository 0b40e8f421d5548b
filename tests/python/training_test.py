"""troupe.train: the numbers of each step as they are written, the program's own
sentences as exceptions, and runs that end with the Python program."""
import json
import os
import signal
import subprocess
import sys
import unittest

from package import PACKAGE, Case, troupe
from support import TINY, TROUPE, until

from troupe.metrics_follower import MetricsFollower
from troupe.program import words_of

# a program of a user, who gives it up by Ctrl-C or by leaving the loop
USER = """
import sys, troupe
for metrics in troupe.train(sys.argv[2], sys.argv[3:]):
    print(metrics["step"], flush=True)
    if sys.argv[1] == "breaks":
        break
    if sys.argv[1] == "exits":
        sys.exit(3)
print("went on", flush=True)
"""


class Training(Case):
    def test_each_step_comes_as_the_file_has_it(self):
        run = self.train()
        told = list(run)
        self.assertEqual([line["step"] for line in told], [1, 2, 3])
        self.assertEqual(told, list(self.metrics("sft").values()))
        self.assertEqual(run.folder.status.state, "done")
        self.assertEqual(run.resumed, "")

    def test_a_step_comes_while_the_run_goes_on(self):
        with self.train("run.steps=2000") as run:
            self.assertEqual(next(run)["step"], 1)
            self.assertEqual(run.folder.status.state, "running")
        self.assertEqual(run.folder.status.state, "interrupted")
        self.assertEqual(list(run), [])

    def test_a_run_that_was_closed_goes_on_after_its_checkpoint(self):
        with self.train("run.steps=2000") as run:
            while next(run)["step"] < 3:
                pass
        last = run.folder.latest.step
        self.assertGreaterEqual(last, 3)
        end = last + 4
        again = self.train(f"run.steps={end}")
        steps = [line["step"] for line in again]
        self.assertEqual(steps, list(range(last + 1, end + 1)))
        self.assertIn(f"continuing after step {last} of {end}", again.resumed)
        done = self.train(f"run.steps={end}")
        self.assertEqual(list(done), [])
        self.assertIn("this run is finished", done.resumed)

    def test_mistakes_are_the_programs_own_sentences(self):
        for word, kind, code, sentence in (
                ("run.stepss=4", troupe.ConfigError, 2,
                 "command line: run.stepss: expected a known setting, got "
                 "'stepss'; try run.steps"),
                ("data.train=no.jsonl", troupe.ConfigError, 2, "no.jsonl"),
                ("data.batch_size=1", troupe.PlanError, 3,
                 "expected at most d1")):
            with self.subTest(word):
                with self.assertRaises(kind) as caught:
                    next(self.train(word))
                self.assertEqual(caught.exception.code, code)
                self.assertIn(sentence, str(caught.exception))
                self.assertEqual(
                    ["error: " + text for text in caught.exception.errors],
                    [text for text in caught.exception.stderr.splitlines()
                     if text.startswith("error: ")])
        with self.assertRaises(troupe.ConfigError) as caught:
            next(self.train("run.stepss=4", "run.nam=x"))
        self.assertEqual(len(caught.exception.errors), 2)

    def test_a_stop_from_elsewhere_is_an_exception_of_its_own(self):
        run = self.train("run.steps=2000")
        next(run)
        self.troupe("stop", "runs/sft")
        with self.assertRaises(troupe.RunStopped) as caught:
            run.wait()
        self.assertEqual(caught.exception.code, 75)
        self.assertNotIsInstance(caught.exception, troupe.RunInterrupted)

    def test_a_killed_program_says_so(self):
        run = self.train("run.steps=2000")
        next(run)
        os.kill(run.pid, signal.SIGKILL)
        with self.assertRaises(troupe.RunFailed) as caught:
            run.wait()
        self.assertEqual(caught.exception.code, -9)
        self.assertIn("signal 9", str(caught.exception))
        until(lambda: run.folder.status.state == "lost", "a lost run")

    def test_messages_reach_whoever_asked_for_them(self):
        said = []
        self.train("run.steps=4", "models.actor.optimizer.lr=1e30",
                   "models.actor.optimizer.warmup=0",
                   on_message=said.append).wait()
        skipped, = (line for line in said if "optimizer steps skipped" in line)
        self.assertFalse(skipped.endswith("\n"))

    def user(self, way):
        """A Python program of a user with a run of 2,000 steps."""
        _, config, *words = map(str, self.sft("run.steps=2000"))
        return subprocess.Popen(
            [sys.executable, "-B", "-c", USER, way, config, *words],
            cwd=self.folder, env={**self.environment, "PYTHONPATH": str(PACKAGE)},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True)

    def assert_saved(self):
        status = json.loads((self.run_folder("sft") / "status.json").read_text())
        self.assertEqual(status["state"], "interrupted")
        self.assertTrue((self.latest("sft") / "manifest.json").is_file())

    def test_ctrl_c_of_the_python_program_saves_and_ends_the_run(self):
        user = self.user("waits")
        self.assertEqual(user.stdout.readline(), "1\n")
        os.killpg(user.pid, signal.SIGINT)  # as a terminal sends it
        out, err = user.communicate(timeout=60)
        self.assertIn("KeyboardInterrupt", err)
        self.assertNotIn("went on", out)
        self.assert_saved()

    def test_leaving_the_loop_saves_and_ends_the_run(self):
        user = self.user("breaks")
        out, err = user.communicate(timeout=60)
        self.assertEqual((out, user.returncode), ("1\nwent on\n", 0), err)
        self.assert_saved()

    def test_the_end_of_the_python_program_ends_the_run(self):
        user = self.user("exits")
        out, err = user.communicate(timeout=60)
        self.assertEqual((out, user.returncode), ("1\n", 3), err)
        self.assert_saved()

    def test_overrides_are_a_list_or_a_mapping(self):
        words = words_of("a.yaml", {
            "run": {"steps": 3, "name": "x"}, "rollout.stop": ["a, b"],
            "models.ref": None, "trace.enabled": False, "data.fields": {}})
        self.assertEqual(words, [
            "a.yaml", "run.steps=3", "run.name=x", 'rollout.stop=["a, b"]',
            "models.ref=null", "trace.enabled=false", "data.fields={}"])
        self.assertEqual(words_of([TINY / "a.yaml", "b.yaml"], ["x=1"]),
                         [f"{TINY}/a.yaml", "b.yaml", "x=1"])
        with self.assertRaises(TypeError):
            words_of("a.yaml", "run.steps=3")
        self.assertEqual(troupe.find_program(), str(TROUPE))


class Follower(Case):
    """metrics.jsonl as a master writes it, cut back as it is cut back."""

    def setUp(self):
        super().setUp()
        self.file = self.folder / "metrics.jsonl"
        (self.folder / "status.json").write_text('{"pid": 7}')

    @staticmethod
    def line(step, attempt):
        return json.dumps({"step": step, "training/attempt": attempt}) + "\n"

    def told(self, follower):
        return [(line["step"], line["training/attempt"])
                for line in iter(follower.next, None)]

    def test_lines_of_earlier_sessions_are_not_told(self):
        self.file.write_text(self.line(1, 1) + self.line(2, 1))
        other = MetricsFollower(self.folder, pid=8, first_step=1)
        self.assertEqual(self.told(other), [], "another process writes")
        self.assertEqual(self.told(MetricsFollower(self.folder, 7, 1)), [(2, 1)])

    def test_half_a_line_waits_for_its_other_half(self):
        follower = MetricsFollower(self.folder, 7, 0)
        self.file.write_text(self.line(1, 1) + self.line(2, 1)[:9])
        self.assertEqual(self.told(follower), [(1, 1)])
        self.file.write_text(self.line(1, 1) + self.line(2, 1))
        self.assertEqual(self.told(follower), [(2, 1)])

    def test_steps_that_a_lost_worker_cost_are_told_again(self):
        follower = MetricsFollower(self.folder, 7, 0)
        first = [self.line(step, 1) for step in (1, 2, 3)]
        self.file.write_text("".join(first))
        self.assertEqual(len(self.told(follower)), 3)
        again = [self.line(step, 2) for step in (2, 3, 4)]
        self.file.write_text(first[0] + again[0])  # shorter than it was
        self.assertEqual(self.told(follower), [(2, 2)])
        self.file.write_text(first[0] + "".join(again))
        self.assertEqual(self.told(follower), [(3, 2), (4, 2)])
        # as long as it was: only the attempts tell
        self.file.write_text(first[0] + self.line(2, 3) + self.line(3, 3)
                             + self.line(4, 3))
        self.assertEqual(self.told(follower), [(2, 3), (3, 3), (4, 3)])


if __name__ == "__main__":
    unittest.main()
