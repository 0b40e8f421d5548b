// The panels under the timeline: each draws into an element from the model.

const el = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes))
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  node.append(...children.map((c) => (c instanceof Node ? c : String(c))));
  return node;
};
const svg = (tag, attributes, ...children) => {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};
const table = (heads, rows) => el('table', {},
  el('thead', {}, el('tr', {}, ...heads.map((h) => el('th', { class: h.num ? 'num' : '' }, h.name)))),
  el('tbody', {}, ...rows.map((row) => el('tr', {}, ...row.map((cell, i) =>
    el('td', { class: `${heads[i].num ? 'num' : ''} ${heads[i].text ? 'text' : ''}` }, cell))))));
const head = (name, kind = '') => ({ name, num: kind === 'num', text: kind === 'text' });
const bytesText = (n) => (n >= 1e9 ? `${(n / 1e9).toFixed(2)} GB` : n >= 1e6 ? `${(n / 1e6).toFixed(1)} MB` : n >= 1e3 ? `${(n / 1e3).toFixed(1)} kB` : `${Math.round(n)} B`);
const note = (text) => el('p', { class: 'quiet' }, text);

// Calls in layers: a call stands right of everything that it reads.
function layers(graph) {
  const depth = new Map();
  const of = (name, seen = new Set()) => {
    if (depth.has(name)) return depth.get(name);
    if (seen.has(name)) return 0;
    seen.add(name);
    const from = graph.edges.filter((e) => e.to === name).map((e) => of(e.from, seen) + 1);
    depth.set(name, Math.max(0, ...from));
    return depth.get(name);
  };
  graph.calls.forEach((c) => of(c.name));
  const rows = [];
  for (const call of graph.calls) (rows[depth.get(call.name)] || (rows[depth.get(call.name)] = [])).push(call);
  return rows;
}

function drawDag(main, model, state) {
  const { graph } = model;
  if (graph.error || !graph.calls.length) return main.replaceChildren(note(graph.error || 'no dataflow yet'));
  const steps = [...model.steps.keys()];
  const step = state.pinnedStep || (state.filterStep || (model.live() ? Math.max(1, ...steps) : model.lastWholeStep()));
  const critical = new Set(criticalPath(model, step).map((t) => t.call));
  const rows = layers(graph);
  const width = 170, boxHeight = 44, gapX = 50, gapY = 14;
  const tallest = Math.max(...rows.map((r) => r.length));
  const height = tallest * (boxHeight + gapY) + 30;
  const place = new Map();
  rows.forEach((row, i) => row.forEach((call, j) => place.set(call.name, {
    x: 10 + i * (width + gapX), y: 24 + (height - 30 - row.length * (boxHeight + gapY)) / 2 + j * (boxHeight + gapY) })));
  const picture = svg('svg', { class: 'dag', viewBox: `0 0 ${rows.length * (width + gapX)} ${height}`, style: `max-width:${rows.length * (width + gapX)}px` });
  for (const edge of graph.edges) {
    const a = place.get(edge.from), b = place.get(edge.to);
    if (!a || !b) continue;
    const hot = critical.has(edge.from) && critical.has(edge.to);
    const line = svg('path', { d: `M${a.x + width},${a.y + boxHeight / 2} C${a.x + width + gapX / 2},${a.y + boxHeight / 2} ${b.x - gapX / 2},${b.y + boxHeight / 2} ${b.x},${b.y + boxHeight / 2}`,
      fill: 'none', stroke: hot ? 'var(--bad)' : 'var(--quiet)', 'stroke-width': hot ? 2 : 1 });
    line.append(svg('title', {}, document.createTextNode(edge.keys.join(', '))));
    picture.append(line);
  }
  for (const call of graph.calls) {
    const { x, y } = place.get(call.name);
    const span = taskSpan(model, step, call.name);
    const running = span && span.e === Infinity;
    const ready = !span && graph.edges.filter((e) => e.to === call.name).every((e) => {
      const u = taskSpan(model, step, e.from);
      return u && u.e !== Infinity;
    });
    const word = !call.devices.length ? 'host' : running ? 'running' : span ? timeText(span.e - span.b) : ready ? 'ready' : 'waits';
    const box = svg('g', { style: 'cursor:pointer' });
    box.append(svg('rect', { x, y, width, height: boxHeight, rx: 6, fill: span ? colour(call.name, document.documentElement.classList.contains('dark')) : 'var(--soft)',
      'fill-opacity': running ? 0.5 : 1, stroke: critical.has(call.name) ? 'var(--bad)' : 'var(--line)', 'stroke-width': critical.has(call.name) ? 2 : 1 }));
    const line = (text, dy, weight) => { const t = svg('text', { x: x + 8, y: y + dy, 'font-size': 12, fill: 'var(--fore)', 'font-weight': weight }); t.textContent = text; return t; };
    box.append(line(call.name, 17, 600), line(`${word}${call.strategy ? `  ${call.strategy} on ${call.devices.length}` : ''}`, 34, 400));
    box.addEventListener('click', () => { if (span) state.pick(span.parts[0]); });
    picture.append(box);
  }
  const path = criticalPath(model, step);
  main.replaceChildren(el('div', {}, `step ${step}, critical path: `,
    path.map((t) => `${t.call}${t.e === Infinity ? '' : ` ${timeText(t.e - t.b)}`}`).join(' > ') || 'no task yet'), picture);
  return undefined;
}

function drawMessages(main, model, state) {
  const wanted = model.arrows.filter((a) => state.timeline.wanted(a)).slice(-200).reverse();
  const flying = model.inFlight().sort((a, b) => a.t - b.t);
  main.replaceChildren(
    el('div', {}, `${model.arrows.length} messages with both ends, ${flying.length} on their way`),
    table([head('sent at', 'num'), head('message'), head('step', 'num'), head('from'), head('to'), head('took', 'num'), head('bytes', 'num')], [
      ...flying.slice(0, 20).map((s) => [timeText(s.t - model.begin), el('span', { class: 'warn' }, `${s.name} (on its way)`), s.step || '', s.track.name, '', timeText(model.last - s.t), s.bytes || '']),
      ...wanted.map((a) => [timeText(a.t0 - model.begin),
        el('button', { onclick: () => state.follow(a) }, a.name), a.step || '', a.from.name, a.to.name, timeText(a.t1 - a.t0), a.bytes || ''])]));
}

function drawLinks(main, model) {
  const names = model.files.map((f) => f.process);
  const unique = [...new Set(names)];
  const cells = new Map();
  const step = model.lastWholeStep();
  for (const a of model.arrows) {
    const key = `${a.from.file.process}>${a.to.file.process}`;
    const c = cells.get(key) || cells.set(key, { count: 0, recent: 0, us: [] }).get(key);
    ++c.count;
    if (a.t1 > model.last - 5e9) ++c.recent;
    c.us.push((a.t1 - a.t0) / 1e3);
  }
  const rows = unique.map((from) => [from, ...unique.map((to) => {
    const c = cells.get(`${from}>${to}`);
    return c ? `${c.count} (${(c.recent / 5).toFixed(0)}/s), p99 ${timeText(quantile(c.us.slice(-3000), 0.99) * 1e3)}` : '';
  })]);
  const pulled = [...model.counters].filter(([name]) => name.startsWith('pulled_bytes'));
  main.replaceChildren(el('h3', {}, 'messages between processes, rows send, columns receive'),
    table([head(''), ...unique.map((n) => head(n))], rows),
    el('h3', {}, 'rows and weights pulled over the data plane'),
    pulled.length ? table([head('link'), head('all', 'num'), head('MB/s, last 5 s', 'num'), head(`in step ${step}`, 'num')],
      pulled.map(([name, points]) => {
        const span = model.stepSpan(step);
        const at = (t) => { let v = 0; for (const p of points) { if (p[0] > t) break; v = p[1]; } return v; };
        return [name.replace('pulled_bytes ', ''), bytesText(points.at(-1)[1]),
          ((points.at(-1)[1] - at(model.last - 5e9)) / 5e6).toFixed(2), span ? bytesText(at(span.e) - at(span.b)) : ''];
      })) : note('none yet: producers and consumers share their process'));
}

function drawMailboxes(main, model) {
  const rows = model.tracks.filter((t) => t.kind === 'actor' && t.received).map((track) => {
    const own = model.arrows.filter((a) => a.to === track).slice(-1000);
    const recent = own.filter((a) => a.t1 > model.last - 5e9);
    const asked = openWaits(model).filter((w) => w.to === track);
    const us = own.map((a) => (a.t1 - a.t0) / 1e3);
    return { track, own, recent, asked, p50: quantile(us, 0.5), p99: quantile(us, 0.99) };
  }).sort((a, b) => b.asked.length - a.asked.length || b.p99 - a.p99);
  main.replaceChildren(table([head('actor'), head('process'), head('handled', 'num'), head('a second', 'num'), head('being worked on', 'num'), head('oldest of them', 'num'), head('send to handling p50', 'num'), head('p99', 'num')],
    rows.map((r) => [r.track.name, r.track.file.process, r.track.received, (r.recent.length / 5).toFixed(1), r.asked.length || '',
      r.asked.length ? timeText(model.last - r.asked[0].t1) : '', timeText(r.p50 * 1e3), timeText(r.p99 * 1e3)])));
}

function histogram(bins) {
  const top = Math.max(...bins, 1);
  const picture = svg('svg', { width: 260, height: 46 });
  bins.forEach((n, i) => {
    if (!n) return;
    const h = Math.max(1, 40 * n / top);
    const bar = svg('rect', { x: i * 4, y: 42 - h, width: 3.2, height: h, fill: 'var(--accent)' });
    bar.append(svg('title', {}, document.createTextNode(`${timeText(2 ** ((i - 8) / 2) * 1e3)}: ${n}`)));
    picture.append(bar);
  });
  return picture;
}

function drawLatency(main, model) {
  const rows = [...model.kinds].sort((a, b) => b[1].count - a[1].count);
  main.replaceChildren(note('from send to handling: time on the wire and in the mailbox; bars double every second one'),
    table([head('message'), head('count', 'num'), head('p50', 'num'), head('p99', 'num'), head('largest', 'num'), head('distribution')],
      rows.map(([name, c]) => [name, c.count, timeText(quantile(c.us, 0.5) * 1e3), timeText(quantile(c.us, 0.99) * 1e3), timeText(Math.max(...c.us) * 1e3), histogram(c.bins)])));
}

function drawStragglers(main, model) {
  const rows = stragglers(model);
  const last = model.metrics.at(-1) || {};
  const tail = last['response_length/max'] ? `answers of step ${last.step}: mean ${last['response_length/mean'].toFixed(1)}, longest ${last['response_length/max']} tokens, cut off ${(100 * (last['response_length/clip_ratio'] || 0)).toFixed(1)} %` : '';
  const worst = rows[0];
  main.replaceChildren(
    el('p', {}, worst && worst.ratio > 1.3 ? el('b', { class: 'warn' }, `${worst.device} is slow: ${worst.ratio.toFixed(2)} times the others in ${worst.call}`) : 'no device is slower than 1.3 times the others'),
    table([head('call'), head('slowest device'), head('its median', 'num'), head('the others', 'num'), head('ratio', 'num')],
      rows.map((r) => [r.call, r.device, timeText(r.slow), timeText(r.rest), r.ratio.toFixed(2)])),
    el('p', {}, tail));
}

function drawWaits(main, model) {
  const waits = openWaits(model);
  const cycle = waitCycle(waits);
  const steps = new Set([...model.steps.keys()].slice(-20));
  const idle = idleByReason(model, steps);
  main.replaceChildren(
    cycle.length ? el('p', { class: 'bad' }, `a cycle: ${[...cycle, cycle[0]].join(' waits for ')}`) : note('no cycle of waits'),
    table([head('who waits'), head('for'), head('message'), head('step', 'num'), head('since', 'num')],
      waits.slice(0, 100).map((w) => [w.from.name, `${w.to.name} (${w.to.file.process})`, w.name, w.step || '', timeText(model.last - w.t1)])),
    el('h3', {}, `idle time of the devices by reason, last ${steps.size} steps`),
    table([head('reason'), head('time', 'num')], idle.slice(0, 20).map(([why, ns]) => [why, timeText(ns)])));
}

function drawHealth(main, model) {
  const status = model.status || { workers: [] };
  const memory = (rank, what) => { const points = model.counters.get(`${what} worker ${rank}`); return points ? bytesText(points.at(-1)[1]) : ''; };
  main.replaceChildren(
    table([head('process'), head('pid', 'num'), head('host'), head('state'), head('memory', 'num'), head('rows held', 'num'), head('last event', 'num'), head('dropped events', 'num')],
      model.files.map((f) => {
        const worker = (status.workers || []).find((w) => `worker ${w.rank}` === f.process);
        const state = f.process === 'master' ? status.state : worker ? worker.state : '';
        const bad = /lost|failed|suspect/.test(state || '');
        return [f.process, f.pid, worker ? worker.host : status.host || '', el('span', { class: bad ? 'bad' : 'good' }, state || (f.closed ? 'ended' : '')),
          worker ? memory(worker.rank, 'memory_bytes') : '', worker ? memory(worker.rank, 'stash_bytes') : '',
          f.lastEvent > 0 ? `${timeText(Math.max(0, model.last - f.lastEvent))} ago` : '', f.dropped];
      })),
    el('h3', {}, 'failures'),
    model.failures.length ? table([head('time'), head('who'), head('when'), head('what', 'text'), head('first cause', 'text'), head('action')],
      model.failures.map((f) => [f.time, f.who, f.when, f.what, f.cause || '', f.action])) : note('none'),
    el('h3', {}, 'log'), el('pre', {}, model.log.slice(-60).join('\n')));
}

const CURVES = [
  ['reward', ['critic/score/mean', 'critic/rewards/mean']], ['KL to the reference', ['actor/reward_kl_penalty']],
  ['policy loss', ['actor/pg_loss']], ['value loss', ['critic/vf_loss']], ['loss', ['train/loss']], ['accuracy', ['train/accuracy']],
  ['entropy', ['actor/entropy']], ['answer length', ['response_length/mean', 'response_length/max']],
  ['tokens/s and device', ['perf/throughput']], ['seconds a step', ['timing_s/step']], ['idle share', ['perf/idle_ratio']],
  ['gradient norm', ['actor/grad_norm', 'critic/grad_norm']],
];

function curve(title, names, metrics) {
  const w = 270, h = 110, left = 44, bottom = 14;
  const lines = names.map((n) => metrics.filter((m) => Number.isFinite(m[n])).map((m) => [m.step, m[n]]));
  const all = lines.flat();
  if (!all.length) return null;
  const xs = all.map((p) => p[0]), ys = all.map((p) => p[1]);
  const x0 = Math.min(...xs), x1 = Math.max(...xs, x0 + 1);
  let y0 = Math.min(...ys), y1 = Math.max(...ys);
  if (y1 === y0) { y1 += Math.abs(y1) || 1; y0 -= Math.abs(y0) || 1; }
  const picture = svg('svg', { width: w, height: h });
  const at = ([x, y]) => `${left + (w - left - 4) * (x - x0) / (x1 - x0)},${4 + (h - bottom - 8) * (1 - (y - y0) / (y1 - y0))}`;
  const label = (text, x, y, anchor) => { const t = svg('text', { x, y, 'font-size': 9, fill: 'var(--quiet)', 'text-anchor': anchor }); t.textContent = text; return t; };
  picture.append(label(y1.toPrecision(3), left - 4, 12, 'end'), label(y0.toPrecision(3), left - 4, h - bottom, 'end'), label(x0, left, h - 3, 'start'), label(x1, w - 4, h - 3, 'end'));
  lines.forEach((points, i) => picture.append(svg('polyline', { points: points.map(at).join(' '), fill: 'none', stroke: i ? 'var(--quiet)' : 'var(--accent)', 'stroke-width': 1.5 })));
  const now = names.map((n, i) => (lines[i].length ? lines[i].at(-1)[1].toPrecision(4) : '')).filter(Boolean).join(' / ');
  return el('div', { class: 'card', title: names.join(', ') }, el('h3', {}, `${title}: ${now}`), picture);
}

function drawCurves(main, model) {
  const cards = CURVES.map(([title, names]) => curve(title, names, model.metrics)).filter(Boolean);
  main.replaceChildren(cards.length ? el('div', { class: 'cards' }, ...cards) : note('no metrics yet'));
}

function drawSamples(main, model) {
  const rows = model.samples.slice(-60).reverse();
  main.replaceChildren(rows.length ? table([head('step', 'num'), head('prompt', 'text'), head('answer', 'text'), head('score', 'num'), head('end')],
    rows.map((s) => [s.step ?? '', s.prompt ?? '', s.response ?? '', Number.isFinite(s.score) ? s.score.toFixed(3) : '', s.finish_reason ?? ''])) : note('no samples yet'));
}

function drawSteps(main, model, state) {
  const whole = model.lastWholeStep();
  const steps = [state.pinnedStep, whole - 1, whole].filter((s, i, all) => s > 0 && all.indexOf(s) === i);
  const calls = [...new Set(steps.flatMap((s) => [...(model.steps.get(s) || new Map()).keys()]))];
  const rows = calls.map((call) => [call, ...steps.map((s) => { const span = taskSpan(model, s, call); return span && span.e !== Infinity ? timeText(span.e - span.b) : ''; })]);
  rows.push(['whole step', ...steps.map((s) => { const span = model.stepSpan(s); return span ? timeText(span.e - span.b) : ''; })]);
  main.replaceChildren(table([head('task'), ...steps.map((s) => head(`step ${s}${s === state.pinnedStep ? ' (pinned)' : ''}`, 'num'))], rows));
}

const PANELS = { dataflow: drawDag, steps: drawSteps, messages: drawMessages, links: drawLinks, mailboxes: drawMailboxes,
  latency: drawLatency, stragglers: drawStragglers, waits: drawWaits, health: drawHealth, curves: drawCurves, samples: drawSamples };

// What is known of one slice: its call's keys, devices, messages around it.
function drawDetail(box, slice, model, state) {
  if (!slice) { box.hidden = true; return; }
  box.hidden = false;
  const call = model.graph.calls.find((c) => c.name === slice.name);
  const end = Number.isNaN(slice.e) ? model.last : slice.e;
  const phases = new Map();
  for (let d = slice.depth + 1; d < slice.track.depths.length; ++d) {
    const { row, first, last } = slice.track.visible(d, slice.b, end);
    for (let i = first; i < last; ++i) phases.set(row[i].name, (phases.get(row[i].name) || 0) + ((Number.isNaN(row[i].e) ? end : row[i].e) - row[i].b));
  }
  const near = model.arrows.filter((a) => a.step === slice.step && a.t1 >= slice.b - 5e6 && a.t0 <= end + 5e6
    && (a.from.file === slice.track.file || a.to.file === slice.track.file)).slice(0, 40);
  const wall = new Date((slice.b + model.realtime) / 1e6);
  const when = wall.toISOString().slice(0, 19);
  const log = model.log.filter((l) => l.includes(`step ${slice.step}`)).slice(-8);
  box.replaceChildren(
    el('button', { onclick: () => { box.hidden = true; } }, 'close'),
    el('h2', {}, `${slice.name}${slice.step ? ` of step ${slice.step}` : ''}`),
    table([head(''), head('')], [
      ['on', `${slice.track.name} (${slice.track.file.process})`], ['began', `${timeText(slice.b - model.begin)} (${when} UTC)`],
      ['took', Number.isNaN(slice.e) ? 'running' : timeText(slice.e - slice.b)],
      ...(slice.amount ? [['amount', `${slice.amount}`]] : []),
      ...(call ? [['role', call.role || 'none'], ['strategy', `${call.strategy || 'host'} on devices ${call.devices.join(', ')}`],
        ['version', call.role ? `weights after step ${Math.max(0, slice.step - 1 - call.lag)}` : ''],
        ['reads', call.reads.join(', ')], ['writes', call.writes.join(', ')]] : []),
      ...[...phases].map(([name, ns]) => [name, timeText(ns)])]),
    el('h2', {}, 'messages around it'),
    table([head('message'), head('from'), head('to'), head('took', 'num')], near.map((a) => [el('button', { onclick: () => state.follow(a) }, a.name), a.from.name, a.to.name, timeText(a.t1 - a.t0)])),
    el('pre', {}, log.join('\n')));
}

// One request through all its hops: asks that began while their sender worked
// on the one before, and the answers.
function drawFlow(box, arrow, model) {
  box.hidden = false;
  const hops = [];
  const add = (a, depth) => {
    if (depth > 8 || hops.length > 60) return;
    hops.push([a, depth]);
    const reply = model.arrows.find((r) => r.flow === (a.flow | REPLY));
    const until = reply ? reply.t0 : model.last;
    for (const next of model.arrows)
      if (next.from === a.to && next.t0 >= a.t1 && next.t0 <= until && next.step === a.step && !(next.flow & REPLY)) add(next, depth + 1);
    if (reply) hops.push([reply, depth]);
  };
  add(arrow, 0);
  box.replaceChildren(el('button', { onclick: () => { box.hidden = true; } }, 'close'), el('h2', {}, `${arrow.name} of step ${arrow.step}, all hops`),
    table([head('at', 'num'), head('message'), head('from > to'), head('took', 'num')],
      hops.map(([a, depth]) => [timeText(a.t0 - arrow.t0), `${'. '.repeat(depth)}${a.name}`, `${a.from.name} > ${a.to.name}`, timeText(a.t1 - a.t0)])));
}
