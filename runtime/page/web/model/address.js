// The address of what is seen: the part after # names the tab, step, task, range
// and filters, so that a link shows another person the same.

const NUMBERS = ['step', 'from', 'to'];
const TEXTS = ['tab', 'task', 'device', 'kind', 'actor'];

/** Returns the view that an address names. */
export function readAddress(hash) {
  const view = {};
  const fields = new URLSearchParams(hash.replace(/^#/, ''));
  for (const name of NUMBERS) {
    const value = Number(fields.get(name));
    if (fields.get(name) && Number.isFinite(value)) view[name] = value;
  }
  for (const name of TEXTS) if (fields.get(name)) view[name] = fields.get(name);
  return view;
}

/** Returns the address of a view; times are seconds since the run's start. */
export function writeAddress(view) {
  const fields = new URLSearchParams();
  for (const name of [...TEXTS, ...NUMBERS])
    if (view[name] !== undefined && view[name] !== '' && (view[name] !== 0 || name !== 'step')) fields.set(name, String(view[name]));
  const text = fields.toString();
  return text ? `#${text}` : '';
}
