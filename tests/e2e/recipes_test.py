"""examples/recipes: every GPU size fits its hardware and costs what the table says,
every CPU size trains for three steps with the numbers that the recipe is about."""
import json
import math
import re
import subprocess
import sys
import unittest

from support import BUILD, DEADLINE_S, SOURCE, TROUPE, Case

RECIPES = SOURCE / "examples/recipes"
TOLERANCE = 0.1  # of the table's numbers
# what a recipe is about, as a metric of its last step and what holds for it
SHOWS = {
    "zephyr_sft": ("train/loss", lambda x: x > 0),
    "zephyr_dpo": ("train/reward_margin", lambda x: x > 0),
    "zephyr_simpo": ("train/reward_margin", lambda x: x > 0),
    "rlhf_ppo": ("critic/vf_loss", lambda x: x > 0),
    "grpo_gsm8k": ("actor/kl_loss", lambda x: x > 0),
    # rewards of 0 or 1 in groups of 4, not divided by their deviation
    "dr_grpo": ("critic/advantages/max", lambda x: x in (0.25, 0.5, 0.75)),
    # a wrong answer has -1; less has a wrong one that is too long
    "dapo": ("critic/rewards/min", lambda x: -2 <= x < -1),
    "distillation": ("actor/distillation_loss", lambda x: x > 0),
    "gspo_moe": ("actor/pg_clipfrac", lambda x: x > 0),
    "rloo_lora": ("actor/kl_loss", lambda x: x > 0),
    "reinforce_pp": ("critic/advantages/mean", lambda x: abs(x) < 1e-5),
    "async_grpo_tis": ("actor/is_weight_mean", lambda x: x not in (0, 1)),
}
# | [`NAME`](NAME.yaml) | ... | GPUs | plan | 1.2 s | 3.4 GB |
ROW = re.compile(r"^\| \[`(\w+)`\]\((\w+)\.yaml\) \|.*\| (\d+) \| [^|]* \|"
                 r" ([\d.]+) s \| ([\d.]+) GB \|$", re.MULTILINE)


def planned(command, file, program=TROUPE):
    """What a plan command says of a GPU size."""
    done = subprocess.run(
        [program, "plan", command, file, "--hardware", "h100x8", "--json"],
        cwd=SOURCE, capture_output=True, text=True, timeout=DEADLINE_S)
    if done.returncode != 0:
        raise AssertionError(f"{file}: {done.stdout}\n{done.stderr}")
    return json.loads(done.stdout)


class Table(unittest.TestCase):
    def test_it_has_every_recipe_in_both_sizes(self):
        rows = ROW.findall((RECIPES / "README.md").read_text())
        for name, link, *_ in rows:
            self.assertEqual(name, link)
        names = sorted(SHOWS)
        self.assertEqual([name for name, *_ in sorted(rows)], names)
        for folder in (RECIPES, RECIPES / "small"):
            self.assertEqual(sorted(file.stem for file in folder.glob("*.yaml")),
                             names)

    def test_its_numbers_are_what_is_predicted_now(self):
        for name, _, gpus, step_s, peak_gb in ROW.findall(
                (RECIPES / "README.md").read_text()):
            with self.subTest(name):
                file = RECIPES / f"{name}.yaml"
                self.assertTrue(planned("check", file)["ok"])
                run = planned("simulate", file)
                peak = max(device["peak_bytes"] for device in run["devices"])
                self.assertEqual(int(gpus), len(run["devices"]))
                for said, now in ((step_s, run["step_s"]),
                                  (peak_gb, peak / 1e9)):
                    self.assertAlmostEqual(float(said), now,
                                           delta=TOLERANCE * now)

    def test_conversations_fit_their_gpus_too(self):
        self.assertTrue(planned("check", SOURCE / "examples/tool_use/gpu.yaml",
                                BUILD / "examples/tool_use")["ok"])


class SmallSizes(Case):
    """Commands are those of the files' heads, in a folder as a user has it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        subprocess.run([sys.executable, "-B", RECIPES / "small/make_models.py",
                        cls.shared_folder], check=True)

    def setUp(self):
        super().setUp()
        runs = self.folder / "runs"
        runs.mkdir()
        (runs / "tiny_data").symlink_to(self.shared_folder)
        (self.folder / "examples").symlink_to(SOURCE / "examples")

    def check(self, name):
        """Trains, and returns the last step's numbers."""
        self.troupe("train", f"examples/recipes/{name}.yaml",
                    f"examples/recipes/small/{name}.yaml")
        steps = self.metrics(name)
        self.assertEqual(sorted(step for step in steps if step > 0), [1, 2, 3])
        for step in (1, 2, 3):
            for key, value in steps[step].items():
                self.assertTrue(math.isfinite(value), f"{key} of step {step}")
        last = steps[3]
        metric, holds = SHOWS[name]
        self.assertIn(metric, last)
        self.assertTrue(holds(last[metric]), f"{metric} is {last[metric]}")
        norms = [value for key, value in last.items()
                 if key.endswith("/grad_norm")]
        self.assertGreater(min(norms), 0)
        return last

    def test_each_trains_with_the_numbers_that_it_is_about(self):
        last = {}
        for name in SHOWS:
            with self.subTest(name):
                last[name] = self.check(name)
        self.assertEqual(last["async_grpo_tis"]["training/lag_mean"], 1)
        self.assertNotIn("timing_s/ref", last["zephyr_simpo"])
        self.assertIn(last["dapo"]["rollout/rounds"], (1, 2, 3))
        self.assertTrue((self.latest("rloo_lora") / "actor"
                         / "adapter_model.safetensors").is_file())


if __name__ == "__main__":
    unittest.main()
