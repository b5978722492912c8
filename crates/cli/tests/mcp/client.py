"""Talks to `backout mcp` with the official client, one story at a time.

usage: client.py STORY PROGRAM WORK STATE [MODE]
"""

import asyncio
import json
import os
import re
import sqlite3
import sys
import warnings
from pathlib import Path

import mcp.types as types
from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters

warnings.simplefilter("ignore")
story, program, work, state = sys.argv[1:5]
mode = sys.argv[5] if len(sys.argv) > 5 else "legacy"
work = Path(work)


def client(agent="tester", root=None, roots=None, **more):
    words = ["--state-dir", state]
    if agent:
        words += ["--agent", agent]
    words += ["mcp"]
    for directory in [root] if root else []:
        words += ["--root", str(directory)]
    server = StdioServerParameters(command=program, args=words, cwd=work, env=dict(os.environ))
    if roots is not None:
        async def named(_context):
            return types.ListRootsResult(roots=[types.Root(uri=Path(it).as_uri()) for it in roots])
        more["list_roots_callback"] = named
    return Client(server, mode=mode, read_timeout_seconds=120, **more)


def text(result):
    return "\n".join(it.text for it in result.content)


async def call(session, tool, is_error=False, **arguments):
    result = await session.call_tool(tool, arguments)
    assert result.is_error == is_error, (tool, arguments, text(result))
    assert result.structured_content is not None, tool
    await fits(session, tool, result)
    return result.structured_content, text(result)


schemas = {}


async def fits(session, tool, result):
    """What is said in structure is as the tool's own schema says, errors too: the client looks only at the others."""
    if not schemas:
        for it in (await session.list_tools()).tools:
            Draft202012Validator.check_schema(it.output_schema)
            schemas[it.name] = Draft202012Validator(it.output_schema)
    schemas[tool].validate(result.structured_content)


def short(value):
    return value["id"][:8]


async def every_tool():
    async with client() as it:
        assert it.server_info.name == "backout", it.server_info
        assert it.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25"), it.protocol_version
        tools = {tool.name: tool for tool in (await it.list_tools()).tools}
        print(len(json.dumps([tool.model_dump(mode="json", by_alias=True) for tool in tools.values()])), "bytes of tools")
        assert len(tools) == 23, list(tools)
        hints = {name: tool.annotations for name, tool in tools.items()}
        for name in ["log", "diff", "show", "drift", "graph", "preview_undo"]:
            assert hints[name].read_only_hint and not hints[name].destructive_hint, name
        for name in ["write", "edit", "delete", "move", "run", "sql", "undo"]:
            assert not hints[name].read_only_hint and hints[name].destructive_hint, name
        assert hints["http"].open_world_hint and not hints["write"].open_world_hint
        assert hints["set"].idempotent_hint and not hints["edit"].idempotent_hint

        value, said = await call(it, "write", path="new/a.txt", content="one\n")
        first = short(value)
        assert (work / "new/a.txt").read_text() == "one\n"
        assert first in said and "undo" in said, said
        await call(it, "write", path="new/a.txt", content="two\n", append=True)
        await call(it, "edit", path="new/a.txt", search="one", replace="1")
        assert (work / "new/a.txt").read_text() == "1\ntwo\n"
        await call(it, "edit", patch="--- a/new/a.txt\n+++ b/new/a.txt\n@@ -1,2 +1,2 @@\n-1\n+eins\n two\n")
        assert (work / "new/a.txt").read_text() == "eins\ntwo\n"
        await call(it, "move", **{"from": "new/a.txt", "to": "new/b.txt"})
        (work / "app.toml").write_text("# kept\n[server]\nport = 1 # here\n")
        await call(it, "set", path="app.toml", key="server.port", value=8080)
        assert (work / "app.toml").read_text() == "# kept\n[server]\nport = 8080 # here\n"
        await call(it, "set", path="app.toml", key="server.port", unset=True)
        (work / "x.env").write_text("A=1\n")
        await call(it, "set", path="x.env", key="A", value="two words")
        await call(it, "delete", paths=["new"], recursive=True)
        assert not (work / "new").exists()
        value, said = await call(it, "undo")
        assert (work / "new/b.txt").read_text() == "eins\ntwo\n", said
        assert value["reply"] == "undone" and "as it was before" in said, said
        value, said = await call(it, "redo")
        assert not (work / "new").exists(), said
        await call(it, "undo", paths=["new"])

        value, said = await call(it, "run", command="echo hi; echo bad >&2; echo x > made; exit 3")
        assert value["end"]["exit_code"] == 3 and value["end"]["created"] == 1, value
        assert "stdout:\nhi" in said and "stderr:\nbad" in said and "Exit code 3" in said, said
        value, said = await call(it, "diff", operation=short(value))
        assert "+x" in said, said
        value, said = await call(it, "run", command="echo y > made; false", undo_on_failure=True)
        assert (work / "made").read_text() == "x\n", said
        value, said = await call(it, "run", command="yes | head -c 3000000", directory=".")
        assert "are left out" in said and len(said) < 100_000, len(said)

        value, said = await call(it, "try", command="echo tried > tried; rm made")
        assert not (work / "tried").exists() and "try_end" in said, said
        done, said = await call(it, "try_end", trial=short(value), verdict="apply", only=["tried"])
        assert (work / "tried").read_text() == "tried\n" and (work / "made").exists(), said
        await call(it, "try_end", trial=short(value), verdict="discard")
        await call(it, "try_end", is_error=True, trial="00000000", verdict="apply")

        await call(it, "sql", database="shop.db", statements="CREATE TABLE t(a INTEGER PRIMARY KEY, b)", create=True)
        value, said = await call(it, "sql", database="shop.db", statements="INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        value, said = await call(it, "sql", database="shop.db", statements="SELECT * FROM t")
        assert value["results"][0]["rows"] == [[1, "x"], [2, "y"]] and "2 | y" in said, said
        value, said = await call(it, "sql", database="shop.db", statements="DELETE FROM t")
        await call(it, "undo")
        assert sqlite3.connect(work / "shop.db").execute("SELECT count(*) FROM t").fetchone() == (2,)
        await call(it, "sql", is_error=True, database="postgres://localhost/x", statements="SELECT 1")

        value, said = await call(it, "task", act="begin", name="mine")
        await call(it, "write", path="t.txt", content="t", task="mine")
        await call(it, "run", command="echo t2 > t2.txt", task="mine")
        value, said = await call(it, "log", task="mine")
        assert len(value["operations"]) == 2, said
        await call(it, "task", act="rollback", name="mine")
        assert not (work / "t.txt").exists() and not (work / "t2.txt").exists()
        await call(it, "task", act="begin", name="second")
        await call(it, "write", path="t.txt", content="t", task="second")
        await call(it, "task", act="commit", name="second")
        value, said = await call(it, "task", act="list")
        assert {it["id"] for it in value["tasks"]} == {"mine", "second"}, said

        await call(it, "task", act="begin", name="going")
        await call(it, "write", path="step1", content="1", task="going")
        await call(it, "checkpoint", step=1, steps=2, summary="half", state={"at": 1}, task="going")
        await call(it, "write", path="step2", content="2", task="going")
        value, said = await call(it, "resume", task="going")
        assert (work / "step1").exists() and not (work / "step2").exists(), said
        await call(it, "stage", act="begin", name="build", task="going")
        await call(it, "write", path="built", content="b", task="going")
        value, said = await call(it, "stage", act="end", name="build", failed=True, why="no", task="going")
        assert not (work / "built").exists(), said
        await call(it, "stage", act="list", task="going")
        await call(it, "task", act="commit", name="going")

        (work / "step1").write_text("somebody's")
        value, said = await call(it, "drift")
        assert any("step1" in drift["subject"] for drift in value["open"]) and "step1" in said, said
        context = {
            "meta": {"protocol_version": "1.0.0", "schema_version": "1.0.0", "created_at": "2026-01-01T00:00:00.000Z"},
            "context_id": "550e8400-e29b-41d4-a716-446655440000",
            "root": {"domain": "shop", "environment": "test"},
            "title": "the shop",
            "status": "draft",
        }
        await call(it, "declare", objects=[context])
        value, said = await call(it, "graph")
        assert "the shop" in said, said
        await call(it, "declare", is_error=True, objects=[{"context_id": "no"}])

        await call(it, "checkpoint", name="here", state={"step": 3})
        await call(it, "write", path="t.txt", content="later")
        value, said = await call(it, "preview_undo", checkpoint="here")
        assert value["reply"] == "plan" and (work / "t.txt").read_text() == "later", said
        await call(it, "undo", checkpoint="here")
        assert (work / "t.txt").read_text() == "t"
        await call(it, "checkpoint", name="kept", keep=["."])
        (work / "t.txt").write_text("by somebody else")
        value, said = await call(it, "undo", checkpoint="kept")
        assert (work / "t.txt").read_text() == "t", said

        value, said = await call(it, "write", path="once.txt", content="1", once="k1")
        again, said = await call(it, "write", path="once.txt", content="1", once="k1")
        assert again["is_again"] and again["id"] == value["id"], said
        value, said = await call(it, "show", operation=short(value))
        assert "once.txt" in said, said
        value, said = await call(it, "log", limit=3)
        assert len(value["operations"]) == 3

        resources = (await it.list_resources()).resources
        assert any(str(one.uri) == "backout://log" for one in resources), resources
        templates = (await it.list_resource_templates()).resource_templates
        assert {one.uri_template for one in templates} == {"backout://diff/{operation}", "backout://log/{operation}"}
        read = await it.read_resource("backout://log")
        assert first in read.contents[0].text, read
        read = await it.read_resource(f"backout://diff/{first}")
        assert "+one" in read.contents[0].text, read
        read = await it.read_resource(f"backout://log/{first}")
        assert "a.txt" in read.contents[0].text, read


async def http():
    url = os.environ["SERVICE"]
    async with client() as it:
        value, said = await call(it, "http", method="GET", url=f"{url}/things")
        assert value["status"] == 200 and "things" in said, said
        value, said = await call(it, "http", is_error=True, method="POST", url=f"{url}/things", body="{}", json=True)
        assert "nothing is known that takes it back" in said, said
        value, said = await call(it, "http", is_error=True, method="POST", url=f"{url}/things", body="{}", irreversible=True)
        assert value["code"] == "waits" and "waits for a person" in said, said


async def refused():
    """Whatever leaves the roots, or is not for an agent, is refused, and nothing is changed by it."""
    outside = Path(os.environ["OUTSIDE"])
    (work / "up").symlink_to(outside)
    (work / "file").symlink_to(outside / "secret")
    (work / "inside.txt").write_text("mine\n")
    (work / "shop.db").touch()
    secret = str(outside / "secret")
    before = sorted((str(it), it.read_bytes() if it.is_file() else b"") for it in outside.rglob("*"))
    async with client(agent="other") as other:
        value, _ = await call(other, "write", path="others.txt", content="o")
        theirs = short(value)
        await call(other, "task", act="begin", name="theirs")
        trial, _ = await call(other, "try", command="echo x > tried")
    async with client() as it:
        for tool, arguments in [
            ("write", {"path": secret, "content": "x"}),
            ("write", {"path": "../outside/new", "content": "x"}),
            ("write", {"path": "up/new", "content": "x"}),
            ("write", {"path": "up/deep/new", "content": "x"}),
            ("write", {"path": "file", "content": "x"}),
            ("write", {"path": "a/../../outside/x", "content": "x"}),
            ("write", {"path": "", "content": "x"}),
            ("edit", {"path": "file", "search": "secret", "replace": "x"}),
            ("edit", {"patch": "--- a/up/secret\n+++ b/up/secret\n@@ -1 +1 @@\n-secret\n+x\n"}),
            ("edit", {"patch": "--- a/../outside/secret\n+++ b/../outside/secret\n@@ -1 +1 @@\n-secret\n+x\n"}),
            ("delete", {"paths": [secret]}),
            ("delete", {"paths": ["up/secret"]}),
            ("delete", {"paths": ["."], "recursive": True}),
            ("delete", {"paths": []}),
            ("move", {"from": "inside.txt", "to": "up/inside.txt"}),
            ("move", {"from": secret, "to": "secret"}),
            ("set", {"path": str(outside / "a.json"), "key": "a", "value": 2}),
            ("set", {"path": "up/a.json", "key": "a", "value": 2}),
            ("run", {"command": "true", "directory": str(outside)}),
            ("run", {"command": "true", "directory": "up"}),
            ("try", {"command": "true", "directory": "up"}),
            ("sql", {"database": str(outside / "o.db"), "statements": "SELECT 1"}),
            ("sql", {"database": "up/o.db", "statements": "DELETE FROM t"}),
            ("checkpoint", {"keep": [str(outside)]}),
            ("log", {"path": str(outside)}),
            ("undo", {"operations": [theirs]}),
            ("undo", {"paths": ["others.txt"]}),
            ("undo", {"task": "theirs"}),
            ("redo", {"operations": [theirs]}),
            ("task", {"act": "commit", "name": "theirs"}),
            ("task", {"act": "rollback", "name": "theirs"}),
            ("write", {"path": "x", "content": "x", "task": "theirs"}),
            ("run", {"command": "true", "task": "theirs"}),
            ("try_end", {"trial": short(trial), "verdict": "apply"}),
            ("try_end", {"trial": short(trial), "verdict": "discard"}),
            ("write", {"path": "x", "content": "x", "agent": "other"}),
            ("write", {"path": "x"}),
            ("undo", {"operations": ["zz"]}),
            ("undo", {"operations": [theirs], "task": "theirs"}),
            ("show", {"operation": "ffffffff"}),
            ("diff", {"operation": "../x"}),
        ]:
            value, said = await call(it, tool, is_error=True, **arguments)
            assert said.startswith("Error: ") and value["what"], (tool, arguments, said)
        for tool in ["approve", "reject", "gc", "recover", "doctor", "export", "config", "init", "restore"]:
            try:
                await it.call_tool(tool, {})
                raise AssertionError(tool)
            except Exception as error:
                assert "there is no tool" in str(error), error

        # What a command writes outside is refused at the call, whatever leads there.
        for command in [f"echo x > {secret}", f"echo x > {outside}/new", "echo x > up/new", "echo x >> file", f"rm {secret}",
                        f"mv inside.txt {outside}/", f"ln {secret} linked && echo x > linked", f"mkdir {outside}/d"]:
            value, said = await call(it, "run", command=command)
            assert value["end"]["exit_code"] != 0, (command, said)
            assert "outside of the directories" in said, (command, said)
        # The door to the outside of a command has the same roots, the same name, and nobody decides inside.
        back = f"{program} --state-dir {state}"
        value, said = await call(it, "run", command=f"{back} write --text x {outside}/new")
        assert value["end"]["exit_code"] != 0 and "outside of the directories" in said, said
        value, said = await call(it, "run", command=f"env -u BACKOUT_WITHIN {back} write --text x {outside}/new")
        assert value["end"]["exit_code"] != 0, said
        value, said = await call(it, "run", command=f"{back} --agent other undo {theirs}")
        assert value["end"]["exit_code"] != 0, said
        value, said = await call(it, "run", command=f"{back} gc")
        assert value["end"]["exit_code"] != 0, said
        # A trial may write anywhere in its layer, and applies nothing outside.
        value, said = await call(it, "try", command=f"echo x > {secret}")
        await call(it, "try_end", is_error=True, trial=short(value), verdict="apply")
        # Temporary files are a command's own.
        value, said = await call(it, "run", command="f=$(mktemp) && echo x > $f && rm $f && echo fine")
        assert "fine" in said, said
    now = sorted((str(it), it.read_bytes() if it.is_file() else b"") for it in outside.rglob("*"))
    assert now == before, (before, now)
    assert (work / "others.txt").read_text() == "o"
    assert not (work / "x").exists() and not (work / "tried").exists()


async def waits():
    """A write that a rule asks about waits; rules are not an agent's to change; what a rule took back stays back."""
    (work / "backout.toml").write_text('[protect]\nask = ["deploy/**"]\n[syntax]\n')
    async with client() as it:
        value, said = await call(it, "write", is_error=True, path="deploy/a.yaml", content="a: 1\n")
        assert value["code"] == "waits" and "waits for a person" in said, said
        name = value["operation"][:8]
        assert name in said and not (work / "deploy/a.yaml").exists(), said
        value, said = await call(it, "show", operation=name)
        assert value["operation"]["status"] == "proposed" and "waits for a person" in said, said
        value, said = await call(it, "write", is_error=True, path="deploy/a.yaml", content="a: 1\n", once="k")
        value, said = await call(it, "write", is_error=True, path="deploy/a.yaml", content="a: 1\n", once="k")
        assert value["code"] == "waits", said
        value, said = await call(it, "write", is_error=True, path="bad.json", content="{")
        assert value["code"] == "denied" or "bad.json" in said, said
        for tool, arguments in [
            ("write", {"path": "backout.toml", "content": ""}),
            ("delete", {"paths": ["backout.toml"]}),
            ("move", {"from": "backout.toml", "to": "x.toml"}),
            ("set", {"path": "backout.toml", "key": "protect.ask", "value": []}),
        ]:
            value, said = await call(it, tool, is_error=True, **arguments)
            assert value["code"] == "waits", said
        value, said = await call(it, "run", command="echo > backout.toml")
        assert value["end"]["exit_code"] != 0, said
        value, said = await call(it, "run", is_error=True, command="echo '{' > broken.json")
        assert "redo" not in said and '"reply"' not in said, said
        assert not (work / "broken.json").exists(), said
        value, said = await call(it, "redo", is_error=True)
        assert not (work / "broken.json").exists(), said
        print(name)


async def progress():
    """A command tells how far it is; who cancels it ends it, and what it did is there to be undone."""
    heard = []

    async def on_progress(done, total, message):
        heard.append((done, message))

    async with client() as it:
        result = await it.session.call_tool("run", {"command": "echo first; sleep 2.5; echo last"}, progress_callback=on_progress)
        assert not result.is_error and len(heard) >= 2, heard
        assert [one[0] for one in heard] == sorted(one[0] for one in heard), heard
        assert any("first" in (one[1] or "") for one in heard), heard
        for command in ["echo $$ > pid; sleep 1000", "trap '' TERM; echo $$ > pid; sleep 1000; sleep 1000"]:
            (work / "pid").unlink(missing_ok=True)
            running = asyncio.create_task(it.call_tool("run", {"command": command}))
            while not (work / "pid").exists() or not (work / "pid").read_text().strip():
                await asyncio.sleep(0.02)
            pid = int((work / "pid").read_text())
            running.cancel()
            try:
                await running
            except asyncio.CancelledError:
                pass
            while Path(f"/proc/{pid}").exists():
                await asyncio.sleep(0.02)
            while True:
                value, said = await call(it, "log", limit=1)
                if value["operations"][0]["status"] != "armed":
                    break
                await asyncio.sleep(0.05)
            assert value["operations"][0]["verb"] == "run", said
            await call(it, "undo")
            assert not (work / "pid").exists(), said
        # A statement that never ends.
        sqlite3.connect(work / "s.db").execute("CREATE TABLE t(a)")
        forever = "INSERT INTO t WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x FROM c"
        running = asyncio.create_task(it.call_tool("sql", {"database": "s.db", "statements": forever}))
        await asyncio.sleep(1)
        running.cancel()
        try:
            await running
        except asyncio.CancelledError:
            pass
        # Who is killed leaves a journal beside the database, which the next one that writes takes back.
        for _ in range(100):
            result = await it.call_tool("sql", {"database": "s.db", "statements": "INSERT INTO t VALUES (7)"})
            if not result.is_error:
                break
            assert "locked" in text(result), text(result)
        value, said = await call(it, "sql", database="s.db", statements="SELECT a FROM t")
        assert value["results"][0]["rows"] == [[7]], said


async def roots():
    """The client's roots hold, and change with it."""
    one, two = work / "one", work / "two"
    one.mkdir(), two.mkdir()
    named = [one]
    async with client(roots=named) as it:
        await call(it, "write", path="a.txt", content="a")
        assert (one / "a.txt").exists()
        await call(it, "write", is_error=True, path=str(two / "a.txt"), content="a")
        await call(it, "run", command=f"echo x > {one}/b.txt")
        named[:] = [one, two]
        await it.send_roots_list_changed()
        await call(it, "write", path=str(two / "a.txt"), content="a")
    async with client(roots=[]) as it:
        _, said = await call(it, "write", is_error=True, path="a.txt", content="a")
        assert "root" in said, said
    async with client(roots=[work], root=one) as it:
        await call(it, "write", is_error=True, path=str(two / "b.txt"), content="a")


async def together():
    """Two clients at once, of two names, each with much to do: nothing is lost and each sees its own."""
    async with client(agent="a") as one, client(agent="b") as two:
        calls = []
        for number in range(20):
            for name, session in [("a", one), ("b", two)]:
                calls.append(session.call_tool("write", {"path": f"{name}/{number}.txt", "content": name}))
                calls.append(session.call_tool("write", {"path": f"both/{number}.txt", "content": name}))
        for result in await asyncio.gather(*calls):
            assert not result.is_error, text(result)
        for name, session in [("a", one), ("b", two)]:
            value, _ = await call(session, "log", limit=500)
            mine = [it for it in value["operations"] if it["agent"] == name]
            assert len(mine) == len(value["operations"]) == 40 or len(mine) >= 20, len(mine)
            assert all((work / f"{name}/{number}.txt").read_text() == name for number in range(20))
        assert all((work / f"both/{number}.txt").read_text() in "ab" for number in range(20))


asyncio.run(globals()[story]())
print("done")
