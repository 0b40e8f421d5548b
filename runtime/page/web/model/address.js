// The address of what is seen: the part after # names the tab, step, task, sample,
// range and filters, so that a link shows another person the same; and the address
// of another page.

/**
 * What an address names; times are seconds since the run's start, `sample` is
 * "STEP.NUMBER", `reward` and `diff` are ranges "FROM..TO" with either end empty.
 * @typedef {{ tab?: string, task?: string, device?: string, sample?: string, kind?: string, actor?: string, search?: string, find?: string, end?: string,
 *   reward?: string, diff?: string, step?: number, from?: number, to?: number }} View
 */

/** @type {('step' | 'from' | 'to')[]} */
const NUMBERS = ['step', 'from', 'to'];
/** @type {('tab' | 'task' | 'device' | 'sample' | 'kind' | 'actor' | 'search' | 'find' | 'end' | 'reward' | 'diff')[]} */
const TEXTS = ['tab', 'task', 'device', 'sample', 'kind', 'actor', 'search', 'find', 'end', 'reward', 'diff'];

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

/**
 * Returns whether two views are of one place: what differs is how it is looked at
 * (range, filters), so going back need not stop there.
 * @param {View} a @param {View} b
 */
export function isSamePlace(a, b) {
  return (/** @type {const} */ (['tab', 'step', 'task', 'device', 'sample'])).every((name) => (a[name] || '') === (b[name] || ''));
}

/**
 * Returns "2..", "..5" or "2..5"; empty if neither end is given.
 * @type {(from: number | null, to: number | null) => string}
 */
export const rangeText = (from, to) => (from === null && to === null ? '' : `${from ?? ''}..${to ?? ''}`);

/**
 * Returns the ends of a range; null: open.
 * @param {string} text @returns {[number | null, number | null]}
 */
export function rangeOf(text) {
  const [from, to] = text.split('..').map((end) => (end === '' || !Number.isFinite(Number(end)) ? null : Number(end)));
  return [from ?? null, to ?? null];
}

/**
 * Returns host and query of another page's address; null: it is none.
 * @param {string} text
 */
export function pageAddress(text) {
  try {
    const url = new URL(text.trim()), token = url.searchParams.get('token');
    return url.protocol === 'http:' && token ? { host: url.host, query: `?token=${encodeURIComponent(token)}` } : null;
  } catch { return null; }
}
