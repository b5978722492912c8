//! Calls that nothing takes back any more, or never could: told from what was recorded, without a look.

use backout_model::compensation::TemplateError;

use super::facts::filled;
use super::recipe::Answered;
use super::send::Ready;

impl Ready {
    /// Says why nothing takes the call back, if what is known of it by now shows that.
    pub(super) fn no_way_back(&self, answered: Option<&Answered>) -> Option<String> {
        if self.call.before.is_some() {
            return None;
        }
        let rule = self.call.rule.as_ref();
        let Some(inverse) = rule.and_then(|rule| rule.inverse.as_ref()) else {
            return Some("no rule says what answers it".to_owned());
        };
        // The answer can still be found.
        if answered.is_none() && self.is_resolvable() {
            return None;
        }
        let facts = self.facts(answered);
        match filled(inverse, &facts, self.call.timeout_ms) {
            Err(TemplateError::Empty { hole }) => Some(match answered {
                Some(_) => {
                    format!("its inverse needs `{hole}`, and the service did not answer with that")
                }
                None => format!("its inverse needs `{hole}`, and nobody knows the answer"),
            }),
            // What else is wrong can be put right.
            Ok(_) | Err(_) => None,
        }
    }
}
