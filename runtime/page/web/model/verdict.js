// The first answers of the page: is it fine, how fast, why not faster, what
// failed. Each is computed from the newest steps and the failures.
import { isNumber } from './metrics.js';
import { criticalPath, idleByReason, median, stragglers } from './reasons.js';
import { story } from './story.js';
import { clockText, countOf, countText, percentText, roughTime, short } from './text.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./metrics.js').MetricsRow} MetricsRow */
/** @typedef {'good' | 'warn' | 'bad'} Mood */
/**
 * A word and its sentences: the answer to one question.
 * @typedef {{ word: string, text: string, mood: Mood | '' }} Answer
 */
/** @typedef {import('./story.js').Episode} Episode */
/** @typedef {{ mood: Mood, fine: Answer, fast: Answer, why: Answer, failed: Answer }} Verdict */
/** @typedef {{ call: string, ns: number, share: number }} PathShare */

const NEWEST = 20;          // steps that a verdict is about
const SLOW_RATIO = 1.3;     // a device, beside the others of its call
const SLOWER_RATIO = 1.3;   // the newest steps, beside those before
const WARM_UP = 2;          // first steps, which are slower
const AS_PREDICTED = 0.05;  // step times that differ by less are alike

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
 * Returns what would shorten the largest call most, as a sentence; empty: unknown.
 * @param {Model} model @param {PathShare[]} shares @param {number} devices
 */
function gain(model, shares, devices) {
  const first = shares[0];
  const own = model.calls.get(first.call);
  if (own && own.devices.length && own.devices.length < devices)
    return `; ${own.devices.length === 1 ? 'a second device' : 'more devices'} there would gain most (at most ${roughTime(first.ns / 2)} a step)`;
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
 * Returns the step after which a live run went on from a failure, if that was
 * among the newest steps; 0: there is none.
 * @param {Model} model @param {Episode[]} episodes
 */
function recoveredAt(model, episodes) {
  const last = episodes.findLast((e) => e.again && e.backTo > 0);
  return last && model.live() && model.newestStep() - last.backTo < NEWEST ? last.backTo : 0;
}

/**
 * What is wrong with a run that goes on or has ended well; null: nothing.
 * @param {Model} model @param {Episode[]} episodes @returns {Answer | null}
 */
function degraded(model, episodes) {
  /** @type {MetricsRow} */
  const last = model.metrics.at(-1) || { step: 0 };
  const broken = Object.keys(last).find((name) => /^(actor|critic|train)\//.test(name) && (last[name] === null || Number.isNaN(last[name])));
  if (broken) return { mood: 'bad', word: 'Degraded.', text: `${broken} is not a number in step ${last.step}.` };
  const slow = stragglers(model)[0];
  if (slow && slow.ratio > SLOW_RATIO && slow.slow > 1e6) return { mood: 'warn', word: 'Degraded.', text: `${slow.device.replace('d', 'D')} is slow: ${slow.ratio.toFixed(1)} times the others in ${slow.call}.` };
  const times = valuesOf(model.metrics.slice(WARM_UP), 'timing_s/step');
  const now = median(times.slice(-NEWEST)), before = median(times.slice(0, -NEWEST));
  if (times.length > 2 * NEWEST && now > SLOWER_RATIO * before) return { mood: 'warn', word: 'Degraded.', text: `Slower than before: ${roughTime(before * 1e9)} a step until step ${last.step - NEWEST}.` };
  const again = recoveredAt(model, episodes);
  return again ? { mood: 'warn', word: 'Degraded.', text: `It went on with step ${again} after a failure.` } : null;
}

/**
 * Returns how the reward changed over the newest steps, as a sentence; empty:
 * there is none.
 * @param {Model} model
 */
function trend(model) {
  const [name, word] = [['critic/score/mean', 'Reward'], ['train/loss', 'Loss']].find(([metric]) => model.metrics.some((m) => isNumber(m[metric]))) || ['', ''];
  const rows = model.metrics.filter((m) => isNumber(m[name]));
  if (rows.length < 2) return '';
  const last = rows[rows.length - 1], before = rows[Math.max(0, rows.length - 1 - NEWEST)];
  return `${word} ${short(last[name] ?? NaN)}, ${countOf(last.step - before.step, 'step')} before ${short(before[name] ?? NaN)}.`;
}

/** @param {Model} model @param {boolean} stall @param {Episode[]} episodes @returns {Answer} */
function isItFine(model, stall, episodes) {
  const { status } = model, state = status?.state ?? '';
  if (state === 'recovering') return { mood: 'warn', word: 'Degraded.', text: `Recovering${status?.last_failure ? ` from: ${status.last_failure}` : ''}.` };
  if (status && /failed|lost/.test(state)) return { mood: 'bad', word: 'Failed.', text: `${state === 'lost' ? 'Its process is gone' : 'It ended'} in step ${status.step + 1}.` };
  if (stall) return { mood: 'bad', word: 'Stalled.', text: 'No worker makes progress.' };
  const word = state === 'done' ? 'Done.' : /stopped|interrupted/.test(state) ? 'Stopped.' : state === 'stopping' ? 'Stopping.' : 'Healthy.';
  return degraded(model, episodes) ?? { mood: 'good', word, text: trend(model) };
}

/** @param {Model} model @param {number[]} steps @returns {Answer} */
function howFast(model, steps) {
  const seconds = stepSeconds(model);
  if (!(seconds > 0) || !steps.length) return { mood: '', word: '', text: `No step was completed${model.live() ? ' yet' : ''}.` };
  const rows = model.metrics.slice(-NEWEST);
  const tokens = mean(valuesOf(rows, 'perf/total_num_tokens')), predicted = valuesOf(rows, 'perf/predicted_step_s').at(-1) ?? NaN;
  /** @type {(s: number) => string} */
  const pace = (s) => `${countText(Number((3600 / s).toPrecision(3)))} steps/h${tokens > 0 ? `, ${short(Math.round(tokens / s))} tokens/s` : ''}`;
  const step = `${roughTime(seconds * 1e9)} a step`;
  if (!(predicted > 0)) return { mood: '', word: `${pace(seconds)}.`, text: `${step[0].toUpperCase()}${step.slice(1)}; not predicted (\u201ctroupe profile\u201d comes first).` };
  const off = seconds / predicted - 1;
  const beside = Math.abs(off) < AS_PREDICTED ? 'as predicted' : `${percentText(Math.abs(off))} ${off > 0 ? 'slower' : 'faster'} than predicted`;
  return { mood: '', word: `${pace(seconds)}.`, text: `Predicted: ${pace(predicted)}. ${step}, ${roughTime(predicted * 1e9)} predicted: ${beside}.` };
}

/** @param {Model} model @param {number[]} steps @returns {Answer} */
function whyNotFaster(model, steps) {
  if (!steps.length) return { mood: '', word: '', text: 'Known once a step was completed.' };
  const busy = busyShare(model, steps), devices = model.deviceCount();
  const word = busy >= 0 ? `${devices === 1 ? 'The device is' : 'Devices are'} ${percentText(Math.min(1, busy))} busy.` : '';
  const newest = steps.slice(-5), shares = pathShares(model, newest);
  const idle = idleByReason(model, new Set(newest)).map(([why, ns]) => /** @type {[string, number]} */ ([why, ns / newest.length]));
  /** @type {string[]} */
  const parts = [];
  if (shares.length) parts.push(`${shares[0].call} is ${percentText(Math.min(1, shares[0].share))} of the step${gain(model, shares, devices)}.`);
  if (idle.length) parts.push(`Most idle time: ${idle[0][0] === 'hand-over' ? 'between two tasks, under 2 ms each' : idle[0][0]} (${roughTime(idle[0][1] / Math.max(1, devices))} a step).`);
  return { mood: '', word, text: parts.join(' ') };
}

/** @param {Model} model @param {Episode[]} episodes @returns {Answer} */
function whatFailed(model, episodes) {
  const { status } = model, last = episodes.at(-1);
  if (!last) return { mood: '', word: status?.last_failure ? 'Failed.' : 'Nothing failed.', text: status?.last_failure ?? '' };
  const time = Date.parse(last.time ?? '');
  const when = [Number.isFinite(time) ? clockText(time).slice(0, 19) : '', last.reached ? `step ${last.reached}` : ''].filter(Boolean).join(', ');
  const cause = last.cause ? `; first cause: ${last.cause}` : '';
  const done = last.again ? `Went on${last.backTo ? ` with step ${last.backTo}` : ''}${last.action === 'rolled_back' ? ' from a checkpoint' : ''}: ${countOf(last.lostSteps, 'step')} lost${last.cost > 0 ? `, ${roughTime(last.cost)} without a task` : ''}.` : 'The run ended.';
  return { mood: last.again ? 'warn' : 'bad', word: episodes.length > 1 ? `${countOf(episodes.length, 'failure')}, the last:` : `${last.who || 'The run'}:`,
    text: `${episodes.length > 1 ? `${last.who || 'the run'}: ` : ''}${last.what || last.code || 'failed'}${cause}${when ? ` (${when})` : ''}. ${done}` };
}

/**
 * Returns how the run is; `stall` says that a live run makes no progress.
 * @param {Model} model @returns {Verdict}
 */
export function verdict(model, stall = false) {
  const episodes = story(model);
  const fine = isItFine(model, stall, episodes);
  const steps = newestSteps(model).filter((s) => model.isWhole(s));
  return { mood: fine.mood || 'good', fine, fast: howFast(model, steps), why: whyNotFaster(model, steps), failed: whatFailed(model, episodes) };
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
