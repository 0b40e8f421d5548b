"""On-policy distillation in whole runs: the student approaches its teacher, alike
under every plan (I1), resumed to the bit (I8), and written as a file."""
import shutil
import unittest

from support import CONSTANT, SOURCE, Case, tree_bytes, without_times

ONE_DEVICE = ["plan=single", "cluster.devices_per_node=1",
              "cluster.workers_per_node=1"]
FOUR_DEVICES = ["cluster.devices_per_node=4", "cluster.workers_per_node=2"]
PLANS = ("interleaving", "separation", "deepspeed_chat")
FILE = SOURCE / "examples/workflows/distillation.yaml"


class Distillation(Case):
    def distil(self, name, *overrides):
        self.troupe("train", "/dev/null", "workflow=distillation",
                    f"run.name={name}", "run.steps=3", "run.save_every=0",
                    "models.actor.path=data/base",
                    "models.actor.optimizer.lr=3e-3", CONSTANT[0],
                    "models.teacher.path=data/teacher",
                    "data.train=data/prompts.jsonl", "data.batch_size=6",
                    "data.max_prompt_tokens=32", "rollout.n=2",
                    "rollout.max_new_tokens=12", "algorithm.mini_batches=2",
                    "algorithm.distillation={top_k: 16, beta: 0.5}",
                    *overrides)
        return {step: without_times(line)
                for step, line in self.metrics(name).items()}

    def setUp(self):
        super().setUp()
        if (self.shared_folder / "teacher").exists():
            return
        self.troupe("train", "/dev/null", "workflow=sft", "run.name=teacher",
                    "run.steps=30", "run.save_every=0",
                    "models.actor.path=data/base",
                    "models.actor.optimizer.lr=1e-2",
                    "data.train=data/sft.jsonl", "data.batch_size=8",
                    *ONE_DEVICE)
        shutil.copytree(self.latest("teacher") / "actor",
                        self.shared_folder / "teacher")

    def test_the_student_approaches_its_teacher(self):
        lines = self.distil("approach", "run.steps=30", *ONE_DEVICE)
        first, last = (lines[step]["actor/distillation_loss"]
                       for step in (1, 30))
        self.assertGreater(first, 0.05)
        self.assertLess(last, first / 2)
        self.assertGreater(lines[30]["actor/student_top_mass"],
                           lines[1]["actor/student_top_mass"])

    def test_it_trains_alike_under_every_plan_I1(self):
        one = self.distil("one", *ONE_DEVICE)
        replay = f"run.replay={self.run_folder('one')}/samples.jsonl"
        for plan in PLANS:
            other = self.distil("other", "run.resume=fresh", f"plan={plan}",
                                replay, *FOUR_DEVICES)
            self.assert_alike(plan, one, other)

    def test_a_resumed_run_has_the_same_bits_I8(self):
        plan = ["plan=interleaving", "run.save_every=2", *FOUR_DEVICES]
        self.distil("whole", "run.steps=4", *plan)
        self.distil("halves", "run.steps=2", *plan)
        self.distil("halves", "run.steps=4", *plan)
        self.assertEqual(*[tree_bytes(self.latest(name), "*/*.safetensors")
                           for name in ("whole", "halves")])

    def test_as_a_file_it_gives_the_same_bits(self):
        built_in = self.distil("built_in", *ONE_DEVICE)
        file = self.distil("file", f"workflow={FILE}", *ONE_DEVICE)
        self.assertEqual(built_in, file)

    def test_settings_that_make_no_sense_are_refused(self):
        for override, words in (
                ("algorithm.distillation.beta=1.5", "algorithm.distillation.beta"),
                ("algorithm.distillation.top_k=0", "algorithm.distillation.top_k"),
                ("algorithm.kl_coef=0.5", "algorithm.kl_coef")):
            done = self.troupe("train", "/dev/null", "workflow=distillation",
                               "run.steps=1", "rollout.max_new_tokens=12",
                               "data.max_prompt_tokens=32", "models.actor.path=data/base",
                               "models.teacher.path=data/base",
                               "data.train=data/prompts.jsonl", override,
                               code=2)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
