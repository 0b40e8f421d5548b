// Pictures that leave the page: an SVG takes its colours and its lines' styles along,
// several cards become one sheet, and an SVG can be saved as PNG.
import { svg } from './dom.js';

/** @typedef {{ text: string, width: number, height: number }} Picture */

const STYLES = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'opacity', 'visibility'];
const GAP_PX = 12, HEAD_PX = 34, COLUMNS = 4, PNG_SCALE = 2;

/**
 * Returns a copy of a drawing that needs no style sheet.
 * @template {SVGElement} N
 * @param {N} node @returns {N}
 */
function withStyles(node) {
  const copy = /** @type {N} */ (node.cloneNode(true));
  const of = [...node.querySelectorAll('*')], to = [...copy.querySelectorAll('*')];
  of.forEach((part, i) => {
    const style = getComputedStyle(part);
    to[i].removeAttribute('style');
    for (const name of STYLES) to[i].setAttribute(name, style.getPropertyValue(name));
  });
  copy.setAttribute('font-family', 'system-ui, sans-serif');
  return copy;
}

/** @type {(name: string) => string} */
const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** @type {(text: string, x: number, y: number, fill: string, bold?: boolean) => SVGElement} */
const line = (text, x, y, fill, bold = false) => svg('text', { x, y, fill, 'font-size': bold ? 12 : 10, 'font-weight': bold ? 600 : 400, 'font-family': 'system-ui, sans-serif' }, text);

/**
 * Returns cards with a curve as one drawing, four beside each other, each with its
 * title and the names of its lines.
 * @param {HTMLElement[]} cards @param {string} title @returns {Picture}
 */
export function cardSheet(cards, title) {
  const boxes = cards.map((card) => /** @type {SVGSVGElement} */ (card.querySelector('svg')).viewBox.baseVal);
  const wide = Math.max(...boxes.map((b) => b.width)) + GAP_PX, high = Math.max(...boxes.map((b) => b.height)) + HEAD_PX + GAP_PX;
  const columns = Math.min(COLUMNS, cards.length), width = columns * wide + GAP_PX, height = Math.ceil(cards.length / columns) * high + 24;
  const sheet = svg('svg', { xmlns: 'http://www.w3.org/2000/svg', width, height, viewBox: `0 0 ${width} ${height}` },
    svg('rect', { width, height, fill: ink('back') }), line(title, GAP_PX, 16, ink('quiet')));
  cards.forEach((card, i) => {
    const place = svg('g', { transform: `translate(${GAP_PX + (i % columns) * wide} ${24 + Math.floor(i / columns) * high})` });
    place.append(line(card.querySelector('h3 span')?.textContent ?? '', 0, 13, ink('fore'), true));
    let x = 0;
    for (const key of card.querySelectorAll('.key')) {
      place.append(line(key.textContent ?? '', x, 27, getComputedStyle(key).color));
      x += (key.textContent ?? '').length * 5.6 + 8;
    }
    const curve = withStyles(/** @type {SVGSVGElement} */ (card.querySelector('svg')));
    curve.setAttribute('y', String(HEAD_PX));
    place.append(curve);
    sheet.append(place);
  });
  return { text: new XMLSerializer().serializeToString(sheet), width, height };
}

/**
 * Returns a drawing of the page as one that stands alone, on the page's background.
 * @param {SVGSVGElement} node @returns {Picture}
 */
export function alone(node) {
  const copy = withStyles(node), { width, height } = node.viewBox.baseVal;
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  copy.prepend(svg('rect', { width, height, fill: ink('back') }));
  return { text: new XMLSerializer().serializeToString(copy), width, height };
}

/** @type {(picture: Picture) => Blob} */
export const svgBlob = ({ text }) => new Blob([text], { type: 'image/svg+xml' });

/**
 * Paints a drawing on pixels, twice as many as it has points.
 * @param {Picture} picture @returns {Promise<Blob | null>}
 */
export async function pngBlob({ text, width, height }) {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([text], { type: 'image/svg+xml' }));
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = Math.round(width * PNG_SCALE);
  canvas.height = Math.round(height * PNG_SCALE);
  canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((resolve) => canvas.toBlob(resolve));
}
