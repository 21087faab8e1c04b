"""A data loader in the shape of the usual ones: worker processes that read and decode, a thread that pins.

main --index queue--> worker process: read a cold file, decode it into shared memory --result queue--> pinning thread:
copy into pinned memory --queue--> main
"""

import ctypes
import mmap
import multiprocessing
import os
import queue
import threading
import zlib

RAW_BYTES = 10 << 20  # of a shard: stored as it is used
DECODED_BYTES = 6 << 20  # of a shard: stored compressed
BATCH_BYTES = RAW_BYTES + DECODED_BYTES
PREFETCH = 2  # batches that a worker may be ahead


def set_thread_name(name):
    """What ps, top and a trace show; the kernel keeps 15 bytes."""
    pr_set_name = 15
    ctypes.CDLL(None).prctl(pr_set_name, name.encode(), 0, 0, 0)


def make_shards(folder, count):
    """Writes the data set once, durable, so that dropping it from the page cache makes it cold."""
    os.makedirs(folder, exist_ok=True)
    paths = [os.path.join(folder, f"shard-{number:03}.bin") for number in range(count)]
    missing = [path for path in paths if not os.path.exists(path)]
    if missing:
        print(f"making {len(missing)} shards in {folder}", flush=True)
        half_noise = os.urandom(DECODED_BYTES).translate(bytes(byte & 0x0F for byte in range(256)))
        packed = zlib.compress(half_noise, 1)
    for path in missing:
        with open(path + ".part", "wb") as file:
            file.write(len(packed).to_bytes(8, "little") + packed + os.urandom(RAW_BYTES))
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".part", path)
    return paths


def read_cold(path):
    """Reads a file from the device, whatever the page cache held."""
    with open(path, "rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return file.read()


def decode(shard, into):
    """Unpacks the compressed part and copies the rest."""
    shard = memoryview(shard)
    packed = 8 + int.from_bytes(shard[:8], "little")
    into[:DECODED_BYTES] = zlib.decompress(shard[8:packed])
    into[DECODED_BYTES:BATCH_BYTES] = shard[packed : packed + RAW_BYTES]


def worker_main(paths, slots, indices, results):
    """A worker process: one batch an index, until told to end."""
    set_thread_name("pt_data_worker")
    while True:
        task = indices.get()
        if task is None:
            return
        index, slot = task
        decode(read_cold(paths[index % len(paths)]), slots[slot])
        results.put((index, slot))


class Loader:
    """Yields batches in pinned memory, in the order in which they become ready."""

    def __init__(self, paths, workers):
        self.slots = [mmap.mmap(-1, BATCH_BYTES) for _ in range(workers * PREFETCH)]
        self.results = multiprocessing.Queue()
        self.indices = [multiprocessing.Queue() for _ in range(workers)]
        self.workers = [
            multiprocessing.Process(
                target=worker_main, args=(paths, self.slots, indices, self.results), name=f"worker {number}", daemon=True
            )
            for number, indices in enumerate(self.indices)
        ]
        for worker in self.workers:
            worker.start()
        self.next_index = 0
        self.pinned = queue.Queue()
        self.in_flight = queue.Queue()  # pinned buffers whose copy to the device may still run

    def start(self, gpu):
        """Starts the pinning thread and hands out the first work; after the workers were forked, as CUDA needs it."""
        threading.Thread(target=self._pin, args=(gpu,), name="pin", daemon=True).start()
        for slot in range(len(self.slots)):
            self._request(slot)

    def _request(self, slot):
        self.indices[slot % len(self.workers)].put((self.next_index, slot))
        self.next_index += 1

    def _pin(self, gpu):
        set_thread_name("pt_data_pin")
        gpu.make_current()
        while True:
            _, slot = self.results.get()
            buffer = self._free_pinned(gpu)
            source = (ctypes.c_char * BATCH_BYTES).from_buffer(self.slots[slot])
            ctypes.memmove(buffer, source, BATCH_BYTES)
            self.pinned.put((buffer, slot))

    def _free_pinned(self, gpu):
        """A pinned buffer that the device no longer reads, or a new one."""
        try:
            buffer, event = self.in_flight.get_nowait()
        except queue.Empty:
            return gpu.alloc_pinned(BATCH_BYTES)
        if gpu.is_done(event):
            return buffer
        self.in_flight.put((buffer, event))
        return gpu.alloc_pinned(BATCH_BYTES)

    def next(self):
        """Waits for a batch and asks for another one in its place."""
        buffer, slot = self.pinned.get()
        self._request(slot)
        return buffer

    def give_back(self, buffer, event):
        """The buffer may be used again once the event is done."""
        self.in_flight.put((buffer, event))

    def close(self):
        for indices in self.indices:
            indices.put(None)
        for worker in self.workers:
            worker.join(timeout=5)
