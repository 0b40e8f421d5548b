// Where a run's messages come from: the server's WebSocket, or the page itself,
// if it is a report.
import { frames, recordedBytes } from './model/recorded.js';

/** @typedef {{ type: string, text: string }} Message */
/** @typedef {{ text: (type: string, text: string) => void, records: (data: ArrayBuffer) => void }} Receiver */

/**
 * Receives what the server sends of one run. Returns what asks for a step's events.
 * @param {string} query @param {Receiver & { opened?: () => void, closed?: () => void }} receiver
 * @returns {(step: number) => void}
 */
export function listen(query, { text, records, opened = () => {}, closed = () => {} }) {
  const socket = new WebSocket(`ws://${location.host}/events${query}`);
  socket.binaryType = 'arraybuffer';
  socket.onopen = opened;
  socket.onmessage = (message) => {
    if (typeof message.data !== 'string') return records(message.data);
    /** @type {Message} */
    const { type, text: own } = JSON.parse(message.data);
    return text(type, own);
  };
  socket.onclose = closed;
  return (step) => socket.send(JSON.stringify({ step }));
}

/**
 * Reads what a report holds: the same messages.
 * @param {string} packed @param {Receiver} receiver
 */
export async function readRecorded(packed, { text, records }) {
  for (const frame of frames(await recordedBytes(packed)))
    if (typeof frame === 'string') {
      /** @type {Message} */
      const { type, text: own } = JSON.parse(frame);
      text(type, own);
    } else records(frame);
}
