// Tables about work: steps side by side, waits, slow devices, health, the plan.
import { isNumber } from '../model/metrics.js';
import { idleByReason, openWaits, stragglers, taskSpan, waitCycle } from '../model/reasons.js';
import { bytesText, countText, percentText, timeText } from '../model/text.js';
import { newestSteps, pathShares } from '../model/verdict.js';
import { el, head, note, table } from './dom.js';

/** @typedef {import('../model/model.js').Model} Model */
/** @typedef {import('../main.js').PageState} PageState */
/** @typedef {import('./dom.js').Cell} Cell */

/**
 * Returns the length tail: a step lasts as long as its longest response.
 * @param {Model} model
 */
function lengthTail(model) {
  const last = Math.max(0, ...model.samples.map((s) => s.step || 0));
  const own = model.samples.filter((s) => s.step === last && s.tokens).sort((a, b) => b.tokens - a.tokens);
  if (!own.length) return [];
  const half = own[own.length >> 1].tokens;
  return [el('h3', {}, `longest of ${own.length} answers of step ${last} (median ${half} tokens)`),
    table([head('sample', 'num'), head('tokens', 'num'), head('times the median', 'num'), head('end'), head('answer', 'text')],
      own.slice(0, 8).map((s) => [s.sample, s.tokens, (s.tokens / half).toFixed(2), s.finish_reason ?? '', (s.response ?? '').slice(0, 200)]))];
}

/** @param {HTMLElement} main @param {Model} model */
export function drawStragglers(main, model) {
  const rows = stragglers(model);
  const last = model.metrics.at(-1), mean = last?.['response_length/mean'], longest = last?.['response_length/max'];
  const cut = (100 * (last?.['response_length/clip_ratio'] || 0)).toFixed(1);
  const tail = isNumber(mean) && longest ? `answers of step ${last?.step}: mean ${mean.toFixed(1)}, longest ${longest} tokens, cut off ${cut} %` : '';
  const worst = rows[0];
  main.replaceChildren(
    el('p', {}, worst && worst.ratio > 1.3 ? el('b', { class: 'warn' }, `${worst.device} is slow: ${worst.ratio.toFixed(2)} times the others in ${worst.call}`) : 'no device is slower than 1.3 times the others'),
    table([head('call'), head('slowest device'), head('its median', 'num'), head('the others', 'num'), head('ratio', 'num')],
      rows.map((r) => [r.call, r.device, timeText(r.slow), timeText(r.rest), r.ratio.toFixed(2)])),
    el('p', {}, tail), ...lengthTail(model));
}

/** @param {HTMLElement} main @param {Model} model */
export function drawWaits(main, model) {
  const waits = openWaits(model);
  const cycle = waitCycle(waits);
  const steps = new Set([...model.steps.keys()].slice(-20));
  const idle = idleByReason(model, steps);
  main.replaceChildren(
    cycle.length ? el('p', { class: 'bad' }, `a cycle: ${[...cycle, cycle[0]].join(' waits for ')}`) : note('no cycle of waits'),
    waits.length ? table([head('who waits'), head('for'), head('message'), head('step', 'num'), head('since', 'num')],
      waits.slice(0, 100).map((w) => [w.from.name, `${w.to.name} (${w.to.file.process})`, w.name, w.step || '', timeText(model.last - w.t1)])) : note('nobody waits for an answer'),
    ...(idle.length ? [el('h3', {}, `idle time of the devices by reason, last ${steps.size} steps`),
      table([head('reason'), head('time', 'num')], idle.slice(0, 20).map(([why, ns]) => [why, timeText(ns)]))] : []));
}

/** @param {HTMLElement} main @param {Model} model */
export function drawHealth(main, model) {
  const { status } = model;
  /** @type {(process: string, what: string) => string} */
  const memory = (process, what) => { const points = model.counters.get(`${what} ${process}`); return points ? bytesText(points[points.length - 1][1]) : ''; };
  main.replaceChildren(
    table([head('process'), head('pid', 'num'), head('host'), head('state'), head('memory', 'num'), head('rows held', 'num'), head('last event', 'num'), head('clock', 'num'), head('dropped events', 'num')],
      model.files.filter((f) => f.process).map((f) => {
        const worker = status?.workers?.find((w) => `worker ${w.rank}` === f.process);
        const state = f.attempt < model.lastAttempt ? `attempt ${f.attempt}` : f.process === 'master' ? status?.state : worker ? worker.state : '';
        const bad = /lost|failed|suspect/.test(state || '');
        return [f.process, f.pid, worker ? worker.host : status?.host || '', el('span', { class: bad ? 'bad' : 'good' }, state || (f.closed ? 'ended' : '')),
          memory(f.process, 'memory_bytes'), memory(f.process, 'stash_bytes'),
          f.lastEvent > 0 ? `${timeText(Math.max(0, model.last - f.lastEvent))} ago` : '',
          f.clockError > 0 ? `\u00b1${timeText(f.clockError)}` : f.clockError < 0 ? 'not compared' : 'the same', el('span', { class: f.dropped ? 'warn' : '' }, countText(f.dropped))];
      })),
    el('h3', {}, 'log'), el('pre', {}, model.log.slice(-60).join('\n')));
}

/**
 * Draws the last steps side by side, the pinned one first, and their mean.
 * @param {HTMLElement} main @param {Model} model @param {PageState} state
 */
export function drawSteps(main, model, state) {
  const newest = newestSteps(model, 8);
  const steps = [state.pinnedStep, ...newest.reverse()].filter((s, i, all) => s > 0 && all.indexOf(s) === i);
  if (!steps.length) return main.replaceChildren(note('no step was recorded'));
  const calls = [...new Set(steps.flatMap((s) => [...model.steps.get(s)?.keys() ?? []]))];
  /** @type {(call: string) => number[]} */
  const spans = (call) => steps.map((s) => { const span = taskSpan(model, s, call); return span && span.e !== Infinity ? span.e - span.b : NaN; });
  const whole = steps.map((s) => { const span = model.stepSpan(s); return span ? span.e - span.b : NaN; });
  /** @type {(times: number[]) => string[]} */
  const texts = (times) => times.map((ns) => (Number.isNaN(ns) ? '' : timeText(ns)));
  /** @type {(times: number[]) => number} */
  const mean = (times) => { const known = times.filter((ns) => !Number.isNaN(ns)); return known.reduce((a, b) => a + b, 0) / known.length; };
  const shares = new Map(pathShares(model, newest).map((s) => [s.call, s.share]));
  /** @type {(name: string, times: number[]) => Cell[]} */
  const row = (name, times) => [name, ...texts(times), timeText(mean(times)), bar(mean(times) / mean(whole)), shares.has(name) ? percentText(shares.get(name) ?? 0) : ''];
  main.replaceChildren(table([head('task'), ...steps.map((s) => head(`step ${s}${s === state.pinnedStep ? ' (pinned)' : ''}`, 'num')), head('mean', 'num'), head(''), head('of the critical path', 'num')],
    [...calls.map((call) => /** @type {[string, number[]]} */ ([call, spans(call)])).filter(([, times]) => !Number.isNaN(mean(times))).map(([call, times]) => row(call, times)), row('whole step', whole)]));
  return undefined;
}

/** @type {(share: number) => HTMLElement} */
const bar = (share) => el('span', { class: 'share' }, el('i', { style: `width:${Math.round(100 * Math.min(1, share || 0))}px` }));

/**
 * Draws the plan: what runs where.
 * @param {HTMLElement} main @param {Model} model
 */
export function drawPlan(main, model) {
  const { calls, edges } = model.graph;
  if (!calls.length) return main.replaceChildren(note('the run folder has no dataflow'));
  /** @type {(names: unknown[]) => string} */
  const list = (names) => names.join(', ');
  main.replaceChildren(table([head('call'), head('kind'), head('role'), head('devices'), head('strategy'), head('lag', 'num'), head('reads', 'text'), head('writes', 'text'), head('after')],
    calls.map((c) => [c.name, c.kind, c.role || '', c.devices.length ? list(c.devices) : 'host', c.strategy, c.lag || '', list(c.reads || []), list(c.writes || []), list([...new Set(edges.filter((e) => e.to === c.name).map((e) => e.from))])])),
    ...(model.settings ? [el('h3', {}, 'settings'), el('pre', {}, model.settings)] : []));
  return undefined;
}
