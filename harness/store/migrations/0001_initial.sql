-- The log is the truth: `events` only grows. `runs` and `sub_agents` are its projection, written in the same transaction.

CREATE TABLE runs (
    run_id          TEXT PRIMARY KEY NOT NULL,
    status          TEXT NOT NULL,
    goal            TEXT NOT NULL,
    plan_digest     TEXT NOT NULL,
    base            TEXT NOT NULL,
    head            TEXT NOT NULL,
    target          TEXT,
    integration_ref TEXT NOT NULL,
    exit_code       INTEGER,
    landed          TEXT,
    created_at      TEXT NOT NULL,
    finished_at     TEXT,
    last_seq        INTEGER NOT NULL,
    last_hash       TEXT NOT NULL
);

CREATE TABLE sub_agents (
    sub_agent_id       TEXT PRIMARY KEY NOT NULL,
    run_id             TEXT NOT NULL REFERENCES runs (run_id) DEFERRABLE INITIALLY DEFERRED,
    step_idx           INTEGER NOT NULL,
    task_id            TEXT NOT NULL,
    step_id            TEXT,
    title              TEXT NOT NULL,
    state              TEXT NOT NULL,
    final_status       TEXT,
    close_reason       TEXT,
    message            TEXT,
    attempts           INTEGER NOT NULL,
    start_point        TEXT,
    commit_id          TEXT,
    merge_commit       TEXT,
    kept_ref           TEXT,
    report_path        TEXT,
    changed_paths_json TEXT NOT NULL,
    conflicts_json     TEXT NOT NULL,
    context_json       TEXT NOT NULL
);

CREATE INDEX sub_agents_of_run ON sub_agents (run_id, task_id);

CREATE TABLE leases (
    run_id       TEXT PRIMARY KEY NOT NULL,
    epoch        INTEGER NOT NULL,
    holder_json  TEXT NOT NULL,
    acquired_at  TEXT NOT NULL,
    heartbeat_at TEXT NOT NULL,
    released     INTEGER NOT NULL
);

CREATE TABLE events (
    run_id    TEXT NOT NULL REFERENCES runs (run_id) DEFERRABLE INITIALLY DEFERRED,
    seq       INTEGER NOT NULL,
    id        TEXT NOT NULL,
    type      TEXT NOT NULL,
    ts        TEXT NOT NULL,
    task_id   TEXT,
    trace_id  TEXT NOT NULL,
    summary   TEXT NOT NULL,
    payload   TEXT NOT NULL,
    prev_hash TEXT NOT NULL,
    hash      TEXT NOT NULL,
    epoch     INTEGER NOT NULL,
    PRIMARY KEY (run_id, seq)
);

CREATE TRIGGER events_refuse_update BEFORE UPDATE ON events
BEGIN
    SELECT RAISE(ABORT, 'events are append-only: no UPDATE');
END;

CREATE TRIGGER events_refuse_delete BEFORE DELETE ON events
BEGIN
    SELECT RAISE(ABORT, 'events are append-only: no DELETE');
END;

CREATE TRIGGER events_refuse_gap BEFORE INSERT ON events
WHEN NEW.seq IS NOT 1 + COALESCE((SELECT MAX(seq) FROM events WHERE run_id = NEW.run_id), 0)
BEGIN
    SELECT RAISE(ABORT, 'events are gap-free: seq must be the last one plus 1');
END;

CREATE TRIGGER events_refuse_stale_epoch BEFORE INSERT ON events
WHEN NEW.epoch IS NOT (SELECT epoch FROM leases WHERE run_id = NEW.run_id)
BEGIN
    SELECT RAISE(ABORT, 'events are fenced: epoch must be the one of the lease');
END;

CREATE TRIGGER leases_refuse_older_epoch BEFORE UPDATE OF epoch ON leases
WHEN NEW.epoch < OLD.epoch
BEGIN
    SELECT RAISE(ABORT, 'the epoch of a lease only grows');
END;

CREATE TRIGGER leases_refuse_delete BEFORE DELETE ON leases
BEGIN
    SELECT RAISE(ABORT, 'leases are released, not deleted: the epoch must survive');
END;

CREATE TRIGGER runs_refuse_delete BEFORE DELETE ON runs
BEGIN
    SELECT RAISE(ABORT, 'runs are never deleted');
END;

CREATE TRIGGER sub_agents_refuse_delete BEFORE DELETE ON sub_agents
BEGIN
    SELECT RAISE(ABORT, 'sub_agents are never deleted');
END;

CREATE TRIGGER sub_agents_begin_created BEFORE INSERT ON sub_agents
WHEN NEW.state IS NOT 'created' OR EXISTS (SELECT 1 FROM sub_agents WHERE sub_agent_id = NEW.sub_agent_id)
BEGIN
    SELECT RAISE(ABORT, 'a sub-agent is created once, as created');
END;

CREATE TRIGGER sub_agents_keep_contract
BEFORE UPDATE OF sub_agent_id, run_id, step_idx, task_id, step_id, title, context_json ON sub_agents
BEGIN
    SELECT RAISE(ABORT, 'a contract is immutable: context_json and the identity of a sub-agent never change');
END;

-- The pairs of model/lifecycle.TRANSITIONS; a test proves that both agree.
CREATE TRIGGER sub_agents_refuse_transition BEFORE UPDATE OF state ON sub_agents
WHEN NEW.state IS NOT OLD.state AND (OLD.state, NEW.state) NOT IN (
    VALUES
        ('created', 'running'),
        ('created', 'failed'),
        ('running', 'waiting_for_merge'),
        ('running', 'failed'),
        ('waiting_for_merge', 'completed'),
        ('waiting_for_merge', 'failed'),
        ('completed', 'closed'),
        ('failed', 'closed')
)
BEGIN
    SELECT RAISE(ABORT, 'illegal transition of a sub-agent');
END;
