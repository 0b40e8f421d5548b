// The first screen above the timeline: how the run is, in a line, a sentence and
// six small curves.
import { valuesOf } from '../model/metrics.js';
import { waitCycle, openWaits } from '../model/reasons.js';
import { countText, leftText, percentText, short } from '../model/text.js';
import { attemptText, verdict } from '../model/verdict.js';
import { byId, el, say, svg, tip } from './dom.js';

/** @typedef {import('../model/flows.js').Arrow} Arrow */
/** @typedef {import('../model/model.js').Model} Model */
/** @typedef {import('../model/metrics.js').MetricsRow} MetricsRow */
/** @typedef {import('../model/metrics.js').Point} Point */

const WIDE = 132, HIGH = 24;
const MOST_POINTS = 400;

// Each small curve: its name, the metrics that it may show, the first that the
// run has, and how its value is written.
/** @type {[name: string, metrics: string[], text: (x: number) => string][]} */
const SPARKS = [
  ['reward', ['critic/score/mean', 'critic/rewards/mean', 'train/accuracy'], short],
  ['KL', ['actor/reward_kl_penalty', 'actor/ppo_kl', 'actor/kl_loss'], short],
  ['loss', ['actor/pg_loss', 'train/loss'], short],
  ['length', ['response_length/mean', 'prompt_length/mean'], short],
  ['tokens/s', ['perf/throughput'], short],
  ['idle', ['perf/idle_ratio'], percentText],
];

/** @param {string} name @param {string} metric @param {MetricsRow[]} rows @param {(x: number) => string} text */
function spark(name, metric, rows, text) {
  const points = valuesOf(rows, metric);
  const every = Math.max(1, Math.ceil(points.length / MOST_POINTS));
  const drawn = points.filter((_, i) => i % every === 0 || i === points.length - 1);
  const xs = drawn.map((p) => p[0]), ys = drawn.map((p) => p[1]);
  const x0 = xs[0], x1 = Math.max(xs[xs.length - 1], x0 + 1);
  let y0 = Math.min(...ys), y1 = Math.max(...ys);
  if (y1 - y0 < 1e-12) { y0 -= Math.abs(y0) * 0.5 + 1e-9; y1 += Math.abs(y1) * 0.5 + 1e-9; }
  /** @type {(point: Point) => Point} */
  const at = ([x, y]) => [(x - x0) / (x1 - x0) * (WIDE - 4) + 2, 2 + (HIGH - 4) * (1 - (y - y0) / (y1 - y0))];
  const picture = svg('svg', { viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: 'none', class: 'spark' });
  picture.append(svg('polyline', { points: drawn.map((p) => at(p).map((v) => v.toFixed(1)).join(',')).join(' '), 'vector-effect': 'non-scaling-stroke' }));
  const row = el('div', { class: 'spark-row', 'data-metric': metric, tabindex: 0, role: 'button', 'aria-label': `${metric}: ${text(ys[ys.length - 1])}, opens the curves` }, el('span', { class: 'name' }, name), picture, el('b', { class: 'num' }, text(ys[ys.length - 1])));
  /** @type {(e: PointerEvent) => Point} */
  const nearest = (e) => {
    const box = picture.getBoundingClientRect(), share = Math.max(0, Math.min(1, (e.clientX - box.left) / box.width));
    const step = x0 + share * (x1 - x0);
    return points.reduce((best, p) => (Math.abs(p[0] - step) < Math.abs(best[0] - step) ? p : best));
  };
  row.addEventListener('pointermove', (e) => { const p = nearest(e); tip(`${metric} ${text(p[1])} in step ${p[0]} (${text(Math.min(...points.map((q) => q[1])))} to ${text(Math.max(...points.map((q) => q[1])))})`, e.clientX, e.clientY); });
  row.addEventListener('pointerleave', () => tip(''));
  return row;
}

/** @param {HTMLElement} box @param {Model} model @param {() => void} openCurves */
export function drawSparks(box, model, openCurves) {
  const key = `${model.metrics.length} ${model.metrics.at(-1)?.step ?? 0}`;
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  const rows = SPARKS.map(([name, metrics, text]) => {
    const metric = metrics.find((m) => model.metrics.some((row) => Number.isFinite(row[m])));
    return metric ? spark(name, metric, model.metrics, text) : el('div', { class: 'spark-row' }, el('span', { class: 'name' }, name), el('span', { class: 'quiet' }, model.metrics.length ? 'not measured' : model.live() ? 'no step yet' : 'not recorded'));
  });
  rows.forEach((row) => {
    row.addEventListener('click', openCurves);
    row.addEventListener('keydown', (e) => { if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); openCurves(); } });
  });
  box.replaceChildren(...rows);
}

/**
 * Draws the line of the run's state.
 * @param {Model} model @param {boolean} connected
 */
export function drawHeader(model, connected) {
  const s = model.status;
  const live = model.live() && connected;
  say(byId('state'), s ? `${s.state}${connected || !model.live() ? '' : ', not connected'}` : connected ? 'connected' : 'not connected');
  byId('state').className = `pill ${s && /failed|lost/.test(s.state) ? 'bad' : s && /recovering|stopping/.test(s.state) ? 'warn' : live || (s && s.state === 'done') ? 'good' : ''}`;
  say(byId('progress'), s ? `step ${s.step} of ${s.steps}` : '');
  say(byId('left'), s?.eta_s && s.eta_s > 0 && live ? `${leftText(s.eta_s)} left` : '');
  say(byId('attempt'), attemptText(model));
  byId('bar').style.width = s && s.steps ? `${100 * Math.min(1, s.step / s.steps)}%` : '0';
  const dropped = model.dropped();
  const { events: missing, wholeFrom } = model.missing();
  say(byId('drops'), [`${countText(model.events)} events`, dropped && `${countText(dropped)} dropped`, model.part ? `steps ${model.part.first} to ${model.part.last} in detail` : missing && `complete from step ${wholeFrom} on`].filter(Boolean).join(', '));
  byId('newest').hidden = !model.part;
  byId('drops').className = dropped ? 'warn' : 'quiet';
}

/** @type {[part: 'fine' | 'fast' | 'why' | 'failed', question: string][]} */
const QUESTIONS = [['fine', 'Is it fine?'], ['fast', 'How fast?'], ['why', 'Why not faster?'], ['failed', 'What failed?']];

/**
 * Draws the four answers; only texts that changed are replaced, so a reader who
 * selects one, or hears it, is not disturbed.
 * @param {Model} model @param {boolean} stall
 */
export function drawVerdict(model, stall) {
  const said = verdict(model, stall), box = byId('verdict');
  if (!box.children.length)
    box.replaceChildren(...QUESTIONS.map(([part, question]) => el('div', { class: 'answer', 'data-part': part }, el('h2', {}, question), el('p', {}, el('b', {}), ' ', el('span', {})))));
  box.className = said.mood;
  QUESTIONS.forEach(([part], i) => {
    const [word, text] = /** @type {HTMLElement[]} */ ([...box.children[i].querySelectorAll('b, span')]);
    say(word, said[part].word);
    say(text, said[part].text);
    word.className = said[part].mood;
  });
}

/**
 * Returns the distinct ones of the oldest waits, each with its count.
 * @param {Arrow[]} waits
 */
function namedWaits(waits) {
  /** @type {Map<string, number>} */
  const times = new Map();
  for (const w of waits) {
    const text = `${w.from.name} waits for ${w.to.name} (${w.name}`;
    times.set(text, (times.get(text) || 0) + 1);
  }
  return [...times].slice(0, 4).map(([text, n]) => `${text}${n > 1 ? `, ${n} times` : ''})`).join('; ') || 'nobody waits for an answer';
}

/**
 * Returns what is wrong now, for the banner; empty: nothing.
 * @param {Model} model @param {boolean} connected @param {number} quietS @param {number} stallS
 */
export function alarm(model, connected, quietS, stallS) {
  const live = model.live() && connected;
  const waits = openWaits(model), cycle = waitCycle(waits);
  const failed = model.status?.last_failure, state = model.status?.state ?? '';
  const suspect = (model.status?.workers ?? []).filter((w) => /suspect|lost/.test(w.state));
  if (failed && state === 'recovering') return `recovering: ${failed}`;
  if (failed && /failed|lost/.test(state)) return failed; // others have recovered
  if (live && suspect.length) return suspect.map((w) => `worker ${w.rank} (pid ${w.pid}) is ${w.state}`).join(', ');
  if (live && cycle.length) return `a cycle of waits: ${[...cycle, cycle[0]].join(' > ')}`;
  if (model.live() && !connected && model.graph.name) return 'the connection is lost: the process that served this page has ended';
  if (live && quietS > stallS) return `no progress for ${quietS.toFixed(0)} s; ${namedWaits(waits)}`;
  return '';
}
