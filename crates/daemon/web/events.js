// What happens in the journal, as it happens. Read with `fetch`: an EventSource does not tell a session that ended from a server that is away.

import { stream } from "./api.js";

const WAIT_MS = [250, 500, 1000, 2000, 5000];
/** The server says something every 15 seconds; after this long the line is taken for dead. */
const SILENCE_MS = 40000;

/** Follows the journal for as long as the page lives. `heard(name, data)` is called for each event, `changed(state)` as the line comes and goes. */
export function follow(heard, changed) {
  let last = null;
  let failures = 0;
  const run = async () => {
    for (;;) {
      try {
        changed("connecting");
        await read(last, (name, data, id) => {
          if (name === "hello") { failures = 0; changed("live"); }
          if (id !== null) last = id;
          heard(name, data);
        });
      } catch (error) {
        if (error.status === 401) { changed("ended"); return; }
      }
      changed("away");
      const wait = WAIT_MS[Math.min(failures, WAIT_MS.length - 1)];
      failures += 1;
      await new Promise((done) => { setTimeout(done, wait); });
    }
  };
  run();
}

async function read(last, heard) {
  const stop = new AbortController();
  let timer = setTimeout(() => stop.abort(), SILENCE_MS);
  const alive = () => { clearTimeout(timer); timer = setTimeout(() => stop.abort(), SILENCE_MS); };
  try {
    const answer = await stream("/v1/events", last, stop.signal);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      alive();
      rest += value;
      const blocks = rest.split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) one(block, heard);
    }
  } finally {
    clearTimeout(timer);
    stop.abort();
  }
}

function one(block, heard) {
  let name = "message";
  let id = null;
  const data = [];
  for (const line of block.split("\n")) {
    const [, field, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (field === "event") name = value;
    else if (field === "id") id = value;
    else if (field === "data") data.push(value);
  }
  if (!data.length) return;
  let said;
  try { said = JSON.parse(data.join("\n")); } catch { return; }
  heard(name, said, id);
}
