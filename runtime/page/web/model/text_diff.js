// What differs between two texts, word by word: the longest common subsequence of
// their words, after what both begin and end with.

/** @typedef {{ kind: 'same' | 'gone' | 'new', text: string }} Piece */

const MOST_CELLS = 4e6;       // words of one times words of the other; beyond, the middle is replaced as a whole

/**
 * Returns words with the spaces before them: joined they are the text.
 * @type {(text: string) => string[]}
 */
const wordsOf = (text) => text.match(/\s*[^\s]+|\s+$/g) ?? [];

/**
 * Returns the lengths of longest common subsequences of a[i..] and b[j..], as rows of
 * b.length + 1.
 * @param {string[]} a @param {string[]} b
 */
function commonLengths(a, b) {
  const wide = b.length + 1, lengths = new Uint16Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; --i)
    for (let j = b.length - 1; j >= 0; --j)
      lengths[i * wide + j] = a[i] === b[j] ? lengths[(i + 1) * wide + j + 1] + 1 : Math.max(lengths[(i + 1) * wide + j], lengths[i * wide + j + 1]);
  return lengths;
}

/**
 * Returns the pieces of both texts in order: those that are in both, in the first
 * alone (gone) or in the second alone (new).
 * @param {string} before @param {string} after @returns {Piece[]}
 */
export function wordDiff(before, after) {
  const a = wordsOf(before), b = wordsOf(after);
  let head = 0, tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) ++head;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) ++tail;
  const x = a.slice(head, a.length - tail), y = b.slice(head, b.length - tail);
  /** @type {Piece[]} */
  const pieces = [];
  /** @type {(kind: Piece['kind'], words: string[]) => void} */
  const add = (kind, words) => {
    if (!words.length) return;
    const last = pieces[pieces.length - 1];
    if (last?.kind === kind) last.text += words.join(''); else pieces.push({ kind, text: words.join('') });
  };
  add('same', a.slice(0, head));
  if (x.length * y.length > MOST_CELLS) { add('gone', x); add('new', y); } else {
    const lengths = commonLengths(x, y), wide = y.length + 1;
    for (let i = 0, j = 0; i < x.length || j < y.length;) {
      if (i < x.length && j < y.length && x[i] === y[j]) { add('same', [x[i++]]); ++j; }
      else if (j >= y.length || (i < x.length && lengths[(i + 1) * wide + j] >= lengths[i * wide + j + 1])) add('gone', [x[i++]]);
      else add('new', [y[j++]]);
    }
  }
  add('same', a.slice(a.length - tail));
  return pieces;
}
