// Lanes of the timeline and what each shows at which zoom: tasks while they can
// be told apart, else how much of each column every kind of call and every
// reason to idle took. Pure: no drawing.
import { idleClass, kindOf } from './colours.js';
import { gapReason, within, HAND_OVER_NS } from './reasons.js';
import { entryOf } from './track.js';

/** @typedef {import('./flows.js').Arrow} Arrow */
/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./track.js').Slice} Slice */
/** @typedef {import('./track.js').Track} Track */
/** @typedef {import('./trace_file.js').TraceFile} TraceFile */
/** @typedef {{ process: string, files: TraceFile[], lanes: Lane[] }} Group */
/** @typedef {{ attempt: number, b: number, e: number }} Band */
/** @typedef {{ b: number, e: number, why: string }} Gap */
/**
 * Shares or times by kind of call ('train') and by class of idle reason ('idle data').
 * @typedef {Map<string, number>} Shares
 */
/** @typedef {{ x0: number, y0: number, x1: number, y1: number, count: number, bytes: number, names: Map<string, number> }} Bundle */

/** Fewer pixels a task than this: utilisation. */
export const TASK_PX = 7;
const COLUMN_PX = 3;
const TASKS_A_COLUMN = 6;    // fewer would show tasks again, as confetti
const LEAST_COLUMNS = 24;
export const PHASE_PX = 3;  // narrower phases are not drawn

/** @type {(name: string) => number} */
const numberOf = (name) => Number((/(\d+)$/.exec(name) || [0, 0])[1]);
/** @type {(lane: Lane) => number} */
const rank = (lane) => (lane.isDevice ? 0 : lane.kind === 'device' ? 1 : 2);
/** @type {(a: Lane, b: Lane) => number} */
const order = (a, b) => rank(a) - rank(b) || (a.isDevice ? numberOf(a.name) - numberOf(b.name) : 0);

/** A row: one device, host or actor of a process, over all its attempts. */
export class Lane {
  /** @param {string} process @param {Track} first */
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
 * @param {Model} model @param {boolean} withActors @returns {Group[]}
 */
export function processLanes(model, withActors) {
  /** @type {Map<string, { process: string, files: TraceFile[], lanes: Map<string, Lane> }>} */
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
    .sort((a, b) => Number(a.process !== 'master') - Number(b.process !== 'master') || numberOf(a.process) - numberOf(b.process))
    .map((g) => ({ ...g, lanes: [...g.lanes.values()].sort(order) }));
}

/**
 * Returns the attempts as spans of time, each with its number.
 * @param {Model} model
 */
export function attemptBands(model) {
  /** @type {Map<number, Band>} */
  const bands = new Map();
  for (const file of model.files) {
    if (file.lastEvent === -Infinity) continue;
    const band = entryOf(bands, file.attempt, () => ({ attempt: file.attempt, b: Infinity, e: -Infinity }));
    band.b = Math.min(band.b, file.firstEvent);
    band.e = Math.max(band.e, file.lastEvent);
  }
  return [...bands.values()].sort((a, b) => a.attempt - b.attempt);
}

/**
 * Returns how many tasks of a lane touch [from, to].
 * @param {Lane} lane @param {number} from @param {number} to
 */
export function tasksIn(lane, from, to) {
  return lane.tracks.reduce((sum, track) => {
    const { first, last } = track.visible(0, from, to);
    return sum + last - first;
  }, 0);
}

/**
 * Returns why a device idled before the task at `index` of its row, if it did.
 * @param {Model} model @param {Slice[]} row @param {number} index @returns {Gap | null}
 */
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
 * @param {number} begin @param {number} end @param {number} tasks @param {number} pixels
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
 * @param {Model} model @param {Lane} lane @param {number} from @param {number} to @param {number} columns
 */
export function utilisation(model, lane, from, to, columns) {
  const wide = (to - from) / columns;
  /** @type {Shares[]} */
  const parts = Array.from({ length: columns }, () => new Map());
  /** @type {(key: string, b: number, e: number) => void} */
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

/**
 * Returns the mean of several lanes' columns: a folded process.
 * @param {Shares[][]} all
 */
export function meanOf(all) {
  return all[0].map((_, i) => {
    /** @type {Shares} */
    const sum = new Map();
    for (const parts of all) for (const [key, share] of parts[i]) sum.set(key, (sum.get(key) || 0) + share / all.length);
    return sum;
  });
}

// One number for where a bundle begins and ends: heights and cells are small.
const CELLS = 4096;
/** @type {(x: number, cell: number) => number} */
const cellOf = (x, cell) => Math.max(0, Math.min(CELLS - 1, Math.floor(x / cell) + CELLS / 4));
/** @type {(y0: number, y1: number, c0: number, c1: number) => number} */
const bundleKey = (y0, y1, c0, c1) => ((Math.round(y0) * 65536 + Math.round(y1)) * CELLS + c0) * CELLS + c1;

/**
 * Returns the arrows between lanes: `apart` of them each by itself, more as
 * bundles: those between the same two heights whose ends are in the same cells
 * of `cell` pixels, with their number and the mean of their ends. `place` gives
 * [x, y] of a track at a time.
 * @param {Arrow[]} arrows @param {(track: Track, t: number) => [number, number] | null} place @param {number} cell
 * @param {number} apart
 */
export function bundles(arrows, place, cell, apart) {
  /** @type {{ arrow: Arrow, from: [number, number], to: [number, number] }[]} */
  const ends = [];
  let within = 0;
  for (const arrow of arrows) {
    const from = place(arrow.from, arrow.t0), to = place(arrow.to, arrow.t1);
    if (!from || !to) continue;
    if (from[1] === to[1]) ++within;
    else ends.push({ arrow, from, to });
  }
  const isDense = ends.length > apart;
  /** @type {Map<number, Bundle>} */
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
 * @param {Model} model @param {number} from @param {number} to
 */
export function selectionSums(model, from, to) {
  /** @type {Shares} */
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
