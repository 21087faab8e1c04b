-- Views over many recordings, for DuckDB. Recordings lie side by side in folders called run=NAME:
--   cd runs && duckdb -init many.sql
-- or, from anywhere: SET file_search_path = '/path/to/runs'; and then this file.

-- The tables of all of them, with the column `run`. Of recordings by different versions columns are matched by name.
CREATE OR REPLACE VIEW gpu_ops AS
FROM read_parquet('run=*/gpu_ops/*.parquet', hive_partitioning = true, union_by_name = true);
CREATE OR REPLACE VIEW gaps AS
FROM read_parquet('run=*/gaps/*.parquet', hive_partitioning = true, union_by_name = true);
CREATE OR REPLACE VIEW gap_segments AS
FROM read_parquet('run=*/gap_segments/*.parquet', hive_partitioning = true, union_by_name = true);
CREATE OR REPLACE VIEW off_cpu AS
FROM read_parquet('run=*/off_cpu/*.parquet', hive_partitioning = true, union_by_name = true);
CREATE OR REPLACE VIEW syscalls AS
FROM read_parquet('run=*/syscalls/*.parquet', hive_partitioning = true, union_by_name = true);
CREATE OR REPLACE VIEW block_io AS
FROM read_parquet('run=*/block_io/*.parquet', hive_partitioning = true, union_by_name = true);
CREATE OR REPLACE VIEW cuda_api AS
FROM read_parquet('run=*/cuda_api/*.parquet', hive_partitioning = true, union_by_name = true);
CREATE OR REPLACE VIEW threads AS
FROM read_parquet('run=*/threads/*.parquet', hive_partitioning = true, union_by_name = true);
CREATE OR REPLACE VIEW losses AS
FROM read_parquet('run=*/losses/*.parquet', hive_partitioning = true, union_by_name = true);

-- What each GPU did in each run: from its first op to its last.
CREATE OR REPLACE VIEW busy_by_run AS
SELECT w.run, w.device, w.window_ns, coalesce(i.waiting_ns, 0) AS waiting_ns, coalesce(i.gaps, 0) AS gaps,
       100.0 * coalesce(i.waiting_ns, 0) / nullif(w.window_ns, 0) AS waiting_percent
FROM (SELECT run, device, max(end_ns) - min(start_ns) AS window_ns FROM gpu_ops GROUP BY ALL) AS w
LEFT JOIN (
    SELECT run, device, sum(end_ns - start_ns)::BIGINT AS waiting_ns, count(*) AS gaps FROM gaps GROUP BY ALL
) AS i USING (run, device)
ORDER BY run, device;

-- Waiting by cause, for each second of the GPUs' windows: runs of different length compare.
CREATE OR REPLACE VIEW idle_by_run AS
SELECT s.run, s.cause, s.ns, 1000.0 * s.ns / w.window_ns AS ms_each_second
FROM (SELECT run, cause, sum(end_ns - start_ns)::BIGINT AS ns FROM gap_segments GROUP BY ALL) AS s
JOIN (SELECT run, sum(window_ns) AS window_ns FROM busy_by_run GROUP BY run) AS w USING (run)
ORDER BY s.run, s.ns DESC;

-- The same with a column for each run (a statement, not a view: DuckDB takes the columns from the data):
--   PIVOT (SELECT run, cause, ms_each_second FROM idle_by_run) ON run USING sum(ms_each_second) GROUP BY cause;

-- The longest gaps of all.
CREATE OR REPLACE VIEW worst_gaps_of_all AS
SELECT run, gap_id, device, (end_ns - start_ns) AS ns, cause, stage, enabler FROM gaps ORDER BY ns DESC;

-- Kernels of each run: a change of the program shows here before it shows as waiting.
CREATE OR REPLACE VIEW kernels_by_run AS
SELECT run, name, count(*) AS ops, sum(end_ns - start_ns)::BIGINT AS ns
FROM gpu_ops WHERE kind = 'kernel' GROUP BY ALL ORDER BY run, ns DESC;

-- What was lost in each.
CREATE OR REPLACE VIEW lost_by_run AS
SELECT run, source, reason, sum(count)::BIGINT AS events FROM losses GROUP BY ALL ORDER BY run, events DESC;
