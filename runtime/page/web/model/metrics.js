// Which metrics are drawn as curves, and in which order.

/**
 * A line of metrics.jsonl; what was not finite is null.
 * @typedef {{ step: number, [name: string]: number | null | undefined }} MetricsRow
 */
/** @typedef {[x: number, y: number]} Point */
/** @typedef {{ name: string, points: Point[] }} Line */
/** @typedef {[title: string, metrics: string[]]} Card */

/** @type {Card[]} */
const CHOSEN = [
  ['reward', ['critic/score/mean', 'critic/rewards/mean']], ['KL to the reference', ['actor/reward_kl_penalty']],
  ['policy loss', ['actor/pg_loss']], ['value loss', ['critic/vf_loss']], ['loss', ['train/loss']], ['accuracy', ['train/accuracy']],
  ['entropy', ['actor/entropy']], ['answer length', ['response_length/mean', 'response_length/max']],
  ['tokens/s and device', ['perf/throughput']], ['seconds a step', ['timing_s/step', 'perf/predicted_step_s']], ['idle share', ['perf/idle_ratio']],
  ['gradient norm', ['actor/grad_norm', 'critic/grad_norm']],
];
// Metrics of the machine rather than of the training; the first ones are chosen
// above.
const MACHINE = /^(timing_s|perf|training|data|prompt_length|response_length)\//;

/** @type {(x: unknown) => x is number} */
export const isNumber = (x) => Number.isFinite(x);

/**
 * Returns the points of a metric; `xOf` gives the x of a row, else it is the step.
 * @param {MetricsRow[]} metrics @param {string} name @param {(row: MetricsRow, i: number) => number} xOf @returns {Point[]}
 */
export function valuesOf(metrics, name, xOf = (m) => m.step) {
  return metrics.flatMap((m, i) => { const y = m[name]; return isNumber(y) ? [/** @type {Point} */ ([xOf(m, i), y])] : []; });
}

/**
 * Returns the points' exponential moving average; `weight` is that of the past.
 * @param {Point[]} points @param {number} weight @returns {Point[]}
 */
export function smoothed(points, weight) {
  let mean = 0, sum = 0;
  return points.map(([x, y]) => {
    mean = weight * mean + (1 - weight) * y;
    sum = weight * sum + (1 - weight);
    return [x, mean / sum];
  });
}

/**
 * Returns the metric's first equal among `others`, or ''.
 * @param {MetricsRow[]} metrics @param {string} name @param {string[]} others
 */
function equalOf(metrics, name, others) {
  return others.find((other) => metrics.every((m) => m[name] === m[other])) || '';
}

/**
 * Returns the chosen curves, then the rest by the part of their name before the
 * first slash; those that are folded are texts.
 * @param {MetricsRow[]} metrics
 */
export function curveGroups(metrics) {
  const names = [...new Set(metrics.flatMap(Object.keys))].filter((n) => n !== 'step' && metrics.some((m) => Number.isFinite(m[n])));
  /** @type {(name: string) => boolean} */
  const isConstant = (n) => { const known = valuesOf(metrics, n); return known.length > 1 && known.every((p) => p[1] === known[0][1]); };
  /** @type {string[]} */
  const folded = [];
  /** @type {string[]} */
  const kept = [];
  for (const name of names) {
    const equal = equalOf(metrics, name, kept);
    if (isConstant(name)) folded.push(`${name} = ${valuesOf(metrics, name)[0][1]}`);
    else if (equal) folded.push(`${name} equals ${equal}`);
    else kept.push(name);
  }
  const chosen = CHOSEN.map(([title, own]) => /** @type {Card} */ ([title, own.filter((n) => kept.includes(n))])).filter(([, own]) => own.length);
  const shown = new Set(CHOSEN.flatMap(([, own]) => own));
  /** @type {Map<string, Card[]>} */
  const groups = new Map();
  for (const name of kept.filter((n) => !shown.has(n) && !MACHINE.test(n))) {
    const group = name.split('/')[0];
    groups.set(group, [...(groups.get(group) || []), [name, [name]]]);
  }
  return { list: [{ title: 'chosen', cards: chosen }, ...[...groups].map(([title, cards]) => ({ title, cards }))], folded: folded.filter((t) => !MACHINE.test(t)) };
}

/**
 * Returns all metrics as CSV, one line a step.
 * @param {MetricsRow[]} metrics
 */
export function metricsCsv(metrics) {
  const names = [...new Set(metrics.flatMap(Object.keys))].filter((n) => n !== 'step').sort();
  /** @type {(x: unknown) => string} */
  const cell = (x) => (x === undefined || x === null ? '' : /[",\n]/.test(String(x)) ? `"${String(x).replaceAll('"', '""')}"` : String(x));
  return [['step', ...names].map(cell).join(','), ...metrics.map((m) => [m.step, ...names.map((n) => m[n])].map(cell).join(','))].join('\n') + '\n';
}
