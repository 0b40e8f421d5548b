// One sample beside the list: its prompt, its answer token by token, the numbers,
// and the other answers to its prompt, each as what differs.
import { isNumber } from '../model/metrics.js';
import { knownSamples } from '../model/sample_pairs.js';
import { bare } from '../model/samples.js';
import { el, head, note, table } from './dom.js';
import { answer, answerDiff, number, sampleButton } from './sample_parts.js';

/** @typedef {import('../model/samples.js').Sample} Sample */
/** @typedef {import('../main.js').PageState} PageState */

const MOST_OTHERS = 12;

/** @param {HTMLElement} box @param {Sample} sample @param {PageState} state */
export function drawSample(box, sample, state) {
  const { model } = state;
  const others = knownSamples(model).filter((s) => s.prompt === sample.prompt && s !== sample && !(s.step === sample.step && s.sample === sample.sample))
    .sort((a, b) => b.step - a.step || a.sample - b.sample);
  const own = Object.entries(sample.own ?? {});
  box.replaceChildren(
    el('button', { class: 'close', title: 'close (Esc)', onclick: () => state.close() }, 'close'),
    el('h2', {}, `sample ${sample.sample} of step ${sample.step}`),
    table([head('reward', 'num'), head('KL', 'num'), ...own.map(([name]) => head(name, 'num')), head('tokens', 'num'), head('end')],
      [[number(sample.score), number(sample.kl), ...own.map(([, x]) => number(x)), sample.tokens || '', sample.finish_reason ?? '']]),
    el('h2', {}, 'prompt'), el('div', { class: 'text' }, bare(sample.prompt) || '(no prompt)'),
    el('h2', {}, 'answer'), el('div', { class: 'text' }, answer(sample, model.tokenTexts, state.samples.shade)),
    el('h2', {}, `other answers to this prompt${others.length ? ', and what differs in this one' : ''}`),
    others.length ? table([head('sample'), head('from it to this one', 'text'), head('reward', 'num'), head('this one', 'num')],
      others.slice(0, MOST_OTHERS).map((s) => [sampleButton(s, state), answerDiff(s, sample), number(s.score),
        isNumber(sample.score) && isNumber(s.score) ? `${sample.score >= s.score ? '+' : ''}${(sample.score - s.score).toFixed(3)}` : '']))
      : note('none here'),
    ...(others.length > MOST_OTHERS ? [note(`and ${others.length - MOST_OTHERS} more`)] : []));
}
