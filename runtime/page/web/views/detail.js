// Details beside what was clicked: one task with its inputs and outputs, one
// request through all its hops.
import { bytesText, clockText, timeText } from '../model/text.js';
import { entryOf } from '../model/track.js';
import { el, head, note, table } from './dom.js';

/** @typedef {import('../model/flows.js').Arrow} Arrow */
/** @typedef {import('../model/model.js').Model} Model */
/** @typedef {import('../model/track.js').Slice} Slice */
/** @typedef {import('../main.js').PageState} PageState */

/**
 * Returns the keys that a call's slices read or wrote: bytes here and of all
 * its devices in the step.
 * @param {Model} model @param {Slice} slice @param {'reads ' | 'writes '} verb
 */
function keyBytes(model, slice, verb) {
  /** @type {Map<string, { here: number, all: number }>} */
  const keys = new Map();
  const parts = model.steps.get(slice.step)?.get(slice.name) ?? [];
  for (const part of parts.includes(slice) ? parts : [slice, ...parts]) {
    const { row, first, last } = part.track.visible(part.depth + 1, part.b, Number.isNaN(part.e) ? model.last : part.e);
    for (let i = first; i < last; ++i) {
      if (!row[i].name.startsWith(verb)) continue;
      const key = row[i].name.slice(verb.length);
      const bytes = entryOf(keys, key, () => ({ here: 0, all: 0 }));
      bytes.all += row[i].amount;
      if (part === slice) bytes.here += row[i].amount;
    }
  }
  return [...keys];
}

/** @param {Model} model @param {Slice} slice @param {'reads ' | 'writes '} verb @param {string} title */
function keyTable(model, slice, verb, title) {
  const rows = keyBytes(model, slice, verb);
  if (!rows.length) return [];
  /** @type {(key: string) => string} */
  const about = (key) => {
    const edge = model.graph.edges.filter((e) => (verb === 'reads ' ? e.to : e.from) === slice.name && e.keys.includes(key));
    if (verb === 'reads ') return edge.length ? `from ${edge[0].from}` : 'from the data set';
    return edge.length ? `for ${edge.map((e) => e.to).join(', ')}` : '';
  };
  return [el('h2', {}, title), table([head('key'), head('here', 'num'), head('all devices', 'num'), head('')],
    rows.map(([key, b]) => [key, bytesText(b.here), bytesText(b.all), about(key)]))];
}

/** @type {(model: Model, t: number) => string} */
const wallClock = (model, t) => clockText((t + model.realtime) / 1e6);

/**
 * Returns lines of the master's log that name the slice's step or call, and of
 * both logs what was written while it ran; lines of its own process may name
 * the call at any time.
 * @param {Model} model @param {Slice} slice
 */
function logAround(model, slice) {
  const from = wallClock(model, slice.b), to = Number.isNaN(slice.e) ? '9' : wallClock(model, slice.e);
  /** @type {(at: string) => boolean} */
  const during = (at) => at >= from && at.slice(0, 23) <= to;
  const process = slice.track.file.process, names = new RegExp(`\\b${slice.name.replace(/\W/g, '\\$&')}\\b`);
  const master = model.log.filter((line) => (slice.step && new RegExp(`step ${slice.step}\\b`).test(line))
    || names.test(line) || during(line)).slice(-8).map((line) => ({ at: line.slice(0, 23), text: line.slice(24), of: 'master' }));
  const own = (model.logs.get(process) || []).filter((row) => names.test(row.text) || during(row.at))
    .slice(-20).map((row) => ({ ...row, of: process }));
  return [...master, ...own].sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
    .map((row) => `${row.at.slice(11)} ${row.of}: ${row.text.slice(0, 400)}`);
}

const WIDE_PX = 570, HIGH_PX = 560;
/** @type {Element | null} */
let openedFrom = null;        // what had the focus before

/**
 * Hides the box; what had the focus before it was opened has it again. Returns
 * whether it was open.
 * @param {HTMLElement} box
 */
export function closeBeside(box) {
  if (box.hidden) return false;
  const hadFocus = box.contains(document.activeElement);
  box.hidden = true;
  if (hadFocus && openedFrom instanceof HTMLElement && openedFrom.isConnected) openedFrom.focus({ preventScroll: true });
  return true;
}

/**
 * Shows a box beside the point that was clicked, never over it: on its right or
 * its left, whichever has more room; on a narrow page, below.
 * @param {HTMLElement} box @param {number} x @param {number} y
 */
export function openBeside(box, x, y) {
  if (box.hidden) openedFrom = document.activeElement;
  box.hidden = false;
  box.scrollTop = 0;
  box.focus({ preventScroll: true });
  const wide = window.innerWidth, high = window.innerHeight, gap = 28;
  const style = { left: '0', right: 'auto', top: '0', bottom: 'auto', width: '100%', maxHeight: '' };
  if (wide < 700) Object.assign(style, y < high / 2 ? { top: `${Math.round(y + gap)}px`, maxHeight: `${Math.round(high - y - gap)}px` } : { maxHeight: `${Math.round(y - gap)}px` });
  else {
    const isLeft = x >= wide / 2, width = Math.min(WIDE_PX, (isLeft ? x : wide - x) - gap - 8), height = Math.min(HIGH_PX, high - 16);
    Object.assign(style, { width: `${width}px`, left: `${isLeft ? x - gap - width : x + gap}px`,
      maxHeight: `${height}px`, top: `${Math.max(8, Math.min(y - height / 2, high - height - 8))}px` });
  }
  Object.assign(box.style, style);
}

/** @type {(state: PageState) => HTMLElement} */
const closeButton = (state) => el('button', { class: 'close', title: 'close (Esc)', onclick: () => state.close() }, 'close');

/**
 * Draws what is known of one slice: inputs and outputs, versions, devices,
 * phases, messages around it.
 * @param {HTMLElement} box @param {Slice} slice @param {Model} model @param {PageState} state
 */
export function drawDetail(box, slice, model, state) {
  const call = model.calls.get(slice.name);
  const end = Number.isNaN(slice.e) ? model.last : slice.e;
  /** @type {Map<string, number>} */
  const phases = new Map();
  for (let d = slice.depth + 1; d < slice.track.depths.length; ++d) {
    const { row, first, last } = slice.track.visible(d, slice.b, end);
    for (let i = first; i < last; ++i)
      if (!/^(reads|writes) /.test(row[i].name)) phases.set(row[i].name, (phases.get(row[i].name) || 0) + ((Number.isNaN(row[i].e) ? end : row[i].e) - row[i].b));
  }
  const near = model.arrows.filter((a) => a.step === slice.step && a.t1 >= slice.b - 5e6 && a.t0 <= end + 5e6
    && (a.from.file === slice.track.file || a.to.file === slice.track.file)).slice(0, 40);
  const version = call && Math.max(0, slice.step - 1 - call.lag);
  const log = logAround(model, slice), process = slice.track.file.process;
  box.replaceChildren(
    closeButton(state),
    el('h2', {}, `${slice.name}${slice.step ? ` of step ${slice.step}` : ''}`),
    table([head(''), head('')], [
      ['on', `${slice.track.name} (${slice.track.file.process})`], ['began', `${timeText(slice.b - model.origin)} (${wallClock(model, slice.b).slice(11)})`],
      ['took', Number.isNaN(slice.e) ? 'running' : timeText(slice.e - slice.b)],
      ...(call ? [['kind', `${call.kind}${call.role ? ` of ${call.role}` : ''}`], ['plan', call.devices.length ? `${call.strategy} on devices ${call.devices.join(', ')}` : 'on the host'],
        ...(call.role ? [['version', version ? `weights after step ${version}` : 'the first weights']] : [])] : []),
      ...[...phases].map(([name, ns]) => [name, timeText(ns)])]),
    ...keyTable(model, slice, 'reads ', 'inputs'), ...keyTable(model, slice, 'writes ', 'outputs'),
    el('h2', {}, 'messages around it'),
    near.length ? table([head('message'), head('from'), head('to'), head('took', 'num')], near.map((a) => [el('button', { onclick: () => state.follow(a) }, a.name), a.from.name, a.to.name, timeText(a.t1 - a.t0)])) : note('none'),
    el('h2', {}, 'log'), log.length ? el('pre', {}, log.join('\n')) : note('no line names it, and none was written while it ran'),
    ...(process === 'master' || model.logs.has(process) ? [] : [note(`The run folder has no log of ${process}: its lines are where it was started.`)]));
}

/**
 * Draws one request through all its hops, as requestHops returns them.
 * @param {HTMLElement} box @param {[Arrow, number][]} hops @param {PageState} state
 */
export function drawFlow(box, hops, state) {
  const [[first]] = hops;
  box.replaceChildren(closeButton(state), el('h2', {}, `${first.name} of step ${first.step}, all hops`),
    table([head('at', 'num'), head('message'), head('from > to'), head('took', 'num')],
      hops.map(([a, depth]) => [timeText(a.t0 - first.t0), `${'. '.repeat(depth)}${a.name}`, `${a.from.name} > ${a.to.name}`, timeText(a.t1 - a.t0)])));
}
