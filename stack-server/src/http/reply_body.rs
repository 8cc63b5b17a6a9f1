//! The body of a response: complete, or streamed in parts.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::http::memory::Reservation;

/// The body of a response.
#[derive(Debug)]
pub(crate) enum ReplyBody {
    /// A complete body.
    Whole(Bytes),
    /// A stream of parts. An error among the parts cuts the connection, so that no client takes a truncated body
    /// for a complete one.
    Parts(Receiver<io::Result<Bytes>>),
}

/// The sender of the parts of a streamed body.
pub(crate) type Parts = Sender<io::Result<Bytes>>;

impl ReplyBody {
    /// Makes a streamed body. The sender can be one part ahead of the client.
    pub(crate) fn parts() -> (Parts, Self) {
        let (sender, parts) = channel(1);
        (sender, Self::Parts(parts))
    }

    /// Returns the length of a complete body; 0 for a stream, whose parts hold memory of their own.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Whole(bytes) => bytes.len(),
            Self::Parts(_) => 0,
        }
    }

    /// Makes a complete body hold memory until it is sent.
    pub(crate) fn hold(&mut self, held: Reservation) {
        if let Self::Whole(bytes) = self {
            *bytes = held.keep(std::mem::take(bytes));
        }
    }
}

impl From<Bytes> for ReplyBody {
    fn from(bytes: Bytes) -> Self {
        Self::Whole(bytes)
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Parts(parts) => parts.poll_recv(context).map(|part| part.map(|part| part.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Parts(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Parts(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[test]
    fn failed_part_does_not_end_the_body() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (parts, mut body) = ReplyBody::parts();
            parts.send(Ok(Bytes::from_static(b"one"))).await.expect("there is room");
            let frame = body.frame().await.expect("a frame").expect("it is there");
            assert_eq!(frame.into_data().ok(), Some(Bytes::from_static(b"one")));
            parts.send(Err(io::Error::other("damaged"))).await.expect("there is room");
            drop(parts);
            assert!(body.frame().await.expect("a frame").is_err());
            assert!(body.frame().await.is_none());
        });
    }
}
