// The model: what the page reads of a run's trace.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inbox, receive, shownSample } from '../../../../runtime/page/web/model/inbox.js';
import { criticalPath, idleByReason, openWaits, stragglers, waitCycle } from '../../../../runtime/page/web/model/reasons.js';
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
