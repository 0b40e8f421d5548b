// The modules as files: what cmake/web_page.cmake, which joins them, relies on,
// and that the model needs no page.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { frames, recordedBytes } from '../../../../runtime/page/web/model/recorded.js';
import { gzipSync } from 'node:zlib';

const WEB = join(dirname(fileURLToPath(import.meta.url)), '../../../../runtime/page/web');
const files = readdirSync(WEB, { recursive: true }).filter((f) => f.endsWith('.js'));
const text = (file) => readFileSync(join(WEB, file), 'utf8');
const IMPORT = /\nimport \{([^}]*)\} from '([^']*)';/g;
const EXPORT = /\nexport (?:const|class|function\*?|async function) (\w+)/g; // as web_page.cmake finds them
const exportsOf = (file) => [...text(file).matchAll(EXPORT)].map((m) => m[1]);
const importsOf = (file) => [...text(file).matchAll(IMPORT)].map((m) => ({ names: m[1].split(',').map((n) => n.trim()).filter(Boolean), from: join(dirname(file), m[2]) }));

test('each name that a module imports is exported where it says, and used', () => {
  assert.ok(files.length > 25);
  for (const file of files)
    for (const { names, from } of importsOf(file))
      for (const name of names) {
        assert.ok(exportsOf(from).includes(name), `${file}: ${name} of ${from}`);
        assert.ok(text(file).split(new RegExp(`\\b${name.replace('$', '\\$')}\\b`)).length > 2, `${file}: ${name} is not used`);
      }
});

test('every import and export is of the form that is joined', () => {
  for (const file of files) {
    assert.equal(text(file).match(/^import /gm)?.length ?? 0, importsOf(file).length, file);
    assert.equal(text(file).match(/^export /gm)?.length ?? 0, exportsOf(file).length, file);
    assert.doesNotMatch(text(file), /^export const \w+ = [^;(\[{]*, \w+ =/m, file);
    assert.doesNotMatch(text(file), /<\/script|\)troupe_page"/, file);
  }
});

test('what is left out of the joined page as doc comments is in no text', () => {
  for (const file of files)
    for (const line of text(file).split('\n').filter((l) => l.includes('/**')))
      for (const quote of ["'", '"', '`']) assert.equal(line.split('/**')[0].split(quote).length % 2, 1, `${file}: ${line}`);
});

test('no module imports itself in a circle', () => {
  const visit = (file, path) => {
    assert.ok(!path.includes(file), [...path, file].join(' > '));
    importsOf(file).forEach(({ from }) => visit(from, [...path, file]));
  };
  visit('main.js', []);
});

test('the model knows no page, and every file is part of it', () => {
  const reached = new Set();
  const visit = (file) => { if (!reached.has(file)) { reached.add(file); importsOf(file).forEach(({ from }) => visit(from)); } };
  visit('main.js');
  assert.deepEqual(files.filter((f) => !reached.has(f)), []);
  for (const file of files.filter((f) => f.startsWith('model/'))) {
    assert.doesNotMatch(text(file), /\b(document|window)\./, file);
    for (const { from } of importsOf(file)) assert.ok(!relative('model', from).startsWith('..'), `${file} imports ${from}`);
    assert.ok(text(file).split('\n').length <= 400, `${file} is too long`);
  }
});

test('a recorded run is unpacked to the messages it was made of', async () => {
  const frame = (binary, bytes) => { const head = Buffer.alloc(5); head[0] = binary; head.writeUInt32LE(bytes.length, 1); return Buffer.concat([head, bytes]); };
  const packed = gzipSync(Buffer.concat([frame(0, Buffer.from('{"type":"run"}')), frame(1, Buffer.from([1, 2, 3]))]));
  const [first, second] = frames(await recordedBytes(packed.toString('base64')));
  assert.equal(first, '{"type":"run"}');
  assert.deepEqual([...new Uint8Array(second)], [1, 2, 3]);
});
