// A row of the trace: slices by depth, and what is counted about them.

/** @typedef {import('./trace_file.js').TraceFile} TraceFile */
/**
 * A task, a phase of one or a handled message: [b, e), e is NaN while it runs.
 * @typedef {{ b: number, e: number, name: string, outer: string, step: number, amount: number, depth: number, track: Track, why?: string }} Slice
 */

const KEEP_SLICES = 60000;    // per depth of a track
const KEEP_TIMES = 2000;      // of one kind of message

/**
 * Returns the first index of a sorted list for which `after` holds.
 * @template T @param {T[]} list @param {(entry: T) => boolean} after
 */
export function firstWhere(list, after, lo = 0) {
  let hi = list.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (after(list[mid])) hi = mid; else lo = mid + 1;
  }
  return lo;
}

/**
 * Appends to a list that keeps its newest entries; returns how many it lost.
 * @template T @param {T[]} list @param {T} entry @param {number} most
 */
export function appendKept(list, entry, most) {
  list.push(entry);
  return list.length > most ? list.splice(0, Math.ceil(most / 4)).length : 0;
}

/**
 * Returns the map's entry, made on first use.
 * @template K, V @template {V} W
 * @param {Map<K, V>} map @param {K} key @param {() => W} make @returns {V}
 */
export function entryOf(map, key, make) {
  let entry = map.get(key);
  if (entry === undefined) map.set(key, entry = make());
  return entry;
}

export class Track {
  /** @param {TraceFile} file @param {string} name @param {'actor' | 'device'} kind */
  constructor(file, name, kind) {
    this.file = file;
    this.name = name;
    this.kind = kind;           // 'actor' or 'device'
    this.isDevice = kind === 'device' && /^device /.test(name);
    /** @type {Slice[][]} */
    this.depths = [];           // [depth] -> slices, disjoint, by time
    /** @type {Slice[]} */
    this.open = [];
    /** @type {{ t: number, name: string, kind: number }[]} */
    this.marks = [];
    this.received = 0;
    this.sent = 0;
    this.forgotten = 0;         // slices dropped for lack of room
    /** @type {Map<string, number[]>} */
    this.handling = new Map();  // actors: message name -> latest durations in us
    /** @type {Map<number, number>} */
    this.fetching = new Map();  // flow -> start
    /** @type {[number, number][]} */
    this.fetches = [];          // shards: [start, end] of row fetches
  }
  tasks() { return this.depths[0] || []; }
  /** @param {number} t @param {string} name @param {number} step @param {number} amount */
  begin(t, name, step, amount) {
    const depth = this.open.length;
    const outer = depth ? this.open[0].name : name; // a phase has its task's hue
    /** @type {Slice} */
    const slice = { b: t, e: NaN, name, outer, step, amount, depth, track: this };
    const row = this.depths[depth] || (this.depths[depth] = []);
    this.forgotten += appendKept(row, slice, KEEP_SLICES);
    this.open.push(slice);
    return slice;
  }
  /** @param {number} t @param {string} name @returns {Slice | null} */
  end(t, name) {
    if (!this.open.some((s) => s.name === name)) return null; // its start was lost
    for (;;) {
      const slice = /** @type {Slice} */ (this.open.pop());
      slice.e = t;
      if (slice.name === name) return slice;
    }
  }
  /**
   * Ends all open slices: the process has ended, or its events up to `t` are
   * missing.
   * @param {number} t
   */
  cut(t) {
    for (const slice of this.open) slice.e = Math.max(slice.b, t);
    this.open = [];
  }
  /** @param {number} flow @param {number} t */
  fetched(flow, t) {
    const start = this.fetching.get(flow);
    if (start === undefined) return;
    appendKept(this.fetches, [start, t], KEEP_TIMES);
    this.fetching.delete(flow);
  }
  /** @param {Slice} slice */
  handled(slice) {
    appendKept(entryOf(this.handling, slice.name, () => []), (slice.e - slice.b) / 1e3, KEEP_TIMES);
  }
  /**
   * Returns the slices of one depth that touch [from, to].
   * @param {number} depth @param {number} from @param {number} to
   */
  visible(depth, from, to) {
    const row = this.depths[depth] || [];
    const first = firstWhere(row, (s) => !(s.e < from)); // NaN: it runs
    return { row, first, last: firstWhere(row, (s) => s.b > to, first) };
  }
}
