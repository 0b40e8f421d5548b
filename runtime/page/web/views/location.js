// Keeps the page's address that of what is seen, and shows what an address
// names.
import { readAddress, writeAddress } from '../model/address.js';
import { byId } from './dom.js';

/** @typedef {import('../model/address.js').View} View */
/** @typedef {import('../model/model.js').Model} Model */
/** @typedef {import('../main.js').PageState} PageState */
/** @typedef {{ chooseTab: (name: string) => void, chooseStep: (step: number) => void, fetchStep: (step: number, then: () => void) => boolean, pick: (slice: import('../model/track.js').Slice) => void }} Actions */

const REST_MS = 250;

export class Location {
  /** @param {PageState} state @param {import('./timeline.js').Timeline} timeline @param {Actions} actions */
  constructor(state, timeline, actions) {
    this.state = state;
    this.timeline = timeline;
    this.actions = actions;
    this.restored = false;
    this.timer = 0;
    this.written = '';
    /** @type {Model | null} */
    this.model = null;            // once the run is read
    window.addEventListener('hashchange', () => { if (this.model && location.hash !== this.written) this.show(readAddress(location.hash)); });
  }

  /** Notes a change; the address follows once it rests. */
  changed() {
    if (!this.restored) return;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.write(), REST_MS);
  }

  /** @returns {View} */
  view() {
    const { state, timeline } = this, { model } = state;
    /** @type {(t: number) => number} */
    const seconds = (t) => Number(((t - model.origin) / 1e9).toFixed(6));
    const { task } = state;
    return { tab: state.tab === 'steps' ? '' : state.tab, step: task ? task.step : state.step, task: task ? task.name : '', device: task ? task.track.name : '',
      kind: timeline.filter.kind, actor: timeline.filter.actor,
      ...(timeline.follow ? {} : { from: seconds(timeline.from), to: seconds(timeline.to) }) };
  }
  write() {
    this.written = writeAddress(this.view());
    history.replaceState(null, '', `${location.pathname}${location.search}${this.written}`);
  }

  /**
   * Shows what the address names, once the run is read.
   * @param {Model} model
   */
  restore(model) {
    this.model = model;
    this.restored = true;
    if (location.hash) this.show(readAddress(location.hash));
  }

  /** @param {View} view */
  show(view) {
    const { actions, timeline, model } = this;
    if (!model) return;
    if (view.step && actions.fetchStep(view.step, () => this.show(view))) return;
    if (view.step && !view.task) actions.chooseStep(view.step);
    const slices = view.task && model.steps.get(view.step ?? 0)?.get(view.task);
    if (slices) actions.pick(slices.find((s) => s.track.name === view.device) || slices[0]);
    if (view.from !== undefined && view.to !== undefined) timeline.range(model.origin + view.from * 1e9, model.origin + view.to * 1e9);
    if (view.kind) byId('filter-kind').value = timeline.filter.kind = view.kind;
    if (view.actor) byId('filter-actor').value = timeline.filter.actor = view.actor;
    if (view.tab) actions.chooseTab(view.tab);
  }
}
