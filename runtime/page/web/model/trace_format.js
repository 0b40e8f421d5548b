// The table of the trace format: the C++ side of it is config/trace
// (trace.hpp, trace_writer.hpp); TracePageTest.TheTwoReadersShareOneTable
// compares the two.

/** Offsets of an event's fields, and its size. */
export const EVENT = { time: 0, flow: 8, amount: 16, track: 24, name: 28, step: 32, kind: 40, bytes: 48 };
export const KIND = { begin: 0, end: 1, send: 2, receive: 3, counter: 4, spawn: 5, exit: 6, failure: 7 };
export const RECORD = { process: 1, track: 2, name: 3, events: 4, dropped: 5, closed: 6, earlier: 7 };
export const HEAD = { kind: 0, bytes: 4, size: 8 };
export const PROCESS = { number: 4, pid: 8, monotonic: 16, realtime: 24, size: 32 };
export const EARLIER = { events: 0, last_step: 8, size: 16 };
export const MAGIC = 0x554f5254; // "TROU" of "TROUPEv1", the start of a segment
export const MAGIC_BYTES = 8;

const HIGH = 2 ** 32;
/**
 * Reads 64 bits as a number: exact below 2^53, which times of 104 days are.
 * @type {(view: DataView, at: number) => number}
 */
export const u64 = (view, at) => view.getUint32(at, true) + view.getUint32(at + 4, true) * HIGH;
/** @type {(view: DataView, at: number) => number} */
export const i64 = (view, at) => view.getUint32(at, true) + view.getInt32(at + 4, true) * HIGH;
