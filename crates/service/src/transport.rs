//! [`Counted`]: a connection that is counted as its client's for as long as it lasts.

use crate::clients::Admission;
use rsbinder::rpc::transport::UnixTransport;
use rsbinder::rpc::{PeerIdentity, RpcError, RpcTransport};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

type Result<T> = std::result::Result<T, RpcError>;

/// A Unix socket, with the admission that ends with it.
pub(crate) struct Counted {
    inner: UnixTransport,
    _admission: Admission,
}

impl Counted {
    pub(crate) fn new(inner: UnixTransport, admission: Admission) -> Self {
        Self { inner, _admission: admission }
    }
}

/// All is the socket's own.
impl RpcTransport for Counted {
    fn send_frame(&self, buf: &[u8]) -> Result<()> {
        self.inner.send_frame(buf)
    }

    fn recv_frame(&self) -> Result<Vec<u8>> {
        self.inner.recv_frame()
    }

    fn peer_identity(&self) -> PeerIdentity {
        self.inner.peer_identity()
    }

    fn describe(&self) -> &str {
        self.inner.describe()
    }

    fn set_read_timeout(&self, timeout: Option<Duration>) -> Result<()> {
        self.inner.set_read_timeout(timeout)
    }

    fn set_write_timeout(&self, timeout: Option<Duration>) -> Result<()> {
        self.inner.set_write_timeout(timeout)
    }

    fn set_liveness(&self, timeout: Option<Duration>) -> Result<()> {
        self.inner.set_liveness(timeout)
    }

    fn peer_closed(&self) -> Option<bool> {
        self.inner.peer_closed()
    }

    fn shutdown_handle(&self) -> Option<Box<dyn FnOnce() + Send>> {
        self.inner.shutdown_handle()
    }

    fn shutdown(&self) -> Result<()> {
        self.inner.shutdown()
    }

    fn supports_fd_passing(&self) -> bool {
        self.inner.supports_fd_passing()
    }

    fn send_frame_with_fds(&self, buf: &[u8], fds: &[BorrowedFd<'_>]) -> Result<()> {
        self.inner.send_frame_with_fds(buf, fds)
    }

    fn recv_frame_with_fds(&self) -> Result<(Vec<u8>, Vec<OwnedFd>)> {
        self.inner.recv_frame_with_fds()
    }

    fn send_raw(&self, buf: &[u8]) -> Result<()> {
        self.inner.send_raw(buf)
    }

    fn recv_raw(&self, buf: &mut [u8]) -> Result<usize> {
        self.inner.recv_raw(buf)
    }

    fn send_raw_with_fds(&self, buf: &[u8], fds: &[BorrowedFd<'_>]) -> Result<()> {
        self.inner.send_raw_with_fds(buf, fds)
    }

    fn recv_raw_with_fds(&self, buf: &mut [u8]) -> Result<(usize, Vec<OwnedFd>)> {
        self.inner.recv_raw_with_fds(buf)
    }

    fn send_raw_draining(
        &self,
        buf: &[u8],
        fds: &[BorrowedFd<'_>],
        drain: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        self.inner.send_raw_draining(buf, fds, drain)
    }
}
