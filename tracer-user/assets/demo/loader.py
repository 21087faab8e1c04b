"""A data loader in the shape of the usual ones: worker processes that read and decode, a thread that pins.

main --index queue--> worker process: for each sample, read it and decode it into shared memory --result queue--> pinning
thread: copy into pinned memory --queue--> main
"""

import ctypes
import mmap
import multiprocessing
import queue
import random
import threading

import dataset

PREFETCH = 2  # batches that a worker may be ahead
ALIVE_CHECK_S = 5  # a batch that does not come for so long may come from a worker that died


def set_thread_name(name):
    """What ps, top and a trace show; the kernel keeps 15 bytes."""
    pr_set_name = 15
    ctypes.CDLL(None).prctl(pr_set_name, name.encode(), 0, 0, 0)


def worker_main(paths, plan, slots, indices, results):
    """A worker process: one batch an index, until told to end."""
    set_thread_name("pt_data_worker")
    buffer = dataset.read_buffer()
    while True:
        task = indices.get()
        if task is None:
            return
        index, slot = task
        load_batch(paths[index % len(paths)], plan, buffer, memoryview(slots[slot]))
        results.put((index, slot))


def load_batch(path, plan, buffer, batch):
    """Samples of one shard in random order, none twice."""
    shard = dataset.Shard(path)
    for place, number in enumerate(random.sample(range(dataset.SAMPLES), plan.samples)):
        shard.read(number, buffer)
        dataset.decode(buffer, plan.tiles, batch[place * plan.sample_bytes :])
    shard.close()


class Loader:
    """Yields batches in pinned memory, in the order in which they become ready."""

    def __init__(self, paths, plan, workers):
        self.batch_bytes = plan.batch_bytes
        self.slots = [mmap.mmap(-1, self.batch_bytes) for _ in range(workers * PREFETCH)]
        fork = multiprocessing.get_context("fork")  # the slots are inherited
        self.results = fork.Queue()
        self.indices = [fork.Queue() for _ in range(workers)]
        self.workers = [
            fork.Process(target=worker_main, args=(paths, plan, self.slots, indices, self.results), daemon=True)
            for indices in self.indices
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
            source = (ctypes.c_char * self.batch_bytes).from_buffer(self.slots[slot])
            ctypes.memmove(buffer, source, self.batch_bytes)
            self.pinned.put((buffer, slot))

    def _free_pinned(self, gpu):
        """A pinned buffer that the device no longer reads, or a new one."""
        try:
            buffer, event = self.in_flight.get_nowait()
        except queue.Empty:
            return gpu.alloc_pinned(self.batch_bytes)
        if gpu.is_done(event):
            return buffer
        self.in_flight.put((buffer, event))
        return gpu.alloc_pinned(self.batch_bytes)

    def next(self):
        """Waits for a batch and asks for another one in its place."""
        while True:
            try:
                buffer, slot = self.pinned.get(timeout=ALIVE_CHECK_S)
                break
            except queue.Empty:
                self._check_workers()
        self._request(slot)
        return buffer

    def _check_workers(self):
        dead = [worker.pid for worker in self.workers if not worker.is_alive()]
        if dead:
            raise RuntimeError(f"the loader's worker {dead[0]} has ended")

    def give_back(self, buffer, event):
        """The buffer may be used again once the event is done."""
        self.in_flight.put((buffer, event))

    def close(self):
        for indices in self.indices:
            indices.put(None)
        for worker in self.workers:
            worker.join(timeout=5)
