// The run as a whole under the timeline: how busy its devices were, its attempts
// and failures, and the part that the timeline shows, which can be dragged.
import { attemptBands, columnsOver, meanOf, processLanes, tasksIn, utilisation } from '../model/lanes.js';
import { story } from '../model/story.js';
import { inks, sized } from './dom.js';
import { paintShares } from './paint.js';

/** @typedef {import('../model/model.js').Model} Model */

const HEIGHT = 26, COLUMN = 4;
const FRESH_MS = 2000; // a live run's shares are counted again this often

export class Minimap {
  /** @param {HTMLCanvasElement} canvas @param {Model} model @param {import('./timeline.js').Timeline} timeline */
  constructor(canvas, model, timeline) {
    this.canvas = canvas;
    this.model = model;
    this.timeline = timeline;
    this.key = '';                // of what `parts` were counted for, at `at`
    this.at = -Infinity;
    this.begin = 0;
    this.end = 1;
    /** @type {import('../model/lanes.js').Shares[]} */
    this.parts = [];
    this.grid = { from: 0, to: 1, columns: 1 };
    /** @type {number | null} */
    let held = null;
    /** @type {(x: number) => number} */
    const time = (x) => this.begin + (x / canvas.clientWidth) * (this.end - this.begin);
    canvas.addEventListener('pointerdown', (e) => {
      canvas.setPointerCapture(e.pointerId);
      const t = time(e.offsetX), span = timeline.to - timeline.from;
      held = t > timeline.from && t < timeline.to ? t - timeline.from : span / 2;
      timeline.range(t - held, t - held + span);
    });
    canvas.addEventListener('pointermove', (e) => {
      if (held === null) return;
      const from = time(e.offsetX) - held;
      timeline.range(from, from + timeline.to - timeline.from);
    });
    canvas.addEventListener('pointerup', () => { held = null; });
    canvas.addEventListener('pointercancel', () => { held = null; });
  }

  /** @param {number} columns @param {number} now */
  shares(columns, now) {
    const key = `${columns} ${this.model.live() ? '' : this.model.events}`;
    if (key === this.key && (!this.model.live() || now - this.at < FRESH_MS)) return;
    this.key = key;
    this.at = now;
    this.begin = this.model.begin;
    this.end = Math.max(this.model.last, this.model.begin + 1);
    const lanes = processLanes(this.model, false).flatMap((g) => g.lanes).filter((l) => l.isDevice);
    this.parts = [];
    if (!lanes.length) return;
    this.grid = columnsOver(this.begin, this.end, Math.max(...lanes.map((lane) => tasksIn(lane, this.begin, this.end))), columns * COLUMN);
    this.parts = meanOf(lanes.map((lane) => utilisation(this.model, lane, this.grid.from, this.grid.to, this.grid.columns)));
  }

  /** @param {number} now */
  draw(now) {
    if (!(this.model.last > this.model.begin)) return;
    const g = sized(this.canvas, HEIGHT), width = this.canvas.clientWidth, ink = inks();
    const columns = Math.max(1, Math.floor(width / COLUMN));
    this.shares(columns, now);
    /** @type {(t: number) => number} */
    const x = (t) => (t - this.begin) / (this.end - this.begin) * width;
    if (this.parts.length) paintShares(g, { ink }, this.parts, 3, HEIGHT - 6, x(this.grid.from), (x(this.grid.to) - x(this.grid.from)) / this.grid.columns);
    const bands = attemptBands(this.model);
    g.fillStyle = ink.accent;
    if (bands.length > 1) for (const band of bands) g.fillRect(x(band.b), 0, Math.max(1, x(band.e) - x(band.b)), 2);
    g.fillStyle = ink.bad;
    for (const episode of story(this.model)) if (Number.isFinite(episode.noticed)) g.fillRect(x(episode.noticed) - 1, 0, 2, HEIGHT);
    const { from, to } = this.timeline;
    const x0 = Math.max(0, x(from)), x1 = Math.min(width, Math.max(x(to), x(from) + 3));
    g.globalAlpha = 0.5;
    g.fillStyle = ink.back;
    g.fillRect(0, 0, x0, HEIGHT);
    g.fillRect(x1, 0, width - x1, HEIGHT);
    g.globalAlpha = 1;
    g.strokeStyle = ink.accent;
    g.lineWidth = 1.5;
    g.strokeRect(x0 + 0.75, 0.75, Math.max(3, x1 - x0) - 1.5, HEIGHT - 1.5);
  }
}
