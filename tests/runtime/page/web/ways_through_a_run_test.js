// Ways through a run: what a search means, from task to task, addresses of places,
// samples that are chosen and paired, what differs between two answers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSamePlace, pageAddress, rangeOf, rangeText } from '../../../../runtime/page/web/model/address.js';
import { inbox, receive } from '../../../../runtime/page/web/model/inbox.js';
import { processLanes } from '../../../../runtime/page/web/model/lanes.js';
import { knownSamples, promptPairs, stepsWithPromptsOf } from '../../../../runtime/page/web/model/sample_pairs.js';
import { finishReasons, wantedSamples } from '../../../../runtime/page/web/model/samples.js';
import { matchingTasks, search, taskMatcher } from '../../../../runtime/page/web/model/search.js';
import { wordDiff } from '../../../../runtime/page/web/model/text_diff.js';
import { walk } from '../../../../runtime/page/web/model/walk.js';
import { recordedIn } from '../../../../runtime/page/web/connection.js';
import { Process, call, modelOf } from './traces.js';

function twoDevices() {
  const worker = new Process('worker 0', 1);
  for (let s = 0; s < 3; ++s) {
    worker.task('device 0', 'actor_gen', s + 1, 10 * s, 10 * s + 4).task('device 0', 'actor_train', s + 1, 10 * s + 4, 10 * s + 9);
    worker.task('device 1', 'rew_inf', s + 1, 10 * s + 3, 10 * s + 6);
  }
  return modelOf([worker], { calls: [call('actor_gen', 'generate', [0]), call('rew_inf', 'inference', [1]), call('actor_train', 'train', [0])] });
}
const nameOf = (task) => task && `${task.track.name} ${task.name} ${task.step}`;

test('a search means tasks of a call, of a step or of a device, or none', () => {
  const model = twoDevices();
  const meant = (text) => matchingTasks(model, text).map(nameOf);
  assert.deepEqual(meant('REW'), [1, 2, 3].map((s) => `device 1 rew_inf ${s}`));
  assert.deepEqual(meant('actor_train of step 2'), ['device 0 actor_train 2']);
  assert.deepEqual(meant('actor 2'), ['device 0 actor_gen 2', 'device 0 actor_train 2']);
  assert.deepEqual(meant('step 3'), ['device 0 actor_gen 3', 'device 1 rew_inf 3', 'device 0 actor_train 3']);
  assert.equal(meant('device 1').length, 3);
  assert.equal(taskMatcher(model, 'curry'), null);
  assert.equal(taskMatcher(model, ' '), null);
  assert.equal(taskMatcher(model, '77'), null, 'no such step');
  assert.deepEqual(search(model, 'rew').map((h) => h.kind), ['call', 'task', 'task', 'task']);
});

test('arrows lead from task to task, along a device and to the one beside it', () => {
  const lanes = processLanes(twoDevices(), false).flatMap((g) => g.lanes);
  let task = walk(lanes, null, 'right', lanes[0].tracks[0].tasks()[2].b);
  assert.equal(nameOf(task), 'device 0 actor_gen 2', 'the nearest of the first lane');
  const way = ['right', 'down', 'right', 'up', 'left'].map((direction) => nameOf(task = walk(lanes, task, direction, 0)));
  assert.deepEqual(way, ['device 0 actor_train 2', 'device 1 rew_inf 2', 'device 1 rew_inf 3', 'device 0 actor_train 3', 'device 0 actor_gen 3']);
  assert.equal(walk(lanes, task, 'up', 0), null);
  assert.equal(walk(lanes, lanes[0].tracks[0].tasks()[0], 'left', 0), null);
  assert.equal(walk([], null, 'right', 0), null);
});

test('places of the history are tabs, steps, tasks and samples, not how they are looked at', () => {
  assert.ok(isSamePlace({ tab: 'waits', from: 1, find: 'x' }, { tab: 'waits', from: 2, step: 0 }));
  for (const other of [{ tab: 'curves' }, { tab: 'waits', step: 3 }, { tab: 'waits', sample: '3.1' }, { tab: 'waits', task: 'a' }])
    assert.ok(!isSamePlace({ tab: 'waits' }, other));
  for (const ends of [[1, 2.5], [null, 3], [-1, null], [null, null]]) assert.deepEqual(rangeOf(rangeText(...ends)), ends);
  assert.deepEqual(rangeOf('x..2'), [null, 2]);
});

test('only an address with a token is that of a page', () => {
  assert.deepEqual(pageAddress(' http://127.0.0.1:35123/?token=ab12#tab=waits '), { host: '127.0.0.1:35123', query: '?token=ab12' });
  for (const text of ['', 'runs/one', 'http://127.0.0.1:1/', 'https://127.0.0.1:1/?token=a', 'javascript:alert(1)//?token=a']) assert.equal(pageAddress(text), null, text);
  assert.equal(recordedIn('<p>x</p><script type="text/plain" id="recorded">QUJD</script>'), 'QUJD');
  assert.equal(recordedIn('<p id="recorded">x</p>'), '');
});

const sample = (step, number, prompt, response, score, finish_reason = 'eos') => ({ step, sample: number, prompt, response, score, finish_reason });

test('samples are chosen by text, reward, end and step', () => {
  const samples = [sample(1, 0, 'a?', 'Yes.', 1), sample(1, 1, 'b?', 'No.', 2, 'length'), sample(2, 0, 'a?', 'Perhaps.', null)];
  const chosen = (wanted) => wantedSamples(samples, wanted).map((s) => `${s.step}.${s.sample}`);
  assert.deepEqual(chosen({}), ['1.0', '1.1', '2.0']);
  assert.deepEqual(chosen({ find: 'PERH' }), ['2.0']);
  assert.deepEqual(chosen({ least: 1.5 }), ['1.1']);
  assert.deepEqual(chosen({ most: 1 }), ['1.0'], 'without a reward it is in no range');
  assert.deepEqual(chosen({ end: 'eos', step: 1 }), ['1.0']);
  assert.deepEqual(finishReasons(samples), [['eos', 2], ['length', 1]]);
});

test('answers of two steps to one prompt are pairs, the largest change first', () => {
  const samples = [sample(1, 0, 'a?', 'A', 1), sample(1, 1, 'b?', 'B', 1), sample(2, 0, 'c?', 'C', 0),
    sample(5, 2, 'a?', 'AA', 2), sample(5, 3, 'b?', 'BB', -3), sample(9, 1, 'a?', 'AAA', 4)];
  const pairs = (from, to) => promptPairs(samples, from, to).map((p) => [p.prompt, p.before.map((s) => s.step)[0], p.after.map((s) => s.step)[0], p.gain]);
  assert.deepEqual(pairs(0, 0), [['b?', 1, 5, -4], ['a?', 1, 9, 3]]);
  assert.deepEqual(pairs(1, 5), [['b?', 1, 5, -4], ['a?', 1, 5, 1]]);
  assert.deepEqual(pairs(5, 0), [['a?', 5, 9, 2]]);
  assert.deepEqual(pairs(2, 9), []);
  assert.deepEqual(stepsWithPromptsOf(samples, 1), [[5, 2], [9, 1]]);
});

test('samples of an older step are beside the newest, each once, the last one of a step done again', () => {
  const model = twoDevices(), into = inbox(model);
  const line = (step, number, response) => `${JSON.stringify({ step, sample: number, prompt: 'a?', response })}\n`;
  receive(model, into, 'samples', line(7, 0, 'old') + line(7, 0, 'new'));
  receive(model, into, 'samples of 2', line(2, 0, 'first') + line(2, 1, 'second'));
  receive(model, into, 'samples of 3', '');
  assert.deepEqual(knownSamples(model).map((s) => `${s.step}.${s.sample} ${s.response}`), ['2.0 first', '2.1 second', '7.0 new']);
  assert.ok(model.samplesOf.has(3), 'a step without samples was asked for');
  for (let step = 10; step < 40; ++step) receive(model, into, `samples of ${step}`, line(step, 0, 'x'));
  assert.equal(model.samplesOf.size, 16, 'the page does not grow');
});

test('a diff joined without what is gone, or without what is new, is one of the texts', () => {
  const words = ['a', 'b', 'c', ' ', '\n', 'long'];
  let seed = 1;
  const random = (n) => { seed = (seed * 48271) % 2147483647; return seed % n; };
  for (let i = 0; i < 400; ++i) {
    const [x, y] = [0, 1].map(() => Array.from({ length: random(14) }, () => words[random(words.length)]).join(random(3) ? ' ' : ''));
    const pieces = wordDiff(x, y), without = (kind) => pieces.filter((p) => p.kind !== kind).map((p) => p.text).join('');
    assert.equal(without('new'), x);
    assert.equal(without('gone'), y);
    assert.ok(pieces.every((p, at) => p.text && (!at || pieces[at - 1].kind !== p.kind)), 'pieces are as long as they can be');
  }
  assert.deepEqual(wordDiff('it was good and warm', 'it was bad and warm'), [{ kind: 'same', text: 'it was' }, { kind: 'gone', text: ' good' }, { kind: 'new', text: ' bad' }, { kind: 'same', text: ' and warm' }]);
  const long = (word) => Array(3000).fill(word).join(' ');
  assert.deepEqual(wordDiff(`x ${long('a')} y`, `x ${long('b')} y`).map((p) => p.kind), ['same', 'gone', 'new', 'same'], 'too long to compare word by word');
});
