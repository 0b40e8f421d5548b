"""The planning commands for machines that are elsewhere: documents with the fields of
docs/interface.md, plans that parse back, mistakes in one line."""
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import tempfile
import unittest

from support import DEADLINE_S, SOURCE, TROUPE

SIZES = "examples/paper/7b.yaml"
WORKLOAD = "examples/paper/actor-a7c7-n8-g128.yaml"
TINY_SFT = "examples/tiny/sft.yaml"


OTHER_MACHINE = """name: profiled on Some Processor
devices_per_node: 8
device: {gemm_flops: 1e14, attn_flops: 1e14, mem_Bps: 1e12}
links: {intra_Bps: 1e11, inter_Bps: 1e10, host_Bps: 1e10, zero_Bps: 1e10}
"""


class PlanCommands(unittest.TestCase):
    def plan(self, *words, code=0):
        """Runs from the source folder, where examples/paper is."""
        done = subprocess.run([TROUPE, "plan", *map(str, words)], cwd=SOURCE,
                              capture_output=True, text=True,
                              timeout=DEADLINE_S)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def document(self, *words):
        return json.loads(self.plan(*words, "--json").stdout)

    def refused(self, code, *words):
        done = self.plan(*words, code=code)
        lines = [line for line in done.stderr.splitlines()
                 if line.startswith("error: ")]
        self.assertEqual(len(lines), 1, done.stderr)
        return lines[0]

    def test_a_simulation_has_its_fields_and_a_picture(self):
        run = self.document("simulate", WORKLOAD, "--hardware", "a100x8",
                            "--preset", "megatron")
        self.assertGreater(run["step_s"], 1)
        self.assertIn("actor_gen", run["critical_path"])
        self.assertEqual(len(run["devices"]), 8)
        for key in ("name", "call", "step", "start_s", "end_s", "devices"):
            self.assertIn(key, run["tasks"][0])
        self.assertEqual(run["tasks"][0]["devices"], list(range(8)))
        functions = [task["devices"] for task in run["tasks"]
                     if task["call"] == "advantages"]
        self.assertEqual(functions[0], [], "on the host")
        for key in ("device", "busy_s", "idle_s", "peak_bytes"):
            self.assertIn(key, run["devices"][0])
        memory = run["devices"][0]["memory"]
        self.assertEqual(max(size for _, size in memory),
                         run["devices"][0]["peak_bytes"])
        self.assertEqual(memory, sorted(memory))
        self.assertGreater(len({size for _, size in memory}), 2)
        text = self.plan("simulate", WORKLOAD, "--hardware", "a100x8",
                         "--preset", "megatron").stdout
        self.assertIn("0-7 |", text)
        self.assertIn("critical path: ", text)

    def test_short_responses_make_a_step_shorter(self):
        words = ("simulate", WORKLOAD, "--hardware", "a100x8", "--preset",
                 "megatron", "--response-tokens")
        self.assertLess(self.document(*words, "32:128")["step_s"],
                        self.document(*words, "128")["step_s"])

    def test_a_searched_plan_is_a_plan_file_no_worse_than_the_presets(self):
        found = self.document("search", WORKLOAD, "--hardware", "a100x8")
        self.assertTrue(found["proved"])
        self.assertLessEqual(found["lower_bound_s"], found["step_s"])
        self.assertIn("calls:", found["plan"])
        rows = self.document("compare", WORKLOAD, "--hardware",
                             "a100x8")["rows"]
        for row in rows:
            if row["fits"] and row["plan"] != "async":
                self.assertGreaterEqual(row["step_s"],
                                        found["step_s"] * (1 - 1e-9), row)
            if not row["fits"]:
                self.assertTrue(row["reason"], row)

    def test_a_proof_names_its_meshes(self):
        words = ("search", SIZES, "--hardware", "h100x8", "cluster.nodes=16",
                 "--published")
        found = self.document(*words)
        self.assertTrue(found["proved"] and found["packed_only"])
        self.assertIn("no plan of whole calls on packed meshes simulates "
                      "faster", found["note"])
        self.assertIn(found["note"], self.plan(*words).stderr)
        lagged = self.document("search", SIZES, "--hardware", "h100x8",
                               "--lag", "actor_gen=1")
        self.assertFalse(lagged["proved"])
        self.assertIn("not proved: ", lagged["note"])

    def test_a_search_says_what_each_staleness_buys(self):
        words = ("search", SIZES, "--hardware", "h100x8", "--iterations", 1500)
        found = self.document(*words, "algorithm.max_lag=2")
        rows = found["staleness"]
        self.assertEqual([row["steps"] for row in rows], [0, 1, 2])
        for row in rows:
            alone = ("--lag", f"actor_gen={row['steps']}") * (row["steps"] > 0)
            self.assertLessEqual(row["step_s"],
                                 self.document(*words, *alone)["step_s"])
            self.assertAlmostEqual(row["gain"],
                                   rows[0]["step_s"] / row["step_s"] - 1)
            self.assertAlmostEqual(row["steps_per_hour"], 3600 / row["step_s"])
        chosen, = (row for row in rows if row["chosen"])
        self.assertEqual((chosen["step_s"], chosen["plan"]),
                         (found["step_s"], found["plan"]))
        said = self.plan(*words, "algorithm.max_lag=2").stderr
        self.assertRegex(said, r"staleness +slices +s a step +steps an hour +tok/s +gain")
        self.assertRegex(said, r"(?m)^ *2 +[\d.]+ +[\d.]+ .*[+-][\d.]+ %")
        self.assertNotIn("-0.0 %", said)
        fresh = self.document(*words)
        self.assertEqual(len(fresh["staleness"]), 1)
        self.assertNotIn("lag:", fresh["plan"])
        self.assertEqual(fresh["step_s"], rows[0]["step_s"])

    def test_a_plan_that_lags_beyond_max_lag_is_refused(self):
        words = ("--hardware", "h100x8", "algorithm.max_lag=1")
        self.assertIn("--lag: expected at most 1, algorithm.max_lag (command "
                      "line), got actor_gen=2; try algorithm.max_lag=2",
                      self.refused(2, "search", SIZES, *words, "--lag",
                                   "actor_gen=2"))
        self.assertIn("plan: expected lags of at most 0, algorithm.max_lag "
                      "(command line), got async, whose actor_gen lags 1",
                      self.refused(2, "show", SIZES, *words,
                                   "algorithm.max_lag=0", "--preset", "async"))
        self.plan("show", SIZES, *words, "--preset", "async")

    def test_devices_that_lack_the_same_memory_are_one_error(self):
        done = self.plan("check", SIZES, "--hardware", "h100x8", "--preset",
                         "data_parallel", code=3)
        errors = done.stderr.splitlines()
        self.assertEqual(len(errors), 1, done.stderr)
        self.assertIn(" on devices 0-7, got ", errors[0])

    def test_a_comparison_fits_a_terminal_and_has_no_empty_columns(self):
        table = self.plan("compare", SIZES, "--hardware", "h100x8").stdout
        rows = table[:table.index("single: ")].splitlines()
        self.assertIn("peak GB", rows[0])
        self.assertNotIn("measured", rows[0])
        self.assertLessEqual(max(map(len, rows)), 100, table)
        self.assertNotIn("GiB", table)

    def test_a_comparison_shows_its_progress_on_a_terminal(self):
        words = [TROUPE, "plan", "compare", SIZES, "--hardware", "h100x8",
                 "--presets", "megatron,search"]
        reader, writer = pty.openpty()
        done = subprocess.run(words, cwd=SOURCE, stdout=subprocess.PIPE,
                              stderr=writer, text=True, timeout=DEADLINE_S)
        os.close(writer)
        said = os.read(reader, 10000).decode()
        os.close(reader)
        self.assertEqual(done.returncode, 0)
        self.assertIn("plan 1 of 2: megatron", said)
        self.assertIn("plan 2 of 2: search", said)
        self.assertTrue(said.endswith("\r\033[K"), "erased at the end")
        self.assertEqual(self.plan(*words[2:]).stderr, "")

    def test_without_hardware_a_plan_is_for_this_host(self):
        sizes = "examples/paper/70b.yaml"  # four models, in fp32
        self.assertRegex(self.refused(3, "search", sizes),
                         r"no plan fits: the smallest peak (found )?is "
                         r"[\d.]+ GB of [\d.]+ on device 0 in \w+; try [a-z._ ]+$")
        anywhere = self.plan("search", sizes, "--hardware", "laptop",
                             "cluster.devices_per_node=1").stdout
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(anywhere)
            file.flush()
            for command in ("check", "simulate"):
                self.assertIn(": expected at most",
                              self.refused(3, command, sizes, "--plan",
                                           file.name))

    def test_the_plan_of_the_settings_is_a_row_of_its_own(self):
        words = ("compare", WORKLOAD, "--hardware", "a100x8", "--presets",
                 "megatron")
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(self.plan("show", WORKLOAD, "--hardware", "a100x8",
                                 "--preset", "separation").stdout)
            file.flush()
            own, preset = self.document(*words, f"plan={file.name}")["rows"]
            self.assertIn(f"{file.name} (own)",
                          self.plan(*words, f"plan={file.name}").stdout)
        self.assertEqual((own["plan"], own["own"]), (file.name, True))
        self.assertEqual((preset["plan"], preset["own"]), ("megatron", False))
        named = self.document(*words, "plan=separation")["rows"]
        self.assertEqual([(row["plan"], row["own"]) for row in named],
                         [("separation", True), ("megatron", False)])
        self.assertEqual(named[0]["step_s"], own["step_s"])
        self.assertIn("plan: expected auto, a preset", self.refused(
            2, *words, "plan=separatio"))

    def test_a_sharded_plan_fits_any_number_of_nodes(self):
        for nodes in (1, 3, 16):
            checked = self.document("check", SIZES, "--hardware", "h100x8",
                                    "--preset", "deepspeed_chat",
                                    f"cluster.nodes={nodes}")
            self.assertEqual(len(checked["devices"]), 8 * nodes)

    def test_the_page_of_the_field_shows_the_presets(self):
        page = (SOURCE / "docs/field_as_plans.md").read_text()
        plans = re.findall(r"^## `(\w+)`$.*?^```yaml$\n(.*?)^```$", page,
                           re.M | re.S)
        self.assertEqual(len(plans), 10)
        for name, plan in plans:
            shown = self.plan("show", SIZES, "--hardware", "h100x8",
                              "--preset", name).stdout
            self.assertEqual(plan, shown, name)

    def test_settings_that_contradict_a_plan_files_cluster_are_refused(self):
        shown = self.plan("show", SIZES, "--hardware", "h100x8", "--preset",
                          "separation").stdout
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(shown)
            file.flush()
            words = (SIZES, "--hardware", "h100x8", f"plan={file.name}")
            for command in ("show", "check", "simulate", "search", "compare"):
                self.assertEqual(
                    self.refused(3, command, *words, "cluster.devices_per_node=4"),
                    "error: command line: cluster.devices_per_node: expected 8 "
                    f"as in plan {file.name}, got 4; try "
                    "cluster.devices_per_node=8 or another plan")
            dealt = self.plan("show", *words, "cluster.workers_per_node=8")
            self.assertIn("workers_per_node: 8", dealt.stdout)

    def test_an_interrupted_search_prints_its_best(self):
        child = subprocess.Popen(
            [TROUPE, "plan", "search", SIZES, "--hardware", "h100x8",
             "cluster.nodes=2", "--method", "mcmc", "--seconds", "60"],
            cwd=SOURCE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True)
        with self.assertRaises(subprocess.TimeoutExpired):
            child.communicate(timeout=3)
        child.send_signal(signal.SIGINT)
        out, errors = child.communicate(timeout=30)
        self.assertEqual(child.returncode, 0, errors)
        self.assertIn("calls:", out)
        self.assertIn("interrupted", errors)
        self.assertIn("lower bound", errors)

    def test_the_suite_is_the_same_from_any_working_directory(self):
        words = [TROUPE, "plan", "compare", "--suite", SOURCE / "examples/paper",
                 "--presets", "megatron", "--json"]
        with tempfile.TemporaryDirectory() as elsewhere:
            done = subprocess.run(words, cwd=elsewhere, capture_output=True,
                                  text=True, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), self.document(*words[2:-1]))

    def test_the_suite_has_published_numbers_and_ratios_beside_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            suite = pathlib.Path(folder)
            for name in ("actor-a7c7-n8-g128.yaml", "measured.json", "models"):
                (suite / name).symlink_to(SOURCE / "examples/paper" / name)
            words = ("compare", "--suite", suite, "--presets",
                     "megatron,search")
            heuristic, searched = self.document(*words)["rows"]
            table = self.plan(*words).stdout
        measured = json.loads((SOURCE / "examples/paper/measured.json")
                              .read_text())["seconds"]["actor-a7c7-n8-g128"]
        self.assertEqual(heuristic["measured_s"], measured["megatron"])
        self.assertAlmostEqual(heuristic["measured_pflops"], 0.6837, 3)
        self.assertAlmostEqual(searched["measured_pflops"], 0.9172, 3)
        self.assertAlmostEqual(heuristic["over_search"],
                               heuristic["step_s"] / searched["step_s"])
        self.assertAlmostEqual(heuristic["measured_over_search"],
                               measured["megatron"] / measured["search"])
        self.assertEqual(searched["over_search"], 1)
        for title in ("measured PFLOP/s", "/ search", "measured / search",
                      "mean absolute error of megatron/search"):
            self.assertIn(title, table)

    def test_an_evaluation_is_in_the_seconds_and_in_the_memory(self):
        for preset in ("megatron", "deepspeed_chat"):  # the actor under z3
            words = (WORKLOAD, "--hardware", "h200x8", "--preset", preset,
                     "eval.data=rows.jsonl", "eval.max_rows=64")
            run = self.document("simulate", *words)
            self.assertGreater(run["evaluation_s"], 0)
            self.assertIn("an evaluation between steps ",
                          self.plan("simulate", *words).stdout)
            self.assertTrue(self.document("check", *words)["ok"])

    def test_a_profile_of_another_machine_is_a_warning(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(OTHER_MACHINE)
            file.flush()
            done = self.plan("simulate", WORKLOAD, "--preset", "megatron",
                             "--hardware", file.name)
        self.assertIn("was profiled on Some Processor, this machine is not",
                      done.stderr)

    def test_nodes_of_two_kinds_are_planned_together(self):
        hardware = ("--hardware", "examples/clusters/h100_a100.yaml")
        found = self.document("search", SIZES, *hardware)
        self.assertEqual(found["basis"]["nodes"], ["h100x8", "a100", "a100"])
        self.assertFalse(found["proved"])
        self.assertIn("not proved", found["note"])
        self.assertLessEqual(found["lower_bound_s"], found["step_s"])
        rows = self.document("compare", SIZES, *hardware)["rows"]
        self.assertLess(found["step_s"], min(
            row["step_s"] for row in rows if row["fits"]
            and row["plan"] != "search"))
        a100 = self.document("search", SIZES, "--hardware",
                             "examples/clusters/a100.yaml", "cluster.nodes=2")
        self.assertLess(found["step_s"], a100["step_s"])
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(found["plan"])
            file.flush()
            words = (SIZES, *hardware, "--plan", file.name)
            run = self.document("simulate", *words)
            devices = self.document("check", *words)["devices"]
            self.assertIn("0-7 (h100x8)", self.plan("simulate", *words).stdout)
        self.assertAlmostEqual(run["step_s"], found["step_s"])
        for listed in (run["devices"], devices):
            self.assertEqual([device["kind"] for device in listed],
                             8 * ["h100x8"] + 16 * ["a100"])
        advice = self.plan("advise", SIZES, *hardware).stdout
        self.assertIn("24 devices of 1 x h100x8 + 2 x a100", advice)

    def test_nodes_that_contradict_the_settings_are_refused(self):
        words = (SIZES, "--hardware", "examples/clusters/h100_a100.yaml")
        self.assertIn("command line: cluster.nodes: expected 3, the nodes of "
                      "examples/clusters/h100_a100.yaml, got 2; try "
                      "cluster.nodes=3", self.refused(
                          2, "simulate", *words, "cluster.nodes=2"))
        self.assertIn("search: exact takes nodes as alike", self.refused(
            3, "search", *words, "--method", "exact"))
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write("nodes:\n  - {kind: h100x8}\n  - {kind: a100x88}\n")
            file.flush()
            self.assertIn(f"{file.name}:3: nodes[1].kind: expected one of ",
                          self.refused(2, "simulate", SIZES, "--hardware",
                                       file.name))

    def test_a_plan_that_cannot_run_lists_every_reason(self):
        words = ("check", WORKLOAD, "cluster.devices_per_node=8")
        lacking = self.plan(*words, "plan={calls: {actor_gen: {devices: 0-7, "
                            "strategy: d8}}}", "--json", code=3)
        errors = json.loads(lacking.stdout)["errors"]
        self.assertIn("calls.rew_inf", [error["path"] for error in errors])
        self.assertGreater(len(errors), 3)
        self.assertEqual(lacking.stderr.splitlines(), [
            f"error: command line: plan.{error['path']}: {error['message']}"
            for error in errors])
        wrong = "plan={calls: {actr_gen: {devices: 0-7, strategy: d8}}}"
        done = self.plan(*words, wrong, code=2)
        self.assertIn("try 'actor_gen'", done.stdout)
        self.assertEqual(done.stdout, done.stderr, "as results and as errors")
        self.assertIn("try 'actor_gen'", self.refused(
            2, "simulate", *words[1:], wrong, "--hardware", "h100x8"))

    def test_a_plan_that_cannot_be_made_is_a_document_too(self):
        for words, why in (
                ((SIZES, "--preset", "openrlhf", "cluster.devices_per_node=2"),
                 "expected at least 5 devices for preset openrlhf"),
                (("examples/paper/70b.yaml",), "no plan fits: the smallest "
                                               "peak is ")):
            done = self.plan("check", *words, "--hardware", "h100x8", "--json",
                             code=3)
            found = json.loads(done.stdout)
            self.assertEqual((found["ok"], found["devices"]), (False, []))
            self.assertEqual([error["path"] for error in found["errors"]],
                             ["plan"])
            self.assertIn(why, found["errors"][0]["message"])
            self.assertEqual(done.stderr, "error: "
                             f"{found['errors'][0]['message']}\n")

    def test_mistakes_are_one_line(self):
        self.assertIn("--measure: expected CONFIG, whose plans run here, got "
                      "--suite", self.refused(2, "compare", "--suite",
                                              "examples/paper", "--measure",
                                              "1"))
        self.assertIn("--response-tokens: expected a workflow that generates "
                      "answers, got sft; try data.max_tokens=TOKENS", self.refused(
            2, "simulate", TINY_SFT, "--hardware", "h100x8",
            "models.actor.path=examples/paper/models/7b", "--response-tokens",
            "64"))
        self.assertIn("try 'h100x8'", self.refused(
            2, "simulate", SIZES, "--hardware", "h100"))
        self.assertIn("try 'exact'", self.refused(
            2, "search", SIZES, "--hardware", "h100x8", "--method", "exat"))
        self.assertIn("--response-tokens: expected tokens as MEAN", self.refused(
            2, "simulate", SIZES, "--hardware", "h100x8", "--response-tokens",
            "9:3"))
        self.assertRegex(
            self.refused(2, "search", SIZES, "--hardware", "h100x8", "--lag",
                         "actor_gem=1"),
            r"--lag: expected a call of ppo that reads trained weights "
            r"\(actor_gen, critic_inf\), got 'actor_gem'; try 'actor_gen'$")
        self.plan("search", "--lag", "actor_gen=1", SIZES, "--quiet",
                  "--hardware", "h100x8")
        for folder in ("tests", "no"):
            self.assertIn("--suite: expected a folder of settings files that "
                          f"name cluster.nodes, got '{folder}'", self.refused(
                              2, "compare", "--suite", folder))
        self.assertIn("--svg: expected a file in a writable", self.refused(
            2, "simulate", SIZES, "--hardware", "h100x8", "--svg", "no/x.svg"))
        self.assertIn("'no/plan.yaml', which is no file; try", self.refused(
            2, "check", SIZES, "--plan", "no/plan.yaml"))
        self.assertRegex(
            self.refused(3, "search", "examples/paper/70b.yaml", "--hardware",
                         "h100x8"),
            r"no plan fits: the smallest peak is [0-9.]+ GB of 73\.6 on "
            r"device 0 in actor_train; try \d+ devices$")
        self.assertRegex(
            self.refused(2, "compare", SIZES, "--presets", "megatrom"),
            "^error: command line: --presets: expected .*; try 'megatron'$")
        self.assertIn("command line: plan: expected at least 5 devices "
                      "for preset openrlhf", self.refused(
            3, "show", SIZES, "--preset", "openrlhf", "--hardware", "h100x8",
            "cluster.devices_per_node=2"))


if __name__ == "__main__":
    unittest.main()
