#!/usr/bin/env python3
"""A training loop in the shape of a real one, for `gtrace demo`: it starves its GPU the way that real ones do.

Worker processes read cold files and decode them, a thread pins the batches, the main thread copies them to the device and
queues the kernels of a step; every few steps it reads the loss, and now and then it writes a checkpoint.
"""

import argparse
import ctypes
import os
import signal
import sys
import time

import cuda
import loader

LAYERS = 8
LAYER_FORWARD_US, LAYER_BACKWARD_US, OPTIMIZER_US = 400, 800, 1200
LOG_EVERY = 10
PARAMETER_BYTES = 32 << 20


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    default = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
    parser.add_argument("--data", default=default, help="folder of the data set, made at first use (on a real disk)")
    parser.add_argument("--shards", type=int, default=24)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200, help="0: until it is interrupted")
    parser.add_argument("--checkpoint-every", type=int, default=60)
    parser.add_argument("--probe", action="store_true", help="print how many devices there are, and end")
    parser.add_argument("--prepare", action="store_true", help="make the data set, and end")
    return parser.parse_args()


class Training:
    """The model's side of the loop."""

    def __init__(self, gpu, folder):
        self.gpu = gpu
        self.batch = gpu.alloc(loader.BATCH_BYTES)
        self.parameters = gpu.alloc(PARAMETER_BYTES)
        self.loss = ctypes.create_string_buffer(4)
        self.checkpoint_copy = gpu.alloc_pinned(PARAMETER_BYTES)
        self.checkpoint_path = os.path.join(folder, "checkpoint.pt")

    def step(self, batches):
        buffer = batches.next()
        self.gpu.copy_to_device(self.batch, buffer, loader.BATCH_BYTES)
        batches.give_back(buffer, self.gpu.record_event())
        for _ in range(LAYERS):
            self.gpu.kernel(LAYER_FORWARD_US)
        for _ in range(LAYERS):
            self.gpu.kernel(LAYER_BACKWARD_US)
        self.gpu.kernel(OPTIMIZER_US)

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


def train(options, paths):
    batches = loader.Loader(paths, options.workers)
    gpu = cuda.Gpu(cuda.Driver())
    training = Training(gpu, options.data)
    batches.start(gpu)
    print(f"training on {gpu.name}, {options.workers} workers, pid {os.getpid()}", flush=True)
    stop = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.append(True))
    began, logged, step = time.monotonic(), time.monotonic(), 0
    while not stop and (options.steps == 0 or step < options.steps):
        training.step(batches)
        step += 1
        if step % LOG_EVERY == 0:
            training.read_loss()
            now = time.monotonic()
            print(f"step {step}: loss {2.3 / (1 + step / 100):.3f}, {LOG_EVERY / (now - logged):.1f} steps/s", flush=True)
            logged = now
        if step % options.checkpoint_every == 0:
            training.checkpoint()
    gpu.synchronize()
    elapsed = time.monotonic() - began
    batches.close()
    print(f"{step} steps in {elapsed:.2f} s: {step / elapsed:.2f} steps/s", flush=True)


def main():
    options = arguments()
    if options.probe:
        print(cuda.Driver().device_count())
        return 0
    try:
        paths = loader.make_shards(options.data, options.shards)
    except OSError as error:
        print(f"cannot make the data set in {options.data}: {error}", file=sys.stderr)
        return 1
    if not options.prepare:
        train(options, paths)
    return 0


if __name__ == "__main__":
    sys.exit(main())
