//! Refuses requests with lines that end in a bare line feed, without a carriage return.
//!
//! hyper accepts a bare line feed as a line end. A proxy in front of the server may not, and then the two disagree where a
//! head ends, so that an attacker can smuggle a request inside another. This stream follows the framing of requests and
//! replaces a bare line feed by a NUL. hyper answers that with 400 and closes the connection.

use std::cell::RefCell;
use std::io;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use memchr::memchr;

use crate::http::memory::{Pool, Reservation};
use crate::limits::UNCOUNTED_BYTES_MAX;

/// Number of bytes that a connection reads at once. All connections of an HTTP thread share one buffer of this size.
const SCRATCH_BYTES: usize = 64 * 1_024;

/// Maximum number of bytes of an incomplete line that are kept until the rest arrives. The lines that define the framing
/// of a body are shorter.
const LINE_KEPT_MAX: usize = 128;

thread_local! {
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH_BYTES].into());
}

/// The part of a request to which the next byte belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The request line, or an empty line before it.
    RequestLine,
    Header,
    /// A body, or a chunk with its line end, of which this many bytes are left.
    Body {
        left: u64,
        is_chunk: bool,
    },
    ChunkSize,
    Trailer,
    /// The connection has sent a malformed request, and all further bytes are refused.
    Refused,
}

/// The framing of a request is malformed.
struct FramingError;

/// The state of the framing of a connection.
#[derive(Debug)]
struct Lines {
    part: Part,
    /// The beginning of an incomplete line.
    kept: Vec<u8>,
    /// True if the line is longer than `kept`.
    is_cut: bool,
    /// The last byte of the incomplete line.
    last: u8,
    length: u64,
    is_chunked: bool,
    /// Number of bytes of the current head so far.
    head: usize,
}

impl Default for Lines {
    fn default() -> Self {
        let part = Part::RequestLine;
        Self { part, kept: Vec::new(), is_cut: false, last: 0, length: 0, is_chunked: false, head: 0 }
    }
}

impl Lines {
    /// Follows the next bytes of the connection, and overwrites them with NUL where they are refused.
    fn pass(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            let before = self.part;
            let taken = match before {
                Part::Refused => {
                    bytes.fill(0);
                    bytes.len()
                }
                Part::Body { left, is_chunk } => self.pass_body(bytes.len(), left, is_chunk),
                _ => self.pass_line(bytes),
            };
            self.head = match (before, self.part) {
                (Part::RequestLine | Part::Header, Part::Header) | (Part::RequestLine, Part::RequestLine) => {
                    self.head + taken
                }
                _ => 0,
            };
            bytes = &mut bytes[taken..];
        }
    }

    fn pass_body(&mut self, available: usize, left: u64, is_chunk: bool) -> usize {
        let taken = usize::try_from(left).unwrap_or(usize::MAX).min(available);
        self.part = match left - taken as u64 {
            0 if is_chunk => Part::ChunkSize,
            0 => Part::RequestLine,
            left => Part::Body { left, is_chunk },
        };
        taken
    }

    fn pass_line(&mut self, bytes: &mut [u8]) -> usize {
        let Some(at) = memchr(b'\n', bytes) else {
            self.keep(bytes);
            return bytes.len();
        };
        let before = if at == 0 { self.last } else { bytes[at - 1] };
        let ended = if before != b'\r' {
            Err(FramingError)
        } else if self.kept.is_empty() {
            self.end_line(&bytes[..at.saturating_sub(1)])
        } else {
            self.keep(&bytes[..at]);
            let line = mem::take(&mut self.kept);
            let ended = self.end_line(line.strip_suffix(b"\r").unwrap_or(&line));
            // Reuse the buffer for the next line.
            self.kept = line;
            self.kept.clear();
            ended
        };
        (self.is_cut, self.last) = (false, 0);
        if ended.is_err() {
            bytes[at] = 0;
            self.part = Part::Refused;
        }
        at + 1
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LINE_KEPT_MAX - self.kept.len();
        self.is_cut |= bytes.len() > room;
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.last = bytes.last().copied().unwrap_or(self.last);
    }

    /// Handles a complete line, given without its line end.
    fn end_line(&mut self, line: &[u8]) -> Result<(), FramingError> {
        self.part = match self.part {
            Part::RequestLine | Part::Trailer if line.is_empty() => Part::RequestLine,
            Part::RequestLine => {
                (self.length, self.is_chunked) = (0, false);
                Part::Header
            }
            Part::Header if line.is_empty() => match self.length {
                _ if self.is_chunked => Part::ChunkSize,
                0 => Part::RequestLine,
                left => Part::Body { left, is_chunk: false },
            },
            Part::ChunkSize => match chunk_size(line, self.is_cut).ok_or(FramingError)? {
                0 => Part::Trailer,
                size => Part::Body { left: size.checked_add(2).ok_or(FramingError)?, is_chunk: true },
            },
            part => {
                if part == Part::Header {
                    self.read_header(line)?;
                }
                part
            }
        };
        Ok(())
    }

    fn read_header(&mut self, line: &[u8]) -> Result<(), FramingError> {
        // Fast path: only `Content-Length` and `Transfer-Encoding` matter here.
        let Some(b'c' | b'C' | b't' | b'T') = line.first() else { return Ok(()) };
        let Some(colon) = memchr(b':', line) else { return Ok(()) };
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        let is_length = name.eq_ignore_ascii_case(b"content-length");
        let is_coding = name.eq_ignore_ascii_case(b"transfer-encoding");
        if (is_length || is_coding) && self.is_cut {
            return Err(FramingError);
        }
        if is_length {
            let digits = std::str::from_utf8(value).ok().ok_or(FramingError)?.trim_matches([' ', '\t']);
            self.length = digits.parse().ok().ok_or(FramingError)?;
        }
        // hyper refuses every transfer coding other than `chunked` at the end.
        self.is_chunked |= is_coding;
        Ok(())
    }
}

/// Parses the size of a chunk. `None` if the line has none, or if it was cut within the size.
fn chunk_size(line: &[u8], is_cut: bool) -> Option<u64> {
    let end = line.iter().position(|byte| !byte.is_ascii_hexdigit());
    let end = end.or((!is_cut).then_some(line.len()))?;
    u64::from_str_radix(std::str::from_utf8(&line[..end]).ok()?, 16).ok()
}

/// A stream that refuses bare line feeds in heads. It fails if there is no memory for a long head.
pub(crate) struct StrictLines<T> {
    inner: T,
    lines: Lines,
    heads: Pool,
    /// The reservation for the current head, if it is long.
    held: Option<Reservation>,
}

impl<T> StrictLines<T> {
    /// Wraps a stream. Long heads reserve memory of this pool.
    pub(crate) fn new(inner: T, heads: Pool) -> Self {
        Self { inner, lines: Lines::default(), heads, held: None }
    }

    /// Reserves memory for the bytes of a long head, which hyper keeps until the request is answered.
    fn hold_head(&mut self) -> io::Result<()> {
        let long = self.lines.head.saturating_sub(UNCOUNTED_BYTES_MAX);
        if long == 0 {
            self.held = None;
            return Ok(());
        }
        let mut held = self.held.take().unwrap_or_else(|| self.heads.nothing());
        if !held.try_grow_to(long) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.held = Some(held);
        Ok(())
    }
}

impl<T: Read + Unpin> Read for StrictLines<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        SCRATCH.with_borrow_mut(|scratch| {
            let room = scratch.len().min(buffer.remaining());
            let mut read = ReadBuf::new(&mut scratch[..room]);
            ready!(Pin::new(&mut this.inner).poll_read(context, read.unfilled()))?;
            let count = read.filled().len();
            let bytes = &mut scratch[..count];
            this.lines.pass(bytes);
            this.hold_head()?;
            buffer.put_slice(bytes);
            Poll::Ready(Ok(()))
        })
    }
}

impl<T: Write + Unpin> Write for StrictLines<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, buffers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

    /// Returns the bytes that are handed on, whatever pieces the text arrives in.
    fn passed(text: &str) -> Vec<u8> {
        let mut whole = text.as_bytes().to_vec();
        Lines::default().pass(&mut whole);
        for size in [1, 2, 3, 7] {
            let mut lines = Lines::default();
            let mut pieces = text.as_bytes().to_vec();
            pieces.chunks_mut(size).for_each(|piece| lines.pass(piece));
            assert_eq!(pieces, whole, "{text:?} in pieces of {size}");
        }
        whole
    }

    #[test]
    fn hands_well_formed_requests_on() {
        let long = "x".repeat(1_000);
        for text in [
            GET.to_owned(),
            format!("\r\n\r\n{GET}{GET}"),
            format!("POST / HTTP/1.1\r\ncontent-LENGTH:\t 4 \r\n\r\na\nb\n{GET}"),
            format!("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n{GET}"),
            format!("POST / HTTP/1.1\r\nX: {long}\r\nContent-Length: 1\r\n\r\n\n{GET}"),
            format!(
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\n\n\n\n\r\nA\r\n\n\n\n\n\n\n\n\n\n\n\r\n0\r\nt: v\r\n\r\n{GET}"
            ),
        ] {
            assert_eq!(passed(&text), text.as_bytes(), "{text:?}");
        }
    }

    #[test]
    fn spoils_bare_line_feeds_and_what_follows() {
        let long = "0".repeat(1_000);
        for (good, rest) in [
            ("", "\nGET / HTTP/1.1\r\n\r\n".to_owned()),
            ("GET / HTTP/1.1", "\nHost: a\r\n\r\n".to_owned()),
            ("GET / HTTP/1.1\r\nHost: a", "\nX: b\r\n\r\n".to_owned()),
            ("GET / HTTP/1.1\r\nHost: a\r\n", "\n".to_owned()),
            (GET, "\n\n".to_owned()),
            ("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n\n\nGET / HTTP/1.1", format!("\n{GET}")),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nt: v", "\n\r\n".to_owned()),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1", "\n".to_owned()),
            ("POST / HTTP/1.1\r\nContent-Length: x\r", format!("\n{GET}")),
        ] {
            let expected = [good.as_bytes(), &vec![0; rest.len()]].concat();
            assert_eq!(passed(&format!("{good}{rest}")), expected, "{good:?} and {rest:?}");
        }
        // A length that is cut off cannot be read, so the request is refused.
        for begin in ["Content-Length: ", "Transfer-Encoding: chunked\r\n\r\n"] {
            let mut lines = Lines::default();
            let mut first = format!("POST / HTTP/1.1\r\n{begin}{long}").into_bytes();
            lines.pass(&mut first);
            let mut second = b"1\r\n\r\nx".to_vec();
            lines.pass(&mut second);
            assert_eq!(second, b"1\r\0\0\0\0");
        }
    }
    /// A peer that sends this many bytes at once.
    struct Peer(usize);

    impl Read for Peer {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            mut buffer: ReadBufCursor<'_>,
        ) -> Poll<io::Result<()>> {
            buffer.put_slice(&vec![b'x'; self.0]);
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn long_heads_share_their_memory() {
        let pool = Pool::new(10_000);
        let read = |stream: &mut StrictLines<Peer>| {
            let mut bytes = vec![0; 8_192];
            let mut buffer = ReadBuf::new(&mut bytes);
            let mut context = Context::from_waker(std::task::Waker::noop());
            let read = Pin::new(stream).poll_read(&mut context, buffer.unfilled());
            matches!(read, Poll::Ready(Ok(())))
        };
        let mut first = StrictLines::new(Peer(8_000), pool.clone());
        let mut second = StrictLines::new(Peer(8_000), pool.clone());
        assert!((0..2).all(|_| read(&mut first)), "7,808 bytes are counted");
        assert!(read(&mut second), "a short head is not counted");
        assert!(!read(&mut second));
        drop(first);
        let mut third = StrictLines::new(Peer(8_000), pool);
        assert!((0..2).all(|_| read(&mut third)));
        third.lines.pass(&mut b"\r\n\r\n".to_vec());
        third.hold_head().expect("the next head is short");
        assert!(third.held.is_none());
    }
}
