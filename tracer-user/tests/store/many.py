"""Many bundles as one data set: DuckDB with many.sql, pyarrow, and Polars where it is installed."""

import os
import sys

import duckdb
import pyarrow.dataset

runs, views, expected_runs = sys.argv[1], sys.argv[2], int(sys.argv[3])

connection = duckdb.connect()
connection.execute(f"SET file_search_path = '{runs}'")
with open(views, encoding="utf-8") as text:
    connection.execute(text.read())
names = [name for (name,) in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()]
for name in names:
    assert connection.execute(f"FROM {name}").fetchall(), name
waiting = dict(connection.execute("SELECT run, sum(waiting_ns)::BIGINT FROM busy_by_run GROUP BY run").fetchall())
assert len(waiting) == expected_runs and len(set(waiting.values())) == 1, waiting
by_cause = connection.execute("SELECT run, sum(ns)::BIGINT FROM idle_by_run GROUP BY run").fetchall()
assert dict(by_cause) == waiting, (by_cause, waiting)
pivot = connection.execute(
    "PIVOT (SELECT run, cause, ms_each_second FROM idle_by_run) ON run USING sum(ms_each_second) GROUP BY cause"
).fetchall()
assert pivot and all(len(row) == 1 + expected_runs for row in pivot), pivot

# pyarrow reads the partition from the folders' names.
parts = [os.path.join(runs, run, "gap_segments") for run in sorted(os.listdir(runs)) if run.startswith("run=")]
tables = [pyarrow.dataset.dataset(part, format="parquet", partitioning="hive", partition_base_dir=runs) for part in parts]
rows = pyarrow.dataset.dataset(tables).to_table(columns=["run", "start_ns", "end_ns"]).to_pydict()
sums = {}
for run, start, end in zip(rows["run"], rows["start_ns"], rows["end_ns"]):
    sums[run] = sums.get(run, 0) + end - start
assert sums == waiting, sums

try:
    import polars
except ImportError:
    print("SKIPPED: polars is not installed")
else:
    frame = polars.scan_parquet(os.path.join(runs, "run=*", "gap_segments", "*.parquet"), hive_partitioning=True)
    sums = frame.group_by("run").agg((polars.col("end_ns") - polars.col("start_ns")).sum().alias("ns")).collect()
    assert dict(sums.iter_rows()) == waiting, sums
