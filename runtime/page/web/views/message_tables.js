// Tables about messages: one by one, by link, mailbox and kind.
import { openWaits, quantile } from '../model/reasons.js';
import { bytesText, countOf, countText, timeText } from '../model/text.js';
import { entryOf } from '../model/track.js';
import { el, head, lines, note, quiet, svg, table } from './dom.js';

/** @typedef {import('../model/flows.js').Arrow} Arrow */
/** @typedef {import('../model/model.js').Model} Model */
/** @typedef {import('../model/metrics.js').Point} Point */
/** @typedef {import('../model/track.js').Track} Track */
/** @typedef {import('../main.js').PageState} PageState */
/** @typedef {import('./dom.js').Cell} Cell */

const MOST = 200;             // newest messages in the list
/**
 * Heartbeats are every process's, each half a second: they are left out
 * unless asked for.
 * @type {(a: Arrow) => boolean}
 */
const isHeartbeat = (a) => /^(ping|pong|tick)$/.test(a.of || a.name);

/** @param {HTMLElement} main @param {Model} model @param {PageState} state */
export function drawMessages(main, model, state) {
  const asked = model.arrows.filter((a) => state.timeline.wanted(a));
  const shown = state.timeline.filter.kind ? asked : asked.filter((a) => !isHeartbeat(a));
  const wanted = shown.slice(-MOST).reverse();
  /** @type {(t: number) => string} */
  const at = (t) => `${((t - model.origin) / 1e9).toFixed(4)} s`;
  const flying = model.inFlight().filter((s) => state.timeline.wanted({ name: s.name, step: s.step, from: s.track, to: s.to }));
  main.replaceChildren(
    note([`${countOf(model.arrows.length, 'message')} with both ends, ${countText(flying.length)} on their way`, asked.length < model.arrows.length && `${countText(asked.length)} of them chosen above`,
      shown.length > MOST && `the newest ${MOST} are listed`, asked.length > shown.length && `${countOf(asked.length - shown.length, 'heartbeat')} left out`].filter(Boolean).join('; ')),
    table([head('sent at', 'num'), head('message'), head('step', 'num'), head('from'), head('to'), head('took', 'num'), head('bytes', 'num')], [
      ...flying.slice(0, 20).map((s) => [at(s.t), el('span', { class: 'warn' }, `${s.name} (on its way)`), s.step || '', s.track.name, s.to ? s.to.name : '', timeText(model.last - s.t), s.bytes || '']),
      ...wanted.map((a) => [at(a.t0),
        el('button', { onclick: () => state.follow(a) }, a.name), a.step || '', a.from.name, a.to.name, timeText(a.t1 - a.t0), a.bytes || ''])]));
}

/**
 * Returns the last value of a counter before a time.
 * @type {(points: Point[], t: number) => number}
 */
const counterAt = (points, t) => { let v = 0; for (const p of points) { if (p[0] > t) break; v = p[1]; } return v; };

/** @param {Model} model @param {string[]} unique */
function linkCells(model, unique) {
  /** @type {Map<string, { count: number, recent: number, us: number[], flying: number }>} */
  const cells = new Map();
  for (const from of unique) for (const to of unique) cells.set(`${from}>${to}`, { count: 0, recent: 0, us: [], flying: 0 });
  for (const a of model.arrows) {
    const c = cells.get(`${a.from.file.process}>${a.to.file.process}`);
    if (!c) continue;
    ++c.count;
    if (a.t1 > model.last - 5e9) ++c.recent;
    c.us.push((a.t1 - a.t0) / 1e3);
  }
  for (const s of model.inFlight()) {
    const c = s.to && cells.get(`${s.track.file.process}>${s.to.file.process}`);
    if (c) ++c.flying;
  }
  return cells;
}

/**
 * Returns a table with a row per sender and a column per receiver.
 * @type {(names: string[], cell: (from: string, to: string) => Cell | null) => HTMLElement}
 */
const matrix = (names, cell) => table([head(''), ...names.map((n) => head(n, 'num'))],
  names.map((from) => [from, ...names.map((to) => cell(from, to) || el('span', { class: 'quiet' }, '-'))]));

/**
 * Returns what the second has pulled from the first: rows and weights.
 * @param {Model} model @param {number} step @param {string} from @param {string} to
 */
function plane(model, step, from, to) {
  const points = model.counters.get(`pulled_bytes ${from} > ${to}`) || [];
  const open = (model.counters.get(`open_pulls ${from} > ${to}`) || []).at(-1);
  if (!points.length && !(open && open[1])) return null;
  const total = points.at(-1)?.[1] ?? 0, span = model.stepSpan(step);
  return lines(`${bytesText((total - counterAt(points, model.last - 5e9)) / 5)}/s`,
    span && quiet(`${bytesText(counterAt(points, span.e) - counterAt(points, span.b))} in step ${step}`), quiet(`${bytesText(total)} in all`),
    open && open[1] ? el('span', { class: 'warn' }, `${open[1]} queued`) : null);
}

/** @param {HTMLElement} main @param {Model} model */
export function drawLinks(main, model) {
  const unique = [...new Set(model.files.map((f) => f.process))];
  const cells = linkCells(model, unique);
  const pulling = unique.filter((n) => [...model.counters.keys()].some((key) => /^(pulled_bytes|open_pulls) /.test(key) && ` ${key} `.includes(` ${n} `)));
  const step = model.lastWholeStep();
  main.replaceChildren(note('rows send, columns receive; rates are those of the last 5 s'),
    el('h3', {}, 'rows and weights over the data plane'),
    pulling.length ? matrix(pulling, (from, to) => plane(model, step, from, to)) : note('none yet: producers and consumers share their process'),
    el('h3', {}, 'messages between processes'),
    matrix(unique, (from, to) => {
      const c = cells.get(`${from}>${to}`);
      return c?.count ? lines(`${(c.recent / 5).toFixed(0)}/s`, quiet(`p99 ${timeText(quantile(c.us.slice(-3000), 0.99) * 1e3)}`),
        c.flying ? el('span', { class: 'warn' }, `${c.flying} on their way`) : null) : null;
    }));
}

/** @type {(us: number[]) => string[]} */
const p50and99 = (us) => (us.length ? [timeText(quantile(us, 0.5) * 1e3), timeText(quantile(us, 0.99) * 1e3)] : ['', '']);

/**
 * Draws mailboxes: each holds what was sent to its actor and not handled yet.
 * @param {HTMLElement} main @param {Model} model
 */
export function drawMailboxes(main, model) {
  const flying = model.inFlight(), waits = openWaits(model);
  /** @type {Map<Track, Arrow[]>} */
  const own = new Map();
  for (const a of model.arrows) entryOf(own, a.to, () => []).push(a);
  const rows = model.tracks.filter((t) => t.kind === 'actor' && t.received).map((track) => {
    const arrows = (own.get(track) || []).slice(-1000);
    return { track, held: flying.filter((s) => s.to === track), recent: arrows.filter((a) => a.t1 > model.last - 5e9).length,
      asked: waits.filter((w) => w.to === track), waited: arrows.map((a) => (a.t1 - a.t0) / 1e3), worked: [...track.handling.values()].flat() };
  }).sort((a, b) => b.held.length - a.held.length || b.asked.length - a.asked.length || b.recent - a.recent);
  /** @type {<T>(list: T[], t: (entry: T) => number) => string} */
  const since = (list, t) => (list.length ? timeText(model.last - t(list[0])) : '');
  main.replaceChildren(table([head('actor'), head('process'), head('in the mailbox', 'num'), head('oldest', 'num'), head('unanswered', 'num'), head('oldest', 'num'),
    head('handled', 'num'), head('a second', 'num'), head('waited p50', 'num'), head('p99', 'num'), head('handling p50', 'num'), head('p99', 'num')],
  rows.map((r) => [r.track.name, r.track.file.process, r.held.length || '', since(r.held, (s) => s.t), r.asked.length || '', since(r.asked, (w) => w.t1),
    r.track.received, (r.recent / 5).toFixed(1), ...p50and99(r.waited), ...p50and99(r.worked)])));
}

/**
 * Returns the frequencies of times, in steps of the square root of two.
 * @param {number[]} us
 */
function histogram(us) {
  const bins = new Uint32Array(56);
  for (const t of us) ++bins[Math.max(0, Math.min(55, Math.floor(Math.log2(t) * 2) + 8))];
  const top = Math.max(...bins, 1);
  const picture = svg('svg', { width: 170, height: 34 });
  bins.forEach((n, i) => {
    if (!n) return;
    const h = Math.max(1, 30 * n / top);
    const bar = svg('rect', { x: i * 3, y: 32 - h, width: 2.4, height: h, fill: 'var(--accent)' });
    bar.append(svg('title', {}, document.createTextNode(`${timeText(2 ** ((i - 8) / 2) * 1e3)}: ${n}`)));
    picture.append(bar);
  });
  picture.append(svg('line', { x1: 0, x2: 168, y1: 33, y2: 33, stroke: 'var(--line)' }));
  return picture;
}

/** @param {HTMLElement} main @param {Model} model */
export function drawLatency(main, model) {
  /** @type {Map<string, number[]>} */
  const worked = new Map();
  for (const track of model.tracks)
    for (const [name, us] of track.handling) entryOf(worked, name, () => []).push(...us);
  const rows = [...model.flows.kinds].sort((a, b) => b[1].count - a[1].count);
  /** @type {(us: number[]) => Cell[]} */
  const parts = (us) => [...p50and99(us), us.length ? histogram(us) : ''];
  main.replaceChildren(note('queue: from send to handling within a process; wire: the same between processes, on the wire and in the mailbox; handling: until the handler returned. Bars from 0.1 us to 10 s.'),
    table([head('message'), head('count', 'num'), head('queue p50', 'num'), head('p99', 'num'), head(''), head('wire p50', 'num'), head('p99', 'num'), head(''), head('handling p50', 'num'), head('p99', 'num'), head('')],
      rows.map(([name, c]) => [name, c.count, ...parts(c.queue), ...parts(c.wire), ...parts(worked.get(name) || [])])));
}

