"""troupe.Workflow writes the file that a person would write."""
import os
import pathlib
import sys
import unittest

from package import SOURCE, Case, troupe
from troupe.written_yaml import read_yaml

EXAMPLE = SOURCE / "examples/best_of_n/python"


class Workflow(Case):
    def setUp(self):
        super().setUp()
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        (self.folder / "functions.py").write_text(
            "def check(response): return 1\n"
            "def pick_best(tool_score): return tool_score\n"
            "def only_kept(loss_mask, keep): return loss_mask\n")
        sys.path.insert(0, str(self.folder))
        self.addCleanup(sys.path.remove, str(self.folder))
        sys.modules.pop("functions", None)
        import functions
        self.functions = functions

    def best_of_n(self):
        own = self.functions
        return (troupe.Workflow(settings=["rollout", "updates"])
                .role("actor", trained=True)
                .generate("actor_gen", "actor")
                .each("check", own.check, reads=["response"],
                      writes=["tool_score"], processes=2)
                .groups("pick_best", own.pick_best, reads=["tool_score"],
                        writes=["keep"])
                .each("only_kept", own.only_kept, reads=["loss_mask", "keep"],
                      writes={"kept_mask": "flags"})
                .train("actor_train", "actor", "sft_loss",
                       reads={"sequence_ids": "sequence_ids",
                              "kept_mask": "loss_mask"})
                .metric("tool/score", "tool_score"))

    def test_the_example_is_its_file(self):
        text = self.best_of_n().text()
        self.assertIn('"function": "functions.py:check"', text)
        written = (EXAMPLE / "workflow.yaml").read_text().replace(
            "examples/best_of_n/python/functions.py", "functions.py")
        self.assertEqual(read_yaml(text), read_yaml(written))

    def test_a_loss_is_a_function_of_a_file(self):
        text = (troupe.Workflow().role("actor", trained=True)
                .train("actor_train", "actor", self.functions.pick_best,
                       reads=["sequence_ids", "loss_mask", "keep"],
                       outputs=["logprobs", "entropy"], mean_over="keep")).text()
        self.assertEqual(read_yaml(text)["calls"]["actor_train"], {
            "train": "actor", "fn": "functions.py:pick_best",
            "reads": ["sequence_ids", "loss_mask", "keep"],
            "outputs": ["logprobs", "entropy"], "mean_over": "keep"})

    def test_a_conversation_is_led_by_a_function_of_a_file(self):
        text = (troupe.Workflow().role("actor", trained=True)
                .converse("solve", "actor", self.functions.check,
                          reads=["ground_truth"], writes={"asked": "number"},
                          beside=["opponent"], processes=2)).text()
        self.assertEqual(read_yaml(text)["calls"]["solve"], {
            "generate": "actor", "fn": "functions.py:check", "processes": 2,
            "with": ["opponent"],
            "reads": ["ground_truth"], "writes": {"asked": "number"}})

    def test_the_program_plans_what_was_built(self):
        graph = (troupe.Workflow(settings=["rollout", "updates"])
                 .role("actor", trained=True).role("ref", like="actor")
                 .generate("actor_gen", "actor")
                 .infer("ref_inf", "ref", "logprobs",
                        writes={"ref_logprobs": "logprobs"})
                 .train("actor_train", "actor", "sft_loss",
                        reads=["sequence_ids", "loss_mask", "ref_logprobs"]))
        shown = troupe.plan_check("/dev/null", {
            "workflow": graph.save("graph.yaml"), "run": {"name": "x", "steps": 1},
            "rollout.max_new_tokens": 12,
            "models.actor.path": "data/base", "data.train": "data/prompts.jsonl",
            "cluster": {"nodes": 1, "devices_per_node": 2,
                        "workers_per_node": 1}, "plan": "data_parallel"})
        self.assertTrue(shown.ok, shown)
        self.assertEqual(len(shown.devices), 2)

    def test_what_a_process_cannot_find_is_refused(self):
        graph = troupe.Workflow()

        def inner(response):
            return response

        for function in (lambda response: 1, inner, len, "check"):
            with self.subTest(function):
                with self.assertRaisesRegex(ValueError, "expected a function that "
                                            "a Python file defines by name"):
                    graph.each("check", function, reads=["response"], writes=["x"])
        with self.assertRaisesRegex(TypeError, r"try \['response'\]"):
            graph.each("check", self.functions.check, reads="response",
                       writes=["x"])

    def test_names_are_given_once_and_files_end_with_yaml(self):
        graph = self.best_of_n()
        with self.assertRaisesRegex(ValueError, "a check already"):
            graph.each("check", self.functions.check, reads=["response"],
                       writes=["x"])
        with self.assertRaisesRegex(ValueError, "ends with .yaml"):
            graph.save(pathlib.Path("graph.txt"))


if __name__ == "__main__":
    unittest.main()
