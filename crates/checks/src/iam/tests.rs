//! Policies without a limit, and such that have one.

use proptest::prelude::*;

use super::*;
use crate::finding::Place;

fn run(text: &str) -> Vec<(String, u32, u32, String)> {
    let tree = Tree::read(Format::Yaml, text.as_bytes()).unwrap();
    let told = |finding: Finding| {
        let Place { line, column } = finding.place.unwrap();
        assert!(finding.remedy.is_some());
        (finding.key.unwrap(), line, column, finding.found)
    };
    let found: Vec<_> = check(&tree).into_iter().map(told).collect();
    assert!(found.is_empty() || may_be_in(text.as_bytes()), "{text}");
    found
}

#[test]
fn a_text_without_any_of_the_words_is_not_parsed_for_them() {
    for text in [
        "{\"a\": [1, \"noted\", \"around\"]}",
        "role: roles/viewer\n",
        "",
    ] {
        assert!(!may_be_in(text.as_bytes()), "{text}");
    }
    for text in [
        "'*'",
        "\"\\x2a\"",
        "statement: {effect: allow, not_actions: [a]}",
        "notaction: x",
    ] {
        assert!(may_be_in(text.as_bytes()), "{text}");
    }
}

#[test]
fn rights_without_a_limit_are_told_with_their_place() {
    #[rustfmt::skip]
    let table = [
        ("{\"Version\": \"2012-10-17\",\n \"Statement\": [{\"Effect\": \"Allow\",\n  \"Action\": \"*\", \"Resource\": \"*\"}]}", "Statement[0].Action", 3, 13, "`Allow` of `*` on every resource (`*`)"),
        ("Statement:\n  Effect: Allow\n  Action: [s3:GetObject, 's3:*']\n  Resource: ['*']\n", "Statement.Action", 3, 11, "`Allow` of `s3:*` on every resource (`*`)"),
        ("Statement:\n- Effect: Allow\n  NotAction: iam:*\n  Resource: arn:aws:s3:::b\n", "Statement[0].NotAction", 3, 14, "`Allow` with `NotAction` gives every right but these"),
        ("Statement:\n- Effect: Allow\n  Principal: {AWS: '*'}\n  Action: s3:GetObject\n  Resource: arn:aws:s3:::b/*\n", "Statement[0].Principal", 3, 20, "everybody in the world has these rights: the principal is `*`, and there is no condition"),
        ("Resources:\n  R:\n    Type: AWS::IAM::Role\n    Properties:\n      Policies:\n      - PolicyDocument:\n          Statement:\n          - {Effect: Allow, Action: '*', Resource: '*'}\n", "Resources.R.Properties.Policies[0].PolicyDocument.Statement[0].Action", 8, 37, "`Allow` of `*` on every resource (`*`)"),
        ("{\"data\": {\"aws_iam_policy_document\": {\"p\": {\"statement\": [{\"actions\": [\"*\"], \"resources\": [\"*\"]}]}}}}", "data.aws_iam_policy_document.p.statement[0].actions", 1, 71, "`Allow` of `*` on every resource (`*`)"),
        ("policy: '{\"Statement\": [{\"Effect\": \"Allow\", \"Action\": \"*\", \"Resource\": \"*\"}]}'\n", "policy", 1, 9, "`Allow` of `*` on every resource (`*`)"),
        ("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nrules:\n- apiGroups: ['']\n  resources: ['*']\n  verbs: ['*']\n", "rules", 4, 3, "this rule allows every verb (`*`) on every resource (`*`)"),
        ("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nrules:\n- {apiGroups: ['*'], resources: ['*'], verbs: [delete]}\n", "rules", 4, 3, "this rule allows changes of every resource (`*`) of every group (`*`)"),
        ("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nroleRef: {kind: ClusterRole, name: cluster-admin}\n", "roleRef", 3, 36, "`cluster-admin` may do everything"),
        ("apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nroleRef: {name: view}\nsubjects: [{kind: User, name: 'system:anonymous'}]\n", "subjects", 4, 12, "`system:anonymous` is everybody who is not logged in"),
        ("bindings:\n- role: roles/storage.objectViewer\n  members: [allUsers]\n", "bindings[0].members", 3, 12, "everybody has this role: `allUsers`"),
        ("bindings:\n- role: roles/owner\n  members: ['user:a@b.test']\n", "bindings[0].role", 2, 9, "`roles/owner` may do everything in the project"),
        ("Name: all\nActions: ['*']\nAssignableScopes: [/subscriptions/x]\n", "", 2, 10, "this role may do everything (`*`)"),
    ];
    for (text, key, line, column, found) in table {
        assert_eq!(
            run(text),
            [(key.to_owned(), line, column, found.to_owned())],
            "{text}"
        );
    }
}

#[test]
fn rights_with_a_limit_are_let_through() {
    for text in [
        "Statement: [{Effect: Deny, Action: '*', Resource: '*', Principal: '*'}]\n",
        "Statement: [{Effect: Allow, Action: 's3:Get*', Resource: '*'}]\n",
        "Statement: [{Effect: Allow, Action: 's3:*', Resource: 'arn:aws:s3:::mine/*'}]\n",
        "Statement: [{Effect: Allow, Action: 's3:GetObject', Resource: '*', Principal: '*', Condition: {Bool: {x: y}}}]\n",
        "Statement: [{Effect: Allow, Action: 'kms:*', Resource: '*', Principal: {AWS: 'arn:aws:iam::1:root'}}]\n",
        "Statement: [{Effect: Allow, Action: 'sts:AssumeRole', Principal: {Service: ec2.amazonaws.com}}]\n",
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nrules: [{apiGroups: ['*'], resources: ['*'], verbs: [get, list, watch]}]\n",
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nrules: [{apiGroups: [''], resources: [pods], verbs: ['*']}]\n",
        "kind: ClusterRole\nrules: [{resources: ['*'], verbs: ['*']}]\n",
        "role: admin\nmembers: [allUsers]\n",
        "effect: allow\naction: jump\nresource: '*'\n",
        "Actions: ['*']\n",
    ] {
        assert_eq!(run(text), [], "{text}");
    }
}

#[test]
fn every_document_is_looked_at() {
    let text = "a: 1\n---\nStatement: {Effect: Allow, Action: '*', Resource: '*'}\n";
    assert_eq!(run(text)[0].0, "[1].Statement.Action");
}

#[test]
fn json_in_json_ends() {
    let mut text =
        r#"{"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}"#.to_owned();
    for _ in 0..6 {
        text = serde_json::json!({"Statement": [], "policy": text}).to_string();
    }
    assert_eq!(run(&text), []);
}

proptest! {
    #[test]
    fn any_text_is_looked_at(text in "(Effect: Allow|Action|Resource|Principal|role|members|kind|[:\\[\\]{}\\-\", \n*']){0,20}") {
        if let Ok(tree) = Tree::read(Format::Yaml, text.as_bytes()) {
            check(&tree);
        }
    }
}
