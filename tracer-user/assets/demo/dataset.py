"""The demo's data set, on a real disk: shards of samples that are read past the page cache, so that they are always cold.

A sample is what a large image or a clip is: some of it is stored as it is used, and the rest in tiles that are compressed one
by one, of which a crop needs a few. How many samples a batch has and how many tiles a crop needs is measured, so that reading
takes most of a worker's time on a slow disk and on a fast one.
"""

import json
import mmap
import os
import statistics
import struct
import threading
import time
import zlib
from typing import NamedTuple

SHARDS, SAMPLES = 8, 16  # a shard is a file
SAMPLE_BYTES = 4 << 20
TILES, TILE_BYTES = 64, 32 << 10  # a tile's size is that of its pixels; compressed it takes about half
REDUCE = 4  # of so many pixels one is used
RAW_BYTES = 16 << 10
LENGTHS = struct.Struct(f"<{TILES}I")
FORMAT = struct.pack("<8s3I", b"gtrademo", TILES, TILE_BYTES, RAW_BYTES)  # what a sample begins with
HEADER_BYTES = len(FORMAT) + LENGTHS.size

MEASURE_S = 0.8
DECODE_TO_READ = 0.1  # of the time that a worker reads
BATCH_S = 0.05  # about how often a batch comes
STEP_TO_BATCH = 0.4  # the GPU could go two and a half times as fast as the batches come
CHECKPOINT_S = 4.0


class Plan(NamedTuple):
    """What the loop does on this machine."""

    samples: int  # of a batch
    tiles: int  # decoded of a sample
    step_us: int  # of GPU work in a step
    checkpoint_every: int  # steps

    @property
    def sample_bytes(self):
        """A decoded sample."""
        return RAW_BYTES + self.tiles * TILE_BYTES // REDUCE

    @property
    def batch_bytes(self):
        return self.samples * self.sample_bytes


LIMITS = Plan(SAMPLES, TILES, 40_000, 10_000)


class Measured(NamedTuple):
    """What a plan is made from, in seconds."""

    read_s: float  # a sample, while every worker reads
    tile_s: float  # decoding one


def make_shards(folder):
    """Writes the shards that are not there, each durable before it gets its name. The paths of all."""
    os.makedirs(folder, exist_ok=True)
    paths = [os.path.join(folder, f"shard-{number:02}.bin") for number in range(SHARDS)]
    missing = [path for path in paths if not is_shard(path)]
    if missing:
        size = len(missing) * SAMPLES * SAMPLE_BYTES
        print(f"making {len(missing)} shards ({size / 1e6:.0f} MB) in {folder}", flush=True)
    for path in missing:
        with open(path + ".part", "wb") as file:
            for _ in range(SAMPLES):
                file.write(new_sample())
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".part", path)
    return paths


def is_shard(path):
    """Whether it was made whole, and by a gtrace with the same format."""
    if not os.path.isfile(path) or os.path.getsize(path) != SAMPLES * SAMPLE_BYTES:
        return False
    with open(path, "rb") as file:
        return file.read(len(FORMAT)) == FORMAT


def new_sample():
    """Half noise, which compresses to about a half, and noise, which does not."""
    half_noise = os.urandom(TILE_BYTES).translate(bytes(byte & 0x0F for byte in range(256)))
    packed = zlib.compress(half_noise, 1)
    sample = FORMAT + LENGTHS.pack(*[len(packed)] * TILES) + os.urandom(RAW_BYTES) + packed * TILES
    return sample + os.urandom(SAMPLE_BYTES - len(sample))


class Shard:
    """An open shard. Its reads go to the device: past the page cache where the file system can do that (as loaders do whose
    data set is much larger than the memory), else with the file's pages dropped first."""

    def __init__(self, path):
        self.path = path
        try:
            self.fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
        except OSError:
            self.fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(self.fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def read(self, number, buffer):
        """Reads a sample; the buffer begins at a page."""
        done = 0
        while done < SAMPLE_BYTES:
            count = os.preadv(self.fd, [buffer[done:]], number * SAMPLE_BYTES + done)
            if count == 0:
                raise OSError(f"{self.path} is shorter than it was made")
            done += count

    def close(self):
        os.close(self.fd)


def read_buffer():
    """Private memory, which begins at a page."""
    return memoryview(mmap.mmap(-1, SAMPLE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


def decode(sample, tiles, into):
    """Copies what is stored raw, and unpacks and reduces the first tiles."""
    into[:RAW_BYTES] = sample[HEADER_BYTES : HEADER_BYTES + RAW_BYTES]
    lengths = LENGTHS.unpack_from(sample, len(FORMAT))
    at, to = HEADER_BYTES + RAW_BYTES, RAW_BYTES
    for length in lengths[:tiles]:
        pixels = zlib.decompress(sample[at : at + length])[::REDUCE]
        into[to : to + len(pixels)] = pixels
        at, to = at + length, to + len(pixels)


def measure(paths, workers):
    """Reads with as many readers as there are workers, then decodes."""
    times, errors, end = [], [], time.monotonic() + MEASURE_S

    def reader(first):
        buffer, number = read_buffer(), first
        try:
            while time.monotonic() < end:
                shard = Shard(paths[number % len(paths)])
                for sample in range(SAMPLES):
                    began = time.monotonic()
                    shard.read(sample, buffer)
                    times.append(time.monotonic() - began)
                shard.close()
                number += workers
        except OSError as error:
            errors.append(error)

    readers = [threading.Thread(target=reader, args=(first,)) for first in range(workers)]
    for thread in readers:
        thread.start()
    for thread in readers:
        thread.join()
    if errors:
        raise errors[0]
    sample, shard = read_buffer(), Shard(paths[0])
    shard.read(0, sample)
    shard.close()
    into, rounds = bytearray(RAW_BYTES + TILES * TILE_BYTES), []
    for _ in range(5):
        began = time.perf_counter()
        decode(sample, TILES, into)
        rounds.append(time.perf_counter() - began)
    return Measured(statistics.median(times), min(rounds) / TILES)


def make_plan(measured, workers):
    tiles = bounded(DECODE_TO_READ * measured.read_s / measured.tile_s, LIMITS.tiles)
    # All workers together; decoding one sample goes on while others are read.
    sample_s = measured.read_s / workers
    samples = bounded(BATCH_S / sample_s, LIMITS.samples)
    batch_s = samples * sample_s
    step_us = bounded(STEP_TO_BATCH * batch_s * 1e6, LIMITS.step_us)
    return Plan(samples, tiles, step_us, bounded(CHECKPOINT_S / batch_s, LIMITS.checkpoint_every))


def bounded(value, limit):
    return min(max(round(value), 1), limit)


def write_plan(folder, plan):
    path = os.path.join(folder, "plan.json")
    with open(path + ".part", "w", encoding="ascii") as file:
        json.dump(plan._asdict(), file)
    os.replace(path + ".part", path)


def read_plan(folder):
    """The plan that was made here, or nothing."""
    try:
        with open(os.path.join(folder, "plan.json"), encoding="ascii") as file:
            fields = json.loads(file.read(4096))
        plan = Plan(*(fields[name] for name in Plan._fields))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    right = all(isinstance(value, int) and 1 <= value <= limit for value, limit in zip(plan, LIMITS))
    return plan if right else None
