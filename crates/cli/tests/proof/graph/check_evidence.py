"""Checks a pack of evidence without the program: sums, the chain of hashes, the story against the records.

Shares no code with the program; BLAKE3 is written out below. Usage: check_evidence.py PACK. Says what is wrong on stderr, with exit code 1.
"""

import hashlib
import json
import pathlib
import re
import struct
import sys

IV = [0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19]
PERMUTE = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8]
START, END, PARENT, ROOT = 1, 2, 4, 8
MASK = 0xFFFFFFFF


def compress(chaining, words, counter, length, flags):
    s = chaining + IV[:4] + [counter & MASK, (counter >> 32) & MASK, length, flags]

    def mix(a, b, c, d, x, y):
        s[a] = (s[a] + s[b] + x) & MASK
        s[d] ^= s[a]
        s[d] = ((s[d] >> 16) | (s[d] << 16)) & MASK
        s[c] = (s[c] + s[d]) & MASK
        s[b] ^= s[c]
        s[b] = ((s[b] >> 12) | (s[b] << 20)) & MASK
        s[a] = (s[a] + s[b] + y) & MASK
        s[d] ^= s[a]
        s[d] = ((s[d] >> 8) | (s[d] << 24)) & MASK
        s[c] = (s[c] + s[d]) & MASK
        s[b] ^= s[c]
        s[b] = ((s[b] >> 7) | (s[b] << 25)) & MASK

    m = words
    for _ in range(7):
        mix(0, 4, 8, 12, m[0], m[1])
        mix(1, 5, 9, 13, m[2], m[3])
        mix(2, 6, 10, 14, m[4], m[5])
        mix(3, 7, 11, 15, m[6], m[7])
        mix(0, 5, 10, 15, m[8], m[9])
        mix(1, 6, 11, 12, m[10], m[11])
        mix(2, 7, 8, 13, m[12], m[13])
        mix(3, 4, 9, 14, m[14], m[15])
        m = [m[i] for i in PERMUTE]
    return [s[i] ^ s[i + 8] for i in range(8)]


def chunk(data, counter, is_root):
    chaining = IV[:]
    blocks = [data[i : i + 64] for i in range(0, len(data), 64)] or [b""]
    for at, block in enumerate(blocks):
        flags = START if at == 0 else 0
        if at == len(blocks) - 1:
            flags |= END | (ROOT if is_root else 0)
        words = list(struct.unpack("<16I", block.ljust(64, b"\0")))
        chaining = compress(chaining, words, counter, len(block), flags)
    return chaining


def tree(data, counter, is_root):
    if len(data) <= 1024:
        return chunk(data, counter, is_root)
    left = 1024
    while left * 2 < len(data):
        left *= 2
    words = tree(data[:left], counter, False) + tree(data[left:], counter + left // 1024, False)
    return compress(IV[:], words, 0, 64, PARENT | (ROOT if is_root else 0))


def blake3(data):
    return struct.pack("<8I", *tree(data, 0, True))


def fail(what):
    print(what, file=sys.stderr)
    sys.exit(1)


assert blake3(b"").hex() == "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"

root = pathlib.Path(sys.argv[1])
files = {str(path.relative_to(root)): path for path in root.rglob("*") if not path.is_dir()}
for needed in ["manifest.json", "SHA256SUMS", "journal.jsonl", "timeline.jsonl", "artifacts/trace.json"]:
    if needed not in files:
        fail(f"{needed} is missing")

# The sums, twice told.
manifest = json.loads(files["manifest.json"].read_text())
listed = {it["path"]: it for it in manifest["files"]}
sums = dict(reversed(line.split("  ", 1)) for line in files["SHA256SUMS"].read_text().splitlines())
if set(sums) != set(files) - {"SHA256SUMS"} or set(listed) != set(sums) - {"manifest.json"}:
    fail("the lists and the files differ")
for name, want in sums.items():
    data = files[name].read_bytes()
    if hashlib.sha256(data).hexdigest() != want:
        fail(f"{name} is not what its sum says")
    if name in listed and (listed[name]["sha256"] != want or listed[name]["bytes"] != len(data)):
        fail(f"{name} is not what the manifest says")

# The chain, from the bytes of the records.
anchors = manifest["journal"]
previous = bytes.fromhex(anchors["before"])
hashes, kinds = {}, {}
expected = anchors["first"]
for line in files["journal.jsonl"].read_text().splitlines():
    found = re.fullmatch(r'\{"lsn":(\d+),"at":(-?\d+),(.*),"hash":"([0-9a-f]{64})"\}', line)
    if not found:
        fail("a record cannot be read")
    lsn, at = int(found[1]), int(found[2])
    body = ("{" + found[3] + "}").encode()
    link = blake3(previous + struct.pack("<Q", lsn) + struct.pack("<q", at) + body)
    if lsn != expected or link.hex() != found[4]:
        fail(f"the chain is broken at record {lsn}")
    previous, expected = link, expected + 1
    hashes[lsn] = found[4]
    kinds.setdefault(json.loads(line)["event"], []).append(json.loads(line))
if len(hashes) != anchors["records"] or previous.hex() != anchors["head"]:
    fail("the chain does not end where the manifest says")

# The story: every event is of a record, in order; the trace has the same; a rollback begins, acts and ends.
timeline = [json.loads(line) for line in files["timeline.jsonl"].read_text().splitlines()]
trace = json.loads(files["artifacts/trace.json"].read_text())
if [it["event_id"] for it in timeline] != [it["event_id"] for it in trace["events"]]:
    fail("the timeline and the trace differ")
if len({it["event_id"] for it in timeline}) != len(timeline) or len(timeline) != manifest["events"]:
    fail("an event is there twice, or not at all")
last = 0
told = set()
acts = {}
for event in timeline:
    own = event if "lsn" in event else event["payload"]
    if hashes.get(own["lsn"]) != own["record"] or own["lsn"] < last:
        fail(f"event {event['event_id']} is of no record, or out of order")
    last = own["lsn"]
    told.add(last)
    name, payload = event["event_type"], event["payload"]
    if name == "rollback.initiated":
        acts[payload["rollback_id"]] = {it["operation"]: "pending" for it in payload["will_undo"]}
    elif name == "rollback.action":
        acts[payload["rollback_id"]][payload["operation"]] = payload["status"]
    elif name == "rollback.completed":
        states = list(acts[payload["rollback_id"]].values())
        if states.count("completed") != payload["completed"] or states.count("failed") != payload["failed"]:
            fail("a rollback ended otherwise than its actions")
# What the journal says was taken back is told as taken back: nothing is left out.
undone = {it["id"] for it in kinds.get("undone", [])}
completed = {
    it["payload"]["operation"]
    for it in timeline
    if it["event_type"] == "rollback.action" and it["payload"]["status"] == "completed"
}
redone = {it["id"] for it in kinds.get("redone", [])}
if not undone - redone <= completed | {it["payload"]["operation"] for it in timeline if it["event_type"] == "rollback.action"}:
    fail("something was taken back that no event tells of")
for kind in ("intent", "noted", "task-rollback"):
    for record in kinds.get(kind, []):
        if record["lsn"] not in told:
            fail(f"record {record['lsn']} is not told")
print(json.dumps({"records": len(hashes), "events": len(timeline), "rollbacks": len(acts)}))
