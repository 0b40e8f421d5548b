'use strict';
// The page's view of trace files (the format of config/trace/trace_writer):
// tracks with slices, and for each process what is read of its file.

const EVENT_BYTES = 48;
const KIND = { begin: 0, end: 1, send: 2, receive: 3, counter: 4, spawn: 5, exit: 6, failure: 7 };
const KEEP_SLICES = 60000;    // per depth of a track
const MAGIC = 0x554f5254;     // "TROU" of "TROUPEv1", the start of a segment

class Track {
  constructor(file, name, kind) {
    this.file = file;
    this.name = name;
    this.kind = kind;           // 'actor' or 'device'
    this.depths = [];           // [depth] -> slices, disjoint, by time
    this.open = [];
    this.marks = [];
    this.received = 0;
    this.forgotten = 0;         // slices dropped for lack of room
    this.handling = new Map();  // actors: message name -> latest durations in us
    this.fetching = new Map();  // flow -> start
    this.fetches = [];          // shards: [start, end] of row fetches
  }
  get isDevice() { return this.kind === 'device' && /^device /.test(this.name); }
  tasks() { return this.depths[0] || []; }
  begin(t, name, step, amount) {
    const depth = this.open.length;
    const slice = { b: t, e: NaN, name, step, amount, depth, track: this };
    const row = this.depths[depth] || (this.depths[depth] = []);
    row.push(slice);
    if (row.length > KEEP_SLICES) this.forgotten += row.splice(0, KEEP_SLICES / 4).length;
    this.open.push(slice);
    return slice;
  }
  end(t, name) {
    if (!this.open.some((s) => s.name === name)) return null; // its start was lost
    for (;;) {
      const slice = this.open.pop();
      slice.e = t;
      if (slice.name === name) return slice;
    }
  }
  // Ends all open slices: the process has ended, or its events up to `t` are
  // missing.
  cut(t) {
    for (const slice of this.open) slice.e = Math.max(slice.b, t);
    this.open = [];
  }
  fetched(flow, t) {
    if (!this.fetching.has(flow)) return;
    this.fetches.push([this.fetching.get(flow), t]);
    this.fetching.delete(flow);
    if (this.fetches.length > 2000) this.fetches.splice(0, 1000);
  }
  handled(slice) {
    const us = this.handling.get(slice.name) || this.handling.set(slice.name, []).get(slice.name);
    us.push((slice.e - slice.b) / 1e3);
    if (us.length > 2000) us.splice(0, 1000);
  }
  // Returns the slices of one depth that touch [from, to].
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
    this.name = name;           // "worker_00_02.events": second attempt
    this.attempt = Number((/_(\d+)\.events$/.exec(name) || [0, 1])[1]);
    // Attempts count their messages from 1 again, so a flow includes the
    // attempt.
    this.flowBits = BigInt(this.attempt) << 64n;
    this.process = '';          // until its first record is read
    this.number = -1;
    this.pid = 0;
    this.offset = 0;            // added to its times, onto the first file's clock
    this.clockError = 0;        // error of the offset; 0: the same clock
    this.bounds = { lowest: -Infinity, highest: Infinity, since: -Infinity };
    this.tracks = [];
    this.names = [];
    this.tracksRead = 0;        // in the segment: each begins with all of them
    this.namesRead = 0;
    this.position = 0;          // events up to here, including removed ones
    this.removed = 0;
    this.wholeFrom = 1;         // steps from here on have all their events
    this.dropped = 0;
    this.closed = false;
    this.cut = false;           // a later attempt has begun, and this one is settled
    this.waiting = [];          // events that others may still precede
    this.lastEvent = -Infinity;
  }
}
