// How numbers, times and sizes are written: everywhere on the page alike.

/** @type {(ns: number) => string} */
export const timeText = (ns) => {
  const a = Math.abs(ns);
  if (a >= 1e9) return `${(ns / 1e9).toFixed(a >= 1e10 ? 1 : 3)} s`;
  if (a >= 1e6) return `${(ns / 1e6).toFixed(a >= 1e8 ? 0 : 2)} ms`;
  return `${(ns / 1e3).toFixed(1)} us`;
};

/**
 * Formats a time with two significant digits, for a sentence.
 * @type {(ns: number) => string}
 */
export const roughTime = (ns) => {
  const a = Math.abs(ns);
  const [unit, name] = a >= 1e9 ? [1e9, 's'] : a >= 1e6 ? [1e6, 'ms'] : [1e3, 'us'];
  const x = ns / unit;
  return `${Math.abs(x) >= 10 ? Math.round(x) : Number(x.toPrecision(2))} ${name}`;
};

/**
 * Formats a time on an axis, with as many digits as two ticks need to differ.
 * @param {number} ns @param {number} tick
 */
export function axisText(ns, tick) {
  const [unit, name] = Math.abs(ns) >= 1e9 || tick >= 1e8 ? [1e9, 's'] : Math.abs(ns) >= 1e6 || tick >= 1e5 ? [1e6, 'ms'] : [1e3, 'us'];
  return `${(ns / unit).toFixed(Math.max(0, Math.min(9, Math.ceil(Math.log10(unit / tick) - 1e-9))))} ${name}`;
}

/**
 * Returns the distance of an axis's ticks, about `px` apart.
 * @param {number} span @param {number} width
 */
export function tickOf(span, width, px = 110) {
  const rough = span / Math.max(2, width / px);
  const base = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((m) => m * base).find((m) => m >= rough) || rough;
}

/** @type {(n: number) => string} */
export const bytesText = (n) => (n >= 1e9 ? `${(n / 1e9).toFixed(2)} GB` : n >= 1e6 ? `${(n / 1e6).toFixed(1)} MB` : n >= 1e3 ? `${(n / 1e3).toFixed(1)} kB` : `${Math.round(n)} B`);
/** @type {(n: number) => string} */
export const countText = (n) => n.toLocaleString('en');
/** @type {(n: number, what: string) => string} */
export const countOf = (n, what) => `${countText(n)} ${what}${n === 1 ? '' : 's'}`;
/** @type {(share: number) => string} */
export const percentText = (share) => `${Math.round(100 * share)} %`;

/**
 * Formats a number in at most seven characters.
 * @param {number} x
 */
export function short(x) {
  const a = Math.abs(x);
  if (a >= 1e4) return `${(x / 1e3).toPrecision(3)} k`;
  if (a !== 0 && a < 1e-3) return x.toExponential(1);
  return String(Number(x.toPrecision(a < 1 ? 3 : 4)));
}

/** @param {number} s */
export function leftText(s) {
  if (s >= 3600) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return s >= 60 ? `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s` : `${Math.ceil(s)} s`;
}

/**
 * Formats milliseconds since 1970 like the log, in this browser's time zone.
 * @param {number} ms
 */
export function clockText(ms) {
  return new Date(ms - new Date(ms).getTimezoneOffset() * 6e4).toISOString().slice(0, 23).replace('T', ' ');
}
