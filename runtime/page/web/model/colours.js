// Fixed colours: the hue says the kind of call, the shade which call of that
// kind. Blue, orange, violet and so on stay apart for colour-blind readers (they
// also differ in lightness), and text is readable on each of them.

/** @typedef {import('./model.js').Model} Model */

/**
 * kind -> [hue, chroma, lightness added]
 * @type {Record<string, [number, number, number]>}
 */
const KINDS = {
  generate: [250, 0.105, 0], inference: [195, 0.085, 4], train: [55, 0.12, 0],
  function: [320, 0.085, 3], move: [110, 0.1, 2], other: [0, 0, 2],
};
const SHADES = [0, -5, 4, -9];

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
  return [-12, -4, 3, 7, -8][sum % 5];
}

/**
 * Returns the colour of a kind of call, for legends and utilisation.
 * @param {string} kind @param {boolean} dark
 */
export function kindColour(kind, dark, shade = 0) {
  const [hue, chroma, lift] = KINDS[kind] || KINDS.other;
  const light = dark ? Math.min(47, 43 + lift / 2 + shade / 2) : Math.min(90, 80 + lift + shade);
  return `oklch(${light}% ${chroma} ${hue})`;
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
