//! [`Error`]: why a request was not answered as it asked, with what HTTP and gRPC make of it.

use std::time::Duration;

/// What a call gives back.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a request was not answered as it asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request, or a configuration, is not what it should be.
    #[error("{0}")]
    Invalid(String),
    /// A name stands for nothing.
    #[error("there is no {what} {name:?}")]
    NotFound {
        /// What kind of thing it would be: `model`, `version`, `shared-memory region`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A model has no such version.
    #[error("there is no version {version} of model {model:?}")]
    NoVersion {
        /// The version.
        version: u64,
        /// The model.
        model: String,
    },
    /// A request without a token, or with one that is not known.
    #[error("a bearer token is needed: {0}")]
    Unauthenticated(&'static str),
    /// What the server was not started with.
    #[error("{0}")]
    Forbidden(&'static str),
    /// More bytes than a request may have.
    #[error("a request of more than {limit} bytes")]
    TooLarge {
        /// Bytes that a request may have.
        limit: usize,
    },
    /// The model's queue is full.
    #[error("the queue of model {model:?} is full: {waiting} requests wait")]
    QueueFull {
        /// The model.
        model: String,
        /// How many wait.
        waiting: usize,
        /// When there may be room, by the time that runs took lately.
        retry_after: Duration,
    },
    /// Requests that are being received, and answers that are being sent, take all the memory that there is for them.
    #[error(
        "requests in progress and their answers take all of the {limit} bytes that there are for them"
    )]
    NoMemory {
        /// Bytes for requests that are in progress.
        limit: usize,
    },
    /// Files of models that clients have uploaded take all the memory that there is for them.
    #[error(
        "files of models that clients have uploaded take too much of the {limit} bytes that there are for them"
    )]
    NoMemoryForUploads {
        /// Bytes for such files.
        limit: usize,
    },
    /// What is done for one at a time is being done for another.
    #[error("{0}")]
    Busy(&'static str),
    /// The request's timeout passed, waiting or computing.
    #[error("the request's timeout passed {0}")]
    Timeout(&'static str),
    /// The client did not send, or did not take, what it should in time.
    #[error("the client is too slow")]
    SlowClient,
    /// Whoever asked has gone away.
    #[error("the request was cancelled")]
    Cancelled,
    /// Not now: the server ends, the model is not loaded, or its device is gone.
    #[error("{0}")]
    Unavailable(String),
    /// What the protocol has and this server lacks.
    #[error("{0}: this server does not offer it")]
    Unsupported(&'static str),
    /// What was sent is compressed in a way that this server does not read.
    #[error("requests may be compressed by gzip or deflate, and in no other way")]
    Encoding,
    /// The device, or this server, failed.
    #[error("{0}")]
    Internal(String),
}

impl Error {
    /// An argument that is wrong.
    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid(what.into())
    }

    /// The status of an answer by HTTP.
    pub fn http_status(&self) -> http::StatusCode {
        use http::StatusCode as Code;
        match self {
            Self::Invalid(_) => Code::BAD_REQUEST,
            Self::NotFound { .. } | Self::NoVersion { .. } => Code::NOT_FOUND,
            Self::Unauthenticated(_) => Code::UNAUTHORIZED,
            Self::Forbidden(_) => Code::FORBIDDEN,
            Self::TooLarge { .. } => Code::PAYLOAD_TOO_LARGE,
            Self::QueueFull { .. }
            | Self::NoMemory { .. }
            | Self::NoMemoryForUploads { .. }
            | Self::Busy(_) => Code::TOO_MANY_REQUESTS,
            Self::Timeout(_) => Code::GATEWAY_TIMEOUT,
            Self::SlowClient => Code::REQUEST_TIMEOUT,
            Self::Cancelled | Self::Unavailable(_) => Code::SERVICE_UNAVAILABLE,
            Self::Unsupported(_) => Code::NOT_IMPLEMENTED,
            Self::Encoding => Code::UNSUPPORTED_MEDIA_TYPE,
            Self::Internal(_) => Code::INTERNAL_SERVER_ERROR,
        }
    }

    /// The status of an answer by gRPC.
    pub fn grpc_code(&self) -> tonic::Code {
        use tonic::Code;
        match self {
            Self::Invalid(_) => Code::InvalidArgument,
            Self::NotFound { .. } | Self::NoVersion { .. } => Code::NotFound,
            Self::Unauthenticated(_) => Code::Unauthenticated,
            Self::Forbidden(_) => Code::PermissionDenied,
            Self::TooLarge { .. }
            | Self::QueueFull { .. }
            | Self::NoMemory { .. }
            | Self::NoMemoryForUploads { .. }
            | Self::Busy(_) => Code::ResourceExhausted,
            Self::Timeout(_) | Self::SlowClient => Code::DeadlineExceeded,
            Self::Cancelled => Code::Cancelled,
            Self::Unavailable(_) => Code::Unavailable,
            Self::Unsupported(_) | Self::Encoding => Code::Unimplemented,
            Self::Internal(_) => Code::Internal,
        }
    }

    /// What the metrics call it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid",
            Self::NotFound { .. } | Self::NoVersion { .. } => "not_found",
            Self::Unauthenticated(_) => "unauthenticated",
            Self::Forbidden(_) => "forbidden",
            Self::TooLarge { .. } => "too_large",
            Self::QueueFull { .. } => "queue_full",
            Self::NoMemory { .. } | Self::NoMemoryForUploads { .. } => "no_memory",
            Self::Busy(_) => "busy",
            Self::Timeout(_) => "timeout",
            Self::SlowClient => "slow_client",
            Self::Cancelled => "cancelled",
            Self::Unavailable(_) => "unavailable",
            Self::Unsupported(_) | Self::Encoding => "unsupported",
            Self::Internal(_) => "internal",
        }
    }

    /// After what time it makes sense to ask again; whole seconds are what HTTP says.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::QueueFull { retry_after, .. } => Some(*retry_after),
            Self::NoMemory { .. } | Self::Busy(_) | Self::Unavailable(_) => {
                Some(Duration::from_secs(1))
            }
            _ => None,
        }
    }
}

/// What the library says of a run or of inputs.
impl From<nnhal::Error> for Error {
    fn from(error: nnhal::Error) -> Self {
        use nnhal::hal::ErrorStatus;
        match error.status() {
            Some(ErrorStatus::MissedDeadlineTransient | ErrorStatus::MissedDeadlinePersistent) => {
                Self::Timeout("while it was computed")
            }
            Some(ErrorStatus::DeviceUnavailable) => Self::Unavailable(error.to_string()),
            Some(ErrorStatus::InvalidArgument) => Self::Invalid(error.to_string()),
            // The model was prepared: what an operation then does not take is this request's shapes or values.
            Some(ErrorStatus::GeneralFailure) if error.operation().is_some() => {
                Self::Invalid(error.to_string())
            }
            Some(_) => Self::Internal(error.to_string()),
            None => match error {
                nnhal::Error::Memory(_) | nnhal::Error::TooLarge { .. } => {
                    Self::Internal(error.to_string())
                }
                _ => Self::Invalid(error.to_string()),
            },
        }
    }
}

/// Why the server cannot be started, or ended by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An address cannot be listened at.
    #[error("{address}: {source}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// Others than this machine could reach the server, and anybody would be served.
    #[error(
        "{address} can be reached from other machines: give clients a token (--token-file), or say that \
         anybody may use the server (--allow-anybody)"
    )]
    Open {
        /// The address.
        address: std::net::SocketAddr,
    },
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {what}", path.display())]
    Content {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Neither address is given.
    #[error("there is nowhere to listen: give an address for HTTP, for gRPC, or both")]
    Nowhere,
    /// A part of the system fails: threads, signals.
    #[error("{what}: {source}")]
    System {
        /// What was wanted.
        what: &'static str,
        /// Why not.
        source: std::io::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overload_is_reported_by_both_endpoints_with_a_time() {
        let (model, retry_after) = ("m".to_owned(), Duration::from_millis(20));
        let full = Error::QueueFull { model, waiting: 3, retry_after };
        assert_eq!(full.http_status(), 429);
        assert_eq!(full.grpc_code(), tonic::Code::ResourceExhausted);
        assert_eq!(full.retry_after(), Some(retry_after));
    }
}
