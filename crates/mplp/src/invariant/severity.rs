//! How grave it is when a rule is broken. Upstream does not say; this table is ours.
//!
//! - **High**: nobody can tell any more what belongs to what: ids, bindings, and what a plan or a session cannot be without. An update that breaks such a rule is refused.
//! - **Medium**: what it says is not what the protocol knows, or an agent works where it must not. It is kept, and told as a drift.
//! - **Low**: something that may be left out is wrong, or something is still missing that may come. Likewise.
//!
//! A rule that is not in the table is high: what nobody weighed is not taken lightly.

use backout_model::Severity;

/// The table, in the order of the files.
pub(super) const TABLE: [(&str, Severity); 61] = [
    ("sa_requires_context", Severity::High),
    ("sa_context_must_be_active", Severity::Medium),
    ("sa_plan_context_binding", Severity::High),
    ("sa_plan_has_steps", Severity::High),
    ("sa_steps_have_valid_ids", Severity::High),
    ("sa_steps_agent_role_if_present", Severity::Low),
    ("sa_trace_not_empty", Severity::Low),
    ("sa_trace_context_binding", Severity::High),
    ("sa_trace_plan_binding", Severity::Medium),
    ("map_session_requires_participants", Severity::High),
    ("map_collab_mode_valid", Severity::Medium),
    ("map_session_id_is_uuid", Severity::High),
    ("map_participants_have_role_ids", Severity::Medium),
    ("map_turn_completion_matches_dispatch", Severity::Low),
    ("map_broadcast_has_receivers", Severity::Low),
    ("map_role_ids_non_empty", Severity::Low),
    ("map_participant_ids_are_non_empty", Severity::Medium),
    ("map_participant_kind_valid", Severity::Medium),
    ("obs_event_id_is_uuid", Severity::High),
    ("obs_event_type_non_empty", Severity::Medium),
    ("obs_event_family_valid", Severity::High),
    ("obs_timestamp_iso_format", Severity::Medium),
    ("obs_pipeline_event_has_pipeline_id", Severity::High),
    ("obs_pipeline_stage_id_non_empty", Severity::Medium),
    ("obs_pipeline_stage_status_valid", Severity::Medium),
    ("obs_graph_event_has_graph_id", Severity::High),
    ("obs_graph_update_kind_valid", Severity::Medium),
    ("obs_runtime_event_has_execution_id", Severity::High),
    ("obs_runtime_executor_kind_valid", Severity::Medium),
    ("obs_runtime_status_valid", Severity::Medium),
    ("integration_tool_event_id_non_empty", Severity::Medium),
    ("integration_tool_kind_valid", Severity::Medium),
    ("integration_tool_invocation_id_uuid", Severity::High),
    ("integration_tool_status_valid", Severity::Medium),
    ("integration_tool_started_at_iso", Severity::Low),
    ("integration_file_path_non_empty", Severity::Medium),
    ("integration_file_change_type_valid", Severity::Medium),
    ("integration_file_timestamp_iso", Severity::Medium),
    ("integration_git_repo_url_non_empty", Severity::Medium),
    ("integration_git_commit_id_non_empty", Severity::Medium),
    ("integration_git_ref_name_non_empty", Severity::Medium),
    ("integration_git_event_kind_valid", Severity::Medium),
    ("integration_git_timestamp_iso", Severity::Medium),
    ("integration_ci_provider_non_empty", Severity::Medium),
    ("integration_ci_pipeline_id_non_empty", Severity::Medium),
    ("integration_ci_run_id_non_empty", Severity::Medium),
    ("integration_ci_status_valid", Severity::Medium),
    ("integration_ci_started_at_iso", Severity::Low),
    ("integration_ci_completed_at_iso", Severity::Low),
    ("learning_sample_id_is_uuid", Severity::High),
    ("learning_sample_family_non_empty", Severity::Medium),
    ("learning_sample_created_at_iso", Severity::Medium),
    ("learning_sample_has_input_section", Severity::Medium),
    ("learning_sample_has_output_section", Severity::Medium),
    ("learning_sample_feedback_label_valid", Severity::Low),
    ("learning_sample_source_flow_non_empty", Severity::Low),
    ("learning_intent_has_intent_id", Severity::Medium),
    ("learning_intent_quality_label_valid", Severity::Low),
    ("learning_delta_has_delta_id", Severity::Medium),
    ("learning_delta_scope_valid", Severity::Medium),
    ("learning_delta_risk_valid", Severity::Low),
];

/// Gives the severity of a rule.
pub(super) fn of(id: &str) -> Severity {
    let found = TABLE.iter().find(|(known, _)| *known == id);
    found.map_or(Severity::High, |(_, severity)| *severity)
}
