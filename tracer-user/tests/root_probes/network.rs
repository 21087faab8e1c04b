//! Wake edges of the network.

use tracer_abi::kernel::{ObjectKind, WakerKind};

use crate::harness::{Recording, Target, waker_kind};

const LOOPBACK: [u8; 4] = [127, 0, 0, 1];

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn a_receiver_is_woken_by_the_packet_of_its_connection() {
    let program = "
listener = socket.create_server(('127.0.0.1', 0))
wait()
child = os.fork()
if child == 0:
    time.sleep(0.03)
    peer = socket.create_connection(listener.getsockname())
    time.sleep(0.03)
    peer.send(b'x')
    time.sleep(0.03)
    os._exit(0)
connection, address = listener.accept()
connection.recv(1)
say(child, listener.getsockname()[1], address[1])
os.waitpid(child, 0)
";
    let mut target = Target::start(program, &[]);
    let mut recording = Recording::of(&target);
    target.go();
    let [child, server_port, client_port] = target.numbers();
    target.end();
    recording.finish();
    for (nr, sender) in [(libc::SYS_accept4, libc::SYS_connect), (libc::SYS_recvfrom, libc::SYS_sendto)] {
        let off = recording.longest_off_in(target.pid(), nr);
        assert_eq!(waker_kind(off), WakerKind::Net, "{off:?}");
        let socket = off.waker.socket;
        assert_eq!(u64::from(socket.local_port), server_port, "{off:?}");
        assert_eq!(u64::from(socket.peer_port), client_port, "{off:?}");
        assert_eq!((&socket.local[..4], &socket.peer[..4]), (&LOOPBACK[..], &LOOPBACK[..]));
        // On loopback the softirq runs inside the sender's call.
        assert_eq!(u64::from(off.waker.tid), child);
        assert_eq!(libc::c_long::from(off.waker.syscall_nr), sender);
    }
    let receive = recording.calls_of(target.pid(), libc::SYS_recvfrom)[0];
    assert_eq!(receive.object.kind, ObjectKind::Tcp as u32);
    assert_eq!(u64::from(receive.object.addresses.peer_port), client_port);
    assert_eq!(u64::from(receive.object.addresses.local_port), server_port);
}

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn a_datagram_is_not_ascribed_to_the_connection_before_it() {
    let program = "
listener = socket.create_server(('127.0.0.1', 0))
peer = socket.create_connection(listener.getsockname())
connection, _ = listener.accept()
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(('127.0.0.1', 0))
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
wait()
def send():
    for _ in range(50):
        peer.send(b'x')
        sender.sendto(b'x', receiver.getsockname())
        time.sleep(0.001)
thread = threading.Thread(target=send)
thread.start()
for _ in range(50):
    receiver.recvfrom(1)
thread.join()
";
    let mut target = Target::start(program, &[]);
    let mut recording = Recording::of(&target);
    target.go();
    target.end();
    recording.finish();
    let waits = recording.off_in(target.pid(), libc::SYS_recvfrom);
    assert!(waits.len() >= 20, "{} waits", waits.len());
    for off in waits {
        assert_ne!(waker_kind(off), WakerKind::Net, "a TCP connection in the edge of a datagram: {off:?}");
    }
    for call in recording.calls_of(target.pid(), libc::SYS_recvfrom) {
        assert_eq!(call.object.kind, ObjectKind::Udp as u32, "{call:?}");
    }
}

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn a_unix_socket_names_its_other_end() {
    let program = "
a, b = socket.socketpair()
def send():
    time.sleep(0.02)
    b.send(b'x')
wait()
thread = threading.Thread(target=send)
thread.start()
a.recv(1)
say(os.fstat(a.fileno()).st_ino, os.fstat(b.fileno()).st_ino)
thread.join()
";
    let mut target = Target::start(program, &[]);
    let mut recording = Recording::of(&target);
    target.go();
    let [own, peer] = target.numbers();
    target.end();
    recording.finish();
    let call = recording.calls_of(target.pid(), libc::SYS_recvfrom)[0];
    assert_eq!(call.object.kind, ObjectKind::Unix as u32);
    assert_eq!((call.object.inode, call.object.peer_inode), (own, peer));
}
