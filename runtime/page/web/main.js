// Connects, feeds the model, redraws when something has changed.
import { listen, readRecorded } from './connection.js';
import { colour, idleColour, IDLE, kindColour, LEGEND } from './model/colours.js';
import { Model } from './model/model.js';
import { inbox, receive } from './model/inbox.js';
import { selectionSums } from './model/lanes.js';
import { requestHops } from './model/hops.js';
import { criticalPath, openWaits } from './model/reasons.js';
import { travelling } from './model/traffic.js';
import { verdict } from './model/verdict.js';
import { story } from './model/story.js';
import { bytesText, countOf, countText, percentText, timeText } from './model/text.js';
import { ActorMap } from './views/actor_map.js';
import { drawCompare } from './views/compare.js';
import { drawCurves } from './views/curves.js';
import { drawDataflow, stepShown } from './views/dataflow.js';
import { drawDetail, drawFlow, openBeside } from './views/detail.js';
import { byId, el, isDark, save, say } from './views/dom.js';
import { drawFailures } from './views/failures.js';
import { Keys, KEYS_HELP } from './views/keys.js';
import { drawLatency, drawLinks, drawMailboxes, drawMessages } from './views/message_tables.js';
import { Minimap } from './views/minimap.js';
import { alarm, drawHeader, drawSparks, drawVerdict } from './views/overview.js';
import { drawSamples } from './views/samples.js';
import { SearchBox } from './views/search_box.js';
import { Timeline } from './views/timeline.js';
import { drawHealth, drawPlan, drawSteps, drawStragglers, drawWaits } from './views/work_tables.js';
import { Location } from './views/location.js';

/** @typedef {import('./model/flows.js').Arrow} Arrow */
/** @typedef {import('./model/track.js').Slice} Slice */
/**
 * What is chosen on the page, and what its parts ask of each other.
 * @typedef {{ model: Model, tab: string, step: number, pinnedStep: number, beside: Model[], axis: string, task: Slice | null,
 *   curves: { smooth: number, log: boolean }, samples: { find: string, order: string, shade: string }, timeline: Timeline, map: ActorMap,
 *   name: () => string, close: () => void, pick: (slice: Slice) => void, follow: (arrow: Arrow) => void }} PageState
 */

const STALL_S = 10;           // without progress: a live run is stalled
const PANEL_MS = 400, LIVE_MS = 1000;
/** @type {Record<string, (main: HTMLElement, model: Model, state: PageState) => void>} */
const PANELS = { steps: drawSteps, messages: drawMessages, links: drawLinks, mailboxes: drawMailboxes, latency: drawLatency,
  waits: drawWaits, stragglers: drawStragglers, failures: drawFailures, health: drawHealth, curves: drawCurves, samples: drawSamples, plan: drawPlan };

const model = new Model();
const handlers = inbox(model);

// -- what is chosen -----------------------------------------------------------

/** @type {Timeline} */
const timeline = new Timeline(byId('timeline'), model, {
  pick: (slice, x, y) => (slice ? openTask(slice, x, y) : state.close()),
  selected: showSelection,
  moved: () => where.changed(),
  follow: (on) => byId('follow').classList.toggle('on', on),
  said: (text) => say(byId('said'), text),
});
const minimap = new Minimap(byId('minimap'), model, timeline);
const map = new ActorMap(byId('map'), model, { actor: chooseActor, follow: (arrow) => state.follow(arrow) });
/** @type {PageState} */
const state = {
  model, timeline, map, tab: 'steps', step: 0, pinnedStep: 0, task: null, beside: [], axis: 'step',
  curves: { smooth: 0, log: false }, samples: { find: '', order: 'step', shade: '' },
  name: () => model.graph.name || 'run', close: closeDetail, pick: showTask, follow: showRequest,
};
/** @type {Location} */
const where = new Location(state, timeline, { chooseTab, chooseStep, fetchStep, pick: showTask });

/** @param {Slice} slice @param {number} x @param {number} y */
function openTask(slice, x, y) {
  state.task = slice;
  timeline.picked = slice;
  timeline.dirty = true;
  drawDetail(byId('detail'), slice, model, state);
  openBeside(byId('detail'), x, y);
  where.changed();
}
function closeDetail() {
  byId('detail').hidden = true;
  map.follow([]);
  state.task = timeline.picked = null;
  timeline.dirty = true;
  where.changed();
}
/**
 * Shows a task in the timeline, and what is known of it.
 * @param {Slice} slice
 */
function showTask(slice) {
  const end = Number.isNaN(slice.e) ? model.last : slice.e;
  timeline.show(slice.b - 0.2 * (end - slice.b), end + 0.2 * (end - slice.b));
  openTask(slice, byId('timeline').clientWidth * 0.6, 300);
}
/** @param {Arrow} arrow */
function showRequest(arrow) {
  window.scrollTo(0, 0); // to the map and the timeline
  const hops = requestHops(model, arrow);
  drawFlow(byId('detail'), hops, state);
  timeline.show(arrow.t0, Math.max(...hops.map(([a]) => a.t1)));
  map.follow(hops.map(([a]) => a));
  openBeside(byId('detail'), window.innerWidth * 0.6, window.innerHeight * 0.6);
}

/** @type {((step: number) => void) | null} */
let ask = null;               // asks the server for a step's events; 0: for the newest
/** @type {(() => void) | null} */
let fetched = null;           // called once the events that were asked for are here
/**
 * Asks the server for the events of a step that are not here; 0: for the newest.
 * Returns whether they will come: `then` is called once they are here.
 * @param {number} step @param {() => void} then
 */
function fetchStep(step, then) {
  if (!ask || !connected || fetched || (step ? model.isDetailed(step) || step > model.newestStep() : !model.part)) return false;
  ask(step);
  fetched = then;
  return true;
}
function forgetViews() {
  state.close();
  timeline.follow = false;
  map.layoutKey = minimap.key = '';
  map.show(0);
  framed = false;
  document.body.classList.add('loading');
}

/** @param {number} step */
function chooseStep(step) {
  if (step && fetchStep(step, () => showStep(step))) return;
  showStep(step);
}
/** @param {number} step */
function showStep(step) {
  state.step = model.steps.has(step) ? step : 0;
  const span = state.step && model.stepSpan(state.step);
  if (span) timeline.show(span.b, span.e);
  map.show(state.step || (model.live() ? 0 : model.lastWholeStep()));
  model.changed = true;
  where.changed();
}
/** @param {number} by */
function stepBy(by) {
  const steps = [...model.steps.keys()].sort((a, b) => a - b);
  const shown = stepShown(model, state.step), next = steps[steps.indexOf(shown) + by];
  chooseStep(next || Math.max(1, Math.min(model.newestStep(), shown + by)));
}
/** @param {string} name */
function chooseActor(name) {
  byId('filter-actor').value = timeline.filter.actor = name;
  chooseTab('messages');
}
/** @param {string} name */
function chooseTab(name, scroll = true) {
  if (!PANELS[name]) return;
  state.tab = name;
  for (const button of /** @type {Iterable<HTMLElement>} */ (byId('tabs').children)) button.classList.toggle('on', button.dataset.tab === name);
  drawPanel();
  if (scroll && !document.body.classList.contains('loading')) {
    const room = window.innerHeight - byId('panel').getBoundingClientRect().top;
    if (room < window.innerHeight / 2) byId('tabs').scrollIntoView();
  }
  model.changed = true;
  where.changed();
}
function drawPanel() { if (model.loaded) PANELS[state.tab](byId('panel'), model, state); }

function showSelection() {
  const box = byId('selection');
  box.hidden = !timeline.selection;
  if (!timeline.selection) return;
  const sums = selectionSums(model, ...timeline.selection);
  const all = sums.length * Math.max(1, sums.devices);
  box.textContent = [`${timeText(sums.length)} on ${countOf(sums.devices, 'device')}`, countOf(sums.tasks, 'task'), `${countOf(sums.messages, 'message')}, ${bytesText(sums.bytes)}`,
    ...sums.time.map(([key, ns]) => `${key.startsWith('idle ') ? `idle ${IDLE[key.slice(5)]}` : key} ${percentText(ns / all)}`)].join(' \u00b7 ');
}

/** @param {import('./model/search.js').Hit} hit */
function findHit(hit) {
  if (hit.step) return chooseStep(hit.step);
  if (hit.slice) return state.pick(hit.slice);
  if (hit.track && hit.kind === 'actor') return chooseActor(hit.text);
  if (hit.message) { byId('filter-kind').value = timeline.filter.kind = hit.message; return chooseTab('messages'); }
  if (hit.sample) { state.samples.find = (hit.sample.response || hit.sample.prompt || '').slice(0, 60); return chooseTab('samples'); }
  return timeline.fit();
}

// -- controls -----------------------------------------------------------------

/** @param {string} name */
function addTab(name) {
  const button = el('button', { onclick: () => chooseTab(name) }, name);
  button.dataset.tab = name;
  byId('tabs').append(button);
}
Object.keys(PANELS).forEach(addTab);
/** @type {(id: string, get: () => boolean, set: (on: boolean) => void) => void} */
const toggle = (id, get, set) => { byId(id).onclick = () => { set(!get()); byId(id).classList.toggle('on', get()); timeline.dirty = true; }; };
toggle('actors', () => timeline.showActors, (v) => { timeline.showActors = v; });
toggle('arrows', () => timeline.showArrows, (v) => { timeline.showArrows = v; });
toggle('rule', () => timeline.ruling, (v) => { timeline.ruling = v; });
byId('follow').onclick = () => timeline.setFollow(!timeline.follow);
byId('fit').onclick = () => timeline.fit();
const showLastStep = () => { const span = model.stepSpan(model.lastWholeStep()); if (span) timeline.show(span.b, span.e); };
byId('last-step').onclick = () => { state.step = 0; showLastStep(); map.show(model.live() ? 0 : model.lastWholeStep()); model.changed = true; };
byId('newest').onclick = () => fetchStep(0, () => { showStep(0); if (model.live()) timeline.setFollow(true); });
byId('step-back').onclick = () => stepBy(-1);
byId('step-on').onclick = () => stepBy(1);
byId('pin').onclick = () => {
  const step = state.step || timeline.filter.step || model.lastWholeStep();
  state.pinnedStep = state.pinnedStep ? 0 : step;
  byId('pin').classList.toggle('on', !!state.pinnedStep);
  say(byId('pinned'), state.pinnedStep ? `step ${state.pinnedStep} is pinned: see "steps"` : '');
  model.changed = true;
};
byId('filter-kind').onchange = () => { timeline.filter.kind = byId('filter-kind').value; model.changed = true; where.changed(); };
byId('filter-actor').onchange = () => { timeline.filter.actor = byId('filter-actor').value; model.changed = true; where.changed(); };
byId('filter-step').onchange = () => {
  timeline.filter.step = Number(byId('filter-step').value) || 0;
  state.step = model.steps.has(timeline.filter.step) ? timeline.filter.step : 0;
  model.changed = true;
};
byId('map-play').onclick = () => map.play();
byId('map-hop').onclick = () => map.hop(true);
byId('map-hop-back').onclick = () => map.hop(false);
byId('map-slower').onclick = () => { map.speed /= 2; map.dirty = true; };
byId('map-faster').onclick = () => { map.speed *= 2; map.dirty = true; };
byId('map-live').onclick = () => map.show(0);
byId('map-at').oninput = () => map.seek(Number(byId('map-at').value) / 1000);
byId('map-large').onclick = () => byId('map-large').classList.toggle('on', byId('map-cell').classList.toggle('large'));
for (const button of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('[data-save]'))) button.onclick = () => {
  const what = button.dataset.save;
  if (what === 'picture') return byId('timeline').toBlob((blob) => save(`${state.name()}_timeline.png`, blob));
  const dag = document.querySelector('#dataflow svg');
  const text = what === 'timeline' ? timeline.drawing() : dag ? withInks(dag) : '';
  return save(`${state.name()}_${what}.svg`, new Blob([text], { type: 'image/svg+xml' }));
};
/**
 * A drawing that leaves the page takes its colours along.
 * @param {Element} node
 */
function withInks(node) {
  const style = getComputedStyle(document.documentElement);
  return new XMLSerializer().serializeToString(node).replace(/var\((--\w+)\)/g, (_, name) => style.getPropertyValue(name).trim());
}

/** @type {(dark: boolean) => void} */
const setTheme = (dark) => {
  document.documentElement.classList.toggle('dark', dark);
  byId('legend').replaceChildren(...LEGEND.map(([kind, text]) => el('span', {}, el('i', { style: `background:${kindColour(kind, dark)}` }), text)),
    ...['data', 'bytes'].map((kind) => el('span', {}, el('i', { style: `background:${idleColour(kind, dark)}` }), `idle ${IDLE[kind]}`)));
  map.dirty = model.changed = true;
};
const dark = matchMedia('(prefers-color-scheme: dark)');
dark.onchange = () => setTheme(dark.matches);
setTheme(dark.matches);
byId('theme').onclick = () => setTheme(!isDark());
const searchBox = new SearchBox(byId('search'), byId('hits'), model, findHit);
new Keys({ f: 'follow', 0: 'fit', s: 'last-step', a: 'actors', m: 'arrows', p: 'pin', r: 'rule', l: 'map-large', '[': 'step-back', ']': 'step-on', ' ': 'map-play', '.': 'map-hop', ',': 'map-hop-back', '?': 'help' },
  { timeline, search: searchBox, close: state.close });
byId('help').onclick = () => {
  byId('detail').replaceChildren(el('button', { class: 'close', onclick: () => state.close() }, 'close'), el('h2', {}, 'keys'), KEYS_HELP());
  openBeside(byId('detail'), window.innerWidth * 0.4, 40);
};
window.addEventListener('resize', () => { timeline.dirty = map.dirty = true; });

/** @param {HTMLSelectElement} select @param {string[]} values */
function fill(select, values) {
  if (select.options.length === values.length + 1) return;
  const first = select.options[0], chosen = select.value;
  select.replaceChildren(first, ...values.map((v) => el('option', { value: v }, v)));
  select.value = chosen;
}

// -- what arrives -------------------------------------------------------------

let connected = false, lost = false, lastData = 0, panelAt = 0; // 0: redraw at once
let lastStep = -Infinity;
/** @param {string} type @param {string} text */
function take(type, text) {
  const before = model.status;
  receive(model, handlers, type, text);
  if (type === 'run') {
    say(byId('run-name'), model.graph.name);
    document.title = `${model.graph.name} - Troupe`;
  }
  if (type === 'beside') connectBeside(JSON.parse(text));
  if (type === 'part') forgetViews();
  if (type !== 'status') return;
  if (before && model.status && before.step !== model.status.step) lastStep = performance.now();
  panelAt = 0;
}
function connect() {
  ask = listen(location.search, {
    text: take,
    records: (data) => { model.addRecords(data); lastData = performance.now(); },
    opened: () => { connected = true; model.changed = true; },
    closed: () => { connected = false; lost = true; model.changed = true; },
  });
}
/**
 * Reads the runs to compare with, each into a model of its own.
 * @param {string[]} names
 */
function connectBeside(names) {
  PANELS.compare = drawCompare;
  addTab('compare');
  names.forEach((_, i) => {
    const other = new Model(), into = inbox(other);
    state.beside.push(other);
    listen(`${location.search}${location.search ? '&' : '?'}run=${i + 1}`, {
      text: (type, text) => { receive(other, into, type, text); model.changed = true; },
      records: (data) => other.addRecords(data),
    });
  });
}
// -- frames -------------------------------------------------------------------

// A run whose workers make no progress is stalled. The run's own clock continues
// with its heartbeats, so it counts from before the page was opened; steps count
// where the trace is full.
function quietSeconds() {
  const now = performance.now(), since = Math.max(model.progress, model.begin);
  return Math.min((model.last - since) / 1e9 + (now - lastData) / 1e3, (now - lastStep) / 1e3);
}

/** @param {boolean} live */
function drawTop(live) {
  const quiet = quietSeconds();
  drawHeader(model, connected);
  drawVerdict(model, live && connected && quiet > STALL_S);
  const text = alarm(model, connected, quiet, STALL_S);
  byId('banner').hidden = !text;
  say(byId('banner'), text);
  fill(byId('filter-kind'), [...model.flows.kinds.keys()].sort());
  fill(byId('filter-actor'), [...new Set(model.tracks.filter((t) => t.kind === 'actor').map((t) => t.name))].sort());
  const step = stepShown(model, state.step);
  say(byId('dataflow-title'), step ? `step ${step}${live && !state.step ? ', live' : ''}` : 'the step');
  drawSparks(byId('sparks'), model, () => chooseTab('curves'));
  if (!byId('dataflow').matches(':active')) drawDataflow(byId('dataflow'), model, state.step, openTask);
}

// Until all files are read, the page's picture is incomplete, and half of a run
// looks like a broken one.
let unreadable = ''; // why a report could not be read
function drawLoading() {
  say(byId('loading'), unreadable ? `this report cannot be read: ${unreadable}` : lost ? 'the connection was lost before all was read: open the page again' : `loading ${model.loading} %`);
}

let framed = false;
let restUntil = 0;            // half of the time is for what arrives
/**
 * Chooses the first view, once what there is has been read.
 * @param {boolean} live @param {boolean} settled
 */
function frameOnce(live, settled) {
  if (framed || !settled || !model.events) return;
  const step = model.lastWholeStep();
  const span = step && model.stepSpan(step);
  if (!span && live) return;
  framed = true;
  if (!span) timeline.fit(); // it ended in its first step
  else if (live) { timeline.from = model.last - Math.max(2e9, (span.e - span.b) * 3); timeline.to = model.last; } else showLastStep();
  if (!live && span) map.show(step);
  const then = fetched;
  fetched = null; // before what asks for more
  if (then) then(); else where.restore(model);
}

/** @param {number} now */
function frame(now) {
  requestAnimationFrame(frame);
  if (!model.loaded) return drawLoading();
  document.body.classList.remove('loading');
  model.settleQuiet();
  model.sortArrows();
  const live = model.live();
  const settled = live || model.files.every((f) => !f.waiting.length);
  frameOnce(live, settled);
  map.draw(now);
  if (timeline.dirty || !framed || (model.changed && now >= restUntil)) {
    const before = performance.now();
    timeline.dirty = false;
    timeline.draw();
    minimap.draw(now);
    const ms = performance.now() - before;
    timeline.frameMs.push(ms);
    restUntil = now + 2 * ms;
    if (timeline.frameMs.length > 600) timeline.frameMs.splice(0, 300);
  }
  if (model.changed ? now - panelAt > PANEL_MS || panelAt === 0 : live && now - panelAt > LIVE_MS) {
    panelAt = now;
    model.changed = false;
    map.dirty = true;
    drawTop(live);
    const busy = byId('panel').matches(':hover') || byId('panel').contains(document.activeElement);
    if (!live || !busy) drawPanel();
  }
  return undefined;
}
Object.assign(window, { troupe: { colour, model, timeline, map, minimap, state, criticalPath, openWaits, travelling, verdict, story, selectionSums, countText } }); // for tests and the curious
chooseTab('steps', false);
const recorded = byId('recorded');
if (recorded) {
  model.recorded = true; // nothing more will come
  readRecorded(recorded.textContent ?? '', { text: take, records: (data) => model.addRecords(data) }).then(
    () => { connected = true; },
    (error) => { unreadable = error.message; });
} else {
  connect();
}
requestAnimationFrame(frame);
