// What is known of one process's trace in one attempt of the run.
import { firstWhere } from './track.js';

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
    this.offset = 0;            // added to its newest times, onto the first file's clock
    this.clockError = 0;        // error of the offset; 0: the same clock, -1: unknown
    /** @type {[from: number, add: number][]} */
    this.clocks = [];           // own times, what is added from there on: as the server sent them
    this.offsetEnd = Infinity;  // of the own times that `offset` is for
    this.offsetBegin = -Infinity;
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

  /**
   * Takes what is added to own times after `from`, until the next such time.
   * @param {number} from @param {number} add @param {number} error
   */
  setClock(from, add, error) {
    while (this.clocks.length && this.clocks[this.clocks.length - 1][0] >= from) this.clocks.pop();
    this.clocks.push([from, add]);
    this.clockError = error;
    this.seekClock(from);
  }

  /** @param {number} own */
  seekClock(own) {
    const next = firstWhere(this.clocks, (c) => c[0] > own), at = Math.max(0, next - 1);
    this.offset = this.clocks[at][1];
    this.offsetBegin = at ? this.clocks[at][0] : -Infinity;
    this.offsetEnd = next < this.clocks.length ? this.clocks[next][0] : Infinity;
  }

  /**
   * Returns the time on the first file's clock.
   * @param {number} own
   */
  aligned(own) {
    if (own < this.offsetBegin || own >= this.offsetEnd) this.seekClock(own);
    return own + this.offset;
  }
}
