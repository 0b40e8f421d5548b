// From task to task by keyboard: along a device, and to the task at the same time
// of the device above or below.

/** @typedef {import('./lanes.js').Lane} Lane */
/** @typedef {import('./track.js').Slice} Slice */
/** @typedef {'left' | 'right' | 'up' | 'down'} Direction */

/** @type {(lane: Lane) => Slice[]} */
const tasksOf = (lane) => lane.tracks.flatMap((track) => track.depths[0] ?? []).sort((a, b) => a.b - b.b);

/**
 * Returns the task of the lane that is nearest to a time: one that runs then, else
 * the one whose edge is closest.
 * @param {Lane} lane @param {number} t
 */
function nearest(lane, t) {
  /** @type {Slice | null} */
  let found = null;
  let least = Infinity;
  for (const task of tasksOf(lane)) {
    const end = Number.isNaN(task.e) ? Infinity : task.e;
    const apart = t < task.b ? task.b - t : t > end ? t - end : 0;
    if (apart < least) { least = apart; found = task; }
  }
  return found;
}

/**
 * Returns the task that a step in a direction leads to; null: there is none there.
 * Without a task to start from it is the one nearest to `t` on the first lane.
 * @param {Lane[]} lanes @param {Slice | null} from @param {Direction} direction @param {number} t
 */
export function walk(lanes, from, direction, t) {
  const full = lanes.filter((lane) => tasksOf(lane).length);
  const at = full.findIndex((lane) => from && lane.tracks.includes(from.track));
  if (!from || at < 0) return full.length ? nearest(full[0], t) : null;
  const across = Number(direction === 'down') - Number(direction === 'up');
  if (across) {
    const to = full[at + across];
    return to ? nearest(to, (from.b + (Number.isNaN(from.e) ? from.b : from.e)) / 2) : null;
  }
  const own = tasksOf(full[at]);
  return own[own.indexOf(from) + (direction === 'right' ? 1 : -1)] ?? null;
}
