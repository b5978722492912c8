// Calls of the server. Who asks is told by the cookie of the session, which no script can read; where the browser keeps no cookies, by a secret that only this
// module has and that is gone with the page. What is no look needs an Origin of ours beside it.

let bearer = null;

/** Says who asks from here on, without a cookie. */
export function bear(secret) {
  bearer = secret;
}

/** What the server answered that was no success: the report of the program, as it is. */
export class Refused extends Error {
  constructor(status, report) {
    super(report.what ?? `the server answered ${status}`);
    this.status = status;
    this.report = report;
  }
}

/** Makes a query of what is set; lists are repeated. */
export function query(fields) {
  const pairs = new URLSearchParams();
  for (const [key, value] of Object.entries(fields)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== "" && each !== false) pairs.append(key, each);
    }
  }
  const text = pairs.toString();
  return text ? `?${text}` : "";
}

async function call(path, options = {}) {
  let answer;
  const headers = bearer === null ? options.headers : { ...options.headers, Authorization: `Bearer ${bearer}` };
  try {
    answer = await fetch(path, { credentials: "same-origin", cache: "no-store", redirect: "error", ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, { code: "unreachable", what: "the server does not answer", why: [],
      next: [{ text: "start it again with `backout serve`, or `backout ui`" }] });
  }
  if (answer.ok) return answer;
  let report = null;
  try { report = await answer.json(); } catch { /* No JSON: said below. */ }
  throw new Refused(answer.status, report ?? { code: "broken", what: `the server answered ${answer.status}`, why: [], next: [] });
}

/** Asks for JSON. */
export async function get(path, signal) {
  return (await call(path, { signal })).json();
}

/** Asks for bytes. */
export async function bytes(path, signal) {
  return (await call(path, { signal })).blob();
}

/** Asks the server to do something. */
export async function post(path, body = {}) {
  const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await call(path, options);
  return answer.status === 204 ? null : answer.json();
}

/** Opens a stream of events; the caller reads its body. */
export function stream(path, last, signal) {
  const more = { Accept: "text/event-stream" };
  if (last !== null) more["Last-Event-ID"] = String(last);
  return call(path, { headers: more, signal });
}
