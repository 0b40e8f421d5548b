// Samples: grouped by prompt, each with its answers; filtered by a text and
// sorted by a number; their tokens shaded by what training sees of them. The
// same prompt over steps is in one group.
import { isNumber } from '../model/metrics.js';
import { SHADES, sampleGroups, shadedTokens } from '../model/samples.js';
import { countOf, countText } from '../model/text.js';
import { el, note, table, head } from './dom.js';

/** @typedef {import('../model/model.js').Model} Model */
/** @typedef {import('../model/samples.js').Sample} Sample */
/** @typedef {import('../model/samples.js').SampleGroup} SampleGroup */
/** @typedef {import('../main.js').PageState} PageState */

const MOST_GROUPS = 40, MOST_ANSWERS = 12;
const ORDERS = [['step', 'newest first'], ['score', 'highest reward'], ['-score', 'lowest reward'], ['tokens', 'longest'], ['kl', 'largest KL']];

/** @type {(x: unknown) => string} */
const number = (x) => (isNumber(x) ? x.toFixed(3) : '');

/**
 * The tokens of a sample on shades of a colour; its answer if they are unknown.
 * @param {Sample} sample @param {Map<number, string>} texts @param {string} shade
 */
function answer(sample, texts, shade) {
  const tokens = shadedTokens(sample, texts, shade);
  if (!tokens.length) return sample.response ?? '';
  return el('span', { class: 'tokens' }, ...tokens.map((t) =>
    el('span', { class: t.weight < 0 ? 'less' : '', title: t.title, style: `--weight: ${Math.round(100 * Math.abs(t.weight))}%` }, t.text)));
}

/** @param {SampleGroup} group @param {string[]} own @param {Map<number, string>} texts @param {string} shade */
function answers(group, own, texts, shade) {
  return table([head('step', 'num'), head('answer', 'text'), head('reward', 'num'), head('KL', 'num'), ...own.map((k) => head(k, 'num')), head('tokens', 'num'), head('end')],
    group.rows.slice(0, MOST_ANSWERS).map((s) => [s.step ?? '', answer(s, texts, shade), number(s.score), number(s.kl), ...own.map((k) => number(s.own?.[k])), s.tokens || '', s.finish_reason ?? '']));
}

/** @param {HTMLElement} main @param {Model} model @param {PageState} state */
export function drawSamples(main, model, state) {
  if (!model.samples.length) return main.replaceChildren(note('no samples yet'));
  const chosen = state.samples;
  const body = el('div', {});
  const redraw = () => {
    const groups = sampleGroups(model.samples, chosen);
    const rows = groups.reduce((n, g) => n + g.rows.length, 0);
    const own = [...new Set(model.samples.slice(-60).flatMap((s) => Object.keys(s.own ?? {})))];
    body.replaceChildren(
      note(`${countOf(groups.length, 'prompt')} with ${countOf(rows, 'answer')} of ${countText(model.samples.length)} here${groups.length > MOST_GROUPS ? `; the first ${MOST_GROUPS} are shown` : ''}`),
      ...groups.slice(0, MOST_GROUPS).map((g) => el('section', { class: 'prompt' }, el('div', { class: 'text' }, g.prompt || '(no prompt)'),
        answers(g, own, model.tokenTexts, chosen.shade), ...(g.rows.length > MOST_ANSWERS ? [note(`and ${g.rows.length - MOST_ANSWERS} more`)] : []))));
  };
  const find = el('input', { class: 'wide', placeholder: 'text in prompt or answer', value: chosen.find });
  find.addEventListener('input', () => { chosen.find = find.value; redraw(); });
  const order = el('select', { title: 'order' }, ...ORDERS.map(([value, text]) => el('option', { value, ...(value === chosen.order ? { selected: '' } : {}) }, text)));
  order.addEventListener('change', () => { chosen.order = order.value; redraw(); });
  const shade = el('select', { title: 'shade' }, ...SHADES.map(([value, text]) => el('option', { value, ...(value === chosen.shade ? { selected: '' } : {}) }, text)));
  shade.addEventListener('change', () => { chosen.shade = shade.value; redraw(); });
  main.replaceChildren(el('div', { class: 'bar' }, find, order, shade), body);
  redraw();
  return undefined;
}
