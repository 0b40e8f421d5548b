// A brush that paints SVG with the operations of a canvas that the views use:
// what is seen can be saved as a drawing.

import { contextOf } from './dom.js';

/**
 * What the views paint on: a canvas, or a drawing.
 * @typedef {Pick<CanvasRenderingContext2D, 'fillStyle' | 'strokeStyle' | 'lineWidth' | 'globalAlpha' | 'font' | 'textBaseline' | 'textAlign' |
 *   'save' | 'restore' | 'clearRect' | 'setLineDash' | 'fillRect' | 'strokeRect' | 'beginPath' | 'moveTo' | 'lineTo' | 'closePath' |
 *   'bezierCurveTo' | 'rect' | 'roundRect' | 'arc' | 'clip' | 'stroke' | 'fill' | 'measureText' | 'fillText'>} Brush
 */

/** @type {Record<string, string>} */
const ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
/** @type {(text: string) => string} */
const escaped = (text) => text.replace(/[&<>"]/g, (c) => ENTITIES[c]);
/** @type {(x: number) => number} */
const n = (x) => Number(x.toFixed(2));

/** @type {Record<CanvasTextAlign, string>} */
const ANCHORS = { left: 'start', start: 'start', right: 'end', end: 'end', center: 'middle' };

export class SvgBrush {
  /** @param {number} width @param {number} height @param {string} back */
  constructor(width, height, back) {
    this.width = width;
    this.height = height;
    this.fillStyle = '#000';
    this.strokeStyle = '#000';
    this.lineWidth = 1;
    this.globalAlpha = 1;
    this.font = '11px sans-serif';
    /** @type {CanvasTextBaseline} */
    this.textBaseline = 'middle';
    /** @type {CanvasTextAlign} */
    this.textAlign = 'left';
    /** @type {string[]} */
    this.parts = [];
    this.path = '';
    /** @type {number[]} */
    this.dash = [];
    /** @type {[string, string, number, number, string, string][]} */
    this.kept = [];
    this.clips = 0;
    this.clipped = '';
    this.measure = contextOf(document.createElement('canvas'));
    this.parts.push(`<rect width="${width}" height="${height}" fill="${back}"/>`);
  }
  /** @param {string} tag @param {string} attributes */
  add(tag, attributes) {
    const alpha = this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : '';
    this.parts.push(`<${tag} ${attributes}${alpha}${this.clipped}/>`);
  }
  get pen() {
    return `stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}" fill="none"${this.dash.length ? ` stroke-dasharray="${this.dash}"` : ''}`;
  }
  save() { this.kept.push([this.fillStyle, this.strokeStyle, this.lineWidth, this.globalAlpha, this.font, this.clipped]); }
  restore() {
    const kept = this.kept.pop();
    if (kept) [this.fillStyle, this.strokeStyle, this.lineWidth, this.globalAlpha, this.font, this.clipped] = kept;
  }
  clearRect() {}
  /** @param {number[]} dash */
  setLineDash(dash) { this.dash = dash; }
  /** @param {number} x @param {number} y @param {number} w @param {number} h */
  fillRect(x, y, w, h) { this.add('rect', `x="${n(x)}" y="${n(y)}" width="${n(Math.max(0, w))}" height="${n(Math.max(0, h))}" fill="${this.fillStyle}"`); }
  /** @param {number} x @param {number} y @param {number} w @param {number} h */
  strokeRect(x, y, w, h) { this.add('rect', `x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}" ${this.pen}`); }
  beginPath() { this.path = ''; }
  /** @param {number} x @param {number} y */
  moveTo(x, y) { this.path += `M${n(x)} ${n(y)}`; }
  /** @param {number} x @param {number} y */
  lineTo(x, y) { this.path += `L${n(x)} ${n(y)}`; }
  closePath() { this.path += 'Z'; }
  /** @param {number[]} p */
  bezierCurveTo(...p) { this.path += `C${p.map(n).join(' ')}`; }
  /** @param {number} x @param {number} y @param {number} w @param {number} h */
  rect(x, y, w, h) { this.path += `M${n(x)} ${n(y)}h${n(w)}v${n(h)}h${n(-w)}Z`; }
  /** @param {number} x @param {number} y @param {number} w @param {number} h */
  roundRect(x, y, w, h) { this.rect(x, y, w, h); }
  /** @param {number} x @param {number} y @param {number} r */
  arc(x, y, r) { this.path += `M${n(x - r)} ${n(y)}a${n(r)} ${n(r)} 0 1 0 ${n(2 * r)} 0a${n(r)} ${n(r)} 0 1 0 ${n(-2 * r)} 0`; }
  clip() {
    const id = `clip${++this.clips}`;
    this.parts.push(`<clipPath id="${id}"><path d="${this.path}"/></clipPath>`);
    this.clipped = ` clip-path="url(#${id})"`;
  }
  stroke() { this.add('path', `d="${this.path}" ${this.pen}`); }
  fill() { this.add('path', `d="${this.path}" fill="${this.fillStyle}"`); }
  /** @param {string} text */
  measureText(text) { this.measure.font = this.font; return this.measure.measureText(text); }
  /** @param {string} text @param {number} x @param {number} y */
  fillText(text, x, y) {
    const anchor = ANCHORS[this.textAlign];
    this.parts.push(`<text x="${n(x)}" y="${n(y)}" dominant-baseline="central" text-anchor="${anchor}" fill="${this.fillStyle}" style="font:${this.font}"${this.clipped}>${escaped(text)}</text>`);
  }
  text() {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}">${this.parts.join('\n')}</svg>\n`;
  }
}
