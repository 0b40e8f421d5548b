// Failures and recovery as a story in time: what died, who noticed after how
// long, what was rolled back, what it cost. From failures.jsonl, and from the
// trace, which has the times.
import { attemptBands } from './lanes.js';
import { isNumber } from './metrics.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./track.js').Slice} Slice */
/**
 * A line of failures.jsonl.
 * @typedef {{ time?: string, attempt?: number, who?: string, host?: string, when?: string, code?: string, what?: string, cause?: string,
 *   action?: string, lost_steps?: number, seconds?: number | null }} Failure
 */
/**
 * A failure in time: `died` (the last event of the lost process), `noticed` and
 * `resumed` are on the trace's clock (NaN: unknown), `backTo` is the step it went on
 * with, `reached` the last one begun before, `cost` is in ns.
 * @typedef {Failure & { attempt: number, again: boolean, died: number, noticed: number, resumed: number, backTo: number, reached: number,
 *   lostSteps: number, cost: number }} Episode
 */

/**
 * Returns the time on the trace's clock of a text like 2026-01-31T09:05:00.123Z.
 * @param {Model} model @param {string | undefined} text
 */
function traceTime(model, text) {
  const ms = Date.parse(text ?? '');
  return Number.isFinite(ms) ? ms * 1e6 - model.realtime : NaN;
}

/**
 * The lost process's last event: it lived until then at least.
 * @param {Model} model @param {string | undefined} who @param {number} attempt
 */
function lastSign(model, who, attempt) {
  const name = (/^(worker \d+|master)/.exec(who || '') || [''])[0];
  const file = model.files.find((f) => f.process === name && f.attempt === attempt);
  return file && file.lastEvent > 0 ? file.lastEvent : NaN;
}

/**
 * Returns the first task that a later attempt began, and its step.
 * @param {Model} model @param {number} attempt
 */
function firstTask(model, attempt) {
  /** @type {Slice | null} */
  let first = null;
  for (const track of model.tracks)
    if (track.isDevice && track.file.attempt === attempt)
      for (const task of track.tasks()) {
        if (!task.step) continue;
        if (!first || task.b < first.b) first = task;
        break;
      }
  return first;
}

/**
 * Returns the last step that an attempt began.
 * @param {Model} model @param {number} attempt
 */
function lastStep(model, attempt) {
  let last = 0;
  for (const track of model.tracks)
    if (track.isDevice && track.file.attempt === attempt)
      for (const task of track.tasks()) last = Math.max(last, task.step);
  return last;
}

/**
 * Returns one episode per failure. A recovery's line is written when it has ended
 * and holds its seconds; other lines are written at once.
 * @param {Model} model @returns {Episode[]}
 */
export function story(model) {
  const bands = attemptBands(model);
  return model.failures.map((f, i) => {
    const attempt = f.attempt ?? i + 1;
    const next = bands.find((b) => b.attempt > attempt);
    const again = /restarted|rolled_back/.test(f.action || '');
    const died = lastSign(model, f.who, attempt);
    const task = again && next ? firstTask(model, next.attempt) : null;
    const recovery = isNumber(f.seconds) ? f.seconds * 1e9 : NaN;
    return { ...f, attempt, again, died, resumed: task ? task.b : NaN,
      noticed: task ? task.b - recovery : traceTime(model, f.time),
      backTo: task ? task.step : 0, reached: lastStep(model, attempt), lostSteps: f.lost_steps ?? 0,
      cost: task && Number.isFinite(died) ? task.b - died : recovery };
  });
}
