// What the server sends besides trace records: the run's text files, in
// portions of whole lines, each put into the model.
import { clockText } from './text.js';
import { entryOf } from './track.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./samples.js').Sample} Sample */
/** @typedef {import('./samples.js').SampleLine} SampleLine */
/** @typedef {ReturnType<typeof inbox>} Inbox */
/** @typedef {{ at: string, text: string }} LogLine */
/**
 * The steps around an old one that are here in detail.
 * @typedef {{ step: number, first: number, last: number }} Part
 */
/**
 * What is added to times of a trace after `from`, until its next entry.
 * @typedef {{ file: string, from: number, add: number, error: number }} ClockChange
 */

const KEEP = { metrics: 20000, failures: 200, samples: 2000, olderSteps: 16, log: 2000, workerLog: 1000 };
const SETTLED_MS = 2000;      // lines that arrive later are new ones

/** @template T @param {string} text @param {T[]} into @param {number} most @param {(row: any) => T} shown */
function jsonLines(text, into, most, shown = (row) => row) {
  for (const line of text.split('\n')) {
    if (!line) continue;
    try { into.push(shown(JSON.parse(line))); } catch { /* a crash left it cut */ }
  }
  if (into.length > most) into.splice(0, into.length - most);
}

/**
 * Returns user-defined keys with one number per sample; their texts and tokens
 * may be long.
 * @type {(keys: Record<string, any[]> | undefined) => Record<string, number>}
 */
const ownNumbers = (keys) => Object.fromEntries(Object.entries(keys || {}).filter(([, v]) => v.length === 1 && Number.isFinite(v[0])).map(([k, v]) => [k, v[0]]));

/**
 * Returns the part of a sample that the page shows, its tokens in few bytes.
 * @param {SampleLine} row @returns {Sample}
 */
export function shownSample(row) {
  const { step, sample, prompt, response, score, kl, finish_reason, sequence_ids, loss_mask, logprobs, ref_logprobs, advantages, keys } = row;
  const tokens = (loss_mask || []).reduce((n, own) => n + own, 0);
  return { step, sample, prompt, response, score, kl, finish_reason, tokens, own: ownNumbers(keys),
    ids: Int32Array.from(sequence_ids || []), mask: Uint8Array.from(loss_mask || []), logprobs: Float32Array.from(logprobs || []),
    refLogprobs: Float32Array.from(ref_logprobs || []), advantages: Float32Array.from(advantages || []) };
}

/**
 * Takes the samples of a step that was asked for; the page keeps those of some steps.
 * @param {Model} model @param {number} step @param {string} text
 */
function olderSamples(model, step, text) {
  /** @type {Sample[]} */
  const samples = [];
  jsonLines(text, samples, KEEP.samples, shownSample);
  model.samplesOf.set(step, samples);
  if (model.samplesOf.size > KEEP.olderSteps) model.samplesOf.delete(model.samplesOf.keys().next().value);
}

/**
 * Returns handlers of the server's messages: by type, and of lines of a worker's log.
 * @param {Model} model
 */
export function inbox(model) {
  const began = model.now();
  /** @type {Record<string, (text: string) => void>} */
  const byType = {
    run: (text) => model.setGraph(JSON.parse(text)),
    settings: (text) => { model.settings = text; },
    file: (text) => model.addFile(text),
    part: (text) => model.setPart(JSON.parse(text)),
    clock: (text) => model.setClocks(JSON.parse(text)),
    loading: (text) => model.load(Number(text)),
    status: (text) => { try { model.status = JSON.parse(text); } catch { model.status = null; } },
    metrics: (text) => {
      jsonLines(text, model.metrics, KEEP.metrics);
      const byStep = new Map(model.metrics.map((m) => [m.step, m])); // the last line of a step wins
      model.metrics = [...byStep.values()].sort((a, b) => a.step - b.step);
    },
    failures: (text) => jsonLines(text, model.failures, KEEP.failures),
    tokens: (text) => { for (const [id, token] of Object.entries(JSON.parse(text))) model.tokenTexts.set(Number(id), token); },
    samples: (text) => jsonLines(text, model.samples, KEEP.samples, shownSample),
    log: (text) => { model.log.push(...text.split('\n').filter(Boolean)); model.log.splice(0, Math.max(0, model.log.length - KEEP.log)); },
  };
  return { byType,
    // A line without a time, as user-defined programs print, gets that of its
    // arrival; in a file from before, that of the line before it.
    /** @type {(process: string, text: string) => void} */
    workerLog: (process, text) => {
      const rows = entryOf(model.logs, process, () => []);
      const isNew = model.now() - began > SETTLED_MS;
      for (const line of text.split('\n').filter(Boolean)) {
        const stamp = /^\d{4}-\d\d-\d\d [\d:.]{12} /.test(line) ? line.slice(0, 23) : '';
        const before = rows.length ? rows[rows.length - 1].at : '';
        rows.push({ at: stamp || (isNew ? clockText(Date.now()) : before), text: stamp ? line.slice(24) : line });
      }
      rows.splice(0, Math.max(0, rows.length - KEEP.workerLog));
    },
  };
}

/**
 * Puts one message of the server into the model.
 * @param {Model} model @param {Inbox} handlers @param {string} type @param {string} text
 */
export function receive(model, handlers, type, text) {
  if (type.startsWith('log ')) handlers.workerLog(type.slice(4), text);
  else if (type.startsWith('samples of ')) olderSamples(model, Number(type.slice(11)), text);
  else if (handlers.byType[type]) handlers.byType[type](text);
  model.changed = true;
}
