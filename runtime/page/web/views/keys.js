// Keys of the page: buttons by letter, the timeline by arrows, / for the search.
import { byId, el, head, table } from './dom.js';

const HELP = [['/', 'search'], ['\u2190 \u2192', 'move in time'], ['\u2191 \u2193 or + -', 'closer, further'], ['0', 'the whole run'], ['s', 'the last step'], ['[ ]', 'the step before, the next one'],
  ['f', 'follow the newest events'], ['a', 'lanes of the actors'], ['m', 'messages as arrows'], ['r', 'ruler (or shift and drag)'], ['space', 'play the step on the map'],
  [', .', 'to the message before, the next one'], ['l', 'large map'], ['p', 'pin the step'], ['Esc', 'close']];

/** Returns the table of the keys. */
export const KEYS_HELP = () => el('div', {}, table([head('key'), head('does')], HELP),
  el('p', { class: 'quiet' }, 'The wheel zooms the timeline, over the names it scrolls; a drag moves it; a click on a process folds it. On the map a dot is a message, a green one a reply; a message too quick to be seen is shown a moment longer.'));

export class Keys {
  /**
   * @param {Record<string, string>} buttons
   * @param {{ timeline: import('./timeline.js').Timeline, search: import('./search_box.js').SearchBox, close: () => void }} page
   */
  constructor(buttons, { timeline, search, close }) {
    document.addEventListener('keydown', (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      if (e.key === 'Escape') { search.close(); close(); return; }
      const target = /** @type {HTMLElement} */ (e.target);
      if (/INPUT|SELECT|TEXTAREA/.test(target.tagName)) return;
      if (e.key === '/') { e.preventDefault(); search.open(); return; }
      if (e.key === ' ' && target.tagName === 'BUTTON') return;
      const inPanel = target.closest && target.closest('main');
      if (!inPanel && timeline.key(e.key)) { e.preventDefault(); return; }
      const button = buttons[e.key];
      if (!button) return;
      e.preventDefault();
      byId(button).click();
    });
  }
}
