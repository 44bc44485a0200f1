//! The structures of the C API, as they cross the border; what C only knows by handles is declared beside its functions.

use crate::pointer::Plain;

/// What an operand is (`ANeuralNetworksOperandType`).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct ANeuralNetworksOperandType {
    /// Code of the type.
    pub r#type: i32,
    /// Number of dimensions.
    pub dimension_count: u32,
    /// Their lengths, 0 where unknown; null if there are none.
    pub dimensions: *const u32,
    /// For quantized types, else 0.
    pub scale: f32,
    /// For quantized types, else 0.
    pub zero_point: i32,
}

/// Scales along a dimension (`ANeuralNetworksSymmPerChannelQuantParams`).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct ANeuralNetworksSymmPerChannelQuantParams {
    /// The dimension.
    pub channel_dim: u32,
    /// Number of scales.
    pub scale_count: u32,
    /// One positive number for each channel.
    pub scales: *const f32,
}

// SAFETY: numbers and a pointer, of any bits.
#[allow(unsafe_code, reason = "a promise about the type")]
unsafe impl Plain for ANeuralNetworksOperandType {}
// SAFETY: numbers and a pointer, of any bits.
#[allow(unsafe_code, reason = "a promise about the type")]
unsafe impl Plain for ANeuralNetworksSymmPerChannelQuantParams {}

/// Memory of Android's graphics system, which there is none of here.
#[derive(Debug)]
#[repr(C)]
pub struct AHardwareBuffer {
    nothing: [u8; 0],
}
