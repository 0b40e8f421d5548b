// Elements, tables and the tip beside the pointer: what all views share.

/**
 * The elements of page.html that are more than an HTMLElement, by id.
 * @typedef {{ timeline: HTMLCanvasElement, minimap: HTMLCanvasElement, map: HTMLCanvasElement, search: HTMLInputElement,
 *   'map-at': HTMLInputElement, 'filter-step': HTMLInputElement, 'filter-kind': HTMLSelectElement, 'filter-actor': HTMLSelectElement }} Elements
 */
/** @typedef {Node | string | number} Cell */
/** @typedef {{ name: string, num: boolean, text: boolean }} Head */
/** @typedef {{ dark: boolean, fore: string, quiet: string, line: string, back: string, soft: string, accent: string, bad: string, warn: string, good: string }} Ink */

/** @type {<I extends string>(id: I) => I extends keyof Elements ? Elements[I] : HTMLElement} */
export const byId = (id) => /** @type {any} */ (document.getElementById(id));
/** @type {(canvas: HTMLCanvasElement) => CanvasRenderingContext2D} */
export const contextOf = (canvas) => /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
/** @type {<T extends keyof HTMLElementTagNameMap>(tag: T, attributes?: Record<string, any>, ...children: Cell[]) => HTMLElementTagNameMap[T]} */
export const el = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes))
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  node.append(...children.map((c) => (c instanceof Node ? c : String(c))));
  return node;
};
/** @type {<T extends keyof SVGElementTagNameMap>(tag: T, attributes?: Record<string, any>, ...children: (Node | string)[]) => SVGElementTagNameMap[T]} */
export const svg = (tag, attributes = {}, ...children) => {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};
/** @type {(heads: Head[], rows: Cell[][]) => HTMLTableElement} */
export const table = (heads, rows) => el('table', {},
  el('thead', {}, el('tr', {}, ...heads.map((h) => el('th', { class: h.num ? 'num' : '' }, h.name)))),
  el('tbody', {}, ...rows.map((row) => el('tr', {}, ...row.map((cell, i) =>
    el('td', { class: `${heads[i].num ? 'num' : ''} ${heads[i].text ? 'text' : ''}` }, cell))))));
/** @type {(name: string, kind?: '' | 'num' | 'text') => Head} */
export const head = (name, kind = '') => ({ name, num: kind === 'num', text: kind === 'text' });
/** @type {(text: string) => HTMLElement} */
export const note = (text) => el('p', { class: 'quiet' }, text);
/** @type {(text: string) => HTMLElement} */
export const quiet = (text) => el('span', { class: 'quiet' }, text);
/** @type {(...parts: (Cell | null | false)[]) => HTMLElement} */
export const lines = (...parts) => el('div', {}, .../** @type {Cell[]} */ (parts.filter(Boolean)).flatMap((p, i) => (i ? [el('br'), p] : [p])));

export const isDark = () => document.documentElement.classList.contains('dark');

/**
 * Returns the colours of the style sheet, for canvases.
 * @returns {Ink}
 */
export function inks() {
  const style = getComputedStyle(document.documentElement);
  /** @type {(name: string) => string} */
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return { dark: isDark(), fore: of('fore'), quiet: of('quiet'), line: of('line'), back: of('back'), soft: of('soft'),
    accent: of('accent'), bad: of('bad'), warn: of('warn'), good: of('good') };
}

/**
 * Fits a canvas's pixels to its size on the page; returns its context.
 * @param {HTMLCanvasElement} canvas @param {number} height
 */
export function sized(canvas, height) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const g = contextOf(canvas);
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  g.textBaseline = 'middle';
  return g;
}

/**
 * Shows a text beside the pointer; empty: hides it.
 * @param {string} text
 */
export function tip(text, x = 0, y = 0) {
  const box = byId('tip');
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  const wide = box.offsetWidth, high = box.offsetHeight;
  box.style.left = `${Math.max(4, Math.min(x + 14, window.innerWidth - wide - 6))}px`;
  box.style.top = `${y + 18 + high > window.innerHeight ? y - high - 8 : y + 18}px`;
}

/**
 * Replaces a text only if it differs: the reader's selection stays.
 * @type {(node: Node, text: string) => void}
 */
export const say = (node, text) => { if (node.textContent !== text) node.textContent = text; };

/**
 * Saves a file from the page.
 * @param {string} name @param {Blob | null} content
 */
export function save(name, content) {
  if (!content) return; // a picture of no pixels
  const link = el('a', { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
