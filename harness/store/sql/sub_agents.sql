-- name: insert_sub_agent
INSERT INTO sub_agents (
    sub_agent_id, run_id, step_idx, task_id, step_id, title, state, final_status, close_reason, message, attempts,
    start_point, commit_id, merge_commit, kept_ref, report_path, changed_paths_json, conflicts_json, context_json
)
VALUES (
    :sub_agent_id, :run_id, :step_idx, :task_id, :step_id, :title, :state, :final_status, :close_reason, :message,
    :attempts, :start_point, :commit_id, :merge_commit, :kept_ref, :report_path, :changed_paths_json,
    :conflicts_json, :context_json
);

-- name: update_sub_agent
UPDATE sub_agents SET
    state = :state,
    final_status = :final_status,
    close_reason = :close_reason,
    message = :message,
    attempts = :attempts,
    start_point = :start_point,
    commit_id = :commit_id,
    merge_commit = :merge_commit,
    kept_ref = :kept_ref,
    report_path = :report_path,
    changed_paths_json = :changed_paths_json,
    conflicts_json = :conflicts_json
WHERE sub_agent_id = :sub_agent_id;

-- name: select_sub_agents
SELECT
    sub_agent_id, run_id, step_idx, task_id, step_id, title, state, final_status, close_reason, message, attempts,
    start_point, commit_id, merge_commit, kept_ref, report_path, changed_paths_json, conflicts_json, context_json
FROM sub_agents
WHERE run_id = :run_id
ORDER BY rowid;
