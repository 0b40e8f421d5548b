// The address of what is seen: the part after # names the tab, step, task, range
// and filters, so that a link shows another person the same.

/**
 * What an address names; times are seconds since the run's start.
 * @typedef {{ tab?: string, task?: string, device?: string, kind?: string, actor?: string, step?: number, from?: number, to?: number }} View
 */

/** @type {('step' | 'from' | 'to')[]} */
const NUMBERS = ['step', 'from', 'to'];
/** @type {('tab' | 'task' | 'device' | 'kind' | 'actor')[]} */
const TEXTS = ['tab', 'task', 'device', 'kind', 'actor'];

/**
 * Returns the view that an address names.
 * @param {string} hash @returns {View}
 */
export function readAddress(hash) {
  /** @type {View} */
  const view = {};
  const fields = new URLSearchParams(hash.replace(/^#/, ''));
  for (const name of NUMBERS) {
    const value = Number(fields.get(name));
    if (fields.get(name) && Number.isFinite(value)) view[name] = value;
  }
  for (const name of TEXTS) {
    const text = fields.get(name);
    if (text) view[name] = text;
  }
  return view;
}

/**
 * Returns the address of a view; times are seconds since the run's start.
 * @param {View} view
 */
export function writeAddress(view) {
  const fields = new URLSearchParams();
  for (const name of [...TEXTS, ...NUMBERS])
    if (view[name] !== undefined && view[name] !== '' && (view[name] !== 0 || name !== 'step')) fields.set(name, String(view[name]));
  const text = fields.toString();
  return text ? `#${text}` : '';
}
