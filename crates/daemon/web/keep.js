// What the browser may keep for the next time: the theme and the way diffs are shown. A browser that keeps nothing forgets it, and that is all.

const here = new Map();

/** Reads what was kept. */
export function kept(key) {
  try { return localStorage.getItem(`backout.${key}`) ?? here.get(key) ?? null; } catch { return here.get(key) ?? null; }
}

/** Keeps something. */
export function keep(key, value) {
  here.set(key, value);
  try { localStorage.setItem(`backout.${key}`, value); } catch { /* Storage is blocked. */ }
}
