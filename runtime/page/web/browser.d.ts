// What browsers have, and the library of the type checker not yet.
interface DecompressionStream {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
}
declare var DecompressionStream: { new (format: 'gzip'): DecompressionStream };
interface Array<T> {
  findLast(holds: (entry: T) => boolean): T | undefined;
}
interface CanvasPath {
  roundRect(x: number, y: number, w: number, h: number, radius: number): void;
}
