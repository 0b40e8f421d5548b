// A brush that paints SVG with the operations of a canvas that the views use:
// what is seen can be saved as a drawing.

const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }[c]));
const n = (x) => Number(x.toFixed(2));

export class SvgBrush {
  constructor(width, height, back) {
    Object.assign(this, { width, height, fillStyle: '#000', strokeStyle: '#000', lineWidth: 1, globalAlpha: 1,
      font: '11px sans-serif', textBaseline: 'middle', textAlign: 'left', parts: [], path: '', dash: [], kept: [], clips: 0, clipped: '' });
    this.measure = document.createElement('canvas').getContext('2d');
    this.parts.push(`<rect width="${width}" height="${height}" fill="${back}"/>`);
  }
  add(tag, attributes) {
    const alpha = this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : '';
    this.parts.push(`<${tag} ${attributes}${alpha}${this.clipped}/>`);
  }
  get pen() {
    return `stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}" fill="none"${this.dash.length ? ` stroke-dasharray="${this.dash}"` : ''}`;
  }
  save() { this.kept.push([this.fillStyle, this.strokeStyle, this.lineWidth, this.globalAlpha, this.font, this.clipped]); }
  restore() { [this.fillStyle, this.strokeStyle, this.lineWidth, this.globalAlpha, this.font, this.clipped] = this.kept.pop(); }
  clearRect() {}
  setLineDash(dash) { this.dash = dash; }
  fillRect(x, y, w, h) { this.add('rect', `x="${n(x)}" y="${n(y)}" width="${n(Math.max(0, w))}" height="${n(Math.max(0, h))}" fill="${this.fillStyle}"`); }
  strokeRect(x, y, w, h) { this.add('rect', `x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}" ${this.pen}`); }
  beginPath() { this.path = ''; }
  moveTo(x, y) { this.path += `M${n(x)} ${n(y)}`; }
  lineTo(x, y) { this.path += `L${n(x)} ${n(y)}`; }
  closePath() { this.path += 'Z'; }
  bezierCurveTo(...p) { this.path += `C${p.map(n).join(' ')}`; }
  rect(x, y, w, h) { this.path += `M${n(x)} ${n(y)}h${n(w)}v${n(h)}h${n(-w)}Z`; }
  roundRect(x, y, w, h) { this.rect(x, y, w, h); }
  arc(x, y, r) { this.path += `M${n(x - r)} ${n(y)}a${n(r)} ${n(r)} 0 1 0 ${n(2 * r)} 0a${n(r)} ${n(r)} 0 1 0 ${n(-2 * r)} 0`; }
  clip() {
    const id = `clip${++this.clips}`;
    this.parts.push(`<clipPath id="${id}"><path d="${this.path}"/></clipPath>`);
    this.clipped = ` clip-path="url(#${id})"`;
  }
  stroke() { this.add('path', `d="${this.path}" ${this.pen}`); }
  fill() { this.add('path', `d="${this.path}" fill="${this.fillStyle}"`); }
  measureText(text) { this.measure.font = this.font; return this.measure.measureText(text); }
  fillText(text, x, y) {
    const anchor = { left: 'start', right: 'end', center: 'middle' }[this.textAlign];
    this.parts.push(`<text x="${n(x)}" y="${n(y)}" dominant-baseline="central" text-anchor="${anchor}" fill="${this.fillStyle}" style="font:${this.font}"${this.clipped}>${escaped(text)}</text>`);
  }
  text() {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}">${this.parts.join('\n')}</svg>\n`;
  }
}
