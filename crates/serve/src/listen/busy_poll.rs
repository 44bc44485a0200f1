//! [`BusyPoll`]: a connection that is asked for a short while whether there is more, before its thread sleeps.

use super::open_requests::OpenRequests;
use crate::endpoint::EndpointKind;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::io;
use std::num::NonZero;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// How long: a client that waits for one answer to ask for the next takes less to do so. To be woken took 60 microseconds where it was
/// measured, in a virtual machine.
const WINDOW: Duration = Duration::from_micros(100);

/// What the connections of a server have in common: which of them was the last one to say something. Only it is waited for: where
/// several are busy, threads have others to serve.
#[derive(Debug)]
pub(crate) struct LastToSpeak {
    connection: AtomicUsize,
    next: AtomicUsize,
    is_allowed: bool,
}

impl LastToSpeak {
    /// No one is waited for where there is no second processor, which clients, or others to serve, could use meanwhile.
    pub(crate) fn new() -> Self {
        let is_allowed =
            std::thread::available_parallelism().is_ok_and(|it| it > NonZero::<usize>::MIN);
        Self { connection: AtomicUsize::new(0), next: AtomicUsize::new(1), is_allowed }
    }
}

/// A connection that is asked for a short while whether there is more, before its thread sleeps.
pub(crate) struct BusyPoll {
    stream: TcpStream,
    last: Arc<LastToSpeak>,
    number: usize,
    open: OpenRequests,
    /// Whoever answers tries to read again: HTTP/1 does. HTTP/2 reads before it writes.
    reads_behind_answers: bool,
    /// No other connection has spoken between its last two questions.
    is_alone: bool,
    /// The end of the last answer was written, and nothing read since: nothing is to be done until the client speaks.
    has_answered: bool,
    has_waited: bool,
}

impl BusyPoll {
    /// It is asked for a while when none of its requests is `open`.
    pub(crate) fn new(
        stream: TcpStream,
        last: &Arc<LastToSpeak>,
        open: OpenRequests,
        kind: EndpointKind,
    ) -> Self {
        let number = last.next.fetch_add(1, Ordering::Relaxed);
        Self {
            stream,
            last: Arc::clone(last),
            number,
            open,
            reads_behind_answers: matches!(kind, EndpointKind::Http),
            is_alone: false,
            has_answered: false,
            has_waited: false,
        }
    }

    /// Has read something: a question, or another piece of it.
    fn speak(&mut self) {
        let previous = self.last.connection.swap(self.number, Ordering::Relaxed);
        self.is_alone = previous == self.number && (self.has_answered || self.is_alone);
        self.has_answered = false;
    }

    /// Writes something: an answer, or, where a request is open, a part of one, or a window that HTTP/2 opens.
    fn write(&mut self, context: &Context<'_>) {
        self.has_answered = self.open.is_empty();
        self.has_waited = false;
        if !self.reads_behind_answers && self.is_to_wait() {
            context.waker().wake_by_ref();
        }
    }

    fn is_to_wait(&self) -> bool {
        self.last.is_allowed && self.is_alone && self.has_answered && !self.has_waited
    }

    /// Whether there is something to read, or the connection has ended, before the while is over or another one speaks.
    fn is_readable_soon(&mut self) -> bool {
        if !self.is_to_wait() {
            return false;
        }
        self.has_waited = true;
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let begin = Instant::now();
        while self.last.connection.load(Ordering::Relaxed) == self.number {
            match poll(&mut [PollFd::new(&self.stream, PollFlags::IN)], Some(&now)) {
                Ok(0) if begin.elapsed() < WINDOW => std::hint::spin_loop(),
                found => return found.is_ok_and(|count| count > 0),
            }
        }
        false
    }
}

impl AsyncRead for BusyPoll {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if polled.is_ready() {
            if buffer.filled().len() > before {
                self.speak();
            }
            return polled;
        }
        if !self.is_readable_soon() {
            return polled;
        }
        // The runtime has not seen yet what has come. It wakes this task once for nothing.
        match recv(&self.stream, buffer.initialize_unfilled(), RecvFlags::DONTWAIT) {
            Ok((length, _)) => {
                buffer.advance(length);
                if length > 0 {
                    self.speak();
                }
                Poll::Ready(Ok(()))
            }
            Err(Errno::AGAIN | Errno::INTR) => polled,
            // The system gives it once only, so not left to the runtime's next read.
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }
}

impl AsyncWrite for BusyPoll {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write(context);
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        all: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(context);
        Pin::new(&mut self.stream).poll_write_vectored(context, all)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::io::{Read, Write};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    fn shared(is_allowed: bool) -> Arc<LastToSpeak> {
        Arc::new(LastToSpeak { is_allowed, ..LastToSpeak::new() })
    }

    /// A connection that has read two questions and answered the first one, and its client.
    async fn asked(
        last: &Arc<LastToSpeak>,
        open: OpenRequests,
        kind: EndpointKind,
    ) -> (BusyPoll, std::net::TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut connection = BusyPoll::new(listener.accept().await.unwrap().0, last, open, kind);
        ask(&mut client, &mut connection).await;
        connection.write_all(b"answer").await.unwrap();
        client.read_exact(&mut [0; 6]).unwrap();
        ask(&mut client, &mut connection).await;
        (connection, client)
    }

    async fn ask(client: &mut std::net::TcpStream, connection: &mut BusyPoll) {
        client.write_all(b"question").unwrap();
        let mut question = [0; 8];
        connection.read_exact(&mut question).await.unwrap();
        assert_eq!(&question, b"question");
    }

    /// What one poll reads, before the runtime can have seen that there is anything.
    async fn polled_once(connection: &mut BusyPoll) -> Poll<Vec<u8>> {
        poll_fn(|context| {
            let mut bytes = [0; 16];
            let mut buffer = ReadBuf::new(&mut bytes);
            let polled = Pin::new(&mut *connection).poll_read(context, &mut buffer);
            Poll::Ready(polled.map(|read| read.map(|()| buffer.filled().to_vec()).unwrap()))
        })
        .await
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap().block_on(future)
    }

    #[test]
    fn a_question_behind_an_answer_is_read_before_the_runtime_sees_it() {
        block_on(async {
            let (mut connection, mut client) =
                asked(&shared(true), OpenRequests::default(), EndpointKind::Http).await;
            assert_eq!(polled_once(&mut connection).await, Poll::Pending, "nothing has come");
            connection.write_all(b"answer").await.unwrap();
            client.write_all(b"another").unwrap();
            assert_eq!(polled_once(&mut connection).await, Poll::Ready(b"another".to_vec()));
            // One that comes later is seen by the runtime, and nothing comes twice.
            assert_eq!(polled_once(&mut connection).await, Poll::Pending);
            client.write_all(b"a later one").unwrap();
            client.read_exact(&mut [0; 6]).unwrap();
            drop(client);
            let mut rest = Vec::new();
            connection.read_to_end(&mut rest).await.unwrap();
            assert_eq!(rest, b"a later one");
        });
    }

    #[test]
    fn who_has_others_to_serve_does_not_wait() {
        block_on(async {
            for (is_allowed, is_open, others) in
                [(false, false, 0), (true, true, 0), (true, false, 1), (true, false, 2)]
            {
                let (last, open) = (shared(is_allowed), OpenRequests::default());
                let (mut connection, mut client) =
                    asked(&last, open.clone(), EndpointKind::Grpc).await;
                let mut kept = Vec::new();
                if others == 2 {
                    // Between two questions, and not since.
                    kept.push(asked(&last, OpenRequests::default(), EndpointKind::Http).await);
                    connection.write_all(b"answer").await.unwrap();
                    ask(&mut client, &mut connection).await;
                }
                let request = is_open.then(|| open.open());
                connection.write_all(b"answer").await.unwrap();
                // A part of an answer, or a window that is opened, is none, also when the request is answered later.
                drop(request);
                if others == 1 {
                    kept.push(asked(&last, OpenRequests::default(), EndpointKind::Http).await);
                }
                // The runtime has seen all that was there until now.
                assert_eq!(polled_once(&mut connection).await, Poll::Pending);
                client.write_all(b"another").unwrap();
                assert_eq!(polled_once(&mut connection).await, Poll::Pending);
                let mut another = [0; 7];
                connection.read_exact(&mut another).await.unwrap();
                assert_eq!(&another, b"another");
            }
        });
    }

    /// How often writing an answer wakes the task that writes it, which HTTP/2 needs to read behind it.
    #[test]
    fn an_answer_over_http2_has_its_task_polled_again_if_the_client_is_waited_for() {
        #[derive(Default)]
        struct Counter(AtomicUsize);
        impl std::task::Wake for Counter {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        block_on(async {
            for (kind, is_allowed, is_open, expected) in [
                (EndpointKind::Grpc, true, false, 1),
                (EndpointKind::Grpc, false, false, 0),
                (EndpointKind::Grpc, true, true, 0),
                (EndpointKind::Http, true, false, 0),
            ] {
                let open = OpenRequests::default();
                let (mut connection, _client) =
                    asked(&shared(is_allowed), open.clone(), kind).await;
                let _request = is_open.then(|| open.open());
                let counter = Arc::new(Counter::default());
                let waker = std::task::Waker::from(Arc::clone(&counter));
                let mut context = Context::from_waker(&waker);
                let written = Pin::new(&mut connection).poll_write(&mut context, b"answer");
                assert!(matches!(written, Poll::Ready(Ok(6))), "{written:?}");
                let found = counter.0.load(Ordering::Relaxed);
                assert_eq!(found, expected, "{kind:?} {is_allowed} {is_open}");
            }
        });
    }

    #[test]
    fn a_client_that_goes_after_its_answer_is_seen_to_go() {
        block_on(async {
            let (mut connection, client) =
                asked(&shared(true), OpenRequests::default(), EndpointKind::Http).await;
            connection.write_all(b"answer").await.unwrap();
            drop(client);
            // Its end, or a reset because of the answer that it has not read.
            let mut rest = Vec::new();
            let end = connection.read_to_end(&mut rest).await;
            assert!(end.is_err() || rest.is_empty(), "{end:?} {rest:?}");
        });
    }
}
