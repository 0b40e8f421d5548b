"""The runner of tests/gpu/first_light.py, on programs of a line each: what is red, what is
cut, what is only said, and what the end shows; and its steps: that they fit ten minutes,
name what exists, and ask what can be read."""
import contextlib
import io
import json
import os
import pathlib
import re
import select
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/gpu"))
# pylint: disable=wrong-import-position
import first_light
from expectations import Expectation, Outcome, complaints
from first_light import Place, Result, run_all, table
from first_light_steps import MANY_GPUS, MINUTES, ONE_GPU, Step, rehearsed, small

H100 = "NVIDIA H100 80GB HBM3"
WORDS = first_light.place_of(ROOT, ROOT, ROOT, "gpu", 1).words


def says(text, code=0):
    """A command that prints `text`."""
    return ("sh", "-c", 'printf "%s\\n" "$0"; exit $1', text, str(code))


class Expectations(unittest.TestCase):
    def outcome(self, code=0, output="", gpu=H100, **numbers):
        return Outcome(code, output, numbers, gpu)

    def test_each_form_is_met_and_missed(self):
        good = self.outcome(output="2 GPUs, none: 0", ms_token=2.0, predicted=1.8)
        for text, bad in (
                ("exit 0", self.outcome(code=1)),
                ("says \\d GPUs", self.outcome(output="no GPU")),
                ("lacks not found", self.outcome(output="libx.so => not found")),
                ("ms_token <= 2.0", self.outcome(ms_token=2.01)),
                ("ms_token >= 1.5e0", self.outcome(ms_token=1.4)),
                ("ms_token <= 2.0 on H100", self.outcome(ms_token=2.01)),
                ("ms_token within 20 % of predicted",
                 self.outcome(ms_token=2.0, predicted=1.6)),
                ("ms_token >= 1.1 of predicted",
                 self.outcome(ms_token=2.0, predicted=1.9))):
            with self.subTest(text):
                self.assertEqual(complaints([text], good), [])
                said, = complaints([text], bad)
                self.assertTrue(said)

    def test_a_number_that_is_not_there_is_a_complaint(self):
        self.assertEqual(complaints(["mfu >= 0.4", "mfu within 5 % of ms"],
                                    self.outcome(ms=1.0)),
                         ["no number mfu", "no number mfu"])

    def test_other_gpus_and_those_without_prediction_are_asked_nothing(self):
        for gpu in ("NVIDIA A100", "NVIDIA GH200 480GB"):
            slow = self.outcome(gpu=gpu, ms_token=9)
            self.assertEqual(complaints(["ms_token <= 2.0 on H200", "ms_token <= 2.0 on H100",
                                         "ms_token within 20 % of predicted",
                                         "ms_token >= 1.5 of peer"], slow), [])

    def test_what_says_nothing_is_refused(self):
        for text in ("", "fast", "ms_token < 2", "within 20 %", "exit", "says "):
            with self.subTest(text), self.assertRaises(ValueError):
                Expectation(text)


class Steps(unittest.TestCase):
    def test_all_fit_their_minutes(self):
        for steps in (ONE_GPU, MANY_GPUS):
            self.assertLessEqual(sum(step.limit_s for step in steps if not step.is_peer),
                                 60 * MINUTES)

    def test_expectations_can_be_read_and_names_are_unique(self):
        for steps in (ONE_GPU, MANY_GPUS):
            for step in [*steps, *map(rehearsed, steps), *map(small, steps)]:
                for text in (*step.expects, *step.aims):
                    Expectation(text)
                self.assertTrue(all("=" in each for each in step.environment), step.name)
                for word in first_light.WORD.findall(" ".join((*step.command, *step.needs))):
                    self.assertIn(word, WORDS, step.name)
            names = [step.name for step in steps]
            self.assertEqual(len(set(names)), len(names))
            for step in steps:
                for _, other, _ in step.beside:
                    self.assertLess(names.index(other), names.index(step.name))

    def test_harmless_ones_come_first_and_need_no_gpu(self):
        for steps in (ONE_GPU, MANY_GPUS):
            needing = [any("gpu" in need for need in step.needs) for step in steps]
            self.assertEqual(needing, sorted(needing))
            self.assertFalse(needing[0])
            self.assertTrue(needing[-1])

    def test_tests_that_are_named_exist(self):
        sources = "\n".join(file.read_text() for file in (ROOT / "tests/models").rglob("*.cpp"))
        suites = set(re.findall(r"TEST(?:_F|_P)?\(\s*(\w+),", sources))
        for step in ONE_GPU:
            for word in step.command:
                if word.startswith("--gtest_filter="):
                    for pattern in re.split(r"[:=]", word)[1:]:
                        suite = pattern.strip("-").split(".")[0].strip("*")
                        self.assertTrue(any(suite in name for name in suites), pattern)

    def test_benchmarks_that_are_named_exist(self):
        main = (ROOT / "tests/bench/bench_main.cpp").read_text()
        cards = json.loads((ROOT / "tests/bench/cards.json").read_text())["cards"]
        for step in [*ONE_GPU, *MANY_GPUS, *map(rehearsed, ONE_GPU)]:
            words = step.command
            if words[0] == "{bench}":
                self.assertIn(f'{{"{words[1]}", ', main)
                if "--card" in words:
                    self.assertIn(words[words.index("--card") + 1], cards)

    def test_small_steps_ask_of_a_gpu_what_large_ones_do_but_figures(self):
        for step in [*ONE_GPU, *MANY_GPUS]:
            self.assertEqual((small(step).expects, small(step).environment, small(step).aims),
                             (step.expects, step.environment, ()), step.name)
            self.assertFalse([need for need in small(step).needs if "gpu_gb" in need])
            if "--device" in step.command:
                at = step.command.index("--device") + 1
                self.assertEqual(small(step).command[at], step.command[at], step.name)

    def test_rehearsed_steps_touch_no_gpu(self):
        for step in map(rehearsed, [*ONE_GPU, *MANY_GPUS]):
            self.assertEqual((step.needs, step.aims), ((), ()), step.name)
            self.assertNotIn("TROUPE_TEST_COMPUTE=gpu", step.environment)


class OwnKernels(unittest.TestCase):
    """What gpu_kernels_test runs on a GPU."""

    def test_no_kernel_is_forgotten(self):
        sources = "\n".join(file.read_text()
                            for file in (ROOT / "tests/gpu").glob("*_on_gpu_test.cpp"))
        found = set(re.findall(r"return (\w+)\{", sources))
        for parameters, name, body in re.findall(
                r"\ntemplate <([^>]*)>\nvoid (\w+)\((.*?)\n}\n", sources, re.DOTALL):
            parameters = parameters.replace("class ", "").split(", ")
            for given in re.findall(rf"\n  +{name}<(.*?)>\(", sources):
                types = dict(zip(parameters, given.split(", "), strict=True))
                for kernel, of in re.findall(r"return (\w+)<(.*?)>\{", body):
                    found.add(f"{kernel}<{','.join(types[each] for each in of.split(', '))}>")
        registers = (ROOT / "tests/gpu/kernel_registers.txt").read_text().splitlines()
        self.assertEqual(found, {line.split()[0] for line in registers[2:]})


class Runner(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)
        self.place = Place({"word": "filled in"}, {**os.environ, "GIVEN": "yes"})

    def run_steps(self, *steps, clock=60, gpus=(H100,), keeps_going=False, gpu_gb=0):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            results = run_all(steps, self.place, self.out, clock, gpus, keeps_going, gpu_gb)
        self.said = said.getvalue()
        return results

    def states(self, *steps, **more):
        return [each.state for each in self.run_steps(*steps, **more)]

    def test_a_red_step_stops_all_that_follow_and_shows_its_output(self):
        self.assertEqual(self.states(Step("one", 5, says("fine")),
                                     Step("two", 5, says("why it broke", 3)),
                                     Step("three", 5, says("never"))),
                         ["green", "red", "not reached"])
        self.assertIn("red: exit 3, not 0\nwhy it broke\n", self.said)
        self.assertFalse((self.out / "03.log").exists())

    def test_a_run_may_keep_going_and_is_red_all_the_same(self):
        results = self.run_steps(Step("one", 5, says("x", 3)), Step("two", 5, says("x")),
                                 keeps_going=True)
        self.assertEqual([each.state for each in results], ["red", "green"])
        self.assertEqual(first_light.exit_code(results, False), 1)

    def test_a_program_that_is_not_there_is_red(self):
        result, = self.run_steps(Step("one", 5, ("/nowhere/at_all",)))
        self.assertEqual((result.state, result.why), ("red", "exit 127, not 0"))

    def test_a_slow_step_is_cut_with_what_it_started(self):
        begin = time.monotonic()
        result, = self.run_steps(Step("one", 1, ("sh", "-c", "sleep 60 & echo $!; wait")))
        self.assertEqual((result.state, result.why), ("red", "cut after 1 s"))
        self.assertLess(time.monotonic() - begin, 20)
        child = int((self.out / "01.log").read_text())
        with contextlib.suppress(ProcessLookupError):  # it has ended already
            ended = os.pidfd_open(child)
            self.addCleanup(os.close, ended)
            self.assertTrue(select.select([ended], [], [], 20)[0], "it lives on")

    def test_a_step_that_may_be_cut_stops_nothing_unless_it_fails(self):
        self.assertEqual(
            self.states(Step("one", 1, ("sleep", "60"), may_be_cut=True),
                        Step("two", 5, says("x"), may_be_cut=True),
                        Step("three", 5, says("x", 9), may_be_cut=True),
                        Step("four", 5, says("x"))),
            ["cut", "green", "red", "not reached"])

    def test_no_step_begins_after_the_minutes_are_over(self):
        results = self.run_steps(Step("one", 5, says("x")), clock=0)
        self.assertEqual((results[0].state, results[0].why), ("not reached", "no time"))
        self.assertEqual(first_light.exit_code(results, False), 1)

    def test_a_known_red_stops_nothing(self):
        results = self.run_steps(Step("one", 5, says("x", 1), known_red="cuBLAS rounds"),
                                 Step("two", 5, says("x")))
        self.assertEqual([each.state for each in results], ["known red", "green"])
        self.assertIn("cuBLAS rounds", results[0].why)
        self.assertEqual(first_light.exit_code(results, False), 0)

    def test_a_missed_aim_is_said_and_stops_nothing(self):
        slow = json.dumps({"ms_token": 3.5})
        results = self.run_steps(Step("one", 5, says("warm\n" + slow),
                                      aims=("ms_token <= 2.0 on H100",)),
                                 Step("two", 5, says("x")))
        self.assertEqual([each.state for each in results], ["below its aim", "green"])
        self.assertEqual(results[0].why, "ms_token 3.5, not <= 2.0")
        self.assertEqual(first_light.exit_code(results, False), 0)

    def test_figures_have_their_prediction_beside_them(self):
        step = Step("one", 5, says(json.dumps({"predicted": 6.1, "ms_token": 6.5})),
                    aims=("ms_token within 20 % of predicted",))
        results = self.run_steps(step)
        self.assertEqual(results[0].state, "green")
        line = table(results, [step]).splitlines()[1]
        self.assertRegex(line, r"^one +green +[\d.]+ +ms_token 6\.5 \(predicted 6\.1\) +"
                               r"ms_token within 20 % of predicted$")

    def test_a_figure_stands_beside_that_of_another_program(self):
        ours = Step("ours", 5, says(json.dumps({"s_per_iter": 2.0})))
        for seconds, state in ((3.1, "green"), (2.9, "below its aim")):
            peer = Step("peer", 5, says(json.dumps({"s_per_iter": seconds})), is_peer=True,
                        beside=(("ours_s", "ours", "s_per_iter"),),
                        aims=("s_per_iter >= 1.5 of ours_s",))
            self.assertEqual(self.states(ours, peer), ["green", state])

    def test_minutes_of_a_peer_come_on_top(self):
        peer = Step("peer", 5, says("x"), is_peer=True)
        self.assertEqual(self.states(peer, clock=0), ["green"])

    def test_what_a_cut_step_has_said_counts(self):
        found = ("sh", "-c", "echo '========= Invalid read'; sleep 60")
        result, = self.run_steps(Step("one", 1, found, ("exit 0", "lacks Invalid"),
                                      may_be_cut=True))
        self.assertEqual((result.state, result.why),
                         ("red", "cut after 1 s; says 'Invalid'"))

    def test_what_is_missing_is_skipped_with_its_reason(self):
        results = self.run_steps(Step("a", 5, says("x"), needs=("gpu",)),
                                 Step("b", 5, says("x"), needs=("program no_such_thing",)),
                                 Step("c", 5, says("x"), needs=("package no_such_package",)),
                                 Step("d", 5, says("x"), needs=("gpus 2",)),
                                 Step("e", 5, says("x")), gpus=())
        self.assertEqual([each.why for each in results],
                         ["needs a GPU", "no no_such_thing on this machine",
                          "no no_such_package in this Python", "needs 2 GPUs", ""])
        self.assertEqual(first_light.exit_code(results, True), 77)

    def test_a_step_that_does_not_fit_a_small_gpu_is_skipped(self):
        big = Step("one", 5, says("x"), needs=("gpu", "gpu_gb 75"))
        for gb, state in ((48, "skipped"), (80, "green"), (0, "green")):
            result, = self.run_steps(big, gpu_gb=gb)
            self.assertEqual(result.state, state)
            if state == "skipped":
                self.assertEqual(result.why, "needs a GPU of 75 GB")

    def test_words_and_environment_are_filled_in(self):
        step = Step("one", 5, ("sh", "-c", 'echo "$0 $GIVEN $MORE"', "{word}"),
                    ("says ^filled in yes a=b$",), environment=("MORE=a=b",))
        self.assertEqual(self.states(step), ["green"])

    def test_the_table_has_a_line_for_each_step(self):
        lines = table([Result("one", "green", 1.25), Result("two", "skipped", why="no GPU")],
                      [Step("one", 5, ()), Step("two", 5, (), aims=("mfu >= 0.4",))])
        self.assertEqual(lines.splitlines()[1:], ["one   green    1.2",
                                                  "two   skipped                "
                                                  "no GPU; mfu >= 0.4"])


class Command(unittest.TestCase):
    """main, with stand-ins for the programs and no GPU that it can see."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "build").mkdir()
        for name in ("troupe", "troupe-bench", "tiny_data", "models_test"):
            self.program(name, "echo 'troupe 1'; echo '[  PASSED  ] 3 tests.'")
        old = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", old)
        os.environ["PATH"] = f"{self.folder}/bin:{old}"
        (self.folder / "bin").mkdir()
        for name in ("nvidia-smi", "ldd"):
            self.program(name, "exit 0" if name == "ldd" else "exit 9", "bin")

    def program(self, name, body, folder="build"):
        file = self.folder / folder / name
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)

    def main(self, *words):
        with contextlib.redirect_stdout(io.StringIO()) as said, \
                contextlib.redirect_stderr(said):
            code = first_light.main(["--build", str(self.folder / "build"), "--out",
                                     str(self.folder / "out"), *words])
        return code, said.getvalue()

    def test_without_a_gpu_the_harmless_steps_run_and_the_code_is_77(self):
        code, said = self.main()
        self.assertEqual(code, 77, said)
        self.assertRegex(said, r"\nno GPU: 0 of 1 here; 8 harmless steps are green, \d+ wait "
                               r"for one\n$")
        document = json.loads((self.folder / "out/first_light.json").read_text())
        self.assertEqual((document["exit"], document["machine"]["gpus"]), (77, []))
        self.assertEqual([step["state"] for step in document["steps"]][:9],
                         ["green"] * 8 + ["skipped"])
        self.assertEqual(len(document["steps"]), len(ONE_GPU))

    def test_a_red_harmless_step_is_no_skip(self):
        self.program("troupe", "exit 4")
        code, said = self.main()
        self.assertEqual(code, 1)
        self.assertIn("red: exit 4, not 0", said)

    def test_a_gpu_that_is_there_is_used(self):
        self.program("nvidia-smi", f"echo '{H100}'", "bin")
        self.program("troupe", "echo 'ok gpus none: this build has no CUDA'; echo troupe 1")
        code, said = self.main()
        self.assertEqual(code, 1)
        self.assertRegex(said, r"red: says 'gpus \+none'")
        document = json.loads((self.folder / "out/first_light.json").read_text())
        self.assertEqual(document["machine"]["gpus"], [H100])

    def test_a_folder_without_programs_is_a_mistake(self):
        code, said = self.main("--build", "/nowhere")
        self.assertEqual((code, said),
                         (2, "first_light: no programs in /nowhere; try --build DIR\n"))

    def test_steps_can_be_listed_and_chosen(self):
        code, said = self.main("--list", "--only", "batch")
        self.assertEqual((code, len(said.splitlines())), (0, 3))
        self.assertEqual(self.main("--list", "--only", "no such step")[0], 2)


if __name__ == "__main__":
    unittest.main()
