//! Connections to bridges, each spoken on by the task that asks: no other task has to wake for a question, which is most
//! of what a look costs besides the bridge itself. Those that are not in use are kept for a moment.
//!
//! A question is sent once. Only a connection that was closed before anything was sent on it is replaced.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// How long a connection may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// Unused connections that are kept for each bridge, and for how long: less than the 5 s that bridges keep theirs.
const IDLE_CONNECTIONS: usize = 8;
const IDLE_TIME: Duration = Duration::from_secs(4);

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nothing was asked.
    Unreachable(String),
    /// Nothing was asked, because that took too long.
    TooSlow,
    /// It went away before the end of its answer.
    HungUp(String),
    /// The answer has more than so many bytes.
    TooLong,
}

/// An answer as it came.
#[derive(Debug)]
pub(super) struct Raw {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// One connection, which goes on only while it is polled.
struct Line {
    sender: SendRequest<Full<Bytes>>,
    connection: Connection<TokioIo<TcpStream>, Full<Bytes>>,
}

/// Connections by host and port, and since when nobody uses them.
type Idle = HashMap<(String, u16), Vec<(Instant, Line)>>;

/// Connections that nobody uses at the moment.
#[derive(Default)]
pub(super) struct Lines {
    idle: Mutex<Idle>,
}

impl Lines {
    /// Asks, and takes an answer of so many bytes at most.
    pub(super) async fn ask(
        &self,
        at: (&str, u16),
        request: Request<Full<Bytes>>,
        most: usize,
    ) -> Result<Raw, Failure> {
        let mut line = match self.kept(at).await {
            Some(line) => line,
            None => Line::open(at).await?,
        };
        let answer = line.ask(request, most).await?;
        self.keep(at, line);
        Ok(answer)
    }

    /// A connection that is still there.
    async fn kept(&self, at: (&str, u16)) -> Option<Line> {
        loop {
            let mut line = self.lock().get_mut(&(at.0.to_owned(), at.1))?.pop()?.1;
            if line.is_ready().await {
                return Some(line);
            }
        }
    }

    fn keep(&self, (host, port): (&str, u16), line: Line) {
        let mut idle = self.lock();
        idle.retain(|_, lines| {
            lines.retain(|(since, _)| since.elapsed() < IDLE_TIME);
            !lines.is_empty()
        });
        let lines = idle.entry((host.to_owned(), port)).or_default();
        if lines.len() < IDLE_CONNECTIONS {
            lines.push((Instant::now(), line));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.values_mut().for_each(|lines| lines.retain(|(since, _)| since.elapsed() < IDLE_TIME));
        idle
    }
}

impl Line {
    async fn open(at: (&str, u16)) -> Result<Self, Failure> {
        let host = at.0.trim_start_matches('[').trim_end_matches(']');
        let connected = tokio::time::timeout(CONNECT_LIMIT, TcpStream::connect((host, at.1))).await;
        let stream = connected.map_err(|_| Failure::TooSlow)?;
        let stream = stream.map_err(|error| Failure::Unreachable(error.to_string()))?;
        // A question is one write: there is nothing to be gathered.
        let _ = stream.set_nodelay(true);
        let shaken = handshake(TokioIo::new(stream)).await;
        let (sender, connection) = shaken.map_err(|error| Failure::Unreachable(reason(&error)))?;
        Ok(Self { sender, connection })
    }

    /// Another question can be sent.
    async fn is_ready(&mut self) -> bool {
        let Self { sender, connection } = self;
        // One that was closed meanwhile says so when it is polled, and not before.
        let is_over = poll_fn(|context| Poll::Ready(Pin::new(&mut *connection).poll(context).is_ready())).await;
        !is_over && along(connection, sender.ready()).await.is_ok()
    }

    async fn ask(&mut self, request: Request<Full<Bytes>>, most: usize) -> Result<Raw, Failure> {
        let Self { sender, connection } = self;
        let answered = async {
            let hung_up = |error: hyper::Error| Failure::HungUp(reason(&error));
            let response: Response<_> = sender.send_request(request).await.map_err(hung_up)?;
            let (head, mut rest) = response.into_parts();
            let mut body = Vec::new();
            while let Some(frame) = rest.frame().await {
                let Ok(data) = frame.map_err(hung_up)?.into_data() else { continue };
                if body.len() + data.len() > most {
                    return Err(Failure::TooLong);
                }
                body.extend_from_slice(&data);
            }
            Ok(Raw { status: head.status.as_u16(), body })
        };
        along(connection, answered).await
    }
}

/// Does something that needs the connection to go on meanwhile.
async fn along<T>(connection: &mut Connection<TokioIo<TcpStream>, Full<Bytes>>, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let mut is_over = false;
    poll_fn(|context| {
        if let Poll::Ready(done) = work.as_mut().poll(context) {
            return Poll::Ready(done);
        }
        if is_over {
            return Poll::Pending;
        }
        // What the connection has done is for the work to see.
        is_over = Pin::new(&mut *connection).poll(context).is_ready();
        work.as_mut().poll(context)
    })
    .await
}

/// The innermost reason: the outer ones only say that there was one.
fn reason(error: &hyper::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
