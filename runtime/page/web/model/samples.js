// Samples of a run by prompt. Template words around the prompt are left out.
import { isNumber } from './metrics.js';
import { entryOf } from './track.js';

/**
 * A line of samples.jsonl; `keys` are the user's.
 * @typedef {{ step: number, sample: number, prompt?: string, response?: string, score?: number | null, kl?: number | null,
 *   finish_reason?: string, sequence_ids?: number[], loss_mask?: number[], logprobs?: number[], ref_logprobs?: number[],
 *   advantages?: number[], keys?: Record<string, any[]> }} SampleLine
 */
/**
 * What is kept of it: `tokens` and 1 in `mask` are those in the loss, `own` are the
 * user's keys with one number.
 * @typedef {Omit<SampleLine, 'sequence_ids' | 'loss_mask' | 'logprobs' | 'ref_logprobs' | 'advantages' | 'keys'> & { tokens: number,
 *   own: Record<string, number>, ids: Int32Array, mask: Uint8Array, logprobs: Float32Array, refLogprobs: Float32Array, advantages: Float32Array }} Sample
 */
/** @typedef {{ prompt: string, rows: Sample[] }} SampleGroup */

/**
 * Returns the text without the words that a chat template adds at its ends.
 * @type {(text: string | undefined) => string}
 */
export const bare = (text) => (text || '').replace(/^\s*(system|user)\s*\n/i, '').replace(/\n\s*assistant\s*$/i, '').trim();

/**
 * Returns the samples with a text, a reward within a range, an end and a step; what
 * is not given, or 0 as a step, stands for every one. A sample without a reward is in
 * no range.
 * @param {Sample[]} samples
 * @param {{ find?: string, least?: number | null, most?: number | null, end?: string, step?: number }} wanted
 */
export function wantedSamples(samples, { find = '', least = null, most = null, end = '', step = 0 } = {}) {
  const words = find.trim().toLowerCase();
  return samples.filter((s) => (!words || `${s.prompt} ${s.response}`.toLowerCase().includes(words))
    && (least === null || (isNumber(s.score) && s.score >= least)) && (most === null || (isNumber(s.score) && s.score <= most))
    && (!end || s.finish_reason === end) && (!step || s.step === step));
}

/**
 * Returns how many samples ended in each way, the most frequent first.
 * @param {Sample[]} samples
 */
export function finishReasons(samples) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { finish_reason: end } of samples) if (end) counts.set(end, (counts.get(end) || 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

/**
 * Returns the groups of samples that hold `find`, in the given
 * order: 'step' and others largest first, '-score' smallest first. A group
 * stands where its best row does.
 * @param {Sample[]} samples @param {{ find?: string, order?: string }} chosen @returns {SampleGroup[]}
 */
export function sampleGroups(samples, { find = '', order = 'step' } = {}) {
  const field = /** @type {'step' | 'score' | 'kl' | 'tokens'} */ (order.replace(/^-/, '')), sign = order.startsWith('-') ? -1 : 1;
  /** @type {(sample: Sample) => number} */
  const key = (s) => { const value = s[field]; return isNumber(value) ? sign * value : -Infinity; };
  /** @type {Map<string, SampleGroup>} */
  const groups = new Map();
  for (const s of wantedSamples(samples, { find }).reverse().sort((a, b) => key(b) - key(a)))
    entryOf(groups, s.prompt ?? '', () => ({ prompt: bare(s.prompt), rows: [] })).rows.push(s);
  return [...groups.values()];
}

/** What tokens can be shaded by: [key, words]. */
export const SHADES = [['', 'plain text'], ['logprob', 'by probability'], ['kl', 'by KL'], ['advantage', 'by advantage'], ['mask', 'by loss mask']];

/**
 * Returns the numbers of a token: its probability, the log-probability over that of
 * the reference, the advantage; NaN where the run has none.
 * @param {Sample} sample @param {number} i
 */
const numbersOf = (sample, i) => ({
  p: Math.exp(sample.logprobs[i]), kl: sample.logprobs[i] - (sample.refLogprobs?.[i] ?? NaN), advantage: sample.advantages?.[i] ?? NaN });

/**
 * Returns how dark a token is, from -1 to 1: 1 - p, 1 for the mask, and for signed
 * numbers x their sign times 1 - exp(-|x|), which is comparable between samples.
 * @param {{ p: number, kl: number, advantage: number }} numbers @param {string} by
 */
function weightOf(numbers, by) {
  if (by === 'mask') return 1;
  if (by === 'logprob') return 1 - Math.min(1, numbers.p);
  const x = by === 'kl' ? numbers.kl : numbers.advantage;
  return isNumber(x) ? Math.sign(x) * (1 - Math.exp(-Math.abs(x))) : 0;
}

/**
 * Returns the tokens of a sample as [{ text, weight, title }], none if their
 * texts are unknown. Tokens that are not in the loss have weight 0.
 * @param {Sample} sample @param {Map<number, string>} texts @param {string} by
 */
export function shadedTokens(sample, texts, by) {
  const ids = sample.ids ?? [];
  if (!by || !ids.length || !texts.has(ids[0])) return [];
  return Array.from(ids, (id, i) => {
    const text = texts.get(id) ?? '\ufffd';
    if (sample.mask[i] !== 1) return { text, weight: 0, title: `not in the loss, token ${id}` };
    const numbers = numbersOf(sample, i), { kl, advantage } = numbers;
    const more = [['KL', kl], ['advantage', advantage]].filter(([, x]) => isNumber(x)).map(([name, x]) => `${name} ${Number(x).toFixed(3)}, `);
    return { text, weight: weightOf(numbers, by), title: `p ${numbers.p.toFixed(3)}, ${more.join('')}token ${id}` };
  });
}
