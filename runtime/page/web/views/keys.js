// Keys of the page: buttons by letter, the timeline by arrows, / for the search;
// and rows of tabs, of which one is reached by tab and the others by arrows.
import { byId, el, head, table } from './dom.js';

const HELP = [['/', 'search'], ['n N', 'the next task that the search means, the one before'], ['\u2190 \u2192', 'move in time'], ['\u2191 \u2193 or + -', 'closer, further'], ['shift and arrows', 'from task to task, along a device or to another'], ['Enter', 'open the task'], ['0', 'the whole run'], ['s', 'the last step'], ['[ ]', 'the step before, the next one'],
  ['f', 'follow the newest events'], ['a', 'lanes of the actors'], ['m', 'messages as arrows'], ['r', 'ruler (or shift and drag)'], ['space', 'play the step on the map'],
  [', .', 'to the message before, the next one'], ['l', 'large map'], ['p', 'pin the step'], ['Esc', 'close what is open, then end the search']];

/** Returns the table of the keys. */
export const KEYS_HELP = () => el('div', {}, table([head('key'), head('does')], HELP),
  el('p', { class: 'quiet' }, 'The wheel zooms the timeline, over the names it scrolls; a drag moves it; a click on a process folds it. On the map a dot is a message, a green one a reply; a message too quick to be seen is shown a moment longer.'));

/**
 * Moves from tab to tab by arrows; returns whether it did.
 * @param {string} key @param {HTMLElement} target
 */
function moveTab(key, target) {
  if (target.getAttribute('role') !== 'tab') return false;
  const tabs = /** @type {HTMLElement[]} */ ([...(target.parentElement?.children ?? [])]);
  const at = tabs.indexOf(target), last = tabs.length - 1;
  /** @type {Record<string, number>} */
  const places = { ArrowLeft: at ? at - 1 : last, ArrowRight: at === last ? 0 : at + 1, Home: 0, End: last };
  const to = places[key];
  if (to === undefined) return false;
  tabs[to].focus();
  tabs[to].click();
  return true;
}

export class Keys {
  /**
   * @param {Record<string, string>} buttons
   * @param {{ timeline: import('./timeline_keys.js').TimelineKeys, search: import('./search_box.js').SearchBox, close: () => boolean }} page
   */
  constructor(buttons, { timeline, search, close }) {
    document.addEventListener('keydown', (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      if (e.key === 'Escape') {
        if (search.isOpen) search.close(); else if (!close()) search.clear();
        return;
      }
      const target = /** @type {HTMLElement} */ (e.target);
      if (/INPUT|SELECT|TEXTAREA/.test(target.tagName)) return;
      if (e.key === '/') { e.preventDefault(); search.open(); return; }
      if (/^( |Enter)$/.test(e.key) && /^(button|tab|option)$/.test(target.getAttribute('role') ?? target.localName)) return;
      if (moveTab(e.key, target)) { e.preventDefault(); return; }
      const inPanel = target.closest && target.closest('main');
      if (!inPanel && timeline.key(e)) { e.preventDefault(); return; }
      const button = buttons[e.key];
      if (!button) return;
      e.preventDefault();
      byId(button).click();
    });
  }
}
