// Connects, feeds the model, redraws when something has changed.

const byId = (id) => document.getElementById(id);
const model = new Model();
const state = { tab: 'dataflow', pinnedStep: 0, filterStep: 0 };
const timeline = new Timeline(byId('timeline'), model, (slice) => drawDetail(byId('detail'), slice, model, state), (text) => { byId('hover').textContent = text; });
state.timeline = timeline;
timeline.onSaid = (text) => { if (byId('said').textContent !== text) byId('said').textContent = text; };
state.pick = (slice) => { timeline.picked = slice; timeline.show(slice.b, Number.isNaN(slice.e) ? model.last : slice.e); drawDetail(byId('detail'), slice, model, state); };
state.follow = (arrow) => timeline.show(arrow.t0, drawFlow(byId('detail'), arrow, model));

function jsonLines(text, into, most, shown = (row) => row) {
  for (const line of text.split('\n')) {
    if (!line) continue;
    try { into.push(shown(JSON.parse(line))); } catch { /* a crash left it cut */ }
  }
  if (into.length > most) into.splice(0, into.length - most);
}
// Returns user-defined keys with one number per sample; their texts and tokens
// may be long.
const ownNumbers = (keys) => Object.fromEntries(Object.entries(keys || {}).filter(([, v]) => v.length === 1 && Number.isFinite(v[0])).map(([k, v]) => [k, v[0]]));
// Returns the part of a sample that the page shows: its tokens are many.
const shownSample = ({ step, sample, prompt, response, score, kl, finish_reason, loss_mask, keys }) => (
  { step, sample, prompt, response, score, kl, finish_reason, tokens: (loss_mask || []).reduce((n, own) => n + own, 0), own: ownNumbers(keys) });

const HANDLERS = {
  run: (text) => { model.graph = JSON.parse(text); model.graph.calls.forEach((c) => colour(c.name)); byId('run-name').textContent = model.graph.name; document.title = `${model.graph.name} - Troupe`; },
  file: (text) => model.addFile(text),
  loading: (text) => model.load(Number(text)),
  status: (text) => {
    const before = model.status;
    try { model.status = JSON.parse(text); } catch { model.status = null; }
    if (before && model.status && before.step !== model.status.step) lastStep = performance.now();
    panelAt = 0;
  },
  metrics: (text) => {
    jsonLines(text, model.metrics, 20000);
    const byStep = new Map(model.metrics.map((m) => [m.step, m])); // the last line of a step wins
    model.metrics = [...byStep.values()].sort((a, b) => a.step - b.step);
  },
  failures: (text) => jsonLines(text, model.failures, 200),
  samples: (text) => jsonLines(text, model.samples, 400, shownSample),
  log: (text) => { model.log.push(...text.split('\n').filter(Boolean)); model.log.splice(0, Math.max(0, model.log.length - 2000)); },
};

// A line without a time, as user-defined programs print, gets that of its
// arrival; in a file from before, that of the line before it.
function workerLog(process, text) {
  const rows = model.logs.get(process) || model.logs.set(process, []).get(process);
  const began = performance.now() - opened > 2000;
  for (const line of text.split('\n').filter(Boolean)) {
    const stamp = /^\d{4}-\d\d-\d\d [\d:.]{12} /.test(line) ? line.slice(0, 23) : '';
    const before = rows.length ? rows[rows.length - 1].at : '';
    rows.push({ at: stamp || (began ? clockText(Date.now()) : before), text: stamp ? line.slice(24) : line });
  }
  rows.splice(0, Math.max(0, rows.length - 1000));
}

let opened = 0; // when the page was connected
let connected = false, lost = false, lastData = 0, panelAt = 0; // 0: redraw at once
function connect() {
  const socket = new WebSocket(`ws://${location.host}/events${location.search}`);
  socket.binaryType = 'arraybuffer';
  socket.onopen = () => { connected = true; opened = performance.now(); model.changed = true; };
  socket.onmessage = (message) => {
    if (typeof message.data === 'string') {
      const { type, text } = JSON.parse(message.data);
      if (HANDLERS[type]) HANDLERS[type](text);
      else if (type.startsWith('log ')) workerLog(type.slice(4), text);
    } else {
      const file = model.files[new DataView(message.data).getUint32(0, true)];
      if (file) file.seen = performance.now();
      model.addRecords(message.data);
      lastData = performance.now();
    }
    model.changed = true;
  };
  socket.onclose = () => { connected = false; lost = true; model.changed = true; };
}

function chooseTab(name) {
  state.tab = name;
  for (const button of byId('tabs').children) button.classList.toggle('on', button.dataset.tab === name);
  if (window.innerHeight <= 520 && model.events) byId('tabs').scrollIntoView(); // a phone
  model.changed = true;
}
for (const name of Object.keys(PANELS)) {
  const button = el('button', { onclick: () => chooseTab(name) }, name);
  button.dataset.tab = name;
  byId('tabs').append(button);
}

const toggle = (id, get, set) => { byId(id).onclick = () => { set(!get()); byId(id).classList.toggle('on', get()); timeline.dirty = true; }; };
toggle('actors', () => timeline.showActors, (v) => { timeline.showActors = v; });
toggle('arrows', () => timeline.showArrows, (v) => { timeline.showArrows = v; });
timeline.onFollow = (on) => byId('follow').classList.toggle('on', on);
byId('follow').onclick = () => timeline.setFollow(!timeline.follow);
byId('fit').onclick = () => timeline.fit();
const showLastStep = () => { const span = model.stepSpan(model.lastWholeStep()); if (span) timeline.show(span.b, span.e); };
byId('last-step').onclick = showLastStep;
byId('pin').onclick = () => {
  const step = state.filterStep || model.lastWholeStep();
  state.pinnedStep = state.pinnedStep ? 0 : step || 0;
  byId('pinned').textContent = state.pinnedStep ? `step ${state.pinnedStep} is pinned: see "steps"` : '';
  model.changed = true;
};
byId('filter-kind').onchange = (e) => { timeline.filter.kind = e.target.value; model.changed = true; };
byId('filter-actor').onchange = (e) => { timeline.filter.actor = e.target.value; model.changed = true; };
byId('filter-step').onchange = (e) => { state.filterStep = timeline.filter.step = Number(e.target.value) || 0; model.changed = true; };
const setTheme = (dark) => { document.documentElement.classList.toggle('dark', dark); model.changed = true; };
const dark = matchMedia('(prefers-color-scheme: dark)');
dark.onchange = () => setTheme(dark.matches);
setTheme(dark.matches);
byId('theme').onclick = () => setTheme(!document.documentElement.classList.contains('dark'));
document.addEventListener('keydown', (e) => {
  if (/INPUT|SELECT/.test(e.target.tagName)) return;
  const button = { f: 'follow', 0: 'fit', s: 'last-step', a: 'actors', m: 'arrows', p: 'pin' }[e.key];
  if (button) byId(button).click();
});

function fill(select, values) {
  if (select.options.length === values.length + 1) return;
  const first = select.options[0];
  select.replaceChildren(first, ...values.map((v) => el('option', { value: v }, v)));
}

function leftText(s) {
  if (s >= 3600) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return s >= 60 ? `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s` : `${Math.ceil(s)} s`;
}
function drawHeader() {
  const s = model.status;
  const live = model.live() && connected;
  byId('state').textContent = s ? `${s.state}${connected ? '' : ', not connected'}` : connected ? 'connected' : 'not connected';
  byId('state').className = `pill ${s && /failed|lost/.test(s.state) ? 'bad' : live ? 'good' : ''}`;
  byId('progress').textContent = s ? `step ${s.step} of ${s.steps}${s.eta_s > 0 && live ? `, ${leftText(s.eta_s)} left` : ''}, attempt ${s.attempt}` : '';
  const dropped = model.dropped();
  const { events: missing, wholeFrom } = model.missing();
  const said = [`${countText(model.events)} events`, dropped && `${countText(dropped)} dropped`, missing && `complete from step ${wholeFrom} on`].filter(Boolean);
  byId('drops').textContent = model.loaded ? said.join(', ') : '';
  byId('drops').className = dropped ? 'warn' : 'quiet';
  fill(byId('filter-kind'), [...model.kinds.keys()].sort());
  fill(byId('filter-actor'), [...new Set(model.tracks.filter((t) => t.kind === 'actor').map((t) => t.name))].sort());
  drawBanner(live);
}

// A run whose workers make no progress is stalled, and the page shows the
// reason. The run's own clock continues with its heartbeats, so it counts from
// before the page was opened; steps count where the trace is full.
const STALL_S = 10;
let lastStep = -Infinity;
function quietSeconds() {
  const now = performance.now(), since = Math.max(model.progress, model.begin);
  return Math.min((model.last - since) / 1e9 + (now - lastData) / 1e3, (now - lastStep) / 1e3);
}
// Returns the distinct ones of the oldest waits, each with its count.
function namedWaits(waits) {
  const times = new Map();
  for (const w of waits) {
    const text = `${w.from.name} waits for ${w.to.name} (${w.name}`;
    times.set(text, (times.get(text) || 0) + 1);
  }
  return [...times].slice(0, 4).map(([text, n]) => `${text}${n > 1 ? `, ${n} times` : ''})`).join('; ') || 'nobody waits for an answer';
}
function drawBanner(live) {
  const quiet = quietSeconds();
  const waits = openWaits(model), cycle = waitCycle(waits);
  const failed = model.status && model.status.last_failure;
  const suspect = model.status && (model.status.workers || []).filter((w) => /suspect|lost/.test(w.state));
  let text = '';
  const recovering = model.status && model.status.state === 'recovering';
  if (failed && recovering) text = `recovering: ${failed}`;
  else if (failed && !model.live()) text = failed; // a live run has recovered
  else if (live && suspect && suspect.length) text = suspect.map((w) => `worker ${w.rank} (pid ${w.pid}) is ${w.state}`).join(', ');
  else if (model.loaded && live && cycle.length) text = `a cycle of waits: ${[...cycle, cycle[0]].join(' > ')}`;
  else if (model.live() && !connected && model.graph.name) text = 'the connection is lost: the process that served this page has ended';
  else if (model.loaded && live && quiet > STALL_S) text = `no progress for ${quiet.toFixed(0)} s; ${namedWaits(waits)}`;
  byId('banner').hidden = !text;
  byId('banner').textContent = text;
}

// Until all files are read, the page's picture is incomplete, and half of a run
// looks like a broken one.
function drawLoading() {
  byId('loading').textContent = lost ? 'the connection was lost before all was read: open the page again' : `loading ${model.loading} %`;
  if (model.changed) drawHeader();
  model.changed = false;
}

let framed = false;
function frame(now) {
  requestAnimationFrame(frame);
  if (!model.loaded) return drawLoading();
  document.body.classList.remove('loading');
  model.settleQuiet();
  model.sortArrows();
  const live = model.live();
  const settled = live || model.files.every((f) => !f.waiting.length);
  if (!framed && settled && model.lastWholeStep()) {
    framed = true;
    const span = model.stepSpan(model.lastWholeStep());
    if (live) { timeline.from = model.last - Math.max(2e9, (span.e - span.b) * 3); timeline.to = model.last; } else showLastStep();
  }
  if (!framed && settled && !live && model.events) { // it ended in its first step
    framed = true;
    timeline.fit();
  }
  if (model.changed || timeline.dirty || !framed) {
    const before = performance.now();
    timeline.dirty = false;
    timeline.draw();
    timeline.frameMs.push(performance.now() - before);
    if (timeline.frameMs.length > 600) timeline.frameMs.splice(0, 300);
    if (now - panelAt > 400 || !model.changed) {
      panelAt = now;
      drawHeader();
      if (!byId('panel').matches(':hover') || !live) PANELS[state.tab](byId('panel'), model, state);
      model.changed = false;
    }
  } else if (live && now - panelAt > 1000) {
    panelAt = now;
    drawHeader();
  }
  return undefined;
}
window.troupe = { model, timeline, state };  // for tests and the curious
chooseTab('dataflow');
connect();
requestAnimationFrame(frame);
