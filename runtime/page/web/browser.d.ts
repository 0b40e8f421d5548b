// What browsers have, and the library of the type checker not yet.
interface DecompressionStream {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
}
declare var DecompressionStream: { new (format: 'gzip'): DecompressionStream };
