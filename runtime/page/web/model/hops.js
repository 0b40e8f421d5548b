// One request through all its hops: the asks that began while its receiver worked
// on it, theirs in turn, and the replies.
import { isReply, replyOf } from './flows.js';

/** @typedef {import('./flows.js').Arrow} Arrow */
/** @typedef {import('./model.js').Model} Model */

const MOST_HOPS = 60, DEEPEST = 8;

/**
 * Returns [[arrow, depth]] in the order of asking, each reply after what it waited for.
 * @param {Model} model @param {Arrow} arrow
 */
export function requestHops(model, arrow) {
  /** @type {[Arrow, number][]} */
  const hops = [];
  /** @type {(a: Arrow, depth: number) => void} */
  const add = (a, depth) => {
    if (depth > DEEPEST || hops.length > MOST_HOPS) return;
    hops.push([a, depth]);
    const reply = isReply(a.flow) ? null : model.arrows.find((r) => r.flow === replyOf(a.flow));
    const until = reply ? reply.t0 : model.last;
    for (const next of model.arrows)
      if (next.from === a.to && next.t0 >= a.t1 && next.t0 <= until && next.step === a.step && !isReply(next.flow)) add(next, depth + 1);
    if (reply) hops.push([reply, depth]);
  };
  add(arrow, 0);
  return hops;
}
