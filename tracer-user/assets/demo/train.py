#!/usr/bin/env python3
"""A training loop in the shape of a real one, for `gtrace demo`: it starves its GPU the way that real ones do.

Worker processes read cold samples and decode them, a thread pins the batches, the main thread copies them to the device and
queues the kernels of a step; every few steps it reads the loss, and now and then it writes a checkpoint.
"""

import argparse
import ctypes
import json
import os
import signal
import sys
import time

import cuda
import dataset
import loader

LAYERS = 6
LOG_EVERY = 10  # steps
SAY_EVERY_S = 5.0
PARAMETER_BYTES = 32 << 20


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    default = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
    parser.add_argument("--data", default=default, help="folder of the data set, made at first use (on a real disk)")
    workers = min(max(os.cpu_count() or 1, 2), 4)
    parser.add_argument("--workers", type=int, default=workers)
    parser.add_argument("--steps", type=int, default=0, help="end after so many; 0: do not count them")
    parser.add_argument("--seconds", type=float, default=0, help="end after so many; 0: go on until interrupted")
    parser.add_argument("--result", help="write steps and seconds to this file, the first step left out")
    parser.add_argument("--probe", action="store_true", help="print how many devices there are, and end")
    parser.add_argument("--prepare", action="store_true", help="make the data set, measure the disk, and end")
    return parser.parse_args()


class Training:
    """The model's side of the loop."""

    def __init__(self, gpu, plan, folder):
        self.gpu = gpu
        self.batch_bytes = plan.batch_bytes
        # Backward takes twice as long as forward, the optimizer as long as a layer of both.
        self.layer_us = plan.step_us / (LAYERS + 1) / 3
        self.batch = gpu.alloc(self.batch_bytes)
        self.parameters = gpu.alloc(PARAMETER_BYTES)
        self.loss = ctypes.create_string_buffer(4)
        self.checkpoint_copy = gpu.alloc_pinned(PARAMETER_BYTES)
        self.checkpoint_path = os.path.join(folder, "checkpoint.pt")

    def step(self, batches):
        buffer = batches.next()
        self.gpu.copy_to_device(self.batch, buffer, self.batch_bytes)
        batches.give_back(buffer, self.gpu.record_event())
        for _ in range(LAYERS):
            self.gpu.kernel(self.layer_us)
        for _ in range(LAYERS):
            self.gpu.kernel(2 * self.layer_us)
        self.gpu.kernel(3 * self.layer_us)

    def read_loss(self):
        """What `loss.item()` does: a copy to the host, and a wait for everything queued before it."""
        self.gpu.copy_to_host(self.loss, self.parameters, 4)
        self.gpu.synchronize()

    def checkpoint(self):
        """The parameters to a file, durable before it gets its name."""
        self.gpu.copy_to_host(self.checkpoint_copy, self.parameters, PARAMETER_BYTES)
        self.gpu.synchronize()
        data = (ctypes.c_char * PARAMETER_BYTES).from_address(self.checkpoint_copy.value)
        with open(self.checkpoint_path + ".part", "wb", buffering=0) as file:
            view = memoryview(data).cast("B")
            while view:
                view = view[file.write(view) :]
            os.fsync(file.fileno())
        os.replace(self.checkpoint_path + ".part", self.checkpoint_path)


def prepare(folder, paths, workers):
    """Measures the disk and decoding, and says what follows from it."""
    measured = dataset.measure(paths, workers)
    plan = dataset.make_plan(measured, workers)
    dataset.write_plan(folder, plan)
    rate = workers * dataset.SAMPLE_BYTES / measured.read_s / 1e6
    decode_ms = plan.tiles * measured.tile_s * 1e3
    print(
        f"the disk gives {workers} readers a sample of {dataset.SAMPLE_BYTES >> 20} MiB in {measured.read_s * 1e3:.1f} ms"
        f" ({rate:.0f} MB/s); decoding one takes {decode_ms:.1f} ms\n"
        f"so a batch is {plan.samples} of them, and the GPU's work on it {plan.step_us / 1e3:.1f} ms",
        flush=True,
    )
    return plan


def train(options, plan, paths):
    batches = loader.Loader(paths, plan, options.workers)
    gpu = cuda.Gpu(cuda.Driver())
    training = Training(gpu, plan, options.data)
    batches.start(gpu)
    print(f"training on {gpu.name}, {options.workers} workers, pid {os.getpid()}", flush=True)
    stop = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.append(True))
    training.step(batches)
    began = said = time.monotonic()
    step = said_step = 1
    while not stop and step != options.steps and not 0 < options.seconds <= time.monotonic() - began:
        training.step(batches)
        step += 1
        if step % LOG_EVERY == 0:
            training.read_loss()
        now = time.monotonic()
        if now - said >= SAY_EVERY_S:
            print(f"step {step}: loss {2.3 / (1 + step / 100):.3f}, {(step - said_step) / (now - said):.1f} steps/s", flush=True)
            said, said_step = now, step
        if step % plan.checkpoint_every == 0:
            training.checkpoint()
    gpu.synchronize()
    elapsed = time.monotonic() - began
    batches.close()
    steps = step - 1
    print(f"{steps} steps in {elapsed:.2f} s: {steps / elapsed:.2f} steps/s", flush=True)
    if options.result:
        with open(options.result, "w", encoding="ascii") as file:
            json.dump({"steps": steps, "seconds": elapsed}, file)


def main():
    options = arguments()
    if options.probe:
        print(cuda.Driver().device_count())
        return 0
    try:
        paths = dataset.make_shards(options.data)
        plan = None if options.prepare else dataset.read_plan(options.data)
        plan = plan or prepare(options.data, paths, options.workers)
    except OSError as error:
        print(f"cannot make or read the data set in {options.data}: {error}", file=sys.stderr)
        return 1
    if not options.prepare:
        train(options, plan, paths)
    return 0


if __name__ == "__main__":
    sys.exit(main())
