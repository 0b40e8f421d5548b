// Keeps the page's address that of what is seen, and shows what an address
// names. Each place (a tab, step, task, sample) is an entry of the browser's
// history; how it is looked at is not, so "back" leads from place to place.
import { isSamePlace, rangeOf, rangeText, readAddress, writeAddress } from '../model/address.js';
import { knownSamples, sampleName } from '../model/sample_pairs.js';
import { byId } from './dom.js';

/** @typedef {import('../model/address.js').View} View */
/** @typedef {import('../model/model.js').Model} Model */
/** @typedef {import('../main.js').PageState} PageState */
/** @typedef {{ chooseTab: (name: string) => void, chooseStep: (step: number) => void, fetchStep: (step: number, then: () => void) => boolean, pick: (slice: import('../model/track.js').Slice) => void,
 *   openSample: (sample: import('../model/samples.js').Sample) => void, loadSamples: (steps: number[]) => string, close: () => void, search: (text: string) => void }} Actions */

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
    /** @type {View} */
    this.place = {};              // the entry of the history that is shown
    this.sample = '';             // one that the address names and is still to come
    this.searched = '';
    window.addEventListener('popstate', () => { if (this.model && location.hash !== this.written) this.go(readAddress(location.hash)); });
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
    const { samples } = state, isSamples = state.tab === 'samples';
    return { tab: state.tab === 'steps' ? '' : state.tab, step: task ? task.step : state.step, task: task ? task.name : '', device: task ? task.track.name : '',
      sample: state.sample ? sampleName(state.sample) : this.sample, search: this.searched,
      ...(isSamples ? { find: samples.find, end: samples.end, reward: rangeText(samples.least, samples.most),
        diff: samples.diff ? `${samples.from || ''}..${samples.to || ''}` : samples.from ? String(samples.from) : '' } : {}),
      kind: timeline.filter.kind, actor: timeline.filter.actor,
      ...(timeline.follow ? {} : { from: seconds(timeline.from), to: seconds(timeline.to) }) };
  }
  write() {
    const view = this.view(), isSame = isSamePlace(view, this.place);
    this.written = writeAddress(view);
    this.place = view;
    const address = `${location.pathname}${location.search}${this.written}`;
    if (isSame) history.replaceState(null, '', address); else history.pushState(null, '', address);
  }

  /**
   * Shows what the address names, once the run is read.
   * @param {Model} model
   */
  restore(model) {
    this.model = model;
    this.restored = true;
    this.place = readAddress(location.hash);
    if (location.hash) this.show(this.place);
  }

  /**
   * Goes to a place of the history: what it does not name is as at the beginning.
   * @param {View} view
   */
  go(view) {
    clearTimeout(this.timer);
    this.written = location.hash;
    this.place = view;
    this.actions.close();
    if (!view.step) this.actions.chooseStep(0);
    this.show({ ...view, tab: view.tab ?? 'steps' });
  }

  /** Notes that samples have arrived: the address may name one of them. */
  arrived() {
    const { model, sample: name } = this, sample = model && name && knownSamples(model).find((s) => sampleName(s) === name);
    if (!sample) return;
    this.sample = '';
    this.actions.openSample(sample);
  }

  /** @param {View} view */
  showSamples(view) {
    const { samples } = this.state;
    const [least, most] = rangeOf(view.reward ?? ''), [from, to] = rangeOf(view.diff ?? '');
    Object.assign(samples, { find: view.find ?? '', end: view.end ?? '', least, most, from: from ?? 0, to: to ?? 0, diff: (view.diff ?? '').includes('..') });
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
    if (view.search) actions.search(view.search);
    if (view.tab === 'samples') this.showSamples(view);
    if (view.tab) actions.chooseTab(view.tab);
    this.sample = view.sample ?? '';
    if (!this.sample) return;
    const wanted = this.sample;
    this.arrived();
    if (this.sample === wanted) actions.loadSamples([Number(wanted.split('.')[0])]);
  }
}
