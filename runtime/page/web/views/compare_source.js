// Where a run to compare with comes from: another page of this host, by its address
// with the token, or a report, which is a file.
import { listen, readRecorded, recordedIn } from '../connection.js';
import { inbox, receive } from '../model/inbox.js';
import { Model } from '../model/model.js';
import { pageAddress } from '../model/address.js';
import { el, note } from './dom.js';

/** @typedef {import('../main.js').PageState} PageState */

/** @param {PageState} state */
function besideModel(state) {
  const other = new Model(), into = inbox(other);
  return { other,
    receiver: {
      /** @param {string} type @param {string} text */
      text: (type, text) => { receive(other, into, type, text); state.model.changed = true; },
      /** @param {ArrayBuffer} data */
      records: (data) => { other.addRecords(data); },
    } };
}

/**
 * Reads a run from a server into a model beside the page's own.
 * @param {PageState} state @param {string} query @param {string} host @param {(why: string) => void} failed
 */
export function besideFrom(state, query, host, failed) {
  const { other, receiver } = besideModel(state);
  state.beside.push(other);
  listen(query, { ...receiver, closed: () => {
    if (other.loaded) return; // it has what was there
    state.beside.splice(state.beside.indexOf(other), 1);
    failed(`no run came from ${host}: is its page there, on this host, and is the token right?`);
  } }, host);
}

/** @param {PageState} state @param {File} file */
async function besideReport(state, file) {
  const packed = recordedIn(await file.text());
  if (!packed) return 'this file is no report: troupe trace report RUN --html FILE makes one';
  const { other, receiver } = besideModel(state);
  other.recorded = true;
  try { await readRecorded(packed, receiver); } catch (error) { return `this report cannot be read: ${error instanceof Error ? error.message : error}`; }
  state.beside.push(other);
  return '';
}

/**
 * Returns the form that adds a run; `added` is called once there is one more.
 * @param {PageState} state @param {() => void} added
 */
export function compareSource(state, added) {
  const said = el('span', { class: 'bad', role: 'alert' }, state.compareError);
  /** @type {(why: string) => void} */
  const say = (why) => { state.compareError = why; said.textContent = why; if (!why) added(); };
  const address = el('input', { class: 'wide', type: 'text', inputmode: 'url', placeholder: 'address of another run\u2019s page', 'aria-label': 'address of another run\u2019s page', autocomplete: 'off' });
  const file = el('input', { type: 'file', accept: '.html', 'aria-label': 'report of another run' });
  file.addEventListener('change', async () => { if (file.files?.[0]) say(await besideReport(state, file.files[0])); });
  const form = el('form', { class: 'bar' }, address, el('button', {}, 'compare'), el('label', { class: 'together' }, 'or a report ', file), said);
  form.addEventListener('submit', (e) => {
    e.preventDefault();
    const place = pageAddress(address.value);
    if (!place) return say('expected an address like http://127.0.0.1:35123/?token=..., as troupe status RUN prints it');
    besideFrom(state, place.query, place.host, (why) => { say(why); added(); });
    return say('');
  });
  return [...(state.beside.length ? [] : [note('Compare this run with another: troupe trace serve RUN OTHER opens both, or add one here.')]), form];
}
