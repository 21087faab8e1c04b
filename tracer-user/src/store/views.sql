-- Wall time of a moment: SELECT utc(start_ns), * FROM gaps;
CREATE OR REPLACE MACRO utc(moment_ns) AS
    make_timestamp_ns(moment_ns + (SELECT utc_offset_ns FROM read_json('meta.json')));

-- Where the time of the GPUs went: idle and exposed time by cause.
CREATE OR REPLACE VIEW idle_by_cause AS
SELECT *, 100.0 * ns / sum(ns) OVER (PARTITION BY device, kind) AS percent
FROM (
    SELECT g.device, g.kind, s.cause, count(*) AS segments, sum(s.end_ns - s.start_ns)::BIGINT AS ns
    FROM gap_segments AS s
    JOIN gaps AS g USING (gap_id)
    GROUP BY g.device, g.kind, s.cause
)
ORDER BY device, kind, ns DESC;

-- The same by what the program was at.
CREATE OR REPLACE VIEW idle_by_stage AS
SELECT g.device, s.stage, s.cause, sum(s.end_ns - s.start_ns)::BIGINT AS ns
FROM gap_segments AS s
JOIN gaps AS g USING (gap_id)
GROUP BY ALL
ORDER BY g.device, ns DESC;

-- The same by the file, device, peer, lock … behind it, and the process at the end of the chain.
CREATE OR REPLACE VIEW idle_by_object AS
SELECT
    g.device,
    s.cause,
    s.object,
    s.pid,
    any_value(p.comm) AS comm,
    sum(s.end_ns - s.start_ns)::BIGINT AS ns,
    count(DISTINCT s.gap_id) AS gaps
FROM gap_segments AS s
JOIN gaps AS g USING (gap_id)
LEFT JOIN (SELECT pid, any_value(comm) AS comm FROM processes GROUP BY pid) AS p ON p.pid = s.pid
GROUP BY g.device, s.cause, s.object, s.pid
ORDER BY ns DESC;

-- The longest gaps, with the op before and the op after.
CREATE OR REPLACE VIEW worst_gaps AS
SELECT
    g.gap_id,
    g.device,
    g.kind,
    g.end_ns - g.start_ns AS ns,
    g.start_ns,
    g.cause,
    g.stage,
    g.enabler,
    before.name AS op_before,
    after.name AS op_after
FROM gaps AS g
LEFT JOIN gpu_ops AS before ON before.op_id = g.prev_op
LEFT JOIN gpu_ops AS after ON after.op_id = g.next_op
ORDER BY ns DESC;

-- Every segment with its causal chain, one row a hop: hop 1 is the launching thread.
CREATE OR REPLACE VIEW chains AS
SELECT
    gap_id,
    seq,
    start_ns,
    end_ns - start_ns AS ns,
    cause,
    hop,
    path[hop].pid AS pid,
    path[hop].tid AS tid,
    path[hop].thread AS thread,
    path[hop].state AS state,
    path[hop].call AS call,
    path[hop].object AS object,
    path[hop].edge AS edge
FROM (SELECT *, unnest(range(1, len(path) + 1)) AS hop FROM gap_segments)
ORDER BY gap_id, seq, hop;

-- Steps: how long they take, and what of it is computing, waiting, and waiting for data.
CREATE OR REPLACE VIEW step_times AS
SELECT
    device,
    any_value(found_by) AS found_by,
    count(*) AS steps,
    quantile_disc(end_ns - start_ns, 0.5) AS p50_ns,
    quantile_disc(end_ns - start_ns, 0.95) AS p95_ns,
    avg(compute_ns)::BIGINT AS compute_ns,
    avg(idle_ns + exposed_copy_ns + exposed_comm_ns)::BIGINT AS waiting_ns,
    avg(data_loading_ns)::BIGINT AS data_loading_ns,
    1e9 * count(*) / nullif(max(end_ns) - min(start_ns), 0) AS steps_per_second
FROM steps
GROUP BY device
ORDER BY device;

-- The steps that took longer than the others, with what they waited for.
CREATE OR REPLACE VIEW slow_steps AS
SELECT
    device,
    step,
    start_ns,
    end_ns - start_ns AS ns,
    compute_ns,
    data_loading_ns,
    h2d_ns,
    forward_backward_ns,
    communication_ns,
    checkpoint_ns,
    other_ns,
    outlier
FROM steps
WHERE outlier IS NOT NULL
ORDER BY device, step;

-- Nothing may be here: gaps whose segments do not cover them to the nanosecond.
CREATE OR REPLACE VIEW conservation_errors AS
SELECT g.gap_id, g.end_ns - g.start_ns AS gap_ns, coalesce(sum(s.end_ns - s.start_ns), 0)::BIGINT AS segments_ns
FROM gaps AS g
LEFT JOIN gap_segments AS s USING (gap_id)
GROUP BY g.gap_id, g.start_ns, g.end_ns
HAVING segments_ns <> gap_ns;

-- Busy time of each GPU: the union of its ops.
CREATE OR REPLACE VIEW gpu_busy AS
WITH ordered AS (
    SELECT
        device,
        start_ns,
        end_ns,
        max(end_ns) OVER (PARTITION BY device ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
            AS covered_ns
    FROM gpu_ops
)
SELECT
    device,
    count(*) AS ops,
    max(end_ns) - min(start_ns) AS window_ns,
    sum(greatest(end_ns - greatest(start_ns, coalesce(covered_ns, start_ns)), 0))::BIGINT AS busy_ns,
    100.0 * busy_ns / nullif(window_ns, 0) AS busy_percent
FROM ordered
GROUP BY device
ORDER BY device;

-- Files by the time that system calls on them took.
CREATE OR REPLACE VIEW slow_files AS
SELECT *, 1e3 * bytes / nullif(ns, 0) AS megabytes_per_second
FROM (
    SELECT
        object AS file,
        device,
        count(*) AS calls,
        sum(greatest(result, 0)) FILTER (name LIKE '%read%' OR name LIKE '%write%')::BIGINT AS bytes,
        sum(end_ns - start_ns)::BIGINT AS ns,
        sum(blocked_ns)::BIGINT AS blocked_ns,
        max(end_ns - start_ns) AS longest_ns
    FROM syscalls
    WHERE object_kind = 'file'
    GROUP BY object, device
)
ORDER BY ns DESC;

-- Block devices: time in the queue and in the device.
CREATE OR REPLACE VIEW block_latency AS
SELECT
    device,
    op,
    count(*) AS requests,
    sum(bytes)::BIGINT AS bytes,
    quantile_disc(issued_ns - queued_ns, 0.5) AS queue_p50_ns,
    quantile_disc(issued_ns - queued_ns, 0.99) AS queue_p99_ns,
    quantile_disc(completed_ns - issued_ns, 0.5) AS device_p50_ns,
    quantile_disc(completed_ns - issued_ns, 0.99) AS device_p99_ns,
    max(in_flight) AS deepest_queue
FROM block_io
GROUP BY device, op
ORDER BY requests DESC;

-- What each thread waited for: blocked time by who or what ended the wait.
CREATE OR REPLACE VIEW waits AS
SELECT
    o.pid,
    o.tid,
    any_value(t.comm) AS comm,
    o.syscall,
    o.waker_kind,
    coalesce(o.waker_object, o.waker_comm) AS waker,
    count(*) AS waits,
    sum(o.woken_ns - o.off_ns)::BIGINT AS ns,
    max(o.woken_ns - o.off_ns) AS longest_ns
FROM off_cpu AS o
LEFT JOIN (SELECT pid, tid, any_value(comm) AS comm FROM threads GROUP BY pid, tid) AS t
    ON t.pid = o.pid AND t.tid = o.tid
GROUP BY o.pid, o.tid, o.syscall, o.waker_kind, waker
ORDER BY ns DESC NULLS LAST;

-- Who kept each thread from its CPU.
CREATE OR REPLACE VIEW run_queue AS
SELECT
    pid,
    tid,
    culprit_comm,
    culprit_pid,
    count(*) AS waits,
    sum(on_ns - woken_ns)::BIGINT AS runnable_ns,
    sum(culprit_ns)::BIGINT AS culprit_ns,
    sum(others_ns)::BIGINT AS others_ns,
    sum(idle_ns)::BIGINT AS idle_ns
FROM off_cpu
WHERE woken_ns IS NOT NULL AND on_ns IS NOT NULL
GROUP BY ALL
ORDER BY runnable_ns DESC;

-- System calls by thread: those recorded one by one, and the fast ones that the kernel summed up.
CREATE OR REPLACE VIEW syscall_time AS
SELECT pid, tid, name, sum(calls)::BIGINT AS calls, sum(ns)::BIGINT AS ns, max(longest_ns) AS longest_ns
FROM (
    SELECT pid, tid, name, 1 AS calls, end_ns - start_ns AS ns, end_ns - start_ns AS longest_ns FROM syscalls
    UNION ALL
    SELECT pid, tid, name, calls, total_ns, max_ns FROM syscall_counts
)
GROUP BY ALL
ORDER BY ns DESC NULLS LAST;

-- CUDA calls by time.
CREATE OR REPLACE VIEW cuda_calls AS
SELECT
    pid,
    name,
    count(*) AS calls,
    sum(end_ns - start_ns)::BIGINT AS ns,
    quantile_disc(end_ns - start_ns, 0.5) AS p50_ns,
    max(end_ns - start_ns) AS longest_ns,
    count(*) FILTER (result <> 0) AS errors
FROM cuda_api
GROUP BY ALL
ORDER BY ns DESC;

-- From the return of a launch to the start of its op.
CREATE OR REPLACE VIEW launch_latency AS
SELECT
    o.device,
    o.kind,
    o.name,
    count(*) AS ops,
    quantile_disc(o.start_ns - a.end_ns, 0.5) AS p50_ns,
    quantile_disc(o.start_ns - a.end_ns, 0.99) AS p99_ns
FROM gpu_ops AS o
JOIN cuda_api AS a ON a.pid = o.pid AND a.correlation_id = o.correlation_id
GROUP BY ALL
ORDER BY ops DESC;

-- What was lost, and when.
CREATE OR REPLACE VIEW lost AS
SELECT source, reason, sum(count)::BIGINT AS events, count(*) AS intervals, sum(end_ns - start_ns)::BIGINT AS ns
FROM losses
GROUP BY ALL
ORDER BY events DESC;
