"""What `troupe k8s` prints, run by a kubelet of the test's own: the containers of
the manifest as processes of this machine, with its arguments, secret and probes.
No cluster is needed; what the API server checks is in K8sManifest's unit tests."""
import os
import signal
import socket
import subprocess
import unittest

from support import BUILD, Case, read_rows, tree_bytes, until, without_times

try:
    import yaml
    MISSING = ""
except ImportError:
    MISSING = "no python3-yaml on this machine"
    print(f"skipped: {MISSING}")
STEPS = 40
MASTER = "job-master-0-0.job"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Pod:
    """A pod of one container: process 1 gets the signals, as in Kubernetes."""

    def __init__(self, case, job, index=0):
        spec = job["template"]["spec"]["template"]["spec"]
        self.case, self.container = case, spec["containers"][0]
        self.grace_s = spec["terminationGracePeriodSeconds"]
        environment = {**case.environment, "PATH": f"{BUILD}:/usr/bin:/bin",
                       "JOB_COMPLETION_INDEX": str(index)}
        for one in self.container["env"]:
            if "valueFrom" in one:
                assert one["valueFrom"] == {
                    "fieldRef": {"fieldPath": "status.podIP"}}, one
            environment[one["name"]] = one.get("value", "127.0.0.1")
        words = [case.placed(word, index, environment)
                 for word in self.container["command"] + self.container["args"]]
        self.log = case.folder / f"{job['name']}{index}.log"
        with open(self.log, "a", encoding="utf-8") as log:
            self.popen = subprocess.Popen(
                words, env=environment, cwd=self.container["workingDir"],
                stdout=log, stderr=log, start_new_session=True)

    def terminate(self):
        self.popen.send_signal(signal.SIGTERM)

    def finish(self):
        return self.popen.wait(self.grace_s)


@unittest.skipIf(MISSING, MISSING)
class Kubernetes(Case):
    def words(self, *overrides):
        return self.ppo("run.name=job", f"run.steps={STEPS}", "run.save_every=2",
                        "cluster.nodes=2", "cluster.devices_per_node=1",
                        "cluster.workers_per_node=1", "plan=data_parallel",
                        *overrides)

    def apply(self, *overrides):
        """Starts what the manifest says; the master's pod and the workers'."""
        done = self.troupe("k8s", "--folder", self.folder,
                           *self.words(*overrides)[1:])
        secret, job_set = yaml.safe_load_all(done.stdout)
        self.assertIn("token and key", done.stderr)
        self.assertEqual([secret["kind"], job_set["kind"]], ["Secret", "JobSet"])
        self.assertEqual(job_set["spec"]["network"]["subdomain"], "job")
        (self.folder / "mounted").mkdir()
        for name, text in secret["stringData"].items():
            (self.folder / "mounted" / name).write_text(text)
        self.port = free_port()
        master, workers = job_set["spec"]["replicatedJobs"]
        self.master = Pod(self, master)
        self.pods = [Pod(self, workers, index) for index in
                     range(workers["template"]["spec"]["completions"])]

    def placed(self, word, index, environment):
        """A word of a container as it is here: one machine has all pods."""
        for name in ("POD_IP",):
            if name in environment:
                word = word.replace(f"$({name})", environment[name])
        # a killed test leaves no loop
        word = word.replace("while [", f"while kill -0 {os.getpid()} && [")
        return (word.replace(MASTER, "127.0.0.1")
                .replace("7077-7077", f"{self.port}-{self.port}")
                .replace("7077", str(self.port))
                .replace("/run/troupe", str(self.folder / "mounted"))
                .replace("/tmp/ending", str(self.folder / f"ending{index}")))

    def end_pods(self):
        """What the JobSet controller does once its master is done."""
        for pod in self.pods:
            pod.terminate()
        for pod in self.pods:
            pod.finish()

    def said(self):
        return "".join(pod.log.read_text() for pod in [self.master, *self.pods])

    def probe(self, container):
        words = container["startupProbe"]["exec"]["command"]
        return subprocess.run(words, cwd=container["workingDir"]).returncode == 0

    def test_a_killed_worker_is_started_again_by_its_pod_I8(self):
        self.apply()
        self.wait_for_step("job", 3)
        self.wait_for_checkpoint("job")
        self.assertTrue(self.probe(self.master.container))
        victim = [pid for pid, words in self.processes().items()
                  if " --number 1 " in words and words.startswith("troupe")][0]
        os.kill(victim, signal.SIGKILL)
        self.assertEqual(self.master.finish(), 0, self.said())
        self.end_pods()
        failure, = read_rows(self.run_folder("job") / "failures.jsonl")
        self.assertIn("worker 1", failure["who"])
        self.assertIn(failure["action"], ("rolled_back", "restarted"))
        self.troupe(*self.words("run.name=here", "cluster.nodes=1",
                                "cluster.devices_per_node=2",
                                "cluster.workers_per_node=2"), seconds=200)
        job, here = ((tree_bytes(self.latest(name), "*/model.safetensors"),
                      [without_times(line)
                       for line in self.metrics(name).values()])
                     for name in ("job", "here"))
        self.assertEqual(job, here)

    def test_a_deleted_set_saves_and_a_new_one_continues(self):
        self.apply("run.steps=100000")
        self.wait_for_step("job", 3)
        for pod in [*self.pods, self.master]:
            pod.terminate()
        self.assertEqual(self.master.finish(), 75, self.said())
        for pod in self.pods:
            pod.finish()
        saved = max(self.metrics("job"))
        self.assertTrue((self.latest("job") / "manifest.json").is_file())
        failures = self.run_folder("job") / "failures.jsonl"
        self.assertFalse(failures.exists() and failures.read_text())
        for index in (0, 1):
            (self.folder / f"ending{index}").unlink()
        self.troupe(*self.words(f"run.steps={saved + 2}", "cluster.nodes=1",
                                "run.resume=force"))
        self.assertEqual(max(self.metrics("job")), saved + 2)

    def test_only_the_master_goes_and_comes_back(self):
        # its node is drained: the pods of workers live on and join the next one
        self.apply()
        self.wait_for_step("job", 3)
        self.master.terminate()
        self.assertEqual(self.master.finish(), 75, self.said())
        again = self.master.popen.args
        self.master.popen = subprocess.Popen(
            again, env={**self.environment, "PATH": f"{BUILD}:/usr/bin:/bin"},
            cwd=self.folder, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        self.assertEqual(self.master.finish(), 0, self.said())
        self.end_pods()
        self.assertEqual(max(self.metrics("job")), STEPS)
        until(lambda: not self.workers(), "the end of all workers", 10)


if __name__ == "__main__":
    unittest.main()
