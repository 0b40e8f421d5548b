// Search over a run: steps, calls, tasks, devices, actors, messages, samples.
// Returns what was found and where it is; the views go there. A search also says
// which tasks of the timeline it means.
import { timeText } from './text.js';

/** @typedef {import('./model.js').Model} Model */
/**
 * What was found; of the fields after `detail` it has the one of its kind.
 * @typedef {{ kind: string, text: string, detail?: string, step?: number, slice?: Slice, call?: string,
 *   track?: import('./track.js').Track, message?: string, sample?: import('./samples.js').Sample }} Hit
 */
/** @typedef {import('./track.js').Slice} Slice */

const MOST = 30;

/** @param {Model} model @param {string} words @returns {Generator<Hit>} */
function* stepHits(model, words) {
  const wanted = /^(?:step )?(\d+)$/.exec(words);
  if (wanted && model.steps.has(Number(wanted[1]))) yield { kind: 'step', text: `step ${wanted[1]}`, step: Number(wanted[1]) };
}

/** @param {Model} model @param {string} words @returns {Generator<Hit>} */
function* callHits(model, words) {
  for (const call of model.graph.calls)
    if (call.name.toLowerCase().includes(words)) yield { kind: 'call', text: call.name, detail: call.devices.length ? `${call.strategy} on ${call.devices.join(', ')}` : 'on the host', call: call.name };
}

const TASK = /^(.+?)(?:\s+(?:of )?(?:step )?(\d+))?$/; // "actor_train", "actor_train 12", "actor_train of step 12"

/** @param {Model} model @param {string} words @returns {Generator<Hit>} */
function* taskHits(model, words) {
  const parts = TASK.exec(words);
  if (!parts) return;
  const [, name, number] = parts;
  const steps = number ? [Number(number)] : [...model.steps.keys()].sort((a, b) => b - a).slice(0, 200);
  for (const step of steps)
    for (const [call, slices] of model.steps.get(step) ?? [])
      if (call.toLowerCase().includes(name))
        yield { kind: 'task', text: `${call} of step ${step}`, detail: Number.isNaN(slices[0].e) ? 'running' : timeText(slices[0].e - slices[0].b), slice: slices[0] };
}

/** @param {Model} model @param {string} words @returns {Generator<Hit>} */
function* actorHits(model, words) {
  /** @type {Set<string>} */
  const seen = new Set();
  for (const track of model.tracks) {
    const key = `${track.file.process} ${track.name}`;
    if (seen.has(key) || !(track.received || track.sent || track.tasks().length)) continue;
    if (!track.name.toLowerCase().includes(words) && !track.file.process.includes(words)) continue;
    seen.add(key);
    yield { kind: track.kind, text: track.name, detail: track.file.process, track };
  }
}

/** @param {Model} model @param {string} words @returns {Generator<Hit>} */
function* messageHits(model, words) {
  for (const [name, cost] of model.flows.kinds)
    if (name.toLowerCase().includes(words)) yield { kind: 'message', text: name, detail: `${cost.count} of them`, message: name };
}

/** @param {Model} model @param {string} words @returns {Generator<Hit>} */
function* sampleHits(model, words) {
  for (let i = model.samples.length - 1; i >= 0; --i) {
    const s = model.samples[i];
    const text = `${s.prompt || ''} ${s.response || ''}`;
    const at = text.toLowerCase().indexOf(words);
    if (at >= 0) yield { kind: 'sample', text: `sample ${s.sample} of step ${s.step}`, detail: text.slice(Math.max(0, at - 12), at + 36), sample: s };
  }
}

/** @param {Iterable<Hit>} hits @param {number} most */
function take(hits, most) {
  /** @type {Hit[]} */
  const found = [];
  for (const hit of hits) { if (found.length === most) break; found.push(hit); }
  return found;
}

/**
 * Returns at most 30 hits, best kinds first.
 * @param {Model} model @param {string} text
 */
export function search(model, text) {
  const words = text.trim().toLowerCase();
  if (!words) return [];
  const each = [stepHits, callHits, taskHits, actorHits, messageHits, sampleHits].map((hits) => take(hits(model, words), 8));
  return each.flat().slice(0, MOST);
}

/**
 * Returns which tasks a search means: those of a call or step, or of a device whose
 * name it has; null: none, as when it is about samples.
 * @param {Model} model @param {string} text @returns {((slice: Slice) => boolean) | null}
 */
export function taskMatcher(model, text) {
  const words = text.trim().toLowerCase();
  if (!words) return null;
  if (model.devices().some((d) => d.name === words)) return (slice) => slice.track.name === words;
  const step = /^(?:step )?(\d+)$/.exec(words);
  if (step) return model.steps.has(Number(step[1])) ? (slice) => slice.step === Number(step[1]) : null;
  const [, name, number] = TASK.exec(words) ?? [];
  const known = name && [...model.calls.keys(), 'move'].some((call) => call.toLowerCase().includes(name));
  return known ? (slice) => slice.name.toLowerCase().includes(name) && (!number || slice.step === Number(number)) : null;
}

/**
 * Returns the tasks of devices that a search means, in time.
 * @param {Model} model @param {string} text
 */
export function matchingTasks(model, text) {
  const isMeant = taskMatcher(model, text);
  return isMeant ? model.devices().flatMap((d) => d.tasks().filter(isMeant)).sort((a, b) => a.b - b.b) : [];
}
