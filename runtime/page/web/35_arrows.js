// Messages on the timeline: arrows while they can be distinguished, else their
// number in each pixel between two lanes. Nothing is hidden silently: the line
// under the timeline shows how much is not drawn, and why.

const ARROWS_APART = 3000;      // more in view are drawn as density
const COLUMN_PX = 2;
const SHORT_PX = 6;             // shorter arrows are upright at any density
const DENSITY_ALPHA = [0.1, 0.2, 0.35, 0.55, 0.8]; // 1, 4, 16, 64, 256 messages and more

const countOf = (n, what) => `${countText(n)} ${what}${n === 1 ? '' : 's'}`;

// Returns the positions of lanes and processes, by track: actors without a lane
// of their own send and receive at their process's.
function arrowHeights(lanes, files) {
  const heights = new Map();
  const groups = new Map(lanes.filter((l) => l.group).map((l) => [l.file, l.y + l.h / 2]));
  for (const file of files)
    for (const track of file.tracks) heights.set(track, groups.get(file));
  for (const lane of lanes) if (lane.track) heights.set(lane.track, lane.y + Math.min(lane.h, LANE_PX) / 2);
  return heights;
}

// Returns the arrows that touch [from, to]; those between two actors of one
// lane cannot be drawn, and are counted.
function arrowsInView(timeline, heights) {
  const { model, from, to } = timeline, list = model.arrows;
  let lo = 0, hi = list.length;
  while (lo < hi) { const mid = (lo + hi) >> 1; if (list[mid].t0 < from - model.longest) lo = mid + 1; else hi = mid; }
  const seen = [];
  let within = 0;
  for (let i = lo; i < list.length && list[i].t0 < to; ++i) {
    const a = list[i];
    if (a.t1 < from || !timeline.wanted(a)) continue;
    const y0 = heights.get(a.from), y1 = heights.get(a.to);
    if (y0 === undefined || y1 === undefined) continue;
    if (y0 === y1) ++within;
    else seen.push([timeline.x(a.t0), y0, timeline.x(a.t1), y1]);
  }
  return { seen, within };
}

function drawArrow(g, x0, y0, x1, y1) {
  g.beginPath();
  g.moveTo(x0, y0);
  g.bezierCurveTo(x0 + (x1 - x0) / 2, y0, x0 + (x1 - x0) / 2, y1, x1, y1);
  g.stroke();
  g.beginPath();
  const tip = y1 > y0 ? -4 : 4;
  g.moveTo(x1, y1);
  g.lineTo(x1 - 3, y1 + tip);
  g.lineTo(x1 + 1, y1 + tip);
  g.fill();
}

// Draws density: every message darkens the column where it was sent, between
// its two lanes.
function drawDensity(g, seen) {
  const columns = new Map(); // "lane > lane" -> column -> count
  for (const [x0, y0, , y1] of seen) {
    const key = y0 < y1 ? y0 * 65536 + y1 : y1 * 65536 + y0;
    const own = columns.get(key) || columns.set(key, new Map()).get(key);
    const x = Math.floor(x0 / COLUMN_PX);
    own.set(x, (own.get(x) || 0) + 1);
  }
  const paths = DENSITY_ALPHA.map(() => new Path2D());
  for (const [key, own] of columns)
    for (const [x, n] of own) {
      const path = paths[Math.min(paths.length - 1, Math.floor(Math.log2(n) / 2))];
      path.moveTo((x + 0.5) * COLUMN_PX, Math.floor(key / 65536));
      path.lineTo((x + 0.5) * COLUMN_PX, key % 65536);
    }
  g.lineWidth = COLUMN_PX;
  paths.forEach((path, i) => { g.globalAlpha = DENSITY_ALPHA[i]; g.stroke(path); });
  g.lineWidth = 1;
}

function drawArrows(g, timeline) {
  const heights = arrowHeights(timeline.lanes, timeline.model.files);
  const { seen, within } = arrowsInView(timeline, heights);
  const dense = seen.length > ARROWS_APART;
  const short = dense ? seen.filter((a) => a[2] - a[0] < SHORT_PX) : [];
  const long = dense ? seen.filter((a) => a[2] - a[0] >= SHORT_PX) : seen;
  const apart = long.slice(0, ARROWS_APART); // the rest counts where it was sent
  g.strokeStyle = timeline.ink.accent;
  g.fillStyle = timeline.ink.accent;
  if (dense) drawDensity(g, short.concat(long.slice(ARROWS_APART)));
  g.globalAlpha = 0.35;
  for (const a of apart) drawArrow(g, ...a);
  drawUnderWay(g, timeline, heights);
  g.globalAlpha = 1;
  return { shown: seen.length, apart: apart.length, within };
}

// Draws messages that were sent and are not handled yet.
function drawUnderWay(g, timeline, heights) {
  g.strokeStyle = timeline.ink.bad;
  g.globalAlpha = 0.8;
  for (const send of timeline.model.inFlight()) {
    const y0 = heights.get(send.track);
    if (y0 === undefined || send.t > timeline.to) continue;
    if (!timeline.wanted({ name: send.name, step: send.step, from: send.track, to: send.to })) continue;
    const y1 = (send.to && heights.get(send.to)) ?? y0 + 5;
    g.beginPath();
    g.setLineDash([3, 2]);
    g.moveTo(timeline.x(send.t), y0);
    g.lineTo(Math.min(timeline.x(timeline.model.last), timeline.width), y1 === y0 ? y0 + 5 : y1);
    g.stroke();
    g.setLineDash([]);
  }
}

// Returns what the timeline does not show as it is.
function notDrawn(timeline, arrows) {
  const { model } = timeline;
  const said = [];
  if (arrows && arrows.shown > arrows.apart)
    said.push(`${countOf(arrows.shown, 'message')} in view, ${countText(arrows.shown - arrows.apart)} of them as density (darker is more)`);
  if (arrows && arrows.within)
    said.push(`${countOf(arrows.within, 'message')} within one process${timeline.showActors ? '' : ' (shown with "actors")'}`);
  const below = timeline.lanes.filter((l) => l.track && l.y + l.h > timeline.height).length;
  if (below) said.push(`${countOf(below, 'lane')} below the edge`);
  const { events, wholeFrom } = model.missing();
  if (events) said.push(`complete from step ${wholeFrom} on: ${countOf(events, 'older event')} not here`);
  const slices = model.tracks.reduce((sum, t) => sum + t.forgotten, 0);
  const forgotten = [model.forgotten && countOf(model.forgotten, 'older message'), slices && countOf(slices, 'older task')].filter(Boolean);
  if (forgotten.length) said.push(`${forgotten.join(' and ')} had no room on this page`);
  return said.join('; ');
}
