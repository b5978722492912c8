//! Statements of policies of AWS, and of Terraform's `aws_iam_policy_document`.

use backout_config::Segment;

use super::{Alarms, any, member};
use crate::value::{Kind, Node};

/// Looks at a table that may be a statement.
pub(super) fn statement<'n>(node: &'n Node, alarms: &mut Alarms<'_, 'n>) {
    if !is_allow(node, alarms.way) {
        return;
    }
    let either = |one, many| member(node, one).or_else(|| member(node, many));
    let (action, not_action) = (
        either("Action", "Actions"),
        either("NotAction", "not_actions"),
    );
    let (resource, principal) = (
        either("Resource", "Resources"),
        either("Principal", "Principals"),
    );
    if action.is_none() && not_action.is_none() {
        return;
    }
    if let Some((name, node)) = not_action {
        alarms.add(
            name,
            node,
            "`Allow` with `NotAction` gives every right but these",
            "list the actions that are needed under `Action`",
        );
    }
    let everyone = principal.and_then(|(name, node)| Some((name, everyone(node)?)));
    let has_condition =
        member(node, "Condition").is_some_and(|(_, node)| !matches!(node.kind, Kind::Null));
    if let Some((name, node)) = everyone.filter(|_| !has_condition) {
        alarms.add(name, node, "everybody in the world has these rights: the principal is `*`, and there is no condition", "name the accounts, roles or services, or add a condition");
    }
    let is_on_resource = principal.is_some() && everyone.is_none();
    let all = resource.is_some_and(|(_, node)| any(node, |text| text == "*").is_some());
    if let Some((name, node)) = action.filter(|_| all && !is_on_resource)
        && let Some(wild) = any(node, is_wild)
    {
        let found = format!("`Allow` of `{wild}` on every resource (`*`)");
        alarms.add(
            name,
            node,
            found,
            "list the actions and the resources that are needed",
        );
    }
}

/// Whether a table is a statement that allows. Terraform leaves `effect` out.
fn is_allow(node: &Node, way: &[Segment]) -> bool {
    match member(node, "Effect") {
        Some((_, effect)) => effect
            .as_text()
            .is_some_and(|text| text.eq_ignore_ascii_case("allow")),
        None => {
            way.iter()
                .any(|step| *step == Segment::Name("aws_iam_policy_document".to_owned()))
                && member(node, "actions").is_some()
        }
    }
}

/// `*`, `s3:*`: every action, or every one of a service.
fn is_wild(action: &str) -> bool {
    action == "*"
        || action
            .strip_suffix(":*")
            .is_some_and(|service| !service.is_empty())
}

/// The principal that is everybody: `"*"`, `{"AWS": "*"}`, and Terraform's `{"identifiers": ["*"]}`.
fn everyone(node: &Node) -> Option<&Node> {
    if any(node, |text| text == "*").is_some() {
        return Some(node);
    }
    match &node.kind {
        Kind::Map(members) => members
            .iter()
            .map(|(_, node)| node)
            .find(|node| any(node, |text| text == "*").is_some()),
        Kind::List(items) => items
            .iter()
            .filter(|item| matches!(item.kind, Kind::Map(_)))
            .find_map(everyone),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => None,
    }
}
