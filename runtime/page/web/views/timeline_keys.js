// The timeline by keyboard: arrows move and zoom, with shift they go from task to
// task, n goes through what the search means, Enter opens the task. What is
// reached is said to who cannot see it.
import { matchingTasks, taskMatcher } from '../model/search.js';
import { processLanes } from '../model/lanes.js';
import { countOf, timeText } from '../model/text.js';
import { walk } from '../model/walk.js';
import { byId, say } from './dom.js';

/** @typedef {import('../model/track.js').Slice} Slice */
/** @typedef {import('../model/walk.js').Direction} Direction */

/** @type {Record<string, Direction>} */
const WALKS = { ArrowLeft: 'left', ArrowRight: 'right', ArrowUp: 'up', ArrowDown: 'down' };

export class TimelineKeys {
  /** @param {import('./timeline.js').Timeline} timeline @param {(slice: Slice) => void} open */
  constructor(timeline, open) {
    this.timeline = timeline;
    this.open = open;
    this.text = '';               // of the search
  }

  /**
   * Handles a key; returns whether it had a meaning here.
   * @param {KeyboardEvent} e
   */
  key(e) {
    const { timeline } = this;
    if (e.shiftKey && WALKS[e.key]) this.walk(WALKS[e.key]);
    else if (e.key === 'ArrowLeft') timeline.pan(-0.15);
    else if (e.key === 'ArrowRight') timeline.pan(0.15);
    else if (e.key === 'ArrowUp' || e.key === '+' || e.key === '=') timeline.zoom(0.7, 0.5);
    else if (e.key === 'ArrowDown' || e.key === '-') timeline.zoom(1.4, 0.5);
    else if (e.key === 'Enter' && timeline.picked && e.target === timeline.canvas) this.open(timeline.picked);
    else if ((e.key === 'n' || e.key === 'N') && timeline.match) this.next(e.key === 'n');
    else return false;
    return true;
  }

  /** @param {Direction} direction */
  walk(direction) {
    const { timeline } = this;
    const lanes = processLanes(timeline.model, false).flatMap((group) => group.lanes.filter((lane) => lane.isDevice));
    const task = walk(lanes, timeline.picked, direction, (timeline.from + timeline.to) / 2);
    if (task) this.reach(task);
    else say(byId('spoken'), `no task further ${direction}`);
  }

  /**
   * Goes to the next task in time that the search means, or the one before; after
   * the last one comes the first.
   * @param {boolean} forward
   */
  next(forward) {
    const { timeline } = this, tasks = matchingTasks(timeline.model, this.text);
    if (!tasks.length) return;
    const { picked } = timeline, middle = (timeline.from + timeline.to) / 2;
    const known = picked ? tasks.indexOf(picked) : -1;
    const after = tasks.findIndex((task) => task.b > middle);
    const at = known >= 0 ? known + (forward ? 1 : -1) : forward ? after : (after < 0 ? tasks.length : after) - 1;
    this.reach(tasks[(at + tasks.length) % tasks.length]);
  }

  /** @param {Slice} task */
  reach(task) {
    const { timeline } = this;
    timeline.reach(task);
    const took = Number.isNaN(task.e) ? 'running' : timeText(task.e - task.b);
    say(byId('spoken'), `${task.track.name}: ${task.name}${task.step ? ` of step ${task.step}` : ''}, ${took}; Enter opens it`);
  }

  /**
   * Marks what a search means; empty: nothing. Returns how many tasks it means.
   * @param {string} text
   */
  search(text) {
    const { timeline } = this;
    this.text = text;
    timeline.match = taskMatcher(timeline.model, text);
    timeline.dirty = true;
    const many = timeline.match ? matchingTasks(timeline.model, text).length : 0;
    say(byId('matches'), many ? `${countOf(many, 'task')} marked: n, N` : '');
    return many;
  }
}
