// Failures and recovery as a story in time: what died, who noticed after how
// long, what was rolled back, what it cost.
import { attemptBands } from '../model/lanes.js';
import { story } from '../model/story.js';
import { countOf, roughTime, timeText } from '../model/text.js';
import { el, note } from './dom.js';

/** @typedef {import('../model/model.js').Model} Model */
/** @typedef {import('../model/story.js').Episode} Episode */
/** @typedef {import('../main.js').PageState} PageState */

const known = Number.isFinite;

/** @param {Model} model @param {Episode} e */
function sentences(model, e) {
  /** @type {(t: number) => string} */
  const at = (t) => timeText(t - model.origin);
  /** @type {string[]} */
  const said = [];
  if (known(e.died)) said.push(`${at(e.died)}: the last sign of life of ${e.who}, in step ${e.reached || '?'}.`);
  if (known(e.noticed)) said.push(`${at(e.noticed)}: the master knew${known(e.died) && e.noticed >= e.died ? `, ${roughTime(e.noticed - e.died)} later` : ''}.`);
  if (!e.again) return [...said, `The run ended${e.action ? ` (${e.action.replace('_', ' ')})` : ''}.`];
  said.push(`${countOf(e.lostSteps, 'step')} lost${e.backTo ? `: it went on with step ${e.backTo}` : ''}${e.action === 'rolled_back' ? ', from a checkpoint' : ''}.`);
  if (known(e.resumed)) said.push(`${at(e.resumed)}: attempt ${e.attempt + 1} runs its first task.`);
  if (known(e.cost)) said.push(`Cost: ${roughTime(e.cost)} without a task${e.lostSteps ? `, and ${countOf(e.lostSteps, 'step')} to compute again` : ''}.`);
  return said;
}

/**
 * Draws one episode after the other, each with a way to its place in time.
 * @param {HTMLElement} main @param {Model} model @param {PageState} state
 */
export function drawFailures(main, model, state) {
  const episodes = story(model);
  if (!episodes.length) return main.replaceChildren(note('nothing failed'));
  const bands = attemptBands(model);
  const again = episodes.filter((e) => e.again);
  const cost = again.reduce((sum, e) => sum + (known(e.cost) ? e.cost : 0), 0);
  main.replaceChildren(
    note(`${countOf(episodes.length, 'failure')}, ${again.length} recovered; ${countOf(again.reduce((n, e) => n + e.lostSteps, 0), 'step')} and ${roughTime(cost)} lost`),
    ...episodes.map((e) => {
      const from = known(e.died) ? e.died : e.noticed, to = known(e.resumed) ? e.resumed : from;
      const show = known(from) && bands.length ? [el('button', { onclick: () => state.timeline.show(from - 0.3 * (to - from) - 1e8, to + 0.3 * (to - from) + 1e8) }, 'show in the timeline')] : [];
      return el('section', { class: 'episode' },
        el('h3', {}, `${e.who || 'the run'}: ${e.what || e.code || 'failed'}`, ...show),
        el('p', { class: 'quiet' }, [e.when, e.cause && `first cause: ${e.cause}`, e.host, e.time].filter(Boolean).join(' \u00b7 ')),
        el('ol', {}, ...sentences(model, e).map((text) => el('li', {}, text))));
    }));
  return undefined;
}
