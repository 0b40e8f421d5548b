// How the timeline's lanes and arrows are painted, on a canvas or as SVG.
import { colour, idleColour, kindColour } from '../model/colours.js';
import { PHASE_PX, TASK_PX, bundles, columnsOver, gapBefore, meanOf, tasksIn, utilisation } from '../model/lanes.js';
import { axisText, countOf, countText, tickOf } from '../model/text.js';

/** @typedef {import('../model/lanes.js').Bundle} Bundle */
/** @typedef {import('../model/lanes.js').Lane} Lane */
/** @typedef {import('../model/track.js').Slice} Slice */
/** @typedef {import('../model/track.js').Track} Track */
/** @typedef {import('./brush.js').Brush} Brush */
/** @typedef {import('./timeline.js').Timeline} Timeline */
/**
 * How arrows were drawn: how many were in view, bundled, and within one lane.
 * @typedef {{ list: Bundle[], seen: number, within: number, bundled: number }} Drawn
 */

export const GROUP_PX = 16;
export const LANE_PX = 20;
export const DEEP_PX = 8;
export const ACTOR_PX = 12;
export const AXIS_PX = 20;
const ARROWS_APART = 500;      // more in view are bundles with their number
const CELL_PX = 56;            // ends of a bundle are this close
const LABEL_APART_PX = 34;
const FAINT = 0.28;            // tasks that a search does not mean
const FONT = '11px system-ui, sans-serif';

/**
 * Returns the text, cut to the width; empty: not even its beginning fits.
 * @param {Brush} g @param {string} text @param {number} width
 */
export function fitted(g, text, width) {
  if (width < 14) return '';
  if (g.measureText(text).width <= width) return text;
  let cut = text.length;
  while (cut > 2 && g.measureText(`${text.slice(0, cut)}\u2026`).width > width) --cut;
  return cut > 2 ? `${text.slice(0, cut)}\u2026` : '';
}

/** @param {Brush} g @param {Timeline} view */
export function paintAxis(g, view) {
  const tick = tickOf(view.to - view.from, view.width - view.left), zero = view.model.origin;
  g.font = FONT;
  g.strokeStyle = view.ink.line;
  g.fillStyle = view.ink.quiet;
  g.beginPath();
  for (let t = Math.ceil((view.from - zero) / tick) * tick; t + zero < view.to; t += tick) {
    const x = Math.round(view.x(t + zero)) + 0.5;
    if (x < view.left) continue;
    g.moveTo(x, AXIS_PX - 4);
    g.lineTo(x, view.height);
    const text = axisText(t, tick), wide = g.measureText(text).width;
    g.fillText(text, x + 3 + wide < view.width ? x + 3 : x - 3 - wide, AXIS_PX / 2);
  }
  g.stroke();
}

/**
 * Attempts are bands, so that the gap between two is seen as one.
 * @param {Brush} g @param {Timeline} view @param {import('../model/lanes.js').Band[]} bands
 */
export function paintBands(g, view, bands) {
  if (bands.length < 2) return;
  for (const band of bands) {
    const x0 = Math.max(view.left, view.x(band.b)), x1 = Math.min(view.width, view.x(band.e));
    if (x1 <= x0) continue;
    g.globalAlpha = 0.55;
    g.fillStyle = view.ink.soft;
    g.fillRect(x0, AXIS_PX, x1 - x0, view.height - AXIS_PX);
    g.globalAlpha = 1;
    g.fillStyle = view.ink.accent;
    g.fillRect(x0, 0, x1 - x0, 2);
    const name = `attempt ${band.attempt}`;
    if (x1 - x0 > 70) {
      const wide = g.measureText(name).width + 8;
      g.fillStyle = view.ink.back;
      g.fillRect(x1 - wide, 3, wide, AXIS_PX - 6);
      g.fillStyle = view.ink.accent;
      g.fillText(name, x1 - wide + 4, AXIS_PX / 2);
    }
  }
}

/**
 * Returns whether a lane's tasks are too narrow to be told apart.
 * @param {Timeline} view @param {Lane} lane
 */
function isDense(view, lane) {
  return tasksIn(lane, view.from, view.to) > (view.width - view.left) / TASK_PX;
}

/**
 * Paints shares of columns, stacked: kinds of calls from below, idle above.
 * @param {Brush} g @param {{ ink: import('./dom.js').Ink }} view @param {import('../model/lanes.js').Shares[]} parts
 * @param {number} y @param {number} h @param {number} left @param {number} wide
 */
export function paintShares(g, view, parts, y, h, left, wide) {
  const { dark } = view.ink;
  parts.forEach((part, i) => {
    let low = y + h;
    const keys = [...part.keys()].sort((a, b) => Number(a.startsWith('idle')) - Number(b.startsWith('idle')) || (a < b ? -1 : 1));
    for (const key of keys) {
      const high = (part.get(key) ?? 0) * h;
      g.fillStyle = key.startsWith('idle ') ? idleColour(key.slice(5), dark) : kindColour(key, dark);
      g.fillRect(left + i * wide, low - high, wide + 0.3, high);
      low -= high;
    }
  });
}

/** @param {Brush} g @param {Timeline} view @param {Lane[]} lanes @param {number} y @param {number} h */
export function paintDense(g, view, lanes, y, h) {
  const tasks = Math.max(...lanes.map((lane) => tasksIn(lane, view.from, view.to)));
  const { from, to, columns } = columnsOver(view.from, view.to, tasks, view.width - view.left);
  const parts = meanOf(lanes.map((lane) => utilisation(view.model, lane, from, to, columns)));
  paintShares(g, view, parts, y, h, view.x(from), (view.x(to) - view.x(from)) / columns);
}

/**
 * Marks what a search means with more than its colour.
 * @param {Brush} g @param {Timeline} view @param {number} x0 @param {number} x1 @param {number} y
 */
function underline(g, view, x0, x1, y) {
  g.fillStyle = view.ink.fore;
  g.fillRect(x0, y - 2, Math.max(2, x1 - x0), 2);
}

/**
 * @param {Brush} g @param {Timeline} view @param {Slice} s @param {number} x0 @param {number} x1 @param {number} y
 * @param {number} h @param {number} depth @param {boolean} isActor
 */
function paintSlice(g, view, s, x0, x1, y, h, depth, isActor) {
  const isMeant = !view.match || view.match(depth ? { ...s, name: s.outer } : s);
  g.globalAlpha = isMeant ? 1 : FAINT;
  g.fillStyle = colour(view.model, s.name, view.ink.dark, s.outer);
  g.fillRect(x0, y, Math.max(0.8, x1 - x0), h);
  g.globalAlpha = 1;
  if (view.match && isMeant && depth === 0) underline(g, view, x0, x1, y + h);
  if (s === view.picked) {
    g.strokeStyle = view.ink.accent;
    g.lineWidth = 2;
    g.strokeRect(x0, y, Math.max(2, x1 - x0), h);
    g.lineWidth = 1;
  }
  if (depth > 0 || isActor) return;
  const from = Math.max(x0, view.left), to = Math.min(x1, view.width);
  const whole = s.step ? `${s.name} ${s.step}` : s.name, room = to - from - 8;
  const name = g.measureText(whole).width <= room ? whole : fitted(g, s.name, room);
  g.fillStyle = view.ink.fore;
  if (name) g.fillText(name, from + 4, y + h / 2);
}

/** @param {Brush} g @param {Timeline} view @param {Slice[]} row @param {number} i @param {number} y @param {number} h */
function paintGap(g, view, row, i, y, h) {
  const gap = gapBefore(view.model, row, i);
  if (!gap) return;
  const x0 = Math.max(view.left, view.x(gap.b)), x1 = Math.min(view.width, view.x(gap.e));
  if (x1 - x0 < 60) return;
  const text = fitted(g, gap.why, x1 - x0 - 8);
  g.fillStyle = view.ink.quiet;
  if (text) g.fillText(text, x0 + 4, y + h / 2);
}

/**
 * @param {Brush} g @param {Timeline} view @param {Track} track @param {number} d @param {number} y @param {number} h
 * @param {boolean} isActor
 */
function paintDepth(g, view, track, d, y, h, isActor) {
  const { row, first, last } = track.visible(d, view.from, view.to);
  let drawnTo = -1;
  for (let i = first; i < last; ++i) {
    const s = row[i], x0 = view.x(s.b);
    const x1 = view.x(Number.isNaN(s.e) ? Math.max(view.model.last, s.b) : s.e);
    if (d === 0 && track.isDevice && i > 0) paintGap(g, view, row, i, y, h);
    if (x1 < drawnTo + 0.6 || (d > 0 && x1 - x0 < PHASE_PX / 2)) continue; // in the pixel before
    paintSlice(g, view, s, Math.max(view.left - 2, x0), Math.min(view.width + 2, x1), y, h, d, isActor);
    drawnTo = x1;
  }
  if (d === 0 && track.isDevice && last < row.length && last > 0) paintGap(g, view, row, last, y, h);
}

/**
 * Paints one lane; a dense one as utilisation. Returns whether it was dense.
 * @param {Brush} g @param {Timeline} view @param {import('./timeline.js').LaneRow} lane
 */
export function paintLane(g, view, lane) {
  const { of, y, h } = lane;
  g.font = FONT;
  if (isDense(view, of)) {
    paintDense(g, view, [of], y + 1, h - 3);
    return true;
  }
  const isActor = !of.isDevice; // or the host's: a low lane
  const depths = of.isDevice ? Math.min(3, of.depth) : 1;
  for (const track of of.tracks)
    for (let d = 0; d < Math.min(depths, track.depths.length); ++d)
      paintDepth(g, view, track, d, d ? y + LANE_PX + (d - 1) * DEEP_PX : y + 1, d ? DEEP_PX - 1 : Math.min(h, LANE_PX) - 2, isActor);
  return false;
}

/** @param {Brush} g @param {Bundle} b */
function paintArrow(g, b) {
  const { x0, y0, x1, y1 } = b, mid = x0 + (x1 - x0) / 2;
  g.beginPath();
  g.moveTo(x0, y0);
  g.bezierCurveTo(mid, y0, mid, y1, x1, y1);
  g.stroke();
  const size = 3 + Math.min(4, g.lineWidth), tip = y1 > y0 ? -size : size;
  g.beginPath();
  g.moveTo(x1, y1);
  g.lineTo(x1 - size * 0.7, y1 + tip);
  g.lineTo(x1 + size * 0.7, y1 + tip);
  g.fill();
}

/** @param {Brush} g @param {Timeline} view @param {Bundle[]} list */
function paintCounts(g, view, list) {
  /** @type {[number, number][]} */
  const places = [];
  g.font = '10px system-ui, sans-serif';
  g.textAlign = 'center';
  for (const b of [...list].sort((p, q) => q.count - p.count)) {
    const x = (b.x0 + b.x1) / 2, y = (b.y0 + b.y1) / 2;
    if (b.count < 2 || x < view.left + 14 || places.some(([px, py]) => Math.abs(px - x) < LABEL_APART_PX && Math.abs(py - y) < 11)) continue;
    places.push([x, y]);
    const text = countText(b.count), wide = g.measureText(text).width + 6;
    g.fillStyle = view.ink.back;
    g.fillRect(x - wide / 2, y - 6, wide, 12);
    g.fillStyle = view.ink.accent;
    g.fillText(text, x, y);
  }
  g.textAlign = 'left';
}

/**
 * Paints messages: each as an arrow while they are few, else as bundles with
 * their number. Returns how many are in view, bundled, and within one lane.
 * @param {Brush} g @param {Timeline} view @param {Map<Track, number>} heights @returns {Drawn}
 */
export function paintArrows(g, view, heights) {
  const arrows = view.model.flows.arrowsIn(view.from, view.to).filter((a) => view.wanted(a));
  /** @type {(track: Track, t: number) => [number, number] | null} */
  const place = (track, t) => { const y = heights.get(track); return y === undefined ? null : [view.x(t), y]; };
  const { list, seen, within, isDense: dense } = bundles(arrows, place, CELL_PX, ARROWS_APART);
  g.strokeStyle = g.fillStyle = view.ink.accent;
  g.globalAlpha = Math.max(0.12, Math.min(0.4, 80 / list.length)); // lanes stay visible under many
  for (const b of list) {
    g.lineWidth = dense ? 0.8 + Math.log2(b.count) / 3 : 1;
    paintArrow(g, b);
  }
  g.lineWidth = 1;
  paintUnderWay(g, view, heights);
  g.globalAlpha = 1;
  if (dense) paintCounts(g, view, list);
  return { seen, within, list, bundled: dense ? seen : 0 };
}

/**
 * Messages that were sent and are not handled yet.
 * @param {Brush} g @param {Timeline} view @param {Map<Track, number>} heights
 */
function paintUnderWay(g, view, heights) {
  g.strokeStyle = view.ink.bad;
  g.globalAlpha = 0.8;
  for (const send of view.model.inFlight()) {
    const y0 = heights.get(send.track);
    if (y0 === undefined || send.t > view.to) continue;
    if (!view.wanted({ name: send.name, step: send.step, from: send.track, to: send.to })) continue;
    const y1 = (send.to && heights.get(send.to)) ?? y0 + 5;
    g.beginPath();
    g.setLineDash([3, 2]);
    g.moveTo(Math.max(view.left, view.x(send.t)), y0);
    g.lineTo(Math.min(view.x(view.model.last), view.width), y1 === y0 ? y0 + 5 : y1);
    g.stroke();
    g.setLineDash([]);
  }
}

/**
 * Returns what the timeline does not show as it is, in a sentence.
 * @param {Timeline} view @param {Drawn} arrows
 */
export function notDrawn(view, arrows) {
  const { model } = view;
  /** @type {string[]} */
  const said = [];
  if (arrows.bundled)
    said.push(`${countOf(arrows.seen, 'message')} in view, as ${countOf(arrows.list.length, 'bundle')} with their number`);
  if (arrows.within)
    said.push(`${countOf(arrows.within, 'message')} within one process${view.showActors ? '' : ' (shown with "actors")'}`);
  const dense = view.lanes.filter((l) => l.dense).length;
  if (dense) said.push(`${countOf(dense, 'lane')} too dense for tasks: the share of each kind of call, and of each reason to idle`);
  const hidden = view.lanes.filter((l) => !l.group && (l.y + l.h > view.height || l.y < AXIS_PX)).length;
  if (hidden) said.push(`${countOf(hidden, 'lane')} above or below: scroll over their names`);
  const { events, wholeFrom } = model.missing();
  if (events) said.push(`complete from step ${wholeFrom} on: ${countOf(events, 'older event')} not here`);
  const slices = model.tracks.reduce((sum, t) => sum + t.forgotten, 0);
  const forgotten = [model.flows.forgotten && countOf(model.flows.forgotten, 'older message'), slices && countOf(slices, 'older task')].filter(Boolean);
  if (forgotten.length) said.push(`${forgotten.join(' and ')} had no room on this page`);
  return said.join('; ');
}
