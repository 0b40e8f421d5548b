// What is known of one process's trace in one attempt of the run.

/** @typedef {import('./track.js').Track} Track */
/**
 * An event as it was read; `track` and `name` are indices in its file.
 * @typedef {{ time: number, kind: number, flow: number, amount: number, track: number, name: number, step: number }} TraceEvent
 */

export class TraceFile {
  /** @param {string} name */
  constructor(name) {
    this.name = name;           // "worker_00_02.events": second attempt
    this.attempt = Number((/_(\d+)\.events$/.exec(name) || [0, 1])[1]);
    this.process = '';          // until its first record is read
    this.number = -1;
    this.pid = 0;
    this.offset = 0;            // added to its times, onto the first file's clock
    this.clockError = 0;        // error of the offset; 0: the same clock
    this.bounds = { lowest: -Infinity, highest: Infinity, since: -Infinity };
    /** @type {Track[]} */
    this.tracks = [];
    /** @type {string[]} */
    this.names = [];
    this.tracksRead = 0;        // in the segment: each begins with all of them
    this.namesRead = 0;
    this.position = 0;          // events up to here, including removed ones
    this.removed = 0;
    this.wholeFrom = 1;         // steps from here on have all their events
    this.dropped = 0;
    this.closed = false;
    this.cut = false;           // a later attempt has begun, and this one is settled
    /** @type {TraceEvent[]} */
    this.waiting = [];          // events that others may still precede
    this.newest = -Infinity;    // of all that arrived
    this.firstEvent = Infinity; // of those that were handled
    this.lastEvent = -Infinity;
    this.seen = 0;              // when its last records arrived here
  }
}
