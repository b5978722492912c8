// The operations that match the filters, newest first. Read page by page, from the newest on; what comes in live is put before them.

import { get, query } from "./api.js";

const PAGE = 500;
const FIRST = 100;

/** Keeps of an operation what a row shows, so that 100 000 of them are small. */
function compact(operation) {
  const { id, place, lsn, at, verb, summary, status, agent, task, prompt, undoes, group, asked, targets = [], retained, target_count } = operation;
  return { id, place: place ?? lsn, at, day: new Date(at).toDateString(), verb, summary, status, agent, task, prompt, undoes, group, asked, retained,
    targets: targets.slice(0, 3), count: target_count ?? targets.length };
}

/** Operations, as far as they were read. */
export class Feed {
  constructor(filters, changed) {
    const { group: _shown, ...asked } = filters;
    this.filters = asked;
    this.rows = [];
    this.byId = new Map();
    this.next = undefined;
    this.total = null;
    this.error = null;
    this.changed = changed;
    this.reading = null;
    this.stop = new AbortController();
    if (Object.keys(asked).length === 0) this.count();
  }

  /** Asks how many there are in all: so long the list is, before it was read to its end. */
  async count() {
    try {
      const { statuses } = await get("/v1/storage", this.stop.signal);
      this.total = Object.values(statuses).reduce((sum, count) => sum + count, 0);
      if (this.next) this.changed({ from: this.rows.length });
    } catch { /* Then it grows as it is read. */ }
  }

  /** How many there are, as far as anybody knows. */
  get length() {
    if (this.next === null) return this.rows.length;
    return Math.max(this.total ?? 0, this.rows.length + (this.next === undefined ? 0 : 20));
  }

  /** Reads on until there are so many rows, or no more. */
  ensure(count) {
    if (this.rows.length >= count || this.next === null || this.reading || this.error) return;
    const limit = this.next === undefined ? FIRST : PAGE;
    const path = `/v1/operations${query({ ...this.filters, before: this.next, limit })}`;
    const from = this.rows.length;
    this.reading = get(path, this.stop.signal).then((reply) => {
      for (const operation of reply.operations) this.keep(operation);
      this.next = reply.next ?? null;
    }).catch((error) => {
      if (error.name !== "AbortError") this.error = error;
    }).finally(() => {
      this.reading = null;
      if (this.stop.signal.aborted) return;
      this.changed({ from });
      this.ensure(this.wanted ?? 0);
    });
    this.wanted = count;
  }

  /** Says how far somebody looks; what was wanted before is not any more. */
  want(count) {
    this.wanted = count;
    this.ensure(count);
  }

  keep(operation) {
    if (this.byId.has(operation.id)) return;
    const row = compact(operation);
    this.byId.set(row.id, row);
    this.rows.push(row);
  }

  /** Takes an operation as it stands now. Gives whether it is a new one. */
  heard(operation) {
    const known = this.byId.get(operation.id);
    if (known) {
      Object.assign(known, compact(operation));
      return false;
    }
    if (this.next === undefined || !this.matches(operation)) return false;
    const row = compact(operation);
    let index = this.rows.findIndex((other) => other.place < row.place);
    if (index < 0) {
      // Older than all that was read: it comes with its page.
      if (this.next !== null) return false;
      index = this.rows.length;
    }
    this.byId.set(row.id, row);
    this.rows.splice(index, 0, row);
    if (this.total !== null) this.total += 1;
    return index;
  }

  /** Tells whether an operation passes the filters, as the server does it. */
  matches(operation) {
    const { q, at, ...equal } = this.filters;
    for (const [key, value] of Object.entries(equal)) if (operation[key] !== value) return false;
    const text = JSON.stringify([operation.summary, operation.agent, operation.task, operation.targets]).toLowerCase();
    if (at && !text.includes(at.toLowerCase())) return false;
    return (q ?? "").toLowerCase().split(/\s+/).every((word) => text.includes(word));
  }

  /** Nobody looks any more. */
  close() {
    this.stop.abort();
  }
}
