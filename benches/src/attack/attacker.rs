//! The connections of an attack.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::cases::{Case, NextAction, Request};
use crate::Failure;
use crate::http_client::Connection;

/// Time between two bytes of a client that sends one now and then.
const TRICKLE: Duration = Duration::from_secs(5);

/// Opens the connections of an attack at once and holds them. Returns how they ended, as counts.
pub(super) fn run(address: &str, case: &Case, connections: u64, hold: Duration) -> Result<String, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ends = runtime.block_on(async {
        let until = Instant::now() + hold;
        let mut clients = JoinSet::new();
        for number in 0..connections {
            let (address, request) = (address.to_owned(), (case.request)(number));
            clients.spawn(async move {
                match request.next {
                    NextAction::Repeats => repeat(&address, &request, until).await,
                    NextAction::Leaves => leave(&address, &request, until).await,
                    NextAction::Waits | NextAction::Trickles => {
                        hold_connection(&address, request, until).await
                    }
                }
            });
        }
        clients.join_all().await
    });
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for end in ends {
        *counts.entry(end).or_default() += 1;
    }
    let counts: Vec<String> = counts.into_iter().map(|(end, count)| format!("{count} × {end}")).collect();
    Ok(counts.join(", "))
}

/// Sends a request and holds the connection. Returns its end: the status of an answer, `closed` if the server closed it
/// without one, `open` if neither happened, or `refused` if it could not be opened.
async fn hold_connection(address: &str, request: Request, until: Instant) -> String {
    let Ok(stream) = TcpStream::connect(address).await else { return "refused".to_owned() };
    let (mut reader, mut writer) = stream.into_split();
    let reading = async {
        let mut start = [0; 12];
        match reader.read_exact(&mut start).await {
            Ok(_) => String::from_utf8_lossy(&start[9..]).into_owned(),
            Err(_) => "closed".to_owned(),
        }
    };
    let writing = async {
        // The server may close the connection while bytes are sent. Reading then ends, too.
        let _ = send(&mut writer, &request).await;
        std::future::pending::<()>().await;
    };
    let end = tokio::select! {
        end = reading => end,
        () = writing => "open".to_owned(),
        () = tokio::time::sleep_until(until) => "open".to_owned(),
    };
    // The attacker reads only the status of an answer and keeps the connection open.
    if end != "closed" {
        tokio::time::sleep_until(until).await;
    }
    end
}

/// Sends a request again and again. Returns the status of the last answer.
async fn repeat(address: &str, request: &Request, until: Instant) -> String {
    let Ok(mut connection) = Connection::connect(address).await else { return "refused".to_owned() };
    loop {
        match connection.exchange(request.head.as_bytes()).await {
            Ok(_) if Instant::now() < until => {}
            Ok(answer) => return answer.status.to_string(),
            Err(_) => return "closed".to_owned(),
        }
    }
}

/// Sends a request on one connection after the other, each of which ends at once.
async fn leave(address: &str, request: &Request, until: Instant) -> String {
    while Instant::now() < until {
        let Ok(mut stream) = TcpStream::connect(address).await else { return "refused".to_owned() };
        // The server may close the connection first.
        let _ = stream.write_all(request.head.as_bytes()).await;
    }
    "left".to_owned()
}

async fn send(writer: &mut OwnedWriteHalf, request: &Request) -> std::io::Result<()> {
    static FILLING: [u8; 64 << 10] = [b'x'; 64 << 10];
    writer.write_all(request.head.as_bytes()).await?;
    let mut left = request.filling;
    while left > 0 {
        let count = left.min(FILLING.len());
        writer.write_all(&FILLING[..count]).await?;
        left -= count;
    }
    if request.next != NextAction::Trickles {
        return Ok(());
    }
    loop {
        tokio::time::sleep(TRICKLE).await;
        writer.write_all(b"x").await?;
    }
}
