// Reasons: what an idle gap waited for, a step's critical path, the open waits,
// slow devices. Plain functions over the model.
import { entryOf } from './track.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./track.js').Slice} Slice */
/** @typedef {import('./track.js').Track} Track */
/**
 * A call in a step, over all its devices; e is Infinity while it runs.
 * @typedef {{ call: string, step: number, b: number, e: number, parts: Slice[] }} Span
 */
/** @typedef {{ name: string }} Waiting */
/** @typedef {{ call: string, device: string, slow: number, rest: number, ratio: number }} Straggler */

export const HAND_OVER_NS = 2e6;

/** @param {Model} model @param {number} step @param {string} call @returns {Span | null} */
export function taskSpan(model, step, call) {
  const parts = model.steps.get(step)?.get(call);
  if (!parts || !parts.length) return null;
  return { call, step, b: Math.min(...parts.map((p) => p.b)),
    e: Math.max(...parts.map((p) => (Number.isNaN(p.e) ? Infinity : p.e))), parts };
}

/**
 * Returns the tasks that must end before (call, step) may start: its keys'
 * writers, and the training or move that made its weights.
 * @param {Model} model @param {string} call @param {number} step @returns {Span[]}
 */
function upstream(model, call, step) {
  /** @type {Span[]} */
  const found = [];
  for (const edge of model.graph.edges)
    if (edge.to === call) {
      const span = taskSpan(model, step, edge.from);
      if (span) found.push(span);
      else found.push(...upstream(model, edge.from, step)); // a host function
    }
  const own = model.calls.get(call);
  if (own && own.role)
    for (const other of model.graph.calls)
      if (other.role === own.role && other.kind === 'train' && other.name !== call) {
        const span = taskSpan(model, step - 1 - own.lag, other.name);
        if (span) found.push(span);
      }
  const move = taskSpan(model, step - 1, 'move') || taskSpan(model, step, 'move');
  if (own && own.kind === 'generate' && move) found.push(move);
  return found;
}

/**
 * Returns the reason of the gap before `task` on its device: the wait that the
 * master reported, else what ended last of what the task needs.
 * @param {Model} model @param {Slice} before @param {Slice} task
 */
export function gapReason(model, before, task) {
  const said = saidWait(model, task.track, before.e, task.b);
  if (said) return `${said.name.replace(' (data)', '')}, step ${said.step}`;
  const ready = upstream(model, task.name, task.step).filter((u) => u.e <= task.b + HAND_OVER_NS);
  const latest = ready.sort((a, b) => b.e - a.e)[0];
  const needed = latest && latest.e > before.e ? latest : null;
  const from = needed ? Math.min(needed.e, task.b) : before.e;
  const bytes = fetchTime(task.track, from, task.b) > (task.b - from) / 2;
  if (needed && (!bytes || from - before.e > task.b - from)) return `waits for ${needed.call}, step ${needed.step}`;
  if (bytes) return 'waits for bytes';
  const other = lastOfOthers(model, before, task);
  if (other) return `waits for ${other.track.name} (${other.name})`;
  return task.step > before.step ? 'waits for the step to commit' : 'waits for messages';
}

/** @type {(b: number, e: number, from: number, to: number) => number} */
export const within = (b, e, from, to) => Math.max(0, Math.min(e, to) - Math.max(b, from));

/**
 * Returns the reported wait that covers most of the device's gap.
 * @param {Model} model @param {Track} device @param {number} from @param {number} to
 */
function saidWait(model, device, from, to) {
  /** @type {Slice | null} */
  let found = null;
  let most = (to - from) / 2;
  for (const track of model.byName.get(`waits of ${device.name}`) || []) {
    const { row, first, last } = track.visible(0, from, to);
    for (let i = first; i < last; ++i) {
      const part = within(row[i].b, Number.isNaN(row[i].e) ? to : row[i].e, from, to);
      if (part > most) { most = part; found = row[i]; }
    }
  }
  return found;
}

/**
 * Returns for how long rows were in transit to the device's shards in [from,
 * to].
 * @param {Track} device @param {number} from @param {number} to
 */
function fetchTime(device, from, to) {
  const own = device.file.tracks.filter((t) => t.fetches.length && t.name.endsWith(`/${device.name.slice(7)}`));
  return Math.max(0, ...own.map((t) => t.fetches.reduce((sum, f) => sum + within(f[0], f[1], from, to), 0)));
}

/**
 * A call begins when all its devices are free: returns what the last of them
 * did in the gap before `task` on this one.
 * @param {Model} model @param {Slice} before @param {Slice} task
 */
function lastOfOthers(model, before, task) {
  const call = model.calls.get(task.name);
  const others = model.devices().filter((d) => d !== task.track && call && call.devices.includes(Number(d.name.slice(7))));
  /** @type {Slice | null} */
  let latest = null;
  for (const device of others) {
    const { row, first, last } = device.visible(0, before.e, task.b);
    for (let i = first; i < last; ++i)
      if (row[i].e > (latest || before).e && row[i].e <= task.b && row[i].name !== task.name) latest = row[i];
  }
  return latest;
}

/**
 * Walks from the step's last task back along the latest upstream task.
 * @param {Model} model @param {number} step
 */
export function criticalPath(model, step) {
  const calls = [...(model.steps.get(step)?.keys() ?? [])].flatMap((c) => taskSpan(model, step, c) ?? []);
  let at = calls.sort((a, b) => b.e - a.e)[0];
  /** @type {Span[]} */
  const path = [];
  while (at && path.length < 64) {
    path.unshift(at);
    at = upstream(model, at.call, at.step)
      .filter((u) => u.step === step && u.b <= at.b && u.e <= at.e)
      .sort((a, b) => b.e - a.e)[0];
  }
  return path;
}

/** @param {Model} model @param {Set<number>} steps @returns {[why: string, ns: number][]} */
export function idleByReason(model, steps) {
  /** @type {Map<string, number>} */
  const reasons = new Map();
  const spans = [...steps].flatMap((s) => model.stepSpan(s) ?? []);
  const from = Math.min(...spans.map((s) => s.b)), to = Math.max(...spans.map((s) => s.e));
  for (const device of model.devices()) {
    const { row, first, last } = device.visible(0, from, to);
    const tasks = row.slice(first, last).filter((t) => steps.has(t.step) && !Number.isNaN(t.e));
    for (let i = 1; i < tasks.length; ++i) {
      const gap = tasks[i].b - tasks[i - 1].e;
      if (gap <= 0) continue;
      const why = gap < HAND_OVER_NS ? 'hand-over' : gapReason(model, tasks[i - 1], tasks[i]).replace(/, step \d+$/, '');
      reasons.set(why, (reasons.get(why) || 0) + gap);
    }
  }
  return [...reasons].sort((a, b) => b[1] - a[1]);
}

/**
 * Returns the asks without a reply, oldest first: sender, receiver and start.
 * @param {Model} model
 */
export function openWaits(model) {
  return [...model.asks.values()]
    .filter((a) => model.flows.answered.has(a.name) && !model.over(a.from.file) && !model.over(a.to.file))
    .sort((a, b) => a.t1 - b.t1);
}

/**
 * Returns a cycle of waiting actors, as names; empty: none.
 * @param {{ from: Waiting, to: Waiting }[]} waits @returns {string[]}
 */
export function waitCycle(waits) {
  /** @type {Map<Waiting, Set<Waiting>>} */
  const next = new Map();
  for (const w of waits) entryOf(next, w.from, () => new Set()).add(w.to);
  /** @type {Set<Waiting>} */
  const done = new Set();
  /** @type {(actor: Waiting, path: Waiting[]) => Waiting[] | null} */
  const visit = (actor, path) => {
    const at = path.indexOf(actor);
    if (at >= 0) return path.slice(at);
    if (done.has(actor)) return null;
    for (const to of next.get(actor) || []) {
      const cycle = visit(to, [...path, actor]);
      if (cycle) return cycle;
    }
    done.add(actor);
    return null;
  };
  for (const actor of next.keys()) {
    const cycle = visit(actor, []);
    if (cycle) return cycle.map((a) => a.name);
  }
  return [];
}

/** @type {(list: number[]) => number} */
export const median = (list) => {
  const sorted = [...list].sort((a, b) => a - b);
  return sorted.length ? sorted[sorted.length >> 1] : NaN;
};
/** @type {(list: number[], q: number) => number} */
export const quantile = (list, q) => {
  const sorted = [...list].sort((a, b) => a - b);
  return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] : NaN;
};

/**
 * Compares each call's devices over the last steps with the call's median
 * device.
 * @param {Model} model @returns {Straggler[]}
 */
export function stragglers(model, lastSteps = 20) {
  const steps = [...model.steps.keys()].sort((a, b) => a - b).slice(-lastSteps);
  /** @type {Map<string, Map<string, number[]>>} */
  const times = new Map(); // call -> device -> [ns]
  for (const step of steps)
    for (const [call, parts] of model.steps.get(step) ?? [])
      for (const part of parts) {
        if (Number.isNaN(part.e)) continue;
        const devices = entryOf(times, call, () => new Map());
        const own = entryOf(devices, part.track.name, () => []);
        own.push(part.e - part.b);
      }
  /** @type {Straggler[]} */
  const rows = [];
  for (const [call, devices] of times) {
    if (devices.size < 2) continue;
    const medians = [...devices].map(([device, list]) => /** @type {[string, number]} */ ([device, median(list)])).sort((a, b) => b[1] - a[1]);
    const rest = median(medians.slice(1).map((m) => m[1]));
    rows.push({ call, device: medians[0][0], slow: medians[0][1], rest, ratio: medians[0][1] / rest });
  }
  return rows.sort((a, b) => b.ratio - a.ratio);
}
