"""Servers that generate (rollout.engine): GRPO over stand-ins that speak vLLM's or
SGLang's routes and compute a true model, what they do wrong, and their death."""
import contextlib
import json
import shutil
import socket
import subprocess
import sys
import unittest
import urllib.request

from support import Case, SOURCE, read_rows, until

STAND_IN = SOURCE / "tests/support/vllm_stand_in.py"
SGLANG = SOURCE / "tests/support/sglang_stand_in.py"
ONE_DEVICE = ["plan=single", "cluster.devices_per_node=1",
              "cluster.workers_per_node=1"]
TWO_DEVICES = ["plan=data_parallel", "cluster.devices_per_node=2",
               "cluster.workers_per_node=1"]
TENSOR = ("{calls: {actor_gen: {devices: 0-1, strategy: t2}, "
          "rewards: {devices: host}, advantages: {devices: host}, "
          "actor_train: {devices: 0-1, strategy: d2}}}")
LAGGED = ("{calls: {actor_gen: {devices: 0}, rewards: {devices: host}, "
          "advantages: {devices: host}, actor_train: {devices: 1}}, "
          "lag: {actor_gen: 2}}")
# Steps that change much, so that weights which are not the newest are seen.
LORA = ["models.actor.lora.rank=2", "models.actor.optimizer.lr=1e-2",
        "models.actor.optimizer.schedule=constant"]


class Engines(Case):
    def grpo(self, *overrides, server=True):
        served = ["rollout.engine=vllm",
                  f"rollout.server_command={sys.executable} -B {STAND_IN}"]
        return ["train", "/dev/null", "workflow=grpo", "run.name=grpo",
                "run.steps=2", "run.save_every=0",
                "models.actor.path=data/base",
                "models.actor.optimizer.lr=1e-3",
                "data.train=data/prompts.jsonl", "data.batch_size=3",
                "data.max_prompt_tokens=32", "rollout.n=2",
                "rollout.max_new_tokens=5", "algorithm.kl_in=none",
                "algorithm.mini_batches=1", "reward.kind=rule",
                "reward.weights={'regex:a': 1, 'regex:e': 1, 'regex:i': 1}",
                *(served if server else []), *overrides]

    def faulty(self, fault, *overrides, code=1):
        self.environment |= {"VLLM_STAND_IN": fault,
                             "VLLM_STAND_IN_COUNT": str(self.folder / "count")}
        return self.troupe(*self.grpo(*ONE_DEVICE, *overrides), code=code)

    def test_a_server_generates_with_the_weights_of_each_version(self):
        self.troupe(*self.grpo(*ONE_DEVICE))
        lines = self.metrics("grpo")
        for step in (1, 2):
            # checked before the first token, and again by what training computes
            self.assertLess(lines[step]["rollout/engine_logprob_gap"], 1e-4)
            self.assertLess(
                lines[step]["training/rollout_probs_diff_mean"], 1e-4)
            self.assertEqual(lines[step]["rollout/engine_restarts"], 0)
        rows = read_rows(self.run_folder("grpo") / "samples.jsonl")
        self.assertEqual(len(rows), 12)

    def test_an_update_is_seen_with_its_bytes_and_rate(self):
        self.troupe(*self.grpo(*ONE_DEVICE))
        line = self.metrics("grpo")[2]
        size = (self.folder / "data/base/model.safetensors").stat().st_size
        gigabytes, seconds = (line[f"rollout/engine_update_{what}"]
                              for what in ("gb", "s"))
        self.assertLess(gigabytes * 1e9, size)  # less the file's header
        self.assertGreater(gigabytes * 1e9, 0.8 * size)
        self.assertGreater(seconds, 0)
        self.assertAlmostEqual(line["rollout/engine_update_gb_per_s"] * seconds,
                               gigabytes, delta=1e-3 * gigabytes)
        slices = self.slices("grpo")
        spans = {name: [s for s in slices if s["name"] == name] for name in
                 ("start server", "update server", "verify server", "take weights")}
        self.assertEqual([s["step"] for s in spans["take weights"]], [0, 1])
        self.assertEqual({s["track"] for s in spans["take weights"]},
                         {"vLLM server of device 0"})
        self.assertEqual(len(self.arrows("grpo", "take weights")), 2)
        self.assertEqual(len(spans["start server"]), 1)
        for name in ("update server", "verify server"):
            self.assertEqual(sorted(s["step"] for s in spans[name]), [0, 1])
            self.assertTrue(all(s["track"].startswith("device")
                                for s in spans[name]))
        for update in spans["update server"] + spans["take weights"]:
            self.assertAlmostEqual(update["amount"] / 1e9, gigabytes,
                                   delta=1e-3 * gigabytes)

    def test_an_update_is_a_move_before_its_call(self):
        self.troupe(*self.grpo(*ONE_DEVICE))
        slices = self.slices("grpo")
        for step, line in self.metrics("grpo").items():
            gigabytes = line["rollout/engine_update_gb"]
            self.assertAlmostEqual(line["perf/moved_gb"], gigabytes,
                                   delta=1e-3 * gigabytes)
            self.assertGreater(line["timing_s/move"], 0)
            move, update, call = ([s for s in slices if s["name"] == name
                                   and s["step"] == step - 1
                                   and s["track"].startswith("device")]
                                  for name in ("move", "update server", "actor_gen"))
            self.assertEqual(len(move), 1)
            self.assertLessEqual(move[0]["begin"], update[0]["begin"])
            self.assertLessEqual(update[0]["end"], move[0]["end"])
            self.assertLessEqual(move[0]["end"], call[0]["begin"])

    def test_a_run_with_lag_goes_on_with_the_versions_of_its_servers_I8(self):
        lagged = [f"plan={LAGGED}", "cluster.devices_per_node=2",
                  "cluster.workers_per_node=1",
                  "models.actor.optimizer.schedule=constant"]
        self.troupe(*self.grpo(*lagged, "run.name=whole", "run.steps=4"))
        # the first three steps are of version 0, which goes to the server once
        self.assertEqual([s["step"] for s in self.slices("whole")
                          if s["name"] == "take weights"][:2], [0, 3])
        for steps in (2, 4):
            self.troupe(*self.grpo(*lagged, "run.name=parts",
                                   f"run.steps={steps}"))
        self.assertEqual(self.tokens("parts", 4), self.tokens("whole", 4))

    def arrows(self, run, name):
        """The arrows of the exported trace that have both ends."""
        events = json.loads(
            (self.run_folder(run) / "trace.json").read_text())["traceEvents"]
        ends = {ph: {e["id"] for e in events if e["ph"] == ph and e["name"] == name}
                for ph in "sf"}
        return ends["s"] & ends["f"]

    def test_sglang_generates_with_the_weights_of_each_version(self):
        self.troupe(*self.grpo(
            *ONE_DEVICE, "rollout.temperature=0.8", server=False), *[
                "rollout.engine=sglang",
                f"rollout.server_command={sys.executable} -B {SGLANG}"])
        lines = self.metrics("grpo")
        for step in (1, 2):
            self.assertLess(lines[step]["rollout/engine_logprob_gap"], 1e-4)
            # at the run's temperature, as training computes them
            self.assertLess(
                lines[step]["training/rollout_probs_diff_mean"], 1e-4)
            self.assertGreater(lines[step]["rollout/engine_update_gb"], 0)

    def test_each_device_has_a_server_of_its_own(self):
        self.troupe(*self.grpo(*TWO_DEVICES, "data.batch_size=4"))
        logs = sorted(self.run_folder("grpo").glob("servers/*/server.log"))
        self.assertEqual([log.parent.name for log in logs], ["0", "1"])
        self.assertLess(
            self.metrics("grpo")[2]["rollout/engine_logprob_gap"], 1e-4)

    def tensor_parallel(self, engine, stand_in):
        """A run whose calls are t2; generation has a server of both devices."""
        self.troupe(*self.grpo(
            f"plan={TENSOR}", "data.batch_size=4", "cluster.devices_per_node=2",
            "cluster.workers_per_node=2", f"run.name={engine}", server=False), *[
                f"rollout.engine={engine}",
                f"rollout.server_command={sys.executable} -B {stand_in}"])
        logs = list(self.run_folder(engine).glob("servers/*/server.log"))
        self.assertEqual([log.parent.name for log in logs], ["0"], engine)
        self.assertIn("2 tensor-parallel ranks", logs[0].read_text())
        lines = self.metrics(engine)
        size = (self.folder / "data/base/model.safetensors").stat().st_size
        for step in (1, 2):
            self.assertLess(lines[step]["rollout/engine_logprob_gap"], 1e-4)
            self.assertLess(
                lines[step]["training/rollout_probs_diff_mean"], 1e-4)
            # one whole model, once
            gigabytes = lines[step]["rollout/engine_update_gb"]
            self.assertLess(gigabytes * 1e9, size)
            self.assertGreater(gigabytes * 1e9, 0.8 * size)

    def test_a_plan_has_the_memory_of_its_servers(self):
        words = ["plan", "check", *self.grpo(*ONE_DEVICE)[1:], "--json"]
        servers = json.loads(self.troupe(*words).stdout)["server_bytes"]
        size = (self.folder / "data/base/model.safetensors").stat().st_size
        # its file, a copy while weights change, and the server's own weights
        self.assertAlmostEqual(servers, 3 * size, delta=0.2 * 3 * size)
        cache = "cluster.env={VLLM_CPU_KVCACHE_SPACE: '2'}"
        self.assertEqual(json.loads(self.troupe(*words, cache).stdout)
                         ["server_cache_bytes"], 2 << 30)
        own = json.loads(self.troupe(*words, "rollout.engine=own",
                                     "rollout.server_command=null").stdout)
        self.assertEqual(own["server_bytes"], 0)

    def test_tensor_parallel_devices_of_two_workers_fill_one_server(self):
        self.tensor_parallel("vllm", STAND_IN)
        self.tensor_parallel("sglang", SGLANG)

    def test_a_repeated_run_is_bit_identical_where_its_server_is(self):
        outcomes = []
        for name in ("a", "b"):
            self.troupe(*self.grpo(*ONE_DEVICE, f"run.name={name}"))
            outcomes.append(read_rows(self.run_folder(name) / "samples.jsonl"))
        self.assertEqual(*outcomes)

    def test_a_server_that_dies_is_started_again_and_the_run_goes_on(self):
        # the second as vLLM when its engine was killed: an error, its end later
        for name, fault in (("dies", "die_at:4"), ("errs", "error_then_die_at:4")):
            (self.folder / "count").unlink(missing_ok=True)
            self.faulty(fault, f"run.name={name}", code=0)
            lines = self.metrics(name)
            self.assertEqual(sum(line["rollout/engine_restarts"]
                                 for line in lines.values()), 1, fault)
            self.assertEqual(max(lines), 2)

    def test_a_tied_model_that_stores_its_head_too_is_served(self):
        shutil.copytree(self.folder / "data/base", self.folder / "tied")
        config = self.folder / "tied/config.json"
        config.write_text(json.dumps(
            json.loads(config.read_text()) | {"tie_word_embeddings": True}))
        self.troupe(*self.grpo(*ONE_DEVICE, "models.actor.path=tied"))
        self.assertLess(
            self.metrics("grpo")[2]["rollout/engine_logprob_gap"], 1e-4)

    def test_weights_that_a_server_does_not_take_end_the_run_by_name(self):
        for fault, words in (
                ("drop_tensor", ["/finish_weight_update", "missing"]),
                ("refuse_update", ["/update_weights", "told to refuse"]),
                ("old_weights", ["not those of the weights"]),
                ("wrong_version", ["'old'"])):
            # old_weights is found at step 2: the first update changes nothing
            done = self.faulty(fault, f"run.name={fault}",
                               "models.actor.optimizer.lr=1e-2")
            for word in words:
                self.assertIn(word, done.stderr + done.stdout, fault)

    def updates(self, name):
        """Bytes of each step's updates as shares of the model's file; the checks of
        log-probabilities are looked at too."""
        size = (self.folder / "data/base/model.safetensors").stat().st_size
        lines = self.metrics(name)
        for step, line in lines.items():
            self.assertLess(line["rollout/engine_logprob_gap"], 1e-4, step)
            self.assertLess(line["training/rollout_probs_diff_mean"], 1e-4, step)
        return {step: line["rollout/engine_update_gb"] * 1e9 / size
                for step, line in lines.items()}

    def tokens(self, name, step):
        rows = read_rows(self.run_folder(name) / "samples.jsonl")
        return sorted((row["sample"], row["sequence_ids"]) for row in rows
                      if row["step"] == step)

    def test_adapters_go_alone_to_a_server_that_has_the_rest(self):
        self.troupe(*self.grpo(*ONE_DEVICE, *LORA, "run.steps=3"))
        shares = self.updates("grpo")
        self.assertGreater(shares[1], 0.8)
        for step in (2, 3):
            self.assertGreater(shares[step], 0)
            self.assertLess(shares[step], 0.2)
        size = (self.folder / "data/base/model.safetensors").stat().st_size
        spans = {s["step"]: s["amount"] for s in self.slices("grpo")
                 if s["name"] == "take weights"}
        self.assertEqual(sorted(spans), [0, 1, 2])
        for step, amount in spans.items():
            self.assertAlmostEqual(amount / size, shares[step + 1], delta=1e-3)

    def test_adapters_give_the_tokens_that_whole_weights_give(self):
        self.troupe(*self.grpo(*ONE_DEVICE, "run.name=plain", "run.steps=1"))
        self.troupe(*self.grpo(*ONE_DEVICE, *LORA, "run.name=alone"))
        # new adapters add nothing
        self.assertEqual(self.tokens("alone", 1), self.tokens("plain", 1))
        # a new server gets everything at the version that the other got alone
        for steps in (1, 2):
            self.troupe(*self.grpo(*ONE_DEVICE, *LORA, "run.name=anew",
                                   f"run.steps={steps}"))
        self.assertGreater(self.updates("anew")[2], 0.8)
        self.assertLess(self.updates("alone")[2], 0.2)
        self.assertEqual(len(self.tokens("alone", 2)), 6)
        self.assertEqual(self.tokens("alone", 2), self.tokens("anew", 2))

    def test_a_tensor_parallel_server_gets_adapters_of_its_devices(self):
        self.troupe(*self.grpo(
            f"plan={TENSOR}", "data.batch_size=4", "cluster.devices_per_node=2",
            "cluster.workers_per_node=2", *LORA))
        shares = self.updates("grpo")
        self.assertGreater(shares[1], 0.8)
        self.assertLess(shares[2], 0.2)

    def test_a_server_that_is_started_again_gets_what_adapters_belong_to(self):
        # step 1 is a check and six responses
        self.faulty("die_at:10", *LORA, code=0)
        line = self.metrics("grpo")[2]
        self.assertEqual(line["rollout/engine_restarts"], 1)
        self.assertGreater(self.updates("grpo")[2], 0.8)

    def test_adapters_that_a_server_does_not_take_end_the_run_by_name(self):
        for fault, words in (("drop_adapter", "lora_B.weight: missing"),
                             ("old_adapters", "not those of the weights")):
            done = self.faulty(fault, f"run.name={fault}", *LORA)
            self.assertIn(words, done.stderr + done.stdout)
        # the first ones were taken
        self.assertEqual(max(self.metrics("old_adapters")), 1)

    def test_a_server_command_that_fails_is_named_with_what_it_said(self):
        done = self.troupe(
            *self.grpo(*ONE_DEVICE, "rollout.server_command=echo no engine; false"),
            code=1)
        self.assertIn("no engine", done.stderr + done.stdout)

    def test_what_servers_cannot_do_is_refused(self):
        for overrides, code, words in (
                (["rollout.stop=['x']"], 2, ["rollout.stop"]),
                (["rollout.temperature=0.7"], 2, ["rollout.temperature"]),
                (["rollout.server_command=null"], 2, ["rollout.server"]),
                (["models.actor.lora.rank=2", "rollout.engine=sglang"],
                 2, ["lora.rank", "rollout.engine=vllm"]),
                (["plan={calls: {actor_gen: {devices: 0-1, strategy: p2}}}"],
                 3, ["calls.actor_gen"])):
            done = self.troupe(
                *self.grpo("cluster.devices_per_node=2",
                           "cluster.workers_per_node=1", *overrides), code=code)
            for word in words:
                self.assertIn(word, done.stderr, overrides)
        done = self.troupe(*self.grpo("rollout.server_command=x", server=False),
                           code=2)
        self.assertIn("rollout.engine", done.stderr)

    @contextlib.contextmanager
    def running_server(self):
        """The address of a stand-in that runs already."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        address = f"http://127.0.0.1:{port}"

        def healthy():
            try:
                return urllib.request.urlopen(address + "/health", timeout=5)
            except OSError:
                return None

        with subprocess.Popen(
                [sys.executable, "-B", STAND_IN, "--model",
                 self.folder / "data/base", "--port", str(port)]) as server:
            try:
                until(healthy, "the server's answer").close()
                yield address
            finally:
                server.kill()

    def test_weights_over_tcp_give_the_tokens_that_memory_gives(self):
        tcp = "rollout.weights_over=tcp"
        self.troupe(*self.grpo(*ONE_DEVICE, "run.name=memory"))
        self.troupe(*self.grpo(*ONE_DEVICE, tcp, "run.name=started"))
        with self.running_server() as address:
            self.troupe(*self.grpo(*ONE_DEVICE, tcp, "run.name=named",
                                   "rollout.engine=vllm",
                                   f"rollout.servers=['{address}']", server=False))
        expected = read_rows(self.run_folder("memory") / "samples.jsonl")
        size = self.metrics("memory")[2]["rollout/engine_update_gb"]
        for name in ("started", "named"):
            self.assertEqual(read_rows(self.run_folder(name) / "samples.jsonl"),
                             expected, name)
            line = self.metrics(name)[2]
            self.assertEqual(line["rollout/engine_update_gb"], size)
            self.assertGreater(line["rollout/engine_update_gb_per_s"], 0)
            spans = [s for s in self.slices(name) if s["name"] == "take weights"]
            self.assertEqual([s["step"] for s in spans], [0, 1])
            for span in spans:
                self.assertAlmostEqual(span["amount"] / 1e9, size, delta=1e-3 * size)

    def test_ranks_of_a_tensor_parallel_server_read_over_tcp(self):
        self.troupe(*self.grpo(
            f"plan={TENSOR}", "data.batch_size=4", "cluster.devices_per_node=2",
            "cluster.workers_per_node=2", "rollout.weights_over=tcp"))
        self.assertLess(self.metrics("grpo")[2]["rollout/engine_logprob_gap"], 1e-4)

    def test_a_server_that_dies_reading_is_started_again(self):
        self.faulty("die_reading", "rollout.weights_over=tcp", code=0)
        lines = self.metrics("grpo")
        self.assertEqual(
            [lines[step]["rollout/engine_restarts"] for step in (1, 2)], [1, 0])

    def test_a_reading_that_fails_ends_the_run_by_name(self):
        for fault, over, words in (
                ("wrong_sum", "memory", ["/update_weights", "its checksum differs"]),
                ("wrong_sum", "tcp", ["/update_weights", "its checksum differs"]),
                ("wrong_token", "tcp", ["wrong token", "ended after 0 of"]),
                ("stop_reading", "tcp", ["told to stop reading"])):
            name = f"{fault}_{over}"
            done = self.faulty(fault, f"run.name={name}",
                               f"rollout.weights_over={over}")
            for word in words:
                self.assertIn(word, done.stderr + done.stdout + "".join(
                    log.read_text() for log in
                    (self.run_folder(name) / "logs").glob("*")), name)


if __name__ == "__main__":
    unittest.main()
