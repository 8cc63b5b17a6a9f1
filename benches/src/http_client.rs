//! A small HTTP/1.1 client: one connection, one request at a time.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, ToSocketAddrs};

use crate::Failure;

/// A connection that stays open between requests.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    /// The received bytes of the current answer.
    received: Vec<u8>,
}

/// The status and body of an answer. The body is in the buffer of the connection, which the next request overwrites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The status code.
    pub status: u16,
    /// The body. Its length is the `Content-Length` of the answer; the client does not support other encodings.
    pub body: &'a [u8],
}

/// The status line and headers of an answer, parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    /// Offset of the body.
    end: usize,
    /// Length of the body.
    length: usize,
}

impl Connection {
    /// Connects to a server.
    ///
    /// # Errors
    ///
    /// Fails if the connection fails.
    pub async fn connect(address: impl ToSocketAddrs) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, received: Vec::with_capacity(64 << 10) })
    }

    /// Sends a whole request and waits for the whole answer.
    ///
    /// # Errors
    ///
    /// Fails if the connection ends, or the answer is not HTTP or has no length.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<Answer<'_>, Failure> {
        self.received.clear();
        self.stream.write_all(request).await?;
        let head = loop {
            if let Some(head) = parse_head(&self.received)? {
                break head;
            }
            self.receive().await?;
        };
        while self.received.len() < head.end + head.length {
            self.receive().await?;
        }
        Ok(Answer { status: head.status, body: &self.received[head.end..head.end + head.length] })
    }

    /// Sends a whole `HEAD` request and returns the status of its answer, which has no body.
    ///
    /// # Errors
    ///
    /// Fails if the connection ends, or the answer is not HTTP.
    pub async fn head(&mut self, request: &[u8]) -> Result<u16, Failure> {
        self.received.clear();
        self.stream.write_all(request).await?;
        while !self.received.ends_with(b"\r\n\r\n") {
            self.receive().await?;
        }
        status(&self.received)
    }

    async fn receive(&mut self) -> Result<(), Failure> {
        if self.stream.read_buf(&mut self.received).await? == 0 {
            return Err("the server closed the connection".into());
        }
        Ok(())
    }
}

/// Parses the head of an answer. Returns `None` while the head is not complete.
fn parse_head(received: &[u8]) -> Result<Option<Head>, Failure> {
    let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let text = std::str::from_utf8(&received[..end])?;
    let mut lines = text.split("\r\n");
    let status = status(lines.next().unwrap_or_default().as_bytes())?;
    let mut length = None;
    for line in lines {
        let (name, value) = line.split_once(':').ok_or("a header without a colon")?;
        if name.eq_ignore_ascii_case("content-length") {
            length = Some(value.trim().parse()?);
        }
    }
    let length = match length {
        Some(length) => length,
        None if status == 204 => 0,
        None => return Err("an answer without a length".into()),
    };
    Ok(Some(Head { status, end: end + 4, length }))
}

/// Returns the status in the first line of an answer.
fn status(head: &[u8]) -> Result<u16, Failure> {
    let line = String::from_utf8_lossy(&head[..head.len().min(80)]).into_owned();
    let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    status.ok_or_else(|| format!("no HTTP/1.1 status: {line:?}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_complete_heads() {
        let whole = b"HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length:  5\r\n\r\nhello";
        for end in 0..whole.len() - 5 {
            assert!(parse_head(&whole[..end]).expect("no error yet").is_none(), "{end} bytes");
        }
        let head = parse_head(whole).expect("a head");
        assert_eq!(head, Some(Head { status: 200, end: whole.len() - 5, length: 5 }));
        let empty = parse_head(b"HTTP/1.1 204 No Content\r\n\r\n").expect("a head").expect("whole");
        assert_eq!((empty.status, empty.length), (204, 0));
    }

    #[test]
    fn refuses_other_bytes() {
        for bytes in
            ["SSH-2.0\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n"]
        {
            assert!(parse_head(bytes.as_bytes()).is_err(), "{bytes}");
        }
    }
}
