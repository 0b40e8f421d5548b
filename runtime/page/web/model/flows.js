// Messages of a run: a send and a receive with one flow are an arrow. Either
// may be read first, since they are in different files.
import { appendKept, entryOf, firstWhere } from './track.js';

/** @typedef {import('./trace_file.js').TraceEvent} TraceEvent */
/** @typedef {import('./trace_file.js').TraceFile} TraceFile */
/** @typedef {import('./track.js').Track} Track */
/**
 * A message with both ends; `of` is the name of the ask that it replies to, '' if none.
 * @typedef {{ flow: number, t0: number, t1: number, from: Track, to: Track, name: string, bytes: number, step: number, of: string }} Arrow
 */
/**
 * A message whose receiver was not read yet.
 * @typedef {{ t: number, track: Track, name: string, step: number, bytes: number, ask?: Arrow | null, handled?: undefined }} Send
 */
/**
 * A message whose sender was not read yet.
 * @typedef {{ t: number, track: Track, name: string, step: number, ask?: Arrow | null, handled: true }} Receive
 */
/**
 * A message in flight, with the actor that will handle it.
 * @typedef {Send & { to: Track | null }} Flying
 */
/**
 * The cost of one kind of message; times in us, of the newest ones.
 * @typedef {{ count: number, bytes: number, queue: number[], wire: number[] }} Cost
 */

const KEEP_ARROWS = 150000;
const KEEP_FLOWS = 40000;     // with one end, or without a reply
const LOADING_FLOWS = 500000; // while files arrive one faster than the other
const KEEP_TIMES = 4000;
const LONG_NS = 1e9;          // longer arrows are few, and kept apart
// A flow's number is 64 bits: the process, its counter, and whether it is a
// reply. Attempts count from 1 again, so the attempt belongs to the key.
const COUNTER = 2 ** 36, REPLY = COUNTER, KEYS = 2 * COUNTER;

/** @type {(flow: number) => boolean} */
export const isReply = (flow) => flow % KEYS >= COUNTER;
/**
 * Returns the flow of the reply to an ask, and of the ask of a reply.
 * @type {(flow: number) => number}
 */
export const replyOf = (flow) => flow + REPLY;
/** @type {(flow: number) => number} */
const askOf = (flow) => flow - REPLY;

/**
 * Drops many entries at once: a map that loses its oldest entry again and again
 * searches for it among all deleted ones. Returns how many it dropped.
 * @param {Map<number, unknown>} map @param {number} most
 */
function forgetOldest(map, most) {
  if (map.size <= most) return 0;
  const lost = map.size - most / 2;
  let left = lost;
  for (const key of map.keys()) {
    if (!left--) break;
    map.delete(key);
  }
  return lost;
}

export class Flows {
  constructor() {
    /** @type {Arrow[]} */
    this.arrows = [];           // by the time of sending
    /** @type {Arrow[]} */
    this.fresh = [];            // not sorted in yet
    /** @type {Map<number, Send | Receive>} */
    this.sends = new Map();     // flow -> send that was not handled yet
    /** @type {Map<number, Arrow>} */
    this.asks = new Map();      // flow -> ask without a reply
    /** @type {Map<string, number>} */
    this.askTimes = new Map();  // message name -> longest time to its reply, ns
    /** @type {Set<string>} */
    this.answered = new Set();  // names of messages that get replies
    /** @type {Map<string, Cost>} */
    this.kinds = new Map();     // message name -> cost
    /** @type {Map<Track, Map<string, Map<Track, number>>>} */
    this.readers = new Map();   // sender -> message name -> receiver -> last sent
    /** @type {Map<number, number>} */
    this.sources = new Map();   // attempt and process of a flow -> small number
    /** @type {Arrow[]} */
    this.long = [];             // arrows longer than LONG_NS
    this.forgotten = 0;         // arrows dropped for lack of room
    this.unmatched = 0;
    this.most = LOADING_FLOWS;
  }

  /** All that existed is here: what has one end now will hardly get the other. */
  loaded() { this.most = KEEP_FLOWS; }

  /**
   * Returns the key of 64 bits, given as two halves; 0: none.
   * @param {number} attempt @param {number} low @param {number} high
   */
  key(attempt, low, high) {
    if (!low && !high) return 0;
    const source = entryOf(this.sources, attempt * 2 ** 23 + ((high >>> 8) & 0x7fffff), () => this.sources.size);
    return source * KEYS + (high >>> 31) * REPLY + (high & 0xf) * 2 ** 32 + low;
  }

  /** @param {Track} track @param {string} name @param {TraceEvent} event */
  send(track, name, event) {
    ++track.sent;
    const other = this.sends.get(event.flow);
    const ask = isReply(event.flow) ? this.asks.get(askOf(event.flow)) || (other && other.ask) : null;
    /** @type {Send} */
    const end = { t: event.time, track, name, step: event.step, bytes: event.amount, ask };
    if (other && other.handled) {
      this.sends.delete(event.flow);
      this.arrow(event.flow, end, other);
    } else {
      this.sends.set(event.flow, end);
    }
    if (isReply(event.flow)) track.fetched(askOf(event.flow), event.time);
    if (!ask) return;
    this.answered.add(ask.name);
    this.askTimes.set(ask.name, Math.max(this.askTimes.get(ask.name) || 0, event.time - ask.t0));
    this.asks.delete(askOf(event.flow));
  }

  /** @param {Track} track @param {string} name @param {TraceEvent} event */
  receive(track, name, event) {
    ++track.received;
    if (name === 'fetch') track.fetching.set(event.flow, event.time);
    const ask = isReply(event.flow) && (this.sends.get(askOf(event.flow)) || this.asks.get(askOf(event.flow)));
    if (ask) this.answered.add(ask.name);
    const other = this.sends.get(event.flow);
    if (other && !other.handled) {
      this.sends.delete(event.flow);
      this.arrow(event.flow, other, { t: event.time, track });
    } else {
      this.sends.set(event.flow, { t: event.time, track, name, step: event.step, handled: true });
    }
  }

  /** @param {number} flow @param {Send} from @param {Pick<Receive, 't' | 'track' | 'ask'>} to */
  arrow(flow, from, to) {
    const ask = from.ask || to.ask;
    const arrow = { flow, t0: from.t, t1: to.t, from: from.track, to: to.track, name: from.name, bytes: from.bytes,
      step: ask && !ask.step ? 0 : from.step, // a reply to what belongs to no step belongs to none
      of: ask ? ask.name : '' };
    this.fresh.push(arrow);
    if (this.fresh.length > KEEP_ARROWS / 8) this.sortArrows(); // a hidden page draws no frames
    if (!isReply(flow)) {
      const reply = this.sends.get(replyOf(flow));
      if (reply) reply.ask = arrow; else this.asks.set(flow, arrow);
    }
    if (arrow.t1 - arrow.t0 > LONG_NS) appendKept(this.long, arrow, KEEP_TIMES);
    forgetOldest(this.asks, this.most);
    this.unmatched += forgetOldest(this.sends, this.most);
    const sent = entryOf(this.readers, arrow.from, () => new Map());
    entryOf(sent, arrow.name, () => new Map()).set(arrow.to, arrow.t0);
    this.count(arrow);
  }

  /**
   * Sorts what arrived since the last call into the arrows that were sent
   * later: files deliver theirs in parallel or one after the other.
   */
  sortArrows() {
    if (!this.fresh.length) return;
    const first = this.fresh.reduce((t, a) => Math.min(t, a.t0), Infinity);
    const lo = firstWhere(this.arrows, (a) => a.t0 > first);
    const tail = this.arrows.splice(lo).concat(this.fresh).sort((a, b) => a.t0 - b.t0);
    this.fresh = [];
    for (const arrow of tail) this.arrows.push(arrow);
    if (this.arrows.length > KEEP_ARROWS)
      this.forgotten += this.arrows.splice(0, this.arrows.length - KEEP_ARROWS * 3 / 4).length;
  }

  /**
   * Returns the arrows that touch [from, to], in the order of sending.
   * @param {number} from @param {number} to
   */
  arrowsIn(from, to) {
    const first = firstWhere(this.arrows, (a) => a.t0 >= from - LONG_NS);
    const seen = this.long.filter((a) => a.t0 < from - LONG_NS && a.t1 >= from);
    for (let i = first; i < this.arrows.length && this.arrows[i].t0 <= to; ++i)
      if (this.arrows[i].t1 >= from) seen.push(this.arrows[i]);
    return seen;
  }

  /**
   * Within a process a message only waits in a mailbox; between two it is on
   * the wire as well.
   * @param {Arrow} arrow
   */
  count(arrow) {
    const cost = entryOf(this.kinds, arrow.name, () => ({ count: 0, bytes: 0, queue: [], wire: [] }));
    ++cost.count;
    cost.bytes += arrow.bytes;
    appendKept(arrow.from.file === arrow.to.file ? cost.queue : cost.wire, Math.max(0.1, (arrow.t1 - arrow.t0) / 1e3), KEEP_TIMES);
  }

  /**
   * Ends what was in progress in a file that no later one continues.
   * @param {TraceFile} file
   */
  cutFile(file) {
    for (const [flow, end] of this.sends)
      if (end.track.file === file) { this.sends.delete(flow); ++this.unmatched; }
    for (const [flow, ask] of this.asks)
      if (ask.from.file === file) this.asks.delete(flow);
  }

  /**
   * Returns messages in flight: sent, not handled, of a process that still
   * writes. Their receivers are not in the trace until they handle them: a
   * reply is for the requester, another message for the reader of its kind that
   * has waited longest for one from this sender.
   * @param {(file: TraceFile) => boolean} isOver @returns {Flying[]}
   */
  inFlight(isOver) {
    /** @type {[number, Send][]} */
    const flying = [];
    for (const [flow, end] of this.sends) if (!end.handled && !isOver(end.track.file)) flying.push([flow, end]);
    /** @type {Map<string, number>} */
    const taken = new Map();
    return flying.sort((a, b) => a[1].t - b[1].t).map(([flow, send]) => {
      const ask = isReply(flow) && this.asks.get(askOf(flow));
      if (ask) return { ...send, to: ask.from };
      const readers = [...(this.readers.get(send.track)?.get(send.name) ?? [])];
      const key = `${send.track.file.process} ${send.track.name} ${send.name}`;
      const nth = taken.get(key) || 0;
      taken.set(key, nth + 1);
      const next = readers.filter((r) => !isOver(r[0].file)).sort((a, b) => a[1] - b[1])[nth];
      return { ...send, to: next ? next[0] : null };
    });
  }
}
