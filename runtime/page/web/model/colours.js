// Fixed colours: the hue says the kind of call, the shade which call of that
// kind. Kinds differ in lightness as well as in hue, so that they stay apart for
// readers who see no red or no green (tests/e2e/page_colours_test.py computes how
// far), and text is readable on each of them.

/** @typedef {import('./model.js').Model} Model */

/** @typedef {[lightness: number, chroma: number, hue: number]} Lch */
/** @type {Record<string, { light: Lch, dark: Lch }>} */
const KINDS = {
  generate: { light: [82, 0.09, 252], dark: [51, 0.15, 253] }, inference: { light: [91, 0.085, 180], dark: [39, 0.068, 199] },
  train: { light: [73, 0.155, 62], dark: [34, 0.08, 59] }, function: { light: [72, 0.155, 312], dark: [35, 0.155, 306] },
  move: { light: [88, 0.145, 101], dark: [45, 0.09, 100] }, other: { light: [76, 0, 0], dark: [51, 0, 0] },
};
const SHADES = [0, -4, 3, -6];
const LIGHTEST = 92, DARKEST = 66;   // under dark text
const LIGHTEST_DARK = 52, DARKEST_DARK = 29; // under light text

/**
 * Names of idle reasons, as classes with one tint each.
 * @type {Record<string, string>}
 */
export const IDLE = { data: 'for another call', device: 'for a device', bytes: 'for bytes', commit: 'for the commit', other: 'other' };

/**
 * Returns the class of an idle reason.
 * @param {string} why
 */
export function idleClass(why) {
  if (/^waits for bytes/.test(why)) return 'bytes';
  if (/^waits for device /.test(why)) return 'device';
  if (/commit/.test(why)) return 'commit';
  return /^waits for messages|^hand-over/.test(why) ? 'other' : 'data';
}

const RESIDENCY = /^(move|offload|reload|load|drop|publish|copy|fetch|gather)\b/;

/**
 * Returns the kind whose hue a slice has: that of its call, or a move's.
 * @param {Model} model @param {string} name
 */
export function kindOf(model, name) {
  const call = model.calls.get(name);
  if (call && KINDS[call.kind]) return call.kind;
  return RESIDENCY.test(name) ? 'move' : 'other';
}

/**
 * What is no call is a phase, or the host's: its shade depends on the name alone,
 * so it is the same in each run.
 * @param {Model} model @param {string} name @param {string} kind
 */
function shadeOf(model, name, kind) {
  const alike = model.graph.calls.filter((c) => c.kind === kind).map((c) => c.name);
  const at = alike.indexOf(name);
  if (at >= 0) return SHADES[at % SHADES.length];
  let sum = 0;
  for (const letter of name) sum = (sum * 31 + letter.charCodeAt(0)) % 97;
  return [-7, -3, 3, 5, -5][sum % 5];
}

/**
 * Returns the colour of a kind of call, for legends and utilisation.
 * @param {string} kind @param {boolean} dark
 */
export function kindColour(kind, dark, shade = 0) {
  const [light, chroma, hue] = (KINDS[kind] || KINDS.other)[dark ? 'dark' : 'light'];
  const own = dark ? Math.max(DARKEST_DARK, Math.min(LIGHTEST_DARK, light + shade / 2)) : Math.max(DARKEST, Math.min(LIGHTEST, light + shade));
  return `oklch(${own}% ${chroma} ${hue})`;
}

/**
 * Returns the fill of a slice, or of a phase of the task `outer`.
 * @param {Model} model @param {string} name @param {boolean} dark
 */
export function colour(model, name, dark, outer = name) {
  const key = `${name} ${dark} ${outer}`;
  const known = model.colours;
  if (model.coloursOf !== model.graph) { known.clear(); model.coloursOf = model.graph; }
  let found = known.get(key);
  if (!found) {
    const own = kindOf(model, name), kind = own === 'other' ? kindOf(model, outer) : own;
    known.set(key, found = kindColour(kind, dark, shadeOf(model, name, kind)));
  }
  return found;
}

/**
 * Returns the tint of an idle class: greys, since nothing runs.
 * @param {string} kind @param {boolean} dark
 */
export function idleColour(kind, dark) {
  const at = Object.keys(IDLE).indexOf(kind);
  return dark ? `oklch(${[36, 31, 27, 24, 22][at]}% 0.012 250)` : `oklch(${[86, 89.5, 92.5, 95, 96.5][at]}% 0.01 250)`;
}

export const LEGEND = [['generate', 'generate'], ['inference', 'score'], ['train', 'train'], ['function', 'function'], ['move', 'move weights'], ['other', 'other']];
