"""A Python program whose launching thread wants the interpreter lock while another thread computes and holds it.

The source of the demo's `cuda.py` stands before this one. Arguments: rounds (0: until a signal), neighbour or nothing.
"""

import hashlib
import json
import os
import signal
import sys
import threading
import time

WORK_US = 4_000
HOLD_NS = 25_000_000
# The launching thread gives the lock away for so long, and wants it back while the holder has it.
AWAY_S = 0.0002

stop = []
truth = []


def pin(cpu):
    try:
        os.sched_setaffinity(0, {cpu})
    except OSError:
        pass


def calibrated():
    """How many numbers are summed up in HOLD_NS: one call, in which the interpreter never looks whether others want it."""
    count = 1 << 16
    while True:
        start = time.monotonic_ns()
        sum(range(count))
        took = time.monotonic_ns() - start
        if took > HOLD_NS // 4:
            return count * HOLD_NS // took
        count *= 2


def hold(asked, count):
    pin(os.cpu_count() - 1)
    identity = {"pid": os.getpid(), "tid": threading.get_native_id(), "rank": 0}
    while True:
        asked.acquire()
        if stop:
            return
        start = time.monotonic_ns()
        sum(range(count))
        end = time.monotonic_ns()
        line = {"start_ns": start, "end_ns": end, "cause": ["host.cpu.user"], "object": "GIL"}
        truth.append({**line, **identity})


def native():
    """The loud and innocent: computes all the time, and needs the lock only between two computations."""
    pin(0)
    while not stop:
        hashlib.pbkdf2_hmac("sha256", b"loud", b"innocent", 8_000)


def main():
    rounds = int(sys.argv[1])
    count = calibrated()
    gpu = Gpu(Driver())
    gpu.kernel(WORK_US)
    gpu.synchronize()
    # Off the holder's CPU: the launching thread is to wait for the lock, not for a CPU. The driver's threads are there already.
    pin(0)
    asked = threading.Semaphore(0)
    threads = [threading.Thread(target=hold, args=(asked, count), name="holder")]
    if sys.argv[2:] == ["native"]:
        threads.append(threading.Thread(target=native, name="native"))
    ended = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.append(True))
    for thread in threads:
        thread.start()
    print("READY", os.getpid(), flush=True)
    done = 0
    while not ended and (rounds == 0 or done < rounds):
        gpu.kernel(WORK_US)
        if done % 2 == 0:
            gpu.synchronize()
        asked.release()
        time.sleep(AWAY_S)
        done += 1
    # One more op, so that the last act ends a gap and not the recording.
    gpu.kernel(WORK_US)
    gpu.synchronize()
    stop.append(True)
    asked.release()
    for thread in threads:
        thread.join()
    if path := os.environ.get("GTRACE_TRUTH"):
        with open(path, "a") as file:
            for line in truth:
                file.write(json.dumps(line) + "\n")


main()
