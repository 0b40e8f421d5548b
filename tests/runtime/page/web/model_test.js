// The model: what the page reads of a run's trace.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inbox, receive, shownSample } from '../../../../runtime/page/web/model/inbox.js';
import { criticalPath, idleByReason, openWaits, stragglers, waitCycle } from '../../../../runtime/page/web/model/reasons.js';
import { Model } from '../../../../runtime/page/web/model/model.js';
import { KIND } from '../../../../runtime/page/web/model/trace_format.js';
import { Process, REPLY, at, call, message, modelOf } from './traces.js';

test('a send and a receive with one flow are an arrow, whichever is read first', () => {
  const master = new Process('master', 0), worker = new Process('worker 0', 1);
  message(master, 'call a', worker, 'shard 0', 'run', 7, 1, 3, { bytes: 120 });
  for (const files of [[master, worker], [worker, master]]) {
    const { arrows } = modelOf(files);
    assert.equal(arrows.length, 1);
    assert.deepEqual([arrows[0].t0, arrows[0].t1, arrows[0].bytes], [at(1), at(3), 120]);
    assert.deepEqual([arrows[0].from.name, arrows[0].to.name, arrows[0].step], ['call a', 'shard 0', 1]);
  }
});

test('flows of other processes, replies and attempts with the same counter are other messages', () => {
  const first = new Process('master', 0, 1), second = new Process('master', 0, 2), worker = new Process('worker 0', 1, 2);
  const far = (5n << 40n) | 1n; // the worker with number 5 counts from 1 as well
  message(first, 'a', null, '', 'run', 1n, 1);
  message(second, 'a', worker, 'b', 'run', 1n, 2, 3);
  message(worker, 'b', second, 'a', 'reply', 1n | REPLY, 4, 5);
  message(second, 'a', worker, 'b', 'note', far, 6, 7);
  const model = modelOf([first, second, worker]);
  assert.deepEqual(model.arrows.map((a) => a.name), ['run', 'reply', 'note']);
  assert.equal(model.flows.unmatched, 1, 'the first attempt was cut with its message under way');
});

test('an ask waits until its reply is sent, and its time is kept', () => {
  const master = new Process('master', 0), worker = new Process('worker 0', 1);
  message(master, 'a', worker, 'b', 'run', 1, 1, 2);
  message(worker, 'b', master, 'a', 'reply', 1n | REPLY, 9, 10);
  message(master, 'a', worker, 'b', 'run', 2, 11, 12);
  const model = modelOf([master, worker], { state: 'running' });
  model.settle(model.files[0], Infinity);
  model.settle(model.files[1], Infinity);
  assert.deepEqual(openWaits(model).map((w) => w.t0), [at(11)]);
  assert.equal(model.flows.askTimes.get('run'), 8e6);
});

test('replies to heartbeats belong to no step', () => {
  const master = new Process('master', 0), worker = new Process('worker 0', 1);
  message(master, 'heart', worker, 'node', 'ping', 1, 1, 2);
  message(worker, 'node', master, 'heart', 'reply', 1n | REPLY, 3, 4);
  const { arrows } = modelOf([master, worker]);
  assert.deepEqual(arrows.map((a) => a.step), [0, 0]);
  assert.equal(arrows[1].of, 'ping');
});

test('a step that two attempts did is that of the second', () => {
  const first = new Process('worker 0', 1, 1).task('device 0', 'gen', 5, 0), second = new Process('worker 0', 1, 2).task('device 0', 'gen', 5, 100, 110);
  const model = modelOf([first, second], { calls: [call('gen', 'generate', [0])] });
  assert.deepEqual(model.stepSpan(5), { b: at(100), e: at(110) });
  assert.equal(model.deviceCount(), 1);
  const [killed] = model.tracks[0].tasks();
  assert.equal(killed.e, at(0), 'killed with its attempt');
});

test('counters keep their values and their times', () => {
  const worker = new Process('worker 0', 1).event(KIND.counter, 3, 'counters', 'memory_bytes worker 0', { value: 1.5e9 });
  assert.deepEqual(modelOf([worker]).counters.get('memory_bytes worker 0'), [[at(3), 1.5e9]]);
});

test('times are converted by the offsets that the server sent, each from its time on', () => {
  const master = new Process('master', 0), worker = new Process('worker 0', 1);
  const model = modelOf([master, worker]), handlers = inbox(model);
  const own = (...ms) => ms.map((t) => worker.event(KIND.counter, t, 'counters', `at ${t}`, { value: 1 }));
  const seen = (t) => (model.counters.get(`at ${t}`)[0][0] - at(t)) / 1e6;
  const clocks = (...list) => receive(model, handlers, 'clock', JSON.stringify(list.map(([from, add, error]) => ({ file: worker.file, from: at(from), add: add * 1e6, error }))));
  clocks([10, -5, 300], [20, -7, 400]);
  own(0, 15, 20, 25, 12); // threads of a process are not in order
  model.addRecords(worker.close().buffer(1));
  assert.deepEqual([0, 15, 20, 25, 12].map(seen), [-5, -5, -7, -7, -5]);
  assert.equal(model.files[1].clockError, 400);
  clocks([20, -6, 200], [30, -8, 200]); // the server knows better by now
  assert.deepEqual([15, 21, 31].map((t) => (model.files[1].aligned(at(t)) - at(t)) / 1e6), [-5, -6, -8]);
  assert.equal(model.files[0].aligned(at(1)), at(1), 'other files keep theirs');
});

test('the page computes no offset of its own', () => {
  const master = new Process('master', 0), worker = new Process('worker 0', 1, 1, 5e9);
  for (let i = 0; i < 40; ++i) { // 40 s of messages that arrive before they were sent
    message(master, 'a', worker, 'b', 'run', 2 * i + 1, 1000 * i + 3, 1000 * i);
    message(worker, 'b', master, 'a', 'note', 2 * i + 2, 1000 * i, 1000 * i + 6);
  }
  const { arrows, files } = modelOf([master, worker]);
  assert.equal(arrows.length, 80);
  assert.deepEqual(files.map((f) => [f.offset, f.clockError]), [[0, 0], [0, 0]]);
});

test('another part of a run replaces all events, and what the run files say stays', () => {
  const early = new Process('worker 0', 1), late = new Process('worker 0', 1);
  for (let step = 1; step < 9; ++step) (step < 5 ? early : late).task('device 0', 'gen', step, 100 * step, 100 * step + 9);
  const model = modelOf([late.close()], { state: 'running' }), handlers = inbox(model);
  receive(model, handlers, 'metrics', '{"step": 8}\n');
  assert.deepEqual([[...model.steps.keys()], model.live(), model.newestStep()], [[5, 6, 7, 8], true, 8]);
  assert.deepEqual(model.devices().map((d) => d.name), ['device 0']);
  receive(model, handlers, 'part', '{"step": 3, "first": 2, "last": 4}');
  assert.deepEqual([model.files.length, model.tracks.length, model.steps.size, model.loaded, model.newestStep()], [0, 0, 0, false, 8]);
  assert.deepEqual(model.devices(), []);
  receive(model, handlers, 'file', early.file);
  model.addRecords(early.buffer(0));
  model.load(100);
  assert.deepEqual([...model.steps.keys()], [1, 2, 3, 4]);
  assert.equal(model.live(), false, 'nothing of what happens now is shown');
  assert.deepEqual([4, 5].map((step) => model.isDetailed(step)), [true, false]);
  receive(model, handlers, 'part', 'null');
  assert.equal(model.live(), true);
});

test('a file that is read before the other loses none of its messages', () => {
  const model = new Model(() => 0), many = 45000;
  model.addFile('master_01.events');
  for (let i = 0; i < many; ++i) model.flows.send({ sent: 0, name: 'a', file: model.files[0] }, 'run', { time: i, flow: i + 1, step: 1, amount: 0 });
  for (let i = 0; i < many; ++i) model.flows.receive({ received: 0, name: 'b', file: model.files[0] }, 'run', { time: i + 1, flow: i + 1, step: 1 });
  model.load(100);
  assert.equal(model.arrows.length, many);
  assert.equal(model.flows.unmatched, 0);
});

test('the critical path ends with the last task and follows what it read', () => {
  const worker = new Process('worker 0', 1);
  worker.task('device 0', 'gen', 1, 0, 10).task('device 0', 'ref', 1, 10, 12).task('device 1', 'rew', 1, 10, 19).task('device 0', 'train', 1, 20, 40);
  const calls = [call('gen', 'generate', [0]), call('ref', 'inference', [0]), call('rew', 'inference', [1]), call('train', 'train', [0])];
  const edges = [['gen', 'ref'], ['gen', 'rew'], ['ref', 'train'], ['rew', 'train']].map(([from, to]) => ({ from, to, keys: ['k'] }));
  const model = modelOf([worker], { calls, edges });
  assert.deepEqual(criticalPath(model, 1).map((t) => t.call), ['gen', 'rew', 'train']);
  assert.deepEqual(idleByReason(model, new Set([1])), [['waits for rew', 8e6]]);
});

test('a device that takes longer than the others of its call is named', () => {
  const worker = new Process('worker 0', 1);
  for (let step = 1; step < 6; ++step)
    for (let d = 0; d < 4; ++d) worker.task(`device ${d}`, 'ref', step, 100 * step, 100 * step + (d === 2 ? 25 : 10));
  const [worst] = stragglers(modelOf([worker]));
  assert.deepEqual([worst.call, worst.device, worst.ratio], ['ref', 'device 2', 2.5]);
});

test('a cycle of waits is found', () => {
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => ({ name }));
  assert.deepEqual(waitCycle([{ from: a, to: b }, { from: b, to: c }, { from: c, to: b }, { from: d, to: a }]), ['b', 'c']);
  assert.deepEqual(waitCycle([{ from: a, to: b }, { from: b, to: c }]), []);
});

test('lines of the run files arrive in portions, the last line of a step wins', () => {
  const model = modelOf([]), handlers = inbox(model);
  receive(model, handlers, 'metrics', '{"step": 2, "x": 1}\n{"step": 1, "x": 5}\n');
  receive(model, handlers, 'metrics', '{"step": 2, "x": 3}\n{"step": 3, "x"');
  assert.deepEqual(model.metrics, [{ step: 1, x: 5 }, { step: 2, x: 3 }]);
  receive(model, handlers, 'log worker 0', '2026-01-31 09:05:00.123 warning: early\nprinted\n');
  assert.deepEqual(model.logs.get('worker 0').map((r) => r.text), ['warning: early', 'printed']);
  assert.equal(model.logs.get('worker 0')[1].at, '2026-01-31 09:05:00.123');
  assert.deepEqual(shownSample({ step: 1, sample: 0, loss_mask: [0, 1, 1], keys: { a: [2], said: 'x' } }).tokens, 2);
});
