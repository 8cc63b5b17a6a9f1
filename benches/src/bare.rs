//! An HTTP server without a ledger. Its figures show how much of the time of a request HTTP takes.

use std::convert::Infallible;
use std::net::TcpListener;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;

use crate::Failure;

/// Body of every answer, about as long as the answer to a single transaction.
const BODY: &[u8] = &[b'x'; 300];

/// Answers every request with 300 bytes on this thread until the process ends.
///
/// # Errors
///
/// Fails if the listener fails.
pub fn serve(listener: TcpListener) -> Result<Infallible, Failure> {
    serve_with(listener, answer)
}

/// Answers every request with the result of a function, on this thread, until the process ends.
///
/// # Errors
///
/// Fails if the listener fails.
pub(crate) fn serve_with<A, E>(
    listener: TcpListener,
    answer: impl Fn(Request<Incoming>) -> A + Copy + 'static,
) -> Result<Infallible, Failure>
where
    A: Future<Output = Result<Response<Full<Bytes>>, E>> + 'static,
    E: Into<Failure> + 'static,
{
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::task::spawn_local(async move {
                // A client that closes its connection is not an error of the server.
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service_fn(answer))
                    .await;
            });
        }
    })
}

/// Reads the whole body, as a real server would.
async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    request.into_body().collect().await?;
    Ok(Response::new(Full::new(Bytes::from_static(BODY))))
}
