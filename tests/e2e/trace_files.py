"""Trace files as processes write them (config/trace/trace_writer.hpp), for pages of
runs that never were: any number of tasks, waits and events a second."""
import struct
import time

BEGIN, END, SEND, RECEIVE = range(4)
REPLY = 1 << 63  # a reply's arrow: its request's, with this bit
EVENT = struct.Struct("<qQQIIIIB7x")


class TraceFile:
    """One process's .events file in the trace folder of a run: "master", or
    "worker" and its number. Its host's clocks are ahead of this one's by
    `clock_ns` and `realtime_ns`."""

    def __init__(self, folder, process, number, attempt=1, clock_ns=0,
                 realtime_ns=0):
        folder.mkdir(parents=True, exist_ok=True)
        name = "_".join(part.zfill(2) if part.isdigit() else part
                        for part in [*process.split(), str(attempt)])
        self.file = open(folder / f"{name}.events", "wb")
        self.file.write(b"TROUPEv1")
        self.tracks, self.names = {}, {}
        self.clock_ns = clock_ns
        times = time.monotonic_ns() + clock_ns, time.time_ns() + realtime_ns
        self.record(1, struct.pack("<IIIIqq", EVENT.size, number, 1000 + number,
                                   0, *times) + process.encode())

    def record(self, kind, payload):
        self.file.write(struct.pack("<II", kind, len(payload)) + payload)

    def track(self, name, device=False):
        if name not in self.tracks:
            self.tracks[name] = len(self.tracks)
            self.record(2, struct.pack("<I", device) + name.encode())
        return self.tracks[name]

    def name(self, text):
        if text not in self.names:
            self.names[text] = len(self.names)
            self.record(3, text.encode())
        return self.names[text]

    def event(self, kind, time_ns, track, name, step=0, flow=0):
        """The bytes of an event; names first, they are separate records."""
        return EVENT.pack(time_ns + self.clock_ns, flow, 0, track, name, step, 1,
                          kind)

    def events(self, events):
        self.record(4, b"".join(events))
        self.file.flush()

    def tasks(self, device, name, step, spans):
        """Tasks of one device: [(begin, end)] in ns."""
        track, text = self.track(f"device {device}", True), self.name(name)
        self.events(event for begin, end in spans for event in (
            self.event(BEGIN, begin, track, text, step),
            self.event(END, end, track, text, step)))

    def close(self):
        self.record(5, struct.pack("<Q", 0))
        self.record(6, b"")
        self.file.close()
