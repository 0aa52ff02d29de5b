-- name: insert_run
INSERT INTO runs (
    run_id, status, goal, plan_digest, base, head, target, integration_ref, exit_code, landed,
    created_at, finished_at, last_seq, last_hash
)
VALUES (
    :run_id, :status, :goal, :plan_digest, :base, :head, :target, :integration_ref, :exit_code, :landed,
    :created_at, :finished_at, :last_seq, :last_hash
);

-- name: update_run
UPDATE runs SET
    status = :status,
    goal = :goal,
    plan_digest = :plan_digest,
    base = :base,
    head = :head,
    target = :target,
    integration_ref = :integration_ref,
    exit_code = :exit_code,
    landed = :landed,
    created_at = :created_at,
    finished_at = :finished_at,
    last_seq = :last_seq,
    last_hash = :last_hash
WHERE run_id = :run_id AND last_seq = :known_seq AND last_hash = :known_hash
    AND EXISTS (SELECT 1 FROM leases WHERE leases.run_id = runs.run_id AND epoch = :epoch AND released = 0);

-- name: move_end_of_log
UPDATE runs SET last_seq = :last_seq, last_hash = :last_hash
WHERE run_id = :run_id AND last_seq = :known_seq AND last_hash = :known_hash
    AND EXISTS (SELECT 1 FROM leases WHERE leases.run_id = runs.run_id AND epoch = :epoch AND released = 0);

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
