// What the sample browser shows: the controls above its list.
import { SHADES, finishReasons } from '../model/samples.js';
import { countText } from '../model/text.js';
import { el } from './dom.js';

/** @typedef {import('../model/samples.js').Sample} Sample */
/** @typedef {import('../main.js').PageState} PageState */
/** @typedef {PageState['samples']} Chosen */

const ORDERS = [['step', 'newest first'], ['score', 'highest reward'], ['-score', 'lowest reward'], ['tokens', 'longest'], ['kl', 'largest KL']];

/** @type {(label: string, value: string, options: string[][], choose: (value: string) => void) => HTMLElement} */
function choice(label, value, options, choose) {
  const select = el('select', { title: label, 'aria-label': label }, ...options.map(([key, text]) => el('option', { value: key, ...(key === value ? { selected: '' } : {}) }, text)));
  select.addEventListener('change', () => choose(select.value));
  return select;
}

/** @type {(label: string, placeholder: string, value: number | null, choose: (value: number | null) => void, more?: Record<string, any>) => HTMLElement} */
function numberField(label, placeholder, value, choose, more = {}) {
  const field = el('input', { type: 'number', step: 'any', placeholder, title: label, 'aria-label': label, value: value ?? '', ...more });
  field.addEventListener('input', () => choose(field.value === '' || !Number.isFinite(Number(field.value)) ? null : Number(field.value)));
  return field;
}

/**
 * Returns the controls; `redraw` shows the list anew, `reload` may ask for older
 * samples first.
 * @param {Sample[]} samples @param {Chosen} chosen @param {{ redraw: () => void, reload: () => void, newest: number }} page
 */
export function sampleFilters(samples, chosen, { redraw, reload, newest }) {
  const find = el('input', { class: 'wide', type: 'search', placeholder: 'text in prompt or answer', 'aria-label': 'text in prompt or answer', value: chosen.find });
  find.addEventListener('input', () => { chosen.find = find.value; redraw(); });
  const ends = finishReasons(samples);
  const whole = { step: 1, min: 0, max: newest };
  const diff = el('button', { class: chosen.diff ? 'on' : '', 'aria-pressed': chosen.diff, title: 'what differs between the answers of two steps to one prompt', onclick: () => { chosen.diff = !chosen.diff; reload(); } }, 'diff of steps');
  return el('div', { class: 'bar', role: 'search', 'aria-label': 'samples' }, find,
    el('span', { class: 'together' }, 'reward ', numberField('lowest reward', 'from', chosen.least, (x) => { chosen.least = x; redraw(); }), ' to ', numberField('highest reward', 'to', chosen.most, (x) => { chosen.most = x; redraw(); })),
    choice('end', chosen.end, [['', 'every end'], ...ends.map(([end, n]) => [end, `${end} (${countText(n)})`])], (value) => { chosen.end = value; redraw(); }),
    ...(chosen.diff ? [] : [choice('order', chosen.order, ORDERS, (value) => { chosen.order = value; redraw(); }),
      choice('shade', chosen.shade, SHADES, (value) => { chosen.shade = value; redraw(); })]),
    el('span', { class: 'together' }, 'step ', numberField('step', chosen.diff ? 'oldest' : 'all', chosen.from || null, (x) => { chosen.from = x ?? 0; reload(); }, whole),
      ...(chosen.diff ? [' to ', numberField('later step', 'newest', chosen.to || null, (x) => { chosen.to = x ?? 0; reload(); }, whole)] : [])),
    diff);
}
