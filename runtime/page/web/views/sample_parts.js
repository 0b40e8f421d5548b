// Parts that the views of samples share: an answer with its tokens shaded, what
// differs between two answers, numbers.
import { isNumber } from '../model/metrics.js';
import { sampleName } from '../model/sample_pairs.js';
import { shadedTokens } from '../model/samples.js';
import { wordDiff } from '../model/text_diff.js';
import { el } from './dom.js';

/** @typedef {import('../model/samples.js').Sample} Sample */
/** @typedef {import('../main.js').PageState} PageState */

/** @type {(x: unknown) => string} */
export const number = (x) => (isNumber(x) ? x.toFixed(3) : '');

/**
 * The tokens of a sample on shades of a colour; its answer if they are unknown.
 * @param {Sample} sample @param {Map<number, string>} texts @param {string} shade
 */
export function answer(sample, texts, shade) {
  const tokens = shadedTokens(sample, texts, shade);
  if (!tokens.length) return sample.response ?? '';
  return el('span', { class: 'tokens' }, ...tokens.map((t) =>
    el('span', { class: t.weight < 0 ? 'less' : '', title: t.title, style: `--weight: ${Math.round(100 * Math.abs(t.weight))}%` }, t.text)));
}

/**
 * What the second answer has in place of the first: struck out and underlined, not
 * by colour alone.
 * @param {Sample} before @param {Sample} after
 */
export const answerDiff = (before, after) => el('span', { class: 'diff' }, ...wordDiff((before.response ?? '').trim(), (after.response ?? '').trim())
  .flatMap(({ kind, text }) => {
    if (kind === 'same') return [text];
    const words = text.trimStart(), space = text.slice(0, text.length - words.length);
    return [space, el(kind === 'gone' ? 'del' : 'ins', {}, words)];
  }));

/**
 * The way to a sample's own view, with an address.
 * @param {Sample} sample @param {PageState} state
 */
export const sampleButton = (sample, state) => el('button', { title: `sample ${sample.sample} of step ${sample.step}`, onclick: () => state.openSample(sample) }, sampleName(sample));
