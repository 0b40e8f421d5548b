// Elements, tables and the tip beside the pointer: what all views share.

export const byId = (id) => document.getElementById(id);
export const el = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes))
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  node.append(...children.map((c) => (c instanceof Node ? c : String(c))));
  return node;
};
export const svg = (tag, attributes, ...children) => {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};
export const table = (heads, rows) => el('table', {},
  el('thead', {}, el('tr', {}, ...heads.map((h) => el('th', { class: h.num ? 'num' : '' }, h.name)))),
  el('tbody', {}, ...rows.map((row) => el('tr', {}, ...row.map((cell, i) =>
    el('td', { class: `${heads[i].num ? 'num' : ''} ${heads[i].text ? 'text' : ''}` }, cell))))));
export const head = (name, kind = '') => ({ name, num: kind === 'num', text: kind === 'text' });
export const note = (text) => el('p', { class: 'quiet' }, text);
export const quiet = (text) => el('span', { class: 'quiet' }, text);
export const lines = (...parts) => el('div', {}, ...parts.filter(Boolean).flatMap((p, i) => (i ? [el('br'), p] : [p])));

export const isDark = () => document.documentElement.classList.contains('dark');

/** Returns the colours of the style sheet, for canvases. */
export function inks() {
  const style = getComputedStyle(document.documentElement);
  const ink = { dark: isDark() };
  for (const name of ['fore', 'quiet', 'line', 'back', 'soft', 'accent', 'bad', 'warn', 'good']) ink[name] = style.getPropertyValue(`--${name}`).trim();
  return ink;
}

/** Fits a canvas's pixels to its size on the page; returns its context. */
export function sized(canvas, height) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const g = canvas.getContext('2d');
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  g.textBaseline = 'middle';
  return g;
}

/** Shows a text beside the pointer; empty: hides it. */
export function tip(text, x = 0, y = 0) {
  const box = byId('tip');
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  const wide = box.offsetWidth, high = box.offsetHeight;
  box.style.left = `${Math.max(4, Math.min(x + 14, window.innerWidth - wide - 6))}px`;
  box.style.top = `${y + 18 + high > window.innerHeight ? y - high - 8 : y + 18}px`;
}

/** Replaces a text only if it differs: the reader's selection stays. */
export const say = (node, text) => { if (node.textContent !== text) node.textContent = text; };

/** Saves a file from the page. */
export function save(name, content) {
  const link = el('a', { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
