// Lanes of the timeline and what each shows at which zoom: tasks while they can
// be told apart, else how much of each column every kind of call and every
// reason to idle took. Pure: no drawing.
import { idleClass, kindOf } from './colours.js';
import { gapReason, within, HAND_OVER_NS } from './reasons.js';
import { entryOf } from './track.js';

/** Fewer pixels a task than this: utilisation. */
export const TASK_PX = 7;
const COLUMN_PX = 3;
const TASKS_A_COLUMN = 6;    // fewer would show tasks again, as confetti
const LEAST_COLUMNS = 24;
export const PHASE_PX = 3;  // narrower phases are not drawn

const numberOf = (name) => Number((/(\d+)$/.exec(name) || [0, 0])[1]);
const rank = (lane) => (lane.isDevice ? 0 : lane.kind === 'device' ? 1 : 2);
const order = (a, b) => rank(a) - rank(b) || (a.isDevice ? numberOf(a.name) - numberOf(b.name) : 0);

/** A row: one device, host or actor of a process, over all its attempts. */
class Lane {
  constructor(process, first) {
    this.process = process;
    this.name = first.name;
    this.kind = first.kind;
    this.isDevice = first.isDevice;
    this.tracks = [first];
  }
  get depth() { return Math.max(1, ...this.tracks.map((t) => t.depths.length)); }
}

/**
 * Returns the processes, the master first, each with its files (one an
 * attempt) and its lanes.
 */
export function processLanes(model, withActors) {
  const groups = new Map();
  for (const file of model.files) {
    if (!file.process) continue; // not read yet
    const group = entryOf(groups, file.process, () => ({ process: file.process, files: [], lanes: new Map() }));
    group.files.push(file);
    for (const track of file.tracks) {
      if (track.kind === 'device' ? !track.isDevice && !track.tasks().length : !withActors || !(track.received || track.tasks().length)) continue;
      const key = `${track.kind} ${track.name}`;
      const lane = group.lanes.get(key);
      if (lane) lane.tracks.push(track); else group.lanes.set(key, new Lane(file.process, track));
    }
  }
  return [...groups.values()]
    .sort((a, b) => (a.process !== 'master') - (b.process !== 'master') || numberOf(a.process) - numberOf(b.process))
    .map((g) => ({ ...g, lanes: [...g.lanes.values()].sort(order) }));
}

/** Returns the attempts as spans of time, each with its number. */
export function attemptBands(model) {
  const bands = new Map();
  for (const file of model.files) {
    if (file.lastEvent === -Infinity) continue;
    const band = entryOf(bands, file.attempt, () => ({ attempt: file.attempt, b: Infinity, e: -Infinity }));
    band.b = Math.min(band.b, file.firstEvent);
    band.e = Math.max(band.e, file.lastEvent);
  }
  return [...bands.values()].sort((a, b) => a.attempt - b.attempt);
}

/** Returns how many tasks of a lane touch [from, to]. */
export function tasksIn(lane, from, to) {
  return lane.tracks.reduce((sum, track) => {
    const { first, last } = track.visible(0, from, to);
    return sum + last - first;
  }, 0);
}

/** Returns why a device idled before the task at `index` of its row, if it did. */
export function gapBefore(model, row, index) {
  const task = row[index], before = row[index - 1];
  if (!before || Number.isNaN(before.e) || !(task.b > before.e)) return null;
  if (task.why === undefined || (model.live() && model.last - task.b < 3e9))
    task.why = task.b - before.e < HAND_OVER_NS ? 'hand-over' : gapReason(model, before, task);
  return { b: before.e, e: task.b, why: task.why };
}

/**
 * Returns { from, to, columns }: columns of a round length of time that cover
 * [begin, end] and hold several tasks of a lane each. They do not move with the
 * view, which may be panned.
 */
export function columnsOver(begin, end, tasks, pixels) {
  const most = Math.max(LEAST_COLUMNS, Math.min(pixels / COLUMN_PX, tasks / TASKS_A_COLUMN));
  const wide = 2 ** Math.ceil(Math.log2((end - begin) / most));
  const from = Math.floor(begin / wide) * wide, columns = Math.ceil((end - from) / wide);
  return { from, to: from + columns * wide, columns };
}

/**
 * Returns for each of `columns` equal parts of [from, to] the share of time by
 * kind of call ('train') and by class of idle reason ('idle data'): what is left
 * of a column is before the first or after the last task.
 */
export function utilisation(model, lane, from, to, columns) {
  const wide = (to - from) / columns;
  const parts = Array.from({ length: columns }, () => new Map());
  const add = (key, b, e) => {
    if (!(e > from) || !(b < to)) return;
    const last = Math.min(columns - 1, Math.floor((e - from) / wide));
    for (let i = Math.max(0, Math.floor((b - from) / wide)); i <= last; ++i) {
      const part = within(b, e, from + i * wide, from + (i + 1) * wide) / wide;
      if (part > 0) parts[i].set(key, (parts[i].get(key) || 0) + part);
    }
  };
  for (const track of lane.tracks) {
    const { row, first, last } = track.visible(0, from, to);
    for (let i = first; i < Math.min(row.length, last + 1); ++i) {
      const task = row[i];
      if (i < last) add(kindOf(model, task.name), task.b, Number.isNaN(task.e) ? model.last : task.e);
      const gap = lane.isDevice && i > 0 ? gapBefore(model, row, i) : null;
      if (gap) add(`idle ${idleClass(gap.why)}`, gap.b, gap.e);
    }
  }
  return parts;
}

/** Returns the mean of several lanes' columns: a folded process. */
export function meanOf(all) {
  return all[0].map((_, i) => {
    const sum = new Map();
    for (const parts of all) for (const [key, share] of parts[i]) sum.set(key, (sum.get(key) || 0) + share / all.length);
    return sum;
  });
}

// One number for where a bundle begins and ends: heights and cells are small.
const CELLS = 4096;
const cellOf = (x, cell) => Math.max(0, Math.min(CELLS - 1, Math.floor(x / cell) + CELLS / 4));
const bundleKey = (y0, y1, c0, c1) => ((Math.round(y0) * 65536 + Math.round(y1)) * CELLS + c0) * CELLS + c1;

/**
 * Returns the arrows between lanes: `apart` of them each by itself, more as
 * bundles: those between the same two heights whose ends are in the same cells
 * of `cell` pixels, with their number and the mean of their ends. `place` gives
 * [x, y] of a track at a time.
 */
export function bundles(arrows, place, cell, apart) {
  const ends = [];
  let within = 0;
  for (const arrow of arrows) {
    const from = place(arrow.from, arrow.t0), to = place(arrow.to, arrow.t1);
    if (!from || !to) continue;
    if (from[1] === to[1]) ++within;
    else ends.push({ arrow, from, to });
  }
  const isDense = ends.length > apart;
  const found = new Map();
  ends.forEach(({ arrow, from, to }, i) => {
    const key = isDense ? bundleKey(from[1], to[1], cellOf(from[0], cell), cellOf(to[0], cell)) : i;
    const own = entryOf(found, key, () => ({ x0: 0, y0: from[1], x1: 0, y1: to[1], count: 0, bytes: 0, names: new Map() }));
    own.x0 += from[0];
    own.x1 += to[0];
    ++own.count;
    own.bytes += arrow.bytes || 0;
    own.names.set(arrow.name, (own.names.get(arrow.name) || 0) + 1);
  });
  for (const b of found.values()) { b.x0 /= b.count; b.x1 /= b.count; }
  return { list: [...found.values()], seen: ends.length, within, isDense };
}

/**
 * Returns what happened in [from, to]: device time by kind and by idle class in
 * ns, tasks, messages and their bytes.
 */
export function selectionSums(model, from, to) {
  const time = new Map();
  let tasks = 0, devices = 0;
  for (const group of processLanes(model, false))
    for (const lane of group.lanes) {
      if (!lane.isDevice) continue;
      ++devices;
      tasks += tasksIn(lane, from, to);
      for (const [key, share] of utilisation(model, lane, from, to, 1)[0]) time.set(key, (time.get(key) || 0) + share * (to - from));
    }
  const arrows = model.flows.arrowsIn(from, to).filter((a) => a.t0 >= from);
  return { length: to - from, devices, tasks, time: [...time].sort((a, b) => b[1] - a[1]),
    messages: arrows.length, bytes: arrows.reduce((sum, a) => sum + (a.bytes || 0), 0) };
}
