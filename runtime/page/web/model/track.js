// A row of the trace: slices by depth, and what is counted about them.

const KEEP_SLICES = 60000;    // per depth of a track
const KEEP_TIMES = 2000;      // of one kind of message

/** Returns the first index of a sorted list for which `after` holds. */
export function firstWhere(list, after, lo = 0) {
  let hi = list.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (after(list[mid])) hi = mid; else lo = mid + 1;
  }
  return lo;
}

/** Appends to a list that keeps its newest entries; returns how many it lost. */
export function appendKept(list, entry, most) {
  list.push(entry);
  return list.length > most ? list.splice(0, Math.ceil(most / 4)).length : 0;
}

/** Returns the map's entry, made on first use. */
export function entryOf(map, key, make) {
  let entry = map.get(key);
  if (entry === undefined) map.set(key, entry = make());
  return entry;
}

export class Track {
  constructor(file, name, kind) {
    this.file = file;
    this.name = name;
    this.kind = kind;           // 'actor' or 'device'
    this.isDevice = kind === 'device' && /^device /.test(name);
    this.depths = [];           // [depth] -> slices, disjoint, by time
    this.open = [];
    this.marks = [];
    this.received = 0;
    this.sent = 0;
    this.forgotten = 0;         // slices dropped for lack of room
    this.handling = new Map();  // actors: message name -> latest durations in us
    this.fetching = new Map();  // flow -> start
    this.fetches = [];          // shards: [start, end] of row fetches
  }
  tasks() { return this.depths[0] || []; }
  begin(t, name, step, amount) {
    const depth = this.open.length;
    const outer = depth ? this.open[0].name : name; // a phase has its task's hue
    const slice = { b: t, e: NaN, name, outer, step, amount, depth, track: this };
    const row = this.depths[depth] || (this.depths[depth] = []);
    this.forgotten += appendKept(row, slice, KEEP_SLICES);
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
  /**
   * Ends all open slices: the process has ended, or its events up to `t` are
   * missing.
   */
  cut(t) {
    for (const slice of this.open) slice.e = Math.max(slice.b, t);
    this.open = [];
  }
  fetched(flow, t) {
    if (!this.fetching.has(flow)) return;
    appendKept(this.fetches, [this.fetching.get(flow), t], KEEP_TIMES);
    this.fetching.delete(flow);
  }
  handled(slice) {
    appendKept(entryOf(this.handling, slice.name, () => []), (slice.e - slice.b) / 1e3, KEEP_TIMES);
  }
  /** Returns the slices of one depth that touch [from, to]. */
  visible(depth, from, to) {
    const row = this.depths[depth] || [];
    const first = firstWhere(row, (s) => !(s.e < from)); // NaN: it runs
    return { row, first, last: firstWhere(row, (s) => s.b > to, first) };
  }
}
