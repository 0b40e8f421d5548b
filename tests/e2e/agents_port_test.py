"""The master's port for agents: programs that others start take sessions there
and lead them, a pool of them or one that dies; strangers get nothing."""
import contextlib
import http.client
import json
import subprocess
import sys
import unittest

from agents_test import EXAMPLES, SMALL, AgentRuns
from slurm import free_ports
from support import until


class AgentsPort(AgentRuns):
    """Programs that others start take sessions at the master's port."""

    def begin(self, *overrides):
        """A run of the calculator that opens its sessions to others."""
        self.port, = free_ports(1)
        process = self.start(*self.arguments(
            "calculator", "run.name=outside", *overrides,
            "agents.command=outside", f"agents.port={self.port}"))
        process.wait_for_line("agents find the run at http://127.0.0.1:")
        self.token_file = self.run_folder("outside") / ".agents_token"
        self.token = self.token_file.read_text().strip()
        return process

    @contextlib.contextmanager
    def pool(self, programs):
        """examples/agents/pool.py, until the run closes its port."""
        with subprocess.Popen(
                [sys.executable, "-B", EXAMPLES / "agents/pool.py",
                 f"http://127.0.0.1:{self.port}/v1", self.token_file,
                 str(programs)], env=self.environment) as clients:
            try:
                yield
                clients.wait(timeout=60)
            finally:
                clients.kill()

    def post(self, path, key, body=None):
        """The status and the text of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port,
                                                timeout=60)
        with contextlib.closing(connection):
            connection.request("POST", "/v1" + path, json.dumps(body or {}),
                               {"Authorization": "Bearer " + key})
            reply = connection.getresponse()
            return reply.status, reply.read().decode()

    def announce(self, key, size):
        """The status for a body of this size, none of which is sent."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port,
                                                timeout=60)
        with contextlib.closing(connection):
            connection.putrequest("POST", "/v1/completions")
            connection.putheader("Authorization", "Bearer " + key)
            connection.putheader("Content-Length", str(size))
            connection.endheaders()
            return connection.getresponse().status

    def take(self):
        status, text = self.post("/sessions", self.token)
        self.assertEqual(status, 200, text)
        return json.loads(text)

    def test_a_pool_has_the_tokens_of_programs_that_we_start_I2(self):
        self.agent("calculator", "run.steps=2")
        process = self.begin("run.steps=2")
        with self.pool(3):
            self.assertEqual(process.finish().code, 0, process.err)
        self.assertEqual(self.said("outside"), self.said("calculator"))
        for line in self.metrics("outside").values():
            self.assertEqual((line["agents/failed"], line["agents/retries"]),
                             (0, 0))
            self.assertGreater(line["agents/turns"], 0)
            self.assertGreaterEqual(line["agents/wait_s"], 0)
        self.assertFalse(self.token_file.exists())

    def test_the_session_of_a_program_that_dies_is_led_by_another(self):
        self.agent("calculator", *SMALL)
        process = self.begin(*SMALL, "agents.timeout_s=5", "agents.retries=1")
        session = self.take()
        self.assertEqual(session["timeout_s"], 5)
        status, _ = self.post("/completions", session["key"],
                              {"prompt": "what nobody trains on"})
        self.assertEqual(status, 200)
        until(lambda: self.post("/completions", session["key"])[0] == 401,
              "the end of a session that nobody ended")
        with self.pool(2):
            self.assertEqual(process.finish().code, 0, process.err)
        line = self.metrics("outside")[1]
        self.assertEqual((line["agents/failed"], line["agents/retries"]),
                         (0, 1))
        self.assertEqual(self.said("outside"), self.said("calculator"))

    def test_strangers_get_a_sentence_and_no_session(self):
        process = self.begin(*SMALL, "agents.retries=0", "reward.on_error=zero")
        self.assertEqual(self.token_file.stat().st_mode & 0o777, 0o600)
        for key in ("", "guessed"):
            status, text = self.post("/sessions", key)
            self.assertEqual(status, 401)
            self.assertIn(".agents_token", text)
            status, text = self.post("/completions", key, {"prompt": "1"})
            self.assertEqual(status, 401)
            self.assertIn("key", json.loads(text)["error"]["message"])
        self.assertEqual(self.post("/completions", self.token)[0], 404)
        self.assertEqual(self.announce("guessed", 1 << 20), 401)
        mine, failing = self.take(), self.take()
        self.assertEqual(self.post("/sessions", mine["key"])[0], 401)
        self.assertEqual(self.announce(mine["key"], (64 << 20) + 1), 413)
        status, text = self.post("/sessions/end", mine["key"], {"reward": "1"})
        self.assertEqual(status, 400, text)
        status, text = self.post("/completions", mine["key"],
                                 {"prompt": mine["row"]["prompt"],
                                  "stream": True})
        self.assertTrue(text.endswith("data: [DONE]\n\n"), text)
        for key, body in ((mine["key"], {"reward": 0.25}),
                          (failing["key"], {"failed": True})):
            self.assertEqual(self.post("/sessions/end", key, body),
                             (200, "{}"))
        with self.pool(2):
            self.assertEqual(process.finish().code, 0, process.err)
        scores = {s["sample"]: s["score"] for s in self.samples("outside")}
        self.assertEqual(scores[mine["sample"]], 0.25)
        self.assertEqual(scores[failing["sample"]], 0)
        self.assertEqual(self.metrics("outside")[1]["agents/failed"], 1)

    def test_programs_that_we_start_reach_the_port_too(self):
        self.small(r"""
base = urllib.parse.urlsplit(os.environ["TROUPE_AGENTS_URL"])
status, text = ask("/completions", {"prompt": row["prompt"], "max_tokens": 4})
assert status == 200, text
status, text = ask("/sessions/end", {})
assert status == 404, text
print(json.dumps({"reward": 3}))
""", "agents.port={}".format(*free_ports(1)))
        self.assertEqual({sample["score"] for sample in
                          self.samples("calculator")}, {3})


if __name__ == "__main__":
    unittest.main()
