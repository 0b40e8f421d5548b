// The tab that compares this run with others: those that the page was opened with,
// or that were added here.
import { AXES, callTimes, overlaid, planDifferences, settingDifferences, slowerSentence } from '../model/compare.js';
import { curveGroups } from '../model/metrics.js';
import { countOf, timeText } from '../model/text.js';
import { compareSource } from './compare_source.js';
import { curveCard, sheetButtons } from './curves.js';
import { el, head, note, table } from './dom.js';

/** @typedef {import('../model/compare.js').Difference} Difference */
/** @typedef {import('../model/model.js').Model} Model */
/** @typedef {import('../main.js').PageState} PageState */

/** @param {Model[]} models */
function timesTable(models) {
  const times = models.map(callTimes);
  const calls = [...new Set(times.flatMap((t) => [...t.keys()]))];
  const longest = Math.max(1, ...times.flatMap((t) => [...t.values()]));
  /** @type {(own: (number | undefined)[]) => HTMLElement} */
  const bars = (own) => el('span', { class: 'bars' }, ...own.map((ns, i) => el('i', { class: `bar-${Math.min(3, i)}`, style: `width:${Math.round(140 * (ns ?? 0) / longest)}px` })));
  return table([head('call'), ...models.map((m) => head(m.graph.name, 'num')), head('ratio', 'num'), head('')],
    calls.map((call) => { const own = times.map((t) => t.get(call)); return [call, ...own.map((ns) => (ns === undefined ? '' : timeText(ns))), own[0] && own[1] ? (own[1] / own[0]).toFixed(2) : '', bars(own)]; }));
}

/** @type {(title: string, rows: Difference[], models: Model[]) => HTMLElement[]} */
const differences = (title, rows, models) => [el('h3', {}, title), rows.length
  ? table([head(''), head(models[0].graph.name, 'text'), head(models[1].graph.name, 'text')], rows) : note('none')];

/** @param {HTMLElement} main @param {Model} model @param {PageState} state */
export function drawCompare(main, model, state) {
  const models = [model, ...state.beside], redraw = () => drawCompare(main, model, state);
  if (models.length < 2) return main.replaceChildren(...compareSource(state, redraw));
  const waiting = models.filter((m) => !m.loaded);
  if (waiting.length) return main.replaceChildren(note(`loading ${countOf(waiting.length, 'run')}, ${Math.min(...waiting.map((m) => m.loading))} %`));
  state.beside.forEach((other) => other.sortArrows());
  const axis = el('select', { title: 'axis', 'aria-label': 'axis' }, ...Object.keys(AXES).map((name) => el('option', { value: name, ...(name === state.axis ? { selected: '' } : {}) }, name)));
  axis.addEventListener('change', () => { state.axis = axis.value; redraw(); });
  const cards = curveGroups(models.flatMap((m) => m.metrics)).list[0].cards
    .flatMap(([title, names]) => curveCard(title, overlaid(models, names[0], state.axis), { ...state.curves, axis: state.axis }) ?? []);
  const box = el('div', { class: 'cards' }, ...cards);
  main.replaceChildren(
    ...models.slice(1).map((other) => el('p', { class: 'sentence' }, slowerSentence(model, other))),
    ...differences('settings that differ', settingDifferences(models[0], models[1]), models),
    ...differences('plans that differ', planDifferences(models[0], models[1]), models),
    el('h3', {}, 'time of each call, median of the newest 20 steps'), timesTable(models),
    el('div', { class: 'bar' }, el('h3', {}, 'curves over'), axis, ...sheetButtons(box, models.map((m) => m.graph.name).join('_and_'))), box,
    el('h3', {}, 'one more'), ...compareSource(state, redraw));
  return undefined;
}
