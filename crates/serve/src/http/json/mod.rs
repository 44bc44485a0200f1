//! Requests and answers as JSON, with the binary tensor extension.

mod elements;
mod object;
mod request;
mod response;

pub(crate) use object::Object;
pub(crate) use request::{Received, read, read_raw};
pub(crate) use response::{is_much, write};
