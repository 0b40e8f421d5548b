// The timeline: a lane per device, grouped by process, with its phases; lanes of
// the actors on demand; messages as arrows; a ruler between two points. What is
// painted is in paint.js, its keys are in timeline_keys.js; this file has the view
// and the pointer.
import { attemptBands, gapBefore, processLanes } from '../model/lanes.js';
import { countOf, timeText } from '../model/text.js';
import { SvgBrush } from './brush.js';
import { inks, sized, tip } from './dom.js';
import { ACTOR_PX, AXIS_PX, DEEP_PX, GROUP_PX, LANE_PX, notDrawn, paintArrows, paintAxis, paintBands, paintDense, paintLane } from './paint.js';

/** @typedef {import('../model/lanes.js').Gap} Gap */
/** @typedef {import('../model/lanes.js').Group} Group */
/** @typedef {import('../model/lanes.js').Lane} Lane */
/** @typedef {import('../model/model.js').Model} Model */
/** @typedef {import('../model/track.js').Slice} Slice */
/** @typedef {import('../model/track.js').Track} Track */
/** @typedef {import('./brush.js').Brush} Brush */
/** @typedef {import('./paint.js').Drawn} Drawn */
/** @typedef {{ pick: (slice: Slice | null, x: number, y: number) => void, selected: () => void, moved: () => void, follow: (on: boolean) => void, said: (text: string) => void }} Hooks */
/**
 * A line with a process's name.
 * @typedef {{ group: Group, detail: string, folded: boolean, foldable: boolean, y: number, h: number, mean?: undefined, dense?: undefined }} GroupRow
 */
/**
 * The mean of a folded process's lanes.
 * @typedef {{ mean: Lane[], name: string, y: number, h: number, group?: undefined, dense?: boolean }} MeanRow
 */
/** @typedef {{ of: Lane, name: string, y: number, h: number, group?: undefined, mean?: undefined, dense?: boolean }} LaneRow */
/** @typedef {GroupRow | MeanRow | LaneRow} Row */
/** @typedef {{ lane: Row, slice?: Slice, gap?: Gap | null }} Hit */

const LABEL_PX = 66, ACTOR_LABEL_PX = 168; // room for the names of the lanes
const LEAST_PX = 76;
const MOST_LANES = 48;          // more devices: each process folds to one lane
const LONGEST_NS = 4e13;
/** @type {Drawn} */
const NOTHING = { list: [], seen: 0, within: 0, bundled: 0 };

/** @type {(row: Row) => string} */
const laneName = (row) => (row.group ? row.group.process : row.name);

export class Timeline {
  /** @param {HTMLCanvasElement} canvas @param {Model} model @param {Hooks} hooks */
  constructor(canvas, model, hooks) {
    this.canvas = canvas;
    this.model = model;
    this.hooks = hooks;
    this.from = 0;
    this.to = 1e9;
    this.follow = true;
    this.showActors = false;
    this.showArrows = true;
    this.filter = { kind: '', actor: '', step: 0 };
    /** @type {Slice | null} */
    this.picked = null;
    /** @type {((slice: Slice) => boolean) | null} */
    this.match = null;            // the tasks that a search means
    /** @type {[number, number] | null} */
    this.selection = null;        // [from, to] of the ruler
    this.ruling = false;          // a drag measures
    /** @type {Row[]} */
    this.lanes = [];
    /** @type {Map<string, boolean>} */
    this.folded = new Map();      // process -> whether, as the reader chose
    this.top = 0;                 // pixels of lanes above the view
    this.bundled = NOTHING;
    /** @type {number[]} */
    this.frameMs = [];
    this.dirty = false;
    this.width = 0;
    this.height = 0;
    this.ink = inks();
    this.listen();
  }

  listen() {
    const c = this.canvas;
    /** @type {(x: number) => number} */
    const share = (x) => (x - this.left) / (c.clientWidth - this.left);
    c.addEventListener('wheel', (e) => {
      e.preventDefault();
      if (e.offsetX < this.left) this.scroll(e.deltaY);
      else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.pan((e.deltaX || e.deltaY) / c.clientWidth);
      else this.zoom(Math.exp(e.deltaY * 0.0015), share(e.offsetX));
    }, { passive: false });
    /** @type {{ x: number, moved: number, rule: number | null } | null} */
    let drag = null;
    /** @type {Map<number, number>} */
    const fingers = new Map();
    const spread = () => { const [a, b] = [...fingers.values()]; return Math.abs(a - b); };
    c.addEventListener('pointerdown', (e) => {
      drag = { x: e.offsetX, moved: 0, rule: (e.shiftKey || this.ruling) && e.offsetX > this.left ? this.time(e.offsetX) : null };
      fingers.set(e.pointerId, e.offsetX);
      c.setPointerCapture(e.pointerId);
    });
    c.addEventListener('pointercancel', (e) => { fingers.delete(e.pointerId); drag = null; });
    c.addEventListener('pointerleave', () => tip(''));
    c.addEventListener('pointermove', (e) => {
      if (!drag) return this.hover(e);
      if (fingers.size === 2) { // pinch
        const before = spread();
        fingers.set(e.pointerId, e.offsetX);
        const [a, b] = [...fingers.values()];
        this.zoom((before + 1) / (spread() + 1), share((a + b) / 2));
        drag.moved = Infinity;
        return undefined;
      }
      drag.moved += Math.abs(e.offsetX - drag.x);
      if (drag.rule !== null) this.select(drag.rule, this.time(e.offsetX));
      else this.pan((drag.x - e.offsetX) / (c.clientWidth - this.left));
      drag.x = e.offsetX;
      return undefined;
    });
    c.addEventListener('pointerup', (e) => {
      fingers.delete(e.pointerId);
      if (drag && drag.moved < 4) this.pick(e);
      drag = null;
    });
  }

  /** @param {boolean} on */
  setFollow(on) { this.follow = on; this.dirty = true; this.hooks.follow(on); this.hooks.moved(); }
  /** @param {number} by */
  scroll(by) { this.top += by; this.dirty = true; }
  /** @param {number} share */
  pan(share) {
    const by = (this.to - this.from) * share;
    this.from += by;
    this.to += by;
    this.setFollow(false);
  }
  /** @param {number} factor @param {number} at */
  zoom(factor, at) {
    const t = this.from + (this.to - this.from) * at;
    const span = Math.min(Math.max((this.to - this.from) * factor, 2e3), LONGEST_NS);
    const anchor = this.follow ? 1 : at;
    const keep = this.follow ? this.to : t;
    this.from = keep - span * anchor;
    this.to = this.from + span;
    this.dirty = true;
    this.hooks.moved();
  }
  /** @param {number} from @param {number} to */
  show(from, to) {
    const margin = (to - from) * 0.03 + 1e3;
    this.range(from - margin, to + margin);
  }
  /**
   * Shows exactly [from, to].
   * @param {number} from @param {number} to
   */
  range(from, to) {
    this.from = from;
    this.to = to;
    this.setFollow(false);
  }
  /**
   * Picks a task and brings it into view, at the zoom of now unless it is far
   * longer than the view, or would be a line.
   * @param {Slice} task
   */
  reach(task) {
    this.picked = task;
    this.unfold(task.track);
    const end = Number.isNaN(task.e) ? this.model.last : task.e, span = this.to - this.from, long = end - task.b;
    if (task.b < this.from || end > this.to || long < span / 400) {
      const wide = Math.min(Math.max(span, long * 1.3), Math.max(long * 40, 2e6));
      this.range((task.b + end - wide) / 2, (task.b + end + wide) / 2);
    } else this.setFollow(false);
  }
  /**
   * Brings the lane of a track into view.
   * @param {Track} track
   */
  unfold(track) {
    const { process } = track.file;
    if (this.lanes.some((l) => l.group && l.group.process === process && l.folded)) this.folded.set(process, false);
    if (track.kind === 'actor') this.showActors = true;
    this.layout();
    const lane = this.lanes.find((l) => !l.group && !l.mean && l.of.tracks.includes(track));
    if (lane && (lane.y < AXIS_PX || lane.y + lane.h > this.height)) this.top = Math.max(0, lane.y + this.top - this.height / 2);
    this.dirty = true;
  }
  fit() { if (this.model.last > this.model.begin) this.show(this.model.begin, this.model.last); }
  /** @param {number} a @param {number} b */
  select(a, b) {
    this.selection = a === b ? null : [Math.min(a, b), Math.max(a, b)];
    this.dirty = true;
    this.hooks.selected();
  }

  /** @param {Group} group @param {number} lanes */
  isFolded(group, lanes) { return this.folded.get(group.process) ?? (lanes > MOST_LANES && group.lanes.length > 1); }

  layout() {
    this.lanes = [];
    const groups = processLanes(this.model, this.showActors);
    const all = groups.reduce((sum, g) => sum + g.lanes.length, 0);
    let y = AXIS_PX - this.top;
    for (const group of groups) {
      if (!group.lanes.length && groups.length > 1 && !this.showArrows) continue;
      const folded = this.isFolded(group, all);
      const pids = group.files.map((f) => f.pid);
      this.lanes.push({ group, detail: `pid ${pids.at(-1)}${pids.length > 1 ? `, ${pids.length} attempts` : ''}`, folded, foldable: group.lanes.length > 1, y, h: GROUP_PX });
      y += GROUP_PX;
      if (folded) {
        this.lanes.push({ mean: group.lanes.filter((l) => l.isDevice), name: `${group.lanes.length} lanes`, y, h: LANE_PX });
        y += LANE_PX;
        continue;
      }
      for (const of of group.lanes) {
        const deep = of.isDevice ? Math.min(3, of.depth) : 1;
        const h = of.isDevice ? LANE_PX + (deep - 1) * DEEP_PX + 2 : ACTOR_PX;
        this.lanes.push({ of, name: of.name, y, h });
        y += h;
      }
    }
    return Math.max(y + this.top + 4, LEAST_PX);
  }

  get left() { return this.showActors ? ACTOR_LABEL_PX : LABEL_PX; }
  /** @param {number} t */
  x(t) { return this.left + ((t - this.from) / (this.to - this.from)) * (this.width - this.left); }
  /** @param {number} x */
  time(x) { return this.from + ((x - this.left) / (this.width - this.left)) * (this.to - this.from); }

  draw() {
    const { model } = this;
    if (this.follow && model.last > -Infinity) {
      const span = this.to - this.from;
      this.to = model.last + span * 0.02;
      this.from = this.to - span;
    }
    let all = this.layout();
    const most = Math.max(window.innerWidth < 600 ? 150 : 200, window.innerHeight * (this.showActors ? 0.6 : 0.34));
    const height = Math.min(all, most);
    const top = Math.max(0, Math.min(this.top, all - height));
    if (top !== this.top) { this.top = top; all = this.layout(); }
    const g = sized(this.canvas, Math.round(height));
    this.width = this.canvas.clientWidth;
    this.height = Math.round(height);
    this.ink = inks();
    this.paint(g);
    if (all > height) this.scrollbar(g, all);
  }

  /** @param {Brush} g */
  paint(g) {
    g.font = '11px system-ui, sans-serif';
    const bands = attemptBands(this.model);
    paintAxis(g, this);
    paintBands(g, this, bands);
    for (const lane of this.lanes) {
      if (lane.y > this.height || lane.y + lane.h < 0) continue;
      if (lane.group) {
        g.fillStyle = this.ink.soft;
        g.fillRect(0, lane.y, this.width, lane.h);
      } else if (lane.mean) {
        if (lane.mean.length) paintDense(g, this, lane.mean, lane.y + 1, lane.h - 3);
        lane.dense = true;
      } else {
        lane.dense = paintLane(g, this, lane);
      }
    }
    this.bundled = this.showArrows ? paintArrows(g, this, this.heights()) : NOTHING;
    this.ruler(g);
    this.labels(g);
    this.hooks.said(notDrawn(this, this.bundled));
  }

  /** @param {Brush} g */
  ruler(g) {
    if (!this.selection) return;
    const [x0, x1] = this.selection.map((t) => Math.max(this.left, Math.min(this.width, this.x(t))));
    if (x1 <= x0) return; // elsewhere
    g.globalAlpha = 0.14;
    g.fillStyle = this.ink.accent;
    g.fillRect(x0, AXIS_PX, x1 - x0, this.height);
    g.globalAlpha = 1;
    const text = timeText(this.selection[1] - this.selection[0]), wide = g.measureText(text).width + 8;
    const left = Math.max(this.left, Math.min(this.width - wide, (x0 + x1 - wide) / 2));
    g.fillRect(left, 2, wide, AXIS_PX - 4);
    g.fillStyle = this.ink.back;
    g.fillText(text, left + 4, AXIS_PX / 2);
  }

  /**
   * Returns the positions of tracks: actors without a lane of their own send and
   * receive at their process's.
   * @returns {Map<Track, number>}
   */
  heights() {
    /** @type {Map<Track, number>} */
    const heights = new Map();
    for (const lane of this.lanes)
      if (lane.group) for (const file of lane.group.files) for (const track of file.tracks) heights.set(track, lane.y + lane.h / 2);
    for (const lane of this.lanes)
      if (!lane.group && !lane.mean) for (const track of lane.of.tracks) heights.set(track, lane.y + Math.min(lane.h, LANE_PX) / 2);
    return heights;
  }

  /**
   * Paints the names of the lanes, over everything that begins left of the view.
   * @param {Brush} g
   */
  labels(g) {
    g.font = '11px system-ui, sans-serif';
    g.fillStyle = this.ink.back;
    g.fillRect(0, 0, this.left, this.height);
    for (const lane of this.lanes) {
      if (lane.y + lane.h < AXIS_PX || lane.y > this.height) continue;
      const name = lane.group ? `${lane.foldable ? (lane.folded ? '\u25b8 ' : '\u25be ') : ''}${lane.group.process}` : lane.name;
      const wide = lane.group ? g.measureText(`${name}  ${lane.detail}`).width + 14 : this.left;
      g.fillStyle = lane.group ? this.ink.soft : this.ink.back;
      g.fillRect(0, lane.y, wide, lane.h);
      g.fillStyle = lane.group ? this.ink.fore : this.ink.quiet;
      g.fillText(name, 6, lane.y + Math.min(lane.h, LANE_PX) / 2, this.left + 60);
      if (!lane.group) continue;
      g.fillStyle = this.ink.quiet;
      g.fillText(lane.detail, g.measureText(`${name}  `).width + 6, lane.y + lane.h / 2);
    }
    g.fillStyle = this.ink.back;
    g.fillRect(0, 0, this.left, AXIS_PX);
  }

  /** @param {Brush} g @param {number} all */
  scrollbar(g, all) {
    const h = this.height - AXIS_PX;
    g.globalAlpha = 0.5;
    g.fillStyle = this.ink.quiet;
    g.fillRect(this.left - 4, AXIS_PX + h * this.top / all, 3, Math.max(12, h * h / all));
    g.globalAlpha = 1;
  }

  /** @param {{ name: string, step: number, from: Track, to: Track | null }} arrow */
  wanted(arrow) {
    const f = this.filter;
    return (!f.kind || arrow.name === f.kind) && (!f.step || arrow.step === f.step)
      && (!f.actor || arrow.from.name === f.actor || (arrow.to && arrow.to.name === f.actor));
  }

  /**
   * Returns what is at a point: { lane, slice, gap }.
   * @param {number} x @param {number} y @returns {Hit | null}
   */
  at(x, y) {
    const lane = this.lanes.find((l) => y >= l.y && y < l.y + l.h);
    if (!lane || lane.group || lane.mean || x < this.left) return lane ? { lane } : null;
    const depth = y < lane.y + LANE_PX || lane.dense ? 0 : Math.min(2, 1 + Math.floor((y - lane.y - LANE_PX) / DEEP_PX));
    const t = this.time(x), slack = (this.to - this.from) / this.width * 2;
    for (const track of lane.of.tracks) {
      const { row, first, last } = track.visible(depth, t - slack, t + slack);
      if (first < last) return { lane, slice: row[first] };
      if (depth === 0 && track.isDevice && first > 0 && first < row.length) return { lane, gap: gapBefore(this.model, row, first) };
    }
    return { lane };
  }

  /** @param {MouseEvent} e */
  hover(e) {
    const hit = this.at(e.offsetX, e.offsetY);
    const bundle = this.bundled.list.find((b) => b.count > 1 && Math.abs((b.x0 + b.x1) / 2 - e.offsetX) < 12 && Math.abs((b.y0 + b.y1) / 2 - e.offsetY) < 7);
    let text = '';
    if (bundle) text = `${countOf(bundle.count, 'message')}: ${[...bundle.names].sort((a, b) => b[1] - a[1]).slice(0, 4).map(([name, n]) => `${name} ${n}`).join(', ')}`;
    else if (hit && hit.slice) {
      const s = hit.slice;
      text = `${laneName(hit.lane)}: ${s.name}${s.step ? ` of step ${s.step}` : ''}, ${Number.isNaN(s.e) ? 'running' : timeText(s.e - s.b)}`;
    } else if (hit && hit.gap) text = `${laneName(hit.lane)} idle ${timeText(hit.gap.e - hit.gap.b)}: ${hit.gap.why}`;
    tip(text, e.clientX, e.clientY);
  }

  /** @param {MouseEvent} e */
  pick(e) {
    const hit = this.at(e.offsetX, e.offsetY);
    if (hit && hit.lane.group && hit.lane.foldable) {
      this.folded.set(hit.lane.group.process, !hit.lane.folded);
      this.dirty = true;
      return;
    }
    this.selection = null;
    this.hooks.selected();
    this.picked = hit && hit.slice ? hit.slice : null;
    this.dirty = true;
    this.hooks.pick(this.picked, e.clientX, e.clientY);
  }

  /** Returns what is seen, as SVG. */
  drawing() {
    const brush = new SvgBrush(this.width, this.height, this.ink.back);
    this.paint(brush);
    return brush.text();
  }
}
