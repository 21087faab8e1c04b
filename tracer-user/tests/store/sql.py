"""Opens a bundle as its users do: DuckDB over the files as they lie, the views, the cookbook, and pyarrow."""

import os
import re
import sys

import duckdb
import pyarrow.parquet

bundle, cookbook, expectation = sys.argv[1:]
tables = sorted(name for name in os.listdir(bundle) if os.path.isdir(os.path.join(bundle, name)))
assert len(tables) >= 18, tables

# As they lie, by path.
for table in tables:
    (rows,) = duckdb.execute(f"SELECT count(*) FROM '{bundle}/{table}/*.parquet'").fetchone()
    assert rows == pyarrow.parquet.read_table(os.path.join(bundle, table)).num_rows, table
    assert (rows > 0) == (expectation == "story"), (table, rows)

# Encodings that DuckDB and others read everywhere.
for table in tables:
    for part in os.listdir(os.path.join(bundle, table)):
        metadata = pyarrow.parquet.read_metadata(os.path.join(bundle, table, part))
        for group in range(metadata.num_row_groups):
            for index in range(metadata.num_columns):
                column = metadata.row_group(group).column(index)
                assert column.compression == "ZSTD", column
                assert "BYTE_STREAM_SPLIT" not in column.encodings, column
                if column.path_in_schema.endswith("_ns"):
                    assert "DELTA_BINARY_PACKED" in column.encodings, column
                    assert column.is_stats_set, column

# The views, from anywhere.
connection = duckdb.connect()


def run(text):
    for statement in connection.extract_statements(text):
        try:
            connection.execute(statement)
        except duckdb.Error as error:
            raise SystemExit(f"{statement.query}\n{error}") from error


connection.execute(f"SET file_search_path = '{bundle}'")
with open(os.path.join(bundle, "views.sql"), encoding="utf-8") as views:
    run(views.read())
names = [name for (name,) in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()]
assert set(tables) < set(names), names
answers = {}
for name in names:
    run(f"FROM {name}")
    answers[name] = connection.fetchall()
assert answers["conservation_errors"] == []
if expectation == "story":
    for name in names:
        assert answers[name] or name == "conservation_errors", name
    by_cause = {(kind, cause): ns for _, kind, cause, _, ns, _ in answers["idle_by_cause"]}
    assert by_cause["idle", "storage.read.device"] == 213_000, by_cause
    assert sum(ns for (kind, _), ns in by_cause.items() if kind == "idle") == 410_000, by_cause
    (steps,) = answers["step_times"]
    assert steps[:5] == (0, "range", 1, 670_000, 670_000), steps
    assert [row[-1] for row in answers["slow_steps"]] == ["first"], answers["slow_steps"]
    (busy,) = answers["gpu_busy"]
    assert busy[:4] == (0, 4, 890_000, 480_000), busy
    # Hop by hop: the main thread, the worker, the disk.
    chain = connection.execute("SELECT hop, tid, state, edge FROM chains WHERE gap_id = 1 AND seq = 3").fetchall()
    assert chain == [
        (1, 100, "blocked", "woken by task"),
        (2, 200, "blocked", "block completion"),
        (3, 200, "device", None),
    ], chain
    (utc,) = connection.execute("SELECT utc(start_ns)::VARCHAR FROM gaps WHERE gap_id = 1").fetchone()
    assert utc == "2023-11-15 22:13:20.000300123", utc
    # And back: every byte of a hostile name came through.
    (comm,) = connection.execute("SELECT comm FROM threads WHERE pid = 200").fetchone()
    assert comm == 'w"0\\\n</script>\u202e\x1f', comm

# The cookbook.
with open(cookbook, encoding="utf-8") as text:
    recipes = re.findall(r"```sql\n(.*?)```", text.read(), re.DOTALL)
assert len(recipes) >= 26, len(recipes)
for recipe in recipes:
    run(recipe.replace("x.gtrace", bundle))
