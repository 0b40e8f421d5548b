// Where a run's messages come from: the server's WebSocket, or the page itself,
// if it is a report.
import { frames, recordedBytes } from './model/recorded.js';

/** Receives what the server sends of one run. */
export function listen(query, { text, records, opened = () => {}, closed = () => {} }) {
  const socket = new WebSocket(`ws://${location.host}/events${query}`);
  socket.binaryType = 'arraybuffer';
  socket.onopen = opened;
  socket.onmessage = (message) => {
    if (typeof message.data !== 'string') return records(message.data);
    const { type, text: own } = JSON.parse(message.data);
    return text(type, own);
  };
  socket.onclose = closed;
}

/** Reads what a report holds: the same messages. */
export async function readRecorded(packed, { text, records }) {
  for (const frame of frames(await recordedBytes(packed)))
    if (typeof frame === 'string') { const { type, text: own } = JSON.parse(frame); text(type, own); } else records(frame);
}
