//! Requests and answers as JSON, with the binary tensor extension.

mod bounded;
mod elements;
mod object;
mod request;
mod response;

pub(crate) use bounded::{AnyText, Members};
pub(crate) use object::Object;
pub(crate) use request::{Received, joined, read, read_raw};
pub(crate) use response::{is_much, write};
