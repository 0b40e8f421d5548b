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
const countText = (n) => n.toLocaleString('en');
const note = (text) => el('p', { class: 'quiet' }, text);

// Arranges calls in layers: a call is to the right of everything that it reads.
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

// Returns the path from a call to one that reads its keys; it passes other
// calls above or below them.
function edgePath(a, b, width, boxHeight, gapX, height) {
  const x0 = a.x + width, y0 = a.y + boxHeight / 2, x1 = b.x, y1 = b.y + boxHeight / 2, half = gapX / 2;
  if (x1 - x0 <= gapX) return `M${x0},${y0} C${x0 + half},${y0} ${x1 - half},${y1} ${x1},${y1}`;
  const lane = y0 + y1 < height ? 8 : height - 8;
  return `M${x0},${y0} C${x0 + half},${y0} ${x0 + half},${lane} ${x0 + gapX},${lane} L${x1 - gapX},${lane} C${x1 - half},${lane} ${x1 - half},${y1} ${x1},${y1}`;
}

// Returns the state of a call in a step: how long it took, or its progress.
function callWord(model, step, call) {
  const span = taskSpan(model, step, call.name);
  const host = call.devices.length ? '' : ' on the host';
  if (span && span.e !== Infinity) return timeText(span.e - span.b) + host;
  if (span) {
    const ended = span.parts.filter((p) => !Number.isNaN(p.e)).length;
    return timeText(model.last - span.b) + (call.devices.length > 1 ? `, ${ended} of ${call.devices.length} done` : ' so far') + host;
  }
  if (!model.live()) return `not recorded${host}`;
  const ready = model.graph.edges.filter((e) => e.to === call.name).every((e) => {
    const u = taskSpan(model, step, e.from);
    return u && u.e !== Infinity;
  });
  return (ready ? 'ready' : 'waits') + host;
}

// Boxes are as wide as the longest text that one had so far: no text overflows
// its box, and boxes do not move while times count up.
const BOX_FONT = '12px system-ui, sans-serif';
const brush = document.createElement('canvas').getContext('2d');
function textWidth(text, font) {
  brush.font = font;
  return Math.ceil(brush.measureText(text).width);
}
function boxWidth(graph, texts) {
  const wanted = texts.map(([name, ...rest]) => Math.max(textWidth(name, `600 ${BOX_FONT}`), ...rest.map((t) => textWidth(t, BOX_FONT))) + 18);
  graph.boxWidth = Math.max(graph.boxWidth || 130, ...wanted);
  return graph.boxWidth;
}

function drawDag(main, model, state) {
  const { graph } = model;
  if (graph.error || !graph.calls.length) return main.replaceChildren(note(graph.error || 'no dataflow yet'));
  const steps = [...model.steps.keys()];
  const step = state.pinnedStep || (state.filterStep || (model.live() ? Math.max(1, ...steps) : model.lastWholeStep()));
  if (!step) return main.replaceChildren(note('no step was recorded'));
  const hotPath = criticalPath(model, step);
  const critical = new Set(hotPath.map((t) => t.call));
  const rows = layers(graph);
  const texts = new Map(graph.calls.map((c) => [c.name, [c.name, callWord(model, step, c), c.strategy ? `${c.strategy} on ${c.devices.length}` : '']]));
  const width = boxWidth(graph, [...texts.values()]), boxHeight = 58, gapX = 50, gapY = 14;
  const tallest = Math.max(...rows.map((r) => r.length));
  const height = tallest * (boxHeight + gapY) + 30;
  const place = new Map();
  rows.forEach((row, i) => row.forEach((call, j) => place.set(call.name, {
    x: 10 + i * (width + gapX), y: 24 + (height - 30 - row.length * (boxHeight + gapY)) / 2 + j * (boxHeight + gapY) })));
  const picture = svg('svg', { class: 'dag', viewBox: `0 0 ${rows.length * (width + gapX)} ${height}`, style: `max-width:${rows.length * (width + gapX)}px` });
  for (const edge of graph.edges) {
    const a = place.get(edge.from), b = place.get(edge.to);
    if (!a || !b) continue;
    const at = hotPath.findIndex((t) => t.call === edge.to);
    const hot = at > 0 && hotPath[at - 1].call === edge.from;
    const line = svg('path', { d: edgePath(a, b, width, boxHeight, gapX, height),
      fill: 'none', stroke: hot ? 'var(--bad)' : 'var(--quiet)', 'stroke-width': hot ? 2 : 1 });
    line.append(svg('title', {}, document.createTextNode(edge.keys.join(', '))));
    picture.append(line);
  }
  for (const call of graph.calls) {
    const { x, y } = place.get(call.name);
    const span = taskSpan(model, step, call.name);
    const running = span && span.e === Infinity;
    const box = svg('g', { style: 'cursor:pointer' });
    box.append(svg('rect', { x, y, width, height: boxHeight, rx: 6, fill: span ? colour(call.name, document.documentElement.classList.contains('dark')) : 'var(--soft)',
      'fill-opacity': running ? 0.5 : 1, stroke: critical.has(call.name) ? 'var(--bad)' : 'var(--line)', 'stroke-width': critical.has(call.name) ? 2 : 1 }));
    const line = (text, dy, weight) => { const t = svg('text', { x: x + 8, y: y + dy, 'font-size': 12, fill: 'var(--fore)', 'font-weight': weight }); t.textContent = text; return t; };
    const [name, word, where] = texts.get(call.name);
    box.append(line(name, 17, 600), line(word, 33, 400), line(where, 49, 400));
    box.addEventListener('click', () => { if (span) state.pick(span.parts[0]); });
    picture.append(box);
  }
  main.replaceChildren(el('div', {}, `step ${step}, critical path: `,
    hotPath.map((t) => `${t.call}${t.e === Infinity ? '' : ` ${timeText(t.e - t.b)}`}`).join(' > ') || 'no task yet'), picture);
  return undefined;
}

function drawMessages(main, model, state) {
  const wanted = model.arrows.filter((a) => state.timeline.wanted(a)).slice(-200).reverse();
  const flying = model.inFlight().filter((s) => state.timeline.wanted({ ...s, from: s.track }));
  main.replaceChildren(
    el('div', {}, `${model.arrows.length} messages with both ends, ${flying.length} on their way`),
    table([head('sent at', 'num'), head('message'), head('step', 'num'), head('from'), head('to'), head('took', 'num'), head('bytes', 'num')], [
      ...flying.slice(0, 20).map((s) => [timeText(s.t - model.origin), el('span', { class: 'warn' }, `${s.name} (on its way)`), s.step || '', s.track.name, s.to ? s.to.name : '', timeText(model.last - s.t), s.bytes || '']),
      ...wanted.map((a) => [timeText(a.t0 - model.origin),
        el('button', { onclick: () => state.follow(a) }, a.name), a.step || '', a.from.name, a.to.name, timeText(a.t1 - a.t0), a.bytes || ''])]));
}

// Returns the last value of a counter before a time.
const counterAt = (points, t) => { let v = 0; for (const p of points) { if (p[0] > t) break; v = p[1]; } return v; };

function linkCells(model, unique) {
  const cells = new Map();
  for (const from of unique) for (const to of unique) cells.set(`${from}>${to}`, { count: 0, recent: 0, us: [], flying: 0 });
  for (const a of model.arrows) {
    const c = cells.get(`${a.from.file.process}>${a.to.file.process}`);
    ++c.count;
    if (a.t1 > model.last - 5e9) ++c.recent;
    c.us.push((a.t1 - a.t0) / 1e3);
  }
  for (const s of model.inFlight()) if (s.to) ++cells.get(`${s.track.file.process}>${s.to.file.process}`).flying;
  return cells;
}

// Returns a table with a row per sender and a column per receiver.
const matrix = (names, cell) => table([head(''), ...names.map((n) => head(n, 'num'))],
  names.map((from) => [from, ...names.map((to) => cell(from, to) || el('span', { class: 'quiet' }, '-'))]));
const lines = (...parts) => el('div', {}, ...parts.filter(Boolean).flatMap((p, i) => (i ? [el('br'), p] : [p])));
const quiet = (text) => el('span', { class: 'quiet' }, text);

// Returns what the second has pulled from the first: rows and weights.
function plane(model, step, from, to) {
  const points = model.counters.get(`pulled_bytes ${from} > ${to}`) || [];
  const open = (model.counters.get(`open_pulls ${from} > ${to}`) || []).at(-1);
  if (!points.length && !(open && open[1])) return null;
  const total = points.length ? points.at(-1)[1] : 0, span = model.stepSpan(step);
  return lines(`${bytesText((total - counterAt(points, model.last - 5e9)) / 5)}/s`,
    span && quiet(`${bytesText(counterAt(points, span.e) - counterAt(points, span.b))} in step ${step}`), quiet(`${bytesText(total)} in all`),
    open && open[1] ? el('span', { class: 'warn' }, `${open[1]} queued`) : null);
}

function drawLinks(main, model) {
  const unique = [...new Set(model.files.map((f) => f.process))];
  const cells = linkCells(model, unique);
  const pulling = unique.filter((n) => [...model.counters.keys()].some((key) => /^(pulled_bytes|open_pulls) /.test(key) && ` ${key} `.includes(` ${n} `)));
  const step = model.lastWholeStep();
  main.replaceChildren(note('rows send, columns receive; rates are those of the last 5 s'),
    el('h3', {}, 'rows and weights over the data plane'),
    pulling.length ? matrix(pulling, (from, to) => plane(model, step, from, to)) : note('none yet: producers and consumers share their process'),
    el('h3', {}, 'messages between processes'),
    matrix(unique, (from, to) => {
      const c = cells.get(`${from}>${to}`);
      return c.count ? lines(`${(c.recent / 5).toFixed(0)}/s`, quiet(`p99 ${timeText(quantile(c.us.slice(-3000), 0.99) * 1e3)}`),
        c.flying ? el('span', { class: 'warn' }, `${c.flying} on their way`) : null) : null;
    }));
}

const p50and99 = (us) => (us.length ? [timeText(quantile(us, 0.5) * 1e3), timeText(quantile(us, 0.99) * 1e3)] : ['', '']);

// Draws mailboxes: each holds what was sent to its actor and not handled yet.
function drawMailboxes(main, model) {
  const flying = model.inFlight(), waits = openWaits(model);
  const own = new Map();
  for (const a of model.arrows) (own.get(a.to) || own.set(a.to, []).get(a.to)).push(a);
  const rows = model.tracks.filter((t) => t.kind === 'actor' && t.received).map((track) => {
    const arrows = (own.get(track) || []).slice(-1000);
    return { track, held: flying.filter((s) => s.to === track), recent: arrows.filter((a) => a.t1 > model.last - 5e9).length,
      asked: waits.filter((w) => w.to === track), waited: arrows.map((a) => (a.t1 - a.t0) / 1e3), worked: [...track.handling.values()].flat() };
  }).sort((a, b) => b.held.length - a.held.length || b.asked.length - a.asked.length || b.recent - a.recent);
  const since = (list, t) => (list.length ? timeText(model.last - t(list[0])) : '');
  main.replaceChildren(table([head('actor'), head('process'), head('in the mailbox', 'num'), head('oldest', 'num'), head('unanswered', 'num'), head('oldest', 'num'),
    head('handled', 'num'), head('a second', 'num'), head('waited p50', 'num'), head('p99', 'num'), head('handling p50', 'num'), head('p99', 'num')],
  rows.map((r) => [r.track.name, r.track.file.process, r.held.length || '', since(r.held, (s) => s.t), r.asked.length || '', since(r.asked, (w) => w.t1),
    r.track.received, (r.recent / 5).toFixed(1), ...p50and99(r.waited), ...p50and99(r.worked)])));
}

// Returns the frequencies of times, in steps of the square root of two.
function histogram(us) {
  const bins = new Uint32Array(56);
  for (const t of us) ++bins[Math.max(0, Math.min(55, Math.floor(Math.log2(t) * 2) + 8))];
  const top = Math.max(...bins, 1);
  const picture = svg('svg', { width: 170, height: 34 });
  bins.forEach((n, i) => {
    if (!n) return;
    const h = Math.max(1, 30 * n / top);
    const bar = svg('rect', { x: i * 3, y: 32 - h, width: 2.4, height: h, fill: 'var(--accent)' });
    bar.append(svg('title', {}, document.createTextNode(`${timeText(2 ** ((i - 8) / 2) * 1e3)}: ${n}`)));
    picture.append(bar);
  });
  picture.append(svg('line', { x1: 0, x2: 168, y1: 33, y2: 33, stroke: 'var(--line)' }));
  return picture;
}

function drawLatency(main, model) {
  const worked = new Map();
  for (const track of model.tracks)
    for (const [name, us] of track.handling) (worked.get(name) || worked.set(name, []).get(name)).push(...us);
  const rows = [...model.kinds].sort((a, b) => b[1].count - a[1].count);
  const parts = (us) => [...p50and99(us), us.length ? histogram(us) : ''];
  main.replaceChildren(note('queue: from send to handling within a process; wire: the same between processes, on the wire and in the mailbox; handling: until the handler returned. Bars from 0.1 us to 10 s.'),
    table([head('message'), head('count', 'num'), head('queue p50', 'num'), head('p99', 'num'), head(''), head('wire p50', 'num'), head('p99', 'num'), head(''), head('handling p50', 'num'), head('p99', 'num'), head('')],
      rows.map(([name, c]) => [name, c.count, ...parts(c.queue), ...parts(c.wire), ...parts(worked.get(name) || [])])));
}

// Returns the length tail: a step lasts as long as its longest response.
function lengthTail(model) {
  const last = Math.max(0, ...model.samples.map((s) => s.step || 0));
  const own = model.samples.filter((s) => s.step === last && s.tokens).sort((a, b) => b.tokens - a.tokens);
  if (!own.length) return [];
  const half = own[own.length >> 1].tokens;
  return [el('h3', {}, `longest of ${own.length} answers of step ${last} (median ${half} tokens)`),
    table([head('sample', 'num'), head('tokens', 'num'), head('times the median', 'num'), head('end'), head('answer', 'text')],
      own.slice(0, 8).map((s) => [s.sample, s.tokens, (s.tokens / half).toFixed(2), s.finish_reason ?? '', s.response.slice(0, 200)]))];
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
    el('p', {}, tail), ...lengthTail(model));
}

function drawWaits(main, model) {
  const waits = openWaits(model);
  const cycle = waitCycle(waits);
  const steps = new Set([...model.steps.keys()].slice(-20));
  const idle = idleByReason(model, steps);
  main.replaceChildren(
    cycle.length ? el('p', { class: 'bad' }, `a cycle: ${[...cycle, cycle[0]].join(' waits for ')}`) : note('no cycle of waits'),
    waits.length ? table([head('who waits'), head('for'), head('message'), head('step', 'num'), head('since', 'num')],
      waits.slice(0, 100).map((w) => [w.from.name, `${w.to.name} (${w.to.file.process})`, w.name, w.step || '', timeText(model.last - w.t1)])) : note('nobody waits for an answer'),
    ...(idle.length ? [el('h3', {}, `idle time of the devices by reason, last ${steps.size} steps`),
      table([head('reason'), head('time', 'num')], idle.slice(0, 20).map(([why, ns]) => [why, timeText(ns)]))] : []));
}

function drawHealth(main, model) {
  const status = model.status || { workers: [] };
  const memory = (process, what) => { const points = model.counters.get(`${what} ${process}`); return points ? bytesText(points.at(-1)[1]) : ''; };
  main.replaceChildren(
    table([head('process'), head('pid', 'num'), head('host'), head('state'), head('memory', 'num'), head('rows held', 'num'), head('last event', 'num'), head('clock', 'num'), head('dropped events', 'num')],
      model.files.map((f) => {
        const worker = (status.workers || []).find((w) => `worker ${w.rank}` === f.process);
        const state = f.attempt < model.lastAttempt ? `attempt ${f.attempt}` : f.process === 'master' ? status.state : worker ? worker.state : '';
        const bad = /lost|failed|suspect/.test(state || '');
        return [f.process, f.pid, worker ? worker.host : status.host || '', el('span', { class: bad ? 'bad' : 'good' }, state || (f.closed ? 'ended' : '')),
          memory(f.process, 'memory_bytes'), memory(f.process, 'stash_bytes'),
          f.lastEvent > 0 ? `${timeText(Math.max(0, model.last - f.lastEvent))} ago` : '',
          f.clockError ? `\u00b1${timeText(f.clockError)}` : f.offset ? 'not compared' : 'the same', el('span', { class: f.dropped ? 'warn' : '' }, countText(f.dropped))];
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

// Formats a number in at most seven characters.
function short(x) {
  const a = Math.abs(x);
  if (a >= 1e4) return `${(x / 1e3).toPrecision(3)} k`;
  if (a !== 0 && a < 1e-3) return x.toExponential(1);
  return String(Number(x.toPrecision(a < 1 ? 3 : 4)));
}

function curve(title, names, metrics) {
  const w = 270, h = 110, left = 48, bottom = 14;
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
  picture.append(label(short(y1), left - 4, 12, 'end'), label(short(y0), left - 4, h - bottom, 'end'), label(x0, left, h - 3, 'start'), label(x1, w - 4, h - 3, 'end'));
  lines.forEach((points, i) => picture.append(svg('polyline', { points: points.map(at).join(' '), fill: 'none', stroke: i ? 'var(--quiet)' : 'var(--accent)', 'stroke-width': 1.5 })));
  const drawn = names.filter((_, i) => lines[i].length);
  const now = (n) => short(lines[names.indexOf(n)].at(-1)[1]);
  const legend = drawn.length > 1 ? drawn.map((n) => el('span', { class: names.indexOf(n) ? 'quiet' : 'accent' }, `${n} ${now(n)} `)) : [];
  return el('div', { class: 'card', title: names.join(', ') }, el('h3', {}, drawn.length > 1 ? title : `${title}: ${now(drawn[0])}`), ...legend, ...(legend.length ? [el('br')] : []), picture);
}

// Returns the metrics without a card of their own: those of user-defined
// programs, evaluations, the rest.
function otherCurves(metrics) {
  const shown = new Set(['step', ...CURVES.flatMap(([, names]) => names)]);
  const machine = /^(timing_s|perf|training|data|prompt_length|response_length)\//;
  return [...new Set(metrics.flatMap(Object.keys))].filter((n) => !shown.has(n) && !machine.test(n)).map((n) => [n, [n]]);
}

function drawCurves(main, model) {
  const cards = [...CURVES, ...otherCurves(model.metrics)].map(([title, names]) => curve(title, names, model.metrics)).filter(Boolean);
  main.replaceChildren(cards.length ? el('div', { class: 'cards' }, ...cards) : note('no metrics yet'));
}

function drawSamples(main, model) {
  const rows = model.samples.slice(-60).reverse();
  const number = (x) => (Number.isFinite(x) ? x.toFixed(3) : '');
  const own = [...new Set(rows.flatMap((s) => Object.keys(s.own ?? {})))];
  main.replaceChildren(rows.length ? table([head('step', 'num'), head('prompt', 'text'), head('answer', 'text'), head('reward', 'num'), head('KL', 'num'), ...own.map((k) => head(k, 'num')), head('tokens', 'num'), head('end')],
    rows.map((s) => [s.step ?? '', s.prompt ?? '', s.response ?? '', number(s.score), number(s.kl), ...own.map((k) => number(s.own?.[k])), s.tokens || '', s.finish_reason ?? ''])) : note('no samples yet'));
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
