//! Roles of Kubernetes, bindings of Google Cloud, role definitions of Azure.

use super::{Alarms, any, member};
use crate::value::{Kind, Node};

/// Looks at a table that may be an object of Kubernetes' access control.
pub(super) fn kubernetes<'n>(node: &'n Node, alarms: &mut Alarms<'_, 'n>) {
    let group = node.named("apiVersion").and_then(Node::as_text);
    if !group.is_some_and(|group| group.starts_with("rbac.authorization.k8s.io/")) {
        return;
    }
    match node.named("kind").and_then(Node::as_text) {
        Some("ClusterRole" | "Role") => rules(node, alarms),
        Some("ClusterRoleBinding" | "RoleBinding") => binding(node, alarms),
        Some(_) | None => {}
    }
}

fn rules<'n>(node: &'n Node, alarms: &mut Alarms<'_, 'n>) {
    let Some(Node {
        kind: Kind::List(rules),
        ..
    }) = node.named("rules")
    else {
        return;
    };
    for rule in rules {
        let all = |name: &str| {
            rule.named(name)
                .is_some_and(|node| any(node, |text| text == "*").is_some())
        };
        let changes = rule.named("verbs").is_some_and(|node| {
            any(node, |verb| !matches!(verb, "get" | "list" | "watch")).is_some()
        });
        let found = match (all("verbs"), all("resources"), all("apiGroups")) {
            (true, true, _) => "this rule allows every verb (`*`) on every resource (`*`)",
            (false, true, true) if changes => {
                "this rule allows changes of every resource (`*`) of every group (`*`)"
            }
            _ => continue,
        };
        alarms.add(
            "rules",
            rule,
            found,
            "list the verbs, resources and groups that are needed",
        );
    }
}

fn binding<'n>(node: &'n Node, alarms: &mut Alarms<'_, 'n>) {
    let role = node.named("roleRef").and_then(|role| role.named("name"));
    if let Some(role) = role.filter(|role| role.as_text() == Some("cluster-admin")) {
        alarms.add(
            "roleRef",
            role,
            "`cluster-admin` may do everything",
            "bind a role with the rights that are needed",
        );
    }
    let Some(Node {
        kind: Kind::List(subjects),
        ..
    }) = node.named("subjects")
    else {
        return;
    };
    for subject in subjects {
        let name = subject.named("name").and_then(Node::as_text);
        if let Some(name @ ("system:anonymous" | "system:unauthenticated")) = name {
            alarms.add(
                "subjects",
                subject,
                format!("`{name}` is everybody who is not logged in"),
                "bind it to a user, a group or a service account",
            );
        }
    }
}

/// Looks at a table that may be a binding: a role, and who has it.
pub(super) fn google<'n>(node: &'n Node, alarms: &mut Alarms<'_, 'n>) {
    let Some(role) = node.named("role") else {
        return;
    };
    let is_role = |text: &str| {
        text.starts_with("roles/")
            || text.starts_with("projects/")
            || text.starts_with("organizations/")
    };
    let Some((name, members)) = member(node, "members").or_else(|| member(node, "member")) else {
        return;
    };
    if !role.as_text().is_some_and(is_role) {
        return;
    }
    if let Some(who) = any(members, |text| {
        matches!(text, "allUsers" | "allAuthenticatedUsers")
    }) {
        alarms.add(
            name,
            members,
            format!("everybody has this role: `{who}`"),
            "name users, groups or service accounts",
        );
    }
    if role.as_text() == Some("roles/owner") {
        alarms.add(
            "role",
            role,
            "`roles/owner` may do everything in the project",
            "give the roles that are needed",
        );
    }
}

/// Looks at a table that may be a role definition of Azure.
pub(super) fn azure<'n>(node: &'n Node, alarms: &mut Alarms<'_, 'n>) {
    if member(node, "AssignableScopes").is_none() {
        return;
    }
    let own = member(node, "Actions").map(|(_, actions)| actions);
    let listed = member(node, "permissions").and_then(|(_, permissions)| match &permissions.kind {
        Kind::List(items) => items
            .iter()
            .find_map(|item| member(item, "actions").map(|(_, actions)| actions)),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::Map(_) => None,
    });
    if let Some(actions) = own
        .or(listed)
        .filter(|actions| any(actions, |text| text == "*").is_some())
    {
        alarms.add(
            "",
            actions,
            "this role may do everything (`*`)",
            "list the actions that are needed",
        );
    }
}
