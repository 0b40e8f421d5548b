// The search in the header and its hits.
import { search } from '../model/search.js';
import { el } from './dom.js';

/** @typedef {import('../model/model.js').Model} Model */
/** @typedef {import('../model/search.js').Hit} Hit */

export class SearchBox {
  /**
   * @param {HTMLInputElement} input @param {HTMLElement} box @param {Model} model
   * @param {{ choose: (hit: Hit) => void, typed: (text: string) => void }} page
   */
  constructor(input, box, model, { choose, typed }) {
    this.input = input;
    this.box = box;
    this.model = model;
    this.choose = choose;
    this.typed = typed;
    /** @type {Hit[]} */
    this.hits = [];
    this.at = 0;
    input.addEventListener('input', () => { this.find(); typed(input.value); });
    input.addEventListener('focus', () => this.find());
    input.addEventListener('keydown', (e) => {
      const by = Number(e.key === 'ArrowDown') - Number(e.key === 'ArrowUp');
      if (by && this.hits.length) { this.at = (this.at + by + this.hits.length) % this.hits.length; this.draw(); e.preventDefault(); }
      if (e.key === 'Enter' && this.hits[this.at]) this.take(this.hits[this.at]);
    });
    document.addEventListener('pointerdown', (e) => { if (!box.contains(/** @type {Node} */ (e.target)) && e.target !== input) this.show(false); });
  }
  open() { this.input.focus(); this.input.select(); }
  get isOpen() { return !this.box.hidden; }
  close() { this.show(false); this.input.blur(); }
  clear() { this.input.value = ''; this.close(); this.typed(''); }
  /** @param {boolean} open */
  show(open) {
    this.box.hidden = !open;
    this.input.setAttribute('aria-expanded', String(open));
    if (!open) this.input.removeAttribute('aria-activedescendant');
  }
  find() {
    this.hits = search(this.model, this.input.value);
    this.at = 0;
    this.show(!!this.input.value.trim());
    this.draw();
  }
  /** @param {Hit} hit */
  take(hit) {
    this.close();
    this.choose(hit);
  }
  draw() {
    if (this.isOpen && this.hits.length) this.input.setAttribute('aria-activedescendant', `hit-${this.at}`);
    this.box.replaceChildren(...(this.hits.length ? this.hits.map((hit, i) => el('button', { id: `hit-${i}`, role: 'option', tabindex: -1, 'aria-selected': i === this.at, class: i === this.at ? 'on' : '', onclick: () => this.take(hit) },
      el('span', { class: 'quiet' }, hit.kind), el('span', {}, hit.text), el('span', { class: 'quiet' }, hit.detail || ''))) : [el('div', { class: 'quiet' }, 'nothing found')]));
  }
}
