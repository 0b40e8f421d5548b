"""Conversations that Python leads: the tokens of the C++ program's, from any number of
processes, also after one was killed, and mistakes with their line."""
import unittest
from unittest.mock import ANY

import package  # noqa: F401
from conversation_test import Talk
from support import SOURCE

EXAMPLE = SOURCE / "examples/tool_use/python"
FN = "examples/tool_use/python/conversations.py:solve"
KEYS = ("sequence_ids", "loss_mask", "response", "score")


class Conversations(Talk):
    @classmethod
    def setUpClass(cls):
        """A model that half of the time asks the calculator."""
        super().setUpClass()
        cls.learn("tool_use")

    def setUp(self):
        super().setUp()
        (self.folder / "examples").symlink_to(SOURCE / "examples")

    def led(self, name, *overrides, code=0, text=None, changed=()):
        """A run of the example, or of its workflow with the function in `text`."""
        graph = (EXAMPLE / "workflow.yaml").read_text()
        if text is not None:
            (self.folder / "talk.py").write_text(text)
            changed = ((FN, "talk.py:solve"), *changed)
        for old, new in changed:
            self.assertIn(old, graph)
            graph = graph.replace(old, new)
        (self.folder / f"{name}.yaml").write_text(graph)
        return self.troupe(
            "train", EXAMPLE / "tool_use.yaml", f"run.name={name}",
            f"workflow={name}.yaml", "run.steps=1",
            "models.actor.path=data/runs/tool_use/latest/actor",
            "data.train=data/tool_use/prompts.jsonl", *overrides, code=code)

    def told(self, name):
        """By sample; their log-probabilities are compared to their rounding."""
        return {row["sample"]: row for row in self.samples(name)}

    def check_same(self, name, other):
        ours, theirs = self.told(name), self.told(other)
        self.assertEqual(len(ours), 64)
        self.assertEqual(sorted(ours), sorted(theirs))
        for sample, row in ours.items():
            for key in KEYS:
                self.assertEqual(row[key], theirs[sample][key], key)
            for a, b in zip(row["logprobs"], theirs[sample]["logprobs"]):
                self.assertAlmostEqual(a, b, delta=1e-4)

    def test_conversations_have_the_tokens_of_those_in_cpp_I2(self):
        self.led("python")
        self.program("tool_use", "train", "run.steps=1")
        self.check_same("python", "tool_use")
        mine, other = self.metrics("python")[1], self.metrics("tool_use")[1]
        for name in ("tool/asked", "tool/right"):
            self.assertEqual(mine[name], other[name], name)
        self.assertTrue(0 < mine["tool/asked"] < 1, "some of each")

    def test_processes_and_plans_change_no_token_I1(self):
        self.led("two")
        self.led("five", changed=(("processes: 2", "processes: 5"),))
        self.led("one", "plan=single", "cluster.workers_per_node=1",
                 "cluster.devices_per_node=1",
                 changed=(("    processes: 2\n", ""),))
        self.check_same("two", "five")
        self.check_same("two", "one")

    def test_it_learns_to_ask_the_calculator(self):
        self.led("learns", "run.steps=20")
        first, last = self.rise("learns", "tool/asked")
        self.assertGreater(last, first)

    def test_a_process_that_is_killed_changes_no_token(self):
        example = (EXAMPLE / "conversations.py").read_text()
        killer = example.replace("import re\n", "import os\nimport re\nimport signal\n")
        killer = killer.replace("        questions += 1\n", """        questions += 1
        if not os.path.exists("killed"):
            open("killed", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
""")
        self.assertIn("SIGKILL", killer)
        self.led("killed", text=killer)
        self.assertTrue((self.folder / "killed").exists())
        self.led("whole")
        self.check_same("killed", "whole")

    def test_another_role_speaks_and_is_not_trained_on_I1_I2(self):
        def led(name, *overrides):
            self.led(name, *overrides, text='''
async def solve(model, sample):
    first = await model("opponent").extend(sample, max_tokens=3)
    assert first == sample.turn and sample.response == ""
    turn = await model.extend(sample, max_tokens=3)
    assert sample.response == turn
    sample.append("!")
    await model("opponent").extend(sample, max_tokens=2)
    assert sample.response == turn
    sample["asked"] = 1
''', changed=(("  actor: {trained: true}\n",
               "  actor: {trained: true}\n  opponent: {like: actor}\n"),
              ("    processes: 2\n",
               "    processes: 2\n    with: [opponent]\n")))

        led("both")
        led("one", "plan=single", "cluster.workers_per_node=1",
            "cluster.devices_per_node=1")
        self.check_same("both", "one")
        for row in self.samples("both"):
            mask = "".join(map(str, row["loss_mask"]))
            self.assertRegex(mask, r"^0+1{1,3}0{2,}$")
            for kept, number in zip(row["loss_mask"], row["logprobs"]):
                self.assertTrue(kept or number == 0)

    def test_a_conversation_reads_keys_and_limits_its_turns(self):
        self.led("reads", text='''
async def solve(model, sample):
    assert sample.turn == "" and sample["ground_truth"].isdigit()
    sample.append(f"hint {sample['ground_truth']}\\n")
    turn = await model.extend(sample, max_tokens=3)
    assert turn == sample.turn and sample.response == turn
    sample["asked"] = len(turn)
''', changed=(("writes: {asked: number}",
               "reads: [ground_truth]\n    writes: {asked: integer}"),))
        for row in self.samples("reads"):
            self.assertLessEqual(sum(row["loss_mask"]), 3)
            self.assertRegex(row["prompt"], r"\nhint \d+\n\Z")  # no turn before
        lengths = [len(row["response"]) for row in self.samples("reads")]
        self.assertGreater(sum(lengths), 0)
        self.assertAlmostEqual(self.metrics("reads")[1]["tool/asked"],
                               sum(lengths) / len(lengths), places=5)

    def test_mistakes_name_their_line_and_their_sample(self):
        begin = "\nasync def solve(model, sample):\n"
        for body, sentence in (
                ("    await model.extend(sample)\n    return {}['no key']\n",
                 r"talk\.py:4: KeyError: 'no key'"),
                ("    sample['aksed'] = 1\n",
                 r"talk\.py:3: KeyError: 'aksed, which is not in writes"),
                ("    sample['asked'] = 'x'\n",
                 r"talk\.py:3: TypeError: expected asked to be a finite number, "
                 "got 'x'"),
                ("    await model.extend(sample)\n",
                 r"talk\.py:2: ValueError: expected asked to be set"),
                ("    await model('oponent').extend(sample)\n",
                 "no role 'oponent' speaks in its conversations, only actor"),
                ("    import sys\n    sys.exit('enough of this')\n",
                 "enough of this")):
            with self.subTest(body):
                error = self.led("wrong", "run.resume=fresh", text=begin + body,
                                 code=2).stderr
                self.assertRegex(error, sentence)
                self.assertRegex(error, r"sample \d+: ")
                self.assertIn("solve of step 1", error)

    def test_a_silent_conversation_ends_the_run(self):
        # the wait for the process and that for the actor have the same limit
        done = self.led("silent", "cluster.own_actor_timeout_s=2", text='''
import threading
async def solve(model, sample):
    await model.extend(sample)
    threading.Event().wait()
''', code=ANY)
        self.assertIn(done.returncode, (1, 2))
        self.assertIn("cluster.own_actor_timeout_s", done.stderr)

    def test_mistakes_of_the_file_are_refused_before_the_run(self):
        plain = "def solve(model, sample):\n    pass\n"
        right = "async " + plain
        keys = "writes: {asked: number}"
        for line, text, changed, sentence in (
                (9, plain, (), "calls.solve.fn: expected an async function, which "
                            "leads a conversation, got 'solve'; try async def "
                            "solve(model, sample):"),
                (9, right.replace("solve", "slove"), (),
                 "calls.solve.fn: expected a function of talk.py (slove), got "
                 "'solve'; try slove"),
                (13, right, ((keys, "writes: {asked: numbers}"),),
                 "calls.solve.writes: expected keys of one value per sample"),
                (13, right, ((keys, "writes: {logprobs: number}"),),
                 "calls.solve.writes: expected keys that neither")):
            with self.subTest(sentence):
                error = self.led("refused", text=text, changed=changed,
                                 code=2).stderr
                self.assertIn(f"refused.yaml:{line}: ", error)
                self.assertIn(sentence, error)
                self.assertFalse(self.run_folder("refused").exists())


if __name__ == "__main__":
    unittest.main()
