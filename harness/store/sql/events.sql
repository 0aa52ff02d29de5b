-- name: insert_event
INSERT INTO events (run_id, seq, id, type, ts, task_id, trace_id, summary, payload, prev_hash, hash, epoch)
VALUES (:run_id, :seq, :id, :type, :ts, :task_id, :trace_id, :summary, :payload, :prev_hash, :hash, :epoch);

-- name: events_after
SELECT run_id, seq, id, type, ts, task_id, trace_id, summary, payload, prev_hash, hash, epoch
FROM events
WHERE run_id = :run_id AND seq > :after
ORDER BY seq
LIMIT :limit;

-- name: all_events
SELECT run_id, seq, id, type, ts, task_id, trace_id, summary, payload, prev_hash, hash, epoch
FROM events
WHERE run_id = :run_id
ORDER BY seq;
