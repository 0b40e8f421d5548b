// The map of actors: who is in which process, and messages as they travel. Each
// moving dot is one message of the trace. Live, it follows the newest events; a
// recorded step is played in slow motion, message by message if wanted.
import { mapLayout } from '../model/map_layout.js';
import { mailboxes, nextEvent, pulledBytes, rates, stalledAsks, travelling } from '../model/traffic.js';
import { isReply } from '../model/flows.js';
import { openWaits } from '../model/reasons.js';
import { bytesText, countOf, countText, roughTime, timeText } from '../model/text.js';
import { entryOf } from '../model/track.js';
import { SvgBrush } from './brush.js';
import { byId, inks, say, sized, tip } from './dom.js';
import { fitted } from './paint.js';

/** @typedef {import('../model/map_layout.js').Box} Box */
/** @typedef {import('../model/map_layout.js').Place} Place */
/** @typedef {import('../model/traffic.js').Dot} Dot */
/** @typedef {import('../model/flows.js').Arrow} Arrow */
/** @typedef {import('../model/model.js').Model} Model */
/** @typedef {import('../model/track.js').Track} Track */
/** @typedef {import('./brush.js').Brush} Brush */
/**
 * A line between two places, with what it carried.
 * @typedef {{ a: Place, b: Place, count: number, bytes: number, names: Map<string, number> }} MapEdge
 */
/** @typedef {[x0: number, y0: number, x1: number, y1: number, x2: number, y2: number, x3: number, y3: number]} Curve */

const LIVE_DOT_MS = 450;      // a message that was quicker is shown for this long
const LIVE_LAG_NS = 120e6;    // files are written every 50 ms
const STEP_SECONDS = 12;      // a step is played in about this time
const DOTS_APART = 10;        // more on one edge: their number
const RATES_MS = 150;         // between two counts of the last second

export class ActorMap {
  /**
   * @param {HTMLCanvasElement} canvas @param {Model} model
   * @param {{ actor: (name: string) => void, follow: (arrow: Arrow) => void }} hooks
   */
  constructor(canvas, model, hooks) {
    this.canvas = canvas;
    this.model = model;
    this.hooks = hooks;
    this.step = 0;                // that is played; 0: live
    this.span = { b: 0, e: 0 };   // of the step
    this.t = 0;
    this.speed = 0;
    this.playing = false;
    this.dirty = false;
    /** @type {number | undefined} */
    this.before = undefined;      // the last frame
    this.layoutKey = '';
    this.drawnSize = '';
    this.ink = inks();
    /** @type {Box[]} */
    this.boxes = [];
    /** @type {Place[]} */
    this.places = [];
    /** @type {Map<Track, Place>} */
    this.placeOf = new Map();
    this.ratesAt = -Infinity;
    /** @type {Map<string, MapEdge>} */
    this.edges = new Map();
    this.inside = 0;              // messages within a place
    /** @type {Map<Track, number>} */
    this.held = new Map();
    /** @type {Arrow[]} */
    this.waits = [];
    /** @type {Arrow[]} */
    this.stalled = [];
    /** @type {import('../model/traffic.js').Pull[]} */
    this.pulled = [];
    /** @type {Dot[]} */
    this.dots = [];
    this.unseen = 0;              // dots within a place
    /** @type {Arrow[]} */
    this.request = [];
    canvas.addEventListener('pointermove', (e) => this.hover(e));
    canvas.addEventListener('pointerleave', () => tip(''));
    canvas.addEventListener('click', (e) => this.click(e));
  }

  get live() { return !this.step; }

  /**
   * Goes to a recorded step; 0: live.
   * @param {number} step
   */
  show(step, playing = false) {
    const span = step && this.model.stepSpan(step);
    this.step = span ? step : 0;
    this.playing = playing;
    if (span) {
      this.span = span;
      this.t = span.e; // all that it sent; play begins at its start
      this.speed = (span.e - span.b) / (STEP_SECONDS * 1e9);
    }
    this.ratesAt = -Infinity;
    this.dirty = true;
  }
  play() {
    if (!this.step) this.show(this.model.lastWholeStep());
    if (!this.step) return;
    if (!this.playing && this.t >= this.span.e) this.t = this.span.b;
    this.playing = !this.playing;
    this.dirty = true;
  }
  /**
   * Goes to the next (or last) time at which a message is sent or handled.
   * @param {boolean} forward
   */
  hop(forward) {
    if (!this.step) this.show(this.model.lastWholeStep());
    if (!this.step) return;
    this.playing = false;
    const next = nextEvent(this.model, this.t, forward);
    if (next !== null) this.t = Math.max(this.span.b, Math.min(this.span.e, next));
    this.dirty = true;
  }
  /** @param {number} share */
  seek(share) {
    if (!this.step) this.show(this.model.lastWholeStep());
    if (!this.step) return;
    this.playing = false;
    this.t = this.span.b + (this.span.e - this.span.b) * share;
    this.dirty = true;
  }

  /**
   * Marks the hops of one request, in their order; none: nothing is marked.
   * @param {Arrow[]} arrows
   */
  follow(arrows) {
    this.request = arrows;
    if (arrows.length && arrows[0].step && this.step !== arrows[0].step) this.show(arrows[0].step);
    this.dirty = true;
  }

  /**
   * Advances the clock of what is shown.
   * @param {number} now
   */
  advance(now) {
    const passed = Math.min(100, now - (this.before ?? now)) * 1e6;
    this.before = now;
    if (this.step) {
      if (!this.playing) return;
      this.t = Math.min(this.span.e, this.t + passed * this.speed);
      this.playing = this.t < this.span.e;
      return;
    }
    const newest = this.model.last - LIVE_LAG_NS;
    this.t = this.model.live() ? Math.max(newest - 5e8, Math.min(this.model.last, this.t + passed)) : this.model.last;
    if (this.t < newest - 4e8) this.t = newest;
  }

  get least() { return this.step ? 0.25 * 1e9 * this.speed : this.model.live() ? LIVE_DOT_MS * 1e6 : 0; }

  /** @param {number} width @param {number} height */
  layout(width, height) {
    const key = `${width} ${height} ${this.model.tracks.length} ${this.model.tracks.reduce((n, t) => n + (t.sent || t.received ? 1 : 0), 0)} ${this.model.files.filter((f) => f.process).length}`;
    if (key === this.layoutKey) return;
    this.layoutKey = key;
    ({ boxes: this.boxes, places: this.places, placeOf: this.placeOf } = mapLayout(this.model, width, height));
    this.ratesAt = -Infinity;
  }

  /**
   * Counts the last second (of a step: all of it so far), by edge of the map.
   * @param {number} now
   */
  count(now) {
    if (now - this.ratesAt < RATES_MS && !this.dirty) return;
    this.ratesAt = now;
    const window = this.step ? this.t - this.span.b : 1e9;
    this.edges = new Map();
    this.inside = 0;
    for (const [from, names] of this.model.flows.readers)
      for (const readers of names.values())
        for (const to of readers.keys()) this.edge(from, to);
    for (const pair of rates(this.model, this.t, window)) {
      const edge = this.edge(pair.from, pair.to);
      if (!edge) { this.inside += pair.count; continue; }
      edge.count += pair.count;
      edge.bytes += pair.bytes;
      for (const [name, n] of pair.names) edge.names.set(name, (edge.names.get(name) || 0) + n);
    }
    this.held = mailboxes(this.model, this.t, this.live && this.model.live());
    this.waits = openWaits(this.model);
    this.stalled = this.live && this.model.live() ? stalledAsks(this.model) : [];
    this.pulled = pulledBytes(this.model, this.t, window);
  }

  /** @param {Track} from @param {Track} to @returns {MapEdge | null} */
  edge(from, to) {
    const a = this.placeOf.get(from), b = this.placeOf.get(to);
    if (!a || !b || a === b) return null;
    return entryOf(this.edges, `${a.x},${a.y}>${b.x},${b.y}`, () => ({ a, b, count: 0, bytes: 0, names: new Map() }));
  }

  /**
   * Draws if something changed; returns whether it did.
   * @param {number} now
   */
  draw(now) {
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    if (!width || !height || !(this.model.last > 0)) return false;
    this.layout(width, height);
    this.advance(now);
    const moves = this.playing || (this.live && this.model.live());
    const size = `${width} ${height}`;
    if (!moves && !this.dirty && size === this.drawnSize) return false;
    this.count(now);
    this.dirty = false;
    this.drawnSize = size;
    this.ink = inks();
    this.paint(sized(this.canvas, height));
    this.say();
    return true;
  }

  /** @param {Brush} g */
  paint(g) {
    g.font = '10.5px system-ui, sans-serif';
    for (const box of this.boxes) {
      g.fillStyle = this.ink.soft;
      g.fillRect(box.x, box.y, box.w, box.h);
      g.fillStyle = this.ink.fore;
      g.fillText(fitted(g, box.label, box.w - 10), box.x + 6, box.y + 9);
    }
    this.paintPulled(g);
    for (const edge of this.edges.values()) this.paintEdge(g, edge);
    for (const place of this.places) this.paintPlace(g, place);
    this.paintStalled(g);
    this.paintRequest(g);
    this.paintDots(g);
  }

  /**
   * Rows and weights between two processes: a broad band and its rate.
   * @param {Brush} g
   */
  paintPulled(g) {
    for (const pull of this.pulled) {
      const a = this.boxes.find((b) => b.process === pull.from), b = this.boxes.find((box) => box.process === pull.to);
      if (!a || !b || a === b) continue;
      const y = Math.min(a.y + a.h, b.y + b.h) - 7, x0 = a.x + a.w / 2, x1 = b.x + b.w / 2;
      g.globalAlpha = 0.25;
      g.strokeStyle = this.ink.good;
      g.lineWidth = 3 + Math.min(7, Math.log10(pull.bytes + 1));
      g.beginPath();
      g.moveTo(x0, y);
      g.lineTo(x1, y);
      g.stroke();
      g.globalAlpha = 1;
      g.lineWidth = 1;
    }
  }

  /**
   * The four points of an edge's curve: from the side of a pill that faces the
   * other; within one box, around the left.
   * @param {MapEdge} edge @returns {Curve}
   */
  curve(edge) {
    const { a, b } = edge;
    if (a.box === b.box) {
      const out = Math.min(a.x, b.x) - 7 - Math.min(26, Math.abs(a.y - b.y) * 0.16);
      return [a.x, a.y, out, a.y, out, b.y, b.x, b.y];
    }
    const right = a.x + a.w / 2 < b.x + b.w / 2;
    const x0 = right ? a.x + a.w : a.x, x1 = right ? b.x : b.x + b.w, half = (x1 - x0) / 2;
    return [x0, a.y, x0 + half, a.y, x1 - half, b.y, x1, b.y];
  }
  /** @param {MapEdge} edge @param {number} share */
  point(edge, share) {
    const [x0, y0, x1, y1, x2, y2, x3, y3] = this.curve(edge), r = 1 - share;
    /** @type {(p: number, q: number, u: number, v: number) => number} */
    const at = (p, q, u, v) => r ** 3 * p + 3 * r * r * share * q + 3 * r * share * share * u + share ** 3 * v;
    return [at(x0, x1, x2, x3), at(y0, y1, y2, y3)];
  }
  /** @param {Brush} g @param {MapEdge} edge */
  strokeCurve(g, edge) {
    const [x0, y0, ...rest] = this.curve(edge);
    g.beginPath();
    g.moveTo(x0, y0);
    g.bezierCurveTo(...rest);
    g.stroke();
  }
  /** @param {Brush} g @param {MapEdge} edge */
  paintEdge(g, edge) {
    g.globalAlpha = edge.count ? 0.5 : 0.16;
    g.strokeStyle = edge.count ? this.ink.accent : this.ink.quiet;
    g.lineWidth = edge.count ? 0.6 + Math.min(3, Math.log10(edge.count + 1)) : 0.5;
    this.strokeCurve(g, edge);
    g.globalAlpha = 1;
    g.lineWidth = 1;
  }

  /** @param {Place} place */
  heldBy(place) { return place.tracks.reduce((n, t) => n + (this.held.get(t) || 0), 0); }
  /**
   * A pill, which fills with what the mailbox holds; a dot for a folded process.
   * @param {Brush} g @param {Place} place
   */
  paintPlace(g, place) {
    const held = this.heldBy(place), { x, y, w } = place;
    if (!w) {
      g.fillStyle = held ? this.ink.accent : this.ink.soft;
      g.strokeStyle = held ? this.ink.accent : this.ink.quiet;
      g.beginPath();
      g.arc(x, y, 5, 0, 2 * Math.PI);
      g.fill();
      g.stroke();
      g.fillStyle = this.ink.quiet;
      if (place.isNamed) g.fillText(place.name, x + 8, y);
      return;
    }
    g.fillStyle = this.ink.back;
    g.beginPath();
    g.roundRect(x, y - 6, w, 12, 4);
    g.fill();
    if (held) {
      g.globalAlpha = 0.3;
      g.fillStyle = this.ink.accent;
      g.fillRect(x, y - 6, w * Math.min(1, Math.log2(held + 1) / 6), 12);
      g.globalAlpha = 1;
    }
    g.fillStyle = held ? this.ink.fore : this.ink.quiet;
    g.fillText(fitted(g, held > 1 ? `${held} ${place.label}` : place.label, w - 6), x + 4, y);
  }

  /**
   * A stalled ask glows, and says who waits for whom.
   * @param {Brush} g
   */
  paintStalled(g) {
    for (const ask of this.stalled.slice(0, 6)) {
      const edge = this.edge(ask.from, ask.to);
      if (!edge) continue;
      g.strokeStyle = this.ink.bad;
      for (const [wide, alpha] of [[9, 0.18], [5, 0.3], [2, 1]]) {
        g.lineWidth = wide;
        g.globalAlpha = alpha;
        this.strokeCurve(g, edge);
      }
      g.lineWidth = 1;
      const text = `${ask.name} ${roughTime(this.model.last - ask.t0)}`, wide = g.measureText(text).width + 8;
      const [middle, y] = this.point(edge, 0.5), x = Math.max(wide / 2, Math.min(this.canvas.clientWidth - wide / 2, middle));
      g.fillStyle = this.ink.bad;
      g.fillRect(x - wide / 2, y - 8, wide, 15);
      g.fillStyle = this.ink.back;
      g.fillText(text, x - wide / 2 + 4, y);
    }
  }

  /**
   * The hops of the followed request, each with its number.
   * @param {Brush} g
   */
  paintRequest(g) {
    /** @type {Map<MapEdge, number[]>} */
    const numbers = new Map();
    this.request.forEach((arrow, i) => {
      const edge = this.edge(arrow.from, arrow.to);
      if (edge) entryOf(numbers, edge, () => []).push(i + 1);
    });
    for (const [edge, hops] of numbers) {
      g.strokeStyle = this.ink.warn;
      g.lineWidth = 2;
      this.strokeCurve(g, edge);
      g.lineWidth = 1;
      const [x, y] = this.point(edge, 0.4), text = hops.length > 3 ? `${hops[0]}..${hops.at(-1)}` : hops.join(' '), wide = g.measureText(text).width + 6;
      g.fillStyle = this.ink.warn;
      g.fillRect(x - wide / 2, y - 6, wide, 12);
      g.fillStyle = this.ink.back;
      g.fillText(text, x - wide / 2 + 3, y);
    }
  }

  /** @param {Brush} g */
  paintDots(g) {
    /** @type {Map<MapEdge, Dot[]>} */
    const onEdge = new Map();
    this.dots = travelling(this.model, this.t, this.least);
    this.unseen = 0;
    for (const dot of this.dots) {
      const edge = this.edge(dot.arrow.from, dot.arrow.to);
      if (!edge) { ++this.unseen; continue; }
      entryOf(onEdge, edge, () => []).push(dot);
    }
    for (const [edge, dots] of onEdge) {
      for (const dot of dots.slice(0, DOTS_APART)) {
        const [x, y] = this.point(edge, dot.share);
        g.fillStyle = isReply(dot.arrow.flow) ? this.ink.good : this.ink.accent;
        g.beginPath();
        g.arc(x, y, 3, 0, 2 * Math.PI);
        g.fill();
      }
      if (dots.length <= DOTS_APART) continue;
      const [x, y] = this.point(edge, 0.5);
      g.fillStyle = this.ink.fore;
      g.fillText(`${countText(dots.length)} messages`, x + 5, y);
    }
  }

  // The lines around the map: when, how many, how fast.
  say() {
    const { model } = this;
    const sum = [...this.edges.values()].reduce((s, e) => ({ n: s.n + e.count, bytes: s.bytes + e.bytes }), { n: 0, bytes: 0 });
    const pulled = this.pulled.reduce((s, p) => s + p.bytes, 0);
    const moving = `${countOf(this.dots.length, 'message')} under way${this.unseen ? `, ${this.unseen} of them within one place` : ''}`;
    if (this.step) {
      const speed = this.speed < 1 ? `1/${Math.max(1, Math.round(1 / this.speed))} speed` : `${Math.round(this.speed)} times as fast`;
      say(byId('map-when'), `step ${this.step}, ${speed}`);
      say(byId('map-said'), `at ${timeText(this.t - this.span.b)}: ${countOf(sum.n + this.inside, 'message')} so far${sum.bytes + pulled ? `, ${bytesText(sum.bytes + pulled)}` : ''}; ${moving}`);
    } else {
      say(byId('map-when'), model.live() ? 'live' : 'at the end of the run');
      say(byId('map-said'), [`${countOf(sum.n + this.inside, 'message')} in the last second`, (sum.bytes || pulled) && `${bytesText(sum.bytes + pulled)}`,
        model.live() && `asks in flight ${this.waits.length}${this.waits.length ? `, oldest ${roughTime(model.last - this.waits[0].t1)}` : ''}`].filter(Boolean).join(', '));
    }
    byId('map-play').textContent = this.playing ? 'pause' : 'play';
    byId('map-live').hidden = !model.live();
    byId('map-live').classList.toggle('on', this.live);
    const range = byId('map-at');
    range.style.visibility = this.step ? '' : 'hidden';
    if (this.step && document.activeElement !== range) range.value = String(1000 * (this.t - this.span.b) / (this.span.e - this.span.b));
  }

  /** @param {MouseEvent} e @returns {{ place?: Place, edge?: MapEdge | null }} */
  near(e) {
    const x = e.offsetX, y = e.offsetY;
    const place = this.places.find((p) => Math.abs(y - p.y) < 7 && x > p.x - 6 && x < p.x + Math.max(6, p.w));
    if (place) return { place };
    /** @type {MapEdge | null} */
    let best = null;
    let far = 7;
    for (const edge of this.edges.values()) {
      if (!edge.count) continue;
      for (let share = 0.1; share < 1; share += 0.1) {
        const [px, py] = this.point(edge, share), d = Math.hypot(px - x, py - y);
        if (d < far) { far = d; best = edge; }
      }
    }
    return { edge: best };
  }
  /** @param {MouseEvent} e */
  hover(e) {
    const { place, edge } = this.near(e);
    const when = this.step ? 'in this step so far' : 'in the last second';
    if (place) {
      const held = this.heldBy(place), received = place.tracks.reduce((n, t) => n + t.received, 0);
      tip(`${place.name} (${place.tracks[0].file.process}): ${countOf(received, 'message')} handled, ${held} in the mailbox`, e.clientX, e.clientY);
    } else if (edge) {
      const names = [...edge.names].sort((p, q) => q[1] - p[1]).slice(0, 4).map(([name, n]) => `${name} ${n}`).join(', ');
      tip(`${edge.a.name} > ${edge.b.name}: ${countOf(edge.count, 'message')}, ${bytesText(edge.bytes)} ${when}: ${names}`, e.clientX, e.clientY);
    } else tip('');
  }
  /** @param {MouseEvent} e */
  click(e) {
    const { place, edge } = this.near(e);
    if (place && !place.folded) this.hooks.actor(place.name);
    else if (edge) {
      const last = this.model.arrows.findLast((a) => a.t0 <= this.t && this.placeOf.get(a.from) === edge.a && this.placeOf.get(a.to) === edge.b);
      if (last) this.hooks.follow(last);
    }
  }

  /** Returns what is seen, as SVG. */
  drawing() {
    const brush = new SvgBrush(this.canvas.clientWidth, this.canvas.clientHeight, this.ink.back);
    this.paint(brush);
    return brush.text();
  }
}
