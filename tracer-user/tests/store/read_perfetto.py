"""Reads a Perfetto trace with the descriptors of the official package and compares it with the bundle's tables.

python3 read_perfetto.py BUNDLE TRACE; exit status 77: a package is missing.
"""

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

try:
    from google.protobuf.unknown_fields import UnknownFieldSet
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
except ImportError as error:
    print(f"the Python package perfetto cannot be imported ({error}); `cargo xtask setup` installs it")
    sys.exit(77)
try:
    import pyarrow.parquet as parquet
except ImportError as error:
    print(f"the Python package pyarrow cannot be imported ({error}); `cargo xtask setup` installs it")
    sys.exit(77)

BUNDLE, TRACE = Path(sys.argv[1]), Path(sys.argv[2])


def rows(table):
    return [row for part in sorted((BUNDLE / table).glob("*.parquet")) for row in parquet.read_table(part).to_pylist()]


def same(what, found, expected):
    found, expected = Counter(found), Counter(expected)
    assert expected, f"{what}: the table has no rows, nothing is tested"
    assert found == expected, f"{what}: only in the trace {found - expected}, only in the table {expected - found}"


class Reader:
    """What a viewer makes of the packets: events sorted by time, slices nested, strings looked up."""

    def __init__(self, trace):
        self.tracks, self.slices, self.instants, self.counters = {}, [], [], defaultdict(list)
        self.flows = defaultdict(list)
        self.clocks = []
        interned = defaultdict(dict)
        events = []
        for packet in trace.packet:
            for message in (packet, packet.track_descriptor, packet.track_event, packet.interned_data, packet.clock_snapshot):
                unknown = [field.field_number for field in UnknownFieldSet(message)]
                assert not unknown, f"{message.DESCRIPTOR.name} has no fields {unknown}"
            if packet.sequence_flags & pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED:
                interned.clear()
                self.clock = packet.trace_packet_defaults.timestamp_clock_id
            if packet.HasField("clock_snapshot"):
                self.clocks.append(packet.clock_snapshot)
            data = packet.interned_data
            for kind in ("event_categories", "event_names", "debug_annotation_names"):
                interned[kind].update({entry.iid: entry.name for entry in getattr(data, kind)})
            interned["values"].update({e.iid: e.str.decode() for e in data.debug_annotation_string_values})
            if packet.HasField("track_descriptor"):
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            if packet.HasField("track_event"):
                events.append((packet.timestamp, packet.track_event))
        # Stable: of equal times the order of the file counts.
        events.sort(key=lambda event: event[0])
        stacks = defaultdict(list)
        for time, event in events:
            track = event.track_uuid
            assert track in self.tracks
            if event.type == event.TYPE_SLICE_END:
                stacks[track].pop()["end"] = time
                continue
            if event.type == event.TYPE_COUNTER:
                self.counters[track].append((time, event.counter_value))
                continue
            one = {
                "track": track,
                "start": time,
                "name": event.name or interned["event_names"][event.name_iid],
                "category": [interned["event_categories"][iid] for iid in event.category_iids],
                "around": stacks[track][-1] if stacks[track] else None,
                "args": {self.key(a, interned): self.value(a, interned) for a in event.debug_annotations},
            }
            for flow in (*event.flow_ids, *event.terminating_flow_ids):
                self.flows[flow].append(one)
            if event.type == event.TYPE_SLICE_BEGIN:
                self.slices.append(one)
                stacks[track].append(one)
            else:
                assert event.type == event.TYPE_INSTANT
                self.instants.append(one)
        assert not any(stacks.values()), "every slice ends"

    @staticmethod
    def key(annotation, interned):
        return annotation.name or interned["debug_annotation_names"][annotation.name_iid]

    def value(self, annotation, interned):
        if annotation.dict_entries:
            return {self.key(entry, interned): self.value(entry, interned) for entry in annotation.dict_entries}
        if annotation.array_values:
            return [self.value(entry, interned) for entry in annotation.array_values]
        kind = annotation.WhichOneof("value")
        if kind == "string_value_iid":
            return interned["values"][annotation.string_value_iid]
        return getattr(annotation, kind) if kind else None

    def name(self, uuid):
        track = self.tracks[uuid]
        return track.thread.thread_name or track.process.process_name or track.name

    def path(self, uuid):
        """Names from the outermost track."""
        parent = self.tracks[uuid].parent_uuid
        return (self.path(parent) if parent else ()) + (self.name(uuid),)

    def thread(self, uuid):
        """The thread that a track or its parent is of."""
        track = self.tracks[uuid]
        thread = (track if track.HasField("thread") else self.tracks[track.parent_uuid]).thread
        return thread.pid, thread.tid

    def of(self, category):
        return [one for one in self.slices if category in one["category"]]


trace = pb.Trace()
trace.ParseFromString(TRACE.read_bytes())
reader = Reader(trace)

# The clock: nanoseconds of CLOCK_MONOTONIC, tied to UTC once.
MONOTONIC, REALTIME = pb.BUILTIN_CLOCK_MONOTONIC, pb.BUILTIN_CLOCK_REALTIME
(snapshot,) = reader.clocks
clocks = {clock.clock_id: clock.timestamp for clock in snapshot.clocks}
meta = json.loads((BUNDLE / "meta.json").read_text())
assert reader.clock == MONOTONIC and snapshot.primary_trace_clock == MONOTONIC
assert clocks == {MONOTONIC: meta["started_ns"], REALTIME: meta["started_ns"] + meta["utc_offset_ns"]}, clocks

# Ops on tracks of their GPU and stream.
ops = rows("gpu_ops")
same(
    "gpu_ops",
    [(s["args"]["op"], s["name"], s["start"], s["end"]) for s in reader.of("gpu")],
    [(op["op_id"], op["name"], op["start_ns"], op["end_ns"]) for op in ops],
)
by_op = {op["op_id"]: op for op in ops}
for one in reader.of("gpu"):
    op, path = by_op[one["args"]["op"]], reader.path(one["track"])
    assert path[0].startswith(f"GPU {op['device']} (") and path[1].startswith(f"stream {op['stream']} of "), path

# Gaps, and in each its segments with cause and evidence.
gaps = [one for one in reader.of("gap") if "mostly" in one["args"]]
same("gaps", [(g["args"]["gap"], g["start"], g["end"]) for g in gaps], [(g["gap_id"], g["start_ns"], g["end_ns"]) for g in rows("gaps")])
segments = [one for one in reader.of("gap") if "confidence" in one["args"]]
assert len(gaps) + len(segments) == len(reader.of("gap"))
same(
    "gap_segments",
    [(s["args"]["gap"], s["args"]["segment"], s["name"], s["start"], s["end"], tuple(s["args"].get("evidence") or ())) for s in segments],
    [
        (s["gap_id"], s["seq"], s["cause"], s["start_ns"], s["end_ns"], tuple(f"{e['table']} {e['row']}" for e in s["evidence"]))
        for s in rows("gap_segments")
    ],
)
for one in segments:
    assert one["around"]["args"]["gap"] == one["args"]["gap"], "a segment lies in its gap"
    assert reader.path(one["track"])[1] == "gaps by cause"
chains = {(s["gap_id"], s["seq"]): s["path"] for s in rows("gap_segments")}
for one in segments:
    chain = chains[one["args"]["gap"], one["args"]["segment"]]
    shown = one["args"].get("chain") or []
    assert len(shown) == len(chain) and all(f"[{hop['pid']}/{hop['tid']}] {hop['state']}" in words for hop, words in zip(chain, shown))

# Calls on the tracks of their threads.
for table, category in (("cuda_api", "cuda"), ("syscalls", "syscall")):
    same(
        table,
        [(reader.thread(s["track"]), s["args"]["row"], s["name"], s["start"], s["end"]) for s in reader.of(category)],
        [((r["pid"], r["tid"]), r["id"], r["name"], r["start_ns"], r["end_ns"]) for r in rows(table)],
    )

# States: the time of each thread, without a hole, off the CPU as the table has it.
off = [s for s in reader.of("state") if s["name"] != "running"]
expected = []
for row in rows("off_cpu"):
    spans = ((row["off_ns"], row["woken_ns"]), (row["woken_ns"], row["on_ns"]))
    expected += [((row["pid"], row["tid"]), row["id"], *span) for span in spans if span[0] < span[1]]
same("off_cpu", [(reader.thread(s["track"]), s["args"]["row"], s["start"], s["end"]) for s in off], expected)
states = defaultdict(list)
for one in reader.of("state"):
    states[reader.thread(one["track"])].append((one["start"], one["end"]))
    assert " state: " in reader.name(one["track"])
for thread, spans in states.items():
    spans.sort()
    assert spans[0][0] == meta["started_ns"] and spans[-1][1] == meta["ended_ns"], (thread, spans)
    assert all(a[1] == b[0] for a, b in zip(spans, spans[1:])), (thread, spans)

# Block requests, losses.
block = rows("block_io")
requests = [(s["args"]["request"], s["start"], s["end"]) for s in reader.of("block")]
same("block_io", requests, [(r["request_id"], *span) for r in block for span in ((r["queued_ns"], r["issued_ns"]), (r["issued_ns"], r["completed_ns"]))])
same("losses", [(reader.path(s["track"]), s["start"], s["end"], s["args"]["count"]) for s in reader.of("loss")], [(("lost events", r["source"]), r["start_ns"], r["end_ns"], r["count"]) for r in rows("losses")])

# Arrows. Launch: from the call to the first op with its correlation id.
calls = {(r["pid"], r["correlation_id"]): r for r in rows("cuda_api")}
firsts = {}
for op in sorted(ops, key=lambda op: (op["start_ns"], -op["end_ns"])):
    firsts.setdefault((op["pid"], op["correlation_id"]), op)
launches = [ends for ends in reader.flows.values() if len(ends) == 2 and "gpu" in ends[1]["category"]]
same(
    "launches",
    [(call["args"]["row"], op["args"]["op"]) for call, op in launches],
    [(calls[key]["id"], op["op_id"]) for key, op in firsts.items() if key in calls],
)
assert all(call["start"] <= op["start"] for call, op in launches)
# Cause: from the last thread of a segment's chain to that segment.
causes = [ends for ends in reader.flows.values() if [end["name"] for end in ends] == ["cause", "cause"]]
leaves = []
for row in rows("gap_segments"):
    threads = [(hop["pid"], hop["tid"]) for hop in row["path"] if hop["state"] != "device"]
    if threads:
        leaves.append((threads[-1], row["start_ns"], row["cause"]))
same("causes", [(reader.thread(a["track"]), b["start"], b["around"]["name"]) for a, b in causes], leaves)
# Wake: at the moment of a wake-up on a chain, in the thread that waited; from the waker's time, or out of the request.
wakes = [ends for ends in reader.flows.values() if [end["name"] for end in ends] == ["wake", "wake"]]
woken = {((r["pid"], r["tid"]), r["woken_ns"]): r for r in rows("off_cpu")}
assert wakes
for source, target in wakes:
    row = woken[reader.thread(target["track"]), target["start"]]
    assert target["around"]["args"].get("row") == row["id"] or target["around"]["name"] == "running"
    if row["waker_kind"] == "block":
        assert source["around"]["args"]["request"] == row["request_id"]
    else:
        assert reader.thread(source["track"]) == (row["waker_pid"], row["waker_tid"]) and source["start"] == target["start"]

# Counters, from the tables.
counters = {reader.path(uuid): values for uuid, values in reader.counters.items()}
for device in {r["device"] for r in block}:
    changes = sorted([(r["queued_ns"], 1) for r in block if r["device"] == device] + [(r["completed_ns"], -1) for r in block if r["device"] == device])
    depth, expected = 0, []
    for time, change in changes:
        depth += change
        expected.append((time, depth))
    found = counters["block devices", f"{device}: requests queued or in service"]
    assert found == expected, (found, expected)
    values = counters["block devices", f"{device}: bytes/s"]
    ends = [time for time, _ in values[1:]] + [meta["ended_ns"]]
    total = sum(value * (end - start) for (start, value), end in zip(values, ends)) / 1e9
    assert round(total) == sum(r["bytes"] for r in block if r["device"] == device), values
for device in {op["device"] for op in ops}:
    (values,) = [v for path, v in counters.items() if path[0].startswith(f"GPU {device} ") and path[1] == "GPU busy %"]
    ends = [time for time, _ in values[1:]] + [meta["ended_ns"]]
    shown = sum(value * (end - start) for (start, value), end in zip(values, ends)) / 100
    busy, until = 0, 0
    for start, end in sorted((op["start_ns"], op["end_ns"]) for op in ops if op["device"] == device):
        busy, until = busy + max(0, end - max(start, until)), max(until, end)
    # Each step is rounded to a percent.
    assert abs(shown - busy) <= (meta["ended_ns"] - meta["started_ns"]) * 0.005, (shown, busy)

# What the trace says of itself.
(about,) = [one for one in reader.instants if "about" in one["category"]]
assert about["args"]["choice"] == "everything" and about["args"]["exported_rows"]["gpu_ops"] == len(ops)
print(f"{len(reader.slices)} slices, {len(reader.flows)} flows, {len(reader.counters)} counters, {len(reader.tracks)} tracks")
