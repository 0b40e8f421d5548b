// What the views show, as numbers: level of detail, messages as they travel, the
// verdict, the story of a recovery, search, addresses.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readAddress, writeAddress } from '../../../../runtime/page/web/model/address.js';
import { colour, idleClass } from '../../../../runtime/page/web/model/colours.js';
import { attemptBands, bundles, meanOf, processLanes, selectionSums, tasksIn, utilisation } from '../../../../runtime/page/web/model/lanes.js';
import { callTimes, flatSettings, overlaid, planDifferences, settingDifferences, slowerSentence } from '../../../../runtime/page/web/model/compare.js';
import { requestHops } from '../../../../runtime/page/web/model/hops.js';
import { shownSample } from '../../../../runtime/page/web/model/inbox.js';
import { mapLayout } from '../../../../runtime/page/web/model/map_layout.js';
import { curveGroups, metricsCsv, smoothed } from '../../../../runtime/page/web/model/metrics.js';
import { sampleGroups, shadedTokens } from '../../../../runtime/page/web/model/samples.js';
import { search } from '../../../../runtime/page/web/model/search.js';
import { story } from '../../../../runtime/page/web/model/story.js';
import { mailboxes, nextEvent, rates, stalledAsks, travelling } from '../../../../runtime/page/web/model/traffic.js';
import { attemptText, verdict } from '../../../../runtime/page/web/model/verdict.js';
import { Process, REPLY, at, call, message, modelOf } from './traces.js';

const CALLS = [call('gen', 'generate', [0]), call('train', 'train', [0])];
const EDGES = [{ from: 'gen', to: 'train', keys: ['k'] }];
const near = (a, b) => assert.ok(Math.abs(a - b) < 1e-6, `${a}, not ${b}`);

function busyRun(steps = 50) {
  const worker = new Process('worker 0', 1);
  for (let s = 0; s < steps; ++s) worker.task('device 0', 'gen', s + 1, 10 * s, 10 * s + 2).task('device 0', 'train', s + 1, 10 * s + 4, 10 * s + 10);
  return modelOf([worker], { calls: CALLS, edges: EDGES });
}
const lanesOf = (model) => processLanes(model, false).flatMap((g) => g.lanes);

test('utilisation at any zoom adds up to the time of the tasks and gaps', () => {
  const model = busyRun(), [lane] = lanesOf(model);
  for (const columns of [1, 7, 400]) {
    const sums = new Map();
    for (const part of utilisation(model, lane, at(0), at(500), columns))
      for (const [key, share] of part) {
        assert.ok(share <= 1 + 1e-9);
        sums.set(key, (sums.get(key) || 0) + share / columns);
      }
    near(sums.get('generate'), 0.2);
    near(sums.get('train'), 0.6);
    near([...sums].filter(([k]) => k.startsWith('idle')).reduce((n, [, v]) => n + v, 0), 0.2);
  }
  assert.equal(tasksIn(lane, at(0), at(500)), 100);
});

test('a folded process is the mean of its lanes', () => {
  assert.deepEqual(meanOf([[new Map([['train', 1]])], [new Map([['idle data', 0.5]])]]).map((m) => [...m]), [[['train', 0.5], ['idle data', 0.25]]]);
});

test('bundles count every message once, those within a lane apart', () => {
  const place = (track, t) => [t, track];
  const arrows = Array.from({ length: 1000 }, (_, i) => ({ from: i % 2, to: i % 10 === 0 ? i % 2 : 5, t0: i, t1: i + 1, name: 'run', bytes: 2 }));
  const { list, seen, within, isDense } = bundles(arrows, place, 50, 500);
  assert.deepEqual([seen, within, isDense], [900, 100, true]);
  assert.equal(list.reduce((n, b) => n + b.count, 0), 900);
  assert.equal(list.reduce((n, b) => n + b.bytes, 0), 1800);
  assert.ok(list.length < 120);
  assert.equal(bundles(arrows, place, 50, 900).list.length, 900, 'apart, each is its own');
});

test('a selection sums what happened in it', () => {
  const sums = selectionSums(busyRun(), at(10), at(20));
  assert.equal(sums.devices, 1);
  const time = new Map(sums.time);
  near(time.get('train'), 6e6);
  near(time.get('generate'), 2e6);
});

test('attempts are bands in time, and a device is one lane over both', () => {
  const model = modelOf([new Process('worker 0', 1, 1).task('device 0', 'gen', 1, 0, 5), new Process('worker 0', 1, 2).task('device 0', 'gen', 1, 100, 110)], { calls: CALLS });
  assert.deepEqual(attemptBands(model), [{ attempt: 1, b: at(0), e: at(5) }, { attempt: 2, b: at(100), e: at(110) }]);
  assert.equal(lanesOf(model).length, 1);
  assert.equal(lanesOf(model)[0].tracks.length, 2);
});

test('each dot on the map is a message under way, where it is', () => {
  const master = new Process('master', 0), worker = new Process('worker 0', 1);
  message(master, 'a', worker, 'b', 'run', 1, 10, 20, { bytes: 100 });
  message(master, 'a', worker, 'b', 'fetch', 2, 14, 16, { bytes: 50 });
  message(worker, 'b', master, 'a', 'reply', 1n | REPLY, 30, 4000);
  const model = modelOf([master, worker]);
  const names = (ms, least = 0) => travelling(model, at(ms), least).map((d) => [d.arrow.name, Math.round(d.share * 100)]);
  assert.deepEqual(names(9), []);
  assert.deepEqual(names(15), [['run', 50], ['fetch', 50]]);
  assert.deepEqual(names(20), []);
  assert.deepEqual(names(20, 20e6), [['run', 50], ['fetch', 30]], 'a quick one is shown for the least time');
  assert.deepEqual(names(2015), [['reply', 50]], 'a long one too');
  assert.equal(mailboxes(model, at(15)).get(worker && model.tracks.find((t) => t.name === 'b')), 2);
  const [pair] = rates(model, at(15));
  assert.deepEqual([pair.count, pair.bytes, pair.from.name], [2, 150, 'a']);
  assert.deepEqual(rates(model, at(1025)).map((p) => p.count), [1], 'only the last second');
  assert.equal(nextEvent(model, at(14), true), at(16));
  assert.equal(nextEvent(model, at(14), false), at(10));
});

test('a request is followed through its hops, each reply after what it waited for', () => {
  const master = new Process('master', 0), worker = new Process('worker 0', 1);
  message(master, 'master', master, 'call gen', 'run', 1, 0, 1);
  message(master, 'call gen', worker, 'shard 0', 'fetch', 2, 2, 3);
  message(worker, 'shard 0', master, 'call gen', 'reply', 2n | REPLY, 4, 5);
  message(master, 'call gen', worker, 'shard 0', 'run', 3, 6, 7, { step: 2 });
  message(master, 'call gen', master, 'master', 'reply', 1n | REPLY, 8, 9);
  const model = modelOf([master, worker]);
  assert.deepEqual(requestHops(model, model.arrows[0]).map(([a, depth]) => `${depth} ${a.name} ${a.to.name}`),
    ['0 run call gen', '1 fetch shard 0', '1 reply call gen', '0 reply master']);
});

test('an ask is stalled once it waits far longer than its kind ever did', () => {
  const master = new Process('master', 0), worker = new Process('worker 0', 1);
  message(master, 'a', worker, 'b', 'run', 1, 0, 1);
  message(worker, 'b', master, 'a', 'reply', 1n | REPLY, 2000, 2001);
  message(master, 'a', worker, 'b', 'run', 2, 2002, 2003);
  worker.task('device 0', 'gen', 1, 2003, 9000);
  const model = modelOf([master, worker], { state: 'running' });
  model.files.forEach((f) => model.settle(f, Infinity));
  assert.equal(stalledAsks(model).length, 0, 'four times 2 s have not passed');
  model.last = at(11000);
  assert.deepEqual(stalledAsks(model).map((a) => a.t0), [at(2002)]);
});

test('many actors fold by kind, many processes into one place, all of them somewhere', () => {
  for (const [workers, shards] of [[2, 4], [2, 64], [64, 4], [300, 4]]) {
    const master = new Process('master', 0), all = [master];
    let flow = 0;
    for (let w = 0; w < workers; ++w) {
      const worker = new Process(`worker ${w}`, w + 1);
      all.push(worker);
      for (let s = 0; s < shards; ++s) message(master, `call ${s % 7}`, worker, `shard r@d/${s}`, 'run', ++flow, flow, flow + 0.5);
    }
    const model = modelOf(all);
    const { places, placeOf } = mapLayout(model, 420, 220);
    for (const track of model.tracks) assert.ok(placeOf.get(track), `${track.name} of ${workers} workers`);
    for (const p of places) assert.ok(p.x >= 0 && p.x <= 420 && p.y >= 0 && p.y <= 220, `${p.name} at ${p.x}, ${p.y}`);
    assert.ok(places.length < 260);
  }
});

const said = (answer) => [answer.word, answer.text].filter(Boolean).join(' ');

test('the verdict says how fast beside what was predicted, how busy, what takes most', () => {
  const model = busyRun();
  model.metrics = Array.from({ length: 50 }, (_, i) => ({ step: i + 1, 'timing_s/step': 0.01, 'perf/total_num_tokens': 50, 'perf/predicted_step_s': 0.008, 'perf/idle_ratio': 0.2, 'critic/score/mean': i }));
  const { mood, fine, fast, why, failed } = verdict(model);
  assert.equal(mood, 'good');
  assert.equal(said(fine), 'Done. Reward 49, 20 steps before 29.');
  assert.equal(said(fast), '360,000 steps/h, 5000 tokens/s. Predicted: 450,000 steps/h, 6250 tokens/s. 10 ms a step, 8 ms predicted: 25 % slower than predicted.');
  assert.equal(said(why), 'The device is 80 % busy. train is 60 % of the step, on all devices. Most idle time: waits for messages (2 ms a step).');
  assert.equal(said(failed), 'Nothing failed.');
  for (const [seconds, words] of [[0.0082, ': as predicted.'], [0.004, ': 50 % faster than predicted.']]) {
    model.metrics.forEach((m) => { m['timing_s/step'] = seconds; });
    assert.ok(said(verdict(model).fast).endsWith(words), said(verdict(model).fast));
  }
  model.metrics.forEach((m) => { delete m['perf/predicted_step_s']; });
  assert.match(said(verdict(model).fast), /^900,000 steps\/h, 12\.5 k tokens\/s\. 4 ms a step; not predicted/);
});

test('the verdict names what would gain most', () => {
  const worker = new Process('worker 0', 1);
  for (let s = 0; s < 9; ++s) worker.task('device 0', 'gen', s + 1, 10 * s, 10 * s + 2).task('device 1', 'train', s + 1, 10 * s + 2, 10 * s + 10);
  const model = modelOf([worker], { calls: [CALLS[0], call('train', 'train', [1])], edges: EDGES, state: 'running' });
  assert.equal(verdict(model).fine.word, 'Healthy.');
  assert.match(said(verdict(model).why), /^Devices are 5\d % busy\. train is 80 % of the step; a second device there would gain most \(at most 4 ms a step\)\./);
});

test('the verdict is not fine when something is wrong', () => {
  const model = busyRun();
  model.status.state = 'failed';
  assert.deepEqual([verdict(model).mood, said(verdict(model).fine)], ['bad', 'Failed. It ended in step 2.']);
  model.status.state = 'recovering';
  model.status.last_failure = 'worker 1 was killed';
  assert.deepEqual([verdict(model).mood, said(verdict(model).fine)], ['warn', 'Degraded. Recovering from: worker 1 was killed.']);
  model.status.state = 'running';
  model.metrics = [{ step: 50, 'actor/pg_loss': null }];
  assert.deepEqual([verdict(model).mood, said(verdict(model).fine)], ['bad', 'Degraded. actor/pg_loss is not a number in step 50.']);
  assert.match(said(verdict(model, true).fine), /^Stalled\./);
  model.metrics = Array.from({ length: 100 }, (_, i) => ({ step: i + 1, 'timing_s/step': i < 70 ? 1 : 2 }));
  assert.match(said(verdict(model).fine), /^Degraded\. Slower than before: 1 s a step until step 80\./);
});

test('the verdict says nothing of half a step', () => {
  const worker = new Process('worker 0', 1).task('device 0', 'gen', 1, 0, 2).task('device 0', 'train', 1, 4);
  const model = modelOf([worker], { calls: CALLS, edges: EDGES, state: 'running' });
  model.settle(model.files[0], Infinity);
  const { mood, fast, why } = verdict(model);
  assert.deepEqual([mood, said(fast), said(why)], ['good', 'No step was completed yet.', 'Known once a step was completed.']);
  assert.equal(verdict(model, true).mood, 'bad');
});

test('the verdict tells the last failure with its time, first cause and what was done', () => {
  const first = new Process('worker 0', 1, 1).task('device 0', 'gen', 4, 0, 100).task('device 0', 'train', 4, 100);
  const second = new Process('worker 0', 1, 2).task('device 0', 'gen', 3, 900, 1000).task('device 0', 'train', 3, 1000, 1100);
  const model = modelOf([first, second], { calls: CALLS, state: 'running' });
  model.failures = [{ attempt: 1, who: 'worker 0 (pid 7)', what: 'killed by signal 9', cause: 'out of memory', time: '2026-01-31T09:05:00.123Z', action: 'rolled_back', lost_steps: 1, seconds: 0.5 }];
  assert.match(said(verdict(model).failed), /^worker 0 \(pid 7\): killed by signal 9; first cause: out of memory \(2026-01-31 \d\d:\d5:00, step 4\)\. Went on with step 3 from a checkpoint: 1 step lost, 800 ms without a task\.$/);
  assert.deepEqual([verdict(model).mood, said(verdict(model).fine)], ['warn', 'Degraded. It went on with step 3 after a failure.']);
  model.metrics = Array.from({ length: 30 }, (_, i) => ({ step: i + 1 }));
  assert.equal(verdict(model).mood, 'good', 'it is long ago');
  model.failures.push({ attempt: 2, who: 'the run', what: 'no space left', action: 'stopped' });
  assert.match(said(verdict(model).failed), /^2 failures, the last: the run: no space left .*The run ended\.$/);
});

test('a recovery is a story: died, noticed, went on, what it cost', () => {
  const first = new Process('worker 0', 1, 1).task('device 0', 'gen', 4, 0, 100).task('device 0', 'train', 4, 100);
  const second = new Process('worker 0', 1, 2).task('device 0', 'gen', 3, 900, 1000);
  const model = modelOf([first, second], { calls: CALLS });
  model.failures = [{ attempt: 1, who: 'worker 0 (pid 7)', what: 'killed', action: 'restarted', lost_steps: 1, seconds: 0.5 }];
  const [e] = story(model);
  assert.deepEqual([e.died, e.noticed, e.resumed, e.backTo, e.reached, e.lostSteps, e.cost], [at(100), at(400), at(900), 3, 4, 1, 800e6]);
  model.status.attempt = 2;
  assert.equal(attemptText(model), 'attempt 2 (1 recovered, 1 step lost)');
});

test('search finds steps, tasks, actors, messages and samples', () => {
  const master = new Process('master', 0), worker = new Process('worker 0', 1).task('device 0', 'actor_train', 12, 0, 5);
  message(master, 'call actor_train', worker, 'shard 0', 'fetch', 1, 1, 2);
  const model = modelOf([master, worker]);
  model.samples = [{ step: 12, sample: 3, prompt: 'Did you like the curry?', response: 'Very much.' }];
  const kinds = (text) => search(model, text).map((h) => `${h.kind} ${h.text}`);
  assert.deepEqual(kinds('12'), ['step step 12', 'task actor_train of step 12'].slice(0, 1));
  assert.deepEqual(kinds('actor_train 12'), ['task actor_train of step 12']);
  assert.deepEqual(kinds('train'), ['task actor_train of step 12', 'actor call actor_train']);
  assert.deepEqual(kinds('fetch'), ['message fetch']);
  assert.deepEqual(kinds('CURRY'), ['sample sample 3 of step 12']);
  assert.deepEqual(kinds(' '), []);
});

test('an address shows what was seen', () => {
  const view = { tab: 'waits', task: 'actor_train', device: 'device 1', step: 12, from: 1.5, to: 2.25, kind: 'run', search: 'a b', sample: '60.3', reward: '1..', diff: '..60' };
  assert.deepEqual(readAddress(writeAddress(view)), view);
  assert.equal(writeAddress({ tab: '', step: 0 }), '');
  assert.deepEqual(readAddress('#step=x&tab='), {});
});

test('a kind of call has one hue, whatever the run', () => {
  const hue = (model, name) => colour(model, name, false).split(' ').at(-1);
  const one = modelOf([], { calls: [call('gen', 'generate', [0]), call('train', 'train', [0])] });
  const other = modelOf([], { calls: [call('x', 'function', [0]), call('train', 'train', [0]), call('also', 'train', [0])] });
  assert.equal(hue(one, 'train'), hue(other, 'train'));
  assert.equal(hue(other, 'also'), hue(other, 'train'));
  assert.notEqual(colour(other, 'also', false), colour(other, 'train', false));
  assert.notEqual(hue(one, 'gen'), hue(one, 'train'));
  assert.deepEqual(['waits for bytes', 'waits for device 1 (d)', 'waits for the step to commit', 'waits for gen', 'hand-over'].map(idleClass), ['bytes', 'device', 'commit', 'data', 'other']);
});

test('curves that never change, or equal another, are folded', () => {
  const metrics = [1, 2, 3].map((step) => ({ step, 'critic/score/mean': step, 'a/x': 5, 'a/y': step, 'b/z': -step, 'timing_s/gen': step / 7 }));
  const { list, folded } = curveGroups(metrics);
  assert.deepEqual(list.map((g) => [g.title, g.cards.map((c) => c[0])]), [['chosen', ['reward']], ['b', ['b/z']]]);
  assert.deepEqual(folded, ['a/x = 5', 'a/y equals critic/score/mean']);
  assert.deepEqual(smoothed([[1, 4], [2, 4]], 0.9).map((p) => Math.round(p[1] * 1e9) / 1e9), [4, 4]);
});

test('metrics are saved as CSV, one line a step', () => {
  assert.equal(metricsCsv([{ step: 1, 'b/x': 2 }, { step: 2, 'a,"q"': 0.5 }]), 'step,"a,""q""",b/x\n1,,2\n2,0.5,\n');
});

test('samples are grouped by prompt, in the order asked for', () => {
  const samples = [{ step: 1, prompt: 'user\na?\nassistant', response: 'x', score: 1 }, { step: 2, prompt: 'b?', response: 'y', score: 5 }, { step: 3, prompt: 'user\na?\nassistant', response: 'z', score: 3 }];
  assert.deepEqual(sampleGroups(samples).map((g) => [g.prompt, g.rows.map((r) => r.step)]), [['a?', [3, 1]], ['b?', [2]]]);
  assert.deepEqual(sampleGroups(samples, { order: 'score' }).map((g) => g.prompt), ['b?', 'a?']);
  assert.deepEqual(sampleGroups(samples, { order: '-score' }).map((g) => g.prompt), ['a?', 'b?']);
  assert.deepEqual(sampleGroups(samples, { find: 'Y' }).map((g) => g.prompt), ['b?']);
});

test('tokens are shaded by what training sees of them', () => {
  const sample = shownSample({ sequence_ids: [5, 7, 9], loss_mask: [0, 1, 1], logprobs: [0, Math.log(0.25), 0] });
  const texts = new Map([[5, 'a'], [7, ' b'], [9, '!']]);
  const shown = (by) => shadedTokens(sample, texts, by).map((t) => [t.text, Number(t.weight.toFixed(3))]);
  assert.deepEqual(shown('logprob'), [['a', 0], [' b', 0.75], ['!', 0]]);
  assert.deepEqual(shown('mask'), [['a', 0], [' b', 1], ['!', 1]]);
  assert.deepEqual(shown(''), []);
  assert.equal(shadedTokens(sample, texts, 'logprob')[1].title, 'p 0.250, token 7');
  assert.deepEqual(shown('kl'), [['a', 0], [' b', 0], ['!', 0]], 'no reference model');
  assert.deepEqual(shadedTokens(sample, new Map(), 'mask'), [], 'texts that are unknown');
});

test('tokens are shaded by KL and advantage on both sides of zero', () => {
  const sample = shownSample({ sequence_ids: [5, 7, 9], loss_mask: [0, 1, 1], logprobs: [0, -1, -2], ref_logprobs: [-9, -2, -1.5], advantages: [0, -1, 2] });
  const texts = new Map([[5, 'a'], [7, ' b'], [9, '!']]);
  const weights = (by) => shadedTokens(sample, texts, by).map((t) => Number(t.weight.toFixed(3)));
  assert.deepEqual(weights('kl'), [0, 0.632, -0.393]);
  assert.deepEqual(weights('advantage'), [0, -0.632, 0.865]);
  assert.equal(shadedTokens(sample, texts, 'kl')[1].title, 'p 0.368, KL 1.000, advantage -1.000, token 7');
});

function runOf(name, genMs, device = 0) {
  const worker = new Process('worker 0', 1);
  for (let s = 0; s < 30; ++s) worker.task(`device ${device}`, 'gen', s + 1, 100 * s, 100 * s + genMs).task('device 0', 'train', s + 1, 100 * s + genMs, 100 * s + genMs + 10);
  const model = modelOf([worker], { calls: [call('gen', 'generate', [device]), CALLS[1]], edges: EDGES });
  model.graph.name = name;
  model.settings = `run:\n  name: ${name}\ndata:\n  batch_size: 8\nrollout: {}\n`;
  model.metrics = Array.from({ length: 30 }, (_, i) => ({ step: i + 1, 'timing_s/step': (genMs + 10) / 1e3, 'critic/score/mean': i }));
  return model;
}

test('what made a run slower is the call of the critical path that grew', () => {
  const a = runOf('a', 20), b = runOf('b', 50, 1);
  assert.equal(slowerSentence(a, b), 'b is slower: 60 ms a step, a 30 ms. Most of it: gen is 50 ms of the critical path, 20 ms in a.');
  assert.match(slowerSentence(b, a), /^a is faster: 30 ms a step, b 60 ms\./);
  assert.match(slowerSentence(a, runOf('c', 20)), /^c is as fast/);
  assert.deepEqual([...callTimes(b)], [['gen', 50e6], ['train', 10e6]]);
  assert.deepEqual(planDifferences(a, b), [['gen', 'd1 on 0', 'd1 on 1']]);
  assert.deepEqual(settingDifferences(a, b), [['run.name', 'a', 'b']]);
});

test('curves of two runs lie over each other by step, samples and time', () => {
  const a = runOf('a', 20), b = runOf('b', 50);
  for (const [axis, xs] of [['step', [30, 30]], ['samples', [240, 240]], ['time in s', [0.9, 1.8]]])
    overlaid([a, b], 'critic/score/mean', axis).forEach((line, i) => near(line.points.at(-1)[0], xs[i]));
  assert.deepEqual(flatSettings('a:\n  b: 1 # c\n  d:\n    e: "x"\nf: 2\n'), { 'a.b': '1 # c', 'a.d.e': '"x"', f: '2' });
});
