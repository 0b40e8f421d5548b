"""Traces of runs that are too long or too large to make one event at a time: the
bytes of one step's events are a pattern whose times and flows are moved on."""
import array

import trace_files

WORDS = trace_files.EVENT.size // 8


class Pattern:
    """Events of one file that repeat: `events` are the bytes of each, with times
    and flows that count from 0."""

    def __init__(self, events):
        self.words = array.array("q", b"".join(events))
        self.count = len(self.words) // WORDS
        self.times = self.words[0::WORDS]
        self.flows = self.words[1::WORDS]

    def shifted(self, time_ns, flow, step):
        """The bytes of the pattern at a time, in a step that counts from 0."""
        words = self.words
        words[0::WORDS] = array.array("q", (t + time_ns for t in self.times))
        words[1::WORDS] = array.array("q", (f + flow if f else 0
                                            for f in self.flows))
        words[4::WORDS] = array.array("q", [step | 1 << 32]) * self.count
        return words.tobytes()


def write_long_run(folder, steps, messages, step_ns, begin_ns):
    """A master and a worker with four devices: in each step each device runs
    three tasks, one after the other, and the master sends `messages` messages,
    each of which the worker handles. Returns the number of events."""
    master = trace_files.TraceFile(folder, "master", 0)
    worker = trace_files.TraceFile(folder, "worker 0", 1)
    calls = [worker.name(call) for call in ("gen", "ref", "train")]
    devices = [worker.track(f"device {d}", True) for d in range(4)]
    third = step_ns // 3
    tasks = [worker.event(kind, i * third + at, device, name)
             for i, name in enumerate(calls)
             for kind, at in ((trace_files.BEGIN, 1000),
                              (trace_files.END, third - 1000))
             for device in devices]
    apart = step_ns // messages
    sender, reader = master.track("call gen"), worker.track("shard 0")
    note, noted = master.name("note"), worker.name("note")
    sent = [master.event(trace_files.SEND, i * apart, sender, note, 0, i + 1)
            for i in range(messages)]
    handled = [worker.event(kind, i * apart + apart // 2 + at, reader, noted, 0,
                            flow)
               for i in range(messages)
               for kind, at, flow in ((trace_files.BEGIN, 0, 0),
                                      (trace_files.RECEIVE, 10, i + 1),
                                      (trace_files.END, 20, 0))]
    patterns = [(master, Pattern(sent)), (worker, Pattern(tasks + handled))]
    for step in range(steps):
        for file, pattern in patterns:
            file.events([pattern.shifted(begin_ns + step * step_ns,
                                         step * messages, step)])
    for file, _ in patterns:
        file.close()
    return steps * sum(pattern.count for _, pattern in patterns)


def write_many_actors(folder, processes, actors, begin_ns, seconds):
    """Processes with so many actors each, every one of which sends a message to
    one of the next process ten times a second, in one step. A task lasts as long
    as the step."""
    files = [trace_files.TraceFile(folder, f"worker {p}", p + 1)
             for p in range(processes)]
    flow = 0
    for p, file in enumerate(files):
        file.tasks(p, "gen", 0, [(begin_ns, begin_ns + seconds * 10**9)])
    apart = 10**8 // actors
    for tick in range(10 * seconds):
        for p, file in enumerate(files):
            other = files[(p + 1) % processes]
            sent, handled = [], []
            for i in range(actors):
                flow += 1
                at = begin_ns + tick * 10**8 + i * apart
                sent.append(file.event(trace_files.SEND, at,
                                       file.track(f"shard {p}.{i}"),
                                       file.name("note"), 0, flow))
                reader = other.track(f"shard {(p + 1) % processes}.{i}")
                handled += [other.event(kind, at + 2 * 10**7 + kind, reader,
                                        other.name("note"), 0, flow)
                            for kind in (trace_files.BEGIN, trace_files.RECEIVE,
                                         trace_files.END)]
            file.events(sent)
            other.events(handled)
    for file in files:
        file.close()
