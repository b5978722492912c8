//! The small scripts that the settings lead to, with absolute paths in them.

use std::path::PathBuf;

use super::{Generated, Places, quoted, text_of};
use crate::Agent;

/// What a script says if this program is gone: every command fails then, and somebody has to know why.
fn missing(program: &str, agent: Agent) -> String {
    format!(
        "[ -x {program} ] || {{ echo \"backout: \"{program}\" is gone, so nothing can be run; take the protection away with \\`backout init {agent} --remove\\`, or put the program back\" >&2; exit 127; }}"
    )
}

fn words(places: &Places) -> (String, String) {
    let program = quoted(&text_of(&places.program));
    let state = places.state_dir.as_ref();
    let state = state.map(|directory| format!(" --state-dir {}", quoted(&text_of(directory))));
    (program, state.unwrap_or_default())
}

/// What Claude Code runs every command by. The whole command comes as one argument.
pub(super) fn shell(places: &Places, path: PathBuf) -> Generated {
    let (program, state) = words(places);
    let agent = Agent::ClaudeCode;
    let text = format!(
        "#!/bin/sh\n# Made by `backout init {agent}`: runs a shell command so that it can be undone.\n{}\nexec {program}{state} seam {agent} \"\" \"$@\"\n",
        missing(&program, agent)
    );
    Generated {
        path,
        text,
        is_executable: true,
    }
}

/// What bash reads before it runs a command that somebody gave it as an argument.
pub(super) fn bash_env(places: &Places, agent: Agent) -> Generated {
    let (program, state) = words(places);
    let own = quoted(&format!("{} ", text_of(&places.program)));
    let text = format!(
        "# Made by `backout init {agent}`: runs a shell command so that it can be undone.\n\
         if [ -n \"${{BASH_EXECUTION_STRING-}}\" ] && [ -z \"${{BACKOUT_SHELL-}}\" ] && [ -z \"${{BACKOUT_RUN-}}\" ]; then\n\
         \x20 case \"$BASH_EXECUTION_STRING\" in\n\
         \x20   {program}*|{own}*) ;;\n\
         \x20   *)\n\
         \x20     {}\n\
         \x20     export BACKOUT_SHELL={agent}\n\
         \x20     exec {program}{state} seam {agent} \"$BASH\" \"$BASH_EXECUTION_STRING\" \"$0\" \"$@\" ;;\n\
         \x20 esac\n\
         fi\n",
        missing(&program, agent)
    );
    Generated {
        path: places.bash_env(),
        text,
        is_executable: false,
    }
}

/// A hook of Cline's: the event's name stands in the file's.
pub(super) fn cline(places: &Places, event: &str) -> String {
    let line = places.line(Agent::Cline);
    format!("#!/bin/sh\n# Made by `backout init cline`.\nexec {line} {event}\n")
}

/// The plugin of `OpenCode`. It asks us before and after each tool, and throws on anything but a clean end.
pub(super) fn opencode(places: &Places) -> String {
    let mut command = vec![text_of(&places.program)];
    command.extend(places.words(Agent::OpenCode));
    let command = serde_json::to_string(&command).unwrap_or_default();
    let seam = serde_json::to_string(&text_of(&places.bash_env())).unwrap_or_default();
    PLUGIN
        .replace("@COMMAND@", &command)
        .replace("@SEAM@", &seam)
}

const PLUGIN: &str = r#"// Made by `backout init opencode`: every write of the agent can be undone.
import { spawn } from "node:child_process"

const COMMAND = @COMMAND@
const SEAM = @SEAM@
const WRITERS = ["write", "edit", "multiedit", "patch", "apply_patch", "bash"]
const LIMIT_MS = 60000

const ask = (event) =>
  new Promise((resolve, reject) => {
    const child = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "pipe"] })
    let said = ""
    let why = ""
    const late = setTimeout(() => {
      child.kill("SIGKILL")
      reject(new Error("backout: the hook did not answer in time, so the tool was not run"))
    }, LIMIT_MS)
    child.stdout.on("data", (bytes) => (said += bytes))
    child.stderr.on("data", (bytes) => (why += bytes))
    child.stdin.on("error", () => {})
    child.on("error", (error) => {
      clearTimeout(late)
      reject(new Error("backout: the hook could not be run, so the tool was not run: " + error.message))
    })
    child.on("close", (code) => {
      clearTimeout(late)
      if (code === 0) resolve(said)
      else reject(new Error(why.trim() || "backout: the hook failed with code " + code + ", so the tool was not run"))
    })
    child.stdin.end(JSON.stringify(event))
  })

export const Backout = async ({ directory }) => {
  const parents = {}
  const whose = (session) => {
    let root = session
    while (parents[root]) root = parents[root]
    return root === session ? { session_id: session } : { session_id: root, agent_id: session }
  }
  const used = (name, input, args) => ({
    hook_event_name: name, cwd: directory, ...whose(input.sessionID),
    tool_name: input.tool, tool_input: args, tool_use_id: input.callID,
  })
  return {
    event: async ({ event }) => {
      const info = event.properties && event.properties.info
      if (event.type === "session.created" && info && info.parentID) parents[info.id] = info.parentID
      if (event.type === "session.idle") {
        const session = event.properties.sessionID
        const name = parents[session] ? "SubagentStop" : "Stop"
        await ask({ hook_event_name: name, cwd: directory, ...whose(session) }).catch(() => {})
      }
    },
    "chat.message": async (input, output) => {
      if (parents[input.sessionID]) return
      const texts = (output.parts || []).filter((part) => part.type === "text" && !part.synthetic)
      const prompt = texts.map((part) => part.text).join("\n")
      const own = output.message && output.message.id
      await ask({ hook_event_name: "UserPromptSubmit", cwd: directory, session_id: input.sessionID, prompt, submitted_id: own })
    },
    "tool.execute.before": async (input, output) => {
      if (WRITERS.includes(input.tool)) await ask(used("PreToolUse", input, output.args))
    },
    "tool.execute.after": async (input, output) => {
      if (!WRITERS.includes(input.tool)) return
      const said = await ask(used("PostToolUse", input, input.args)).catch((error) => String(error.message))
      if (said.trim()) output.output = (output.output || "") + "\n" + said.trim()
    },
    "shell.env": async (input, output) => {
      const { session_id, agent_id } = whose(input.sessionID || "")
      output.env.BASH_ENV = SEAM
      output.env.SHLVL = "2"
      output.env.BACKOUT_SESSION = session_id
      if (agent_id) output.env.BACKOUT_AGENT_ID = agent_id
      if (input.callID) output.env.BACKOUT_CALL = input.callID
    },
  }
}
"#;
