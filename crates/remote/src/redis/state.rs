//! What a key is, as a few words that two looks can compare.
//!
//! `DUMP` does not do for that: a hash or a set of many members comes in any order, and the same value may be encoded in two ways. So a script
//! reads the value in full on the server, brings what has no order into one, and gives its digest. Streams are told by all that `XINFO` knows of
//! them. Only values of modules are compared by their `DUMP`. It costs the server a pass over the value, and a sort for sets and hashes.

use serde::{Deserialize, Serialize};

/// What a key is: the digest of its value, and when it goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// The kind and the digest of the value; none if there is no such key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<String>,
    /// When it goes by itself, in milliseconds since 1970, by the server's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) goes_at_ms: Option<i64>,
}

impl State {
    pub(super) const ABSENT: Self = Self {
        value: None,
        goes_at_ms: None,
    };

    /// Reads what the script says of a key: `KIND:DIGEST TIME`.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (value, time) = text.split_once(' ')?;
        let time: i64 = time.parse().ok()?;
        Some(if value.is_empty() {
            Self::ABSENT
        } else {
            Self {
                value: Some(value.to_owned()),
                goes_at_ms: (time >= 0).then_some(time),
            }
        })
    }

    /// Says what is left of it at a moment: a key whose time has come is not there.
    pub(super) fn at(&self, now_ms: i64) -> Self {
        if self.goes_at_ms.is_some_and(|goes_at| goes_at <= now_ms) {
            Self::ABSENT
        } else {
            self.clone()
        }
    }
}

/// Tells what a key is. `sha1hex` is all that a script has for a digest; nobody is kept from meaning harm by it.
const STATE: &str = r"
local function joined(list)
  local out = {}
  for i = 1, #list do out[i] = #list[i] .. ':' .. list[i] end
  return table.concat(out)
end
local function told(value)
  if type(value) ~= 'table' then return tostring(value) end
  local out, i = {}, 1
  while i <= #value do
    if value[i] == 'radix-tree-keys' or value[i] == 'radix-tree-nodes' then
      i = i + 2
    else
      out[#out + 1] = told(value[i])
      i = i + 1
    end
  end
  return '(' .. joined(out) .. ')'
end
local function state(key)
  local kind = redis.call('TYPE', key)['ok']
  if kind == 'none' then return ' -2' end
  local value
  if kind == 'string' then
    value = redis.call('GET', key)
    -- What counts distinct things keeps the last count beside it: PFCOUNT writes that, and it says nothing.
    if string.sub(value, 1, 4) == 'HYLL' and #value >= 16 then
      value = string.sub(value, 1, 8) .. string.sub(value, 17)
    end
  elseif kind == 'list' then
    value = joined(redis.call('LRANGE', key, 0, -1))
  elseif kind == 'set' then
    local list = redis.call('SMEMBERS', key)
    table.sort(list)
    value = joined(list)
  elseif kind == 'hash' then
    local flat, list = redis.call('HGETALL', key), {}
    for i = 1, #flat, 2 do list[#list + 1] = joined({flat[i], flat[i + 1]}) end
    table.sort(list)
    value = joined(list)
  elseif kind == 'zset' then
    value = joined(redis.call('ZRANGE', key, 0, -1, 'WITHSCORES'))
  elseif kind == 'stream' then
    value = told(redis.call('XINFO', 'STREAM', key, 'FULL', 'COUNT', 0))
  else
    value = redis.call('DUMP', key)
  end
  return kind .. ':' .. redis.sha1hex(value) .. ' ' .. string.format('%.0f', redis.call('PEXPIRETIME', key))
end
local all = {}
";

/// Looks at the keys.
pub(super) fn look_script() -> String {
    format!("{STATE} for i = 1, #KEYS do all[i] = state(KEYS[i]) end return all")
}

/// Looks at the keys but the first one, and writes what they are into that one, which goes after so many milliseconds.
pub(super) fn mark_script() -> String {
    format!(
        "{STATE} for i = 2, #KEYS do all[i - 1] = state(KEYS[i]) redis.call('RPUSH', KEYS[1], all[i - 1]) end \
         redis.call('PEXPIRE', KEYS[1], ARGV[1]) return all"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_script_says_is_read() {
        assert_eq!(State::read(b" -2"), Some(State::ABSENT));
        let value = Some("string:ab".to_owned());
        let lasting = State {
            value,
            goes_at_ms: None,
        };
        assert_eq!(State::read(b"string:ab -1"), Some(lasting.clone()));
        let going = State {
            goes_at_ms: Some(1000),
            ..lasting
        };
        assert_eq!(State::read(b"string:ab 1000"), Some(going.clone()));
        assert_eq!(going.at(999), going);
        assert_eq!(going.at(1000), State::ABSENT);
        for bad in [&b""[..], b"string:ab", b"string:ab x", b"\xff 1"] {
            assert_eq!(State::read(bad), None);
        }
    }
}
