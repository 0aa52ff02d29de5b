-- name: upsert_run
INSERT INTO runs (
    run_id, status, goal, plan_digest, base, head, target, integration_ref, exit_code, landed,
    created_at, finished_at, last_seq, last_hash
)
VALUES (
    :run_id, :status, :goal, :plan_digest, :base, :head, :target, :integration_ref, :exit_code, :landed,
    :created_at, :finished_at, :last_seq, :last_hash
)
ON CONFLICT (run_id) DO UPDATE SET
    status = excluded.status,
    goal = excluded.goal,
    plan_digest = excluded.plan_digest,
    base = excluded.base,
    head = excluded.head,
    target = excluded.target,
    integration_ref = excluded.integration_ref,
    exit_code = excluded.exit_code,
    landed = excluded.landed,
    created_at = excluded.created_at,
    finished_at = excluded.finished_at,
    last_seq = excluded.last_seq,
    last_hash = excluded.last_hash;

-- name: move_end_of_log
UPDATE runs SET last_seq = :last_seq, last_hash = :last_hash WHERE run_id = :run_id;

-- name: end_of_log
SELECT last_seq, last_hash FROM runs WHERE run_id = :run_id;

-- name: select_run
SELECT
    run_id, status, goal, plan_digest, base, head, target, integration_ref, exit_code, landed,
    created_at, finished_at, last_seq, last_hash
FROM runs
WHERE run_id = :run_id;

-- name: run_ids
SELECT run_id FROM runs ORDER BY rowid;
