// The search in the header and its hits.
import { search } from '../model/search.js';
import { el } from './dom.js';

/** @typedef {import('../model/model.js').Model} Model */
/** @typedef {import('../model/search.js').Hit} Hit */

export class SearchBox {
  /** @param {HTMLInputElement} input @param {HTMLElement} box @param {Model} model @param {(hit: Hit) => void} choose */
  constructor(input, box, model, choose) {
    this.input = input;
    this.box = box;
    this.model = model;
    this.choose = choose;
    /** @type {Hit[]} */
    this.hits = [];
    this.at = 0;
    input.addEventListener('input', () => this.find());
    input.addEventListener('focus', () => this.find());
    input.addEventListener('keydown', (e) => {
      const by = Number(e.key === 'ArrowDown') - Number(e.key === 'ArrowUp');
      if (by && this.hits.length) { this.at = (this.at + by + this.hits.length) % this.hits.length; this.draw(); e.preventDefault(); }
      if (e.key === 'Enter' && this.hits[this.at]) this.take(this.hits[this.at]);
    });
    document.addEventListener('pointerdown', (e) => { if (!box.contains(/** @type {Node} */ (e.target)) && e.target !== input) box.hidden = true; });
  }
  open() { this.input.focus(); this.input.select(); }
  close() { this.box.hidden = true; this.input.blur(); }
  find() {
    this.hits = search(this.model, this.input.value);
    this.at = 0;
    this.box.hidden = !this.input.value.trim();
    this.draw();
  }
  /** @param {Hit} hit */
  take(hit) {
    this.close();
    this.choose(hit);
  }
  draw() {
    this.box.replaceChildren(...(this.hits.length ? this.hits.map((hit, i) => el('button', { class: i === this.at ? 'on' : '', onclick: () => this.take(hit) },
      el('span', { class: 'quiet' }, hit.kind), el('span', {}, hit.text), el('span', { class: 'quiet' }, hit.detail || ''))) : [el('div', { class: 'quiet' }, 'nothing found')]));
  }
}
