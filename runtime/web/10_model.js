'use strict';
// The run as the page knows it: reads trace records (the file format of
// config/trace_writer) into tracks, slices, arrows and counters on one clock.

const EVENT_BYTES = 48;
const KIND = { begin: 0, end: 1, send: 2, receive: 3, counter: 4, spawn: 5, exit: 6, failure: 7 };
const REPLY = 1n << 63n;
const ONE_HOST_NS = 1e9;      // clocks closer than this are one host's
const SETTLE_NS = 30e6;       // threads of a process are drained this far apart
const KEEP_SLICES = 60000;    // of one depth of one track
const KEEP_ARROWS = 150000;

// Names whose events belong to no step. Files count steps from 0, people from 1.
const STEPLESS = new Set(['ping', 'tick', 'join', 'done', 'load', 'write', 'start', 'stop', 'message', 'spawn', 'abort']);

class Track {
  constructor(file, name, kind) {
    this.file = file;
    this.name = name;
    this.kind = kind;           // 'actor' or 'device'
    this.depths = [];           // [depth] -> slices, disjoint, by time
    this.open = [];
    this.marks = [];
    this.received = 0;
    this.host = kind === 'device' && name.startsWith('host');
  }
  get isDevice() { return this.kind === 'device' && /^device /.test(this.name); }
  tasks() { return this.depths[0] || []; }
  begin(t, name, step, amount) {
    const depth = this.open.length;
    const slice = { b: t, e: NaN, name, step, amount, depth, track: this };
    const row = this.depths[depth] || (this.depths[depth] = []);
    row.push(slice);
    if (row.length > KEEP_SLICES) row.splice(0, KEEP_SLICES / 4);
    this.open.push(slice);
    return slice;
  }
  end(t, name) {
    if (!this.open.some((s) => s.name === name)) return null; // begin was lost
    for (;;) {
      const slice = this.open.pop();
      slice.e = t;
      if (slice.name === name) return slice;
    }
  }
  // Slices of one depth that touch [from, to].
  visible(depth, from, to) {
    const row = this.depths[depth] || [];
    let lo = 0, hi = row.length;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if ((Number.isNaN(row[mid].e) ? Infinity : row[mid].e) < from) lo = mid + 1;
      else hi = mid;
    }
    const first = lo;
    hi = row.length;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (row[mid].b <= to) lo = mid + 1; else hi = mid;
    }
    return { row, first, last: lo };
  }
}

class TraceFile {
  constructor(name) {
    this.name = name;
    this.process = name;
    this.number = -1;
    this.pid = 0;
    this.offset = 0;
    this.tracks = [];
    this.names = [];
    this.dropped = 0;
    this.closed = false;
    this.magic = false;
    this.waiting = [];          // events that may still be overtaken
    this.lastEvent = -Infinity;
  }
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
    this.arrows = [];
    this.sends = new Map();     // flow -> send that nobody handled yet
    this.asks = new Map();      // flow -> ask without an answer
    this.answered = new Set();  // names of messages that get answers
    this.counters = new Map();  // name -> [[t, value]]
    this.kinds = new Map();     // message name -> cost
    this.steps = new Map();     // step -> Map(call -> [slices on devices])
    this.begin = Infinity;
    this.last = -Infinity;
    this.realtime = 0;          // add to a time for the wall clock
    this.events = 0;
    this.unmatched = 0;
    this.changed = true;
    this.text = new TextDecoder();
  }

  addFile(name) { this.files.push(new TraceFile(name)); }

  addRecords(buffer) {
    const view = new DataView(buffer);
    const file = this.files[view.getUint32(0, true)];
    if (!file) return;
    let at = 4;
    if (!file.magic) { file.magic = true; at += 8; }
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
      const track = new Track(file, this.string(view, at + 4, bytes - 4),
        view.getUint32(at, true) === 1 ? 'device' : 'actor');
      file.tracks.push(track);
      this.tracks.push(track);
      return undefined;
    }
    case 3: return void file.names.push(this.string(view, at, bytes));
    case 4: return this.queue(file, view, at, bytes);
    case 5: file.dropped = Number(view.getBigUint64(at, true)); return undefined;
    case 6: file.closed = true; return undefined;
    default: return undefined;  // of a later version
    }
  }

  process(file, view, at, bytes) {
    file.number = view.getUint32(at + 4, true);
    file.pid = view.getUint32(at + 8, true);
    const monotonic = Number(view.getBigInt64(at + 16, true));
    const real = Number(view.getBigInt64(at + 24, true));
    file.process = this.string(view, at + 32, bytes - 32);
    if (this.zero === undefined) { this.zero = real - monotonic; this.realtime = this.zero; }
    const offset = real - monotonic - this.zero;
    file.offset = Math.abs(offset) < ONE_HOST_NS ? 0 : offset;
  }

  queue(file, view, at, bytes) {
    const many = Math.floor(bytes / EVENT_BYTES);
    file.newest = file.newest || -Infinity;
    for (let i = 0; i < many; ++i, at += EVENT_BYTES) {
      const time = Number(view.getBigInt64(at, true)) + file.offset;
      file.waiting.push({
        time, flow: view.getBigUint64(at + 8, true), amount: view.getBigUint64(at + 16, true),
        track: view.getUint32(at + 24, true), name: view.getUint32(at + 28, true),
        step: view.getUint32(at + 32, true) + 1, kind: view.getUint8(at + 40),
      });
      if (time > file.newest) file.newest = time;
    }
    this.events += many;
  }

  // Handles what no other thread's event can overtake any more.
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

  // A quiet file has no later events that could push its last ones out.
  settleQuiet() {
    for (const file of this.files)
      if (file.waiting.length && performance.now() - (file.seen || 0) > 60)
        this.settle(file, Infinity);
  }

  event(file, track, event) {
    const name = file.names[event.name];
    if (STEPLESS.has(name)) event.step = 0;
    this.begin = Math.min(this.begin, event.time);
    this.last = Math.max(this.last, event.time);
    file.lastEvent = event.time;
    switch (event.kind) {
    case KIND.begin: {
      const slice = track.begin(event.time, name, event.step, Number(event.amount));
      if (slice.depth === 0 && track.isDevice) this.addTask(slice);
      return;
    }
    case KIND.end: track.end(event.time, name); return;
    case KIND.send: this.send(track, name, event); return;
    case KIND.receive: this.receive(track, name, event); return;
    case KIND.counter: {
      const bits = new DataView(new ArrayBuffer(8));
      bits.setBigUint64(0, event.amount);
      const key = name;
      const points = this.counters.get(key) || this.counters.set(key, []).get(key);
      points.push([event.time, bits.getFloat64(0)]);
      if (points.length > 20000) points.splice(0, 5000);
      return;
    }
    default: track.marks.push({ t: event.time, name, kind: event.kind });
    }
  }

  addTask(slice) {
    const known = slice.name === 'move' || !this.graph.calls.length || this.graph.calls.some((c) => c.name === slice.name);
    if (!slice.step || !known) return;
    const calls = this.steps.get(slice.step) || this.steps.set(slice.step, new Map()).get(slice.step);
    const parts = calls.get(slice.name) || calls.set(slice.name, []).get(slice.name);
    parts.push(slice);
    if (this.steps.size > 4000) this.steps.delete(this.steps.keys().next().value);
  }

  // A receive may be read before its send: they stand in different files.
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
    const ask = this.asks.get(event.flow & ~REPLY);
    if (ask) this.answered.add(ask.name);
    this.asks.delete(event.flow & ~REPLY);
  }

  receive(track, name, event) {
    ++track.received;
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
    const arrows = this.arrows;
    arrows.push(arrow);
    for (let i = arrows.length - 1; i > 0 && arrows[i - 1].t0 > arrow.t0; --i)
      [arrows[i - 1], arrows[i]] = [arrows[i], arrows[i - 1]];
    if (arrows.length > KEEP_ARROWS) arrows.splice(0, KEEP_ARROWS / 4);
    if (!(flow & REPLY) && !this.sends.has(flow | REPLY)) this.asks.set(flow, arrow);
    if (this.asks.size > 20000) this.asks.delete(this.asks.keys().next().value);
    this.count(arrow);
  }

  count(arrow) {
    const cost = this.kinds.get(arrow.name)
      || this.kinds.set(arrow.name, { count: 0, bytes: 0, bins: new Uint32Array(64), us: [] }).get(arrow.name);
    const us = Math.max(0.1, (arrow.t1 - arrow.t0) / 1e3);
    ++cost.count;
    cost.bytes += arrow.bytes;
    ++cost.bins[Math.max(0, Math.min(63, Math.floor(Math.log2(us) * 2) + 8))];
    cost.us.push(us);
    if (cost.us.length > 4000) cost.us.splice(0, 2000);
  }

  // Messages on their way: sent, not handled, of a process that still writes.
  inFlight() {
    return [...this.sends.values()].filter((s) => !s.handled && !s.track.file.closed);
  }

  dropped() { return this.files.reduce((sum, f) => sum + f.dropped, 0); }
  live() { return !!this.status && /^(starting|running|stopping)$/.test(this.status.state); }
  devices() {
    return this.tracks.filter((t) => t.isDevice)
      .sort((a, b) => Number(a.name.slice(7)) - Number(b.name.slice(7)));
  }
  // The newest step all of whose calls with devices have ended.
  lastWholeStep() {
    const wanted = this.graph.calls.filter((c) => c.devices.length).length || 1;
    const steps = [...this.steps.keys()].sort((a, b) => b - a);
    return steps.find((s) => {
      const calls = this.steps.get(s);
      const parts = [...calls.values()].flat();
      const known = [...calls.keys()].filter((c) => this.graph.calls.some((g) => g.name === c));
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
