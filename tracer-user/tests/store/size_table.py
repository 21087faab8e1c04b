"""What a row of each table takes: in the bundle, as Chrome trace events (plain and gzip), and in SQLite.

    size_table.py NAME=BUNDLE... > docs/size.md

Each row becomes one complete event with every column that is not NULL in its `args`, as trace viewers take it; in SQLite, one row
of a table with an index by time, after VACUUM."""

import gzip
import json
import os
import sqlite3
import sys
import tempfile

import pyarrow.parquet

TABLES = ["gpu_ops", "cuda_api", "off_cpu", "syscalls", "block_io", "gaps", "gap_segments"]
START = {"off_cpu": "off_ns", "block_io": "queued_ns"}
END = {"off_cpu": "on_ns", "block_io": "completed_ns"}
# Fewer rows say nothing about a table: its footer outweighs them.
FEWEST = 1000


def chrome(table, rows):
    start, end = START.get(table, "start_ns"), END.get(table, "end_ns")
    events = []
    for row in rows:
        begin = row[start]
        args = {name: value for name, value in row.items() if value is not None and name not in (start, end, "pid", "tid")}
        event = {"ph": "X", "name": str(row.get("name") or row.get("cause") or table), "pid": row.get("pid") or 0, "tid": row.get("tid") or 0}
        event["ts"], event["dur"] = begin / 1000, ((row[end] or begin) - begin) / 1000
        event["args"] = args
        events.append(event)
    return json.dumps({"traceEvents": events}, separators=(",", ":")).encode()


def sqlite(folder, table, rows):
    path = os.path.join(folder, table + ".sqlite")
    connection = sqlite3.connect(path)
    names = list(rows[0])
    connection.execute(f"CREATE TABLE t ({', '.join(names)})")
    values = ([json.dumps(v) if isinstance(v, list) else v for v in row.values()] for row in rows)
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(names))})", values)
    connection.execute(f"CREATE INDEX by_time ON t ({START.get(table, 'start_ns')})")
    connection.commit()
    connection.execute("VACUUM")
    connection.close()
    return os.path.getsize(path)


def column_bytes(folder):
    sums = {}
    for part in os.listdir(folder):
        metadata = pyarrow.parquet.read_metadata(os.path.join(folder, part))
        for group in range(metadata.num_row_groups):
            for index in range(metadata.num_columns):
                column = metadata.row_group(group).column(index)
                name = column.path_in_schema.split(".")[0]
                sums[name] = sums.get(name, 0) + column.total_compressed_size
    return sums


print("""# What a recording takes on disk

Bytes a row of each table, beside the same rows as Chrome trace events (every column that is not NULL in `args`), those gzipped, and
in SQLite (one table, an index by time). Written by `tests/store/size_table.py`; tables of fewer than 1,000 rows are left out.
""")
most = {}
for argument in sys.argv[1:]:
    name, bundle = argument.split("=", 1)
    print(f"## {name}\n\n| table | rows | bundle | Chrome JSON | gzip | SQLite | gzip / bundle |\n|---|---:|---:|---:|---:|---:|---:|")
    for table in TABLES:
        folder = os.path.join(bundle, table)
        rows = pyarrow.parquet.read_table(folder).to_pylist()
        count = len(rows)
        if count < FEWEST:
            continue
        ours = sum(os.path.getsize(os.path.join(folder, part)) for part in os.listdir(folder))
        text = chrome(table, rows)
        packed = len(gzip.compress(text, 6))
        with tempfile.TemporaryDirectory() as scratch:
            database = sqlite(scratch, table, rows)
        figures = [ours, len(text), packed, database]
        print(f"| `{table}` | {count:,} | " + " | ".join(f"{figure / count:.1f}" for figure in figures) + f" | {packed / ours:.1f} |")
        if table in ("off_cpu", "syscalls"):
            largest = sorted(column_bytes(folder).items(), key=lambda item: -item[1])[:6]
            most[table] = (name, [(column, size / count) for column, size in largest])
    print()
if most:
    print("## Where the bytes are\n")
    for table, (name, columns) in most.items():
        print(f"`{table}` ({name}): " + ", ".join(f"`{column}` {size:.1f}" for column, size in columns) + " bytes a row.")
    print("""
Most of it are times. A time with full nanoseconds that comes at random within some 100 µs carries 17 bits that no encoding can take
away, and a row of `off_cpu` has three of them (left, woken, ran) beside two lengths of who else ran meanwhile. Everything else of
a row (its number, names, states, threads, CPUs) takes some five bytes together.""")
