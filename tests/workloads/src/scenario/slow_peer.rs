//! The main thread waits for the answer of a slow peer over TCP.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::clock::now_ns;
use crate::stage::{Options, Stage};

const ANSWER_AFTER: Duration = Duration::from_millis(25);

pub fn run(options: &Options) -> Result<()> {
    let address = options
        .peer
        .as_deref()
        .context("this scenario needs --peer ADDRESS: what `workloads peer` prints")?;
    let mut connection =
        TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
    connection.set_nodelay(true)?;
    Stage::open(options)?.pinned().play(|stage| {
        connection.write_all(&[1]).context("cannot ask the peer")?;
        let start = now_ns();
        connection.read_exact(&mut [0]).context("the peer has gone")?;
        stage.truth.planted(start, now_ns(), &["net.recv"], Some(address.to_owned()));
        Ok(())
    })
}

/// The peer: answers each byte after a while, one connection after the other, until it is killed.
///
/// # Errors
/// It cannot listen.
pub fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen on the loopback interface")?;
    println!("READY {}", listener.local_addr()?);
    for connection in listener.incoming() {
        let mut connection = connection?;
        connection.set_nodelay(true)?;
        while connection.read(&mut [0]).is_ok_and(|bytes| bytes == 1) {
            std::thread::sleep(ANSWER_AFTER);
            if connection.write_all(&[1]).is_err() {
                break;
            }
        }
    }
    Ok(())
}
