// Messages as they travel: which are under way at a time, what the last second
// carried, what the mailboxes hold, which asks are stalled. Each mark on the map
// of actors comes from here, and each is an event of the trace.
import { openWaits } from './reasons.js';
import { firstWhere, entryOf } from './track.js';

/** @typedef {import('./flows.js').Arrow} Arrow */
/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./track.js').Track} Track */
/** @typedef {import('./metrics.js').Point} Point */
/** @typedef {{ arrow: Arrow, share: number }} Dot */
/** @typedef {{ from: Track, to: Track, count: number, bytes: number, names: Map<string, number> }} Rate */
/** @typedef {{ from: string, to: string, bytes: number }} Pull */

const STALL_NS = 3e9;         // an ask is stalled after at least this,
const STALL_TIMES = 4;        // and after this many times the longest of its kind
const UNKNOWN_STALL_NS = 10e9; // none of its kind was answered yet

/**
 * Returns the messages under way at `t`, each with the share of its way. One
 * that took less than `least` ns is shown for that long, from its sending: else
 * no frame would have it.
 * @param {Model} model @param {number} t @returns {Dot[]}
 */
export function travelling(model, t, least = 0) {
  /** @type {Dot[]} */
  const found = [];
  for (const a of model.flows.arrowsIn(t - least, t)) {
    const end = Math.max(a.t1, a.t0 + least);
    if (a.t0 <= t && t < end) found.push({ arrow: a, share: (t - a.t0) / (end - a.t0) });
  }
  return found;
}

/**
 * Returns messages and bytes from actor to actor that were sent in (t - window, t].
 * @param {Model} model @param {number} t @returns {Rate[]}
 */
export function rates(model, t, window = 1e9) {
  const { arrows } = model.flows;
  /** @type {Map<Track, Map<Track, Rate>>} */
  const pairs = new Map();
  for (let i = firstWhere(arrows, (a) => a.t0 > t - window); i < arrows.length && arrows[i].t0 <= t; ++i) {
    const a = arrows[i];
    const pair = entryOf(entryOf(pairs, a.from, () => new Map()), a.to, () => ({ from: a.from, to: a.to, count: 0, bytes: 0, names: new Map() }));
    ++pair.count;
    pair.bytes += a.bytes || 0;
    pair.names.set(a.name, (pair.names.get(a.name) || 0) + 1);
  }
  return [...pairs.values()].flatMap((to) => [...to.values()]);
}

/**
 * Returns how many messages each actor's mailbox holds at `t`.
 * @param {Model} model @param {number} t @param {boolean} [isNow] @returns {Map<Track, number>}
 */
export function mailboxes(model, t, isNow) {
  /** @type {Map<Track, number>} */
  const held = new Map();
  /** @type {(track: Track | null) => void} */
  const add = (track) => { if (track) held.set(track, (held.get(track) || 0) + 1); };
  for (const { arrow } of travelling(model, t)) add(arrow.to);
  if (isNow) for (const send of model.inFlight()) add(send.to);
  return held;
}

/**
 * Returns the asks that wait far longer than their kind ever did.
 * @param {Model} model
 */
export function stalledAsks(model) {
  return openWaits(model).filter((ask) => {
    const longest = model.flows.askTimes.get(ask.name);
    const limit = longest === undefined ? UNKNOWN_STALL_NS : Math.max(STALL_NS, STALL_TIMES * longest);
    return model.last - ask.t0 > limit;
  });
}

/**
 * Returns bytes of rows and weights that processes pulled in (t - window, t].
 * @param {Model} model @param {number} t @returns {Pull[]}
 */
export function pulledBytes(model, t, window = 1e9) {
  /** @type {(points: Point[], time: number) => number} */
  const at = (points, time) => { const i = firstWhere(points, (p) => p[0] > time); return i ? points[i - 1][1] : 0; };
  /** @type {Pull[]} */
  const found = [];
  for (const [name, points] of model.counters) {
    const ends = /^pulled_bytes (.+) > (.+)$/.exec(name);
    if (!ends) continue;
    const bytes = at(points, t) - at(points, t - window);
    if (bytes > 0) found.push({ from: ends[1], to: ends[2], bytes });
  }
  return found;
}

/**
 * Returns the time of the next or last end of a message after or before `t`.
 * @param {Model} model @param {number} t @param {boolean} forward
 */
export function nextEvent(model, t, forward) {
  /** @type {number | null} */
  let best = null;
  for (const a of model.flows.arrowsIn(t - 1e9, t + 1e9))
    for (const end of [a.t0, a.t1])
      if (forward ? end > t && (best === null || end < best) : end < t && (best === null || end > best)) best = end;
  return best;
}
