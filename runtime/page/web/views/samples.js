// Samples: grouped by prompt, each with its answers; or what differs between the
// answers of two steps to one prompt. Filtered by text, reward and end, sorted by
// a number; tokens shaded by what training sees of them.
import { knownSamples, promptPairs, stepsWithPromptsOf } from '../model/sample_pairs.js';
import { sampleGroups, wantedSamples } from '../model/samples.js';
import { countOf, countText } from '../model/text.js';
import { el, note, table, head } from './dom.js';
import { sampleFilters } from './sample_filters.js';
import { answer, answerDiff, number, sampleButton } from './sample_parts.js';

/** @typedef {import('../model/model.js').Model} Model */
/** @typedef {import('../model/samples.js').Sample} Sample */
/** @typedef {import('../model/samples.js').SampleGroup} SampleGroup */
/** @typedef {import('../model/sample_pairs.js').PromptPair} PromptPair */
/** @typedef {import('../main.js').PageState} PageState */

const MOST_GROUPS = 40, MOST_ANSWERS = 12;

/** @param {SampleGroup} group @param {string[]} own @param {PageState} state */
function answers(group, own, state) {
  return table([head('sample'), head('answer', 'text'), head('reward', 'num'), head('KL', 'num'), ...own.map((k) => head(k, 'num')), head('tokens', 'num'), head('end')],
    group.rows.slice(0, MOST_ANSWERS).map((s) => [sampleButton(s, state), answer(s, state.model.tokenTexts, state.samples.shade), number(s.score), number(s.kl), ...own.map((k) => number(s.own?.[k])), s.tokens || '', s.finish_reason ?? '']));
}

/** @param {string} prompt @param {...(Node | string)} parts */
const promptSection = (prompt, ...parts) => el('section', { class: 'prompt' }, el('div', { class: 'text' }, prompt || '(no prompt)'), ...parts);

/** @param {Sample[]} samples @param {number} here @param {PageState} state */
function list(samples, here, state) {
  const groups = sampleGroups(samples, state.samples);
  const own = [...new Set(samples.slice(-60).flatMap((s) => Object.keys(s.own ?? {})))];
  return [note(`${countOf(groups.length, 'prompt')} with ${countOf(samples.length, 'answer')} of ${countText(here)} here${groups.length > MOST_GROUPS ? `; the first ${MOST_GROUPS} are shown` : ''}`),
    ...groups.slice(0, MOST_GROUPS).map((g) => promptSection(g.prompt, answers(g, own, state), ...(g.rows.length > MOST_ANSWERS ? [note(`and ${g.rows.length - MOST_ANSWERS} more`)] : [])))];
}

/** @param {PromptPair} pair @param {PageState} state */
function pairTable(pair, state) {
  const many = Math.min(MOST_ANSWERS, Math.max(pair.before.length, pair.after.length));
  const [b, a] = [pair.before, pair.after];
  return table([head('from'), head('to'), head('answer', 'text'), head('reward', 'num'), head('then', 'num')],
    Array.from({ length: many }, (_, i) => [b[i] ? sampleButton(b[i], state) : '', a[i] ? sampleButton(a[i], state) : '',
      b[i] && a[i] ? answerDiff(b[i], a[i]) : (b[i] || a[i]).response ?? '', number(b[i]?.score), number(a[i]?.score)]));
}

/**
 * Says why no prompt has answers in both steps, and which step to choose.
 * @param {Sample[]} here @param {number} from @param {number} to
 */
function noPairs(here, from, to) {
  const own = from || to, others = own ? stepsWithPromptsOf(here, own).slice(0, 6) : [];
  if (!own) return 'no prompt was answered in two of the steps that are here: choose an older step';
  if (!here.some((s) => s.step === own)) return `no sample of step ${own} here`;
  return `no prompt of step ${own} was answered in ${from && to ? `step ${to}` : 'another step that is here'}${others.length ? `; it has prompts in common with ${others.map(([step, n]) => `step ${step} (${n})`).join(', ')}` : ''}`;
}

/** @param {Sample[]} samples @param {PageState} state */
function diffs(samples, state) {
  const { from, to } = state.samples, pairs = promptPairs(samples, from, to);
  if (!pairs.length) return [note(noPairs(samples, from, to))];
  const known = pairs.map((p) => p.gain).filter((x) => !Number.isNaN(x));
  const mean = known.reduce((a, b) => a + b, 0) / known.length;
  return [note(`${countOf(pairs.length, 'prompt')} answered in ${from ? `step ${from}` : 'an older step'} and ${to ? `step ${to}` : 'a newer one'}, the largest change of the reward first: what is struck out was in the older answer, what is underlined is in the newer one${known.length ? `; the reward changed by ${mean >= 0 ? '+' : ''}${mean.toFixed(3)} on average` : ''}${pairs.length > MOST_GROUPS ? `; the first ${MOST_GROUPS} are shown` : ''}`),
    ...pairs.slice(0, MOST_GROUPS).map((pair) => promptSection(pair.prompt, pairTable(pair, state)))];
}

/** @param {HTMLElement} main @param {Model} model @param {PageState} state */
export function drawSamples(main, model, state) {
  if (!model.samples.length) return main.replaceChildren(note('no samples yet'));
  const chosen = state.samples;
  const body = el('div', {});
  const redraw = () => {
    const here = knownSamples(model);
    const missing = state.loadSamples(chosen.diff ? [chosen.from, chosen.to] : [chosen.from]);
    const { from, ...rest } = chosen;
    body.replaceChildren(...(missing ? [note(missing)] : []), ...(chosen.diff ? diffs(wantedSamples(here, rest), state) : list(wantedSamples(here, { ...rest, step: from }), here.length, state)));
    state.moved();
  };
  const newest = Math.max(...model.samples.map((s) => s.step || 0));
  main.replaceChildren(sampleFilters(model.samples, chosen, { newest, redraw, reload: () => { const at = document.activeElement?.getAttribute('aria-label'); drawSamples(main, model, state); focusAgain(main, at); } }), body);
  redraw();
  return undefined;
}

/** @param {HTMLElement} main @param {string | null | undefined} label */
function focusAgain(main, label) {
  const fields = /** @type {HTMLElement[]} */ ([...main.querySelectorAll('input, select, button')]);
  fields.find((field) => label && field.getAttribute('aria-label') === label)?.focus();
}
