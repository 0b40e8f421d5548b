// Answers to one prompt in two steps, beside each other: which samples the page has,
// and which of them belong together.
import { isNumber } from './metrics.js';
import { bare } from './samples.js';
import { entryOf } from './track.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./samples.js').Sample} Sample */
/**
 * The answers to a prompt in an earlier and a later step; `gain` is the difference
 * of their mean rewards, NaN: unknown.
 * @typedef {{ prompt: string, before: Sample[], after: Sample[], gain: number }} PromptPair
 */

/**
 * Returns the samples of the run that are here: the newest ones, and those of
 * older steps that were asked for; of a step that was done again the last ones.
 * @param {Model} model
 */
export function knownSamples(model) {
  /** @type {Map<string, Sample>} */
  const byName = new Map();
  for (const sample of [...[...model.samplesOf].sort((a, b) => a[0] - b[0]).flatMap(([, own]) => own), ...model.samples])
    byName.set(`${sample.step}.${sample.sample}`, sample);
  return [...byName.values()];
}

/**
 * Returns the name of a sample in addresses: "60.3".
 * @type {(sample: Sample) => string}
 */
export const sampleName = (sample) => `${sample.step}.${sample.sample}`;

/** @type {(samples: Sample[]) => number} */
const meanScore = (samples) => {
  const known = samples.map((s) => s.score).filter(isNumber);
  return known.length ? known.reduce((a, b) => a + b, 0) / known.length : NaN;
};

/**
 * Returns prompts with answers in two steps, the largest change of the reward
 * first. A step of 0 stands for the prompt's oldest or newest that is here.
 * @param {Sample[]} samples @param {number} from @param {number} to @returns {PromptPair[]}
 */
export function promptPairs(samples, from, to) {
  /** @type {Map<string, Map<number, Sample[]>>} */
  const prompts = new Map();
  for (const s of samples) entryOf(entryOf(prompts, s.prompt ?? '', () => new Map()), s.step, () => []).push(s);
  /** @type {PromptPair[]} */
  const pairs = [];
  for (const [prompt, steps] of prompts) {
    const first = from || Math.min(...steps.keys()), last = to || Math.max(...steps.keys());
    const before = steps.get(first), after = steps.get(last);
    if (!before || !after || first === last) continue;
    /** @type {(rows: Sample[]) => Sample[]} */
    const inOrder = (rows) => [...rows].sort((a, b) => a.sample - b.sample);
    pairs.push({ prompt: bare(prompt), before: inOrder(before), after: inOrder(after), gain: meanScore(after) - meanScore(before) });
  }
  /** @type {(pair: PromptPair) => number} */
  const size = (pair) => (Number.isNaN(pair.gain) ? -1 : Math.abs(pair.gain));
  return pairs.sort((a, b) => size(b) - size(a));
}

/**
 * Returns the steps that have prompts of a step, most of them first, each with how many.
 * @param {Sample[]} samples @param {number} step @returns {[step: number, prompts: number][]}
 */
export function stepsWithPromptsOf(samples, step) {
  const own = new Set(samples.filter((s) => s.step === step).map((s) => s.prompt));
  /** @type {Map<number, Set<string | undefined>>} */
  const found = new Map();
  for (const s of samples) if (s.step !== step && own.has(s.prompt)) entryOf(found, s.step, () => new Set()).add(s.prompt);
  return [...found].map(([other, prompts]) => /** @type {[number, number]} */ ([other, prompts.size])).sort((a, b) => b[1] - a[1] || b[0] - a[0]);
}
