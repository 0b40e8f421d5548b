// The timeline: a lane per device, grouped by process, with its phases; lanes
// of the actors on demand; messages as arrows; idle gaps with reasons.

const GROUP_PX = 16, LANE_PX = 20, PHASE_PX = 8, ACTOR_PX = 12, AXIS_PX = 20;
const LABEL_PX = 66, ACTOR_LABEL_PX = 168; // room for the names of the lanes

const hues = new Map();         // in order of appearance, far from each other

function colour(name, dark) {
  if (!hues.has(name)) hues.set(name, (hues.size * 137.5) % 360);
  return `oklch(${dark ? '48% 0.1' : '80% 0.1'} ${hues.get(name)})`; // text is readable on every hue
}

const timeText = (ns) => {
  const a = Math.abs(ns);
  if (a >= 1e9) return `${(ns / 1e9).toFixed(a >= 1e10 ? 1 : 3)} s`;
  if (a >= 1e6) return `${(ns / 1e6).toFixed(a >= 1e8 ? 0 : 2)} ms`;
  return `${(ns / 1e3).toFixed(1)} us`;
};

// Formats a time on the axis, with as many digits as two ticks need to differ.
function axisText(ns, tick) {
  const [unit, name] = Math.abs(ns) >= 1e9 || tick >= 1e8 ? [1e9, 's'] : Math.abs(ns) >= 1e6 || tick >= 1e5 ? [1e6, 'ms'] : [1e3, 'us'];
  return `${(ns / unit).toFixed(Math.max(0, Math.min(9, Math.ceil(Math.log10(unit / tick) - 1e-9))))} ${name}`;
}

class Timeline {
  constructor(canvas, model, onPick, onHover) {
    this.canvas = canvas;
    this.model = model;
    this.onPick = onPick;
    this.onHover = onHover;
    this.from = 0;
    this.to = 1e9;
    this.follow = true;
    this.showActors = false;
    this.showArrows = true;
    this.filter = { kind: '', actor: '', step: 0 };
    this.picked = null;
    this.lanes = [];
    this.frames = 0;
    this.frameMs = [];
    this.onSaid = () => {};
    this.listen();
  }

  listen() {
    const c = this.canvas;
    const share = (x) => (x - this.left) / (c.clientWidth - this.left);
    c.addEventListener('wheel', (e) => {
      e.preventDefault();
      if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.pan((e.deltaX || e.deltaY) / c.clientWidth);
      else this.zoom(Math.exp(e.deltaY * 0.0015), share(e.offsetX));
    }, { passive: false });
    let drag = null;
    const fingers = new Map();
    const spread = () => { const [a, b] = [...fingers.values()]; return Math.abs(a - b); };
    c.addEventListener('pointerdown', (e) => {
      drag = { x: e.offsetX, moved: 0 };
      fingers.set(e.pointerId, e.offsetX);
      c.setPointerCapture(e.pointerId);
    });
    c.addEventListener('pointercancel', (e) => { fingers.delete(e.pointerId); drag = null; });
    c.addEventListener('pointermove', (e) => {
      if (!drag) return this.hover(e.offsetX, e.offsetY);
      if (fingers.size === 2) { // pinch
        const before = spread();
        fingers.set(e.pointerId, e.offsetX);
        const [a, b] = [...fingers.values()];
        this.zoom((before + 1) / (spread() + 1), share((a + b) / 2));
        drag.moved = Infinity;
        return undefined;
      }
      drag.moved += Math.abs(e.offsetX - drag.x);
      this.pan((drag.x - e.offsetX) / (c.clientWidth - this.left));
      drag.x = e.offsetX;
      return undefined;
    });
    c.addEventListener('pointerup', (e) => {
      fingers.delete(e.pointerId);
      if (drag && drag.moved < 4) this.pick(e.offsetX, e.offsetY);
      drag = null;
    });
    c.addEventListener('keydown', (e) => {
      const step = { ArrowLeft: -0.15, ArrowRight: 0.15 }[e.key];
      if (step) this.pan(step);
      if (e.key === 'ArrowUp' || e.key === '+') this.zoom(0.7, 0.5);
      if (e.key === 'ArrowDown' || e.key === '-') this.zoom(1.4, 0.5);
    });
  }

  setFollow(on) { this.follow = on; this.dirty = true; if (this.onFollow) this.onFollow(on); }
  pan(share) {
    const by = (this.to - this.from) * share;
    this.from += by;
    this.to += by;
    this.setFollow(false);
  }
  zoom(factor, at) {
    const t = this.from + (this.to - this.from) * at;
    const span = Math.min(Math.max((this.to - this.from) * factor, 2e3), 4e13);
    const anchor = this.follow ? 1 : at;
    const keep = this.follow ? this.to : t;
    this.from = keep - span * anchor;
    this.to = this.from + span;
    this.dirty = true;
  }
  show(from, to) {
    const margin = (to - from) * 0.03 + 1e3;
    this.from = from - margin;
    this.to = to + margin;
    this.setFollow(false);
  }
  fit() { if (this.model.last > this.model.begin) this.show(this.model.begin, this.model.last); }

  layout() {
    this.lanes = [];
    let y = AXIS_PX;
    for (const file of this.model.files) {
      if (!file.process) continue; // not read yet
      const tracks = file.tracks.filter((t) => t.kind === 'device' || this.showActors);
      const drawn = tracks.filter((t) => t.isDevice || (t.kind === 'device' && t.tasks().length) || (t.kind === 'actor' && (t.received || t.tasks().length)));
      const attempt = this.model.lastAttempt > 1 ? `, attempt ${file.attempt}` : '';
      this.lanes.push({ group: `${file.process} (pid ${file.pid}${attempt})`, file, y, h: GROUP_PX });
      y += GROUP_PX;
      drawn.sort((a, b) => (a.kind === b.kind ? 0 : a.kind === 'device' ? -1 : 1));
      for (const track of drawn) {
        const deep = track.isDevice ? Math.min(3, Math.max(1, track.depths.length)) : 1;
        const h = track.kind === 'actor' ? ACTOR_PX : LANE_PX + (deep - 1) * PHASE_PX + 2;
        this.lanes.push({ track, y, h });
        y += h;
      }
    }
    return Math.max(y + 4, 80);
  }

  get left() { return this.showActors ? ACTOR_LABEL_PX : LABEL_PX; }
  x(t) { return this.left + ((t - this.from) / (this.to - this.from)) * (this.width - this.left); }
  time(x) { return this.from + ((x - this.left) / (this.width - this.left)) * (this.to - this.from); }

  draw() {
    const model = this.model;
    if (this.follow && model.last > -Infinity) {
      const span = this.to - this.from;
      this.to = model.last + span * 0.02;
      this.from = this.to - span;
    }
    const height = this.layout();
    const limit = Math.max(160, window.innerHeight * 0.45);
    const c = this.canvas, ratio = window.devicePixelRatio || 1;
    const shown = Math.min(height, Math.max(limit, height > limit * 2 ? limit * 1.3 : limit));
    const wanted = Math.round(Math.max(shown, Math.min(height, limit * 1.6)));
    if (c.width !== Math.round(c.clientWidth * ratio) || c.height !== Math.round(wanted * ratio)) {
      c.style.height = `${wanted}px`;
      c.width = Math.round(c.clientWidth * ratio);
      c.height = Math.round(wanted * ratio);
    }
    this.width = c.clientWidth;
    this.height = wanted;
    const g = c.getContext('2d');
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    const style = getComputedStyle(document.documentElement);
    this.ink = { fore: style.getPropertyValue('--fore'), quiet: style.getPropertyValue('--quiet'),
      line: style.getPropertyValue('--line'), back: style.getPropertyValue('--back'), soft: style.getPropertyValue('--soft'),
      accent: style.getPropertyValue('--accent'), bad: style.getPropertyValue('--bad'),
      dark: document.documentElement.classList.contains('dark') };
    g.clearRect(0, 0, this.width, wanted);
    g.font = '11px system-ui, sans-serif';
    g.textBaseline = 'middle';
    this.axis(g, wanted);
    for (const lane of this.lanes) {
      if (lane.group) {
        g.fillStyle = this.ink.soft;
        g.fillRect(0, lane.y, this.width, lane.h);
      } else {
        this.lane(g, lane);
      }
    }
    const arrows = this.showArrows ? drawArrows(g, this) : null;
    this.labels(g, wanted);
    this.onSaid(notDrawn(this, arrows));
  }

  // Draws the names of the lanes, over everything that begins left of the view.
  labels(g, height) {
    g.fillStyle = this.ink.back;
    g.fillRect(0, 0, this.left, height);
    for (const lane of this.lanes) {
      const name = lane.group || lane.track.name;
      const wide = lane.group ? g.measureText(name).width + 12 : this.left;
      if (lane.group) {
        g.fillStyle = this.ink.soft;
        g.fillRect(0, lane.y, wide, lane.h);
      }
      g.fillStyle = lane.group ? this.ink.fore : this.ink.quiet;
      g.fillText(name, 6, lane.y + Math.min(lane.h, LANE_PX) / 2, wide - 8);
    }
  }

  axis(g, height) {
    const span = this.to - this.from;
    const rough = span / Math.max(2, this.width / 110);
    const base = 10 ** Math.floor(Math.log10(rough));
    const tick = [1, 2, 5, 10].map((m) => m * base).find((m) => m >= rough);
    const zero = this.model.origin;
    g.strokeStyle = this.ink.line;
    g.fillStyle = this.ink.quiet;
    g.beginPath();
    for (let t = Math.ceil((this.from - zero) / tick) * tick; t + zero < this.to; t += tick) {
      const x = Math.round(this.x(t + zero)) + 0.5;
      if (x < this.left) continue;
      g.moveTo(x, AXIS_PX - 4);
      g.lineTo(x, height);
      g.fillText(axisText(t, tick), x + 3, AXIS_PX / 2);
    }
    g.stroke();
  }

  lane(g, lane) {
    const { track } = lane;
    const depths = track.isDevice ? Math.min(3, track.depths.length) : Math.min(1, track.depths.length);
    for (let d = 0; d < depths; ++d) {
      const y = d === 0 ? lane.y + 1 : lane.y + LANE_PX + (d - 1) * PHASE_PX;
      const h = d === 0 ? Math.min(lane.h, LANE_PX) - 2 : PHASE_PX - 1;
      const { row, first, last } = track.visible(d, this.from, this.to);
      let drawnTo = -1;
      for (let i = first; i < last; ++i) {
        const s = row[i];
        const running = Number.isNaN(s.e);
        const x0 = this.x(s.b);
        const x1 = this.x(running ? Math.max(this.model.last, s.b) : s.e);
        if (x1 < drawnTo + 0.6) continue;      // hidden in the pixel before
        g.fillStyle = colour(s.name, this.ink.dark);
        g.fillRect(x0, y, Math.max(0.8, x1 - x0), h);
        drawnTo = x1;
        if (s === this.picked) { g.strokeStyle = this.ink.accent; g.lineWidth = 2; g.strokeRect(x0, y, Math.max(2, x1 - x0), h); g.lineWidth = 1; }
        if (d === 0 && x1 - x0 > 34 && track.kind === 'device') {
          g.save();
          g.beginPath();
          g.rect(x0, y, x1 - x0, h);
          g.clip();
          g.fillStyle = this.ink.fore;
          const from = Math.max(x0, this.left);
          if (x1 - from > 30) g.fillText(`${s.name}${s.step ? ` ${s.step}` : ''}`, from + 4, y + h / 2);
          g.restore();
        }
        if (d === 0 && track.isDevice && i > 0) this.gap(g, row[i - 1], s, y, h);
      }
    }
    g.strokeStyle = this.ink.line;
    g.beginPath();
    g.moveTo(0, lane.y + lane.h - 0.5);
    g.lineTo(this.width, lane.y + lane.h - 0.5);
    g.stroke();
  }

  gap(g, before, task, y, h) {
    const x0 = Math.max(this.left, this.x(before.e)), x1 = this.x(task.b);
    if (!(x1 - x0 > 80)) return;
    const now = performance.now();
    if (!(now - task.whyAt < 2000)) { task.why = gapReason(this.model, before, task); task.whyAt = now; } // files arrive in parallel
    const why = task.why;
    g.save();
    g.beginPath();
    g.rect(x0, y, x1 - x0, h);
    g.clip();
    g.fillStyle = this.ink.quiet;
    g.fillText(why, x0 + 4, y + h / 2);
    g.restore();
  }

  wanted(arrow) {
    const f = this.filter;
    return (!f.kind || arrow.name === f.kind) && (!f.step || arrow.step === f.step)
      && (!f.actor || arrow.from.name === f.actor || (arrow.to && arrow.to.name === f.actor));
  }

  at(x, y) {
    const lane = this.lanes.find((l) => l.track && y >= l.y && y < l.y + l.h);
    if (!lane) return null;
    const depth = y < lane.y + LANE_PX ? 0 : Math.min(2, 1 + Math.floor((y - lane.y - LANE_PX) / PHASE_PX));
    if (x < this.left) return { lane };
    const t = this.time(x), slack = (this.to - this.from) / this.width * 2;
    const { row, first, last } = lane.track.visible(depth, t - slack, t + slack);
    const slice = row[first];
    if (first < last) return { lane, slice };
    const after = row[first], before = row[first - 1];
    return { lane, gap: depth === 0 && before && after ? { before, after } : null };
  }

  hover(x, y) {
    const hit = this.at(x, y);
    if (!hit) return this.onHover('');
    if (hit.slice) {
      const s = hit.slice;
      const length = Number.isNaN(s.e) ? 'running' : timeText(s.e - s.b);
      return this.onHover(`${hit.lane.track.name}: ${s.name}${s.step ? ` of step ${s.step}` : ''}, ${length}`);
    }
    if (hit.gap && hit.lane.track.isDevice)
      return this.onHover(`${hit.lane.track.name} idle ${timeText(hit.gap.after.b - hit.gap.before.e)}: ${gapReason(this.model, hit.gap.before, hit.gap.after)}`);
    return this.onHover(hit.lane.track.name);
  }

  pick(x, y) {
    const hit = this.at(x, y);
    this.picked = hit && hit.slice ? hit.slice : null;
    this.dirty = true;
    this.onPick(this.picked);
  }
}
