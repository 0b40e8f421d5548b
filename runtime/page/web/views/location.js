// Keeps the page's address that of what is seen, and shows what an address
// names.
import { readAddress, writeAddress } from '../model/address.js';

const REST_MS = 250;

export class Location {
  constructor(state, timeline, actions) {
    Object.assign(this, { state, timeline, actions, restored: false, timer: 0 });
    window.addEventListener('hashchange', () => { if (this.model && location.hash !== this.written) this.show(readAddress(location.hash)); });
  }

  /** Notes a change; the address follows once it rests. */
  changed() {
    if (!this.restored) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), REST_MS);
  }

  view() {
    const { state, timeline } = this, { model } = state;
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

  /** Shows what the address names, once the run is read. */
  restore(model) {
    this.model = model;
    this.restored = true;
    if (location.hash) this.show(readAddress(location.hash));
  }

  show(view) {
    const { actions, timeline, model } = this;
    if (view.step && !view.task) actions.chooseStep(view.step);
    const slices = view.task && (model.steps.get(view.step) || new Map()).get(view.task);
    if (slices) actions.pick(slices.find((s) => s.track.name === view.device) || slices[0]);
    if (Number.isFinite(view.from) && Number.isFinite(view.to)) timeline.range(model.origin + view.from * 1e9, model.origin + view.to * 1e9);
    for (const [name, box] of [['kind', 'filter-kind'], ['actor', 'filter-actor']])
      if (view[name]) { timeline.filter[name] = view[name]; document.getElementById(box).value = view[name]; }
    if (view.tab) actions.chooseTab(view.tab);
  }
}
