"""Rewards without a model: rules, a Python file, a program; what they get
wrong; and that the responses they see are those of the run."""
import http.server
import json
import re
import threading
import unittest

from support import Case, TINY, read_rows

PYTHON = """
def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    print("noise that is no answer")
    return {"score": solution_str.count("kind"), "words": len(solution_str.split()),
            "truth": float(ground_truth == extra_info["row"]), "note": "text"}
"""
CRASHING = """
import os, time
def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    if ground_truth == "crash":
        os._exit(9)
    if ground_truth == "sleep":
        time.sleep(1000)
    if ground_truth == "raise":
        raise KeyError("no such thing")
    if ground_truth == "text":
        return "very good"
    return 1.5
"""


CHUNKS = """cluster: {nodes: 1, devices_per_node: 2, workers_per_node: 2}
calls:
  actor_gen: {devices: 0, strategy: d1, chunks: 4}
  rewards: {devices: host, chunks: 4}
  ref_inf: {devices: 1, strategy: d1, chunks: 4}
  critic_inf: {devices: 1, strategy: d1}
  advantages: {devices: host}
  actor_train: {devices: 0, strategy: d1}
  critic_train: {devices: 1, strategy: d1}
"""


class Reward(Case):
    def rewarded(self, kind, *overrides):
        """Arguments of a small PPO run without a reward model, one device."""
        return self.ppo("models.reward=null", f"reward.kind={kind}",
                        "plan=single", "cluster.devices_per_node=1",
                        "cluster.workers_per_node=1", "run.steps=2",
                        "data.train=rows.jsonl", *overrides)

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def write_rows(self, **columns):
        """64 prompts; a column is a list that repeats, or a value."""
        lines = []
        for i, row in enumerate(read_rows(self.folder / "data/prompts.jsonl")[:64]):
            more = {key: value[i % len(value)] if isinstance(value, list)
                    else value for key, value in columns.items()}
            lines.append(json.dumps({"prompt": row["prompt"], **more}) + "\n")
        self.write("rows.jsonl", "".join(lines))

    def samples(self, name="ppo"):
        return read_rows(self.run_folder(name) / "samples.jsonl")

    def refused(self, arguments, code, *words):
        done = self.troupe(*arguments, code=code)
        errors = [line for line in done.stderr.splitlines()
                  if line.startswith("error: ")]
        self.assertEqual(len(errors), 1, done.stderr)
        for word in words:
            self.assertIn(word, errors[0])

    # -- what scores ---------------------------------------------------------

    def test_a_rule_scores_what_the_run_recorded(self):
        self.write_rows()
        self.troupe(*self.rewarded(
            "rule", "reward.weights={'regex:kind': 2, 'length:6': 0.5}"))
        for sample in self.samples():
            want = 2 * ("kind" in sample["response"])
            over = max(0, sum(sample["loss_mask"]) - 6) / 6
            self.assertAlmostEqual(sample["score"],
                                   want + 0.5 * max(0, 1 - over), places=5)
        line = self.metrics("ppo")[2]
        for name in ("reward/regex:kind/mean", "reward/length:6/mean",
                     "timing_s/reward", "critic/score/mean"):
            self.assertIn(name, line)
        self.assertEqual(line["reward/errors"], 0)
        self.assertNotIn("reward/timeouts/mean", line)

    def test_a_python_function_sees_the_row_of_each_answer(self):
        # truth and extra_info are of the same row where `truth` is 1
        rows = [str(i) for i in range(64)]
        self.write_rows(ground_truth=rows,
                        extra_info=[{"row": row} for row in rows])
        file = self.write("score.py", PYTHON)
        self.troupe(*self.rewarded("python", f"reward.file={file}",
                                   "rollout.n=2", "reward.workers=2"))
        for sample in self.samples():
            self.assertEqual(sample["score"], sample["response"].count("kind"))
        line = self.metrics("ppo")[2]
        self.assertEqual(line["reward/truth/mean"], 1)
        self.assertGreater(line["reward/words/mean"], 0)
        self.assertNotIn("reward/note/mean", line)

    def test_held_out_responses_are_scored_by_their_own_rows(self):
        self.write_rows(ground_truth="trained")
        (self.folder / "rows.jsonl").rename(self.folder / "train.jsonl")
        self.write_rows(ground_truth="held out")
        file = self.write("score.py", """
def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return 7.0 if ground_truth == "held out" else 1.0
""")
        self.troupe(*self.rewarded(
            "python", f"reward.file={file}", "data.train=train.jsonl",
            "eval.data=rows.jsonl", "eval.every=1", "eval.max_rows=5"))
        for step, line in self.metrics("ppo").items():
            self.assertEqual(line["val-core/rows/reward/mean@1"], 7)
            if step > 0:
                self.assertEqual(line["critic/score/mean"], 1)
                self.assertEqual(line["reward/errors"], 0)

    def test_chunks_of_a_step_are_scored_alike(self):
        self.write_rows(ground_truth=[str(i) for i in range(64)])
        file = self.write("score.py", """
def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return int(ground_truth) + solution_str.count("a") / 8
""")
        self.write("chunks.yaml", CHUNKS)
        self.write("whole.yaml", CHUNKS.replace(", chunks: 4", ""))
        found = {}
        for plan in ("chunks", "whole"):
            self.troupe(*self.rewarded(
                "python", f"reward.file={file}", f"run.name={plan}",
                f"plan={plan}.yaml", "cluster.devices_per_node=2",
                "cluster.workers_per_node=2"))
            found[plan] = sorted((s["step"], s["sample"], s["score"])
                                 for s in self.samples(plan))
        self.assertEqual(found["chunks"], found["whole"])
        self.assertEqual(len(found["whole"]), 2 * 16)

    def test_first_responses_are_scored_while_the_last_are_generated(self):
        # a line takes a while, and no response is requested twice
        self.write_rows(ground_truth=[str(i) for i in range(64)])
        program = self.write("slow.py", """
import json, sys, time
for line in sys.stdin:
    row = json.loads(line)
    time.sleep(0.02)
    print(json.dumps({"id": row["id"], "score": len(row["response"])}), flush=True)
    print(row["ground_truth"], row["response"], file=sys.stderr, flush=True)
""")
        self.troupe(*self.rewarded(
            "process", f"reward.command=python3 {program}", "reward.workers=2",
            "rollout.max_new_tokens=64", "rollout.max_sequences=4"))
        slices = self.slices("ppo")
        for step in range(2):
            made, = [s for s in slices if s["name"] == "actor_gen"
                     and s["step"] == step]
            scored = [s for s in slices if s["name"] == "rewards"
                      and s["step"] == step]
            self.assertEqual({s["track"] for s in scored}, {"scorer 0"})
            self.assertLess(min(s["begin"] for s in scored), made["end"])
            self.assertGreater(max(s["end"] for s in scored), made["end"])
        lengths = {len(sample["sequence_ids"]) for sample in self.samples()}
        self.assertGreater(len(lengths), 4)
        for sample in self.samples():
            self.assertEqual(sample["score"], len(sample["response"]))
        asked = "".join(file.read_text() for file in
                        self.run_folder("ppo").glob("logs/reward.command_*.log"))
        asked = asked.splitlines()
        self.assertEqual(len(asked), len(set(asked)))

    def test_a_program_may_reply_out_of_order(self):
        self.write_rows(ground_truth="x", data_source="mine")
        program = self.write("program.py", """
import json, sys
waiting = []
for line in sys.stdin:
    row = json.loads(line)
    assert row["ground_truth"] == "x" and row["data_source"] == "mine", row
    waiting.append({"id": row["id"], "score": len(row["response"])})
    if len(waiting) == 2:
        for answer in reversed(waiting):
            print(json.dumps(answer), flush=True)
        waiting = []
""")
        self.troupe(*self.rewarded("process", "reward.workers=1",
                                   f"reward.command=python3 {program}"))
        for sample in self.samples():
            self.assertEqual(sample["score"], len(sample["response"]))

    def test_a_server_scores_over_http(self):
        class Answer(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            seen = 0

            def do_POST(self):
                row = json.loads(self.rfile.read(
                    int(self.headers["Content-Length"])))
                Answer.seen += 1
                busy = Answer.seen % 5 == 1
                body = json.dumps({"id": row["id"],
                                   "score": len(row["response"])}).encode()
                self.send_response(503 if busy else 200)
                self.send_header("Content-Length", len(body))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass

        self.write_rows()
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
            threading.Thread(target=server.serve_forever).start()
            url = f"http://127.0.0.1:{server.server_address[1]}/score"
            try:
                self.troupe(*self.rewarded("http", f"reward.url={url}"))
            finally:
                server.shutdown()
        for sample in self.samples():
            self.assertEqual(sample["score"], len(sample["response"]))
        self.assertEqual(self.metrics("ppo")[2]["reward/errors"], 0)

    def test_what_a_server_answered_instead_is_shown_with_the_row(self):
        class Wrong(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                row = json.loads(self.rfile.read(
                    int(self.headers["Content-Length"])))
                truth = row["ground_truth"]
                body = json.dumps({"id": row["id"], "score": 1.5})
                if truth == "page":
                    body = "<html>Please log in</html>"
                elif truth == "nan":
                    body = body.replace("1.5", "NaN")
                elif truth == "drop":
                    self.close_connection = True
                    return
                self.send_response(200)
                self.send_header("Content-Length", len(body))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *arguments):
                pass

        self.write_rows(ground_truth=["right", "page", "nan", "drop"])
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Wrong) as server:
            threading.Thread(target=server.serve_forever).start()
            url = f"http://127.0.0.1:{server.server_address[1]}/score"
            try:
                self.troupe(*self.rewarded(
                    "http", f"reward.url={url}", "reward.on_error=zero",
                    # the last of five tries starts after half of it
                    "reward.timeout_s=3", "run.steps=1"))
            finally:
                server.shutdown()
        log = "".join(file.read_text() for file in
                      self.run_folder("ppo").glob("logs/worker_*.log"))
        for kind, words in ((2, "id asked for: <html>Please log in"),
                            (3, 'expected score to be a number, got "NaN"'),
                            (0, "server dropped the connection")):
            rows = re.findall(r"rows\.jsonl:(\d+) .*" + words, log)
            self.assertEqual({int(row) % 4 for row in rows}, {kind}, log)
        self.assertNotIn("not asked for", log)
        line = self.metrics("ppo")[1]
        self.assertEqual((line["reward/errors"], line["reward/timeouts"]),
                         ([s["score"] for s in self.samples()].count(0), 0))

    def test_rewards_are_the_same_on_any_plan_I1(self):
        self.write_rows()
        rule = ["reward.rule=regex:kind", "run.steps=2"]
        self.troupe(*self.rewarded("rule", *rule))
        self.troupe(*self.rewarded(
            "rule", *rule, "run.name=wide", "plan=data_parallel",
            "cluster.devices_per_node=2", "cluster.workers_per_node=2"))
        one, two = ([(s["response"], s["score"]) for s in self.samples(name)]
                    for name in ("ppo", "wide"))
        self.assertEqual(one, two)

    # -- what goes wrong -----------------------------------------------------

    def crashing(self, truth, *overrides):
        self.write_rows(ground_truth=["fine", "fine", "fine", truth])
        file = self.write("score.py", CRASHING)
        return self.rewarded("python", f"reward.file={file}",
                             "data.shuffle=false", "reward.workers=2",
                             "reward.timeout_s=2", "run.steps=1", *overrides)

    def test_crashes_and_timeouts_are_counted_and_shown_with_the_row(self):
        for truth, errors, timeouts, words in (
                ("crash", 4, 0, "exit code 9"), ("sleep", 0, 4,
                 r"no answer within [\d.]+ s \(reward\.timeout_s\)"),
                ("raise", 4, 0, "KeyError"), ("text", 4, 0, "very good")):
            name = f"run.name={truth}"
            self.troupe(*self.crashing(truth, "reward.on_error=zero", name))
            line = self.metrics(truth)[1]
            self.assertEqual((line["reward/errors"], line["reward/timeouts"]),
                             (errors, timeouts), truth)
            self.assertEqual(line["reward/score/mean"], 1.5)
            log = "".join(file.read_text() for file in
                          self.run_folder(truth).glob("logs/worker_*.log"))
            self.assertRegex(log, r"(?m)^[\d-]{10} [\d:.]{12} warning models: "
                                  r".*rows\.jsonl:4 .*" + words)
            scores = [sample["score"] for sample in self.samples(truth)]
            self.assertEqual(scores, [1.5, 1.5, 1.5, 0] * 4)

    def test_skipped_samples_are_left_out_of_training(self):
        self.troupe(*self.crashing("raise", "reward.on_error=skip"))
        line = self.metrics("ppo")[1]
        self.assertEqual(line["critic/score/min"], 1.5)
        self.assertEqual([sample["score"] for sample in self.samples()],
                         [1.5, 1.5, 1.5, None] * 4)

    def test_a_step_whose_samples_are_all_skipped_has_no_numbers_of_them(self):
        self.write_rows()
        self.write("reward.py", "def compute_score(*row):\n    raise KeyError\n")
        self.troupe(*self.rewarded("python", "reward.file=reward.py",
                                   "reward.on_error=skip", "run.steps=1"))
        line = self.metrics("ppo")[1]
        self.assertEqual(line["reward/errors"], 16)
        self.assertEqual({name: value for name, value in line.items()
                          if value is None or "response_length" in name}, {})

    def test_a_failed_score_ends_the_run_where_it_should(self):
        self.refused(self.crashing("raise"), 2, "rows.jsonl:4", "KeyError")
        self.refused(self.crashing("sleep", "run.name=b"), 1, "rows.jsonl:4",
                     "no answer within 2 s (reward.timeout_s)")

    def test_an_error_names_the_line_of_the_file_and_where_its_traceback_is(self):
        self.write_rows()
        self.write("score.py", "import json\n\ndef half(n):\n    return n / 0\n"
                   "\ndef compute_score(*row):\n    return half(1)\n")
        self.refused(self.rewarded("python", "reward.file=score.py",
                                   "reward.workers=1"), 2,
                     "score.py:4: ZeroDivisionError: division by zero; its "
                     "traceback is in logs/reward.file_0.log of the run")
        self.write("score.py", "import json\n\ndef compute_score(*row):\n"
                   "    return json.loads('{')\n")
        self.refused(self.rewarded("python", "reward.file=score.py",
                                   "run.name=b"),
                     2, "score.py:4: JSONDecodeError: ")
        for name, text, words in (
                ("c", "def compute_score(answer):\n    return 1\n",
                 "score.py:1: TypeError: compute_score() takes 1 positional"),
                ("d", "\ndef compute_score(*row):\n    return float('nan')\n",
                 "score.py:2: ValueError: expected the score to be a number, "
                 "got nan")):
            self.write("score.py", text)
            self.refused(self.rewarded("python", "reward.file=score.py",
                                       f"run.name={name}"), 2, words)

    def test_what_cannot_score_is_refused(self):
        self.write_rows()
        # those that begin a run have a folder each
        self.refused(self.rewarded("rule", "reward.rule=gsm8k", "run.name=b"),
                     2, "rows.jsonl:", "ground_truth", "data.fields")
        self.refused(self.rewarded("python"), 2, "reward.file")
        self.refused(self.rewarded("python", "reward.file=none.py"), 2,
                     "reward.file", "none.py")
        self.refused(self.rewarded("process"), 2, "reward.command")
        self.refused(self.rewarded("http"), 2, "reward.url")
        self.refused(self.rewarded("http", "reward.url=ftp://a/b"), 2,
                     "reward.url", "http://HOST", "ftp://a/b")
        self.refused(self.rewarded("http", "reward.url=http://127.0.0.1:1/r",
                                   "reward.timeout_s=0.5"),
                     2, "reward.url", "refused")
        self.refused(self.rewarded("rule", "reward.rule=gsm9k"), 2, "gsm8k")
        self.refused(self.rewarded("rule", "reward.rule=regex:("), 2,
                     "reward.rule", "regular expression")

    def test_a_program_that_dies_at_its_start_is_refused(self):
        self.write_rows()
        self.refused(self.rewarded("process", "reward.command=nowhere --x",
                                   "reward.on_error=zero"),
                     2, "reward.command", "exit code 127", "nowhere")
        file = self.write("score.py", "import no_such_module\n")
        self.refused(self.rewarded("python", f"reward.file={file}",
                                   "run.name=b"),
                     2, "reward.file", "No module named 'no_such_module'")
        file = self.write("score.py", "def other(): pass\n")
        self.refused(self.rewarded("python", f"reward.file={file}",
                                   "run.name=c"),
                     2, "ended with exit code 1 before it answered anything: ",
                     "has no function compute_score (it has other); "
                     "try reward.function")


if __name__ == "__main__":
    unittest.main()
