// Runs that never were, as trace records: what processes would have written.
import { EVENT, KIND, MAGIC, RECORD } from '../../../../runtime/page/web/model/trace_format.js';
import { Model } from '../../../../runtime/page/web/model/model.js';

export const MS = 1e6;
export const REPLY = 1n << 63n;
const START = 5_000 * 1e9; // of the clock, ns
const WALL = 1_700_000_000n * 1_000_000_000n;

/** One process's trace; times are ms since the run's start. */
export class Process {
  constructor(name, number, attempt = 1, clockNs = 0) {
    Object.assign(this, { name, number, attempt, clockNs, tracks: new Map(), names: new Map(), parts: [], events: [] });
    this.record(RECORD.process, this.processRecord());
  }
  get file() { return `${this.name.replace(' ', '_0')}_${String(this.attempt).padStart(2, '0')}.events`; }
  processRecord() {
    const head = new DataView(new ArrayBuffer(32));
    head.setUint32(0, EVENT.bytes, true);
    head.setUint32(4, this.number, true);
    head.setUint32(8, 100 + this.number, true);
    head.setBigInt64(16, BigInt(START), true);
    head.setBigInt64(24, WALL + BigInt(this.clockNs), true);
    return [...new Uint8Array(head.buffer), ...new TextEncoder().encode(this.name)];
  }
  record(kind, bytes) {
    const head = new DataView(new ArrayBuffer(8));
    head.setUint32(0, kind, true);
    head.setUint32(4, bytes.length, true);
    this.parts.push(Uint8Array.from([...new Uint8Array(head.buffer), ...bytes]));
  }
  track(name, kind) {
    if (!this.tracks.has(name)) {
      this.record(RECORD.track, [kind === 'device' ? 1 : 0, 0, 0, 0, ...new TextEncoder().encode(name)]);
      this.tracks.set(name, this.tracks.size);
    }
    return this.tracks.get(name);
  }
  text(name) {
    if (!this.names.has(name)) {
      this.record(RECORD.name, new TextEncoder().encode(name));
      this.names.set(name, this.names.size);
    }
    return this.names.get(name);
  }
  event(kind, ms, track, name, { step = 1, flow = 0, amount = 0, value, isDevice = false } = {}) {
    const event = new DataView(new ArrayBuffer(EVENT.bytes));
    event.setBigInt64(EVENT.time, BigInt(START + Math.round(ms * MS)), true);
    event.setBigUint64(EVENT.flow, BigInt(flow), true);
    if (value === undefined) event.setBigUint64(EVENT.amount, BigInt(amount), true);
    else event.setFloat64(EVENT.amount, value, true);
    event.setUint32(EVENT.track, this.track(track, isDevice ? 'device' : 'actor'), true);
    event.setUint32(EVENT.name, this.text(name), true);
    event.setUint32(EVENT.step, step - 1, true);
    event.setUint8(EVENT.kind, kind);
    this.record(RECORD.events, new Uint8Array(event.buffer));
    return this;
  }
  task(device, name, step, from, to) {
    const more = { step, isDevice: true };
    this.event(KIND.begin, from, device, name, more);
    if (to !== undefined) this.event(KIND.end, to, device, name, more);
    return this;
  }
  close() { this.record(RECORD.closed, []); return this; }
  /** Returns the bytes as the server sends them, with the file's index. */
  buffer(index) {
    const size = 12 + this.parts.reduce((n, p) => n + p.length, 0);
    const bytes = new Uint8Array(size), view = new DataView(bytes.buffer);
    view.setUint32(0, index, true);
    view.setUint32(4, MAGIC, true);
    let at = 12;
    for (const part of this.parts) { bytes.set(part, at); at += part.length; }
    return bytes.buffer;
  }
}

/** A message from one process's actor to another's; `to` may be absent. */
export function message(from, sender, to, reader, name, flow, sent, handled, { step = 1, bytes = 0 } = {}) {
  from.event(KIND.send, sent, sender, name, { step, flow, amount: bytes });
  if (to) to.event(KIND.receive, handled, reader, name, { step, flow });
}

export const call = (name, kind, devices, more = {}) => ({ name, kind, role: '', reads: [], writes: [], devices, strategy: `d${devices.length}`, lag: 0, ...more });

/** Returns the model of the processes; state of the run, calls and edges may be given. */
export function modelOf(processes, { calls = [], edges = [], state = 'done' } = {}) {
  const model = new Model(() => 0);
  model.setGraph({ calls, edges, name: 'run' });
  model.status = { state, step: 1, steps: 9, attempt: 1 };
  processes.forEach((p) => model.addFile(p.file));
  processes.forEach((p, i) => model.addRecords(p.buffer(i)));
  model.load(100);
  return model;
}
export const at = (ms) => START + ms * MS;
