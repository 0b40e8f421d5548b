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
import { besideFrom } from './views/compare_source.js';
import { closeBeside, drawDetail, drawFlow, openBeside } from './views/detail.js';
import { byId, el, isDark, save, say } from './views/dom.js';
import { drawFailures } from './views/failures.js';
import { Keys, KEYS_HELP } from './views/keys.js';
import { drawLatency, drawLinks, drawMailboxes, drawMessages } from './views/message_tables.js';
import { Minimap } from './views/minimap.js';
import { alarm, drawHeader, drawSparks, drawVerdict } from './views/overview.js';
import { alone, svgBlob } from './views/picture.js';
import { drawSample } from './views/sample_detail.js';
import { drawSamples } from './views/samples.js';
import { SearchBox } from './views/search_box.js';
import { Timeline } from './views/timeline.js';
import { TimelineKeys } from './views/timeline_keys.js';
import { drawHealth, drawPlan, drawSteps, drawStragglers, drawWaits } from './views/work_tables.js';
import { Location } from './views/location.js';

/** @typedef {import('./model/flows.js').Arrow} Arrow */
/** @typedef {import('./model/track.js').Slice} Slice */
/**
 * What is chosen on the page, and what its parts ask of each other.
 * @typedef {{ model: Model, tab: string, step: number, pinnedStep: number, beside: Model[], compareError: string, axis: string, task: Slice | null, sample: Sample | null,
 *   curves: { smooth: number, log: boolean },
 *   samples: { find: string, least: number | null, most: number | null, end: string, order: string, shade: string, from: number, to: number, diff: boolean },
 *   timeline: Timeline, map: ActorMap, name: () => string, close: () => boolean, pick: (slice: Slice) => void, follow: (arrow: Arrow) => void,
 *   openSample: (sample: Sample) => void, loadSamples: (steps: number[]) => string, moved: () => void }} PageState
 */
/** @typedef {import('./model/samples.js').Sample} Sample */

const STALL_S = 10;           // without progress: a live run is stalled
const PANEL_MS = 400, LIVE_MS = 1000;
/** @type {Record<string, (main: HTMLElement, model: Model, state: PageState) => void>} */
const PANELS = { steps: drawSteps, messages: drawMessages, links: drawLinks, mailboxes: drawMailboxes, latency: drawLatency,
  waits: drawWaits, stragglers: drawStragglers, failures: drawFailures, health: drawHealth, curves: drawCurves, samples: drawSamples, plan: drawPlan, compare: drawCompare };

const model = new Model();
const handlers = inbox(model);

// -- what is chosen -----------------------------------------------------------

/** @type {Timeline} */
const timeline = new Timeline(byId('timeline'), model, {
  pick: (slice, x, y) => { if (slice) openTask(slice, x, y); else state.close(); },
  selected: showSelection,
  moved: () => where.changed(),
  follow: (on) => setOn('follow', on),
  said: (text) => say(byId('said'), text),
});
const minimap = new Minimap(byId('minimap'), model, timeline);
const map = new ActorMap(byId('map'), model, { actor: chooseActor, follow: (arrow) => state.follow(arrow) });
/** @type {PageState} */
const state = {
  model, timeline, map, tab: 'steps', step: 0, pinnedStep: 0, task: null, sample: null, beside: [], compareError: '', axis: 'step',
  curves: { smooth: 0, log: false }, samples: { find: '', least: null, most: null, end: '', order: 'step', shade: '', from: 0, to: 0, diff: false },
  name: () => model.graph.name || 'run', close: closeDetail, pick: showTask, follow: showRequest,
  openSample: showSample, loadSamples, moved: () => where.changed(),
};
const timelineKeys = new TimelineKeys(timeline, showTask);
/** @type {Location} */
const where = new Location(state, timeline, { chooseTab, chooseStep, fetchStep, pick: showTask, openSample: showSample, loadSamples, close: closeDetail, search: (text) => { byId('search').value = text; markTasks(text); } });
/**
 * Marks the tasks that a search means.
 * @param {string} text
 */
function markTasks(text) {
  where.searched = timelineKeys.search(text) ? text : '';
  where.changed();
}

/** @param {Slice} slice @param {number} x @param {number} y */
function openTask(slice, x, y) {
  state.task = slice;
  state.sample = null;
  timeline.picked = slice;
  timeline.dirty = true;
  drawDetail(byId('detail'), slice, model, state);
  openBeside(byId('detail'), x, y);
  where.changed();
}
function closeDetail() {
  const wasOpen = closeBeside(byId('detail'));
  map.follow([]);
  state.task = timeline.picked = state.sample = null;
  timeline.dirty = true;
  where.changed();
  return wasOpen;
}
/** @param {Sample} sample */
function showSample(sample) {
  state.task = timeline.picked = null;
  state.sample = sample;
  drawSample(byId('detail'), sample, state);
  openBeside(byId('detail'), window.innerWidth / 2 - 1, 320);
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

/** @type {import('./connection.js').Wishes | null} */
let ask = null;               // asks the server for a step's events (0: for the newest) or samples
/** @type {Set<number>} */
const asked = new Set();      // steps whose samples were asked for
/**
 * Asks the server for the samples of those steps of which none are here. Returns what
 * is missing, in words; empty: nothing.
 * @param {number[]} steps
 */
function loadSamples(steps) {
  const missing = steps.filter((step) => step > 0 && !model.samplesOf.has(step) && !model.samples.some((s) => s.step === step));
  if (!missing.length) return '';
  if (!ask || !connected) return `this page has no samples of step ${missing.join(' and ')}: a report has the newest only`;
  for (const step of missing.filter((s) => !asked.has(s))) { asked.add(step); ask.samples(step); }
  return `loading the samples of step ${missing.join(' and ')}`;
}
/** @type {(() => void) | null} */
let fetched = null;           // called once the events that were asked for are here
/**
 * Asks the server for the events of a step that are not here; 0: for the newest.
 * Returns whether they will come: `then` is called once they are here.
 * @param {number} step @param {() => void} then
 */
function fetchStep(step, then) {
  if (!ask || !connected || fetched || (step ? model.isDetailed(step) || step > model.newestStep() : !model.part)) return false;
  ask.events(step);
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
/** @param {HTMLElement} button @param {boolean} on */
function setTab(button, on) {
  button.classList.toggle('on', on);
  button.setAttribute('aria-selected', String(on));
  button.tabIndex = on ? 0 : -1;
}
/** @param {string} name */
function chooseTab(name, scroll = true) {
  if (!PANELS[name]) return;
  state.tab = name;
  for (const button of /** @type {Iterable<HTMLElement>} */ (byId('tabs').children)) setTab(button, button.dataset.tab === name);
  byId('panel').setAttribute('aria-labelledby', `tab-${name}`);
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
  if (hit.call) { byId('search').value = hit.call; markTasks(hit.call); timeline.picked = null; return timelineKeys.next(false); }
  if (hit.track && hit.kind === 'actor') return chooseActor(hit.text);
  if (hit.track) { byId('search').value = hit.text; markTasks(hit.text); return timeline.unfold(hit.track); }
  if (hit.message) { byId('filter-kind').value = timeline.filter.kind = hit.message; return chooseTab('messages'); }
  if (hit.sample) { chooseTab('samples'); return state.openSample(hit.sample); }
  return timeline.fit();
}

// -- controls -----------------------------------------------------------------

/** @param {string} name */
function addTab(name) {
  const button = el('button', { id: `tab-${name}`, role: 'tab', 'aria-selected': false, 'aria-controls': 'panel', tabindex: -1, onclick: () => chooseTab(name) }, name);
  button.dataset.tab = name;
  byId('tabs').append(button);
}
Object.keys(PANELS).forEach(addTab);
/** @type {(id: string, on: boolean) => void} */
const setOn = (id, on) => { byId(id).classList.toggle('on', on); byId(id).setAttribute('aria-pressed', String(on)); };
/** @type {(id: string, get: () => boolean, set: (on: boolean) => void) => void} */
const toggle = (id, get, set) => { setOn(id, get()); byId(id).onclick = () => { set(!get()); setOn(id, get()); timeline.dirty = true; where.changed(); }; };
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
  setOn('pin', !!state.pinnedStep);
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
byId('map-large').onclick = () => setOn('map-large', byId('map-cell').classList.toggle('large'));
for (const button of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('[data-save]'))) button.onclick = () => {
  const what = button.dataset.save;
  if (what === 'picture') return byId('timeline').toBlob((blob) => save(`${state.name()}_timeline.png`, blob));
  if (what === 'map') return byId('map').toBlob((blob) => save(`${state.name()}_map.png`, blob));
  const dag = /** @type {SVGSVGElement | null} */ (document.querySelector('#dataflow svg'));
  const picture = what === 'timeline' ? { text: timeline.drawing(), width: 0, height: 0 } : dag && alone(dag);
  return picture && save(`${state.name()}_${what}.svg`, svgBlob(picture));
};

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
const searchBox = new SearchBox(byId('search'), byId('hits'), model, { choose: findHit, typed: markTasks });
new Keys({ f: 'follow', 0: 'fit', s: 'last-step', a: 'actors', m: 'arrows', p: 'pin', r: 'rule', l: 'map-large', '[': 'step-back', ']': 'step-on', ' ': 'map-play', '.': 'map-hop', ',': 'map-hop-back', '?': 'help' },
  { timeline: timelineKeys, search: searchBox, close: state.close });
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
  if (type.startsWith('samples of ')) where.arrived();
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
 * Reads the runs that this page was opened with to compare with.
 * @param {string[]} names
 */
function connectBeside(names) {
  names.forEach((_, i) => besideFrom(state, `${location.search}${location.search ? '&' : '?'}run=${i + 1}`, location.host, (why) => { state.compareError = why; }));
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
  if (!byId('dataflow').matches(':active, :focus-within')) drawDataflow(byId('dataflow'), model, state.step, openTask);
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
