"""Run folders of a known run that never was, for tests of the page that need no
training: GRPO on two devices, its trace, metrics, samples, settings, failures."""
import json
import time

import trace_files
from support import write_rows

MS = 10**6
CALLS = (("actor_gen", "generate", [0, 1]), ("rew_inf", "inference", [0]),
         ("actor_train", "train", [0, 1]))
# tasks of a step: device, call, from and to in ms; device 1 idles 40 ms of 200
TASKS = ((0, "actor_gen", 0, 60), (1, "actor_gen", 0, 60), (0, "rew_inf", 60, 100),
         (0, "actor_train", 100, 198), (1, "actor_train", 100, 198))
STEP_MS = 200
PROMPTS = [f"What is {n} plus {n}?" for n in range(4)]
SETTINGS = """run:
  name: {name}
  steps: 40
models:
  actor:
    optimizer:
      lr: {lr}
rollout:
  n: 2
"""


def dataflow():
    return {"calls": [{"name": name, "kind": kind, "role": "", "reads": [],
                       "writes": [], "devices": devices,
                       "strategy": f"d{len(devices)}", "lag": 0}
                      for name, kind, devices in CALLS],
            "edges": [{"from": "actor_gen", "to": "rew_inf", "keys": ["response"]},
                      {"from": "rew_inf", "to": "actor_train", "keys": ["scores"]}]}


def answer(step, prompt):
    """What the run answered: better words from step 20 on."""
    return f"I {'know' if step >= 20 else 'guess'} it is {2 * prompt}, step {step}."


def samples(steps):
    """Two answers to each prompt in each step; every fifth is cut off."""
    return [{"step": step, "sample": 2 * prompt + i, "prompt": text,
             "response": answer(step, prompt) + " Yes." * i,
             "score": round(step / 10 + prompt / 100 + i, 3), "kl": 0.01 * step,
             "finish_reason": "length" if (step + prompt + i) % 5 == 0 else "eos",
             "sequence_ids": [1, 2, 3], "loss_mask": [0, 1, 1],
             "logprobs": [0, -0.5, -1.0]}
            for step in range(1, steps + 1) for prompt, text in enumerate(PROMPTS)
            for i in range(2)]


def metrics(steps, slower=1.0, predicted_s=0.16):
    return [{"step": step, "critic/score/mean": step / 10,
             "perf/total_num_tokens": 1000, "timing_s/step": 0.2 * slower,
             "perf/predicted_step_s": predicted_s, "perf/idle_ratio": 0.1,
             "perf/throughput": 2500 / slower, "actor/entropy": 1 / step,
             "actor/ppo_kl": 0.001 * step}
            for step in range(1, steps + 1)]


def write_trace(folder, steps, slower=1.0, attempt=1, begin=None, first=0):
    """Returns the time after the last step. Steps of files count from 0."""
    master = trace_files.TraceFile(folder, "master", 0, attempt)
    worker = trace_files.TraceFile(folder, "worker 0", 1, attempt)
    begin = time.monotonic_ns() if begin is None else begin
    call, shard = master.track("call actor_gen"), worker.track("shard actor/0")
    for i in range(steps):
        at = begin + round(i * STEP_MS * MS * slower)
        master.events([master.event(trace_files.SEND, at, call, master.name("run"),
                                    first + i, i + 1)])
        worker.events(worker.event(kind, at + MS + kind, shard, worker.name("run"),
                                   first + i, i + 1)
                      for kind in (trace_files.BEGIN, trace_files.RECEIVE,
                                   trace_files.END))
        for device, name, start, end in TASKS:
            worker.tasks(device, name, first + i, [
                (at + round(start * MS * slower), at + round(end * MS * slower))])
    master.close()
    worker.close()
    return begin + round(steps * STEP_MS * MS * slower)


def make_run(folder, name, steps=40, slower=1.0, lr="1.0e-4", state="done",
             failures=(), **status):
    """A run folder `runs/NAME` below `folder`, complete but for what is random."""
    run = folder / "runs" / name
    run.mkdir(parents=True)
    write_trace(run / "trace", steps, slower)
    (run / "config.yaml").write_text(SETTINGS.format(name=name, lr=lr))
    (run / "dataflow.json").write_text(json.dumps(dataflow()))
    (run / "status.json").write_text(json.dumps(
        {"state": state, "step": steps, "steps": 40, "attempt": 1, **status}))
    write_rows(run / "metrics.jsonl", metrics(steps, slower))
    write_rows(run / "samples.jsonl", samples(steps))
    write_rows(run / "failures.jsonl", failures)
    return run
