//! What we have to say, as each agent understands it.
//!
//! Refusal is exit code 2 with one line on standard error and nothing on standard output: the one form that most agents obey.
//! Cline wants JSON instead. What the model is to know goes into the field that the agent reads, or is not said: an agent that
//! drops an answer for a key that it does not know would let the tool run.

use serde_json::{Value, json};

use crate::Agent;

/// What we have to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Nothing: it goes on.
    GoOn,
    /// It goes on, and the model is told.
    Tell(String),
    /// It goes on, and the user and the model are told, loudly.
    Warn(String),
    /// It must not happen.
    Refuse(String),
}

/// What the process says and how it ends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reply {
    /// The exit code.
    pub code: u8,
    /// What goes to standard output.
    pub output: String,
    /// What goes to standard error.
    pub errors: String,
}

impl Answer {
    /// Words it for an agent, as the answer to an event of this name.
    pub fn for_agent(&self, agent: Agent, event: &str) -> Reply {
        let (text, is_loud) = match self {
            Self::GoOn => (None, false),
            Self::Tell(text) => (Some(text), false),
            Self::Warn(text) => (Some(text), true),
            Self::Refuse(why) => return refused(agent, why),
        };
        let output = match agent {
            Agent::ClaudeCode | Agent::Codex | Agent::Qwen | Agent::Gemini => {
                text.map(|text| spoken(agent, event, text, is_loud))
            }
            Agent::Cursor => text.map(|text| json!({"additional_context": text})),
            Agent::Cline => Some(json!({"cancel": false})),
            // The plugin passes the text on as it is.
            Agent::OpenCode => {
                return Reply {
                    output: text.cloned().unwrap_or_default(),
                    ..Reply::default()
                };
            }
            Agent::Copilot => None,
        };
        let errors = match agent {
            // Where no field is known to reach anybody, at least the log has it.
            Agent::Copilot | Agent::Cline | Agent::Cursor => {
                let loud = text.filter(|_| is_loud);
                loud.map(|text| line(text)).unwrap_or_default()
            }
            Agent::ClaudeCode | Agent::Codex | Agent::Gemini | Agent::Qwen | Agent::OpenCode => {
                String::new()
            }
        };
        Reply {
            code: 0,
            output: output.map(|value| value.to_string()).unwrap_or_default(),
            errors,
        }
    }
}

fn spoken(agent: Agent, event: &str, text: &str, is_loud: bool) -> Value {
    let mut value = json!({});
    if takes_context(agent, event)
        && let Some(map) = value.as_object_mut()
    {
        let specific = json!({"hookEventName": event, "additionalContext": text});
        map.insert("hookSpecificOutput".to_owned(), specific);
    }
    if is_loud && let Some(map) = value.as_object_mut() {
        map.insert("systemMessage".to_owned(), text.into());
    }
    value
}

/// Tells whether an agent hands what we say to the model in answer to this event.
fn takes_context(agent: Agent, event: &str) -> bool {
    match agent {
        Agent::Gemini => matches!(event, "AfterTool" | "BeforeAgent" | "SessionStart"),
        Agent::ClaudeCode | Agent::Codex | Agent::Qwen => matches!(
            event,
            "PreToolUse"
                | "PostToolUse"
                | "PostToolUseFailure"
                | "UserPromptSubmit"
                | "SessionStart"
        ),
        Agent::OpenCode | Agent::Copilot | Agent::Cline | Agent::Cursor => false,
    }
}

fn refused(agent: Agent, why: &str) -> Reply {
    if agent == Agent::Cline {
        let output = json!({"cancel": true, "errorMessage": line(why).trim_end()}).to_string();
        return Reply {
            code: 0,
            output,
            errors: line(why),
        };
    }
    Reply {
        code: 2,
        output: String::new(),
        errors: line(why),
    }
}

/// Makes one line of a text, and never an empty one.
fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    if text.is_empty() {
        "backout: refused\n".to_owned()
    } else {
        format!("{text}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_exit_code_2_with_one_line_and_no_output() {
        for agent in Agent::ALL {
            let reply = Answer::Refuse("two\nlines".into()).for_agent(agent, "PreToolUse");
            assert_eq!(reply.errors, "two lines\n");
            if agent == Agent::Cline {
                let expected = r#"{"cancel":true,"errorMessage":"two lines"}"#;
                assert_eq!((reply.code, reply.output.as_str()), (0, expected));
            } else {
                assert_eq!((reply.code, reply.output.as_str()), (2, ""), "{agent}");
            }
        }
        let empty = Answer::Refuse(String::new()).for_agent(Agent::Codex, "PreToolUse");
        assert!(!empty.errors.trim().is_empty());
    }

    #[test]
    fn codex_is_told_nothing_that_it_does_not_know() {
        let reply = Answer::Warn("look".into()).for_agent(Agent::Codex, "PostToolUse");
        let value: Value = serde_json::from_str(&reply.output).unwrap();
        let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["hookSpecificOutput", "systemMessage"]);
        let stop = Answer::Tell("look".into()).for_agent(Agent::Codex, "Stop");
        assert_eq!(stop.output, "{}");
    }
}
