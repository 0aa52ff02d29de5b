-- name: select_lease
SELECT run_id, epoch, holder_json, acquired_at, heartbeat_at, released FROM leases WHERE run_id = :run_id;

-- name: take_lease
INSERT INTO leases (run_id, epoch, holder_json, acquired_at, heartbeat_at, released)
VALUES (:run_id, :epoch, :holder_json, :acquired_at, :heartbeat_at, :released)
ON CONFLICT (run_id) DO UPDATE SET
    epoch = excluded.epoch,
    holder_json = excluded.holder_json,
    acquired_at = excluded.acquired_at,
    heartbeat_at = excluded.heartbeat_at,
    released = excluded.released;

-- name: touch_lease
UPDATE leases SET heartbeat_at = :heartbeat_at WHERE run_id = :run_id AND epoch = :epoch;

-- name: release_lease
UPDATE leases SET released = 1 WHERE run_id = :run_id AND epoch = :epoch;

-- name: lease_and_end_of_log
SELECT leases.epoch, leases.released, runs.last_seq, runs.last_hash
FROM leases LEFT JOIN runs ON runs.run_id = leases.run_id
WHERE leases.run_id = :run_id;
