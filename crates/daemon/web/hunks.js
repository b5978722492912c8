// A unified diff, read into hunks of lines; lines that became others are set side by side, and the words that differ are marked.

/** Above this many words in a pair of lines, the lines are shown as wholly different. */
const WORDS_MAX = 400;

/** Reads the hunks of a diff. */
export function readHunks(text) {
  const hunks = [];
  let hunk = null;
  let [left, right] = [0, 0];
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  for (const line of lines) {
    const head = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line);
    if (head) {
      [left, right] = [Number(head[1]), Number(head[3])];
      hunk = { left, right, lines: [] };
      hunks.push(hunk);
    } else if (!hunk) {
      continue;
    } else if (line.startsWith("\\")) {
      const last = hunk.lines.at(-1);
      if (last) last.cut = true;
    } else {
      const kind = line[0] === "+" ? "add" : line[0] === "-" ? "del" : "same";
      const it = { kind, text: line.slice(1) };
      if (kind !== "add") { it.left = left; left += 1; }
      if (kind !== "del") { it.right = right; right += 1; }
      hunk.lines.push(it);
    }
  }
  for (const each of hunks) each.pairs = pair(each.lines);
  return hunks;
}

/** Sets the lines that went beside those that came, in their order. */
function pair(lines) {
  const pairs = [];
  for (let at = 0; at < lines.length;) {
    if (lines[at].kind === "same") { pairs.push([lines[at], lines[at]]); at += 1; continue; }
    const gone = [];
    const come = [];
    while (lines[at]?.kind === "del") { gone.push(lines[at]); at += 1; }
    while (lines[at]?.kind === "add") { come.push(lines[at]); at += 1; }
    for (let index = 0; index < Math.max(gone.length, come.length); index += 1) {
      const both = [gone[index] ?? null, come[index] ?? null];
      if (both[0] && both[1]) markWords(both[0], both[1]);
      pairs.push(both);
    }
  }
  return pairs;
}

/** Divides two lines into pieces, of which some are only in one of them. Lines that have little in common are left whole. */
export function markWords(old, now) {
  const [one, other] = [split(old.text), split(now.text)];
  if (one.length * other.length === 0 || one.length > WORDS_MAX || other.length > WORDS_MAX) return;
  const common = longest(one, other);
  const kept = common.reduce((sum, [at]) => sum + one[at].trim().length, 0);
  const most = Math.max(old.text.trim().length, now.text.trim().length);
  if (kept * 4 < most) return;
  old.pieces = pieces(one, new Set(common.map(([at]) => at)));
  now.pieces = pieces(other, new Set(common.map(([, at]) => at)));
}

const split = (text) => text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];

/** The longest common subsequence, as pairs of indexes. */
function longest(one, other) {
  const width = other.length + 1;
  const table = new Uint16Array((one.length + 1) * width);
  for (let i = one.length - 1; i >= 0; i -= 1) {
    for (let j = other.length - 1; j >= 0; j -= 1) {
      table[i * width + j] = one[i] === other[j] ? table[(i + 1) * width + j + 1] + 1 : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < one.length && j < other.length;) {
    if (one[i] === other[j]) { pairs.push([i, j]); i += 1; j += 1; }
    else if (table[(i + 1) * width + j] >= table[i * width + j + 1]) i += 1;
    else j += 1;
  }
  return pairs;
}

function pieces(words, common) {
  const made = [];
  words.forEach((text, index) => {
    // A blank between two marked words is marked along with them.
    const is_blank = /^\s+$/.test(text) && index > 0 && !common.has(index - 1) && index + 1 < words.length && !common.has(index + 1);
    const is_own = !common.has(index) || is_blank;
    const last = made.at(-1);
    if (last && last.is_own === is_own) last.text += text;
    else made.push({ text, is_own });
  });
  return made;
}
