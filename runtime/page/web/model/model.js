// The run as the page knows it: converts trace records to tracks, slices,
// arrows and counters on one clock.
import { EARLIER, EVENT, HEAD, KIND, MAGIC, MAGIC_BYTES, PROCESS, RECORD, i64, u64 } from './trace_format.js';
import { Flows } from './flows.js';
import { TraceFile } from './trace_file.js';
import { Track, appendKept, entryOf } from './track.js';

/** @typedef {import('./trace_file.js').TraceEvent} TraceEvent */
/** @typedef {import('./track.js').Slice} Slice */
/**
 * A call of the workflow, as placed by the plan; without devices it runs on the host.
 * @typedef {{ name: string, kind: string, role: string, reads: string[], writes: string[], devices: number[], strategy: string, lag: number }} Call
 */
/** @typedef {{ from: string, to: string, keys: string[] }} Edge */
/**
 * dataflow.json, or why there is none, with the run's name.
 * @typedef {{ name: string, calls: Call[], edges: Edge[], error?: string }} Graph
 */
/** @typedef {{ rank: number, host: string, pid: number, state: string }} WorkerStatus */
/**
 * status.json, as far as the page shows it.
 * @typedef {{ state: string, step: number, steps: number, attempt: number, eta_s?: number | null, workers?: WorkerStatus[], last_failure?: string | null, host?: string }} Status
 */
/**
 * The tasks of a step by call, all of one attempt.
 * @typedef {Map<string, Slice[]> & { attempt: number }} StepTasks
 */

const SETTLE_NS = 30e6;       // threads of a process are drained this far apart
const QUIET_MS = 60;          // a file without news has no more of that time
const KEEP_STEPS = 4000;
const KEEP_POINTS = 20000;    // of one counter
// What comes from traces: replaced as a whole when the server sends another part.
/** @type {(keyof Model)[]} */
const OF_TRACES = ['files', 'tracks', 'byName', 'flows', 'counters', 'steps', 'begin', 'last', 'origin', 'lastAttempt',
  'loading', 'progress', 'realtime', 'zero', 'events', 'devicesOf', 'deviceTracks'];

// Names whose events belong to no step. Files count steps from 0, the page from
// 1.
const STEPLESS = new Set(['ping', 'tick', 'join', 'done', 'load', 'start', 'stop', 'message', 'spawn', 'abort']);

/** The run: what was read of it, on one clock. */
export class Model {
  /** @param {() => number} now */
  constructor(now = () => performance.now()) {
    this.now = now;
    /** @type {TraceFile[]} */
    this.files = [];
    /** @type {Track[]} */
    this.tracks = [];
    /** @type {Map<string, Track[]>} */
    this.byName = new Map();    // name -> tracks
    /** @type {Graph} */
    this.graph = { name: '', calls: [], edges: [] };
    /** @type {Map<string, Call>} */
    this.calls = new Map();     // of the graph, by name
    this.settings = '';         // config.yaml, resolved
    this.recorded = false;      // inside the page: nothing more will come
    /** @type {Status | null} */
    this.status = null;
    /** @type {import('./metrics.js').MetricsRow[]} */
    this.metrics = [];
    /** @type {import('./story.js').Failure[]} */
    this.failures = [];
    /** @type {import('./samples.js').Sample[]} */
    this.samples = [];
    /** @type {Map<number, import('./samples.js').Sample[]>} */
    this.samplesOf = new Map(); // of older steps that were asked for
    /** @type {Map<number, string>} */
    this.tokenTexts = new Map(); // by id
    /** @type {string[]} */
    this.log = [];
    /** @type {Map<string, import('./inbox.js').LogLine[]>} */
    this.logs = new Map();      // logs of workers: lines with a time and a text
    this.flows = new Flows();
    /** @type {Map<string, import('./metrics.js').Point[]>} */
    this.counters = new Map();  // name -> [[t, value]]
    /** @type {Map<number, StepTasks>} */
    this.steps = new Map();
    this.begin = Infinity;
    this.last = -Infinity;
    this.origin = 0;            // start of the first file: 0 of the axis
    this.lastAttempt = 0;
    this.loading = 0;           // percent of what existed when the page was opened
    this.progress = -Infinity;  // when a worker last made progress
    this.realtime = 0;          // added to a time, onto the wall clock
    this.events = 0;
    /** @type {import('./inbox.js').Part | null} */
    this.part = null;           // null: the newest events are here
    this.changed = true;
    this.text = new TextDecoder();
    /** @type {number | undefined} */
    this.zero = undefined;      // the first file's realtime - monotonic
    this.devicesOf = 0;         // tracks that deviceTracks was made of
    /** @type {Track[]} */
    this.deviceTracks = [];
    /** @type {Map<string, string>} */
    this.colours = new Map();   // those that coloursOf has
    /** @type {Graph | null} */
    this.coloursOf = null;
  }

  /**
   * Forgets all events: those of other steps follow.
   * @param {import('./inbox.js').Part | null} part
   */
  setPart(part) {
    const fresh = new Model(this.now);
    Object.assign(this, Object.fromEntries(OF_TRACES.map((name) => [name, fresh[name]])));
    this.part = part;
  }

  /**
   * Returns whether all events of a step are here.
   * @param {number} step
   */
  isDetailed(step) {
    return this.steps.has(step) && step >= this.missing().wholeFrom && (!this.part || step <= this.part.last);
  }
  /** Returns the newest step that the run is known to have done. */
  newestStep() {
    return Math.max(0, ...this.steps.keys(), this.status?.step ?? 0, this.metrics.at(-1)?.step ?? 0);
  }

  get loaded() { return this.loading >= 100; }
  get arrows() { return this.flows.arrows; }
  get sends() { return this.flows.sends; }
  get asks() { return this.flows.asks; }
  sortArrows() { this.flows.sortArrows(); }
  inFlight() { return this.flows.inFlight((file) => this.over(file)); }

  /** @param {Graph} graph */
  setGraph(graph) {
    this.graph = graph;
    this.calls = new Map(graph.calls.map((c) => [c.name, c]));
  }

  /** @param {string} name */
  addFile(name) {
    const file = new TraceFile(name);
    this.files.push(file);
    this.lastAttempt = Math.max(this.lastAttempt, file.attempt);
  }

  /**
   * Takes the offsets of clocks that the server computed of all traces.
   * @param {import('./inbox.js').ClockChange[]} list
   */
  setClocks(list) {
    for (const { file: name, from, add, error } of list) {
      const file = this.files.find((f) => f.name === name);
      if (file) file.setClock(from, add, error);
    }
  }

  /** @param {ArrayBuffer} buffer */
  addRecords(buffer) {
    const view = new DataView(buffer);
    const file = this.files[view.getUint32(0, true)];
    if (!file) return;
    file.seen = this.now();
    let at = 4;
    if (buffer.byteLength >= 4 + MAGIC_BYTES && view.getUint32(4, true) === MAGIC) at += MAGIC_BYTES;
    while (at + HEAD.size <= buffer.byteLength) {
      const kind = view.getUint32(at + HEAD.kind, true);
      const bytes = view.getUint32(at + HEAD.bytes, true);
      at += HEAD.size;
      this.record(file, kind, view, at, bytes);
      at += bytes;
    }
    this.settle(file, file.closed ? Infinity : file.newest - SETTLE_NS);
    this.changed = true;
  }

  /** @param {DataView} view @param {number} at @param {number} bytes */
  string(view, at, bytes) { return this.text.decode(new Uint8Array(view.buffer, at, bytes)); }

  /** @param {TraceFile} file @param {number} kind @param {DataView} view @param {number} at @param {number} bytes */
  record(file, kind, view, at, bytes) {
    switch (kind) {
    case RECORD.process: return this.process(file, view, at, bytes);
    case RECORD.track: {
      if (++file.tracksRead <= file.tracks.length) return undefined; // as in the segment before
      const track = new Track(file, this.string(view, at + 4, bytes - 4),
        view.getUint32(at, true) === 1 ? 'device' : 'actor');
      file.tracks.push(track);
      this.tracks.push(track);
      entryOf(this.byName, track.name, () => []).push(track);
      return undefined;
    }
    case RECORD.name:
      if (++file.namesRead > file.names.length) file.names.push(this.string(view, at, bytes));
      return undefined;
    case RECORD.events: return this.queue(file, view, at, bytes);
    case RECORD.dropped: file.dropped = u64(view, at); return undefined;
    case RECORD.closed: file.closed = true; return undefined;
    case RECORD.earlier: return this.earlier(file, u64(view, at + EARLIER.events), view.getUint32(at + EARLIER.last_step, true));
    default: return undefined;  // from a later version
    }
  }

  /**
   * Counts events before those that follow; some of them may never have been
   * sent here.
   * @param {TraceFile} file @param {number} events @param {number} lastStep
   */
  earlier(file, events, lastStep) {
    if (events <= file.position) return;
    this.settle(file, Infinity);
    for (const track of file.tracks) track.cut(file.lastEvent);
    file.removed += events - file.position;
    file.position = events;
    file.wholeFrom = lastStep + 2; // files count steps from 0
  }

  /** @param {TraceFile} file @param {DataView} view @param {number} at @param {number} bytes */
  process(file, view, at, bytes) {
    file.tracksRead = file.namesRead = 0;
    if (file.process) return; // a further segment
    file.number = view.getUint32(at + PROCESS.number, true);
    file.pid = view.getUint32(at + PROCESS.pid, true);
    const monotonic = i64(view, at + PROCESS.monotonic);
    // a time since 1970 needs more than 53 bits: exact to 256 ns
    const real = i64(view, at + PROCESS.realtime);
    file.process = this.string(view, at + PROCESS.size, bytes - PROCESS.size);
    if (this.zero === undefined) {
      this.zero = real - monotonic;
      this.realtime = this.zero;
      this.origin = monotonic;
    }
  }

  /** @param {TraceFile} file @param {DataView} view @param {number} at @param {number} bytes */
  queue(file, view, at, bytes) {
    const many = Math.floor(bytes / EVENT.bytes);
    for (let i = 0; i < many; ++i, at += EVENT.bytes) {
      const time = file.aligned(i64(view, at + EVENT.time));
      const kind = view.getUint8(at + EVENT.kind);
      file.waiting.push({
        time, kind,
        flow: this.flows.key(file.attempt, view.getUint32(at + EVENT.flow, true), view.getUint32(at + EVENT.flow + 4, true)),
        amount: kind === KIND.counter ? view.getFloat64(at + EVENT.amount, true) : u64(view, at + EVENT.amount),
        track: view.getUint32(at + EVENT.track, true), name: view.getUint32(at + EVENT.name, true),
        step: view.getUint32(at + EVENT.step, true) + 1,
      });
      if (time > file.newest) file.newest = time;
    }
    this.events += many;
    file.position += many;
  }

  /**
   * Handles events that no other thread's event can precede any more.
   * @param {TraceFile} file @param {number} until
   */
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
      if (this.now() - file.seen > QUIET_MS) {
        if (file.waiting.length) this.settle(file, Infinity);
        if (this.loaded && !file.cut && file.attempt < this.lastAttempt) this.cut(file);
      }
  }

  /**
   * Records how much of what existed when the page was opened has arrived. At
   * the end none of it waits for later events, unless its process still writes.
   * @param {number} percent
   */
  load(percent) {
    this.loading = percent;
    if (!this.loaded) return;
    this.flows.loaded();
    for (const file of this.files) if (!this.live() || this.over(file)) this.settle(file, Infinity);
    for (const file of this.files) if (file.attempt < this.lastAttempt) this.cut(file);
    this.sortArrows();
  }

  /**
   * Ends what was in progress when an attempt ended: no later one continues it.
   * @param {TraceFile} file
   */
  cut(file) {
    file.cut = true;
    for (const track of file.tracks) track.cut(file.lastEvent);
    this.flows.cutFile(file);
    this.changed = true;
  }

  /**
   * Returns whether it writes no more: it ended, or a later attempt has begun.
   * @param {TraceFile} file
   */
  over(file) { return file.closed || file.attempt < this.lastAttempt; }

  /** @param {TraceFile} file @param {Track} track @param {TraceEvent} event */
  event(file, track, event) {
    const name = file.names[event.name];
    if (STEPLESS.has(name)) event.step = 0;
    if (event.time < this.begin) this.begin = event.time;
    if (event.time > this.last) this.last = event.time;
    if (event.time < file.firstEvent) file.firstEvent = event.time;
    file.lastEvent = event.time;
    if (track.kind === 'device' && event.kind <= KIND.end) this.progress = Math.max(this.progress, event.time);
    switch (event.kind) {
    case KIND.begin: {
      const slice = track.begin(event.time, name, event.step, event.amount);
      if (slice.depth === 0 && track.kind === 'device') this.addTask(slice);
      return;
    }
    case KIND.end: {
      const slice = track.end(event.time, name);
      if (slice && track.kind === 'actor' && slice.depth === 0) track.handled(slice);
      return;
    }
    case KIND.send: this.flows.send(track, name, event); return;
    case KIND.receive: this.flows.receive(track, name, event); return;
    case KIND.counter: {
      if (name.startsWith('progress ')) this.progress = Math.max(this.progress, event.time);
      appendKept(entryOf(this.counters, name, () => []), [event.time, event.amount], KEEP_POINTS);
      return;
    }
    default: track.marks.push({ t: event.time, name, kind: event.kind });
    }
  }

  /** @param {Slice} slice */
  addTask(slice) {
    const known = slice.name === 'move' || !this.calls.size || this.calls.has(slice.name);
    if (!slice.step || !known || !(slice.track.isDevice || this.calls.size)) return;
    // A step that a later attempt repeated belongs to that attempt.
    let calls = this.steps.get(slice.step);
    if (!calls || calls.attempt < slice.track.file.attempt) {
      calls = Object.assign(new Map(), { attempt: slice.track.file.attempt });
      this.steps.set(slice.step, calls);
    }
    if (calls.attempt > slice.track.file.attempt) return;
    entryOf(calls, slice.name, () => []).push(slice);
    if (this.steps.size > KEEP_STEPS) this.steps.delete(this.steps.keys().next().value);
  }

  /**
   * Returns the events that were dropped for newer ones, or were too old for
   * the page, and the first step that has all of its own.
   */
  missing() {
    return { events: this.files.reduce((sum, f) => sum + f.removed, 0),
      wholeFrom: Math.max(1, ...this.files.map((f) => f.wholeFrom)) };
  }
  dropped() { return this.files.reduce((sum, f) => sum + f.dropped, 0); }
  live() { return !!this.status && !this.recorded && !this.part && /^(starting|running|recovering|stopping)$/.test(this.status.state); }
  devices() {
    if (this.devicesOf !== this.tracks.length) {
      this.devicesOf = this.tracks.length;
      this.deviceTracks = this.tracks.filter((t) => t.isDevice)
        .sort((a, b) => Number(a.name.slice(7)) - Number(b.name.slice(7)));
    }
    return this.deviceTracks;
  }
  /** Returns the distinct devices: each attempt has tracks of its own. */
  deviceCount() { return new Set(this.devices().map((d) => d.name)).size; }
  /**
   * Returns whether all calls with devices of a step have begun, and all tasks ended.
   * @param {number} step
   */
  isWhole(step) {
    const calls = this.steps.get(step);
    if (!calls) return false;
    for (const parts of calls.values()) if (parts.some((p) => Number.isNaN(p.e))) return false;
    const wanted = this.graph.calls.filter((c) => c.devices.length);
    return wanted.length ? wanted.every((c) => calls.has(c.name)) : calls.size > 0;
  }
  /** Returns the newest whole step; without one, the newest; 0: none. */
  lastWholeStep() {
    const steps = [...this.steps.keys()].sort((a, b) => b - a);
    return steps.find((s) => this.isWhole(s)) || (steps.at(-1) ?? 0);
  }
  /** @param {number} step */
  stepSpan(step) {
    const parts = [...(this.steps.get(step)?.values() ?? [])].flat();
    if (!parts.length) return null;
    return { b: Math.min(...parts.map((p) => p.b)),
      e: Math.max(...parts.map((p) => (Number.isNaN(p.e) ? this.last : p.e))) };
  }
}
