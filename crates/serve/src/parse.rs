//! Requests as both endpoints read them, without a server: for whoever tests what strangers may send.

use crate::charge::{Charge, Receiving};
use crate::error::{Error, Result};
use crate::grpc::{Decoding, Messages};
use crate::request::InferRequest;
use crate::shared_memory::SharedMemory;
use prost::Message as _;

/// A request by HTTP; `header` is the length of its JSON if bytes follow.
///
/// # Errors
/// As the server's answers.
pub fn json(body: &[u8], header: Option<usize>) -> Result<InferRequest> {
    let body = crate::http::Received { front: body.to_vec().into(), header, memory: None };
    let charge = Charge::new(Receiving::new(usize::MAX)).shared();
    Ok(crate::http::read_request("", None, body, &SharedMemory::new(false), &charge)?.0)
}

/// A request by gRPC.
///
/// # Errors
/// As the server's answers.
pub fn message(body: &[u8]) -> Result<InferRequest> {
    Decoding::new(Messages::of("ModelInfer"), body.len()).receive(body)?;
    let wire = crate::proto::ModelInferRequest::decode(body);
    let wire = wire.map_err(|error| Error::Invalid(error.to_string()))?;
    crate::grpc::read_request(wire, &SharedMemory::new(false))
}
