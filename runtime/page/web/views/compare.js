// The tab that compares this run with the others that the page was opened with.
import { AXES, callTimes, overlaid, planDifferences, settingDifferences, slowerSentence } from '../model/compare.js';
import { curveGroups } from '../model/metrics.js';
import { countOf, timeText } from '../model/text.js';
import { curveCard } from './curves.js';
import { el, head, note, table } from './dom.js';

/** @typedef {import('../model/compare.js').Difference} Difference */
/** @typedef {import('../model/model.js').Model} Model */
/** @typedef {import('../main.js').PageState} PageState */

/** @param {Model[]} models */
function timesTable(models) {
  const times = models.map(callTimes);
  const calls = [...new Set(times.flatMap((t) => [...t.keys()]))];
  return table([head('call'), ...models.map((m) => head(m.graph.name, 'num')), head('ratio', 'num')],
    calls.map((call) => { const own = times.map((t) => t.get(call)); return [call, ...own.map((ns) => (ns === undefined ? '' : timeText(ns))), own[0] && own[1] ? (own[1] / own[0]).toFixed(2) : '']; }));
}

/** @type {(title: string, rows: Difference[], models: Model[]) => HTMLElement[]} */
const differences = (title, rows, models) => [el('h3', {}, title), rows.length
  ? table([head(''), head(models[0].graph.name, 'text'), head(models[1].graph.name, 'text')], rows) : note('none')];

/** @param {HTMLElement} main @param {Model} model @param {PageState} state */
export function drawCompare(main, model, state) {
  const models = [model, ...state.beside];
  const waiting = models.filter((m) => !m.loaded);
  if (waiting.length) return main.replaceChildren(note(`loading ${countOf(waiting.length, 'run')}, ${Math.min(...waiting.map((m) => m.loading))} %`));
  state.beside.forEach((other) => other.sortArrows());
  const axis = el('select', { title: 'axis' }, ...Object.keys(AXES).map((name) => el('option', { value: name, ...(name === state.axis ? { selected: '' } : {}) }, name)));
  axis.addEventListener('change', () => { state.axis = axis.value; drawCompare(main, model, state); });
  const cards = curveGroups(models.flatMap((m) => m.metrics)).list[0].cards
    .flatMap(([title, names]) => curveCard(title, overlaid(models, names[0], state.axis), { ...state.curves, axis: state.axis }) ?? []);
  main.replaceChildren(
    ...models.slice(1).map((other) => el('p', { class: 'sentence' }, slowerSentence(model, other))),
    el('h3', {}, 'time of each call, median of the newest 20 steps'), timesTable(models),
    ...differences('plans', planDifferences(models[0], models[1]), models),
    ...differences('settings', settingDifferences(models[0], models[1]), models),
    el('div', { class: 'bar' }, el('h3', {}, 'curves over'), axis), el('div', { class: 'cards' }, ...cards));
  return undefined;
}
