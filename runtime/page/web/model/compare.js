// Two runs side by side: steps by call, plans and settings that differ, and what
// made one slower, from the critical paths of their newest steps.
import { median, taskSpan } from './reasons.js';
import { roughTime } from './text.js';
import { newestSteps, pathShares } from './verdict.js';

const NEWEST = 20;
const ALIKE = 0.03;           // steps that differ by less are alike

/** Returns the median time of each call in the newest steps, in ns, by name. */
export function callTimes(model) {
  const times = new Map(), steps = newestSteps(model, NEWEST);
  for (const step of steps)
    for (const call of model.steps.get(step).keys()) {
      const span = taskSpan(model, step, call);
      if (span && Number.isFinite(span.e)) times.set(call, [...(times.get(call) || []), span.e - span.b]);
    }
  return new Map([...times].map(([call, list]) => [call, median(list)]));
}

function stepTime(model) {
  const said = model.metrics.slice(-NEWEST).map((m) => m['timing_s/step']).filter(Number.isFinite);
  if (said.length) return median(said) * 1e9;
  return median(newestSteps(model, NEWEST).map((s) => { const span = model.stepSpan(s); return span.e - span.b; }));
}

/** Returns what made the second run slower or faster, as a sentence. */
export function slowerSentence(a, b) {
  const [nameA, nameB] = [a.graph.name, b.graph.name], before = stepTime(a), now = stepTime(b);
  if (!(before > 0 && now > 0)) return 'one of the runs has no step yet';
  const both = `${roughTime(now)} a step, ${nameA} ${roughTime(before)}`;
  if (Math.abs(now - before) < ALIKE * before) return `${nameB} is as fast: ${both}.`;
  const shares = (model) => new Map(pathShares(model, newestSteps(model, NEWEST)).map((s) => [s.call, s.ns]));
  const own = shares(b), other = shares(a), sign = now > before ? 1 : -1;
  const [most] = [...new Set([...own.keys(), ...other.keys()])].map((call) => [call, sign * ((own.get(call) || 0) - (other.get(call) || 0))]).sort((x, y) => y[1] - x[1]);
  const word = sign > 0 ? 'slower' : 'faster';
  const why = most && most[1] > 0.1 * Math.abs(now - before)
    ? ` Most of it: ${most[0]} is ${roughTime(own.get(most[0]) || 0)} of the critical path, ${roughTime(other.get(most[0]) || 0)} in ${nameA}.` : ' No call of the critical path explains it: devices wait elsewhere.';
  return `${nameB} is ${word}: ${both}.${why}`;
}

/** Returns the calls whose place or strategy differ: [[call, of a, of b]]. */
export function planDifferences(a, b) {
  const text = (call) => (call ? `${call.devices.length ? `${call.strategy} on ${call.devices.join(', ')}` : 'host'}${call.lag ? `, lag ${call.lag}` : ''}` : 'absent');
  return [...new Set([...a.calls.keys(), ...b.calls.keys()])].map((name) => [name, text(a.calls.get(name)), text(b.calls.get(name))]).filter(([, x, y]) => x !== y);
}

/** Returns settings as { 'models.actor.path': 'text' }, from the resolved YAML. */
export function flatSettings(yaml) {
  const found = {}, path = [];
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

/** Returns the settings that differ: [[key, of a, of b]]. */
export function settingDifferences(a, b) {
  const one = flatSettings(a.settings), other = flatSettings(b.settings);
  return [...new Set([...Object.keys(one), ...Object.keys(other)])].sort()
    .filter((key) => one[key] !== other[key]).map((key) => [key, one[key] ?? '', other[key] ?? '']);
}

// Prompts of a step times answers of each.
function samplesOfStep(model) {
  const settings = flatSettings(model.settings);
  return (Number(settings['data.batch_size']) || 1) * (Number(settings['rollout.n']) || 1);
}

/** The x of a curve, by name: of each row of a run's metrics. */
export const AXES = {
  step: (model) => model.metrics.map((m) => m.step),
  samples: (model) => { const each = samplesOfStep(model); return model.metrics.map((m) => m.step * each); },
  'time in s': (model) => { let sum = 0; return model.metrics.map((m) => sum += m['timing_s/step'] || 0); },
};

/** Returns a metric of several runs over an axis: [{ name, points }]. */
export function overlaid(models, metric, axis) {
  return models.map((model) => {
    const xs = AXES[axis](model);
    return { name: model.graph.name, points: model.metrics.map((m, i) => [xs[i], m[metric]]).filter((p) => Number.isFinite(p[1])) };
  }).filter((line) => line.points.length);
}
