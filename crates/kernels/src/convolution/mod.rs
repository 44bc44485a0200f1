//! Convolution of images of float32 ([`float`]) and of quantized values ([`quantized`]), by a filter that is known
//! when it is prepared; see [`unpacked_convolution`](crate::unpacked_convolution) for others.

pub mod float;
mod pixels;
pub mod quantized;
mod row;
mod shape;
mod tiles;

pub(crate) use pixels::Pixels;
pub use shape::Shape;
