// Where a run's messages come from: the server's WebSocket, or the page itself,
// if it is a report.
import { frames, recordedBytes } from './model/recorded.js';

/** @typedef {{ type: string, text: string }} Message */
/** @typedef {{ text: (type: string, text: string) => void, records: (data: ArrayBuffer) => void }} Receiver */

/** @typedef {{ events: (step: number) => void, samples: (step: number) => void }} Wishes */

/**
 * Receives what a server sends of one run. Returns what asks for a step's events,
 * in place of the newest, and for a step's samples.
 * @param {string} query @param {Receiver & { opened?: () => void, closed?: () => void }} receiver
 * @returns {Wishes}
 */
export function listen(query, { text, records, opened = () => {}, closed = () => {} }, host = location.host) {
  const socket = new WebSocket(`ws://${host}/events${query}`);
  socket.binaryType = 'arraybuffer';
  socket.onopen = opened;
  socket.onmessage = (message) => {
    if (typeof message.data !== 'string') return records(message.data);
    /** @type {Message} */
    const { type, text: own } = JSON.parse(message.data);
    return text(type, own);
  };
  socket.onclose = closed;
  /** @type {(wish: Record<string, number>) => void} */
  const send = (wish) => socket.send(JSON.stringify(wish));
  return { events: (step) => send({ step }), samples: (step) => send({ samples: step }) };
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

/**
 * Returns what a report's text holds, packed; empty: it is no report.
 * @type {(html: string) => string}
 */
export const recordedIn = (html) => (/<script type="text\/plain" id="recorded">([^<]*)</.exec(html) ?? ['', ''])[1];
