"""`plan import` and `plan advise` as somebody meets them who has a configuration
of another system and no Troupe: through `troupe-plan`, and through `troupe plan`
with the same answers."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

from support import DEADLINE_S, SOURCE, TROUPE

PLANNER = pathlib.Path(TROUPE).parent / "troupe-plan"

VERL = """
set -x
python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    data.train_files=$HOME/data/gsm8k/train.parquet \\
    data.train_batch_size=1024 data.max_prompt_length=512 \\
    data.max_response_length=1024 \\
    actor_rollout_ref.model.path=Qwen/Qwen2-7B-Instruct \\
    actor_rollout_ref.actor.ppo_mini_batch_size=256 \\
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=40 \\
    actor_rollout_ref.actor.use_kl_loss=True \\
    actor_rollout_ref.rollout.tensor_model_parallel_size=2 \\
    actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \\
    actor_rollout_ref.rollout.n=5 \\
    actor_rollout_ref.ref.fsdp_config.param_offload=True \\
    trainer.n_gpus_per_node=8 trainer.nnodes=${NNODES:-1} $@
"""

NEMO_BASE = """
grpo: {num_prompts_per_step: 32, num_generations_per_prompt: 16}
policy:
  model_name: Qwen/Qwen2.5-1.5B
  train_global_batch_size: 512
  train_micro_batch_size: 4
  max_total_sequence_length: 1024
  dtensor_cfg: {enabled: true, tensor_parallel_size: 1}
  generation: {vllm_cfg: {tensor_parallel_size: 1, gpu_memory_utilization: 0.6}}
cluster: {gpus_per_node: 8, num_nodes: 1}
"""
NEMO = """
defaults: base.yaml
policy: {generation: {vllm_cfg: {tensor_parallel_size: 2}}}
"""


class PlanImport(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def write(self, name, text):
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def run_words(self, program, *words, code=0):
        done = subprocess.run([*program, *map(str, words)], cwd=SOURCE,
                              capture_output=True, text=True,
                              timeout=DEADLINE_S)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done

    def plan(self, *words, code=0):
        return self.run_words([PLANNER], *words, code=code)

    def test_the_planner_links_neither_torch_nor_sockets(self):
        done = subprocess.run(["ldd", PLANNER], capture_output=True, text=True,
                              timeout=DEADLINE_S, check=True)
        for library in ("libtorch", "libc10", "libcaf", "libssl", "libcrypto",
                        "libnccl"):
            self.assertNotIn(library, done.stdout)
        self.assertLess(os.path.getsize(PLANNER), 15e6)

    def test_the_planner_starts_at_once(self):
        best = min(self.seconds("--version") for _ in range(5))
        self.assertLess(best, 0.2, "20 ms on a quiet machine")

    def seconds(self, *words):
        begin = time.monotonic()
        self.plan(*words)
        return time.monotonic() - begin

    def test_both_programs_have_the_same_commands_and_answers(self):
        script = self.write("run.sh", VERL)
        troupe = [TROUPE, "plan"]
        for words in (["import", script],
                      ["simulate", "examples/paper/7b.yaml", "--hardware",
                       "h100x8", "--preset", "verl"],
                      ["check", "examples/paper/7b.yaml", "--hardware",
                       "h100x8", "--preset", "megatron"],
                      ["compare", "examples/paper/7b.yaml", "--hardware",
                       "h100x8", "--presets", "verl,megatron"]):
            self.assertEqual(self.plan(*words).stdout,
                             self.run_words(troupe, *words).stdout, words[0])

    def test_a_script_becomes_settings_that_plan_commands_take(self):
        script = self.write("run.sh", VERL)
        done = self.plan("import", script)
        self.assertIn(f"{script}:6: data.train_batch_size=1024 -> "
                      "data.batch_size", done.stderr)
        self.assertIn("0 not understood", done.stderr)
        yaml = self.write("ours.yaml", done.stdout)
        said = re.search(r"next: .*simulate FILE (.+) predicts", done.stderr)
        run = json.loads(self.plan("simulate", yaml, *said[1].split(),
                                   "--json").stdout)
        self.assertGreater(run["step_s"], 1)
        self.assertEqual(len(run["devices"]), 8)

    def test_a_variable_and_an_override_may_follow_the_file(self):
        script = self.write("run.sh", VERL)
        done = self.plan("import", script, "NNODES=2",
                         "actor_rollout_ref.rollout.n=8")
        self.assertIn("nodes: 2", done.stdout)
        self.assertIn("n: 8", done.stdout)
        self.assertIn("command line: actor_rollout_ref.rollout.n=8",
                      done.stderr)

    def test_a_base_file_is_read_before_the_file_that_names_it(self):
        self.write("base.yaml", NEMO_BASE)
        file = self.write("recipes/llm/r.yaml", NEMO)
        found = json.loads(self.plan("import", file, "--json").stdout)
        self.assertEqual(found["system"], "nemo-rl")
        self.assertIn("generation 0-7 d4t2", found["layout"])
        self.assertIn("base.yaml", {pathlib.Path(value["file"]).name
                                    for value in found["values"]})

    def test_an_unknown_model_needs_its_config(self):
        script = self.write("run.sh", VERL.replace("Qwen/Qwen2-7B-Instruct",
                                                   "acme/Secret-9B"))
        done = self.plan("import", script, code=2)
        self.assertIn("--model-config FOLDER", done.stderr)
        folder = SOURCE / "examples/paper/models/7b"
        done = self.plan("import", script, "--model-config", folder)
        self.assertIn(f"path: {folder}", done.stdout)

    def test_a_file_of_no_system_is_refused(self):
        file = self.write("x.yaml", "colour: red\n")
        done = self.plan("import", file, code=2)
        self.assertIn("none of their keys", done.stderr)
        done = self.plan("import", file, "--from", "verrl", code=2)
        self.assertIn("try 'verl'", done.stderr)

    def test_advice_has_its_fields_and_gains(self):
        script = self.write("run.sh", VERL)
        advice = json.loads(self.plan("advise", script, "--json",
                                      "--response-tokens", "300:1024",
                                      "--no-clusters").stdout)
        self.assertEqual(advice["system"], "verl")
        own, best = advice["own"], advice["best_of_system"]
        self.assertTrue(own["fits"])
        self.assertLessEqual(best["step_s"], own["step_s"] * 1.001)
        self.assertLessEqual(advice["best"]["step_s"], best["step_s"])
        self.assertLessEqual(advice["lower_bound_s"],
                             advice["best"]["step_s"] * 1.001)
        self.assertEqual(len(own["devices"]), 8)
        self.assertEqual(advice["sources"]["lengths"], "given")
        self.assertIn("data sheet", advice["sources"]["times"])
        self.assertTrue(best["flags"])

    def test_the_flags_of_an_advice_give_the_predicted_layout(self):
        script = self.write("run.sh", VERL)
        words = ["--no-clusters", "--json", "--response-tokens", "300:1024"]
        advice = json.loads(self.plan("advise", script, *words).stdout)
        best = advice["best_of_system"]
        flags = [f"{key}={value}" for key, value in best["flags"].items()]
        again = json.loads(self.plan("import", script, *flags,
                                     "--json").stdout)
        self.assertEqual(again["layout"], best["layout"])

    def test_advice_as_text_fits_100_columns_and_names_its_sources(self):
        script = self.write("run.sh", VERL)
        text = self.plan("advise", script, "--what-if", "tp=4", "--price",
                         "2.5", "--gpus", "16").stdout
        for line in text.splitlines():
            if not line.startswith("    "):  # flags and plans are one line
                self.assertLessEqual(len(line), 100, line)
        for words in ("16 devices", "what if tp=4", "best that verl can run",
                      "best of all", "lower bound", "predicted from: data sheet",
                      "cost of 1,000 steps", "[assumed: all as long as allowed"):
            self.assertIn(words, text)

    def test_a_page_holds_its_pictures_and_needs_nothing_else(self):
        script = self.write("run.sh", VERL)
        size = "examples/paper/7b.yaml"
        for words, pictures in (
                (["advise", script, "--no-clusters"], 3),
                (["simulate", size, "--preset", "verl", "--hardware",
                  "h100x8"], 1),
                (["search", size, "--hardware", "h100x8"], 1),
                (["compare", size, "--presets", "verl,megatron", "--hardware",
                  "h100x8"], 2)):
            page = self.folder / "page.html"
            self.plan(*words, "--html", page)
            html = page.read_text()
            self.assertEqual(html.count("<svg "), pictures, words[0])
            self.assertEqual(html.count("<template shadowroot"), pictures)
            for outside in ("<script", "href=", "src="):
                self.assertNotIn(outside, html)
            if words[0] != "simulate":
                self.assertIn('class="bar"', html)
            page.unlink()

    def test_settings_of_ours_are_advised_too(self):
        advice = json.loads(self.plan(
            "advise", "examples/paper/7b.yaml", "plan=verl", "--gpus", "8",
            "--no-clusters", "--json").stdout)
        self.assertEqual(advice["system"], "troupe")
        self.assertGreater(advice["own"]["step_s"], advice["best"]["step_s"])

    def test_a_what_if_may_change_the_cluster(self):
        script = self.write("run.sh", VERL)
        words = ["advise", script, "--no-clusters", "--json"]
        advice = json.loads(self.plan(*words, "--what-if",
                                      "trainer.nnodes=2").stdout)
        own, other = advice["own"], advice["what_if"]
        self.assertEqual(len(own["devices"]), 8)
        self.assertEqual(len(other["devices"]), 16)
        self.assertLess(other["step_s"], own["step_s"])
        self.assertEqual(other["flags"], {"trainer.nnodes": "2"})

    def test_a_change_of_our_settings_is_beside_them(self):
        words = ["advise", "examples/paper/7b.yaml", "plan=verl", "--gpus",
                 "8", "--no-clusters", "--json"]
        alone = json.loads(self.plan(*words).stdout)
        changed = json.loads(self.plan(*words, "--what-if",
                                       "plan=megatron").stdout)
        self.assertIsNone(alone["what_if"])
        self.assertEqual(changed["own"], alone["own"])
        self.assertEqual(changed["what_if"]["flags"], {"plan": "megatron"})
        self.assertNotEqual(changed["what_if"]["plan"], alone["own"]["plan"])

    def test_a_degree_of_a_what_if_is_a_whole_number(self):
        script = self.write("run.sh", VERL)
        done = self.plan("advise", script, "--what-if", "tp=2.7",
                         "--no-clusters", code=2)
        self.assertIn("expected a whole number, got '2.7'", done.stderr)

    def test_a_what_if_that_is_no_key_names_the_nearest(self):
        script = self.write("run.sh", VERL)
        done = self.plan("advise", script, "--what-if", "tp=3", "--no-clusters",
                         code=2)
        self.assertIn("divisor of 8", done.stderr)


if __name__ == "__main__":
    unittest.main()
