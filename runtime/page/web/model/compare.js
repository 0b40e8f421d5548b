// Two runs side by side: steps by call, plans and settings that differ, and what
// made one slower, from the critical paths of their newest steps.
import { isNumber, valuesOf } from './metrics.js';
import { median, taskSpan } from './reasons.js';
import { roughTime } from './text.js';
import { newestSteps, pathShares } from './verdict.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./model.js').Call} Call */
/** @typedef {import('./metrics.js').Line} Line */
/** @typedef {[name: string, ofA: string, ofB: string]} Difference */

const NEWEST = 20;
const ALIKE = 0.03;           // steps that differ by less are alike

/**
 * Returns the median time of each call in the newest steps, in ns, by name.
 * @param {Model} model
 */
export function callTimes(model) {
  /** @type {Map<string, number[]>} */
  const times = new Map();
  for (const step of newestSteps(model, NEWEST))
    for (const call of model.steps.get(step)?.keys() ?? []) {
      const span = taskSpan(model, step, call);
      if (span && Number.isFinite(span.e)) times.set(call, [...(times.get(call) || []), span.e - span.b]);
    }
  return new Map([...times].map(([call, list]) => [call, median(list)]));
}

/** @param {Model} model */
function stepTime(model) {
  const said = model.metrics.slice(-NEWEST).map((m) => m['timing_s/step']).filter(isNumber);
  if (said.length) return median(said) * 1e9;
  return median(newestSteps(model, NEWEST).flatMap((s) => model.stepSpan(s) ?? []).map((span) => span.e - span.b));
}

/**
 * Returns what made the second run slower or faster, as a sentence.
 * @param {Model} a @param {Model} b
 */
export function slowerSentence(a, b) {
  const [nameA, nameB] = [a.graph.name, b.graph.name], before = stepTime(a), now = stepTime(b);
  if (!(before > 0 && now > 0)) return 'one of the runs has no step yet';
  const both = `${roughTime(now)} a step, ${nameA} ${roughTime(before)}`;
  if (Math.abs(now - before) < ALIKE * before) return `${nameB} is as fast: ${both}.`;
  /** @type {(model: Model) => Map<string, number>} */
  const shares = (model) => new Map(pathShares(model, newestSteps(model, NEWEST)).map((s) => [s.call, s.ns]));
  const own = shares(b), other = shares(a), sign = now > before ? 1 : -1;
  const [most] = [...new Set([...own.keys(), ...other.keys()])].map((call) => /** @type {[string, number]} */ ([call, sign * ((own.get(call) || 0) - (other.get(call) || 0))])).sort((x, y) => y[1] - x[1]);
  const word = sign > 0 ? 'slower' : 'faster';
  const why = most && most[1] > 0.1 * Math.abs(now - before)
    ? ` Most of it: ${most[0]} is ${roughTime(own.get(most[0]) || 0)} of the critical path, ${roughTime(other.get(most[0]) || 0)} in ${nameA}.` : ' No call of the critical path explains it: devices wait elsewhere.';
  return `${nameB} is ${word}: ${both}.${why}`;
}

/**
 * Returns the calls whose place or strategy differ.
 * @param {Model} a @param {Model} b @returns {Difference[]}
 */
export function planDifferences(a, b) {
  /** @type {(call: Call | undefined) => string} */
  const text = (call) => (call ? `${call.devices.length ? `${call.strategy} on ${call.devices.join(', ')}` : 'host'}${call.lag ? `, lag ${call.lag}` : ''}` : 'absent');
  return [...new Set([...a.calls.keys(), ...b.calls.keys()])].map((name) => /** @type {Difference} */ ([name, text(a.calls.get(name)), text(b.calls.get(name))])).filter(([, x, y]) => x !== y);
}

/**
 * Returns settings as { 'models.actor.path': 'text' }, from the resolved YAML.
 * @param {string} yaml
 */
export function flatSettings(yaml) {
  /** @type {Record<string, string>} */
  const found = {};
  /** @type {string[]} */
  const path = [];
  for (const line of (yaml || '').split('\n')) {
    const parts = /^( *)(- )?([^:#]+):(?: (.*))?$/.exec(line);
    if (!parts) continue;
    const depth = parts[1].length / 2;
    path.length = depth;
    path[depth] = parts[3].trim();
    if (parts[4]) found[path.join('.')] = parts[4].trim();
  }
  return found;
}

/**
 * Returns the settings that differ.
 * @param {Model} a @param {Model} b @returns {Difference[]}
 */
export function settingDifferences(a, b) {
  const one = flatSettings(a.settings), other = flatSettings(b.settings);
  return [...new Set([...Object.keys(one), ...Object.keys(other)])].sort()
    .filter((key) => one[key] !== other[key]).map((key) => [key, one[key] ?? '', other[key] ?? '']);
}

/**
 * Prompts of a step times answers of each.
 * @param {Model} model
 */
function samplesOfStep(model) {
  const settings = flatSettings(model.settings);
  return (Number(settings['data.batch_size']) || 1) * (Number(settings['rollout.n']) || 1);
}

/**
 * The x of a curve, by name: of each row of a run's metrics.
 * @type {Record<string, (model: Model) => number[]>}
 */
export const AXES = {
  step: (model) => model.metrics.map((m) => m.step),
  samples: (model) => { const each = samplesOfStep(model); return model.metrics.map((m) => m.step * each); },
  'time in s': (model) => { let sum = 0; return model.metrics.map((m) => sum += m['timing_s/step'] || 0); },
};

/**
 * Returns a metric of several runs over an axis.
 * @param {Model[]} models @param {string} metric @param {string} axis @returns {Line[]}
 */
export function overlaid(models, metric, axis) {
  return models.map((model) => {
    const xs = AXES[axis](model);
    return { name: model.graph.name, points: valuesOf(model.metrics, metric, (_, i) => xs[i]) };
  }).filter((line) => line.points.length);
}
