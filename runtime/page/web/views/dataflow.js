// The dataflow of a step, live: how far each call is, the critical path in red.
import { colour } from '../model/colours.js';
import { criticalPath, taskSpan } from '../model/reasons.js';
import { timeText } from '../model/text.js';
import { contextOf, el, isDark, note, svg } from './dom.js';

/** @typedef {import('../model/model.js').Model} Model */
/** @typedef {import('../model/model.js').Call} Call */
/** @typedef {import('../model/model.js').Graph} Graph */
/** @typedef {{ x: number, y: number }} XY */
/** @typedef {(slice: import('../model/track.js').Slice, x: number, y: number) => void} Pick */

const FONT = '12px system-ui, sans-serif';
const BOX_PX = 56, GAP_PX = 10;
const BREATH_MS = 1600;        // of the animation in page.css, which goes on when it is drawn again
const LEAST_SCALE = 0.78;     // smaller texts are not read: it scrolls
const LEAST_WIDE = 92, LEAST_APART = 24, MOST_APART = 60;

/**
 * Arranges calls in layers: a call is to the right of everything that it reads.
 * @param {Graph} graph
 */
function layers(graph) {
  /** @type {Map<string, number>} */
  const depth = new Map();
  /** @type {(name: string, seen?: Set<string>) => number} */
  const of = (name, seen = new Set()) => {
    const known = depth.get(name);
    if (known !== undefined) return known;
    if (seen.has(name)) return 0;
    seen.add(name);
    const from = graph.edges.filter((e) => e.to === name).map((e) => of(e.from, seen) + 1);
    const own = Math.max(0, ...from);
    depth.set(name, own);
    return own;
  };
  graph.calls.forEach((c) => of(c.name));
  /** @type {Call[][]} */
  const rows = [];
  for (const call of graph.calls) (rows[of(call.name)] || (rows[of(call.name)] = [])).push(call);
  return rows;
}

/**
 * Returns the path from a call to one that reads its keys; it passes other
 * calls above or below them.
 * @param {XY} a @param {XY} b @param {number} width @param {number} gapX @param {number} height
 */
function edgePath(a, b, width, gapX, height) {
  const x0 = a.x + width, y0 = a.y + BOX_PX / 2, x1 = b.x, y1 = b.y + BOX_PX / 2, half = gapX / 2;
  if (x1 - x0 <= gapX + 1) return `M${x0},${y0} C${x0 + half},${y0} ${x1 - half},${y1} ${x1},${y1}`;
  const lane = y0 + y1 < height ? 6 : height - 6;
  return `M${x0},${y0} C${x0 + half},${y0} ${x0 + half},${lane} ${x0 + gapX},${lane} L${x1 - gapX},${lane} C${x1 - half},${lane} ${x1 - half},${y1} ${x1},${y1}`;
}

/**
 * Returns the state of a call in a step: how long it took, or its progress.
 * @param {Model} model @param {number} step @param {Call} call
 */
function callWord(model, step, call) {
  const span = taskSpan(model, step, call.name);
  if (span && span.e !== Infinity) return timeText(span.e - span.b);
  if (span) {
    const ended = span.parts.filter((p) => !Number.isNaN(p.e)).length;
    return timeText(model.last - span.b) + (call.devices.length > 1 ? `, ${ended} of ${call.devices.length} done` : ' so far');
  }
  if (!model.live()) return 'not recorded';
  const ready = model.graph.edges.filter((e) => e.to === call.name).every((e) => {
    const u = taskSpan(model, step, e.from);
    return u && u.e !== Infinity;
  });
  return ready ? 'ready' : 'waits';
}

// Boxes are as wide as the longest text that one had so far: no text overflows
// its box, and boxes do not move while times count up.
const brush = contextOf(document.createElement('canvas'));
/** @type {WeakMap<Graph, number>} */
const widths = new WeakMap();
/** @param {string} text @param {string} font */
function textWidth(text, font) {
  brush.font = font;
  return Math.ceil(brush.measureText(text).width);
}
/** @param {Graph} graph @param {string[][]} texts */
function boxWidth(graph, texts) {
  const wanted = texts.map(([name, ...rest]) => Math.max(textWidth(name, `600 ${FONT}`), ...rest.map((t) => textWidth(t, FONT))) + 16);
  const width = Math.max(widths.get(graph) ?? LEAST_WIDE, ...wanted);
  widths.set(graph, width);
  return width;
}

/**
 * @param {Model} model @param {number} step @param {Call} call @param {XY} place @param {number} width
 * @param {string[]} texts @param {boolean} isCritical @param {Pick} pick
 */
function callBox(model, step, call, place, width, texts, isCritical, pick) {
  const { x, y } = place;
  const span = taskSpan(model, step, call.name);
  const running = span && span.e === Infinity;
  const box = svg('g', { style: span ? 'cursor:pointer' : '', class: running ? 'running' : '', ...(span ? { tabindex: 0, role: 'button', 'aria-label': `${texts.join(', ')}${isCritical ? ', on the critical path' : ''}` } : {}) });
  box.append(svg('rect', { x, y, width, height: BOX_PX, rx: 6, fill: span ? colour(model, call.name, isDark()) : 'var(--soft)',
    style: running ? `animation-delay:-${Math.round(performance.now() % BREATH_MS)}ms` : '',
    stroke: isCritical ? 'var(--bad)' : running ? 'var(--accent)' : 'var(--line)', 'stroke-width': isCritical || running ? 2 : 1 }));
  texts.forEach((text, i) => {
    const line = svg('text', { x: x + 8, y: y + 16 + 16 * i, 'font-size': 12, fill: 'var(--fore)', 'font-weight': i ? 400 : 600 });
    line.textContent = text;
    box.append(line);
  });
  box.addEventListener('click', (e) => { if (span) pick(span.parts[0], e.clientX, e.clientY); });
  box.addEventListener('keydown', (e) => {
    if (!span || e.key !== 'Enter') return;
    const at = box.getBoundingClientRect();
    pick(span.parts[0], at.right, at.bottom);
  });
  return box;
}

/**
 * Returns the step that the dataflow shows: the chosen one, else the newest.
 * @type {(model: Model, chosen: number) => number}
 */
export const stepShown = (model, chosen) => chosen || (model.live() ? Math.max(0, ...model.steps.keys()) : model.lastWholeStep());

/**
 * Draws the dataflow of a step into a card, as wide as the card.
 * @param {HTMLElement} box @param {Model} model @param {number} chosen @param {Pick} pick
 */
export function drawDataflow(box, model, chosen, pick) {
  const { graph } = model;
  if (graph.error || !graph.calls.length) return box.replaceChildren(note(graph.error || 'no dataflow yet'));
  const step = stepShown(model, chosen);
  if (!step) return box.replaceChildren(note(`no step was recorded${model.live() ? ' yet' : ''}`));
  const hotPath = criticalPath(model, step);
  const critical = new Set(hotPath.map((t) => t.call));
  const rows = layers(graph);
  const texts = new Map(graph.calls.map((c) => [c.name, [c.name, callWord(model, step, c), c.devices.length ? `${c.strategy} on ${c.devices.length}` : 'on the host']]));
  const width = boxWidth(graph, [...texts.values()]);
  const room = box.clientWidth - 4;
  const gapX = rows.length > 1 ? Math.max(LEAST_APART, Math.min(MOST_APART, (room - rows.length * width - 4) / (rows.length - 1))) : 0;
  const tallest = Math.max(...rows.map((r) => r.length));
  const height = tallest * (BOX_PX + GAP_PX) + 24, wide = rows.length * width + (rows.length - 1) * gapX + 4;
  /** @type {Map<string, XY>} */
  const place = new Map();
  rows.forEach((row, i) => row.forEach((call, j) => place.set(call.name, {
    x: 2 + i * (width + gapX), y: 12 + (height - 24 - row.length * (BOX_PX + GAP_PX)) / 2 + j * (BOX_PX + GAP_PX) + GAP_PX / 2 })));
  const picture = svg('svg', { class: 'dag', viewBox: `0 0 ${wide} ${height}`, width: wide, height, style: `min-width:${Math.round(wide * LEAST_SCALE)}px` });
  for (const edge of graph.edges) {
    const a = place.get(edge.from), b = place.get(edge.to);
    if (!a || !b) continue;
    const at = hotPath.findIndex((t) => t.call === edge.to);
    const hot = at > 0 && hotPath[at - 1].call === edge.from;
    const line = svg('path', { d: edgePath(a, b, width, gapX, height), fill: 'none', stroke: hot ? 'var(--bad)' : 'var(--quiet)', 'stroke-width': hot ? 2 : 1 });
    line.append(svg('title', {}, document.createTextNode(edge.keys.join(', '))));
    picture.append(line);
  }
  for (const call of graph.calls) {
    const at = place.get(call.name), own = texts.get(call.name);
    if (at && own) picture.append(callBox(model, step, call, at, width, own, critical.has(call.name), pick));
  }
  const path = hotPath.map((t) => `${t.call}${t.e === Infinity ? '' : ` ${timeText(t.e - t.b)}`}`).join(' > ') || 'no task yet';
  box.replaceChildren(picture, el('div', { class: 'path quiet' }, el('b', { class: 'bad' }, 'critical path'), ` ${path}`));
  return undefined;
}
