// Where actors are on their map: a box for each process, the master's in the
// middle, in it a place for each actor. Many actors fold by kind, many processes
// into one place each, and those by host. Pure: positions in pixels of a canvas.
import { entryOf } from './track.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./track.js').Track} Track */
/** @typedef {{ process: string, tracks: Track[] }} Process */
/** @typedef {{ process: string, label: string, x: number, y: number, w: number, h: number }} Box */
/** @typedef {{ name: string, label: string, tracks: Track[], folded?: boolean }} Named */
/**
 * A pill for actors in a box, or a dot for a process (w is 0).
 * @typedef {Named & { box: Box | null, x: number, y: number, w: number, isNamed?: boolean }} Place
 */
/** @typedef {ReturnType<typeof mapLayout>} MapLayout */

const NAMES_PX = 12.5;         // height of a name
const MOST_BOXES = 14;        // more processes are one place each
const MOST_PLACES = 96;       // more of those fold by host
const HEAD_PX = 18, PAD_PX = 6;
const LETTER_PX = 6.1;        // of the names, about
const ARC_PX = 14;            // for lines within a box

/** @type {(name: string) => number} */
const numberOf = (name) => Number((/(\d+)$/.exec(name) || [0, 0])[1]);
/**
 * Returns the kind in an actor's name: "shard r@d/1" is a shard.
 * @type {(name: string) => string}
 */
const kindOfActor = (name) => name.split(/[ @/]/)[0];
/**
 * Returns a shorter name: the call says which role it is of.
 * @type {(name: string) => string}
 */
const shortName = (name) => name.replace(/ \w+@/, ' ');

/**
 * Where there is no room for all, the kinds with the fewest actors fold first: the
 * many calls say most.
 * @param {Track[]} tracks @param {number} room
 */
function placesOf(tracks, room) {
  /** @type {Map<string, Track[]>} */
  const byName = new Map();
  /** @type {Map<string, string[]>} */
  const kinds = new Map();
  for (const track of tracks) entryOf(byName, track.name, () => []).push(track);
  for (const name of byName.keys()) entryOf(kinds, kindOfActor(name), () => []).push(name);
  /** @type {Set<string>} */
  const folded = new Set();
  let needed = byName.size;
  for (const [kind, names] of [...kinds].filter(([, n]) => n.length > 1).sort((a, b) => a[1].length - b[1].length)) {
    if (needed <= room) break;
    folded.add(kind);
    needed -= names.length - 1;
  }
  /** @type {Named[]} */
  const places = [];
  for (const [name, own] of byName) {
    const kind = kindOfActor(name), names = kinds.get(kind) ?? [];
    if (!folded.has(kind)) places.push({ name, label: shortName(name), tracks: own });
    else if (names[0] === name) places.push({ name: kind, label: `${names.length} ${kind}`, folded: true, tracks: names.flatMap((n) => byName.get(n) ?? []) });
  }
  return places;
}

/**
 * Puts a process's places into its box, in columns: names on pills. `align` puts
 * the pills where the other boxes are, so that lines do not cross names.
 * @param {Box} box @param {Named[]} places @param {'left' | 'middle' | 'right'} align @returns {Place[]}
 */
function fill(box, places, align) {
  const rows = Math.max(1, Math.floor((box.h - HEAD_PX - PAD_PX) / NAMES_PX));
  const columns = Math.max(1, Math.ceil(places.length / rows));
  const wide = (box.w - 2 * PAD_PX) / columns;
  const used = Math.ceil(places.length / columns);
  const step = Math.min(32, (box.h - HEAD_PX - PAD_PX) / Math.max(1, used));
  return places.map((place, i) => {
    const w = Math.min(wide - ARC_PX, LETTER_PX * place.label.length + 12);
    const free = wide - w, left = box.x + PAD_PX + Math.floor(i / used) * wide;
    return { ...place, box, w, x: left + { left: 0, middle: free / 2, right: free }[align],
      y: box.y + HEAD_PX + (i % used + 0.5) * step };
  });
}

/** @param {Process[]} processes @param {number} width @param {number} height */
function boxed(processes, width, height) {
  const gap = Math.max(16, width * 0.07);
  const [master, ...workers] = processes;
  const right = workers.filter((_, i) => i % 2 === 0), left = workers.filter((_, i) => i % 2 === 1);
  const columns = [left, [master], right].filter((c) => c.length);
  // the master has more actors than a worker
  const weights = columns.map((c) => (c[0] === master ? 1.1 : 1));
  const unit = (width - gap * (columns.length - 1)) / weights.reduce((a, b) => a + b, 0);
  /** @type {Place[]} */
  const places = [];
  /** @type {Box[]} */
  const boxes = [];
  let x = 0;
  columns.forEach((column, i) => {
    const h = (height - 8 * (column.length - 1)) / column.length;
    column.forEach((p, j) => {
      const box = { process: p.process, label: p.process, x, y: j * (h + 8), w: unit * weights[i], h };
      const room = Math.max(1, Math.floor((h - HEAD_PX - PAD_PX) / NAMES_PX)) * Math.max(1, Math.floor(box.w / 92));
      boxes.push(box);
      places.push(...fill(box, placesOf(p.tracks, room), column[0] === master ? 'middle' : i ? 'left' : 'right'));
    });
    x += unit * weights[i] + gap;
  });
  return { boxes, places };
}

/**
 * A place for each group, around the master's.
 * @param {Process} master @param {{ label: string, tracks: Track[] }[]} groups @param {number} width
 * @param {number} height
 */
function ring(master, groups, width, height) {
  const w = Math.min(240, width * 0.3), h = Math.min(height * 0.5, 260);
  const box = { process: 'master', label: 'master', x: (width - w) / 2, y: (height - h) / 2, w, h };
  const places = fill(box, placesOf(master.tracks, Math.floor((h - HEAD_PX) / NAMES_PX) * Math.max(1, Math.floor(w / 92))), 'middle');
  const rings = Math.ceil(groups.length / 48);
  groups.forEach((g, i) => {
    const at = i % rings, angle = 2 * Math.PI * Math.floor(i / rings) / Math.ceil(groups.length / rings) - Math.PI / 2;
    const far = 1 - 0.14 * at;
    places.push({ name: g.label, label: g.label, tracks: g.tracks, folded: true, box: null, w: 0, isNamed: groups.length <= 32,
      x: width / 2 + Math.cos(angle) * (width / 2 - 40) * far, y: height / 2 + Math.sin(angle) * (height / 2 - 16) * far });
  });
  return { boxes: [box], places };
}

/** @param {Model} model @param {Process[]} workers */
function foldByHost(model, workers) {
  /** @type {Map<string, Process[]>} */
  const hosts = new Map();
  const known = new Map((model.status?.workers ?? []).map((w) => [`worker ${w.rank}`, w.host]));
  for (const p of workers) {
    const host = known.get(p.process);
    const block = Math.floor(numberOf(p.process) / 8) * 8;
    const key = new Set(known.values()).size > 1 && host ? host : `workers ${block} to ${block + 7}`;
    entryOf(hosts, key, () => []).push(p);
  }
  return [...hosts].map(([host, own]) => ({ label: host, tracks: own.flatMap((p) => p.tracks) }));
}

/**
 * Returns { boxes, places, placeOf }: placeOf gives the place of a track. Actors
 * that neither sent nor got a message are left out.
 * @param {Model} model @param {number} width @param {number} height
 */
export function mapLayout(model, width, height) {
  /** @type {Map<string, Process>} */
  const processes = new Map();
  for (const file of model.files) {
    if (!file.process) continue;
    const own = entryOf(processes, file.process, () => ({ process: file.process, tracks: [] }));
    own.tracks.push(...file.tracks.filter((t) => t.kind === 'actor' && (t.sent || t.received)));
  }
  const list = [...processes.values()].filter((p) => p.tracks.length || p.process === 'master')
    .sort((a, b) => Number(a.process !== 'master') - Number(b.process !== 'master') || numberOf(a.process) - numberOf(b.process));
  /** @type {{ boxes: Box[], places: Place[] }} */
  let found = { boxes: [], places: [] };
  if (list.length && list.length <= MOST_BOXES) found = boxed(list, width, height);
  else if (list.length) {
    const [master, ...workers] = list;
    const groups = workers.length > MOST_PLACES ? foldByHost(model, workers) : workers.map((p) => ({ label: p.process, tracks: p.tracks }));
    found = ring(master, groups, width, height);
  }
  /** @type {Map<Track, Place>} */
  const placeOf = new Map();
  for (const place of found.places) for (const track of place.tracks) placeOf.set(track, place);
  return { ...found, placeOf };
}
