// The first line of the page: is it fine, how fast, why not faster. Each part
// is computed from the newest steps.
import { isNumber } from './metrics.js';
import { criticalPath, idleByReason, median, stragglers } from './reasons.js';
import { percentText, roughTime } from './text.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./metrics.js').MetricsRow} MetricsRow */
/** @typedef {'good' | 'warn' | 'bad'} Mood */
/** @typedef {{ mood: Mood, text: string }} Verdict */
/** @typedef {{ call: string, ns: number, share: number }} PathShare */

const NEWEST = 20;          // steps that a verdict is about
const SLOW_RATIO = 1.3;     // a device, beside the others of its call
const SLOWER_RATIO = 1.3;   // the newest steps, beside those before
const WARM_UP = 2;          // first steps, which are slower

/** @type {(list: number[]) => number} */
const mean = (list) => (list.length ? list.reduce((a, b) => a + b, 0) / list.length : NaN);
/** @type {(rows: MetricsRow[], name: string) => number[]} */
const valuesOf = (rows, name) => rows.map((m) => m[name]).filter(isNumber);

/**
 * Returns the time of a step in s: as committed, else as traced.
 * @param {Model} model
 */
function stepSeconds(model) {
  const said = valuesOf(model.metrics.slice(-NEWEST), 'timing_s/step');
  if (said.length) return median(said);
  const steps = [...model.steps.keys()].sort((a, b) => a - b).slice(-NEWEST);
  const spans = steps.flatMap((s) => model.stepSpan(s) ?? []);
  return spans.length ? (spans[spans.length - 1].e - spans[0].b) / spans.length / 1e9 : NaN;
}

/**
 * Returns each call's mean share of the critical path, the largest first.
 * @param {Model} model @param {number[]} steps @returns {PathShare[]}
 */
export function pathShares(model, steps) {
  /** @type {Map<string, number>} */
  const times = new Map();
  let all = 0;
  for (const step of steps)
    for (const task of criticalPath(model, step)) {
      if (!Number.isFinite(task.e)) continue;
      const span = model.stepSpan(step);
      if (span && !times.has(`step ${step}`)) { times.set(`step ${step}`, 0); all += span.e - span.b; }
      times.set(task.call, (times.get(task.call) || 0) + task.e - task.b);
    }
  return [...times].filter(([name]) => !/^step \d+$/.test(name))
    .map(([call, ns]) => ({ call, ns: ns / steps.length, share: ns / all })).sort((a, b) => b.ns - a.ns);
}

/**
 * Returns the newest whole steps that the model has.
 * @param {Model} model
 */
export function newestSteps(model, most = NEWEST) {
  const whole = model.lastWholeStep() || 0;
  return [...model.steps.keys()].filter((s) => s <= whole).sort((a, b) => a - b).slice(-most);
}

/**
 * Returns what would shorten the step most, as a sentence; empty: unknown.
 * @param {Model} model @param {PathShare[]} shares @param {[why: string, ns: number][]} idle @param {number} devices
 */
function gain(model, shares, idle, devices) {
  const first = shares[0];
  const own = model.calls.get(first.call);
  const waiting = idle.find(([why]) => why !== 'hand-over');
  const perStep = waiting ? waiting[1] / devices : 0;
  if (own && own.devices.length && own.devices.length < devices && first.ns / 2 > perStep)
    return `; ${own.devices.length === 1 ? 'a second device' : 'more devices'} there would gain most (at most ${roughTime(first.ns / 2)} a step)`;
  if (waiting && perStep * 20 > first.ns) return `; most idle time: ${waiting[0]} (${roughTime(perStep)} a step)`;
  return own && own.devices.length === devices ? ', on all devices' : '';
}

/** @param {Model} model @param {number[]} steps */
function busyShare(model, steps) {
  const idle = valuesOf(model.metrics.slice(-NEWEST), 'perf/idle_ratio');
  if (idle.length) return 1 - mean(idle);
  const spans = steps.flatMap((s) => model.stepSpan(s) ?? []);
  if (!spans.length) return NaN;
  const from = Math.min(...spans.map((s) => s.b)), to = Math.max(...spans.map((s) => s.e));
  let busy = 0;
  for (const device of model.devices()) {
    const { row, first, last } = device.visible(0, from, to);
    for (let i = first; i < last; ++i) busy += Math.min(to, Number.isNaN(row[i].e) ? to : row[i].e) - Math.max(from, row[i].b);
  }
  return busy / (to - from) / Math.max(1, model.deviceCount());
}

/**
 * What is wrong, in one sentence, with how bad it is.
 * @param {Model} model @param {boolean} stall @returns {[Mood, string]}
 */
function trouble(model, stall) {
  const { status } = model;
  const state = status?.state ?? '';
  if (state === 'recovering') return ['warn', 'Recovering.'];
  if (status && /failed|lost/.test(state)) return ['bad', `${state === 'lost' ? 'Its process is gone' : 'Failed'} in step ${status.step + 1}.`];
  if (stall) return ['bad', 'Stalled.'];
  /** @type {MetricsRow} */
  const last = model.metrics.at(-1) || { step: 0 };
  const broken = Object.keys(last).find((name) => /^(actor|critic|train)\//.test(name) && (last[name] === null || Number.isNaN(last[name])));
  if (broken) return ['bad', `${broken} is not a number in step ${last.step}.`];
  const slow = stragglers(model)[0];
  if (slow && slow.ratio > SLOW_RATIO && slow.slow > 1e6) return ['warn', `${slow.device.replace('d', 'D')} is slow: ${slow.ratio.toFixed(1)} times the others in ${slow.call}.`];
  const times = valuesOf(model.metrics.slice(WARM_UP), 'timing_s/step');
  const now = median(times.slice(-NEWEST)), before = median(times.slice(0, -NEWEST));
  if (times.length > 2 * NEWEST && now > SLOWER_RATIO * before) return ['warn', `Slower than before: ${roughTime(before * 1e9)} a step until step ${last.step - NEWEST}.`];
  return ['good', state === 'done' ? 'Done.' : /stopped|interrupted/.test(state) ? 'Stopped.' : state === 'stopping' ? 'Stopping.' : 'Fine.'];
}

/**
 * Returns how the run is; `stall` says that a live run makes no progress.
 * @param {Model} model @returns {Verdict}
 */
export function verdict(model, stall = false) {
  const [mood, opening] = trouble(model, stall);
  const steps = newestSteps(model).filter((s) => model.isWhole(s));
  if (stall && mood === 'bad') return { mood, text: opening }; // the banner names the waits
  if (!steps.length) return { mood, text: mood === 'good' ? `${opening === 'Fine.' ? '' : `${opening} `}No step was completed${model.live() ? ' yet' : ''}.` : opening };
  const parts = [opening];
  const seconds = stepSeconds(model);
  const predicted = valuesOf(model.metrics.slice(-NEWEST), 'perf/predicted_step_s').at(-1) ?? NaN;
  if (seconds > 0) parts.push(`${roughTime(seconds * 1e9)} a step${predicted > 0 ? `, ${roughTime(predicted * 1e9)} predicted` : ''}.`);
  const busy = busyShare(model, steps);
  const devices = model.deviceCount();
  if (busy >= 0) parts.push(`${devices === 1 ? 'The device is' : 'Devices are'} ${percentText(Math.min(1, busy))} busy.`);
  const newest = steps.slice(-5);
  const shares = pathShares(model, newest);
  if (shares.length) {
    const idle = idleByReason(model, new Set(newest)).map(([why, ns]) => /** @type {[string, number]} */ ([why, ns / newest.length]));
    parts.push(`${shares[0].call} is ${percentText(Math.min(1, shares[0].share))} of the step${gain(model, shares, idle, devices)}.`);
  }
  return { mood, text: parts.join(' ') };
}

/**
 * Returns the attempts of the run in a few words: "attempt 2 (1 recovered, 3 steps lost)".
 * @param {Model} model
 */
export function attemptText(model) {
  const { status } = model;
  if (!status || !status.attempt) return '';
  const lost = model.failures.reduce((n, f) => n + (f.lost_steps || 0), 0);
  const again = model.failures.filter((f) => /restarted|rolled_back/.test(f.action || '')).length;
  if (status.attempt < 2 && !again) return 'attempt 1';
  return `attempt ${status.attempt} (${again} recovered, ${lost} step${lost === 1 ? '' : 's'} lost)`;
}
