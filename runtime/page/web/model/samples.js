// Samples of a run by prompt. Template words around the prompt are left out.
import { entryOf } from './track.js';

/** Returns the text without the words that a chat template adds at its ends. */
const bare = (text) => (text || '').replace(/^\s*(system|user)\s*\n/i, '').replace(/\n\s*assistant\s*$/i, '').trim();

/**
 * Returns groups { prompt, rows } of samples that hold `find`, in the given
 * order: 'step' and others largest first, '-score' smallest first. A group
 * stands where its best row does.
 */
export function sampleGroups(samples, { find = '', order = 'step' } = {}) {
  const words = find.trim().toLowerCase();
  const field = order.replace(/^-/, ''), sign = order.startsWith('-') ? -1 : 1;
  const key = (s) => (Number.isFinite(s[field]) ? sign * s[field] : -Infinity);
  const groups = new Map();
  const wanted = samples.filter((s) => !words || `${s.prompt} ${s.response}`.toLowerCase().includes(words));
  for (const s of [...wanted].reverse().sort((a, b) => key(b) - key(a)))
    entryOf(groups, s.prompt ?? '', () => ({ prompt: bare(s.prompt), rows: [] })).rows.push(s);
  return [...groups.values()];
}
