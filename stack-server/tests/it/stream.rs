//! A reader of server-sent events that behaves like a browser.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// An event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StreamEvent {
    pub(crate) id: u64,
    pub(crate) kind: String,
    pub(crate) data: Value,
}

/// A block of a stream: the text between two blank lines.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Block {
    Event(StreamEvent),
    /// A block without an event: an id without data, a comment, or a retry pause.
    Other(String),
}

pub(crate) struct EventStream {
    reader: BufReader<TcpStream>,
    /// Number of bytes left in the current chunk.
    chunk: usize,
}

impl EventStream {
    /// Opens a stream. The error is the refusal.
    pub(crate) fn try_open(
        address: SocketAddr,
        path: &str,
        last: Option<u64>,
    ) -> Result<Self, Box<dyn Error>> {
        Self::try_open_with(
            address,
            path,
            &last.map_or(String::new(), |id| format!("Last-Event-ID: {id}\r\n")),
        )
    }

    /// Opens a stream with additional header lines. The error is the refusal.
    pub(crate) fn try_open_with(
        address: SocketAddr,
        path: &str,
        headers: &str,
    ) -> Result<Self, Box<dyn Error>> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        (&stream).write_all(request.as_bytes())?;
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = reader.read_line(&mut head)?;
            if read == 0 {
                return Err(format!("it ended: {head}").into());
            }
        }
        if !head.starts_with("HTTP/1.1 200") {
            return Err(head.into());
        }
        assert!(head.contains("content-type: text/event-stream\r\n"), "{head}");
        Ok(Self { reader, chunk: 0 })
    }

    #[track_caller]
    pub(crate) fn open(address: SocketAddr, path: &str, last: Option<u64>) -> Self {
        match Self::try_open(address, path, last) {
            Ok(stream) => stream,
            Err(reason) => panic!("{path}: {reason}"),
        }
    }

    /// Returns the next byte, or `None` at the end.
    fn byte(&mut self) -> Option<u8> {
        if self.chunk == 0 {
            let mut line = String::new();
            while line.trim().is_empty() {
                line.clear();
                if self.reader.read_line(&mut line).ok()? == 0 {
                    return None;
                }
            }
            self.chunk = usize::from_str_radix(line.trim(), 16).ok()?;
            if self.chunk == 0 {
                return None;
            }
        }
        let mut byte = [0];
        self.reader.read_exact(&mut byte).ok()?;
        self.chunk -= 1;
        Some(byte[0])
    }

    /// Returns the next block, or `None` at the end.
    pub(crate) fn block(&mut self) -> Option<Block> {
        let mut text = Vec::new();
        while !text.ends_with(b"\n\n") {
            text.push(self.byte()?);
        }
        let text = String::from_utf8(text).expect("a stream is UTF-8");
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        Some(match (field("id: "), field("event: "), field("data: ")) {
            (Some(id), Some(kind), Some(data)) => Block::Event(StreamEvent {
                id: id.parse().expect("an id"),
                kind: kind.to_owned(),
                data: serde_json::from_str(data).expect("JSON"),
            }),
            _ => Block::Other(text),
        })
    }

    /// Returns the next event, or `None` at the end.
    pub(crate) fn event(&mut self) -> Option<StreamEvent> {
        loop {
            if let Block::Event(event) = self.block()? {
                return Some(event);
            }
        }
    }

    /// Returns the next `count` events.
    #[track_caller]
    pub(crate) fn events(&mut self, count: usize) -> Vec<StreamEvent> {
        (0..count).map(|_| self.event().expect("the stream goes on")).collect()
    }
}
