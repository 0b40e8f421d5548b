// A run inside the page, as `troupe trace report` writes it: base64 of gzip of
// frames, each {u8 binary, u32 bytes, bytes}, which are what the server sends.

const HEAD_BYTES = 5;

/**
 * Returns the bytes of the frames.
 * @param {string} text
 */
export async function recordedBytes(text) {
  const packed = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).arrayBuffer();
}

/**
 * Returns the frames: texts, and buffers of records.
 * @param {ArrayBuffer} buffer
 */
export function* frames(buffer) {
  const view = new DataView(buffer);
  const text = new TextDecoder();
  for (let at = 0; at + HEAD_BYTES <= buffer.byteLength;) {
    const binary = view.getUint8(at), bytes = view.getUint32(at + 1, true);
    at += HEAD_BYTES;
    yield binary ? buffer.slice(at, at + bytes) : text.decode(new Uint8Array(buffer, at, bytes));
    at += bytes;
  }
}
