// The curves of the metrics: the chosen ones first, the rest in groups; smoothed
// or not, on a log axis or not; the value and step beside the pointer. What is
// constant, or equal to another, is one line of text.
import { short } from '../model/text.js';
import { curveGroups, metricsCsv, smoothed, valuesOf } from '../model/metrics.js';
import { el, note, save, svg, tip } from './dom.js';
import { cardSheet, pngBlob, svgBlob } from './picture.js';

/** @typedef {import('../model/metrics.js').Line} Line */
/** @typedef {import('../model/metrics.js').Point} Point */
/** @typedef {import('../model/model.js').Model} Model */
/** @typedef {import('../main.js').PageState} PageState */

const WIDE = 280, HIGH = 128, LEFT = 52, BOTTOM = 16, TOP = 6;

/** @type {(text: string, x: number, y: number, anchor: string) => SVGElement} */
const label = (text, x, y, anchor) => { const t = svg('text', { x, y, 'font-size': 10, fill: 'var(--quiet)', 'text-anchor': anchor }); t.textContent = text; return t; };

/** @param {Line[]} lines @param {boolean} log */
function scaleOf(lines, log) {
  const ys = lines.flatMap((l) => l.points.map((p) => p[1])).filter((y) => !log || y > 0);
  /** @type {(y: number) => number} */
  const to = (y) => (log ? Math.log10(y) : y);
  let y0 = to(Math.min(...ys)), y1 = to(Math.max(...ys));
  if (y1 === y0) { y1 += Math.abs(y1) || 1; y0 -= Math.abs(y0) || 1; }
  return { y0, y1, to, back: (/** @type {number} */ v) => (log ? 10 ** v : v) };
}

/**
 * Returns a card with a curve for each of `lines`; null: they have no points.
 * @param {string} title @param {Line[]} lines
 */
export function curveCard(title, lines, { smooth = 0, log = false, axis = 'step' } = {}) {
  const shown = lines.map((l) => ({ ...l, points: l.points.filter((p) => !log || p[1] > 0) })).filter((l) => l.points.length);
  if (!shown.length) return null;
  const xs = shown.flatMap((l) => l.points.map((p) => p[0]));
  const x0 = Math.min(...xs), x1 = Math.max(...xs, x0 + 1e-9);
  const { y0, y1, to, back } = scaleOf(shown, log);
  /** @type {(x: number) => number} */
  const px = (x) => LEFT + (WIDE - LEFT - 6) * (x - x0) / (x1 - x0);
  /** @type {(y: number) => number} */
  const py = (y) => TOP + (HIGH - BOTTOM - TOP) * (1 - (to(y) - y0) / (y1 - y0));
  const picture = svg('svg', { viewBox: `0 0 ${WIDE} ${HIGH}`, width: WIDE, height: HIGH });
  for (const share of [0, 0.5, 1]) {
    const y = TOP + (HIGH - BOTTOM - TOP) * (1 - share);
    picture.append(svg('line', { x1: LEFT, x2: WIDE - 6, y1: y, y2: y, stroke: 'var(--line)' }), label(short(back(y0 + share * (y1 - y0))), LEFT - 4, y + 3, 'end'));
  }
  /** @type {(x: number) => string} */
  const whole = axis === 'step' ? (x) => String(Math.round(x)) : short;
  picture.append(label(whole(x0), LEFT, HIGH - 3, 'start'), label(axis, (LEFT + WIDE) / 2, HIGH - 3, 'middle'), label(whole(x1), WIDE - 6, HIGH - 3, 'end'));
  /** @type {(points: Point[], i: number, faint: boolean) => SVGElement} */
  const line = (points, i, faint) => svg('polyline', { points: points.map((p) => `${px(p[0]).toFixed(1)},${py(p[1]).toFixed(1)}`).join(' '), class: `line line-${i}${faint ? ' faint' : ''}` });
  shown.forEach((l, i) => {
    if (smooth) picture.append(line(l.points, i, true));
    picture.append(line(smooth ? smoothed(l.points, smooth) : l.points, i, false));
  });
  const mark = svg('line', { y1: TOP, y2: HIGH - BOTTOM, stroke: 'var(--quiet)', visibility: 'hidden' });
  picture.append(mark);
  picture.addEventListener('pointermove', (e) => {
    const box = picture.getBoundingClientRect(), x = x0 + ((e.clientX - box.left) / box.width * WIDE - LEFT) / (WIDE - LEFT - 6) * (x1 - x0);
    const near = shown.map((l) => /** @type {[string, Point]} */ ([l.name, l.points.reduce((best, p) => (Math.abs(p[0] - x) < Math.abs(best[0] - x) ? p : best))]));
    mark.setAttribute('x1', String(px(near[0][1][0])));
    mark.setAttribute('x2', String(px(near[0][1][0])));
    mark.setAttribute('visibility', 'visible');
    tip(`${axis} ${whole(near[0][1][0])}: ${near.map(([name, p]) => `${name} ${short(p[1])}`).join(', ')}`, e.clientX, e.clientY);
  });
  picture.addEventListener('pointerleave', () => { mark.setAttribute('visibility', 'hidden'); tip(''); });
  /** @type {(line: Line) => string} */
  const now = (l) => short(l.points[l.points.length - 1][1]);
  const legend = shown.length > 1 ? shown.map((l, i) => el('span', { class: `key key-${i}` }, `${l.name} ${now(l)} `)) : [];
  const own = el('button', { class: 'save', title: 'save this curve as SVG', 'aria-label': `save ${title} as SVG`, onclick: () => save(`${title.replace(/\W+/g, '_')}.svg`, svgBlob(cardSheet([card], ''))) }, 'SVG');
  const card = el('div', { class: 'card', title: '' }, el('h3', {}, el('span', {}, shown.length > 1 ? title : `${title}: ${now(shown[0])}`), own), ...legend, picture);
  return card;
}

/**
 * Returns buttons that save all curves of a box as one picture.
 * @param {HTMLElement} box @param {string} name
 */
export function sheetButtons(box, name) {
  const sheet = () => cardSheet(/** @type {HTMLElement[]} */ ([...box.querySelectorAll('.card')]), name);
  return [el('button', { title: 'save the curves as SVG', onclick: () => save(`${name}_curves.svg`, svgBlob(sheet())) }, 'SVG'),
    el('button', { title: 'save the curves as PNG', onclick: () => { pngBlob(sheet()).then((blob) => save(`${name}_curves.png`, blob)); } }, 'PNG')];
}

/** @param {PageState} state @param {() => void} redraw @param {HTMLElement} body */
function controls(state, redraw, body) {
  const { curves } = state;
  const smooth = el('input', { type: 'range', min: 0, max: 0.98, step: 0.02, value: curves.smooth, title: 'smoothing', 'aria-label': 'smoothing' });
  smooth.addEventListener('input', () => { curves.smooth = Number(smooth.value); redraw(); });
  const log = el('button', { class: curves.log ? 'on' : '', 'aria-pressed': curves.log, onclick: () => { curves.log = !curves.log; redraw(); } }, 'log axis');
  const csv = el('button', { onclick: () => save(`${state.name()}_metrics.csv`, new Blob([metricsCsv(state.model.metrics)], { type: 'text/csv' })) }, 'CSV');
  return el('div', { class: 'bar' }, el('label', { class: 'together' }, 'smoothing ', smooth), log, csv, ...sheetButtons(body, state.name()));
}

/** @param {HTMLElement} main @param {Model} model @param {PageState} state */
export function drawCurves(main, model, state) {
  if (!model.metrics.length) return main.replaceChildren(note('no metrics yet'));
  const groups = curveGroups(model.metrics);
  const body = el('div', {});
  const redraw = () => {
    body.replaceChildren(...groups.list.flatMap(({ title, cards }) => {
      const drawn = cards.flatMap(([name, metrics]) => curveCard(name, metrics.map((n) => ({ name: n, points: valuesOf(model.metrics, n) })), state.curves) ?? []);
      return drawn.length ? [el('h3', {}, title), el('div', { class: 'cards' }, ...drawn)] : [];
    }), ...(groups.folded.length ? [el('details', {}, el('summary', {}, `${groups.folded.length} that do not change, or equal another`), ...groups.folded.map((text) => el('div', { class: 'quiet' }, text)))] : []));
    bar.replaceWith(bar = controls(state, redraw, body));
  };
  let bar = el('div');
  main.replaceChildren(bar, body);
  redraw();
  return undefined;
}
