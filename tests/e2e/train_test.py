"""Whole short runs: files, metrics, tables, trace; nothing left over."""
import json
import math
import re
import shutil
import signal
import struct
import subprocess
import time
import unittest

from support import Case, TINY, TROUPE, read_rows, until, without_times

PPO_METRICS = [
    "actor/pg_loss", "actor/pg_clipfrac", "actor/ppo_kl", "actor/entropy",
    "actor/grad_norm", "actor/lr", "actor/reward_kl_penalty", "critic/vf_loss",
    "critic/vf_clipfrac", "critic/grad_norm", "critic/lr",
    *[f"critic/{what}/{how}" for how in ("mean", "max", "min")
      for what in ("score", "rewards", "advantages", "returns", "values")],
    "response_length/mean", "response_length/max", "response_length/min",
    "response_length/clip_ratio", "prompt_length/mean", "timing_s/gen",
    "timing_s/reward", "timing_s/ref", "timing_s/values", "timing_s/adv",
    "timing_s/update_critic", "timing_s/update_actor", "timing_s/move",
    "timing_s/step", "perf/throughput", "perf/total_num_tokens",
    "perf/time_per_step", "training/global_step", "training/epoch",
    "training/attempt", "training/rollout_probs_diff_mean"]


class Train(Case):
    def check_run_folder(self, name, role):
        folder = self.run_folder(name)
        for file in ("config.yaml", "plan.yaml", "metrics.jsonl", "status.json",
                     "log.txt", "logs/worker_00.log", "logs/worker_01.log",
                     "attempts/01/config.yaml", "attempts/01/plan.yaml"):
            self.assertTrue((folder / file).is_file(), file)
        self.assertTrue(list(folder.glob("trace/*.events")))
        latest = self.latest(name)
        self.assertEqual(latest.name, "step_000003")
        manifest = json.loads((latest / "manifest.json").read_text())
        self.assertEqual(manifest["format"], 1)  # the version of the format
        for file in ("config.json", "model.safetensors", "tokenizer.json",
                     "tokenizer_config.json", "generation_config.json"):
            self.assertTrue((latest / role / file).is_file(), file)
        self.assertFalse(list((folder / "checkpoints").glob(".tmp*")))

    def test_sft_trains_three_steps_on_two_workers(self):
        done = self.troupe(*self.sft("data.batch_size=32"))
        self.check_run_folder("sft", "actor")
        losses = [line["train/loss"] for line in self.metrics("sft").values()]
        self.assertEqual(len(losses), 3)
        # untrained: near uniform over 512 tokens; then it goes down
        self.assertAlmostEqual(losses[0], math.log(512), delta=1)
        self.assertLess(losses[2], losses[0])
        self.assertIn("actor_train", done.stdout)

    def test_reward_model_gets_a_new_head_and_is_saved_as_hf_does(self):
        done = self.troupe("train", TINY / "reward.yaml", "run.name=reward",
                           "run.steps=3", "models.reward.path=data/base",
                           "data.train=data/pairs_train.jsonl")
        self.check_run_folder("reward", "reward")
        line = self.metrics("reward")[3]
        self.assertIn("train/accuracy", line)
        first = self.metrics("reward")[1]["train/loss"]
        self.assertAlmostEqual(first, math.log(2), places=5)  # a zero head
        config = json.loads(
            (self.latest("reward") / "reward/config.json").read_text())
        self.assertEqual(config["architectures"],
                         ["LlamaForSequenceClassification"])
        log = "".join(file.read_text() for file in
                      self.run_folder("reward").glob("logs/*.log"))
        self.assertIn("head", log)
        says = ("warning: models.reward.path: data/base has no scalar head, so "
                "reward starts with a new zero head")
        self.assertIn(says, done.stdout)
        on = self.troupe("train", "runs/reward", "run.steps=4")
        self.assertNotIn(says, on.stdout, "the checkpoint has one")

    def test_a_checkpoint_with_dropout_is_trained_without_and_says_so(self):
        asks = self.folder / "asks"
        shutil.copytree(self.folder / "data/base", asks)
        config = json.loads((asks / "config.json").read_text())
        (asks / "config.json").write_text(
            json.dumps(config | {"attention_dropout": 0.1}))
        done = self.troupe(*self.sft("run.steps=1", "models.actor.path=asks"))
        self.assertIn("warning: models.actor.path: asks/config.json asks for "
                      "dropout (attention_dropout: 0.1); actor is trained "
                      "without", done.stdout)
        saved = self.latest("sft") / "actor/config.json"
        self.assertEqual(json.loads(saved.read_text())["attention_dropout"], 0)

    def test_ppo_trains_three_steps_with_every_metric(self):
        done = self.troupe(*self.ppo())
        self.check_run_folder("ppo", "actor")
        self.assertTrue((self.latest("ppo") / "critic/config.json").is_file())
        lines = self.metrics("ppo")
        self.assertEqual(sorted(lines), [1, 2, 3])
        missing = [name for name in PPO_METRICS if name not in lines[3]]
        self.assertEqual(missing, [])
        samples = read_rows(self.run_folder("ppo") / "samples.jsonl")
        self.assertEqual(len(samples), 3 * 16)
        for name in ("prompt", "response", "score", "step"):
            self.assertIn(name, samples[0])
        for name in ("ref_logprobs", "advantages"):  # a number per token
            self.assertEqual(len(samples[0][name]), len(samples[0]["loss_mask"]))
        # the first mini-batch meets the weights that generated it; the other
        # three meet newer ones, so the mean is small, not zero
        self.assertLess(abs(lines[1]["training/rollout_probs_diff_mean"]), 1e-2)
        self.assertIn("step 3/3", done.stdout)
        status = json.loads(
            self.troupe("status", "runs/ppo", "--json").stdout)
        self.assertEqual((status["state"], status["step"]), ("done", 3))

    def test_training_meets_the_weights_that_generated_I2(self):
        self.troupe(*self.ppo("run.steps=1", "algorithm.mini_batches=1"))
        line = self.metrics("ppo")[1]
        self.assertLess(abs(line["training/rollout_probs_diff_mean"]), 1e-5)

    def test_dry_run_prints_the_tables_and_writes_nothing(self):
        done = self.troupe(*self.ppo(), "--dry-run")
        for word in ("actor_gen", "critic_train", "samples", "mini"):
            self.assertIn(word, done.stdout)
        tables = json.loads(self.troupe(*self.ppo(), "--dry-run",
                                        "--json").stdout)
        self.assertIn("workflow: ppo", tables["settings"])
        self.assertIn("actor_gen:", tables["plan"])
        self.assertGreater(tables["batch"]["optimizer_steps"], 0)
        self.assertFalse(self.run_folder("ppo").exists())

    def test_a_dry_run_keeps_nothing_that_it_measured(self):
        self.cached_hardware.unlink()
        everything = [path for folder in (self.folder, self.cache)
                      for path in folder.rglob("*")]
        done = self.troupe(*self.ppo("plan=auto", "cluster.nodes=1",
                                     "cluster.devices_per_node=2"), "--dry-run")
        self.assertIn("measured now", done.stdout)
        self.assertIn("not kept", done.stdout)
        self.assertIn("dry run: checked settings, models,", done.stdout)
        self.assertEqual(everything,
                         [path for folder in (self.folder, self.cache)
                          for path in folder.rglob("*")])

    def test_the_console_shows_what_was_set_and_warnings_last(self):
        (self.folder / "long.jsonl").write_text(
            (self.folder / "data/prompts.jsonl").read_text()
            + json.dumps({"prompt": "what " * 200}) + "\n")
        done = self.start(*self.ppo(
            "run.steps=1", "data.train=long.jsonl", "rollout.temperature=1",
            "algorithm.mini_batches=3")).finish()
        self.assertEqual(done.code, 0, done.err)
        self.assertLess(len(done.out.split("step 1/1")[0].splitlines()), 60)
        self.assertRegex(done.out, r"\ndata.batch_size +16 +64\n")
        self.assertNotIn("repetition_penalty", done.out)
        self.assertNotIn("rollout.temperature", done.out, "the default")
        uneven = ("algorithm.mini_batches: 16 samples a step do not divide into "
                  "3: mini-batches have 5 or 6")
        after_tables = done.out.split("optimizer steps")[1]
        self.assertIn("warning: " + uneven + "\n", after_tables)
        self.assertIn("1 overlong rows skipped", done.err)
        log = (self.run_folder("ppo") / "log.txt").read_text()
        self.assertIn(uneven, log)
        self.assertIn("1 overlong rows skipped", log)

    def test_warnings_reach_the_log_of_a_quiet_run(self):
        self.troupe(*self.ppo("run.steps=1", "algorithm.mini_batches=3",
                              "--quiet"))
        log = (self.run_folder("ppo") / "log.txt").read_text()
        self.assertRegex(log, r"warning plans: algorithm.mini_batches: 16 ")

    def test_runs_are_listed_and_known_by_name(self):
        self.troupe(*self.sft("run.steps=1"))
        self.troupe(*self.sft("run.steps=1", "run.name=other"))
        listed = self.troupe("status").stdout
        self.assertRegex(listed, r"(?m)^sft +done +1/1 +\d+ s$")
        self.assertRegex(listed, r"(?m)^other +done +1/1")
        names = {run["name"] for run in json.loads(
            self.troupe("status", "--json").stdout)["runs"]}
        self.assertEqual(names, {"sft", "other"})
        self.assertEqual(self.troupe("status", "sft").stdout,
                         self.troupe("status", "runs/sft").stdout)
        self.assertIn("done at step 1", self.troupe("logs", "sft").stdout)
        self.assertIn("does not run", self.troupe("stop", "sft").stderr)
        wrong = self.troupe("status", "stf", code=2)
        self.assertIn("try 'sft'", wrong.stderr)

    def test_every_arrow_of_the_trace_has_two_ends(self):
        self.troupe(*self.ppo())
        self.troupe("trace", "export", "runs/ppo")
        file = self.run_folder("ppo") / "trace.json"
        events = json.loads(file.read_text())
        events = events if isinstance(events, list) else events["traceEvents"]
        starts = {e["id"] for e in events if e["ph"] == "s"}
        ends = {e["id"] for e in events if e["ph"] == "f"}
        self.assertGreater(len(starts), 100)
        self.assertEqual(starts, ends)
        tracks = " ".join(e["args"]["name"] for e in events
                          if e["ph"] == "M" and e["name"] == "thread_name")
        for word in ("master", "actor_gen", "device"):
            self.assertIn(word, tracks)
        # what an export leaves out: every send was handled, nothing was lost
        summary = json.loads(
            self.troupe("trace", "summary", "runs/ppo", "--json").stdout)
        self.assertEqual((summary["unmatched_arrows"],
                          summary["dropped_events"]), (0, 0))
        # along the dataflow: samples, a score, advantages, a training
        path = summary["critical_path"]
        self.assertEqual((path[-4], path[-2]), ("actor_gen", "advantages"))
        self.assertIn(path[-3], ("rew_inf", "ref_inf", "critic_inf"))
        self.assertIn(path[-1], ("actor_train", "critic_train"))

    def test_training_goes_on_while_a_checkpoint_is_written(self):
        self.troupe(*self.sft("run.steps=8", "run.save_every=1"))
        arrows = self.arrows("sft")
        writes = [sent for name, way, sent, _ in arrows
                  if name == "write" and way == ("master", "checkpoint")]
        answers = [received for name, way, _, received in arrows
                   if name == "reply" and way == ("checkpoint", "master")]
        begins = [sent for name, way, sent, _ in arrows
                  if name == "next" and way == ("master", "data")]
        self.assertEqual((len(writes), len(begins)), (8, 8))
        for write, begin in zip(writes, begins[1:]):
            written = min(time for time in answers if time > write)
            self.assertTrue(write < begin < written,
                            "the next step waited for the write")

    def arrows(self, name):
        """The messages of a run's trace in the order of their sending: name,
        (from, to), and when sent and received in us."""
        self.troupe("trace", "export", f"runs/{name}")
        file = self.run_folder(name) / "trace.json"
        events = json.loads(file.read_text())["traceEvents"]
        tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in events
                  if e["ph"] == "M" and e["name"] == "thread_name"}
        ends = {e["id"]: e for e in events if e["ph"] == "f"}
        found = []
        for e in events:
            if e["ph"] == "s" and (end := ends.get(e["id"])):
                way = tuple(tracks[x["pid"], x["tid"]] for x in (e, end))
                found.append((e["name"], way, e["ts"], end["ts"]))
        return sorted(found, key=lambda arrow: arrow[2])

    def test_checkpoints_keep_their_tokenizer_when_older_ones_go(self):
        for steps in (1, 3, 5):
            self.troupe(*self.sft(f"run.steps={steps}", "run.save_every=1",
                                  "run.keep=1"))
        files = {file.name for file in (self.latest("sft") / "actor").iterdir()}
        self.assertLessEqual({"tokenizer.json", "tokenizer_config.json"}, files)

    def test_lag_one_generates_with_the_version_before(self):
        self.troupe(*self.ppo(f"plan={TINY}/plans/lag.yaml", "run.steps=4"))
        lags = [line["training/lag_mean"]
                for line in self.metrics("ppo").values()]
        self.assertEqual(lags, [0, 1, 1, 1])

    def join_words(self, name):
        """The words of a worker that joins the waiting run by hand."""
        log, token = (self.run_folder(name) / file
                      for file in ("log.txt", ".token"))
        found = until(lambda: log.exists() and re.search(
            r"workers join at (\S+)", log.read_text()), "the address")
        return ["worker", "--join", found.group(1), "--token-file", token]

    def results(self, name):
        return [without_times(line) for line in self.metrics(name).values()]

    def test_workers_started_by_hand_make_the_same_run(self):
        self.troupe(*self.sft())
        begin = ["run.name=hand", "cluster.launcher=manual"]
        master = self.start(*self.sft(*begin))
        join = self.join_words("hand")
        (self.folder / "wrong").write_text("0" * 64)
        self.assertIn("token",
                      self.troupe(*join[:-1], "wrong", code=1).stderr)
        workers = [self.start(*join) for _ in range(2)]
        self.assertEqual(master.finish().code, 0, master.err)
        self.assertEqual([worker.finish().code for worker in workers], [0, 0])
        self.assertEqual(self.results("sft"), self.results("hand"))
        for number in range(2):  # what no launcher kept
            log = self.run_folder("hand") / f"logs/worker_{number:02}.log"
            self.assertRegex(log.read_text(),
                             rf"worker {number} \(pid \d+\) joined")

    def test_a_worker_that_waits_for_a_late_one_gets_heartbeats(self):
        # 10 s without a heartbeat is a master's end to a worker
        master = self.start(*self.sft("run.name=late",
                                      "cluster.launcher=manual"))
        join = self.join_words("late")
        early = self.start(*join)
        time.sleep(11)
        late = self.start(*join)
        self.assertEqual(master.finish().code, 0, master.err)
        self.assertEqual([early.finish().code, late.finish().code], [0, 0])

    def test_groups_between_hosts_make_the_same_run_in_any_order_I8(self):
        # other addresses are other hosts: sockets only, no shared memory
        for plan in ("tensor", "pipeline"):
            words = [f"plan={TINY}/plans/{plan}.yaml", "run.steps=2"]
            self.troupe(*self.ppo(*words, f"run.name={plan}"))
            for order in ((0, 1), (1, 0)):
                name = f"{plan}_{order[0]}"
                master = self.start(*self.ppo(
                    *words, f"run.name={name}", "cluster.launcher=manual"))
                workers = []
                for number in order:
                    workers.append(self.start(
                        *self.join_words(name), "--number", number,
                        "--bind", f"127.0.0.{2 + number}"))
                    time.sleep(0.5)  # the other one comes late
                with self.subTest(plan=plan, order=order):
                    self.assertEqual(master.finish().code, 0, master.err)
                    self.assertEqual(self.results(plan), self.results(name))
                for worker in workers:
                    worker.finish()

    def test_metrics_go_to_a_command_and_nowhere_else_where_asked(self):
        done = self.troupe(*self.sft("metrics.command=cat > lines.jsonl",
                                     "metrics.jsonl=false",
                                     "metrics.console=false"))
        self.assertNotIn("step 1/3", done.stdout)
        self.assertFalse((self.run_folder("sft") / "metrics.jsonl").exists())
        self.assertEqual([row["step"] for row in
                          read_rows(self.folder / "lines.jsonl")], [1, 2, 3])
        # one that reads nothing and never ends holds nothing up
        self.assertFalse((self.run_folder("sft") / "tensorboard").exists())
        self.troupe(*self.sft("run.name=deaf", "metrics.command=sleep 1000"))

    def test_tensorboard_has_a_record_per_step(self):
        self.troupe(*self.sft("metrics.tensorboard=true"))
        file, = (self.run_folder("sft") / "tensorboard").iterdir()
        data, records = file.read_bytes(), []
        while data:
            length, = struct.unpack("<Q", data[:8])
            records.append(data[12:12 + length])
            data = data[16 + length:]
        self.assertIn(b"brain.Event:2", records[0])
        self.assertEqual([b"train/loss" in record for record in records],
                         [False, True, True, True])

    def test_the_variants_of_ppo(self):
        lines = {}
        for name, overrides in {
                "kl in the loss": ["algorithm.kl_in=loss",
                                   "algorithm.kl_estimator=k3"],
                "adaptive kl": ["algorithm.kl_target=0.001",
                                "algorithm.kl_horizon=100"],
                "dual clip": ["algorithm.dual_clip=3"],
                "old log-probabilities": ["algorithm.old_logprobs=recompute"],
                "activations": ["algorithm.recompute=true"],
                "plain": [],
                "normalised returns": ["algorithm.value_norm=true"],
        }.items():
            self.troupe(*self.ppo("run.resume=fresh", "plan=data_parallel",
                                  *overrides))
            lines[name] = self.metrics("ppo")
        self.assertGreater(lines["kl in the loss"][3]["actor/kl_loss"], 0)
        found = [line["actor/kl_coef"] for line in lines["adaptive kl"].values()]
        self.assertEqual(len(set(found)), 3, found)
        self.assertIn("actor/pg_clipfrac_lower", lines["dual clip"][3])
        for key in ("actor/pg_loss", "actor/grad_norm", "critic/vf_loss"):
            self.assertEqual(lines["activations"][3][key],
                             lines["plain"][3][key])
        self.assertNotEqual(lines["normalised returns"][3]["critic/vf_loss"],
                            lines["plain"][3]["critic/vf_loss"])
        # the sampler's log-probabilities beside those of training's own pass
        self.assertLess(lines["old log-probabilities"][3]
                        ["training/rollout_probs_diff_mean"], 1e-5)

    def test_every_workflow_may_recompute_activations(self):
        pairs = ["data.train=data/pairs_train.jsonl", "data.batch_size=8",
                 "run.steps=2"]
        for name, role, words in (
                ("sft", "actor", ["data.train=data/sft.jsonl", *pairs[1:]]),
                ("reward", "reward", pairs),
                ("dpo", "actor", [*pairs, "eval=null"])):
            found = []
            for kept in ("false", "true"):
                self.troupe("train", TINY / f"{name}.yaml", *words,
                            f"models.{role}.path=data/base",
                            f"run.name={name}_{kept}",
                            f"algorithm.recompute={kept}")
                found.append(self.results(f"{name}_{kept}"))
            self.assertEqual(found[0], found[1])

    def test_a_worker_of_another_build_is_refused(self):
        binary = TROUPE.read_bytes()
        note = b"\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0"  # the linker's build id
        at = binary.index(note) + len(note)
        other = self.folder / "other"
        other.write_bytes(binary[:at] + b"\0" * 8 + binary[at + 8:])
        other.chmod(0o755)
        master = self.start(*self.sft("run.name=hand",
                                      "cluster.launcher=manual"))
        log, token = (self.run_folder("hand") / name
                      for name in ("log.txt", ".token"))
        found = until(lambda: log.exists() and re.search(
            r"workers join at (\S+)", log.read_text()), "the address")
        done = subprocess.run([other, "worker", "--join", found.group(1),
                               "--token-file", token], cwd=self.folder,
                              env=self.environment, capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("start the same binary everywhere", done.stderr)
        master.send(signal.SIGTERM)
        self.assertEqual(master.finish().code, 75, master.err)

    def test_a_run_folder_is_a_configuration(self):
        self.troupe(*self.sft())
        done = self.troupe("train", "runs/sft")
        self.assertIn("3", done.stdout + done.stderr)  # finished, which it reports
        self.assertEqual(len(self.metrics("sft")), 3)
        self.troupe("train", "runs/sft", "run.steps=5")
        self.assertEqual(sorted(self.metrics("sft")), [1, 2, 3, 4, 5])


if __name__ == "__main__":
    unittest.main()
