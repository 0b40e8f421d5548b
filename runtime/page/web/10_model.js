// The run as the page knows it: converts trace records to tracks, slices,
// arrows and counters on one clock.

const REPLY = 1n << 63n;
const ONE_HOST_NS = 1e9;      // clocks closer than this are one host's
const CLOCK_NS = 10e9;        // between two checks of a host's clock
const SETTLE_NS = 30e6;       // threads of a process are drained this far apart
const KEEP_ARROWS = 150000;
const KEEP_FLOWS = 40000;     // with one end, or without a reply

// Names whose events belong to no step. Files count steps from 0, the page from
// 1.
const STEPLESS = new Set(['ping', 'tick', 'join', 'done', 'load', 'start', 'stop', 'message', 'spawn', 'abort']);

// Drops many entries at once: a map that loses its oldest entry again and again
// searches for it among all deleted ones. Returns how many it dropped.
function forgetOldest(map) {
  if (map.size <= KEEP_FLOWS) return 0;
  let left = KEEP_FLOWS / 2;
  for (const key of map.keys()) {
    if (!left--) break;
    map.delete(key);
  }
  return KEEP_FLOWS / 2;
}

class Model {
  constructor() {
    this.files = [];
    this.tracks = [];
    this.graph = { calls: [], edges: [] };
    this.status = null;
    this.metrics = [];
    this.failures = [];
    this.samples = [];
    this.log = [];
    this.logs = new Map(); // logs of workers: lines with a time and a text
    this.arrows = [];           // by the time of sending
    this.fresh = [];            // not sorted in yet
    this.sends = new Map();     // flow -> send that was not handled yet
    this.asks = new Map();      // flow -> ask without a reply
    this.answered = new Set();  // names of messages that get replies
    this.counters = new Map();  // name -> [[t, value]]
    this.kinds = new Map();     // message name -> cost
    this.readers = new Map();   // sender -> message name -> receivers
    this.steps = new Map();     // step -> Map(call -> [slices on devices])
    this.begin = Infinity;
    this.last = -Infinity;
    this.origin = 0;            // start of the first file: 0 of the axis
    this.lastAttempt = 0;
    this.loading = 0;           // percent of what existed when the page was opened
    this.longest = 0;           // longest arrow, in ns
    this.forgotten = 0;         // arrows dropped for lack of room
    this.progress = -Infinity;  // when a worker last made progress
    this.realtime = 0;          // added to a time, onto the wall clock
    this.events = 0;
    this.unmatched = 0;
    this.changed = true;
    this.text = new TextDecoder();
  }

  get loaded() { return this.loading >= 100; }

  addFile(name) {
    const file = new TraceFile(name);
    this.files.push(file);
    this.lastAttempt = Math.max(this.lastAttempt, file.attempt);
  }

  addRecords(buffer) {
    const view = new DataView(buffer);
    const file = this.files[view.getUint32(0, true)];
    if (!file) return;
    let at = 4;
    if (buffer.byteLength >= 12 && view.getUint32(4, true) === MAGIC) at += 8;
    while (at + 8 <= buffer.byteLength) {
      const kind = view.getUint32(at, true);
      const bytes = view.getUint32(at + 4, true);
      at += 8;
      this.record(file, kind, view, at, bytes);
      at += bytes;
    }
    this.settle(file, file.closed ? Infinity : file.newest - SETTLE_NS);
    this.changed = true;
  }

  string(view, at, bytes) { return this.text.decode(new Uint8Array(view.buffer, at, bytes)); }

  record(file, kind, view, at, bytes) {
    switch (kind) {
    case 1: return this.process(file, view, at, bytes);
    case 2: {
      if (++file.tracksRead <= file.tracks.length) return undefined; // as in the segment before
      const track = new Track(file, this.string(view, at + 4, bytes - 4),
        view.getUint32(at, true) === 1 ? 'device' : 'actor');
      file.tracks.push(track);
      this.tracks.push(track);
      return undefined;
    }
    case 3:
      if (++file.namesRead > file.names.length) file.names.push(this.string(view, at, bytes));
      return undefined;
    case 4: return this.queue(file, view, at, bytes);
    case 5: file.dropped = Number(view.getBigUint64(at, true)); return undefined;
    case 6: file.closed = true; return undefined;
    case 7: return this.earlier(file, Number(view.getBigUint64(at, true)), view.getUint32(at + 8, true));
    default: return undefined;  // from a later version
    }
  }

  // Counts events before those that follow; some of them may never have been
  // sent here.
  earlier(file, events, lastStep) {
    if (events <= file.position) return;
    this.settle(file, Infinity);
    for (const track of file.tracks) track.cut(file.lastEvent);
    file.removed += events - file.position;
    file.position = events;
    file.wholeFrom = lastStep + 2; // files count steps from 0
  }

  process(file, view, at, bytes) {
    file.tracksRead = file.namesRead = 0;
    if (file.process) return; // a further segment
    file.number = view.getUint32(at + 4, true);
    file.pid = view.getUint32(at + 8, true);
    const monotonic = Number(view.getBigInt64(at + 16, true));
    const real = Number(view.getBigInt64(at + 24, true));
    file.process = this.string(view, at + 32, bytes - 32);
    if (this.zero === undefined) {
      this.zero = real - monotonic;
      this.realtime = this.zero;
      this.origin = monotonic;
    }
    const offset = real - monotonic - this.zero;
    file.offset = Math.abs(offset) < ONE_HOST_NS ? 0 : offset;
  }

  queue(file, view, at, bytes) {
    const many = Math.floor(bytes / EVENT_BYTES);
    file.newest = file.newest || -Infinity;
    for (let i = 0; i < many; ++i, at += EVENT_BYTES) {
      const time = Number(view.getBigInt64(at, true)) + file.offset;
      file.waiting.push({
        time, flow: this.flow(file, view.getBigUint64(at + 8, true)), amount: view.getBigUint64(at + 16, true),
        track: view.getUint32(at + 24, true), name: view.getUint32(at + 28, true),
        step: view.getUint32(at + 32, true) + 1, kind: view.getUint8(at + 40),
      });
      if (time > file.newest) file.newest = time;
    }
    this.events += many;
    file.position += many;
  }

  flow(file, flow) { return flow && file.attempt > 1 ? flow | file.flowBits : flow; }

  // Handles events that no other thread's event can precede any more.
  settle(file, until) {
    if (file.waiting.length === 0) return;
    file.waiting.sort((a, b) => a.time - b.time);
    let ready = 0;
    while (ready < file.waiting.length && file.waiting[ready].time <= until) {
      const event = file.waiting[ready++];
      const track = file.tracks[event.track];
      if (track && event.name < file.names.length) this.event(file, track, event);
      else ++file.dropped;
    }
    file.waiting.splice(0, ready);
    this.changed = true;
  }

  // A quiet file has no later events that could settle its last ones.
  settleQuiet() {
    for (const file of this.files)
      if (performance.now() - (file.seen || 0) > 60) {
        if (file.waiting.length) this.settle(file, Infinity);
        if (this.loaded && !file.cut && file.attempt < this.lastAttempt) this.cut(file);
      }
  }

  // Records how much of what existed when the page was opened has arrived. At
  // the end none of it waits for later events, unless its process still writes.
  load(percent) {
    this.loading = percent;
    if (!this.loaded) return;
    for (const file of this.files) if (!this.live() || this.over(file)) this.settle(file, Infinity);
    for (const file of this.files) if (file.attempt < this.lastAttempt) this.cut(file);
  }

  // Ends what was in progress when an attempt ended: no later one continues it.
  cut(file) {
    file.cut = true;
    for (const track of file.tracks) track.cut(file.lastEvent);
    for (const [flow, end] of this.sends)
      if (end.track.file === file) { this.sends.delete(flow); ++this.unmatched; }
    for (const [flow, ask] of this.asks)
      if (ask.from.file === file) this.asks.delete(flow);
    this.changed = true;
  }

  // Returns whether it writes no more: it ended, or a later attempt has begun.
  over(file) { return file.closed || file.attempt < this.lastAttempt; }

  event(file, track, event) {
    const name = file.names[event.name];
    if (STEPLESS.has(name)) event.step = 0;
    this.begin = Math.min(this.begin, event.time);
    this.last = Math.max(this.last, event.time);
    file.lastEvent = event.time;
    if (track.kind === 'device' && event.kind <= KIND.end) this.progress = Math.max(this.progress, event.time);
    switch (event.kind) {
    case KIND.begin: {
      const slice = track.begin(event.time, name, event.step, Number(event.amount));
      if (slice.depth === 0 && track.kind === 'device') this.addTask(slice);
      return;
    }
    case KIND.end: {
      const slice = track.end(event.time, name);
      if (slice && track.kind === 'actor' && slice.depth === 0) track.handled(slice);
      return;
    }
    case KIND.send: this.send(track, name, event); return;
    case KIND.receive: this.receive(track, name, event); return;
    case KIND.counter: {
      const bits = new DataView(new ArrayBuffer(8));
      bits.setBigUint64(0, event.amount);
      if (name.startsWith('progress ')) this.progress = Math.max(this.progress, event.time);
      const points = this.counters.get(name) || this.counters.set(name, []).get(name);
      points.push([event.time, bits.getFloat64(0)]);
      if (points.length > 20000) points.splice(0, 5000);
      return;
    }
    default: track.marks.push({ t: event.time, name, kind: event.kind });
    }
  }

  addTask(slice) {
    const known = slice.name === 'move' || !this.graph.calls.length || this.graph.calls.some((c) => c.name === slice.name);
    if (!slice.step || !known || !(slice.track.isDevice || this.graph.calls.length)) return;
    // A step that a later attempt repeated belongs to that attempt.
    let calls = this.steps.get(slice.step);
    if (!calls || calls.attempt < slice.track.file.attempt) {
      calls = new Map();
      calls.attempt = slice.track.file.attempt;
      this.steps.set(slice.step, calls);
    }
    if (calls.attempt > slice.track.file.attempt) return;
    const parts = calls.get(slice.name) || calls.set(slice.name, []).get(slice.name);
    parts.push(slice);
    if (this.steps.size > 4000) this.steps.delete(this.steps.keys().next().value);
  }

  // A receive may be read before its send: they are in different files.
  send(track, name, event) {
    const end = { t: event.time, track, name, step: event.step, bytes: Number(event.amount) };
    const other = this.sends.get(event.flow);
    if (other && other.handled) {
      this.sends.delete(event.flow);
      this.arrow(event.flow, end, other);
    } else {
      this.sends.set(event.flow, end);
    }
    if (!(event.flow & REPLY)) return;
    track.fetched(event.flow & ~REPLY, event.time);
    const ask = this.asks.get(event.flow & ~REPLY);
    if (ask) this.answered.add(ask.name);
    this.asks.delete(event.flow & ~REPLY);
  }

  receive(track, name, event) {
    ++track.received;
    if (name === 'fetch') track.fetching.set(event.flow, event.time);
    const ask = event.flow & REPLY && (this.sends.get(event.flow & ~REPLY) || this.asks.get(event.flow & ~REPLY));
    if (ask) this.answered.add(ask.name);
    const end = { t: event.time, track, name, step: event.step, handled: true };
    const other = this.sends.get(event.flow);
    if (other && !other.handled) {
      this.sends.delete(event.flow);
      this.arrow(event.flow, other, end);
    } else {
      this.sends.set(event.flow, end);
    }
  }

  arrow(flow, from, to) {
    const arrow = { flow, t0: from.t, t1: to.t, from: from.track, to: to.track, name: from.name,
      step: from.step, bytes: from.bytes };
    this.fresh.push(arrow);
    if (this.fresh.length > KEEP_ARROWS / 8) this.sortArrows(); // a hidden page draws no frames
    if (!(flow & REPLY) && !this.sends.has(flow | REPLY)) this.asks.set(flow, arrow);
    this.longest = Math.max(this.longest, arrow.t1 - arrow.t0);
    forgetOldest(this.asks);
    this.unmatched += forgetOldest(this.sends);
    this.boundClock(arrow);
    const sent = this.readers.get(arrow.from) || this.readers.set(arrow.from, new Map()).get(arrow.from);
    const readers = sent.get(arrow.name) || sent.set(arrow.name, new Map()).get(arrow.name);
    readers.set(arrow.to, arrow.t0);
    this.count(arrow);
  }

  // Files deliver their arrows in parallel or one after the other: sorts what
  // arrived since the last call into the arrows that were sent later.
  sortArrows() {
    if (!this.fresh.length) return;
    const first = this.fresh.reduce((t, a) => Math.min(t, a.t0), Infinity);
    let lo = 0, hi = this.arrows.length;
    while (lo < hi) { const mid = (lo + hi) >> 1; if (this.arrows[mid].t0 <= first) lo = mid + 1; else hi = mid; }
    const tail = this.arrows.splice(lo).concat(this.fresh).sort((a, b) => a.t0 - b.t0);
    this.fresh = [];
    for (const arrow of tail) this.arrows.push(arrow);
    if (this.arrows.length > KEEP_ARROWS)
      this.forgotten += this.arrows.splice(0, this.arrows.length - KEEP_ARROWS * 3 / 4).length;
  }

  // No message arrives before it was sent: those with the master bound the
  // offset of another host's clock (runtime/trace/clock_offsets.hpp).
  boundClock(arrow) {
    const from = arrow.from.file, to = arrow.to.file;
    if (from === to || (from.number !== 0 && to.number !== 0)) return;
    const file = from.number === 0 ? to : from, bounds = file.bounds;
    if (file === to) bounds.highest = Math.min(bounds.highest, arrow.t1 - arrow.t0);
    else bounds.lowest = Math.max(bounds.lowest, arrow.t0 - arrow.t1);
    if (bounds.lowest === -Infinity || bounds.highest === Infinity || arrow.t1 < bounds.since + CLOCK_NS) return;
    if (file.offset !== 0 || bounds.lowest > 0 || bounds.highest < 0) {
      file.offset -= (bounds.lowest + bounds.highest) / 2;
      file.clockError = Math.abs(bounds.highest - bounds.lowest) / 2;
    }
    file.bounds = { lowest: -Infinity, highest: Infinity, since: arrow.t1 };
  }

  // Within a process a message only waits in a mailbox; between two it is on
  // the wire as well.
  count(arrow) {
    const cost = this.kinds.get(arrow.name)
      || this.kinds.set(arrow.name, { count: 0, bytes: 0, queue: [], wire: [] }).get(arrow.name);
    ++cost.count;
    cost.bytes += arrow.bytes;
    const us = arrow.from.file === arrow.to.file ? cost.queue : cost.wire;
    us.push(Math.max(0.1, (arrow.t1 - arrow.t0) / 1e3));
    if (us.length > 4000) us.splice(0, 2000);
  }

  // Returns messages in flight: sent, not handled, of a process that still
  // writes. Their receivers are not in the trace until they handle them: a
  // reply is for the requester, another message for the reader of its kind that
  // has waited longest for one from this sender.
  inFlight() {
    const flying = [...this.sends].filter(([, s]) => !s.handled && !this.over(s.track.file));
    const taken = new Map();
    return flying.sort((a, b) => a[1].t - b[1].t).map(([flow, send]) => {
      const ask = flow & REPLY && this.asks.get(flow & ~REPLY);
      if (ask) return { ...send, to: ask.from };
      const readers = [...((this.readers.get(send.track) || new Map()).get(send.name) || new Map())];
      const key = `${send.track.file.process} ${send.track.name} ${send.name}`;
      const nth = taken.get(key) || 0;
      taken.set(key, nth + 1);
      const next = readers.filter((r) => !this.over(r[0].file)).sort((a, b) => a[1] - b[1])[nth];
      return { ...send, to: next ? next[0] : null };
    });
  }

  // Returns the events that were dropped for newer ones, or were too old for
  // the page, and the first step that has all of its own.
  missing() {
    return { events: this.files.reduce((sum, f) => sum + f.removed, 0),
      wholeFrom: Math.max(1, ...this.files.map((f) => f.wholeFrom)) };
  }
  dropped() { return this.files.reduce((sum, f) => sum + f.dropped, 0); }
  live() { return !!this.status && /^(starting|running|recovering|stopping)$/.test(this.status.state); }
  devices() {
    return this.tracks.filter((t) => t.isDevice)
      .sort((a, b) => Number(a.name.slice(7)) - Number(b.name.slice(7)));
  }
  // Returns the newest step whose calls with devices have all ended.
  lastWholeStep() {
    const wanted = this.graph.calls.filter((c) => c.devices.length).length || 1;
    const steps = [...this.steps.keys()].sort((a, b) => b - a);
    return steps.find((s) => {
      const calls = this.steps.get(s);
      const parts = [...calls.values()].flat();
      const known = [...calls.keys()].filter((c) => this.graph.calls.some((g) => g.name === c && g.devices.length));
      return known.length >= wanted && parts.every((p) => !Number.isNaN(p.e));
    }) || steps.at(-1);
  }
  stepSpan(step) {
    const parts = [...(this.steps.get(step) || new Map()).values()].flat();
    if (!parts.length) return null;
    return { b: Math.min(...parts.map((p) => p.b)),
      e: Math.max(...parts.map((p) => (Number.isNaN(p.e) ? this.last : p.e))) };
  }
}
